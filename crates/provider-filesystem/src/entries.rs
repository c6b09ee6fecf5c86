//! What changes of names have in common: what is there, what of it is lost, what a preview says.

use provider_core::Style;
use provider_core::jail::{FileKind, JailPath, Metadata, PathError, StagedCopy};
use provider_core::prelude::*;

use crate::Filesystem;
use crate::engine::diff::Diff;
use crate::engine::text::Text;
use crate::journal::{Mark, QUOTA, Transaction, ask};
use crate::provider::Located;

/// Longer files are not shown when they are removed, in bytes.
const MOST_SHOWN: u64 = 256 << 10;
/// How many names of a directory a preview lists.
const MOST_LISTED: usize = 20;

/// Something with a name, as it was looked at.
pub(crate) struct Entry {
    /// Where it really is; itself, if it is a symbolic link.
    pub(crate) path: JailPath,
    pub(crate) metadata: Metadata,
    pub(crate) mark: Mark,
}

impl Entry {
    /// What is at `path`, and beneath.
    pub(crate) fn at(path: &JailPath) -> Result<Self, ToolError> {
        let metadata = path.symlink_metadata()?;
        let path = path.with_real_parent()?;
        let mark = Mark::of(&path)?;
        Ok(Self { path, metadata, mark })
    }

