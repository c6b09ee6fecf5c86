//! A plugin's folder that serves this program's tools.

use std::fs;
use std::path::{Path, PathBuf};

use plugins::{FileChange, WriteError, change_file};
use serde_json::json;
use tool_host::catalogue::FORMAT_VERSION;

use super::agents::quoted;
use crate::commands::rules::WriteFailure;
use crate::exit::{Exit, Failure};
use crate::reach::is_code;
use crate::registry::Registry;
use crate::shell::Shell;

/// The plugin's name.
const NAME: &str = "toolctl";

/// What is in the folder.
struct Content {
    name: &'static str,
    bytes: String,
    runs: bool,
}

pub(super) fn run(folder: &Path, how: &How, shell: &Shell) -> Result<Exit, Failure> {
    let contents = contents(how)?;
    if how.remove {
        return remove(folder, &contents, how, shell);
    }
    refuse_foreign(folder, &contents, how)?;
    let mut changes = Vec::new();
    for content in &contents {
        let path = folder.join(content.name);
        let changed = fs::read_to_string(&path).ok().as_deref() != Some(content.bytes.as_str());
        if !how.dry_run {
            write(&path, content)?;
        }
        changes.push((if changed { "write" } else { "keep" }, path));
    }
    tell(&changes, how, shell);
    Ok(Exit::Done)
}

/// How the folder is made.
pub(super) struct How {
    pub(super) program: String,
    pub(super) arguments: Vec<String>,
    pub(super) remove: bool,
    pub(super) replace: bool,
    pub(super) dry_run: bool,
}

fn contents(how: &How) -> Result<Vec<Content>, Failure> {
    let manifest = json!({
        "name": NAME,
        "version": env!("CARGO_PKG_VERSION"),
        "description": "Tools for files, search, commands, the web, tasks and subagents",
        "main": "main",
        "contributes": {"rules": ["rules.md"]},
        "permissions": {
            "tools.provide": {
                "reason": "Give agents tools for files, search, commands, the web, tasks and subagents, in the folder that they work in",
            },
        },
    });
    let arguments: String = how.arguments.iter().map(|argument| format!(" {}", quoted(argument))).collect();
    let program = quoted(&how.program);
    let main = format!(
        "#!/bin/sh\n# Serves the tools on the plugin wire.\nif [ -x {program} ]; then\n  exec {program} plugin \
         --require-workspace{arguments} \"$@\"\nfi\nexec toolctl plugin --require-workspace{arguments} \"$@\"\n"
    );
    Ok(vec![
        Content { name: "plugin.json", bytes: format!("{manifest:#}\n"), runs: false },
        Content { name: "rules.md", bytes: rules()?, runs: false },
        Content { name: "main", bytes: main, runs: true },
    ])
}

/// The rules of the catalog as one file; its headings stand below the one that the host gives the plugin.
fn rules() -> Result<String, Failure> {
    let registry = Registry::load()?;
    let served = registry.plugins.iter().filter(|known| {
        matches!(known.origin, crate::registry::Origin::Catalog)
            && !is_code(&known.name)
            && known.name != "user"
    });
    let text = plugins::rules::compose(served.map(|known| (known.name.as_str(), known.texts())));
    Ok(text
        .lines()
        .map(|line| if line.starts_with("## ") { format!("#{line}\n") } else { format!("{line}\n") })
        .collect())
}

/// A folder of somebody else's plugin is not written into.
fn refuse_foreign(folder: &Path, contents: &[Content], how: &How) -> Result<(), Failure> {
    let is_ours = plugins::Plugin::open(folder).is_ok_and(|plugin| plugin.manifest.name.as_str() == NAME);
    if is_ours || how.replace {
        return Ok(());
    }
    match contents
        .iter()
        .map(|content| folder.join(content.name))
        .find(|path| path.symlink_metadata().is_ok())
    {
        None => Ok(()),
        Some(path) => Err(Failure::wrong_usage(format!("{} is there already", path.display()))
            .hint("name a new folder, or pass --replace to write over it")),
    }
}

fn write(path: &Path, content: &Content) -> Result<(), Failure> {
    use std::os::unix::fs::PermissionsExt as _;
    let written =
        change_file::<WriteFailure>(path, |_| Ok(FileChange::Write(content.bytes.clone().into_bytes())));
    written.map_err(failed)?;
    let mode = if content.runs { 0o755 } else { 0o644 };
    let permissions = fs::Permissions::from_mode(mode);
    fs::set_permissions(path, permissions)
        .map_err(|error| failed(WriteError { file: path.to_owned(), reason: error.to_string() }.into()))
}

fn remove(folder: &Path, contents: &[Content], how: &How, shell: &Shell) -> Result<Exit, Failure> {
    let plugin = plugins::Plugin::open(folder).map_err(|error| Failure::wrong_usage(error.to_string()))?;
    if plugin.manifest.name.as_str() != NAME {
        let name = &plugin.manifest.name;
        return Err(Failure::wrong_usage(format!("{} is the plugin {name}, not {NAME}", folder.display())));
    }
    let mut changes = Vec::new();
    for path in contents.iter().map(|content| folder.join(content.name)).filter(|path| path.exists()) {
        if !how.dry_run {
            change_file::<WriteFailure>(&path, |_| Ok(FileChange::Remove)).map_err(failed)?;
        }
        changes.push(("remove", path));
    }
    if !how.dry_run {
        // What somebody else has put there stays.
        let _ = fs::remove_dir(folder);
    }
    tell(&changes, how, shell);
    Ok(Exit::Done)
}

fn tell(changes: &[(&str, PathBuf)], how: &How, shell: &Shell) {
    if shell.json() {
        let changes: Vec<_> =
            changes.iter().map(|(action, path)| json!({"action": action, "path": path})).collect();
        shell.json_document(
            &json!({"format_version": FORMAT_VERSION, "applied": !how.dry_run, "changes": changes}),
        );
        return;
    }
    let would = if how.dry_run { "would " } else { "" };
    for (action, path) in changes {
        shell.data(&format!("{would}{action} {}\n", path.display()));
    }
}

fn failed(WriteFailure(message): WriteFailure) -> Failure {
    tool_host::CallError::new(tool_host::Category::ExecutionFailed, message).into()
}
