//! Reading what a program writes, in the order in which it wrote it.
//!
//! Two pipes that are read by one reader lose the order between them: when both have something, nobody knows what was
//! there first. So while a program writes little, each pipe holds one write at a time. A second write to the same
//! pipe waits until the first was read, and the kernel's list of readable descriptors is in the order in which they
//! became so: together that is the order of writing, exactly. A program that writes much gets roomy pipes, in which
//! what matters is speed.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use tokio::io::unix::AsyncFd;

use crate::piece::{Piece, Source};
use crate::watched::watched;

/// What a roomy pipe holds. More is not given to ordinary users.
const ROOMY: usize = 1 << 20;
/// The longest piece that one read answers.
const PIECE: usize = 256 * 1024;
/// A program that writes more than this within [`WINDOW`] writes much.
const MUCH_BYTES: usize = 64 * 1024;
/// So does one that writes more often than this.
const MUCH_WRITES: u32 = 256;
/// See [`MUCH_BYTES`]. A program that wrote nothing for so long writes little again.
const WINDOW: Duration = Duration::from_millis(20);

/// The reading ends of a program's standard output and standard error.
pub struct Pipes {
    ready: AsyncFd<OwnedFd>,
    stdout: Option<Pipe>,
    stderr: Option<Pipe>,
    /// Streams that have something, the first to be read first.
    queue: VecDeque<Source>,
    pace: Pace,
}

/// The writing ends, for the program.
#[derive(Debug)]
pub struct Writers {
    /// Standard output.
    pub stdout: OwnedFd,
    /// Standard error.
    pub stderr: OwnedFd,
}

struct Pipe {
    reader: OwnedFd,
    /// Another name of the program's end, through which its flags can be changed. While it is open the stream does
    /// not end.
    writer: Option<OwnedFd>,
}

/// How a program writes.
enum Pace {
    /// Little: order is kept.
    Ordered { since: Instant, bytes: usize, writes: u32 },
    /// Much, at least lately.
    Fast,
    /// From now on order is not asked for.
    Released,
}

impl Pace {
    fn ordered() -> Self {
        Self::Ordered { since: Instant::now(), bytes: 0, writes: 0 }
    }

    /// Notes one read; tells whether that is much now.
    fn count(&mut self, length: usize) -> bool {
        let Self::Ordered { since, bytes, writes } = self else { return false };
        let now = Instant::now();
        if now.duration_since(*since) > WINDOW {
            (*since, *bytes, *writes) = (now, 0, 0);
        }
        *bytes += length;
        *writes += 1;
        *bytes > MUCH_BYTES || *writes > MUCH_WRITES
    }
}

impl Pipe {
    fn new() -> io::Result<(Self, OwnedFd)> {
        let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&reader, true)?;
        let theirs = rustix::io::fcntl_dupfd_cloexec(&writer, 3)?;
        Ok((Self { reader, writer: Some(writer) }, theirs))
    }

    /// One write at a time (`narrow`), or room for many. Failing leaves the pipe as it is, which costs order or speed
    /// but nothing else.
    fn set(&self, narrow: bool) {
        let Some(writer) = &self.writer else { return };
        let size = if narrow { rustix::param::page_size() } else { ROOMY };
        let Ok(flags) = rustix::fs::fcntl_getfl(writer) else { return };
        if rustix::pipe::fcntl_setpipe_size(&self.reader, size).is_ok() || !narrow {
            let flags = if narrow { flags | OFlags::DIRECT } else { flags - OFlags::DIRECT };
            let _ = rustix::fs::fcntl_setfl(writer, flags);
        }
    }

    /// The program has asked not to be made to wait; then it must not meet a full pipe more often than elsewhere.
    fn is_impatient(&self) -> bool {
        let flags = self.writer.as_ref().and_then(|writer| rustix::fs::fcntl_getfl(writer).ok());
        flags.is_some_and(|flags| flags.contains(OFlags::NONBLOCK))
    }
}

/// What one look at a pipe finds.
enum Look {
    Bytes(Vec<u8>),
    Nothing,
    End,
}

