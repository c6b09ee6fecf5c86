//! What was changed, so that it can be taken back: at once if only a part of it was done, later if somebody asks.
//!
//! Every change is a list of [`Step`]s. It is written down before the first of them is taken, and counts as made when
//! its file moves from `pending/` to `changes/`. Who finds a pending change whose maker is gone takes back what was
//! done of it, step by step from the last; so several files are changed all or not at all. Undoing a change is another
//! change, with the opposite steps, and can be undone itself.
//!
//! Where the state folder cannot be written everything works all the same, only that nothing can be taken back.

mod delta;
mod entry;
mod mark;
mod recover;
pub(crate) mod reverse;
mod store;
mod strays;
mod transaction;

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use provider_core::jail::{Depot, JailPath, Root, Roots};
use rustix::fs::{Access, AtFlags, CWD, accessat, fsync};
use ulid::Generator;

pub(crate) use delta::Delta;
pub(crate) use entry::{Entry, Header, Step};
pub(crate) use mark::Mark;
pub(crate) use store::{QUOTA, Store};
use strays::Note;
pub(crate) use transaction::{Exchanged, Transaction, ask};

/// Why nothing is kept where there is neither a configured state folder nor a home directory.
const NO_HOME: &str = "there is no home directory to keep it in";

/// How many changes are made between two looks at what has become too old or too much.
const PRUNE_EVERY: u64 = 64;

/// The journals of all roots of one process.
pub(crate) struct Journal {
    /// The folder that has one folder for each root. `None` if there is no home directory.
    base: Option<PathBuf>,
    ids: Mutex<Generator>,
    made: AtomicU64,
    strays: strays::Strays,
}

impl Journal {
    /// A journal below the state folder, where there is one.
    pub(crate) fn new(state: Option<PathBuf>) -> Self {
        Self {
            base: state.map(|state| state.join("filesystem")),
            ids: Mutex::new(Generator::new()),
            made: AtomicU64::new(0),
            strays: strays::Strays::default(),
        }
    }

    /// The folder that nobody but this module may touch.
    pub(crate) fn base(&self) -> Option<&Path> {
        self.base.as_deref()
    }

    /// The folder of a root, if anything was ever changed below that.
    pub(crate) fn store(&self, root: &Root) -> Option<Store> {
        Store::existing(self.base.as_deref()?, root.real_path())
    }

    /// Why nothing can be kept, as far as that shows without trying.
    pub(crate) fn unusable(&self) -> Option<String> {
        let Some(base) = &self.base else { return Some(NO_HOME.to_owned()) };
        let there = base.ancestors().find(|path| path.exists())?;
        let needed = Access::WRITE_OK | Access::EXEC_OK;
        let usable = there.is_dir() && accessat(CWD, there, needed, AtFlags::EACCESS).is_ok();
        (!usable).then(|| format!("the state folder {} cannot be written", base.display()))
    }

    fn stores(&self, roots: &Roots) -> Vec<Store> {
        roots.iter().filter_map(|root| self.store(root)).collect()
    }

    /// Takes back what processes that are gone have left half done. Answers what there is to say about it.
    pub(crate) fn recover(&self, roots: &Roots) -> Vec<String> {
        self.stores(roots).iter().flat_map(|store| recover::recover(self, store, roots)).collect()
    }

    /// Where the change `id` below any of the roots keeps what it took away.
    pub(crate) fn depot(&self, roots: &Roots, id: &str) -> Option<Depot> {
        let kept = self.stores(roots).iter().find_map(|store| store.kept(id))?;
        Depot::open(&kept).ok()
    }

    /// Clears away what is too old or too much.
    pub(crate) fn prune(&self, roots: &Roots) {
        self.stores(roots).iter().for_each(|store| store.prune(SystemTime::now()));
    }

    /// Says beforehand that a temporary file is going to be made beside `path`, so that it is found should this process
    /// be killed.
    pub(crate) fn expect_temporary(&self, path: &JailPath) {
        // A root itself needs no note: it is looked through every time.
        if let Some(parent) = path.parent().filter(|parent| parent.file_name().is_some()) {
            self.note(&parent, Note::Temporary);
        }
    }

    /// Says beforehand that a directory is going to be made.
    pub(crate) fn expect_directory(&self, path: &JailPath) {
        self.note(path, Note::Expected);
    }

    /// Says that a directory that was made is a change's now, or is gone again.
    pub(crate) fn directory_stays(&self, path: &JailPath) {
        self.note(path, Note::Stays);
    }

    fn note(&self, directory: &JailPath, note: Note) {
        if let Some(base) = &self.base {
            self.strays.note(base, directory, note);
        }
    }

    /// Removes the temporary files and empty directories that processes which are gone have left, wherever they are.
    pub(crate) fn sweep(&self, roots: &Roots) {
        self.stores(roots).iter().for_each(|store| strays::sweep(store, roots));
    }

