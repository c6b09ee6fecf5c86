//! What a plugin asks to be allowed, and why.

use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value};

use crate::problem::Problems;

/// Why a plugin asks for a permission, in its author's words; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason(String);

impl Reason {
    /// The words.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A host that a plugin wants to reach: a name such as `wttr.in` or `*.example.com`, or an address; perhaps with a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostName(String);

/// Why a text is no host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("wanted a host alone, such as wttr.in or *.example.com, without scheme and path")]
pub struct HostNameError;

impl HostName {
    /// The host, in lower case.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for HostName {
    type Err = HostNameError;

    fn from_str(text: &str) -> Result<Self, HostNameError> {
        let host = text.strip_prefix("*.").unwrap_or(text);
        let fits = |letter: char| letter.is_alphanumeric() || "-._:[]".contains(letter);
        // `*` alone would be every host, and nobody can give a reason for that.
        let good = !host.is_empty() && host.chars().all(fits) && !host.starts_with(['.', ':']);
        good.then(|| Self(text.to_lowercase())).ok_or(HostNameError)
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Reaching hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetPermission {
    /// The hosts, at least one.
    pub hosts: Vec<HostName>,
    /// What for.
    pub reason: Reason,
}

/// Everything a plugin asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// `tools.provide`: giving agents tools.
    pub tools_provide: Option<Reason>,
    /// `net`: reaching hosts.
    pub net: Option<NetPermission>,
    /// `commands.run`: running the host's commands.
    pub commands_run: Option<Reason>,
    /// What it asks for that is not known here, by name. It is never granted.
    pub unknown: Vec<(String, Option<Reason>)>,
}

/// One permission, as it is shown to whoever decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permission<'a> {
    /// Its name, for example `net`.
    pub name: &'a str,
    /// What it is about, for example the hosts; empty where the name says it all.
    pub scope: String,
    /// Why the plugin asks for it; `None` for an unknown one without.
    pub reason: Option<&'a Reason>,
    /// Whether it can be granted here at all.
    pub known: bool,
}

const TOOLS_PROVIDE: &str = "tools.provide";
const NET: &str = "net";
const COMMANDS_RUN: &str = "commands.run";
/// Spellings that can only be meant as one of these.
const MISSPELT: [(&str, &str); 8] = [
    ("tools", TOOLS_PROVIDE),
    ("tool.provide", TOOLS_PROVIDE),
    ("tools.provides", TOOLS_PROVIDE),
    ("network", NET),
    ("net.fetch", NET),
    ("commands", COMMANDS_RUN),
    ("command.run", COMMANDS_RUN),
    ("commands.execute", COMMANDS_RUN),
];

impl Permissions {
    /// Every permission asked for, in a fixed order.
    pub fn iter(&self) -> impl Iterator<Item = Permission<'_>> {
        let net = self.net.as_ref().map(|net| Permission {
            name: NET,
            scope: net.hosts.iter().map(HostName::as_str).collect::<Vec<_>>().join(", "),
            reason: Some(&net.reason),
            known: true,
        });
        let unknown = self.unknown.iter().map(|(name, reason)| Permission {
            name,
            scope: String::new(),
            reason: reason.as_ref(),
            known: false,
        });
        let known = [plain(TOOLS_PROVIDE, &self.tools_provide), net, plain(COMMANDS_RUN, &self.commands_run)];
        known.into_iter().flatten().chain(unknown)
    }

    /// What is granted when everything known that is asked for is: names, for `net` one `net:HOST` each, sorted. What a
    /// later version of the plugin asks for beyond it has not been granted.
    pub fn grants(&self) -> Vec<String> {
        let net = self.net.iter().flat_map(|net| &net.hosts).map(|host| format!("{NET}:{host}"));
        let tools = self.tools_provide.iter().map(|_| TOOLS_PROVIDE.to_owned());
        let commands = self.commands_run.iter().map(|_| COMMANDS_RUN.to_owned());
        let mut grants: Vec<String> = net.chain(tools).chain(commands).collect();
        grants.sort();
        grants.dedup();
        grants
    }

    pub(crate) fn parse(value: &Value, problems: &mut Problems) -> Self {
        let mut permissions = Self::default();
        let Some(object) = problems.as_object(value, "permissions") else { return permissions };
        for (name, value) in object {
            let at = format!("permissions.{name}");
            match name.as_str() {
                TOOLS_PROVIDE => permissions.tools_provide = reason(value, &at, problems),
                COMMANDS_RUN => permissions.commands_run = reason(value, &at, problems),
                NET => permissions.net = net(value, &at, problems),
                _ => match MISSPELT.iter().find(|(wrong, _)| wrong == name) {
                    Some((_, right)) => problems.add(at, format!("is no permission; did you mean {right}?")),
                    None => {
                        let told = value.get("reason").and_then(Value::as_str).map(str::trim);
                        let told = told.filter(|text| !text.is_empty()).map(|text| Reason(text.to_owned()));
                        permissions.unknown.push((name.clone(), told));
                    }
                },
            }
        }
        permissions
    }
}

fn plain<'a>(name: &'a str, reason: &'a Option<Reason>) -> Option<Permission<'a>> {
    let reason = reason.as_ref()?;
    Some(Permission { name, scope: String::new(), reason: Some(reason), known: true })
}

fn net(value: &Value, at: &str, problems: &mut Problems) -> Option<NetPermission> {
    let object = problems.as_object(value, at)?;
    let reason = own_reason(object, at, problems);
    let place = format!("{at}.hosts");
    let Some(hosts) = object.get("hosts") else {
        problems.add(place, "is missing: wanted a list of hosts, such as [\"wttr.in\"]");
        return None;
    };
    let texts = problems.as_texts(hosts, &place);
    if hosts.as_array().is_some_and(Vec::is_empty) {
        problems.add(place, "is empty: wanted a list of hosts, such as [\"wttr.in\"]");
    }
    let mut hosts = Vec::with_capacity(texts.len());
    for (place, text) in texts {
        hosts.extend(problems.keep(&place, text.parse::<HostName>()));
    }
    Some(NetPermission { hosts, reason: reason? })
}

fn reason(value: &Value, at: &str, problems: &mut Problems) -> Option<Reason> {
    let object = problems.as_object(value, at)?;
    own_reason(object, at, problems)
}

fn own_reason(object: &Map<String, Value>, at: &str, problems: &mut Problems) -> Option<Reason> {
    let text = problems.text(object, "reason", &format!("{at}.reason"))?;
    Some(Reason(text.trim().to_owned()))
}
