//! The configured provider: its roots, its rules, its memory.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use provider_core::jail::{Depot, JailPath, RootError, Roots, Rules, is_temp_name, remove_stale_temps};
use provider_core::prelude::*;

use crate::config::{FilesystemConfig, Media, Stale};
use crate::journal::Journal;
use crate::memory::Memory;
use crate::tools::apply_patch::ApplyPatch;
use crate::tools::copy_path::CopyPath;
use crate::tools::create_directory::CreateDirectory;
use crate::tools::delete_path::DeletePath;
use crate::tools::edit_file::EditFile;
use crate::tools::file_info::FileInfo;
use crate::tools::list_directory::ListDirectory;
use crate::tools::move_path::MovePath;
use crate::tools::multi_edit::MultiEdit;
use crate::tools::read_file::ReadFile;
use crate::tools::undo_change::UndoChange;
use crate::tools::write_file::WriteFile;

/// Files below the allowed roots.
pub struct Filesystem {
    pub(crate) roots: Roots,
    pub(crate) journal: Journal,
    /// What was said about changes that had been interrupted, and not yet passed on.
    recovered: Mutex<Vec<String>>,
    read_only: bool,
    pub(crate) stale: Stale,
    pub(crate) media: Media,
    pub(crate) memory: Memory,
}

impl Provider for Filesystem {
    const NAME: &'static str = "filesystem";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Config = FilesystemConfig;

    async fn configure(config: FilesystemConfig, setup: Setup) -> Result<Self, ToolError> {
        let journal = Journal::new(setup.state_folder(config.state_dir.as_deref()));
        let roots = roots(&config, setup.directory())?;
        let roots = without_journal(roots, &config, &journal)?;
        let recovered = Mutex::new(journal.recover(&roots));
        journal.prune(&roots);
        journal.sweep(&roots);
        sweep(&roots);
        Ok(Self {
            roots,
            journal,
            recovered,
            read_only: config.read_only,
            stale: config.stale,
            media: config.media,
            memory: Memory::default(),
        })
    }

    fn tools(tools: &mut Tools<Self>) {
        tools.data_source::<ReadFile>();
        tools.data_source::<ListDirectory>();
        tools.data_source::<FileInfo>();
        tools.resource::<WriteFile>().with_preview();
        tools.resource::<EditFile>().with_preview();
        tools.resource::<MultiEdit>().with_preview();
        tools.resource::<ApplyPatch>().with_preview();
        tools.resource::<MovePath>().with_preview();
        tools.resource::<CopyPath>().with_preview();
        tools.resource::<DeletePath>().with_preview();
        tools.resource::<CreateDirectory>().with_preview();
        tools.resource::<UndoChange>().with_preview();
    }
}

/// The roots with their rules.
fn roots(config: &FilesystemConfig, directory: &Path) -> Result<Roots, ToolError> {
    let rules = Rules { deny: config.deny.clone(), protect: config.protect.clone() };
    Roots::open(&config.allowed_roots, directory).and_then(|roots| roots.with_rules(&rules)).map_err(
        |first| match wrong_paths(config, directory) {
            all if all.is_empty() => ToolError::invalid_arguments(first.to_string()),
            all => ToolError::invalid_arguments(all.join("\n")),
        },
    )
}

/// The roots with the journal's own folder out of reach, where one of them has it.
fn without_journal(roots: Roots, config: &FilesystemConfig, journal: &Journal) -> Result<Roots, ToolError> {
    let Some(base) = journal.base() else { return Ok(roots) };
    // It may not exist yet, so its beginning is looked at.
    let real =
        base.ancestors().find_map(|path| Some(path.canonicalize().ok()?.join(base.strip_prefix(path).ok()?)));
    let inside = |folder: &Path| roots.iter().any(|root| folder.starts_with(root.real_path()));
    if !inside(base) && !real.as_deref().is_some_and(inside) {
        return Ok(roots);
    }
    let mut deny = config.deny.clone();
    deny.extend([Some(base), real.as_deref()].into_iter().flatten().filter_map(literal));
    roots
        .with_rules(&Rules { deny, protect: config.protect.clone() })
        .map_err(|error| ToolError::invalid_arguments(error.to_string()))
}

/// A glob for exactly this path.
fn literal(path: &Path) -> Option<String> {
    let special = |c: char| matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '\\' | '!');
    let escape = |c: char| if special(c) { vec!['\\', c] } else { vec![c] };
    Some(path.to_str()?.chars().flat_map(escape).collect())
}

/// All that is wrong with the roots and the patterns, each tried by itself.
fn wrong_paths(config: &FilesystemConfig, directory: &Path) -> Vec<String> {
    let root = |(index, root)| {
        let error = Roots::open(std::slice::from_ref(root), directory).err()?;
        Some(match error {
            RootError::Root { configured, reason, .. } => RootError::Root { index, configured, reason },
            other => other,
        })
    };
    let mut wrong: Vec<RootError> = config.allowed_roots.iter().enumerate().filter_map(root).collect();
    // Patterns can be looked at without the configured roots: any directory will do.
    if let Ok(anywhere) = Roots::open(&["/".to_owned()], directory) {
        let deny = config.deny.iter().map(|glob| Rules { deny: vec![glob.clone()], ..Rules::default() });
        let protect =
            config.protect.iter().map(|glob| Rules { protect: vec![glob.clone()], ..Rules::default() });
        wrong.extend(deny.chain(protect).filter_map(|rules| anywhere.with_rules(&rules).err()));
    }
    wrong.iter().map(ToString::to_string).collect()
}

