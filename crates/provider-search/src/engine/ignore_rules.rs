//! Which entries ignore files exclude: the precedence that ripgrep has, on directories that are open handles.
//!
//! Per directory, `.rgignore` goes before `.ignore`, that before `.gitignore`, that before `.git/info/exclude`, and the
//! user's global file comes last; for each kind the innermost directory that says something decides. The two of git
//! hold only inside a repository, and never reach across the beginning of one nested in it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder, gitconfig_excludes_path};
use provider_core::jail::{JailPath, Listing, WalkHandle};

/// A longer ignore file is not one.
const LONGEST: u64 = 4 << 20;

/// The kinds of ignore files, the strongest first.
const NAMES: [&str; 3] = [".rgignore", ".ignore", ".gitignore"];
/// The first kind that only git knows.
const FIRST_OF_GIT: usize = 2;
/// `.git/info/exclude`, after those in [`NAMES`].
const EXCLUDE: usize = 3;

/// The rules that hold in one directory: its own and those of the directories above.
///
/// Directories without rules of their own share the value of the one above.
#[derive(Debug)]
pub struct IgnoreRules {
    above: Option<Arc<IgnoreRules>>,
    /// How many bytes of a path name this directory, the slash after it included.
    prefix: usize,
    own: [Gitignore; EXCLUDE + 1],
    /// What `own` was made of.
    sources: Sources,
    in_repository: bool,
    global: Arc<Global>,
}

/// The user's own file, and its text.
#[derive(Debug)]
struct Global {
    rules: Gitignore,
    text: Vec<u8>,
}

/// The texts that one directory's own rules are made of. Equal texts make equal rules.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Sources {
    texts: [Option<Box<[u8]>>; EXCLUDE + 1],
    /// Whether a repository begins here.
    repository: bool,
}

impl Sources {
    /// Whether a name in a directory is that of something which can make rules.
    pub fn can_be(name: &[u8]) -> bool {
        matches!(name, b".rgignore" | b".ignore" | b".gitignore" | b".git" | b".jj")
    }

    /// Reads those of the directory at `handle`, of which `has` knows the names, and `place` is where it is in the
    /// jail; that is asked for only where there is something to read.
    pub fn read(
        handle: &WalkHandle,
        has: impl Fn(&str) -> bool,
        place: impl Fn() -> Option<JailPath>,
    ) -> Self {
        let read = |name: &str| {
            if !has(name) {
                return None;
            }
            match handle.open_file(OsStr::new(name)) {
                Ok((file, _)) => read_rules(Ok(file)),
                // Perhaps a symbolic link, which counts if it leads to somewhere in the jail.
                Err(_) => in_jail(&place()?, name),
            }
        };
        Self::gather(read, || exclude_file(&place()?), has(".git") || has(".jj"))
    }

    fn gather(
        read: impl Fn(&str) -> Option<Vec<u8>>,
        exclude: impl FnOnce() -> Option<Vec<u8>>,
        repository: bool,
    ) -> Self {
        let mut texts: [Option<Box<[u8]>>; EXCLUDE + 1] = Default::default();
        for (text, name) in texts.iter_mut().zip(NAMES) {
            *text = read(name).map(Vec::into_boxed_slice);
        }
        if repository {
            texts[EXCLUDE] = exclude().map(Vec::into_boxed_slice);
        }
        Self { texts, repository }
    }
}

