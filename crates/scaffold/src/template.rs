//! The template's files under another name.

use crate::name::ProviderName;

/// Files that both kinds of provider have, with their places below the crate.
const SHARED: [(&str, &str); 5] = [
    ("src/main.rs", include_str!("../template/src/main.rs")),
    ("src/lib.rs", include_str!("../template/src/lib.rs")),
    ("src/tools/mod.rs", include_str!("../template/src/tools/mod.rs")),
    ("src/tools/greet.rs", include_str!("../template/src/tools/greet.rs")),
    ("tests/it/main.rs", include_str!("../template/tests/it/main.rs")),
];

/// The calls that `toolctl check` makes, and where they are: below the workspace or the crate of its own.
pub(crate) fn calls(name: &ProviderName) -> (String, String) {
    let text = include_str!("../template/tests/conformance/template.json");
    (format!("tests/conformance/{name}.json"), renamed(text, name))
}

/// The shared files of a provider.
pub(crate) fn shared(name: &ProviderName) -> impl Iterator<Item = (&'static str, String)> {
    SHARED.into_iter().map(|(path, text)| (path, renamed(text, name)))
}

/// A text of the template with the provider's name in place of the template's.
pub(crate) fn renamed(text: &str, name: &ProviderName) -> String {
    text.replace("provider-template", &name.package())
        .replace("provider_template", &name.library())
        .replace("Template", &name.type_name())
        .replace("template", name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> ProviderName {
        ProviderName::parse("issue-tracker").unwrap()
    }

    #[test]
    fn nothing_of_the_template_is_left() {
        for (path, text) in shared(&name()) {
            assert!(!text.to_lowercase().contains("template"), "{path}: {text}");
        }
    }

    #[test]
    fn the_calls_are_named_after_the_provider() {
        let (path, text) = calls(&name());
        assert_eq!(path, "tests/conformance/issue-tracker.json");
        assert!(text.contains("\"greet\"") && !text.contains("template"), "{text}");
    }

    #[test]
    fn hello_world_fits_under_forty_lines() {
        let code = |text: &str| {
            let is_code = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with("//");
            text.lines().filter(is_code).count()
        };
        let [_, lib, modules, greet, _] = SHARED.map(|(_, text)| text);
        let tool = greet.lines().count();
        assert!(tool < 40, "the tool has {tool} lines, comments and blank ones included");
        let all = code(lib) + code(modules) + code(greet);
        assert!(all < 40, "the whole provider has {all} lines of code");
    }

    #[test]
    fn the_one_file_provider_of_the_readme_fits_under_forty_lines() {
        let readme = include_str!("../../../README.md");
        let (_, rest) = readme.split_once("```rust,no_run\n").unwrap();
        let (example, _) = rest.split_once("```").unwrap();
        assert!(example.contains("provider_core::run::<Hello>()"), "{example}");
        assert!(example.lines().count() < 40, "it has {} lines", example.lines().count());
    }

    #[test]
    fn main_fits_under_fifteen_lines() {
        assert!(SHARED[0].1.lines().count() < 15);
    }
}