/// Removes what killed writers left directly in the roots. The journal knows of deeper directories; without one, the
/// next write there removes it.
fn sweep(roots: &Roots) {
    for root in (0..roots.len()).filter_map(|index| roots.directory(index).ok()) {
        // A root that cannot be listed has nothing for us to remove.
        let _ = remove_stale_temps(&root);
    }
}

/// What a preview can say about a path when no working directory came with it.
pub(crate) enum Located {
    /// The place.
    At(JailPath),
    /// There are several roots and no call has named a directory yet.
    Undecided,
}

impl Filesystem {
    /// The place that `path` names for a call from `working_directory`.
    pub(crate) fn locate(&self, path: &str, working_directory: &Path) -> Result<JailPath, ToolError> {
        Ok(self.roots.resolve(path, working_directory)?)
    }

    /// The same, for a change.
    pub(crate) fn locate_to_change(
        &self,
        path: &str,
        working_directory: &Path,
    ) -> Result<JailPath, ToolError> {
        self.ensure_writable()?;
        self.locate_file_to_change(path, working_directory)
    }

    fn locate_file_to_change(&self, path: &str, working_directory: &Path) -> Result<JailPath, ToolError> {
        if path.ends_with('/') {
            let message =
                format!("path: `{path}` ends in / and so names a directory, but a file is changed here");
            return Err(ToolError::invalid_arguments(message));
        }
        self.locate_own(path, working_directory)
    }

    /// The place that `path` names for a change of names: anything may be there, also a directory.
    pub(crate) fn locate_entry_to_change(
        &self,
        path: &str,
        working_directory: &Path,
    ) -> Result<JailPath, ToolError> {
        self.ensure_writable()?;
        self.locate_own(path, working_directory)
    }

    /// A place with a name that is not one of our own.
    fn locate_own(&self, path: &str, working_directory: &Path) -> Result<JailPath, ToolError> {
        let path = self.locate(path, working_directory)?;
        if path.file_name().is_some_and(is_temp_name) {
            let message = format!(
                "{path}: names like this one are kept for temporary files, which are removed without asking; use another name"
            );
            return Err(ToolError::new(Code::Denied, message));
        }
        Ok(path)
    }

    /// The working directory of a call, or a directory below it.
    pub(crate) fn locate_directory(
        &self,
        path: Option<&str>,
        working_directory: &Path,
    ) -> Result<JailPath, ToolError> {
        match path {
            Some(path) => self.locate(path, working_directory),
            None if working_directory.as_os_str().is_empty() => Ok(self.roots.directory(0)?),
            None => Ok(self.roots.working_directory(working_directory)?),
        }
    }

    /// The place that `path` names in a preview. The kernel sends no working directory with one.
    pub(crate) fn locate_in_preview(&self, path: &str, cx: &PreviewCx) -> Result<Located, ToolError> {
        self.in_preview(path, cx, Self::locate_file_to_change)
    }

    /// The same for a change of names.
    pub(crate) fn locate_entry_in_preview(&self, path: &str, cx: &PreviewCx) -> Result<Located, ToolError> {
        self.in_preview(path, cx, Self::locate_entry_to_change)
    }

    fn in_preview(
        &self,
        path: &str,
        cx: &PreviewCx,
        locate: impl Fn(&Self, &str, &Path) -> Result<JailPath, ToolError>,
    ) -> Result<Located, ToolError> {
        self.ensure_writable()?;
        let absolute = Path::new(path).is_absolute() || path.starts_with('~');
        match cx.working_directory() {
            Some(directory) => locate(self, path, directory).map(Located::At),
            None if absolute || self.roots.len() == 1 => locate(self, path, Path::new("")).map(Located::At),
            None => Ok(Located::Undecided),
        }
    }

    /// Takes back changes that processes which are gone have left half done. Answers what is to be said about them,
    /// and about those that were found when the provider was configured.
    pub(crate) fn recover_pending(&self) -> Vec<String> {
        let mut said = std::mem::take(&mut *self.recovered.lock().unwrap_or_else(PoisonError::into_inner));
        said.extend(self.journal.recover(&self.roots));
        said
    }

    /// A place that the journal names.
    pub(crate) fn place(&self, absolute: &Path, cx: &Cx<Events>) -> Result<JailPath, ToolError> {
        let base = self.locate_directory(None, cx.working_directory()).map(|base| base.absolute());
        Ok(self.roots.exact(absolute, &base.unwrap_or_default())?)
    }

    /// What the change `id` took away.
    pub(crate) fn kept_by(&self, id: &str) -> Result<Depot, ToolError> {
        self.journal.depot(&self.roots, id).ok_or_else(|| {
            let text =
                format!("what the change {id} took away is no longer kept, so it cannot be brought back");
            ToolError::not_found(text)
        })
    }

    pub(crate) fn ensure_writable(&self) -> Result<(), ToolError> {
        if self.read_only {
            let message = "this provider is configured read_only; files can be read but not changed";
            return Err(ToolError::new(Code::Denied, message));
        }
        Ok(())
    }
}
