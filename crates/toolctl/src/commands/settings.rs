//! `toolctl settings`: what the user has chosen.

use plugins::Settings;
use serde_json::{Value, json};
use tool_host::catalogue::FORMAT_VERSION;

use crate::cli::SettingsArgs;
use crate::exit::{Exit, Failure};
use crate::registry::{Registry, settings_file};
use crate::shell::Shell;

pub(super) fn run(args: &SettingsArgs, shell: &Shell) -> Result<Exit, Failure> {
    let file = settings_file()?;
    let registry = Registry::of(file.load()?);
    let changes: Vec<Change> =
        args.changes.iter().map(|given| Change::parse(given, &registry)).collect::<Result<_, _>>()?;
    let registry = match changes.is_empty() {
        true => registry,
        false => {
            Registry::of(file.update(|settings| changes.iter().for_each(|change| change.apply(settings)))?)
        }
    };
    registry.warnings().iter().for_each(|warning| shell.warning(warning));
    if shell.json() {
        let plugins: serde_json::Map<String, Value> = (registry.plugins.iter())
            .map(|known| (known.name.clone(), json!({"enabled": known.enabled, "rules": known.with_rules})))
            .collect();
        shell.json_document(&json!({
            "format_version": FORMAT_VERSION,
            "file": file.path(),
            "mode": registry.settings.mode,
            "plugins": plugins,
        }));
        return Ok(Exit::Done);
    }
    let on = |switch: bool| if switch { "on" } else { "off" };
    let mut text = format!("mode={}\n", registry.settings.mode);
    for known in &registry.plugins {
        text.push_str(&format!("plugins.{}={}\n", known.name, on(known.enabled)));
        text.push_str(&format!("rules.{}={}\n", known.name, on(known.with_rules)));
    }
    shell.data(&text);
    shell.note(&format!("\nin {}\n", file.path().display()));
    Ok(Exit::Done)
}

/// One change.
enum Change {
    Mode(plugins::Mode),
    Plugin(String, bool),
    Rules(String, bool),
}

impl Change {
    fn parse(given: &str, registry: &Registry) -> Result<Self, Failure> {
        let wrong = |why: String| Failure::wrong_usage(format!("{given}: {why}"));
        let (key, value) = given.split_once('=').ok_or_else(|| wrong("wanted KEY=VALUE".to_owned()))?;
        let switch = || match value {
            "on" | "true" => Ok(true),
            "off" | "false" => Ok(false),
            _ => Err(wrong("wanted on or off".to_owned())),
        };
        let known = |name: &str| match registry.find(name) {
            Some(known) => Ok(known.name.clone()),
            None => {
                Err(wrong(format!("there is no plugin {name}; toolctl plugins list shows those there are")))
            }
        };
        match key.split_once('.') {
            None if key == "mode" => value.parse().map(Self::Mode).map_err(wrong),
            Some(("plugins", name)) => {
                let (name, on) = (known(name)?, switch()?);
                let outgrown = registry.find(&name).is_some_and(|known| !known.not_granted.is_empty());
                match on && outgrown {
                    true => Err(wrong(format!(
                        "it asks for more than it was granted: toolctl plugins enable {name}"
                    ))),
                    false => Ok(Self::Plugin(name, on)),
                }
            }
            Some(("rules", name)) => Ok(Self::Rules(known(name)?, switch()?)),
            _ => Err(wrong("there is no such setting: wanted mode, plugins.NAME or rules.NAME".to_owned())),
        }
    }

    fn apply(&self, settings: &mut Settings) {
        match self {
            Self::Mode(mode) => settings.mode = *mode,
            Self::Plugin(name, on) => settings.plugin_mut(name).enabled = *on,
            Self::Rules(name, on) => settings.plugin_mut(name).rules = *on,
        }
    }
}
