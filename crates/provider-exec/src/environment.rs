//! The environment of commands: what is passed on, what is added, and what is left out by name.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use provider_core::ToolError;
use provider_core::supervisor::is_passed_on;

/// Not worth a word when they are left out: they are this process's own affairs.
const OWN_AFFAIRS: &[&str] = &["_", "PWD", "OLDPWD", "SHLVL", "LOGNAME", "LS_COLORS"];
/// The same, by the beginning of the name: what a host tells a provider.
const OWN_AFFAIRS_PREFIXES: &[&[u8]] = &[b"PLUGIN_", b"PLUGGABLEHARNESS_"];

/// What keeps programs from asking somebody who is not there.
const UNATTENDED: &[(&str, &str)] = &[
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", "false"),
    ("GCM_INTERACTIVE", "never"),
    ("SSH_ASKPASS", "false"),
    ("SSH_ASKPASS_REQUIRE", "never"),
    ("SUDO_ASKPASS", "/bin/false"),
    ("GIT_EDITOR", "true"),
    ("GIT_SEQUENCE_EDITOR", "true"),
    ("EDITOR", "true"),
    ("VISUAL", "true"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("MANPAGER", "cat"),
    ("SYSTEMD_PAGER", "cat"),
    ("AWS_PAGER", ""),
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("PIP_NO_INPUT", "1"),
];

/// The variables that commands get, in order of their names.
pub(crate) type Variables = BTreeMap<OsString, OsString>;

/// What every command of a provider gets, and what was left out.
#[derive(Debug)]
pub(crate) struct Environment {
    base: Variables,
    configured: Variables,
    dropped: Vec<String>,
}

/// What differs from command to command.
pub(crate) struct Particulars<'a> {
    /// The PATH of the user's login shell.
    pub(crate) path: Option<&'a OsStr>,
    /// Where the command starts, by the name the caller knows.
    pub(crate) directory: &'a Path,
    /// Where temporary files go.
    pub(crate) temporary: Option<&'a Path>,
    /// Whether the command has a terminal.
    pub(crate) terminal: bool,
    /// What the call asks for.
    pub(crate) asked: &'a BTreeMap<String, String>,
}

impl Environment {
    /// Chooses from `all`, the provider's own environment.
    ///
    /// # Errors
    /// A configured name or value cannot be one.
    pub(crate) fn new(
        all: impl Iterator<Item = (OsString, OsString)>,
        pass: &[String],
        configured: &BTreeMap<String, String>,
    ) -> Result<Self, ToolError> {
        check("env", configured)?;
        let is_passed =
            |name: &OsStr| is_passed_on(name) || pass.iter().any(|passed| name == passed.as_str());
        let (base, rest): (Variables, Variables) = all.partition(|(name, _)| is_passed(name));
        let is_ours = |name: &&OsString| {
            OWN_AFFAIRS.iter().any(|own| name.as_os_str() == *own)
                || OWN_AFFAIRS_PREFIXES.iter().any(|prefix| name.as_bytes().starts_with(prefix))
        };
        let dropped =
            rest.keys().filter(|name| !is_ours(name) && !configured.contains_key(&*name.to_string_lossy()));
        let dropped = dropped.map(|name| name.to_string_lossy().into_owned()).collect();
        let configured = configured.iter().map(|(name, value)| (name.into(), value.into())).collect();
        Ok(Self { base, configured, dropped })
    }

    /// The names of the variables that commands do not get.
    pub(crate) fn dropped(&self) -> &[String] {
        &self.dropped
    }

    /// A variable that every command gets.
    pub(crate) fn get(&self, name: &str) -> Option<&OsStr> {
        let name = OsStr::new(name);
        self.configured.get(name).or_else(|| self.base.get(name)).map(OsString::as_os_str)
    }

    /// The variables that say how text is written.
    pub(crate) fn locale(&self) -> impl Iterator<Item = (OsString, OsString)> {
        let is_locale = |(name, _): &(&OsString, &OsString)| name.as_bytes().starts_with(b"LC_");
        self.base.iter().filter(is_locale).map(|(name, value)| (name.clone(), value.clone()))
    }

