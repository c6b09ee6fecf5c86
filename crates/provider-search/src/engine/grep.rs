//! Searching a tree for a pattern.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use grep_matcher::Matcher;
use grep_searcher::{BinaryDetection, MmapChoice, Searcher, SearcherBuilder};
use provider_core::jail::{FileKind, JailPath, Metadata, PathError};

use crate::engine::encoding;
use crate::engine::hits::{FileHits, First, Totals, Unit};
use crate::engine::lines::{Checked, Lines};
use crate::engine::matcher::{Engine, Pattern};
use crate::engine::stop::Stop;
use crate::engine::walk::{self, Entry, LeftOut, Visitor};

/// Memory for one file that must be held whole: a hit over line ends, or one enormous line.
const LARGEST_HELD: usize = 64 << 20;
/// A file in another encoding is decoded as a whole up to this size.
const LARGEST_DECODED: u64 = 16 << 20;
/// Errors that are named; beyond, they are counted.
const NAMED_ERRORS: usize = 50;

/// What is searched, and what is wanted of it.
pub struct Query<'a> {
    /// What is looked for.
    pub pattern: &'a Pattern,
    /// Which files.
    pub walk: &'a walk::Options,
    /// What counts as one result.
    pub unit: Unit,
    /// How many results, from the first in the order of paths, are kept.
    pub first: usize,
    /// Lines shown before a hit.
    pub before: usize,
    /// Lines shown after a hit.
    pub after: usize,
    /// Whether files with NUL bytes are searched like text.
    pub binary: bool,
    /// Told of each file with hits as soon as it is searched.
    pub found: &'a (dyn Fn(&FileHits) + Sync),
}

/// What a search came to.
#[derive(Debug, Default)]
pub struct Findings {
    /// The first files with hits, in the order of paths.
    pub files: Vec<FileHits>,
    /// All that was found.
    pub totals: Totals,
    /// What was looked at and what was not.
    pub tally: Tally,
    /// The first errors, by path from the start.
    pub errors: Vec<(Vec<u8>, String)>,
}

/// What was looked at and what was not.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Files that were searched.
    pub searched: u64,
    /// Files and directories that ignore files exclude.
    pub ignored: u64,
    /// Files and directories whose name begins with a dot.
    pub hidden: u64,
    /// Files that are not text.
    pub binary: u64,
    /// FIFOs, sockets and devices.
    pub special: u64,
    /// Files that would need too much memory.
    pub too_large: u64,
    /// Symbolic links that lead out of the roots.
    pub outside: u64,
    /// Files and directories that a `deny` pattern covers.
    pub denied: u64,
    /// Files that are none of the types or globs asked for.
    pub filtered: u64,
    /// Everything that could not be read.
    pub failed: u64,
    /// A path that was being searched towards the end.
    pub reached: Vec<u8>,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.searched += other.searched;
        self.ignored += other.ignored;
        self.hidden += other.hidden;
        self.binary += other.binary;
        self.special += other.special;
        self.too_large += other.too_large;
        self.outside += other.outside;
        self.denied += other.denied;
        self.filtered += other.filtered;
        self.failed += other.failed;
        self.reached = std::mem::take(&mut self.reached).max(other.reached);
    }
}

/// Searches `start`, a directory or a file.
///
/// # Errors
/// The start cannot be opened.
pub fn grep(start: &JailPath, query: &Query<'_>, stop: &Stop) -> Result<Findings, PathError> {
    match &query.pattern.engine {
        Engine::Linear(matcher) => search(start, query, stop, matcher),
        Engine::Backtracking(engine) => search(start, query, stop, &engine.until(stop)),
    }
}

fn search<M: Matcher + Clone + Sync + Send>(
    start: &JailPath,
    query: &Query<'_>,
    stop: &Stop,
    matcher: &M,
) -> Result<Findings, PathError> {
    let errors = Mutex::new(Vec::new());
    let new = || FileSearch::new(start, query, stop, matcher.clone(), &errors);
    let searches = if start.metadata()?.kind == FileKind::Directory {
        walk::walk(start, query.walk, stop, new)?
    } else {
        let file = start.open_read()?;
        let mut search = new();
        let metadata = file.metadata().clone();
        search.file(b"", file.into_file(), &metadata);
        vec![search]
    };
    let (mut parts, mut tally) = (Vec::new(), Tally::default());
    for search in searches {
        parts.push(search.first);
        tally.add(search.tally);
    }
    let (files, totals) = First::merged(parts);
    let mut errors = errors.into_inner().unwrap_or_default();
    errors.sort();
    Ok(Findings { files, totals, tally, errors })
}

/// One thread of a search.
struct FileSearch<'a, M> {
    query: &'a Query<'a>,
    stop: &'a Stop,
    matcher: M,
    /// Keeps lines.
    keeping: Searcher,
    /// Counts them.
    counting: Searcher,
    first: First,
    tally: Tally,
    errors: &'a Mutex<Vec<(Vec<u8>, String)>>,
    /// The start behind links, from which links are followed as text.
    place: Option<JailPath>,
}

impl<'a, M: Matcher> FileSearch<'a, M> {
    fn new(
        start: &JailPath,
        query: &'a Query<'a>,
        stop: &'a Stop,
        matcher: M,
        errors: &'a Mutex<Vec<(Vec<u8>, String)>>,
    ) -> Self {
        let binary = if query.binary { BinaryDetection::none() } else { BinaryDetection::quit(0) };
        let mut builder = SearcherBuilder::new();
        builder
            .multi_line(query.pattern.multiline)
            .memory_map(MmapChoice::never())
            .heap_limit(Some(LARGEST_HELD))
            .binary_detection(binary);
        let counting = builder.line_number(false).build();
        let keeping =
            builder.line_number(true).before_context(query.before).after_context(query.after).build();
        let first = First::new(query.unit, query.first);
        let place = start.resolved().ok();
        Self { query, stop, matcher, keeping, counting, first, tally: Tally::default(), errors, place }
    }

