//! A file that is written and edited, and what may be in it.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};

use super::acts::{Act, Made, name_of};
use super::crew::Crew;

/// A file that one act at a time works on.
pub(super) struct Slot {
    path: PathBuf,
    /// What may be in it: more than one thing where a call was given up.
    maybe: Vec<Option<String>>,
    /// Whether the provider may remember something else than is there.
    unsure: bool,
}

impl Slot {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, maybe: vec![None], unsure: false }
    }

    /// What is in it, which must be something that may be.
    fn found(&mut self) -> anyhow::Result<Option<String>> {
        let found = fs::read(&self.path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let shown = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        ensure!(
            self.maybe.contains(&found),
            "{} is a mixture: {} bytes where {:?} may be",
            self.path.display(),
            shown(&found),
            self.maybe.iter().map(shown).collect::<Vec<_>>()
        );
        self.maybe = vec![found.clone()];
        Ok(found)
    }

    /// Reads or changes the file in one of many ways.
    pub(super) async fn work(&mut self, act: &mut Act, crew: &Crew) -> anyhow::Result<()> {
        let name = name_of(&self.path);
        let Some(text) = self.found()? else { return self.write(act, crew).await };
        if act.random().once_in(5) {
            self.age(act)?;
        }
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let line = lines.get(act.random().below(lines.len())).cloned().unwrap_or_default();
        let other = format!("line {}", act.token());
        match act.random().below(7) {
            0 => self.write(act, crew).await,
            1 => match act.call(crew, "read_file", json!({"path": name})).await? {
                Made::Answer(answer) => {
                    ensure!(answer["content"] == text.as_str(), "read_file answers {answer:?}");
                    self.unsure = false;
                    Ok(())
                }
                Made::Failed(error) => bail!("read_file fails: {error}"),
                Made::Gone => Ok(()),
            },
            2 => {
                let arguments = json!({"path": name, "old_str": line, "new_str": other});
                self.change(act, crew, "edit_file", arguments, text.replacen(&line, &other, 1)).await
            }
            3 => {
                let (first, new) = (&lines[0], format!("{other}\nmore {other}"));
                let edits = json!([
                    {"path": name, "old_str": first, "new_str": new},
                    {"path": name, "old_str": format!("more {other}"), "new_str": format!("less {other}")},
                ]);
                let expected = text.replacen(first, &format!("{other}\nless {other}"), 1);
                self.change(act, crew, "multi_edit", json!({"edits": edits}), expected).await
            }
            4 => {
                let patch = format!(
                    "*** Begin Patch\n*** Update File: {name}\n@@\n-{line}\n+{other}\n*** End Patch\n"
                );
                self.change(
                    act,
                    crew,
                    "apply_patch",
                    json!({"patch": patch}),
                    text.replacen(&line, &other, 1),
                )
                .await
            }
            5 => self.copied(act, crew, &name, &text).await,
            _ => self.undone(act, crew, &name, &text).await,
        }
    }

    /// A file's time says nothing: staleness is by content.
    fn age(&self, act: &mut Act) -> anyhow::Result<()> {
        let years = Duration::from_secs(10 * 365 * 86_400);
        let now = SystemTime::now();
        let moment = if act.random().once_in(2) { now + years } else { now - years };
        let file = fs::File::options().append(true).open(&self.path)?;
        file.set_modified(moment).context("the time of a file cannot be set")
    }

    async fn write(&mut self, act: &mut Act, crew: &Crew) -> anyhow::Result<()> {
        let count = 1 + act.random().below(400);
        let text: String = (0..count).map(|number| format!("line {number} {}\n", act.token())).collect();
        let arguments = json!({"path": name_of(&self.path), "content": text, "force": true});
        self.change(act, crew, "write_file", arguments, text).await
    }

    /// A call that makes `new` of the file, or leaves it as it is.
    async fn change(
        &mut self,
        act: &mut Act,
        crew: &Crew,
        tool: &str,
        arguments: Value,
        new: String,
    ) -> anyhow::Result<()> {
        let old = self.maybe.clone();
        self.maybe.push(Some(new.clone()));
        match act.call(crew, tool, arguments).await? {
            Made::Answer(_) => {
                self.maybe = vec![Some(new)];
                self.unsure = false;
                self.found().map(drop)
            }
            Made::Failed(error) if self.unsure && error.code() == Some("stale") => {
                self.maybe = old;
                self.found().map(drop)
            }
            Made::Failed(error) => bail!("{tool} fails: {error}"),
            Made::Gone => {
                self.unsure = true;
                Ok(())
            }
        }
    }

    /// A copy that is compared and deleted again.
    async fn copied(&mut self, act: &mut Act, crew: &Crew, name: &str, text: &str) -> anyhow::Result<()> {
        let copy = self.path.with_extension("copy");
        let arguments = json!({"from": name, "to": name_of(&copy), "overwrite": true});
        match act.call(crew, "copy_path", arguments).await? {
            Made::Answer(_) => ensure!(fs::read(&copy)? == text.as_bytes(), "a copy differs"),
            Made::Failed(error) => bail!("copy_path fails: {error}"),
            Made::Gone => return Ok(()),
        }
        match act.call(crew, "delete_path", json!({"path": name_of(&copy)})).await? {
            Made::Answer(_) => ensure!(!copy.exists(), "a deleted file is there"),
            Made::Failed(error) => bail!("delete_path fails: {error}"),
            Made::Gone => {}
        }
        Ok(())
    }

    /// A change that is taken back.
    async fn undone(&mut self, act: &mut Act, crew: &Crew, name: &str, text: &str) -> anyhow::Result<()> {
        let new = format!("{text}{}\n", act.token());
        let old = self.maybe.clone();
        self.maybe.push(Some(new.clone()));
        let arguments = json!({"path": name, "content": new, "force": true});
        let written = match act.insist(crew, "write_file", arguments).await? {
            Made::Answer(written) => written,
            Made::Failed(error) => bail!("write_file fails: {error}"),
            Made::Gone => {
                self.unsure = true;
                return Ok(());
            }
        };
        self.maybe = vec![Some(new)];
        let undone = act.call(crew, "undo_change", json!({"change_id": written["change_id"]})).await?;
        match undone {
            Made::Answer(_) => self.maybe = old,
            Made::Failed(error) => bail!("undo_change fails: {error}"),
            Made::Gone => {
                self.maybe.extend(old);
                self.unsure = true;
                return Ok(());
            }
        }
        self.found().map(drop)
    }
}
