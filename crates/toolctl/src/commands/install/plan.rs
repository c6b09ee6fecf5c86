//! A change of somebody's files: shown first, made when it is agreed to, and only if the files are still as shown.

use std::path::{Path, PathBuf};

use plugins::{FileChange, change_file};
use serde_json::{Value, json};
use similar::TextDiff;
use tool_host::catalogue::FORMAT_VERSION;
use tool_host::{CallError, Category};

use super::agents::Edit;
use crate::commands::rules::WriteFailure;
use crate::exit::{Exit, Failure};
use crate::paint::{Ink, safe};
use crate::prompt::confirm;
use crate::shell::Shell;

/// Files as they are and as they are to be.
pub(super) struct Plan(Vec<Step>);

struct Step {
    path: PathBuf,
    before: Option<String>,
    after: Option<String>,
}

impl Plan {
    /// What these edits do.
    ///
    /// # Errors
    /// A file cannot be read, or is not what it should be.
    pub(super) fn of(edits: &[Edit], remove: bool) -> Result<Self, Failure> {
        let step = |edit: &Edit| {
            let before = read(&edit.path)?;
            let after = edit.apply(before.as_deref(), remove).map_err(|why| wrong(&edit.path, &why))?;
            Ok(Step { path: edit.path.clone(), before, after })
        };
        edits.iter().map(step).collect::<Result<_, Failure>>().map(Self)
    }

    /// Shows what changes, asks whether it may, and does it.
    ///
    /// # Errors
    /// Nobody has agreed, or a file cannot be written.
    pub(super) async fn carry_out(&self, yes: bool, dry_run: bool, shell: &Shell) -> Result<Exit, Failure> {
        let changes = self.0.iter().any(|step| step.before != step.after);
        if !shell.json() {
            self.0.iter().for_each(|step| shell.data(&step.to_text(shell)));
        }
        let agreed = match (changes, dry_run) {
            (false, _) | (_, true) => false,
            _ if yes => true,
            _ if shell.can_ask() => confirm(shell, "Write this? [y/N] ").await,
            _ => {
                return Err(Failure::from(tool_host::people::no_human(
                    "nobody is here to agree to the change",
                ))
                .hint("pass --yes to agree beforehand, or --dry-run to look only"));
            }
        };
        if agreed {
            self.0.iter().try_for_each(Step::write)?;
        }
        if shell.json() {
            let steps: Vec<Value> = self.0.iter().map(Step::to_json).collect();
            shell.json_document(
                &json!({"format_version": FORMAT_VERSION, "applied": agreed, "changes": steps}),
            );
        } else if changes && !agreed && !dry_run {
            shell.note("nothing was written\n");
            return Ok(Exit::Denied);
        }
        Ok(Exit::Done)
    }
}

impl Step {
    fn action(&self) -> &'static str {
        match (&self.before, &self.after) {
            (before, after) if before == after => "keep",
            (None, _) => "create",
            (_, None) => "remove",
            _ => "change",
        }
    }

    fn diff(&self) -> String {
        let (before, after) = (self.before.as_deref().unwrap_or(""), self.after.as_deref().unwrap_or(""));
        let name = self.path.display().to_string();
        let from = if self.before.is_some() { name.as_str() } else { "/dev/null" };
        let to = if self.after.is_some() { name.as_str() } else { "/dev/null" };
        TextDiff::from_lines(before, after).unified_diff().header(from, to).to_string()
    }

    fn to_text(&self, shell: &Shell) -> String {
        if self.before == self.after {
            return format!("keep {}\n", safe(&self.path.display().to_string()));
        }
        let look = shell.out();
        let line = |line: &str| {
            let text = safe(line);
            match line.as_bytes().first() {
                Some(b'+') => look.ink(Ink::Green, &text),
                Some(b'-') => look.ink(Ink::Red, &text),
                Some(b'@') => look.ink(Ink::Cyan, &text),
                _ => text.into_owned(),
            }
        };
        self.diff().lines().map(|text| line(text) + "\n").collect()
    }

    fn to_json(&self) -> Value {
        let mut value = json!({"path": self.path, "action": self.action()});
        if self.before != self.after {
            value["diff"] = self.diff().into();
        }
        value
    }

    fn write(&self) -> Result<(), Failure> {
        if self.before == self.after {
            return Ok(());
        }
        change_file::<WriteFailure>(&self.path, |bytes| {
            if bytes != self.before.as_deref().map(str::as_bytes) {
                let message = format!("{} has changed meanwhile; look again", self.path.display());
                return Err(WriteFailure(message));
            }
            Ok(match &self.after {
                Some(text) => FileChange::Write(text.clone().into_bytes()),
                None => FileChange::Remove,
            })
        })
        .map(|_| ())
        .map_err(|WriteFailure(message)| CallError::new(Category::ExecutionFailed, message).into())
    }
}

fn read(path: &Path) -> Result<Option<String>, Failure> {
    match std::fs::read(path) {
        Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|_| wrong(path, "it is not UTF-8")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(wrong(path, &error.to_string())),
    }
}

fn wrong(path: &Path, why: &str) -> Failure {
    Failure::from(CallError::new(Category::ExecutionFailed, format!("{}: {why}", path.display())))
        .hint("nothing was written; correct the file by hand")
}
