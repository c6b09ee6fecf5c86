//! Lists in SQLite: durable, and safe with any number of processes on one file.
//!
//! A change reads its session's list, applies the whole set of changes to it in memory, and writes what differs, all
//! within one immediate transaction. So nothing is lost between processes, and a set is there whole or not at all.

use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, Row, Transaction, TransactionBehavior, params};

use crate::engine::plan::{self, Change, List, NewTask, PlanError};
use crate::engine::task::{Status, Task};

/// The file below the state folder.
const FILE: &str = "task/tasks.sqlite3";
/// The version of the tables.
const SCHEMA_VERSION: i64 = 1;
/// How long a call waits for other processes. Less than a call may take.
const BUSY: Duration = Duration::from_secs(7);

const SCHEMA: &str = "
CREATE TABLE session (
    id TEXT PRIMARY KEY,
    revision INTEGER NOT NULL,
    next_id INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE task (
    session TEXT NOT NULL REFERENCES session (id),
    id INTEGER NOT NULL,
    title TEXT NOT NULL,
    description TEXT NOT NULL,
    status TEXT NOT NULL,
    parent INTEGER,
    revision INTEGER NOT NULL,
    PRIMARY KEY (session, id)
) WITHOUT ROWID;
CREATE TABLE dependency (
    session TEXT NOT NULL,
    task INTEGER NOT NULL,
    depends_on INTEGER NOT NULL,
    PRIMARY KEY (session, task, depends_on)
) WITHOUT ROWID;
CREATE TABLE file (
    session TEXT NOT NULL,
    task INTEGER NOT NULL,
    position INTEGER NOT NULL,
    path TEXT NOT NULL,
    PRIMARY KEY (session, task, position)
) WITHOUT ROWID;
";

/// Why a list cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    /// What was asked for is refused; nothing was changed.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Other processes kept the file for too long.
    #[error("the task list is in use by other processes for more than {} s; nothing was changed, try again", BUSY.as_secs())]
    Busy,
    /// The file cannot be used.
    #[error("{}: {reason}", .path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

/// The tasks that were added or changed, with the list around them.
#[derive(Debug)]
pub(crate) struct Changed {
    /// The ids, in the order of the call.
    pub(crate) ids: Vec<u64>,
    /// The list as it is now.
    pub(crate) list: List,
    /// Its revision.
    pub(crate) revision: u64,
}

/// The lists of all sessions.
pub(crate) struct Store {
    path: PathBuf,
    open: Mutex<Open>,
}

/// A connection, and the file it is to: one that was removed or replaced is opened anew.
struct Open {
    connection: Connection,
    file: (u64, u64),
}

impl Store {
    /// Opens the file below `state`, making it and its folder for this user alone.
    pub(crate) fn open(state: &Path) -> Result<Self, StoreError> {
        let path = state.join(FILE);
        let open = Open::new(&path)?;
        Ok(Self { path, open: Mutex::new(open) })
    }

    /// Adds tasks, all or none.
    pub(crate) fn create(&self, session: &str, new: &[NewTask]) -> Result<Changed, StoreError> {
        self.write(session, |list, next, revision| plan::add(list, new, next, revision))
    }

    /// Changes tasks, all or none.
    pub(crate) fn update(&self, session: &str, changes: &[Change]) -> Result<Changed, StoreError> {
        self.write(session, |list, _, revision| plan::change(list, changes, revision))
    }

    /// Notes files on the task that was begun last among those in progress. Answers its id.
    pub(crate) fn note_files(&self, session: &str, files: &[String]) -> Result<Option<u64>, StoreError> {
        let changed = self.write(session, |list, _, revision| {
            let current = list.values_mut().filter(|task| task.status == Status::InProgress);
            let Some(task) = current.max_by_key(|task| (task.revision, task.id)) else {
                return Ok(Vec::new());
            };
            let new: Vec<String> = files.iter().filter(|path| !task.files.contains(path)).cloned().collect();
            if new.is_empty() {
                return Ok(Vec::new());
            }
            task.files.extend(new);
            task.revision = revision;
            Ok(vec![task.id])
        })?;
        Ok(changed.ids.first().copied())
    }

    /// A session's list and its revision.
    pub(crate) fn list(&self, session: &str) -> Result<(List, u64), StoreError> {
        let mut open = self.connection()?;
        let transaction = open.connection.transaction().map_err(|error| self.error(&error))?;
        let read = || -> rusqlite::Result<(List, u64)> {
            let (revision, _) = counters(&transaction, session)?;
            Ok((load(&transaction, session)?, revision))
        };
        read().map_err(|error| self.error(&error))
    }

    fn write(
        &self,
        session: &str,
        change: impl FnOnce(&mut List, u64, u64) -> Result<Vec<u64>, PlanError>,
    ) -> Result<Changed, StoreError> {
        let failed = |error: rusqlite::Error| self.error(&error);
        let mut open = self.connection()?;
        let transaction =
            open.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        let (revision, next) = counters(&transaction, session).map_err(failed)?;
        let mut list = load(&transaction, session).map_err(failed)?;
        let ids = change(&mut list, next, revision + 1)?;
        if ids.is_empty() {
            return Ok(Changed { ids, list, revision });
        }
        let revision = revision + 1;
        let next = list.last_key_value().map_or(next, |(last, _)| next.max(last + 1));
        save(&transaction, session, revision, next, ids.iter().filter_map(|id| list.get(id)))
            .map_err(failed)?;
        transaction.commit().map_err(failed)?;
        Ok(Changed { ids, list, revision })
    }

    fn connection(&self) -> Result<MutexGuard<'_, Open>, StoreError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if file_identity(&self.path) != Some(open.file) {
            *open = Open::new(&self.path)?;
        }
        Ok(open)
    }

    fn error(&self, error: &rusqlite::Error) -> StoreError {
        unusable(&self.path, error)
    }
}

