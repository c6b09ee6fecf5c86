//! A plugin's manifest.

use serde_json::{Map, Value};

use crate::name::PluginName;
use crate::path::InnerPath;
use crate::permission::Permissions;
use crate::problem::{Problem, Problems};

/// What a plugin says about itself. Fields that are not known here are left alone: other hosts have uses for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Its name.
    pub name: PluginName,
    /// Its version.
    pub version: semver::Version,
    /// What it does, in a sentence.
    pub description: Option<String>,
    /// What runs; a plugin of rules alone has nothing that does.
    pub main: Option<Main>,
    /// What it adds without running.
    pub contributes: Contributions,
    /// What it asks to be allowed.
    pub permissions: Permissions,
}

/// What runs for a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Main {
    /// JavaScript with an `activate` function, for a runtime that the host has: `.js` or `.mjs`.
    Script(InnerPath),
    /// A program that speaks the plugin wire on its standard input and output: anything else.
    Program(InnerPath),
}

impl Main {
    /// The file.
    pub fn path(&self) -> &InnerPath {
        match self {
            Self::Script(path) | Self::Program(path) => path,
        }
    }
}

impl From<InnerPath> for Main {
    fn from(path: InnerPath) -> Self {
        match path.extension() {
            Some("js" | "mjs") => Self::Script(path),
            _ => Self::Program(path),
        }
    }
}

/// What a plugin adds without running.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contributions {
    /// Markdown files of rules, in their order, as the manifest has them. Each is judged when it is read: a bad one costs
    /// a plugin that one, and a session nothing.
    pub rules: Vec<String>,
}

/// Why a text is no manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// It is no JSON.
    #[error("not JSON: {0}")]
    NotJson(String),
    /// Fields are wrong: all of them.
    #[error("{}", lines(.0))]
    Invalid(Vec<Problem>),
}

fn lines(problems: &[Problem]) -> String {
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
}

impl Manifest {
    /// The manifest that these bytes are: JSON in UTF-8, perhaps behind a byte order mark.
    ///
    /// # Errors
    /// Every field that is wrong, at once.
    pub fn parse(bytes: &[u8]) -> Result<Self, ManifestError> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let value: Value =
            serde_json::from_slice(bytes).map_err(|error| ManifestError::NotJson(error.to_string()))?;
        Self::from_json(&value)
    }

    /// The manifest that this value is.
    ///
    /// # Errors
    /// Every field that is wrong, at once.
    pub fn from_json(value: &Value) -> Result<Self, ManifestError> {
        let mut problems = Problems::default();
        let manifest = problems.as_object(value, "").and_then(|object| read(object, &mut problems));
        let problems = problems.into_list();
        match manifest {
            Some(manifest) if problems.is_empty() => Ok(manifest),
            _ => Err(ManifestError::Invalid(problems)),
        }
    }
}

/// `None` only where something was found to be wrong.
fn read(object: &Map<String, Value>, problems: &mut Problems) -> Option<Manifest> {
    let name = problems.text(object, "name", "name").map(str::parse);
    let name = name.and_then(|name| problems.keep("name", name));
    let version = problems.text(object, "version", "version").map(semver::Version::parse);
    let version = version.and_then(|version| {
        let version = version.map_err(|error| format!("wanted a version such as 0.1.0: {error}"));
        problems.keep("version", version)
    });
    let description = present(object, "description")
        .and_then(|value| problems.as_text(value, "description"))
        .map(str::to_owned);
    let main = present(object, "main")
        .and_then(|value| problems.as_text(value, "main"))
        .and_then(|text| problems.keep("main", text.parse::<InnerPath>()))
        .map(Main::from);
    let contributes =
        present(object, "contributes").map(|value| contributions(value, problems)).unwrap_or_default();
    let permissions =
        present(object, "permissions").map(|value| Permissions::parse(value, problems)).unwrap_or_default();
    if main.is_none() && permissions.tools_provide.is_some() && present(object, "main").is_none() {
        problems.add("main", "is missing: a plugin that provides tools names what runs, such as main.js");
    }
    Some(Manifest { name: name?, version: version?, description, main, contributes, permissions })
}

/// A field that is there and not null.
fn present<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    object.get(key).filter(|value| !value.is_null())
}

