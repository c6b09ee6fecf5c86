//! `toolctl plugins`: which plugins agents get.

use std::path::Path;

use plugins::{Main, Permission, Plugin};
use serde_json::{Value, json};
use tool_host::catalogue::FORMAT_VERSION;

use crate::cli::{PluginsArgs, PluginsCommand};
use crate::embedded;
use crate::exit::{Exit, Failure};
use crate::paint::{Ink, Table, cell, safe};
use crate::registry::{Known, Origin, Registry, settings_file};
use crate::shell::Shell;

use super::rules::no_plugin;

pub(super) async fn run(args: PluginsArgs, shell: &Shell) -> Result<Exit, Failure> {
    match args.command {
        PluginsCommand::List { .. } => list(shell),
        PluginsCommand::Enable { plugin, yes, dry_run } => enable(&plugin, yes, dry_run, shell).await,
        PluginsCommand::Disable { plugin, forget } => disable(&plugin, forget, shell),
    }
}

fn list(shell: &Shell) -> Result<Exit, Failure> {
    let registry = Registry::load()?;
    registry.warnings().iter().for_each(|warning| shell.warning(warning));
    if shell.json() {
        let plugins: Vec<Value> = registry.plugins.iter().map(to_json).collect();
        shell.json_document(&json!({"format_version": FORMAT_VERSION, "plugins": plugins}));
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&["plugin", "version", "state", "rules", "from"]);
    for known in &registry.plugins {
        let from = match &known.origin {
            Origin::Catalog => "catalog".to_owned(),
            Origin::Folder(plugin) => plugin.folder().display().to_string(),
            Origin::Broken { folder, .. } => folder.display().to_string(),
        };
        table.row(&[known.name.as_str(), &known.version, state(known), rules(known), &from]);
    }
    let lines: String = table.lines(shell.out()).into_iter().map(|line| line + "\n").collect();
    shell.data(&lines);
    Ok(Exit::Done)
}

fn state(known: &Known) -> &'static str {
    match (&known.origin, known.enabled) {
        (_, false) => "disabled",
        (Origin::Broken { .. }, true) => "broken",
        _ if !known.not_granted.is_empty() => "asks for more",
        _ => "enabled",
    }
}

fn rules(known: &Known) -> &'static str {
    match (known.rules.files.is_empty(), known.with_rules) {
        (true, _) => "none",
        (false, true) => "on",
        (false, false) => "off",
    }
}

fn to_json(known: &Known) -> Value {
    let mut value = json!({
        "name": known.name, "version": known.version, "state": state(known).replace(' ', "_"), "rules": rules(known),
    });
    match &known.origin {
        Origin::Catalog => value["origin"] = "catalog".into(),
        Origin::Folder(plugin) => {
            value["origin"] = json!(plugin.folder());
            let asked = plugin.manifest.permissions.iter().map(|asked| {
                json!({
                    "name": asked.name, "scope": asked.scope, "known": asked.known,
                    "reason": asked.reason.map(plugins::Reason::as_str),
                })
            });
            value["permissions"] = asked.collect();
            value["not_granted"] = json!(known.not_granted);
        }
        Origin::Broken { folder, reason } => {
            value["origin"] = json!(folder);
            value["reason"] = json!(reason);
        }
    }
    value
}