    /// The whole environment of one command. What the call asks for wins, then what is configured.
    pub(crate) fn of(&self, particulars: &Particulars<'_>) -> Variables {
        let mut all = self.base.clone();
        let mut set = |name: &str, value: &OsStr| drop(all.insert(name.into(), value.into()));
        if let Some(path) = particulars.path {
            set("PATH", path);
        }
        UNATTENDED.iter().for_each(|(name, value)| set(name, OsStr::new(value)));
        set("TERM", OsStr::new(if particulars.terminal { "xterm-256color" } else { "dumb" }));
        set("PWD", particulars.directory.as_os_str());
        if let Some(temporary) = particulars.temporary {
            set("TMPDIR", temporary.as_os_str());
        }
        all.extend(self.configured.clone());
        all.extend(particulars.asked.iter().map(|(name, value)| (name.into(), value.into())));
        all
    }
}

/// Refuses what cannot stand in an environment.
///
/// # Errors
/// `invalid_arguments` naming the variable.
pub(crate) fn check(field: &str, variables: &BTreeMap<String, String>) -> Result<(), ToolError> {
    for (name, value) in variables {
        if name.is_empty() || name.contains(['=', '\0']) {
            let message = format!("{field}: {name:?} cannot be the name of an environment variable");
            return Err(ToolError::invalid_arguments(message));
        }
        if value.contains('\0') {
            let message = format!("{field}.{name}: an environment variable cannot hold a NUL character");
            return Err(ToolError::invalid_arguments(message));
        }
        if name.len() + value.len() > crate::launch::LONGEST_ARGUMENT {
            let message = format!(
                "{field}.{name}: {} bytes are more than an environment variable can hold; write them to a file",
                value.len()
            );
            return Err(ToolError::invalid_arguments(message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(all: &[(&str, &str)], pass: &[&str]) -> Environment {
        let all = all.iter().map(|(name, value)| (name.into(), value.into()));
        let pass: Vec<String> = pass.iter().map(|name| (*name).to_owned()).collect();
        Environment::new(all, &pass, &BTreeMap::from([("FIXED".to_owned(), "1".to_owned())])).unwrap()
    }

    fn of(environment: &Environment, asked: &[(&str, &str)]) -> Variables {
        let asked = asked.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        environment.of(&Particulars {
            path: Some(OsStr::new("/login/bin")),
            directory: Path::new("/w"),
            temporary: None,
            terminal: false,
            asked: &asked,
        })
    }

    #[test]
    fn only_known_and_named_variables_pass() {
        let environment = environment(
            &[
                ("HOME", "/h"),
                ("LC_ALL", "C"),
                ("X_API_KEY", "s"),
                ("WANTED", "w"),
                ("PLUGIN_MIN_PORT", "1"),
                ("_", "x"),
            ],
            &["WANTED"],
        );
        assert_eq!(environment.dropped(), ["X_API_KEY"]);
        let all = of(&environment, &[]);
        let get = |name: &str| all.get(OsStr::new(name)).and_then(|value| value.to_str());
        assert_eq!(
            (get("HOME"), get("LC_ALL"), get("WANTED"), get("X_API_KEY")),
            (Some("/h"), Some("C"), Some("w"), None)
        );
        assert_eq!((get("PATH"), get("PWD"), get("FIXED")), (Some("/login/bin"), Some("/w"), Some("1")));
        assert_eq!((get("TERM"), get("GIT_TERMINAL_PROMPT")), (Some("dumb"), Some("0")));
    }

    #[test]
    fn a_call_wins_over_everything() {
        let environment = environment(&[("HOME", "/h")], &[]);
        let all = of(&environment, &[("FIXED", "2"), ("PATH", "/p"), ("GIT_EDITOR", "vi")]);
        for (name, value) in [("FIXED", "2"), ("PATH", "/p"), ("GIT_EDITOR", "vi")] {
            assert_eq!(all.get(OsStr::new(name)).unwrap(), value);
        }
    }

    #[test]
    fn impossible_variables_are_refused_by_name() {
        let check =
            |name: &str, value: &str| check("env", &BTreeMap::from([(name.to_owned(), value.to_owned())]));
        assert!(check("A", "b=c\n").is_ok());
        for (name, value) in [("", "x"), ("A=B", "x"), ("A", "x\0y")] {
            assert!(check(name, value).unwrap_err().message().starts_with("env"), "{name:?} {value:?}");
        }
        assert!(check("A", &"x".repeat(200_000)).unwrap_err().message().contains("write them to a file"));
    }
}
