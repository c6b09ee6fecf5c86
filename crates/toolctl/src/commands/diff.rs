//! `toolctl diff`: what changed between two declarations of a provider.

use std::io::Read as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use schema_diff::{Change, Declaration, Effect, compare};
use serde_json::{Value, json};
use tool_host::catalogue::{FORMAT_VERSION, Identity};
use tool_host::{LaunchOptions, Provider, ProviderSource};

use crate::cli::Diff;
use crate::embedded;
use crate::exit::{Exit, Failure};
use crate::paint::{Ink, Look, safe};
use crate::shell::Shell;

pub(super) async fn run(args: Diff, shell: &Shell) -> Result<Exit, Failure> {
    let old = declaration(&args.old, shell).await?;
    let new = declaration(&args.new, shell).await?;
    let mut changes = compare(&old, &new);
    if args.breaking {
        changes.retain(|change| change.rule.effect() == Effect::Breaking);
    }
    if shell.json() {
        shell.json_document(&to_json(&old.identity, &new.identity, &changes));
    } else {
        shell.data(&to_text(&old.identity, &new.identity, &changes, args.breaking, shell.out()));
    }
    let (breaking, _) = count(&changes);
    let fails = if args.exact { !changes.is_empty() } else { breaking > 0 };
    Ok(if fails { Exit::ToolFailed } else { Exit::Done })
}

/// A declaration from what `toolctl schema` printed, or from a provider that is asked for it.
async fn declaration(given: &str, shell: &Shell) -> Result<Declaration, Failure> {
    if let Some(text) = document(given).await? {
        let refuse = |error| Failure::wrong_usage(format!("{given}: {error}"));
        return Declaration::from_json(&text).map_err(refuse);
    }
    declared(&embedded::source(given)?, shell).await
}

/// What a provider declares, which is started for it.
pub(super) async fn declared(source: &ProviderSource, shell: &Shell) -> Result<Declaration, Failure> {
    let options = LaunchOptions { notices: shell.notices(), ..LaunchOptions::default() };
    let provider = Provider::launch(source, options).await?;
    let declaration =
        Declaration { identity: provider.identity().clone(), catalogue: provider.catalogue().clone() };
    provider.stop().await;
    Ok(declaration)
}

/// The text of what is a document and not a program: a file that is named like JSON or begins like it, a pipe, or
/// stdin as `-`.
async fn document(given: &str) -> Result<Option<String>, Failure> {
    let path = PathBuf::from(given);
    if given != "-" && path.extension().is_none_or(|end| end != "json") && !is_document(&path) {
        return Ok(None);
    }
    // A pipe may take its time; an interrupt must not wait for it.
    let read = tokio::task::spawn_blocking(move || match path.to_str() {
        Some("-") => std::io::read_to_string(std::io::stdin()),
        _ => std::fs::read_to_string(&path),
    });
    let text = read.await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
    text.map(Some).map_err(|error| Failure::wrong_usage(format!("{given} cannot be read: {error}")))
}

fn is_document(path: &Path) -> bool {
    let Ok(metadata) = path.metadata() else { return false };
    if !metadata.is_file() {
        return metadata.file_type().is_fifo();
    }
    let mut start = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(64).read_to_end(&mut start));
    read.is_ok() && start.trim_ascii_start().starts_with(b"{")
}

fn to_json(old: &Identity, new: &Identity, changes: &[Change]) -> Value {
    let (breaking, compatible) = count(changes);
    let listed: Vec<Value> = (changes.iter())
        .map(|change| {
            json!({
                "effect": change.rule.effect(), "rule": change.rule, "subject": change.subject,
                "place": change.place, "message": change.message,
            })
        })
        .collect();
    json!({
        "format_version": FORMAT_VERSION, "old": old, "new": new,
        "breaking": breaking, "compatible": compatible, "changes": listed,
    })
}

fn to_text(old: &Identity, new: &Identity, changes: &[Change], breaking_only: bool, look: Look) -> String {
    let name = |identity: &Identity| safe(&format!("{} {}", identity.name, identity.version)).into_owned();
    let mut text = format!("{}\n", look.ink(Ink::Bold, &format!("{} → {}", name(old), name(new))));
    changes.iter().for_each(|change| text.push_str(&line(change, look)));
    let summary = match (changes, breaking_only) {
        ([], true) => "no changes that break".to_owned(),
        _ => summary(changes),
    };
    text.push_str(&summary);
    text + "\n"
}

/// A change as a line, with its rule behind it.
pub(super) fn line(change: &Change, look: Look) -> String {
    let effect = change.rule.effect();
    let ink = if effect == Effect::Breaking { Ink::Red } else { Ink::Green };
    let effect = look.ink(ink, &format!("{effect:<10}"));
    let rule = look.ink(Ink::Dim, &format!("({})", change.rule.as_str()));
    format!("{effect}  {}  {rule}\n", safe(&change.to_string()))
}

pub(super) fn summary(changes: &[Change]) -> String {
    match count(changes) {
        (0, 0) => "no changes".to_owned(),
        (breaking, compatible) => format!("{breaking} breaking, {compatible} compatible"),
    }
}

fn count(changes: &[Change]) -> (usize, usize) {
    let breaking = changes.iter().filter(|change| change.rule.effect() == Effect::Breaking).count();
    (breaking, changes.len() - breaking)
}
