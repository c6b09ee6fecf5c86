//! A directory as a value: what is compared before and after.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// What is at one path: its kind with its content, and its permission bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    File { content: Vec<u8>, mode: u32 },
    Directory { mode: u32 },
    Link(PathBuf),
    Other { mode: u32 },
}

/// Everything below a directory, by relative path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tree(pub(super) BTreeMap<PathBuf, Entry>);

impl Tree {
    /// Takes down what is below `top`, following no link.
    pub(super) fn of(top: &Path) -> anyhow::Result<Self> {
        let mut tree = Self::default();
        tree.add(top, top).with_context(|| format!("{} cannot be looked at", top.display()))?;
        Ok(tree)
    }

    fn add(&mut self, top: &Path, directory: &Path) -> anyhow::Result<()> {
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            let metadata = path.symlink_metadata()?;
            let (kind, mode) = (metadata.file_type(), metadata.mode() & 0o7777);
            let entry = match () {
                () if kind.is_symlink() => Entry::Link(fs::read_link(&path)?),
                () if kind.is_dir() => Entry::Directory { mode },
                () if kind.is_file() => Entry::File { content: fs::read(&path)?, mode },
                () => Entry::Other { mode },
            };
            self.0.insert(path.strip_prefix(top)?.to_owned(), entry);
            if kind.is_dir() {
                self.add(top, &path)?;
            }
        }
        Ok(())
    }

    /// Makes it again below `top`, which stays while everything else in it is removed.
    pub(super) fn put(&self, top: &Path) -> anyhow::Result<()> {
        fs::create_dir_all(top)?;
        for entry in fs::read_dir(top)? {
            let path = entry?.path();
            match path.symlink_metadata()?.is_dir() {
                true => fs::remove_dir_all(&path)?,
                false => fs::remove_file(&path)?,
            }
        }
        for (name, entry) in &self.0 {
            let path = top.join(name);
            match entry {
                Entry::File { content, .. } => fs::write(&path, content)?,
                Entry::Directory { .. } => fs::create_dir(&path)?,
                Entry::Link(target) => std::os::unix::fs::symlink(target, &path)?,
                Entry::Other { .. } => anyhow::bail!("{} is of a kind that is not made", name.display()),
            }
            if let Entry::File { mode, .. } | Entry::Directory { mode } = entry {
                fs::set_permissions(&path, fs::Permissions::from_mode(*mode))?;
            }
        }
        Ok(())
    }

    /// Whether a file has these bytes in it, or a name these.
    pub(super) fn holds(&self, bytes: &[u8]) -> bool {
        let has = |text: &[u8]| text.windows(bytes.len()).any(|window| window == bytes);
        self.0.iter().any(|(name, entry)| {
            has(name.as_os_str().as_encoded_bytes())
                || matches!(entry, Entry::File { content, .. } if has(content))
        })
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, entry) in &self.0 {
            let name = name.display();
            match entry {
                Entry::File { content, mode } => {
                    let text = String::from_utf8_lossy(content);
                    let head: String = text.chars().take(60).collect();
                    writeln!(f, "{name} {mode:o} {} bytes {head:?}", content.len())?;
                }
                Entry::Directory { mode } => writeln!(f, "{name}/ {mode:o}")?,
                Entry::Link(target) => writeln!(f, "{name} -> {}", target.display())?,
                Entry::Other { mode } => writeln!(f, "{name} {mode:o} special")?,
            }
        }
        Ok(())
    }
}