fn contributions(value: &Value, problems: &mut Problems) -> Contributions {
    let Some(object) = problems.as_object(value, "contributes") else { return Contributions::default() };
    let rules = present(object, "rules").map(|value| problems.as_texts(value, "contributes.rules"));
    let rules = rules.unwrap_or_default().into_iter().map(|(_, text)| text.to_owned()).collect();
    Contributions { rules }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::permission::Reason;

    #[track_caller]
    fn check_refused(manifest: Value, expected: &[&str]) {
        let error = Manifest::from_json(&manifest).unwrap_err();
        assert_eq!(error.to_string().lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_whole_manifest() {
        let manifest = Manifest::from_json(&json!({
            "name": "weather", "version": "0.1.0", "main": "main.js", "icon": "sun.png",
            "contributes": {"rules": ["rules.md", "more.md"], "themes": []},
            "permissions": {
                "tools.provide": {"reason": "Give agents the weather tool"},
                "net": {"hosts": ["wttr.in", "*.Example.com"], "reason": "Ask for the weather"},
                "ui.panel": {"reason": "Show a map"},
            },
        }))
        .unwrap();
        assert_eq!(manifest.main, Some(Main::Script("main.js".parse().unwrap())));
        assert_eq!(manifest.contributes.rules, ["rules.md", "more.md"]);
        let shown: Vec<String> = manifest
            .permissions
            .iter()
            .map(|asked| {
                let reason = asked.reason.map_or("", Reason::as_str);
                format!("{} [{}] {reason} {}", asked.name, asked.scope, asked.known)
            })
            .collect();
        assert_eq!(
            shown,
            [
                "tools.provide [] Give agents the weather tool true",
                "net [wttr.in, *.example.com] Ask for the weather true",
                "ui.panel [] Show a map false",
            ]
        );
        assert_eq!(manifest.permissions.grants(), ["net:*.example.com", "net:wttr.in", "tools.provide"]);
    }

    #[test]
    fn rules_need_no_code_and_no_permission() {
        let text =
            b"\xef\xbb\xbf{\"name\":\"a\",\"version\":\"1.0.0\",\"contributes\":{\"rules\":[\"rules.md\"]}}";
        let manifest = Manifest::parse(text).unwrap();
        assert_eq!(manifest.main, None);
        assert_eq!(manifest.permissions, Permissions::default());
    }

    #[test]
    fn what_is_no_script_is_a_program() {
        let manifest = json!({"name": "a", "version": "1.0.0", "main": "bin/serve"});
        let manifest = Manifest::from_json(&manifest).unwrap();
        assert_eq!(manifest.main, Some(Main::Program("bin/serve".parse().unwrap())));
    }

    #[test]
    fn every_wrong_field_is_in_one_error() {
        check_refused(
            json!({
                "name": "a b", "main": "../main.js", "description": 3,
                "contributes": {"rules": ["a.md", 7, ""]},
                "permissions": {
                    "tools.provide": {},
                    "net": {"hosts": ["https://wttr.in/", "*"]},
                    "commands.run": true,
                    "network": {"reason": "x"},
                },
            }),
            &[
                "name: wanted 1 to 64 letters, digits, _ or -",
                "version: is missing: wanted a text",
                "description: wanted a text, got a number",
                "main: `../main.js` leads out of its folder with ..: wanted a path inside the plugin's folder",
                "contributes.rules[1]: wanted a text, got a number",
                "contributes.rules[2]: is empty: wanted a text",
                "permissions.commands.run: wanted an object, got true or false",
                "permissions.net.reason: is missing: wanted a text",
                "permissions.net.hosts[0]: wanted a host alone, such as wttr.in or *.example.com, without scheme and path",
                "permissions.net.hosts[1]: wanted a host alone, such as wttr.in or *.example.com, without scheme and path",
                "permissions.network: is no permission; did you mean net?",
                "permissions.tools.provide.reason: is missing: wanted a text",
            ],
        );
        check_refused(json!([]), &["wanted an object, got a list"]);
        check_refused(
            json!({"name": "a", "version": "x", "permissions": {"net": {"hosts": [], "reason": "y"}}}),
            &[
                "version: wanted a version such as 0.1.0: unexpected character 'x' while parsing major version number",
                "permissions.net.hosts: is empty: wanted a list of hosts, such as [\"wttr.in\"]",
            ],
        );
        check_refused(
            json!({"name": "a", "version": "1.0.0", "permissions": {"tools.provide": {"reason": "y"}}}),
            &["main: is missing: a plugin that provides tools names what runs, such as main.js"],
        );
    }

    #[test]
    fn what_is_no_json_is_said() {
        let error = Manifest::parse(b"{").unwrap_err().to_string();
        assert!(error.starts_with("not JSON: EOF"), "{error}");
    }
}