    /// Searches one open file.
    fn file(&mut self, path: &[u8], file: File, metadata: &Metadata) {
        if self.query.pattern.multiline && metadata.size > LARGEST_HELD as u64 {
            self.tally.too_large += 1;
            return;
        }
        self.tally.reached.clear();
        self.tally.reached.extend_from_slice(path);
        let wanted = match self.query.unit {
            Unit::Hit => self.first.wanted(path),
            Unit::File => 0,
        };
        let searcher = if wanted > 0 { &mut self.keeping } else { &mut self.counting };
        let mut reader = Checked::new(&file, metadata.size, self.stop, self.query.pattern.beyond_ascii);
        let mut sink = Lines::new(&self.matcher, self.stop, wanted, self.query.pattern.multiline);
        let result = searcher.search_reader(&self.matcher, &mut reader, &mut sink);
        let binary = sink.binary;
        let mut hits = sink.into_hits();
        let is_text = reader.text.as_ref().is_none_or(|text| !text.is_invalid());
        match result {
            Ok(()) if binary => self.tally.binary += 1,
            Ok(()) => self.tally.searched += 1,
            Err(_) if self.stop.reached() => {}
            // The searcher's own errors are about memory.
            Err(error) if error.raw_os_error().is_none() => self.tally.too_large += 1,
            Err(error) => self.error(path, &error),
        }
        if hits.total == 0 && !is_text && !binary && metadata.size <= LARGEST_DECODED {
            hits = self.decoded(&file, wanted).unwrap_or(hits);
        }
        if hits.total == 0 {
            return;
        }
        hits.path = path.into();
        hits.encoding = hits.encoding.or_else(|| announced(&file));
        if wanted > 0 || self.query.unit == Unit::File {
            (self.query.found)(&hits);
        }
        self.first.add(hits);
    }

    /// Searches a file that is not UTF-8 as what it is, for a pattern that names characters beyond ASCII.
    fn decoded(&mut self, mut file: &File, wanted: usize) -> Option<FileHits> {
        let mut bytes = Vec::new();
        io::Seek::seek(&mut file, io::SeekFrom::Start(0)).ok()?;
        file.take(LARGEST_DECODED).read_to_end(&mut bytes).ok()?;
        let encoding = encoding::guess(&bytes);
        let text = encoding.decode_without_bom_handling(&bytes).0;
        let searcher = if wanted > 0 { &mut self.keeping } else { &mut self.counting };
        let mut sink = Lines::new(&self.matcher, self.stop, wanted, self.query.pattern.multiline);
        searcher.search_slice(&self.matcher, text.as_bytes(), &mut sink).ok()?;
        Some(FileHits { encoding: Some(encoding::name(encoding)), ..sink.into_hits() })
    }

    fn error(&mut self, path: &[u8], error: &io::Error) {
        self.tally.failed += 1;
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        if errors.len() < NAMED_ERRORS {
            errors.push((path.to_vec(), words(error)));
        }
    }

    fn leads_out(&self, path: &[u8]) -> bool {
        let names = Path::new(OsStr::from_bytes(path)).iter();
        let link = self
            .place
            .clone()
            .and_then(|place| names.into_iter().try_fold(place, |place, name| place.join(name).ok()));
        link.is_some_and(|link| matches!(link.resolved(), Err(PathError::OutsideRoot { .. })))
    }
}

/// What the operating system says, with the name of the error instead of its number.
pub(crate) fn words(error: &io::Error) -> String {
    use rustix::io::Errno;
    let text = error.to_string();
    let words = text.split_once(" (os error").map_or(text.as_str(), |(words, _)| words);
    let name = match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::ACCESS) => "EACCES",
        Some(Errno::PERM) => "EPERM",
        Some(Errno::IO) => "EIO",
        Some(Errno::MFILE) => "EMFILE",
        Some(Errno::NFILE) => "ENFILE",
        Some(Errno::NAMETOOLONG) => "ENAMETOOLONG",
        _ => return words.to_owned(),
    };
    format!("{words} ({name})")
}

/// The encoding that the file itself announces.
fn announced(file: &File) -> Option<String> {
    let mut start = [0; 2];
    file.read_exact_at(&mut start, 0).ok()?;
    encoding::by_mark(&start).map(str::to_owned)
}

impl<M: Matcher + Send> Visitor for FileSearch<'_, M> {
    fn visit(&mut self, entry: &Entry<'_>) {
        match entry.kind {
            FileKind::Directory => {}
            FileKind::File => match entry.directory.open_file(entry.name) {
                Ok((file, metadata)) => self.file(entry.path, file, &metadata),
                Err(error) if is_gone(&error) => {}
                Err(error) => self.error(entry.path, &error),
            },
            FileKind::Symlink => self.tally.outside += u64::from(self.leads_out(entry.path)),
            _ => self.tally.special += 1,
        }
    }

    fn leave_out(&mut self, _entry: &Entry<'_>, why: LeftOut) {
        let count = match why {
            LeftOut::Ignored => &mut self.tally.ignored,
            LeftOut::Hidden => &mut self.tally.hidden,
            LeftOut::Filtered => &mut self.tally.filtered,
            LeftOut::Denied => &mut self.tally.denied,
        };
        *count += 1;
    }

    fn fail(&mut self, path: &[u8], error: io::Error) {
        self.error(path, &error);
    }
}

/// Whether what was listed is no longer there, or no longer a file.
fn is_gone(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::NOENT | Errno::LOOP | Errno::NXIO | Errno::NOTDIR))
}