impl IgnoreRules {
    /// The rules of all directories above `start`, and the user's own.
    ///
    /// What is above the root can hold rules as well, so that a search finds the same files from anywhere in a
    /// repository. Nothing but its rules is learnt from it.
    pub fn above(start: &JailPath) -> Arc<Self> {
        let text = gitconfig_excludes_path().and_then(|path| read_rules(open_cautiously(&path)));
        let text = text.unwrap_or_default();
        let mut rules = Arc::new(Self::empty(Global { rules: parse(&text), text }));
        let real_root = start.root().real_path().to_owned();
        let mut outside: Vec<&Path> = real_root.ancestors().skip(1).collect();
        outside.reverse();
        for directory in outside {
            let read = |name: &str| read_rules(open_cautiously(&directory.join(name)));
            let repository = directory.join(".git").exists() || directory.join(".jj").exists();
            let exclude = || read(".git/info/exclude");
            rules = rules.with(prefix_of(directory), Sources::gather(read, exclude, repository));
        }
        let mut inside: Vec<JailPath> = std::iter::successors(start.parent(), JailPath::parent).collect();
        inside.reverse();
        for directory in inside {
            let read = |name: &str| in_jail(&directory, name);
            let there = |name: &str| directory.join(name).and_then(|path| path.exists()).unwrap_or(false);
            let repository = there(".git") || there(".jj");
            let full = real_root.join(directory.relative());
            let sources = Sources::gather(read, || exclude_file(&directory), repository);
            rules = rules.with(prefix_of(&full), sources);
        }
        rules
    }

    fn empty(global: Global) -> Self {
        Self {
            above: None,
            prefix: 0,
            own: std::array::from_fn(|_| Gitignore::empty()),
            sources: Sources::default(),
            in_repository: false,
            global: Arc::new(global),
        }
    }

    /// The rules in a directory just listed, whose full path has `prefix` bytes with the slash after it. `place` is
    /// that directory in the jail; it is asked for only where there is something to read.
    pub fn descend(
        self: &Arc<Self>,
        handle: &WalkHandle,
        listing: &Listing,
        prefix: usize,
        place: impl Fn() -> Option<JailPath>,
    ) -> Arc<Self> {
        self.descend_by(handle, |name| listing.contains(name), prefix, place)
    }

    /// As [`IgnoreRules::descend`], where `has` knows which names there are in the directory.
    pub fn descend_by(
        self: &Arc<Self>,
        handle: &WalkHandle,
        has: impl Fn(&str) -> bool,
        prefix: usize,
        place: impl Fn() -> Option<JailPath>,
    ) -> Arc<Self> {
        if !NAMES.iter().chain(&[".git", ".jj"]).any(|name| has(name)) {
            return self.clone();
        }
        self.with(prefix, Sources::read(handle, has, place))
    }

    /// Whether the rules that hold for what is above the first `prefix` bytes of a path are made of the same texts.
    pub fn same_above(&self, other: &Self, prefix: usize) -> bool {
        let levels = |rules| {
            let all = std::iter::successors(Some(rules), |rules: &&Self| rules.above.as_deref());
            all.skip_while(move |rules| rules.prefix >= prefix).map(|rules| (rules.prefix, &rules.sources))
        };
        self.global.text == other.global.text && levels(self).eq(levels(other))
    }

    /// Whether the rules exclude the directory at `full`, with a slash after it, of which they are above, or one that it
    /// lies in. What is above the innermost repository does not count.
    pub fn exclude_start(&self, full: &[u8]) -> bool {
        let levels = || std::iter::successors(Some(self), |rules| rules.above.as_deref());
        let repository = levels().find(|rules| rules.sources.repository).map_or(0, |rules| rules.prefix);
        let ends = full.iter().enumerate().filter(|(at, byte)| **byte == b'/' && *at >= repository.max(1));
        ends.map(|(end, _)| &full[..end]).any(|directory| {
            let around = levels().find(|rules| rules.prefix <= directory.len());
            around.is_some_and(|rules| rules.matched(directory, directory, true) == Verdict::Excluded)
        })
    }

    /// These rules and, beneath the directory that the first `prefix` bytes of a path name, those made of `sources`.
    pub fn with(self: &Arc<Self>, prefix: usize, sources: Sources) -> Arc<Self> {
        let own =
            std::array::from_fn(|kind| sources.texts[kind].as_deref().map_or_else(Gitignore::empty, parse));
        if !sources.repository && own.iter().all(Gitignore::is_empty) {
            return self.clone();
        }
        Arc::new(Self {
            above: Some(self.clone()),
            prefix,
            own,
            in_repository: sources.repository || self.in_repository,
            sources,
            global: self.global.clone(),
        })
    }

