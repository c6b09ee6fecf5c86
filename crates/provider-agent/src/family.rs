//! How deep and how many, for all subagents that come from one first caller.
//!
//! The first provider sets the limits; each subagent's environment carries what is left of them, and a provider below
//! takes the smaller of that and its own. The number is kept in lock files: a running subagent holds one, and the
//! system lets go of it when the provider that started it is gone, however that ends.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};
use tempfile::TempDir;

/// How deep this provider is: 0 for the first.
const DEPTH: &str = "PLUGGABLEHARNESS_SUBAGENT_DEPTH";
/// How many levels may still be opened.
const LEVELS: &str = "PLUGGABLEHARNESS_SUBAGENT_LEVELS";
/// The folder of lock files.
const PLACES: &str = "PLUGGABLEHARNESS_SUBAGENT_PLACES";
/// When everything must have ended, in milliseconds since 1970.
const UNTIL: &str = "PLUGGABLEHARNESS_SUBAGENT_UNTIL";

/// The limits of this provider's subagents.
#[derive(Debug)]
pub(crate) struct Family {
    depth: u32,
    levels: u32,
    children: u32,
    until: Option<SystemTime>,
    places: Mutex<Places>,
}

/// Where the lock files are.
#[derive(Debug)]
enum Places {
    /// Nowhere yet; they are made with the first subagent.
    None,
    /// In a folder of our own, which goes with us.
    Own(TempDir),
    /// In the folder of the first provider.
    Inherited(PathBuf),
}

/// The right to run one subagent, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    _lock: File,
}

/// Why there is no place.
#[derive(Debug)]
pub(crate) enum NoPlace {
    /// This deep no subagent may be started; the depth.
    TooDeep(u32),
    /// So many run already.
    Full(u32),
    /// The lock files cannot be used.
    Unusable(io::Error),
}

impl Family {
    /// The limits in the environment, and the provider's own.
    pub(crate) fn new(
        max_depth: u32,
        max_children: u32,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Self {
        let text = |name: &str| variable(name).and_then(|value| value.into_string().ok());
        let number = |name: &str| text(name).and_then(|value| value.parse::<u64>().ok());
        let small = |name: &str| number(name).and_then(|number| u32::try_from(number).ok());
        let depth = small(DEPTH).unwrap_or(0);
        let own = max_depth.saturating_sub(depth);
        let places = match text(PLACES).map(PathBuf::from).filter(|path| path.is_absolute()) {
            Some(path) => Places::Inherited(path),
            None => Places::None,
        };
        Self {
            depth,
            levels: small(LEVELS).map_or(own, |inherited| inherited.min(own)),
            children: max_children,
            until: number(UNTIL).map(|until| UNIX_EPOCH + Duration::from_millis(until)),
            places: Mutex::new(places),
        }
    }

    /// How many levels may be opened below this provider.
    pub(crate) fn levels(&self) -> u32 {
        self.levels
    }

    /// How long a subagent may work, when it may work for `wanted` by its own provider.
    pub(crate) fn time(&self, wanted: Duration) -> Duration {
        let left = self.until.map(|until| until.duration_since(SystemTime::now()).unwrap_or_default());
        left.map_or(wanted, |left| left.min(wanted))
    }

    /// Takes a place for one subagent.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn enter(&self) -> Result<Place, NoPlace> {
        if self.levels == 0 {
            return Err(NoPlace::TooDeep(self.depth));
        }
        let folder = self.folder().map_err(NoPlace::Unusable)?;
        for number in 0..self.children {
            match lock(&folder.join(number.to_string())) {
                Ok(Some(lock)) => return Ok(Place { _lock: lock }),
                Ok(None) => {}
                // The first provider allowed fewer than this one does.
                Err(error) if error.kind() == io::ErrorKind::NotFound && number > 0 => break,
                Err(error) => return Err(NoPlace::Unusable(error)),
            }
        }
        Err(NoPlace::Full(self.children))
    }

    /// What a subagent's environment carries, when it may work for `time`.
    pub(crate) fn environment(&self, time: Duration) -> io::Result<Vec<(OsString, OsString)>> {
        let until = (SystemTime::now() + time).duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(vec![
            (DEPTH.into(), (self.depth + 1).to_string().into()),
            (LEVELS.into(), self.levels.saturating_sub(1).to_string().into()),
            (PLACES.into(), self.folder()?.into()),
            (UNTIL.into(), until.as_millis().to_string().into()),
        ])
    }

    fn folder(&self) -> io::Result<PathBuf> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        match &*places {
            Places::Own(folder) => Ok(folder.path().to_owned()),
            Places::Inherited(folder) => Ok(folder.clone()),
            Places::None => {
                let folder = tempfile::Builder::new().prefix("subagents-").tempdir()?;
                for number in 0..self.children {
                    File::create(folder.path().join(number.to_string()))?;
                }
                let path = folder.path().to_owned();
                *places = Places::Own(folder);
                Ok(path)
            }
        }
    }

    /// Removes what this provider made for its family.
    pub(crate) fn close(&self) {
        *self.places.lock().unwrap_or_else(PoisonError::into_inner) = Places::None;
    }
}

/// Locks a file without waiting; `None` when another has it. Reading is all that a sandbox may allow, and enough.
fn lock(path: &Path) -> io::Result<Option<File>> {
    let file = OpenOptions::new().read(true).open(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inherited(family: &Family, max_depth: u32, max_children: u32) -> Family {
        let variables = family.environment(Duration::from_secs(60)).unwrap();
        let find = |name: &str| variables.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
        Family::new(max_depth, max_children, find)
    }

    #[test]
    fn depth_only_shrinks() {
        let first = Family::new(2, 8, |_| None);
        let child = inherited(&first, 9, 8);
        let grandchild = inherited(&child, 9, 8);
        assert_eq!((first.levels(), child.levels(), grandchild.levels()), (2, 1, 0));
        assert!(child.enter().is_ok());
        assert!(matches!(grandchild.enter(), Err(NoPlace::TooDeep(2))));
        assert_eq!(inherited(&first, 1, 8).levels(), 0, "a child's own limit counts too");
        assert!(matches!(Family::new(0, 8, |_| None).enter(), Err(NoPlace::TooDeep(0))));
    }

    #[test]
    fn places_are_shared_by_the_whole_family() {
        let first = Family::new(3, 2, |_| None);
        let child = inherited(&first, 3, 64);
        let (one, _two) = (first.enter().unwrap(), child.enter().unwrap());
        assert!(matches!(first.enter(), Err(NoPlace::Full(2))));
        assert!(child.enter().is_err());
        drop(one);
        assert!(child.enter().is_ok());
    }

    #[test]
    fn the_time_of_the_first_counts() {
        let first = Family::new(2, 2, |_| None);
        let child = inherited(&first, 2, 2);
        assert!(child.time(Duration::from_secs(3_600)) <= Duration::from_secs(60));
        assert_eq!(first.time(Duration::from_secs(3_600)), Duration::from_secs(3_600));
    }

    #[test]
    fn nothing_is_left_of_a_family_that_is_closed() {
        let first = Family::new(2, 2, |_| None);
        first.enter().unwrap();
        let folder = first.folder().unwrap();
        first.close();
        assert!(!folder.exists());
    }
}
