//! The tree that searches are compared on: a made-up one, or the one that `STRESS_TREE` names, such as the sources of a
//! kernel.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tempfile::TempDir;

use super::{Random, Run};

/// Names the tree to compare on.
const TREE: &str = "STRESS_TREE";

/// A tree, and some of the files in it.
pub(super) struct SearchTree {
    pub(super) path: PathBuf,
    /// A few of each folder, but none of the inside of a repository.
    pub(super) files: Vec<PathBuf>,
    /// Holds the tree that was made up.
    _made_up: Option<TempDir>,
}

impl SearchTree {
    /// The tree of a run, for a comparison with a program that reads ignore files of the name `own` before others.
    pub(super) fn of(run: &Run, own: &str) -> anyhow::Result<Self> {
        let (path, made_up) = match std::env::var_os(TREE) {
            Some(tree) => (PathBuf::from(tree).canonicalize().context(TREE)?, None),
            None => {
                let made_up = tempfile::tempdir()?;
                let path = made_up.path().canonicalize()?;
                make_up(&path, own, &mut Random::new(run.seed(), u64::MAX))?;
                (path, Some(made_up))
            }
        };
        Ok(Self { files: some_files(&path)?, path, _made_up: made_up })
    }
}

/// Files below a directory, a few of each folder, but none of the inside of a repository.
fn some_files(tree: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let (mut files, mut folders) = (Vec::new(), vec![tree.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        let mut of_folder = 0;
        let mut entries: Vec<_> = fs::read_dir(&folder)?.filter_map(Result::ok).collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let kind = entry.file_type()?;
            if kind.is_dir() && entry.file_name() != ".git" {
                folders.push(entry.path());
            } else if kind.is_file() && of_folder < 5 {
                of_folder += 1;
                files.push(entry.path());
            }
        }
    }
    Ok(files)
}

/// Words that the files of a tree made up have.
const WORDS: &[&str] = &[
    "alpha",
    "beta_gamma",
    "Delta",
    "kernel_lock",
    "mutex",
    "return",
    "static",
    "void",
    "struct",
    "fn",
    "let",
    "impl",
    "HTTP",
    "x86_64",
    "err",
    "buffer->next",
    "free(",
    "0xdead",
    "naïve",
    "straße",
];

/// Makes up a tree with repositories in it, ignore files of every kind, names that look like patterns, and files that
/// are no plain text.
fn make_up(root: &Path, own: &str, random: &mut Random) -> anyhow::Result<()> {
    fs::create_dir(root.join(".git"))?;
    fs::create_dir(root.join(".git/info"))?;
    fs::write(root.join(".git/info/exclude"), "excluded*\n")?;
    fs::write(root.join(".gitignore"), "*.log\n/build/\n!keep.log\n**/gen/*.c\n")?;
    fs::write(root.join(".ignore"), "private\n")?;
    let mut folders = vec![root.to_path_buf()];
    for number in 0..60 {
        let parent = random.pick(&folders).context("no folder")?.clone();
        let name = random
            .pick(&["src", "gen", "build", "private", ".hidden", "excluded", "a b", "lib", "[id]"])
            .context("no name")?;
        let folder = parent
            .join(format!("{name}{}", if random.once_in(2) { String::new() } else { number.to_string() }));
        fs::create_dir_all(&folder)?;
        match random.below(10) {
            0 => fs::write(folder.join(".gitignore"), "*.h\n!alpha.h\n/lib\n")?,
            1 => fs::write(folder.join(".ignore"), "*.rs\n!keep.rs\n")?,
            2 => fs::write(folder.join(own), "!*.log\n*.txt\n")?,
            3 => fs::create_dir_all(folder.join(".git"))?,
            _ => {}
        }
        for _ in 0..random.below(8) {
            let stem = random.pick(&["alpha", "keep", "main", "excluded", "x"]).context("no stem")?;
            let extension =
                random.pick(&["c", "h", "rs", "log", "txt", "bin", "mk"]).context("no extension")?;
            fs::write(folder.join(format!("{stem}.{extension}")), contents(random))?;
        }
        folders.push(folder);
    }
    Ok(())
}

fn contents(random: &mut Random) -> Vec<u8> {
    let mut text = Vec::new();
    for _ in 0..random.below(60) {
        for _ in 0..random.below(9) {
            text.extend_from_slice(random.pick(WORDS).copied().unwrap_or_default().as_bytes());
            text.extend_from_slice([" ", "_", ";", "\t", ", "][random.below(5)].as_bytes());
        }
        text.extend_from_slice(if random.once_in(12) { b"\r\n" } else { b"\n" });
    }
    match random.below(12) {
        0 => text.push(0),
        1 => text.insert(0, 0xe9),
        2 => text.truncate(text.len().saturating_sub(1)),
        3 => {
            let utf_16 =
                String::from_utf8_lossy(&text).encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
            text = [b"\xff\xfe".to_vec(), utf_16].concat();
        }
        4 => text = text.repeat(1 + random.below(40)),
        _ => {}
    }
    text
}
