//! robots.txt (RFC 9309): what a site asks of programs, and whether a path is among it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http_guard::{CheckedUrl, Guard, Limits, Request};
use tokio::time::Instant;

/// What is read of a file.
const LARGEST: u64 = 512 * 1024;
/// A site whose file does not come is not waited for.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a file holds.
const HOLDS: Duration = Duration::from_secs(3_600);
const MOST_KNOWN: usize = 256;

/// The rules that a site has for one program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rules(Vec<Rule>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    allows: bool,
    pattern: String,
}

impl Rules {
    /// The rules of `text` for the program called `product`, or for all where there are none for it.
    pub(crate) fn of(text: &str, product: &str) -> Self {
        let (mut own, mut all) = (None::<Vec<Rule>>, Vec::new());
        let (mut for_own, mut for_all, mut in_rules) = (false, false, false);
        for (name, value) in text.lines().filter_map(directive) {
            match name.as_str() {
                "user-agent" => {
                    if std::mem::take(&mut in_rules) {
                        (for_own, for_all) = (false, false);
                    }
                    for_all |= value == "*";
                    for_own |= value != "*" && product.eq_ignore_ascii_case(product_of(value));
                    if for_own {
                        own.get_or_insert_default();
                    }
                }
                "allow" | "disallow" => {
                    in_rules = true;
                    // An empty rule says nothing.
                    if value.is_empty() {
                        continue;
                    }
                    let rule = || Rule { allows: name == "allow", pattern: value.to_owned() };
                    if for_own {
                        own.get_or_insert_default().push(rule());
                    }
                    if for_all {
                        all.push(rule());
                    }
                }
                _ => {}
            }
        }
        Self(own.unwrap_or(all))
    }

    /// Whether a path with its query may be fetched: the longest rule that fits decides, and among equals the kinder.
    pub(crate) fn allow(&self, target: &str) -> bool {
        let fitting = self.0.iter().filter(|rule| fits(&rule.pattern, target));
        fitting.max_by_key(|rule| (rule.pattern.len(), rule.allows)).is_none_or(|rule| rule.allows)
    }
}

fn directive(line: &str) -> Option<(String, &str)> {
    let line = line.split('#').next().unwrap_or_default();
    let (name, value) = line.split_once(':')?;
    Some((name.trim().trim_start_matches('\u{feff}').to_ascii_lowercase(), value.trim()))
}

/// The name of a program, without its version and the rest.
pub(crate) fn product_of(agent: &str) -> &str {
    let end =
        agent.find(|character: char| !(character.is_ascii_alphanumeric() || matches!(character, '-' | '_')));
    &agent[..end.unwrap_or(agent.len())]
}

/// Whether `target` begins as `pattern` says, where `*` stands for anything and `$` at the end for the end. Linear in
/// both: each part is looked for once, as early as possible.
fn fits(pattern: &str, target: &str) -> bool {
    let (pattern, to_end) = match pattern.strip_suffix('$') {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| target.strip_prefix(first)) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return !to_end || rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if to_end && parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

/// The rules of the sites that have been asked.
#[derive(Debug)]
pub(crate) struct Robots {
    product: String,
    known: Mutex<HashMap<String, (Instant, Arc<Rules>)>>,
}

impl Robots {
    /// For the program that calls itself `agent`.
    pub(crate) fn new(agent: &str) -> Self {
        Self { product: product_of(agent).to_owned(), known: Mutex::default() }
    }

    /// Whether the site lets this program fetch `url`.
    pub(crate) async fn allow(&self, guard: &Guard, url: &CheckedUrl) -> bool {
        let origin = url.origin();
        let known = self.known(&origin);
        let rules = match known {
            Some(rules) => rules,
            None => {
                let rules = Arc::new(self.fetched(guard, url).await);
                self.learn(origin, rules.clone());
                rules
            }
        };
        rules.allow(url.target())
    }

    fn known(&self, origin: &str) -> Option<Arc<Rules>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(origin).filter(|(since, _)| since.elapsed() < HOLDS).map(|(_, rules)| rules.clone())
    }

    fn learn(&self, origin: String, rules: Arc<Rules>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST_KNOWN {
            known.retain(|_, (since, _)| since.elapsed() < HOLDS / 4);
        }
        if known.len() < MOST_KNOWN {
            known.insert(origin, (Instant::now(), rules));
        }
    }

    /// Only a file that is there has rules. One that is missing, broken or slow has none: what is wrong with the site
    /// is then told by the page itself.
    async fn fetched(&self, guard: &Guard, url: &CheckedUrl) -> Rules {
        let limits = Limits {
            max_body: LARGEST,
            max_wire: LARGEST,
            total: PATIENCE,
            idle: PATIENCE,
            ..Limits::default()
        };
        match guard.send(Request::get(url.with_path("/robots.txt")).within(limits)).await {
            Ok(response) if response.status == 200 => {
                let body = response.body.collect().await.bytes;
                Rules::of(&String::from_utf8_lossy(&body), &self.product)
            }
            Ok(_) => Rules::default(),
            Err(error) => {
                tracing::debug!(%error, "there is no robots.txt");
                Rules::default()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, target: &str, expected: bool) {
        assert_eq!(Rules::of(text, "our-bot").allow(target), expected, "{text:?} {target}");
    }

    #[test]
    fn the_longest_rule_decides() {
        let text = "User-agent: *\nDisallow: /a\nAllow: /a/b\nDisallow: /a/b/c\n";
        check(text, "/", true);
        check(text, "/a", false);
        check(text, "/abc", false);
        check(text, "/a/b", true);
        check(text, "/a/b/c", false);
        check("User-agent: *\nDisallow: /a\nAllow: /a\n", "/a", true);
    }

    #[test]
    fn own_rules_replace_those_for_all() {
        let text = "user-agent: other\nuser-agent: Our-Bot/2.0\ndisallow: /own # why\n\nuser-agent: *\ndisallow: /\n";
        check(text, "/own", false);
        check(text, "/else", true);
        check("User-agent: our\nDisallow: /\n", "/", true);
        check("User-agent: our-bot\nDisallow:\n\nUser-agent: *\nDisallow: /\n", "/x", true);
        check("User-agent: our-bot\nUser-agent: *\nDisallow: /x\n", "/x", false);
    }

    #[test]
    fn stars_and_ends_are_known() {
        check("User-agent: *\nDisallow: /*.pdf$\n", "/a/b.pdf", false);
        check("User-agent: *\nDisallow: /*.pdf$\n", "/a/b.pdf?x", true);
        check("User-agent: *\nDisallow: /*?*key=\n", "/a?b&key=1", false);
        check("User-agent: *\nDisallow: /$\n", "/", false);
        check("User-agent: *\nDisallow: /$\n", "/a", true);
        check("User-agent: *\nDisallow: *\n", "/a", false);
    }

    #[test]
    fn what_is_no_rule_forbids_nothing() {
        for text in [
            "",
            "<!doctype html><p>Disallow: /",
            "Disallow: /\n",
            "User-agent: *\nDisallow:\nCrawl-delay: 5\n",
        ] {
            check(text, "/a", true);
        }
        // One that would take long to try in every way.
        let slow = format!("User-agent: *\nDisallow: /{}b$\n", "*a".repeat(5_000));
        check(&slow, &format!("/{}", "a".repeat(100_000)), true);
    }

    #[test]
    fn a_product_is_the_name_alone() {
        assert_eq!(product_of("our-bot/1.0 (+https://example.org)"), "our-bot");
    }
}
