//! Output on disk: everything that was printed, up to a quota.

use std::collections::VecDeque;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

/// Output up to this size is kept in memory; only more makes a file.
const IN_MEMORY: usize = 32 * 1024;
/// The file that tells the folder of a living provider from one that was left behind.
const LOCK: &str = "lock";

/// The folder of one provider process for its spill files. It goes away with the value; what a killed process
/// left behind, the next one removes.
#[derive(Debug)]
pub struct SpillFolder {
    path: PathBuf,
    /// Holds the lock.
    _lock: File,
}

impl SpillFolder {
    /// Makes a folder of its own in `parent`, readable by the owner only, and removes those of dead processes.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn create(parent: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        sweep(parent);
        let (path, lock) = (0..1000)
            .find_map(|number| {
                let path = parent.join(format!("{}-{number}", std::process::id()));
                match DirBuilder::new().mode(0o700).create(&path) {
                    Ok(()) => Some(locked(&path).map(|lock| (path, lock))),
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => None,
                    Err(error) => Some(Err(error)),
                }
            })
            .unwrap_or_else(|| Err(io::Error::other("too many folders of this process id")))?;
        Ok(Self { path, _lock: lock })
    }

    /// Where the files are.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Room for the output of one program. `name` becomes the file's name; it must be new.
    pub fn spill(&self, name: &str, quota: u64) -> Spill {
        Spill::new(self.path.join(format!("{name}.log")), quota)
    }
}

impl Drop for SpillFolder {
    fn drop(&mut self) {
        // If it cannot be removed now, the next provider tries again.
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn locked(folder: &Path) -> io::Result<File> {
    let file = private().create_new(true).open(folder.join(LOCK))?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    Ok(file)
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options
}

/// Removes the folders whose process is gone: their lock can be taken.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for folder in entries.flatten().map(|entry| entry.path()) {
        // A folder without a lock file is just being made, or is none of ours.
        let Ok(lock) = File::open(folder.join(LOCK)) else { continue };
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            // What cannot be removed is tried again next time.
            let _ = fs::remove_dir_all(&folder);
        }
    }
}

/// The output of one program on disk.
///
/// The first half of the quota holds the beginning. Behind it, files of a quarter each take turns, so that the
/// end is there as well, and what lies between goes first. Small output makes no file at all.
///
/// A file whose turn it is again gets a new name and is written over from its start: a program that prints without end
/// costs copying then, and not the making and freeing of files. What is still in it of the last turn is cut off before
/// anybody is told its name.
#[derive(Debug)]
pub struct Spill {
    path: PathBuf,
    quota: u64,
    /// What has come while there is no file.
    memory: Vec<u8>,
    segments: VecDeque<Segment>,
    total: u64,
    /// The bytes from the first to before the second number are gone.
    lost: Option<(u64, u64)>,
    failure: Option<String>,
}

/// One file.
#[derive(Debug)]
struct Segment {
    path: PathBuf,
    file: File,
    /// The place of its first byte in the output.
    start: u64,
    length: u64,
}

/// What of the output is on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The files, in the order of the output.
    pub files: Vec<PathBuf>,
    /// Bytes that had to give way: from the first, to before the second number.
    pub lost: Option<(u64, u64)>,
    /// Why nothing more was written, if something failed.
    pub failure: Option<String>,
}

impl Spill {
    fn new(path: PathBuf, quota: u64) -> Self {
        let segments = VecDeque::new();
        Self { path, quota, memory: Vec::new(), segments, total: 0, lost: None, failure: None }
    }

    /// How many bytes came in all.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Adds output. A failure to write is remembered, and told by [`Spill::kept`].
    pub fn write(&mut self, bytes: &[u8]) {
        if self.segments.is_empty() && self.failure.is_none() && self.memory.len() + bytes.len() <= IN_MEMORY
        {
            self.memory.extend_from_slice(bytes);
            self.total += bytes.len() as u64;
            return;
        }
        self.to_disk();
        self.append(bytes);
    }

    /// Makes the file also for small output; for a result that leaves something out of it.
    pub fn to_disk(&mut self) {
        if self.segments.is_empty() && self.failure.is_none() {
            let memory = std::mem::take(&mut self.memory);
            self.total -= memory.len() as u64;
            self.append(&memory);
        }
    }

    /// Where the output is; none while all of it is in memory.
    pub fn kept(&mut self) -> Option<Kept> {
        if self.segments.is_empty() && self.failure.is_none() {
            return None;
        }
        for segment in &self.segments {
            if let Err(error) = segment.file.set_len(segment.length) {
                self.failure.get_or_insert_with(|| {
                    format!("a file of the output holds more than it should: {error}")
                });
            }
        }
        let files = self.segments.iter().map(|segment| segment.path.clone()).collect();
        Some(Kept { files, lost: self.lost, failure: self.failure.clone() })
    }

