//! `list_directory`: what a directory holds, in the order of names, a page at a time.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use provider_core::jail::{FileKind, JailPath, is_temp_name};
use provider_core::prelude::*;

use super::file_info::{modified_ms, shown_target};
use crate::Filesystem;

/// Entries of one page when no limit is given.
const DEFAULT_LIMIT: u64 = 1_000;
/// Entries beyond this many are not looked at.
const MOST_ENTRIES: u64 = 500_000;

/// Lists a directory: files, folders and links with type, size and time of change, sorted by path, folders
/// before what is in them.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The directory, absolute or relative to the working directory, which is the default.
    #[schemars(extend("x-aliases" = ["directory", "dir"]))]
    path: Option<String>,
    /// How many levels to list. Default 1: only what is directly in the directory.
    #[schemars(range(min = 1, max = 64))]
    depth: Option<u64>,
    /// How many entries to answer at most. Default 1000.
    #[schemars(range(min = 1, max = 100_000))]
    limit: Option<u64>,
    /// How many entries to skip.
    #[schemars(range(min = 0))]
    offset: Option<u64>,
    /// Whether entries that .gitignore files exclude are listed. By default they are at depth 1 and are not deeper.
    ignored: Option<bool>,
}

/// One entry.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Entry {
    /// The path, relative to the working directory if beneath it, else absolute.
    path: String,
    /// file, directory, symlink, fifo, socket, char_device or block_device.
    r#type: String,
    /// Size in bytes.
    size: u64,
    /// When the content last changed, in milliseconds since 1970.
    modified: u64,
    /// Where the symbolic link points.
    target: Option<String>,
}

/// A page of a listing.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Output {
    /// The entries.
    entries: Vec<Entry>,
    /// Entries in all.
    total: u64,
    /// Whether there are entries after this page.
    truncated: bool,
    /// The offset of the next page.
    next_offset: Option<u64>,
}

pub(crate) struct ListDirectory;

impl DataSource for ListDirectory {
    const NAME: &'static str = "list_directory";
    const CONCURRENCY: Concurrency = Concurrency::Shared;
    const TIMEOUT: Duration = Duration::from_secs(60);
    type Provider = Filesystem;
    type Args = Args;
    type Output = Output;
    type Stream = Silent;

    async fn invoke(filesystem: Arc<Filesystem>, args: Args, cx: Cx<Silent>) -> Result<Output, ToolError> {
        let path = filesystem.locate_directory(args.path.as_deref(), cx.working_directory())?;
        path.note().into_iter().for_each(|note| cx.note(note));
        let context = cx.clone();
        cx.blocking(move || list(&path, &args, &context)).await
    }

    fn render(output: &Output) -> Option<Node> {
        let row = |entry: &Entry| {
            let name = match &entry.target {
                Some(target) => format!("{} → {target}", entry.path),
                None => entry.path.clone(),
            };
            vec![name, entry.r#type.clone(), entry.size.to_string()]
        };
        let headers = ["path", "type", "bytes"].map(str::to_owned).to_vec();
        Some(Node::Table { headers, rows: output.entries.iter().map(row).collect() })
    }
}

fn list(path: &JailPath, args: &Args, cx: &Cx<Silent>) -> Result<Output, ToolError> {
    let depth = args.depth.unwrap_or(1);
    let (offset, limit) = (args.offset.unwrap_or(0), args.limit.unwrap_or(DEFAULT_LIMIT));
    let mut page = Page { offset, limit, total: 0, entries: Vec::new() };
    let mut walk = Walk { cx, ignored: args.ignored.unwrap_or(depth == 1), depth, hidden: 0 };
    let mut rules = if walk.ignored { Vec::new() } else { rules_above(path) };
    walk.directory(path, 1, &mut rules, &mut page)?;
    if walk.hidden > 0 {
        let entries =
            if walk.hidden == 1 { "1 entry".to_owned() } else { format!("{} entries", walk.hidden) };
        cx.note(format!("left out as .gitignore says: {entries}; ignored: true lists them"));
    }
    if page.total >= MOST_ENTRIES {
        cx.note(format!("only the first {MOST_ENTRIES} entries were looked at; list a smaller directory"));
    }
    let end = offset + page.entries.len() as u64;
    let truncated = end < page.total;
    Ok(Output { entries: page.entries, total: page.total, truncated, next_offset: truncated.then_some(end) })
}

/// The entries that are answered, and a count of all.
struct Page {
    offset: u64,
    limit: u64,
    total: u64,
    entries: Vec<Entry>,
}

struct Walk<'a> {
    cx: &'a Cx<Silent>,
    ignored: bool,
    depth: u64,
    hidden: u64,
}