    /// What the rules say about the entry with the full path `path`, of which `relative` is what follows the start.
    pub fn matched(&self, path: &[u8], relative: &[u8], is_directory: bool) -> Verdict {
        let mut found = [Verdict::Silent; EXCLUDE + 1];
        let mut reached = self.in_repository;
        let mut next = Some(self);
        while let Some(rules) = next {
            let candidate = Path::new(OsStr::from_bytes(path.get(rules.prefix..).unwrap_or(path)));
            for (kind, own) in rules.own.iter().enumerate() {
                let holds = kind < FIRST_OF_GIT || reached;
                if holds && found[kind] == Verdict::Silent && !own.is_empty() {
                    found[kind] = own.matched(candidate, is_directory).into();
                }
            }
            reached &= !rules.sources.repository;
            next = rules.above.as_deref();
        }
        let decided = found.into_iter().find(|verdict| *verdict != Verdict::Silent);
        decided.unwrap_or_else(|| match self.in_repository && !self.global.rules.is_empty() {
            true => self.global.rules.matched(Path::new(OsStr::from_bytes(relative)), is_directory).into(),
            false => Verdict::Silent,
        })
    }
}

/// What rules say about one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing.
    Silent,
    /// It is left out.
    Excluded,
    /// It is wanted, also if it is hidden.
    Wanted,
}

impl<T> From<Match<T>> for Verdict {
    fn from(found: Match<T>) -> Self {
        match found {
            Match::None => Self::Silent,
            Match::Ignore(_) => Self::Excluded,
            Match::Whitelist(_) => Self::Wanted,
        }
    }
}

/// How many bytes of the path of an entry name `directory`.
fn prefix_of(directory: &Path) -> usize {
    // `join` with nothing leaves a slash at the end.
    let name = directory.as_os_str().as_bytes();
    name.strip_suffix(b"/").unwrap_or(name).len() + 1
}

fn parse(bytes: &[u8]) -> Gitignore {
    let mut builder = GitignoreBuilder::new("");
    let text = String::from_utf8_lossy(bytes);
    for line in text.strip_prefix('\u{feff}').unwrap_or(&text).lines() {
        // A line that is no pattern excludes nothing, as in git.
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

/// Opens a file above the roots without waiting, should it be a FIFO.
fn open_cautiously(path: &Path) -> io::Result<File> {
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
    File::options().read(true).custom_flags(flags).open(path)
}

fn read_rules(file: io::Result<File>) -> Option<Vec<u8>> {
    let file = file.ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > LONGEST {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn in_jail(directory: &JailPath, name: &str) -> Option<Vec<u8>> {
    let file = directory.join(name).ok()?.open_read().ok()?;
    read_rules(Ok(file.into_file()))
}

/// The repository's own exclusions. In a worktree `.git` is a file that names the repository.
fn exclude_file(directory: &JailPath) -> Option<Vec<u8>> {
    let git = directory.join(".git").ok()?;
    let Some(pointer) = in_jail(directory, ".git") else {
        return in_jail(&git.join("info").ok()?, "exclude");
    };
    let pointer = String::from_utf8(pointer).ok()?;
    let own = follow(directory, pointer.lines().next()?.strip_prefix("gitdir: ")?)?;
    let common = in_jail(&own, "commondir").and_then(|text| String::from_utf8(text).ok());
    let shared = match common {
        Some(common) => follow(&own, common.lines().next()?)?,
        None => own,
    };
    in_jail(&shared.join("info").ok()?, "exclude")
}

/// What a path in a file of git means, if it is in the jail.
fn follow(from: &JailPath, path: &str) -> Option<JailPath> {
    from.resolve(path).ok()
}