    /// Output from `offset` on, at most `limit` bytes: where it really begins, and the bytes. It begins later
    /// where bytes were lost.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn read(&self, offset: u64, limit: usize) -> io::Result<(u64, Vec<u8>)> {
        if self.segments.is_empty() {
            let at = usize::try_from(offset).unwrap_or(usize::MAX).min(self.memory.len());
            let bytes = self.memory.iter().skip(at).take(limit).copied().collect();
            return Ok((at as u64, bytes));
        }
        let found = self.segments.iter().find(|segment| offset < segment.start + segment.length);
        let Some(segment) = found else { return Ok((self.total.max(offset.min(self.total)), Vec::new())) };
        let start = offset.max(segment.start);
        let left = usize::try_from(segment.start + segment.length - start).unwrap_or(usize::MAX);
        let mut bytes = vec![0; left.min(limit)];
        segment.file.read_exact_at(&mut bytes, start - segment.start)?;
        Ok((start, bytes))
    }

    /// Removes the files, and what is in memory.
    pub fn clear(&mut self) {
        self.memory.clear();
        // What cannot be removed goes with the folder.
        self.segments.drain(..).for_each(|segment| drop(fs::remove_file(&segment.path)));
    }

    fn append(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = usize::try_from(self.room()).unwrap_or(usize::MAX);
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            if self.failure.is_none()
                && let Err(error) = self.append_to_last(now)
            {
                self.failure = Some(format!(
                    "the output could not be kept on disk from byte {} on: {error}",
                    self.total
                ));
            }
            self.total += now.len() as u64;
            bytes = later;
        }
    }

    /// How much the last file may still take; a fresh one where it is full.
    fn room(&self) -> u64 {
        let capacity = |index: usize| if index == 0 { self.quota / 2 } else { self.quota / 4 };
        // The beginning is never given up, so the first file is the first of the output.
        let last = self.segments.len().checked_sub(1);
        let left = last.map_or(0, |index| capacity(index).saturating_sub(self.segments[index].length));
        if left > 0 { left } else { capacity(self.segments.len()).max(1) }
    }

    fn append_to_last(&mut self, bytes: &[u8]) -> io::Result<()> {
        let full =
            |index: usize, length: u64| length >= if index == 0 { self.quota / 2 } else { self.quota / 4 };
        let last = self.segments.len().checked_sub(1);
        if last.is_none_or(|index| full(index, self.segments[index].length)) {
            self.begin_segment()?;
        }
        if let Some(segment) = self.segments.back_mut() {
            segment.file.write_all(bytes)?;
            segment.length += bytes.len() as u64;
        }
        Ok(())
    }

    fn begin_segment(&mut self) -> io::Result<()> {
        // One for the beginning and two for the end.
        if self.segments.len() == 3
            && let Some(oldest) = self.segments.remove(1)
        {
            let from = self.lost.map_or(oldest.start, |(from, _)| from);
            self.lost = Some((from, oldest.start + oldest.length));
            return self.begin_again(oldest);
        }
        let path = match self.total {
            0 => self.path.clone(),
            _ => self.later_path(),
        };
        let file = private().create_new(true).open(&path)?;
        self.segments.push_back(Segment { path, file, start: self.total, length: 0 });
        Ok(())
    }

    /// The file whose turn it is again. Nobody who was told its old name finds other bytes there.
    fn begin_again(&mut self, Segment { path: old, mut file, .. }: Segment) -> io::Result<()> {
        let path = self.later_path();
        fs::rename(&old, &path)?;
        file.rewind()?;
        self.segments.push_back(Segment { path, file, start: self.total, length: 0 });
        Ok(())
    }

    fn later_path(&self) -> PathBuf {
        self.path.with_extension(format!("{}.log", self.total))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::{IN_MEMORY, SpillFolder};

    fn numbered(count: usize) -> Vec<u8> {
        (0..count).flat_map(|number| format!("line {number}\n").into_bytes()).collect()
    }

    #[test]
    fn small_output_makes_no_file() {
        let parent = tempfile::tempdir().unwrap();
        let folder = SpillFolder::create(parent.path()).unwrap();
        let mut spill = folder.spill("job-1", 1 << 20);
        spill.write(b"hello ");
        spill.write(b"world");
        assert_eq!(spill.kept(), None);
        assert_eq!(spill.read(6, 100).unwrap(), (6, b"world".to_vec()));
        spill.to_disk();
        assert_eq!(std::fs::read(&spill.kept().unwrap().files[0]).unwrap(), b"hello world");
        assert_eq!(spill.total(), 11);
    }

    #[test]
    fn large_output_is_whole_on_disk_and_private() {
        let parent = tempfile::tempdir().unwrap();
        let folder = SpillFolder::create(parent.path()).unwrap();
        let mut spill = folder.spill("job-1", 1 << 20);
        let input = numbered(20_000);
        input.chunks(1000).for_each(|piece| spill.write(piece));
        let kept = spill.kept().unwrap();
        assert_eq!((kept.files.len(), kept.lost, kept.failure), (1, None, None));
        assert_eq!(std::fs::read(&kept.files[0]).unwrap(), input);
        let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&kept.files[0]), mode(folder.path())), (0o600, 0o700));
        assert_eq!(spill.read(100, 50).unwrap(), (100, input[100..150].to_vec()));
    }

    #[test]
    fn beyond_the_quota_the_middle_gives_way() {
        let parent = tempfile::tempdir().unwrap();
        let folder = SpillFolder::create(parent.path()).unwrap();
        let quota = 200 * 1024;
        let mut spill = folder.spill("job-1", quota);
        let input = numbered(100_000);
        input.chunks(777).for_each(|piece| spill.write(piece));
        let kept = spill.kept().unwrap();
        let (from, to) = kept.lost.unwrap();
        let contents: Vec<Vec<u8>> = kept.files.iter().map(|file| std::fs::read(file).unwrap()).collect();
        assert!(contents.concat().len() as u64 <= quota);
        assert_eq!(contents[0], input[..from as usize]);
        assert_eq!(contents[1..].concat(), input[to as usize..]);
        assert_eq!(spill.total(), input.len() as u64);
        // Reading in what was lost goes on behind it.
        assert_eq!(spill.read(from + 5, 10).unwrap(), (to, input[to as usize..to as usize + 10].to_vec()));
        assert_eq!(spill.read(spill.total(), 10).unwrap(), (spill.total(), Vec::new()));
        // Nothing but these files and the lock is left.
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), kept.files.len() + 1);
    }

    #[test]
    fn files_told_while_it_goes_on_hold_what_was_printed_and_nothing_older() {
        let parent = tempfile::tempdir().unwrap();
        let folder = SpillFolder::create(parent.path()).unwrap();
        let mut spill = folder.spill("job-1", 200 * 1024);
        let input = numbered(100_000);
        let mut turns = std::collections::BTreeSet::new();
        for piece in input.chunks(7_777) {
            spill.write(piece);
            let Some(kept) = spill.kept() else { continue };
            let end = usize::try_from(spill.total()).unwrap();
            let (from, to) = kept.lost.map_or((end, end), |(from, to)| (from as usize, to as usize));
            let contents: Vec<u8> = kept.files.iter().flat_map(|file| std::fs::read(file).unwrap()).collect();
            assert!(contents == [&input[..from], &input[to..end]].concat(), "after {end} bytes");
            turns.insert(to);
        }
        assert!(turns.len() > 10, "the files took turns");
    }

    #[test]
    fn a_disk_that_takes_no_more_is_reported_and_stops_nothing() {
        let parent = tempfile::tempdir().unwrap();
        let folder = SpillFolder::create(parent.path()).unwrap();
        let mut spill = folder.spill("job-1", 1 << 20);
        std::fs::remove_dir_all(folder.path()).unwrap();
        spill.write(&vec![b'x'; IN_MEMORY * 2]);
        assert_eq!(spill.total(), IN_MEMORY as u64 * 2);
        let failure = spill.kept().unwrap().failure.unwrap();
        assert!(failure.starts_with("the output could not be kept on disk from byte 0 on: "), "{failure}");
    }

    #[test]
    fn folders_go_with_their_process_and_dead_ones_are_swept() {
        let parent = tempfile::tempdir().unwrap();
        let dead = parent.path().join("1-0");
        std::fs::create_dir(&dead).unwrap();
        std::fs::write(dead.join("lock"), "").unwrap();
        std::fs::write(dead.join("job-1.log"), "old").unwrap();
        let living = SpillFolder::create(parent.path()).unwrap();
        assert!(!dead.exists());
        let second = SpillFolder::create(parent.path()).unwrap();
        assert!(living.path().exists(), "a living folder is not swept");
        let path = second.path().to_owned();
        drop(second);
        assert!(!path.exists());
    }
}