    /// What is at `path`, if there is anything.
    pub(crate) fn find(path: &JailPath) -> Result<Option<Self>, ToolError> {
        match path.symlink_metadata() {
            Ok(_) => Self::at(path).map(Some),
            Err(PathError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn is_directory(&self) -> bool {
        self.metadata.kind == FileKind::Directory
    }

    /// What it is and how much, in words: `a file of 12 bytes`.
    pub(crate) fn describe(&self) -> String {
        let (files, bytes) = self.mark.size();
        match self.metadata.kind {
            FileKind::File => format!("a file of {}", of_bytes(bytes)),
            FileKind::Directory if files == 0 => "an empty directory".to_owned(),
            FileKind::Directory => format!("a directory with {} ({})", of_files(files), of_bytes(bytes)),
            kind => format!("a {kind}"),
        }
    }

    /// What a preview shows of something that will be gone: the text of a file, the names in a directory.
    pub(crate) fn lost(&self) -> Result<Vec<Node>, ToolError> {
        match self.metadata.kind {
            FileKind::File if self.metadata.size <= MOST_SHOWN => {
                let content = self.path.read()?;
                let diff = Diff::of_files(&content, b"");
                let shown = Text::parse(&content).is_ok() && !diff.is_empty();
                Ok(if shown { vec![crate::shown::hunks(&diff)] } else { Vec::new() })
            }
            FileKind::Directory => self.names(),
            _ => Ok(Vec::new()),
        }
    }

    fn names(&self) -> Result<Vec<Node>, ToolError> {
        let mut names = Vec::new();
        self.path.walk(&mut |entry| {
            if entry.metadata().kind != FileKind::Directory {
                let name = provider_core::jail::escape_bytes(entry.relative().as_os_str());
                names.push(format!("{name} ({} bytes)", entry.metadata().size));
            }
            Ok(())
        })?;
        let more = names.len().saturating_sub(MOST_LISTED);
        names.truncate(MOST_LISTED);
        if more > 0 {
            names.push(format!("… and {more} more"));
        }
        let items = names.into_iter().map(Node::text).collect();
        Ok(vec![Node::List { items, ordered: false }])
    }

    /// Why what is taken away here could not come back, if that is known.
    pub(crate) fn unkept(&self, filesystem: &Filesystem) -> Option<String> {
        let (_, bytes) = self.mark.size();
        let too_much =
            || format!("it is more than the {} MiB that are kept for taking changes back", QUOTA >> 20);
        let reason = if bytes > QUOTA { Some(too_much()) } else { filesystem.journal.unusable() };
        reason.map(|reason| format!("cannot be undone: {reason}"))
    }

    /// What identifies it, for telling whether it is what was previewed.
    pub(crate) fn fingerprint(&self) -> String {
        format!("{}\0{:?}\0{:?}", self.path.absolute().display(), self.metadata.id(), self.mark)
    }
}

/// A headline with more beneath it.
pub(crate) fn shown(headline: String, notes: &[String], more: Vec<Node>) -> Node {
    let mut nodes = vec![Node::styled(headline, Style::Bold)];
    nodes.extend(notes.iter().map(|note| Node::styled(note, Style::Dim)));
    nodes.extend(more);
    Node::Group(nodes)
}

/// The preview of a call of which it is not known what its paths mean.
pub(crate) fn undecided(what: &str) -> Node {
    Node::text(format!(
        "{what} — there are several allowed roots and no call has named a directory yet, so it is not known which is meant"
    ))
}

/// What is to be moved or copied, and where to.
pub(crate) struct Pair {
    pub(crate) from: Entry,
    /// The new name, in a directory without links on the way to it.
    pub(crate) to: JailPath,
    /// What has that name, and will be replaced.
    pub(crate) displaced: Option<Entry>,
}

impl Pair {
    /// Looks at both, and refuses what cannot be. `verb` is what is to be done, an imperative.
    pub(crate) fn look(
        verb: &str,
        from: &JailPath,
        to: &JailPath,
        overwrite: bool,
    ) -> Result<Self, ToolError> {
        if from.file_name().is_none() {
            let text = format!("from: `{from}` is an allowed root itself, which this cannot {verb}");
            return Err(ToolError::invalid_arguments(text));
        }
        from.symlink_metadata().map_err(missing_source)?;
        let there = Entry::find_shallow(to)?;
        let target = to.with_real_parent().map_err(|error| missing_parent(to, error))?;
        let source = from.with_real_parent()?;
        if target == source {
            return Err(ToolError::invalid_arguments(format!("from and to are the same: `{from}`")));
        }
        if let Some(there) = there {
            refuse_target(from, to, &there, overwrite)?;
        }
        if target.is_below(&source) {
            let text = format!("to: `{to}` is inside `{from}`, which cannot be put into itself");
            return Err(ToolError::invalid_arguments(text));
        }
        let displaced = Entry::find(to)?;
        let from = Entry::at(from)?;
        if let Some(displaced) = &displaced
            && from.is_directory()
        {
            let text = format!(
                "`{to}` exists already and is {}, which a directory cannot replace; nothing was changed. Remove it first \
                 with delete_path, or choose another name",
                displaced.describe()
            );
            return Err(ToolError::new(Code::Exists, text));
        }
        Ok(Self { from, to: target, displaced })
    }

    pub(crate) fn is_on_one_file_system(&self) -> Result<bool, ToolError> {
        let directory = self.to.parent().map_or_else(|| self.to.metadata(), |parent| parent.metadata())?;
        // A mounted file or directory has a device other than what it is mounted on, and cannot be renamed.
        let above = self.from.path.parent().map(|parent| parent.metadata()).transpose()?;
        let device = self.from.metadata.dev;
        Ok(device == directory.dev && above.is_none_or(|above| above.dev == device))
    }

    pub(crate) fn notes(&self) -> Vec<String> {
        let displaced = self.displaced.as_ref();
        displaced.map(|displaced| format!("replaces {}", displaced.describe())).into_iter().collect()
    }

    pub(crate) fn fingerprint(&self) -> String {
        let displaced = self.displaced.as_ref().map(Entry::fingerprint);
        format!("{}\0{}\0{displaced:?}", self.from.fingerprint(), self.to.absolute().display())
    }
}

impl Entry {
    /// What kind of thing is at `path`, without looking beneath it.
    fn find_shallow(path: &JailPath) -> Result<Option<Metadata>, ToolError> {
        match path.symlink_metadata() {
            Ok(metadata) => Ok(Some(metadata)),
            Err(PathError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

fn refuse_target(from: &JailPath, to: &JailPath, there: &Metadata, overwrite: bool) -> Result<(), ToolError> {
    if there.kind == FileKind::Directory {
        let name = from.file_name().map(provider_core::jail::escape_bytes).unwrap_or_default();
        let text = format!(
            "to: `{to}` is a directory that exists already, and directories are not replaced; nothing was changed. Give \
             the whole new name, for example `{}/{name}`",
            to.to_string().trim_end_matches('/')
        );
        return Err(ToolError::new(Code::Exists, text));
    }
    if !overwrite {
        let size =
            from.symlink_metadata().map(|found| format!(" ({} bytes)", found.size)).unwrap_or_default();
        let text = format!(
            "to: `{to}` exists already and is a {} of {} bytes; nothing was changed. Pass overwrite: true to replace it \
             with `{from}`{size}",
            there.kind, there.size
        );
        return Err(ToolError::new(Code::Exists, text));
    }
    Ok(())
}

/// How many files, in words.
pub(crate) fn of_files(files: u64) -> String {
    if files == 1 { "1 file".to_owned() } else { format!("{files} files") }
}

/// How many bytes, in words.
pub(crate) fn of_bytes(bytes: u64) -> String {
    if bytes == 1 { "1 byte".to_owned() } else { format!("{bytes} bytes") }
}

fn missing_source(error: PathError) -> ToolError {
    let error = ToolError::from(error);
    match error.category() {
        provider_core::Category::NotFound => ToolError::not_found(format!("from: {error}")),
        _ => error,
    }
}

fn missing_parent(to: &JailPath, error: PathError) -> ToolError {
    match ToolError::from(error) {
        error if error.category() == provider_core::Category::NotFound => {
            let parent = to.parent().map(|parent| parent.to_string()).unwrap_or_default();
            let text =
                format!("to: the directory `{parent}` does not exist; make it first with create_directory");
            ToolError::not_found(text)
        }
        error => error,
    }
}

/// The preview of moving or copying.
pub(crate) async fn preview_pair(
    filesystem: Arc<Filesystem>,
    verb: &'static str,
    (from, to): (&str, &str),
    overwrite: bool,
    cx: &PreviewCx,
) -> Result<Node, ToolError> {
    let undecided = || Ok(undecided(&format!("{verb} {from} to {to}")));
    let Located::At(from) = filesystem.locate_entry_in_preview(from, cx)? else { return undecided() };
    let Located::At(to) = filesystem.locate_entry_in_preview(to, cx)? else { return undecided() };
    let (node, fingerprint) = cx
        .blocking(move || {
            let pair = Pair::look(verb, &from, &to, overwrite)?;
            let (source, target) = (from.absolute(), to.absolute());
            let headline =
                format!("{verb} {} to {}: {}", source.display(), target.display(), pair.from.describe());
            let mut notes = pair.notes();
            notes.extend(pair.displaced.iter().filter_map(|displaced| displaced.unkept(&filesystem)));
            if verb == "move" && !pair.is_on_one_file_system()? {
                notes.push(
                    "between two file systems: it will be copied, and the original removed then".to_owned(),
                );
            }
            let lost = pair.displaced.as_ref().map_or_else(|| Ok(Vec::new()), Entry::lost)?;
            Ok((shown(headline, &notes, lost), pair.fingerprint()))
        })
        .await?;
    cx.remember(fingerprint);
    Ok(node)
}

/// Copies to a temporary name, as long as the call stands.
pub(crate) fn stage_copy(
    filesystem: &Filesystem,
    from: &JailPath,
    to: &JailPath,
    replaces: bool,
    times: bool,
    cx: &Cx<Events>,
) -> Result<StagedCopy, ToolError> {
    // What is replaced is exchanged with a copy that is complete and has a name that nobody clears away.
    let target = if replaces { to.spare() } else { to.clone() };
    filesystem.journal.expect_temporary(&target);
    let mut begun = 0;
    let staged = from.stage_copy(&target, times, &mut |copied| {
        begun = copied.bytes;
        ask(cx)
    });
    match staged {
        Ok(staged) => {
            staged.copied().notes.iter().for_each(|note| cx.note(note.clone()));
            Ok(staged)
        }
        Err(error) => {
            let Err(cancelled) = cx.check_cancelled() else { return Err(error.into()) };
            cx.effects()
                .record(format!("copied {begun} bytes of {from}, and removed that incomplete copy again"));
            Err(cancelled)
        }
    }
}

/// Has a transaction give a copy its name.
pub(crate) fn put_copy(
    transaction: &mut Transaction,
    staged: StagedCopy,
    to: &JailPath,
    displaced: Option<Entry>,
) -> Result<(), ToolError> {
    let Some(displaced) = displaced else { return Ok(transaction.put_copy(to, staged)?) };
    let id = staged.path().symlink_metadata()?.id();
    let mark = Mark::of(staged.path())?;
    let spare = staged.destination().clone();
    transaction.put_copy(&spare, staged)?;
    transaction.exchange((&spare, mark, id), (to, displaced.mark.clone()));
    transaction.remove(&spare, displaced.mark, displaced.metadata.id());
    Ok(())
}