impl Walk<'_> {
    /// Lists one directory in the order of names. `rules` holds the ignore files from the top down to here.
    fn directory(
        &mut self,
        path: &JailPath,
        level: u64,
        rules: &mut Vec<Gitignore>,
        page: &mut Page,
    ) -> Result<(), ToolError> {
        self.cx.check_cancelled()?;
        let directory = path.open_dir()?;
        let mut entries: VecDeque<_> =
            directory.entries()?.filter_map(Result::ok).filter(|entry| !is_temp_name(&entry.name)).collect();
        entries.make_contiguous().sort_unstable_by(|one, other| one.name.cmp(&other.name));
        let own_rules = (!self.ignored).then(|| ignore_file(path)).flatten();
        rules.extend(own_rules.clone());
        for entry in entries {
            let Ok(at) = path.join(&entry.name) else { continue };
            if at.is_denied() {
                continue;
            }
            if self.excludes(rules, &at, entry.kind == FileKind::Directory) {
                self.hidden += 1;
                continue;
            }
            if page.total >= MOST_ENTRIES {
                break;
            }
            page.add(&at);
            if entry.kind == FileKind::Directory && level < self.depth {
                match self.directory(&at, level + 1, rules, page) {
                    Err(error) if error.category() == provider_core::Category::Cancelled => {
                        return Err(error);
                    }
                    Err(error) => self.cx.note(error.to_string()),
                    Ok(()) => {}
                }
            }
        }
        if own_rules.is_some() {
            rules.pop();
        }
        Ok(())
    }

    fn excludes(&self, rules: &[Gitignore], path: &JailPath, is_directory: bool) -> bool {
        if self.ignored {
            return false;
        }
        let relative = path.relative();
        // The innermost file that says something about the path decides.
        let decision = rules
            .iter()
            .rev()
            .map(|rules| rules.matched(relative, is_directory))
            .find(|found| !found.is_none());
        decision.is_some_and(|found| found.is_ignore())
    }
}

/// The rules of the directories around `directory`, the outermost first.
fn rules_above(directory: &JailPath) -> Vec<Gitignore> {
    let above = std::iter::successors(directory.parent(), JailPath::parent);
    let mut rules: Vec<_> = above.filter_map(|directory| ignore_file(&directory)).collect();
    rules.reverse();
    rules
}

/// The rules of a directory's `.gitignore`, relative to the root.
fn ignore_file(directory: &JailPath) -> Option<Gitignore> {
    let bytes = directory.join(".gitignore").ok()?.read().ok()?;
    let mut builder = GitignoreBuilder::new(Path::new("").join(directory.relative()));
    for line in String::from_utf8_lossy(&bytes).lines() {
        // A line that is no pattern excludes nothing, as in git.
        let _ = builder.add_line(None, line);
    }
    builder.build().ok()
}

impl Page {
    fn add(&mut self, path: &JailPath) {
        let index = self.total;
        self.total += 1;
        if index < self.offset || self.entries.len() as u64 >= self.limit {
            return;
        }
        let Ok(metadata) = path.symlink_metadata() else {
            // It vanished between listing and looking.
            self.total -= 1;
            return;
        };
        let target = path.read_link().ok().filter(|_| metadata.kind == FileKind::Symlink);
        self.entries.push(Entry {
            path: path.to_string(),
            r#type: metadata.kind.name().to_owned(),
            size: metadata.size,
            modified: modified_ms(&metadata),
            target: target.as_deref().map(shown_target),
        });
    }
}