    /// Writes down what is about to be done below `root`.
    fn begin(&self, root: &Root, intent: Intent) -> Work {
        let now = SystemTime::now();
        let id = self.ids.lock().unwrap_or_else(PoisonError::into_inner).generate_from_datetime(now);
        let header = Header {
            id: id.map(|id| id.to_string()).unwrap_or_default(),
            tool: intent.tool,
            session: intent.session,
            at_ms: now
                .duration_since(SystemTime::UNIX_EPOCH)
                .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX)),
            undoes: intent.undoes,
            steps: intent.steps,
        };
        let entry = Entry { header, bytes: intent.bytes };
        let written = match &self.base {
            None => Err(NO_HOME.to_owned()),
            Some(base) => Written::create(base, root, &entry),
        };
        match written {
            Ok(written) => Work { entry, written: Some(written), unkept: None },
            Err(reason) => Work { entry, written: None, unkept: Some(reason) },
        }
    }

    fn prune_now_and_then(&self, store: &Store) {
        if self.made.fetch_add(1, Ordering::Relaxed) % PRUNE_EVERY == PRUNE_EVERY - 1 {
            store.prune(SystemTime::now());
        }
    }
}

/// What a change will do, and for whom.
struct Intent {
    tool: String,
    session: String,
    undoes: Option<String>,
    steps: Vec<Step>,
    bytes: Vec<u8>,
}

/// A change that is being made.
struct Work {
    entry: Entry,
    written: Option<Written>,
    /// Why it cannot be taken back later.
    unkept: Option<String>,
}

/// A change that is written down.
struct Written {
    store: Store,
    path: PathBuf,
    /// Locked for as long as the change is being made.
    file: File,
    depot: Option<Depot>,
    durable: bool,
}

impl Written {
    fn create(base: &Path, root: &Root, entry: &Entry) -> Result<Self, String> {
        let Header { id, steps, .. } = &entry.header;
        let removed: Vec<_> = steps.iter().filter_map(removed_bytes).collect();
        let kept: u64 = removed.iter().sum();
        if kept.saturating_add(entry.bytes.len() as u64) > QUOTA {
            let most = QUOTA >> 20;
            return Err(format!("it is more than the {most} MiB that are kept for taking changes back"));
        }
        let file = entry.to_bytes().map_err(|error| error.to_string())?;
        let cannot =
            |error: io::Error| format!("the state folder {} cannot be used: {error}", base.display());
        let store = Store::create(base, root.real_path()).map_err(cannot)?;
        let (path, opened) = store.begin(id).map_err(cannot)?;
        let durable = steps.len() > 1 || !steps.iter().all(Step::is_whole_by_itself);
        let mut written = Self { store, path, file: opened, depot: None, durable };
        match written.fill(id, &file, (!removed.is_empty()).then_some(kept)) {
            Ok(()) => Ok(written),
            Err(error) => {
                let _ = std::fs::remove_file(&written.path);
                written.forget_kept(id);
                Err(cannot(error))
            }
        }
    }

    fn fill(&mut self, id: &str, content: &[u8], kept: Option<u64>) -> io::Result<()> {
        self.file.write_all(content)?;
        if let Some(kept) = kept {
            self.depot = Some(Depot::open(&self.store.make_kept(id, kept)?)?);
        }
        if self.durable {
            self.file.sync_all()?;
            fsync(File::open(self.store.pending())?.as_fd())?;
        }
        Ok(())
    }

    fn forget_kept(&self, id: &str) {
        if let Some(kept) = self.store.kept(id) {
            store::remove_tree(&kept);
        }
    }
}

fn removed_bytes(step: &Step) -> Option<u64> {
    match step {
        Step::Remove { before, .. } => Some(before.size().1),
        _ => None,
    }
}

impl Work {
    fn steps(&self) -> &[Step] {
        &self.entry.header.steps
    }

    fn depot(&self) -> Option<&Depot> {
        self.written.as_ref()?.depot.as_ref()
    }

    /// Makes the change count. Answers its id, or why it has none.
    fn commit(self, journal: &Journal) -> Result<String, String> {
        let Some(written) = self.written else { return Err(self.unkept.unwrap_or_default()) };
        let id = self.entry.header.id;
        let made = written.store.changes().join(&id);
        if let Err(error) = std::fs::rename(&written.path, &made) {
            // Nobody may take it for half done.
            let _ = std::fs::remove_file(&written.path);
            return Err(format!("the state folder cannot be used: {error}"));
        }
        if written.durable
            && let Ok(changes) = File::open(written.store.changes())
        {
            let _ = fsync(&changes);
        }
        journal.prune_now_and_then(&written.store);
        Ok(id)
    }

    /// Lets nobody take it back, later or after a kill.
    fn forget(&self) {
        self.withdraw();
        if let Some(written) = &self.written {
            written.forget_kept(&self.entry.header.id);
        }
    }

    /// Lets nobody take it back after a kill. What it kept stays until it is forgotten.
    fn withdraw(&self) {
        if let Some(written) = &self.written {
            let _ = std::fs::remove_file(&written.path);
        }
    }

    /// Takes back what was done so far. What could not be is said, and tried again by the next one who looks.
    fn roll_back(self, journal: &Journal, roots: &Roots) -> Vec<String> {
        let left = recover::take_back(&self.entry, journal, roots);
        if left.is_empty() {
            self.forget();
        }
        left
    }
}

/// When a change was made, in words.
pub(crate) fn ago(at_ms: u64) -> String {
    let then = SystemTime::UNIX_EPOCH + Duration::from_millis(at_ms);
    let seconds = SystemTime::now().duration_since(then).unwrap_or_default().as_secs();
    match seconds {
        0..=119 => format!("{seconds} s ago"),
        120..=7199 => format!("{} min ago", seconds / 60),
        _ => format!("{} h ago", seconds / 3600),
    }
}