impl Pipes {
    /// Two pipes. Needs a runtime.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn new() -> io::Result<(Self, Writers)> {
        let (stdout, stdout_writer) = Pipe::new()?;
        let (stderr, stderr_writer) = Pipe::new()?;
        let ready = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (number, pipe) in [(0, &stdout), (1, &stderr)] {
            pipe.set(true);
            let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
            epoll::add(&ready, &pipe.reader, epoll::EventData::new_u64(number), flags)?;
        }
        let pipes = Self {
            ready: watched(ready)?,
            stdout: Some(stdout),
            stderr: Some(stderr),
            queue: VecDeque::new(),
            pace: Pace::ordered(),
        };
        Ok((pipes, Writers { stdout: stdout_writer, stderr: stderr_writer }))
    }

    /// The next piece; `None` once both streams have ended, which is not before [`Self::release`]. May be dropped and
    /// called again.
    pub async fn next(&mut self) -> Option<Piece> {
        loop {
            if let Some(piece) = self.try_next() {
                return Some(piece);
            }
            if self.is_ended() {
                return None;
            }
            let quiet = matches!(self.pace, Pace::Fast);
            tokio::select! {
                biased;
                ready = self.ready.readable() => {
                    let mut ready = ready.ok()?;
                    if !harvest(ready.get_inner(), &mut self.queue) {
                        ready.clear_ready();
                    }
                }
                () = tokio::time::sleep(WINDOW), if quiet => self.set_pace(Pace::ordered()),
            }
        }
    }

    /// The next piece that has been written already.
    pub fn try_next(&mut self) -> Option<Piece> {
        loop {
            if self.queue.is_empty() {
                harvest(self.ready.get_ref(), &mut self.queue);
            }
            let source = self.queue.pop_front()?;
            match self.look(source) {
                Look::Bytes(bytes) => {
                    self.after_read(source, bytes.len());
                    return Some(Piece { source, bytes });
                }
                Look::Nothing => {}
                Look::End => *self.pipe(source) = None,
            }
        }
    }

    fn after_read(&mut self, source: Source, length: usize) {
        let impatient = self.pipe(source).as_ref().is_some_and(Pipe::is_impatient);
        if matches!(self.pace, Pace::Ordered { .. }) {
            match (impatient, self.pace.count(length)) {
                (true, _) => self.set_pace(Pace::Released),
                (false, true) => self.set_pace(Pace::Fast),
                (false, false) => return,
            }
        }
        // A roomy pipe may hold more, and says so only once.
        self.queue.push_back(source);
    }

    fn pipe(&mut self, source: Source) -> &mut Option<Pipe> {
        match source {
            Source::Stdout => &mut self.stdout,
            Source::Stderr => &mut self.stderr,
        }
    }

    fn look(&mut self, source: Source) -> Look {
        let size = if matches!(self.pace, Pace::Ordered { .. }) { rustix::param::page_size() } else { PIECE };
        let Some(pipe) = self.pipe(source) else { return Look::Nothing };
        let mut bytes = Vec::with_capacity(size);
        match rustix::io::retry_on_intr(|| rustix::io::read(&pipe.reader, spare_capacity(&mut bytes))) {
            Ok(0) => Look::End,
            Ok(_) => Look::Bytes(bytes),
            Err(Errno::AGAIN) => Look::Nothing,
            Err(_) => Look::End,
        }
    }

    fn set_pace(&mut self, pace: Pace) {
        let narrow = matches!(pace, Pace::Ordered { .. });
        // The order so far is known now, and not any more when there is room for more.
        harvest(self.ready.get_ref(), &mut self.queue);
        for pipe in [&self.stdout, &self.stderr].into_iter().flatten() {
            pipe.set(narrow);
        }
        // Roomy pipes are read until they are empty, whatever the kernel has already said about them.
        self.queue.extend([Source::Stdout, Source::Stderr].into_iter().filter(|_| !narrow));
        self.pace = pace;
    }

    /// The program itself has ended: from now on the streams end when nobody else has them open.
    pub fn release(&mut self) {
        self.set_pace(Pace::Released);
        for pipe in [&mut self.stdout, &mut self.stderr].into_iter().flatten() {
            pipe.writer = None;
        }
        self.queue.extend([Source::Stdout, Source::Stderr]);
    }

    /// Whether both streams have ended.
    pub fn is_ended(&self) -> bool {
        self.stdout.is_none() && self.stderr.is_none()
    }
}

/// Asks the kernel which pipes have something now. False if none has.
fn harvest(ready: impl AsFd, queue: &mut VecDeque<Source>) -> bool {
    let mut events: Vec<epoll::Event> = Vec::with_capacity(2);
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    if epoll::wait(ready, spare_capacity(&mut events), Some(&now)).is_err() {
        return false;
    }
    let source = |event: &epoll::Event| if event.data.u64() == 0 { Source::Stdout } else { Source::Stderr };
    queue.extend(events.iter().map(source));
    !events.is_empty()
}
