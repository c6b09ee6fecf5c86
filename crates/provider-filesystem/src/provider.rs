//! The configured provider: its roots, its rules, its memory.

use std::path::Path;

use provider_core::jail::{JailPath, RootError, Roots, Rules, is_temp_name, remove_stale_temps};
use provider_core::prelude::*;

use crate::config::{FilesystemConfig, Media, Stale};
use crate::memory::Memory;
use crate::tools::edit_file::EditFile;
use crate::tools::file_info::FileInfo;
use crate::tools::list_directory::ListDirectory;
use crate::tools::read_file::ReadFile;
use crate::tools::write_file::WriteFile;

/// Files below the allowed roots.
pub struct Filesystem {
    roots: Roots,
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
        let roots = roots(&config, setup.directory())?;
        sweep(&roots);
        Ok(Self {
            roots,
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

/// Removes what killed writers left directly in the roots; deeper directories are swept by the next write there.
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
        self.ensure_writable()?;
        let absolute = Path::new(path).is_absolute() || path.starts_with('~');
        match cx.working_directory() {
            Some(directory) => self.locate_file_to_change(path, directory).map(Located::At),
            None if absolute || self.roots.len() == 1 => {
                self.locate_file_to_change(path, Path::new("")).map(Located::At)
            }
            None => Ok(Located::Undecided),
        }
    }

    fn ensure_writable(&self) -> Result<(), ToolError> {
        if self.read_only {
            let message = "this provider is configured read_only; files can be read but not changed";
            return Err(ToolError::new(Code::Denied, message));
        }
        Ok(())
    }
}
