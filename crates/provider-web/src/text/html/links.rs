//! Where links lead, as addresses that mean the same anywhere.

use url::Url;

/// Longer addresses are not written.
const LONGEST: usize = 4 * 1024;

/// What relative addresses of a page start from.
#[derive(Debug, Clone, Default)]
pub(super) struct Base(Option<Url>);

impl Base {
    /// The page's own address, or what its `<base>` says.
    pub(super) fn of(page: Option<&Url>, base: Option<&str>) -> Self {
        let said = base.map(str::trim).filter(|base| !base.is_empty());
        let Some(said) = said else { return Self(page.cloned()) };
        let joined = match page {
            Some(page) => page.join(said).ok(),
            None => Url::parse(said).ok(),
        };
        Self(joined.filter(|base| !base.cannot_be_a_base()).or_else(|| page.cloned()))
    }

    /// The address that `target` leads to; `None` where there is nothing to follow.
    pub(super) fn resolve(&self, target: &str) -> Option<String> {
        let target = target.trim_matches(|c: char| c.is_ascii_whitespace() || c.is_ascii_control());
        if target.is_empty() || target.len() > LONGEST {
            return None;
        }
        let scheme = scheme(target);
        if let Some(scheme) = scheme {
            const FOLLOWED: [&str; 9] =
                ["http", "https", "mailto", "tel", "ftp", "news", "git", "ssh", "magnet"];
            if !FOLLOWED.iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
                return None;
            }
            if is_plain(target) {
                return Some(target.to_owned());
            }
        }
        let address = match &self.0 {
            Some(base) => base.join(target).ok().map(String::from),
            None if scheme.is_some() => Url::parse(target).ok().map(String::from),
            None => Some(target.to_owned()),
        }?;
        Some(if is_plain(&address) { address } else { quoted(&address) })
    }
}

/// The scheme an address begins with.
fn scheme(target: &str) -> Option<&str> {
    let (scheme, _) = target.split_once(':')?;
    let is_scheme =
        scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
    (is_scheme && scheme.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic())).then_some(scheme)
}

/// Whether an address can stand in Markdown as it is.
fn is_plain(address: &str) -> bool {
    address
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'(' | b')' | b'<' | b'>' | b'\\' | b'|'))
}

/// The address without what would end it early.
fn quoted(address: &str) -> String {
    let mut quoted = String::with_capacity(address.len() + 8);
    for c in address.chars() {
        match c {
            '(' => quoted.push_str("%28"),
            ')' => quoted.push_str("%29"),
            '<' => quoted.push_str("%3C"),
            '>' => quoted.push_str("%3E"),
            '\\' => quoted.push_str("%5C"),
            // It would end the cell of a table.
            '|' => quoted.push_str("%7C"),
            c if c.is_whitespace() => quoted.push_str("%20"),
            c if c.is_control() => {}
            c => quoted.push(c),
        }
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(base: &str, target: &str, expected: Option<&str>) {
        let page = Url::parse("https://docs.example/guide/start.html?v=2").unwrap();
        let base = Base::of(Some(&page), Some(base));
        assert_eq!(base.resolve(target).as_deref(), expected, "{target}");
    }

    #[test]
    fn addresses_are_made_absolute() {
        check("", "next.html", Some("https://docs.example/guide/next.html"));
        check("", "#part", Some("https://docs.example/guide/start.html?v=2#part"));
        check("", "//cdn.example/x", Some("https://cdn.example/x"));
        check("", "  https://other.example/a_(b) ", Some("https://other.example/a_%28b%29"));
        check("/v3/", "next.html", Some("https://docs.example/v3/next.html"));
        check("", "mailto:a@docs.example", Some("mailto:a@docs.example"));
        check("", "a b.html", Some("https://docs.example/guide/a%20b.html"));
    }

    #[test]
    fn what_cannot_be_followed_is_no_link() {
        check("", "javascript:alert(1)", None);
        check("", "JaVaScRiPt:alert(1)", None);
        check("", "data:text/html,hello", None);
        check("", "", None);
    }
}
