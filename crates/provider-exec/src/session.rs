//! What is remembered of a session: where its next command starts, and its temporary directory.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use provider_core::ToolError;
use provider_core::jail::{JailPath, Roots};

/// The sessions of a provider.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    sessions: HashMap<String, Session>,
    /// How many there have been.
    count: usize,
}

#[derive(Debug, Default)]
struct Session {
    /// Where the host said the session is, when it was last heard of.
    given: PathBuf,
    /// Where its last command left it.
    moved: Option<PathBuf>,
    /// The number that names its temporary directory.
    number: usize,
    /// It has been told which variables its commands do not get.
    told: bool,
}

/// Where a command starts.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) directory: JailPath,
    /// What the caller should know about it.
    pub(crate) note: Option<String>,
}

impl Sessions {
    fn locked(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, id: &str, work: impl FnOnce(&mut Session) -> T) -> T {
        let mut known = self.locked();
        let Known { sessions, count } = &mut *known;
        work(sessions.entry(id.to_owned()).or_insert_with(|| {
            *count += 1;
            Session { number: *count, ..Session::default() }
        }))
    }

    /// Forgets a session; answers the name of its directories.
    pub(crate) fn forget(&self, id: &str) -> Option<String> {
        self.locked().sessions.remove(id).map(|session| directory_name(session.number))
    }

    /// Where a command of the session starts. `asked` wins; else it is where the last command left the session, unless
    /// the host has since named another directory; else `given`.
    pub(crate) fn start(
        &self,
        roots: &Roots,
        id: &str,
        given: &Path,
        asked: Option<&str>,
    ) -> Result<Start, ToolError> {
        let moved = self.with(id, |session| {
            if session.given != given {
                session.given = given.to_owned();
                session.moved = None;
            }
            session.moved.clone()
        });
        located(roots, moved.as_deref().unwrap_or(given), asked)
    }

    /// The same for a preview, which changes nothing.
    pub(crate) fn peek(
        &self,
        roots: &Roots,
        id: &str,
        given: &Path,
        asked: Option<&str>,
    ) -> Result<Start, ToolError> {
        let moved = self.locked().sessions.get(id).and_then(|session| {
            let same = given.as_os_str().is_empty() || session.given == given;
            session.moved.clone().filter(|_| same)
        });
        located(roots, moved.as_deref().unwrap_or(given), asked)
    }

    /// Where the last command left the session.
    pub(crate) fn current(&self, id: &str) -> Option<PathBuf> {
        self.locked().sessions.get(id)?.moved.clone()
    }

    /// A command of the session ended in `directory`.
    pub(crate) fn moved(&self, id: &str, directory: &Path) {
        self.with(id, |session| session.moved = Some(directory.to_owned()));
    }

    /// The name of the session's own directories.
    pub(crate) fn directory_name(&self, id: &str) -> String {
        directory_name(self.with(id, |session| session.number))
    }

    /// Whether the session is heard for the first time.
    pub(crate) fn tell_once(&self, id: &str) -> bool {
        self.with(id, |session| !std::mem::replace(&mut session.told, true))
    }
}

fn directory_name(number: usize) -> String {
    format!("session-{number}")
}

fn located(roots: &Roots, base: &Path, asked: Option<&str>) -> Result<Start, ToolError> {
    match asked {
        Some(asked) => Ok(Start { directory: roots.resolve(asked, base)?, note: None }),
        None => existing(roots.working_directory(base)?),
    }
}

/// The directory, or the nearest one above that is still there.
fn existing(directory: JailPath) -> Result<Start, ToolError> {
    let wanted = directory.to_string();
    let missing = directory.absolute();
    let mut next = directory;
    let mut note = None;
    loop {
        if next.exists()? {
            return Ok(Start { directory: next, note });
        }
        let Some(parent) = next.parent() else {
            return Err(ToolError::not_found(format!(
                "the working directory {wanted} does not exist any more"
            )));
        };
        note = Some(format!(
            "the working directory {} does not exist any more; this command ran in {}",
            missing.display(),
            parent.absolute().display()
        ));
        next = parent;
    }
}