async fn enable(given: &str, yes: bool, dry_run: bool, shell: &Shell) -> Result<Exit, Failure> {
    let file = settings_file()?;
    let registry = Registry::of(file.load()?);
    let plugin = match registry.find(given).map(|known| &known.origin) {
        Some(Origin::Catalog) => {
            if !dry_run {
                file.update(|settings| settings.plugin_mut(given).enabled = true)?;
            }
            shell.data(&format!("{} {given}, of the catalog\n", done(dry_run)));
            return Ok(Exit::Done);
        }
        Some(Origin::Folder(plugin)) => (**plugin).clone(),
        Some(Origin::Broken { folder, .. }) => open(folder)?,
        None if Path::new(given).exists() => open(Path::new(given))?,
        None => return Err(no_plugin(given)),
    };
    let name = plugin.manifest.name.as_str();
    if embedded::names().any(|known| known == name) {
        return Err(Failure::wrong_usage(format!("{name} is the name of a provider of the catalog"))
            .hint("give the plugin another name in its manifest"));
    }
    if let Some(other) = registry.settings.plugin(name).folder.filter(|folder| folder != plugin.folder()) {
        shell.warning(&format!("this takes the place of the plugin {name} in {}", other.display()));
    }
    let known = Known::of_plugin(plugin.clone());
    shell.data(&card(&plugin, &known, shell));
    known.rules.warnings.iter().for_each(|warning| shell.warning(warning));
    if dry_run {
        return Ok(Exit::Done);
    }
    if shell.can_ask() && !yes && !crate::prompt::confirm(shell, "Enable it? [y/N] ").await {
        shell.note("not enabled\n");
        return Ok(Exit::Denied);
    }
    file.update(|settings| {
        let about = settings.plugin_mut(name);
        about.folder = Some(plugin.folder().to_owned());
        about.enabled = true;
        about.granted = plugin.manifest.permissions.grants();
    })?;
    shell.data(&format!("enabled {name}\n"));
    Ok(Exit::Done)
}

fn done(dry_run: bool) -> &'static str {
    if dry_run { "would enable" } else { "enabled" }
}

fn open(folder: &Path) -> Result<Plugin, Failure> {
    Plugin::open(folder).map_err(|error| Failure::wrong_usage(error.to_string()))
}

/// What somebody should know who enables a plugin: what it asks for and why, what runs, and the rules it brings.
fn card(plugin: &Plugin, known: &Known, shell: &Shell) -> String {
    let look = shell.out();
    let manifest = &plugin.manifest;
    let mut text = look.ink(Ink::Bold, &format!("{} {}", known.name, known.version));
    text.push_str(&format!("\n{}\n", safe(&plugin.folder().display().to_string())));
    if let Some(description) = &manifest.description {
        text.push_str(&format!("{}\n", cell(description)));
    }
    match &manifest.main {
        None => text.push_str("\nNothing of it runs.\n"),
        Some(Main::Script(path)) => {
            text.push_str(&format!(
                "\n{} runs in a runtime that holds it to its permissions.\n",
                cell(path.as_str())
            ));
        }
        Some(Main::Program(path)) => text.push_str(&format!(
            "\n{} is a program: it runs with your rights, whatever it asks for here.\n",
            cell(path.as_str())
        )),
    }
    let asked: Vec<String> = manifest.permissions.iter().map(|asked| line(&asked)).collect();
    text.push_str(&match asked.is_empty() {
        true => "\nIt asks for no permission.\n".to_owned(),
        false => format!("\nIt asks for:\n{}", asked.concat()),
    });
    for file in &known.rules.files {
        text.push_str(&format!("\nRules that agents are given, from {}:\n", cell(&file.path)));
        for line in file.text.lines() {
            text.push_str(&format!("  | {}\n", safe(line)));
        }
    }
    text.push('\n');
    text
}

fn line(asked: &Permission<'_>) -> String {
    let scope = if asked.scope.is_empty() { String::new() } else { format!(" ({})", cell(&asked.scope)) };
    let reason = asked.reason.map_or("no reason given", plugins::Reason::as_str);
    let unknown = if asked.known { "" } else { " [not known here, and never granted]" };
    format!("  {}{scope}: {}{unknown}\n", cell(asked.name), cell(reason))
}

fn disable(given: &str, forget: bool, shell: &Shell) -> Result<Exit, Failure> {
    let file = settings_file()?;
    let registry = Registry::of(file.load()?);
    let known = registry.find(given).ok_or_else(|| no_plugin(given))?;
    let forget = forget && !matches!(known.origin, Origin::Catalog);
    file.update(|settings| {
        if forget {
            settings.plugins.remove(given);
        } else {
            settings.plugin_mut(given).enabled = false;
        }
    })?;
    shell.data(&format!("{} {given}\n", if forget { "disabled and forgot" } else { "disabled" }));
    Ok(Exit::Done)
}