impl Open {
    fn new(path: &Path) -> Result<Self, StoreError> {
        let io =
            |error: std::io::Error| StoreError::Unusable { path: path.to_owned(), reason: error.to_string() };
        if let Some(folder) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(io)?;
        }
        // SQLite would make it readable for others.
        std::fs::File::options().create(true).append(true).mode(0o600).open(path).map_err(io)?;
        let mut connection = Connection::open(path).map_err(|error| unusable(path, &error))?;
        prepare(&mut connection).map_err(|error| unusable(path, &error))?;
        match version(&connection) {
            Ok(SCHEMA_VERSION) => {}
            Ok(newer) => {
                let reason = format!(
                    "was written by a newer version (tables {newer}, this one knows {SCHEMA_VERSION}); update this provider, \
                     or give another state_dir"
                );
                return Err(StoreError::Unusable { path: path.to_owned(), reason });
            }
            Err(error) => return Err(unusable(path, &error)),
        }
        let file = file_identity(path).unwrap_or_default();
        Ok(Self { connection, file })
    }
}

/// Device and inode.
fn file_identity(path: &Path) -> Option<(u64, u64)> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

fn unusable(path: &Path, error: &rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => StoreError::Busy,
        _ => StoreError::Unusable { path: path.to_owned(), reason: error.to_string() },
    }
}

/// Sets the connection up and makes the tables where there are none.
fn prepare(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    // A change that was answered survives a crash of the machine.
    connection.pragma_update(None, "synchronous", "full")?;
    connection.set_prepared_statement_cache_capacity(32);
    if version(connection)? > 0 {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have made them meanwhile.
    if version(&transaction)? == 0 {
        transaction.execute_batch(SCHEMA)?;
        transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
    }
    transaction.commit()
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// The revision of a session's list, and its next free id.
fn counters(transaction: &Transaction<'_>, session: &str) -> rusqlite::Result<(u64, u64)> {
    let mut statement = transaction.prepare_cached("SELECT revision, next_id FROM session WHERE id = ?1")?;
    let mut rows = statement.query([session])?;
    match rows.next()? {
        Some(row) => Ok((unsigned(row, 0)?, unsigned(row, 1)?)),
        None => Ok((0, 1)),
    }
}

fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(i64::unsigned_abs)
}

/// SQLite's integers are signed; ids and revisions are counted from one and stay far below.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn load(transaction: &Transaction<'_>, session: &str) -> rusqlite::Result<List> {
    let mut list = List::new();
    let mut tasks = transaction.prepare_cached(
        "SELECT id, title, description, status, parent, revision FROM task WHERE session = ?1",
    )?;
    let mut rows = tasks.query([session])?;
    while let Some(row) = rows.next()? {
        let id = unsigned(row, 0)?;
        let task = Task {
            id,
            title: row.get(1)?,
            description: row.get(2)?,
            status: Status::parse(row.get_ref(3)?.as_str()?).unwrap_or_default(),
            parent: row.get::<_, Option<i64>>(4)?.map(i64::unsigned_abs),
            depends_on: Vec::new(),
            files: Vec::new(),
            revision: unsigned(row, 5)?,
        };
        list.insert(id, task);
    }
    let mut dependencies = transaction.prepare_cached(
        "SELECT task, depends_on FROM dependency WHERE session = ?1 ORDER BY task, depends_on",
    )?;
    let mut rows = dependencies.query([session])?;
    while let Some(row) = rows.next()? {
        if let Some(task) = list.get_mut(&unsigned(row, 0)?) {
            task.depends_on.push(unsigned(row, 1)?);
        }
    }
    let mut files = transaction
        .prepare_cached("SELECT task, path FROM file WHERE session = ?1 ORDER BY task, position")?;
    let mut rows = files.query([session])?;
    while let Some(row) = rows.next()? {
        if let Some(task) = list.get_mut(&unsigned(row, 0)?) {
            task.files.push(row.get(1)?);
        }
    }
    Ok(list)
}

fn save<'a>(
    transaction: &Transaction<'_>,
    session: &str,
    revision: u64,
    next: u64,
    tasks: impl Iterator<Item = &'a Task>,
) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "INSERT INTO session (id, revision, next_id) VALUES (?1, ?2, ?3)
             ON CONFLICT (id) DO UPDATE SET revision = ?2, next_id = ?3",
        )?
        .execute(params![session, signed(revision), signed(next)])?;
    for task in tasks {
        save_task(transaction, session, task)?;
    }
    Ok(())
}

fn save_task(transaction: &Transaction<'_>, session: &str, task: &Task) -> rusqlite::Result<()> {
    let id = signed(task.id);
    transaction
        .prepare_cached(
            "INSERT OR REPLACE INTO task (session, id, title, description, status, parent, revision)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![
            session,
            id,
            task.title,
            task.description,
            task.status.name(),
            task.parent.map(signed),
            signed(task.revision)
        ])?;
    transaction
        .prepare_cached("DELETE FROM dependency WHERE session = ?1 AND task = ?2")?
        .execute(params![session, id])?;
    let mut depend = transaction
        .prepare_cached("INSERT INTO dependency (session, task, depends_on) VALUES (?1, ?2, ?3)")?;
    for first in &task.depends_on {
        depend.execute(params![session, id, signed(*first)])?;
    }
    let mut note = transaction.prepare_cached(
        "INSERT OR IGNORE INTO file (session, task, position, path) VALUES (?1, ?2, ?3, ?4)",
    )?;
    for (position, path) in (0_i64..).zip(&task.files) {
        note.execute(params![session, id, position, path])?;
    }
    Ok(())
}
