//! From a guard to the program: one fork, and what happens in the child before it becomes the program.

use std::convert::Infallible;
use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal as NixSignal};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use crate::guard::cgroup::Cgroup;
use crate::job::{EXTRA_DESCRIPTOR, Files, Job, Refusal};
use crate::sandbox::Confinement;

/// Descriptors that are handed on are first moved up here, out of the way of the numbers they get.
const OUT_OF_THE_WAY: i32 = 100;

/// `CLONE_INTO_CGROUP`, which is wider than the type that libc gives it.
const CLONE_INTO_CGROUP: u64 = 1 << 33;

/// What comes with an order to start.
pub(super) struct Start;

impl Start {
    /// The job's description, which travels as a file, and its files.
    pub(super) fn read(files: Vec<OwnedFd>, extra: bool) -> Result<(Job, Files), Refusal> {
        let mut files = files.into_iter();
        let mut next = || files.next().ok_or_else(|| refusal("receive the job", Errno::BADMSG));
        let description = next()?;
        let files = Files {
            directory: next()?,
            stdin: next()?,
            stdout: next()?,
            stderr: next()?,
            extra: extra.then(next).transpose()?,
        };
        let mut text = Vec::new();
        let mut description = File::from(description);
        let read = description.rewind().and_then(|()| description.read_to_end(&mut text));
        let broken = |reason: String| Refusal { step: "read the job".to_owned(), reason, errno: 0 };
        read.map_err(|error| broken(error.to_string()))?;
        let job = serde_json::from_slice(&text).map_err(|error| broken(error.to_string()))?;
        Ok((job, files))
    }
}

fn refusal(step: &str, errno: Errno) -> Refusal {
    let reason = std::io::Error::from(errno).to_string();
    Refusal { step: step.to_owned(), reason, errno: errno.raw_os_error() }
}

/// The refusal for an error with a text of its own.
pub(super) fn failed(step: &str, error: &std::io::Error) -> Refusal {
    Refusal { step: step.to_owned(), reason: error.to_string(), errno: error.raw_os_error().unwrap_or(0) }
}

/// What a guard gets ready before it splits, so that the child has less to do.
pub(super) struct Ready<'a> {
    pub(super) cgroup: Option<&'a Cgroup>,
    /// The signals that this process ignores, which a child inherits also across the start of its program.
    pub(super) ignored: &'a [NixSignal],
    pub(super) confinement: &'a mut Confinement,
}

/// Starts the program; answers once it runs.
pub(super) fn start(job: &Job, files: Files, ready: Ready<'_>) -> Result<Pid, Refusal> {
    let image = Image::new(job)?;
    let (report, reporter) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
        .map_err(|errno| refusal("make a pipe", errno))?;
    let guard = rustix::process::getpid();
    let Ready { cgroup, ignored, confinement } = ready;
    job.sandbox.get_ready(confinement).map_err(|error| failed("prepare the sandbox", &error))?;
    let child = match fork(cgroup).map_err(|errno| refusal("start a process", errno))? {
        Fork::Parent(child) => child,
        Fork::Child => {
            let Err(refusal) = become_program(job, files, &image, guard, (ignored, confinement));
            let text = serde_json::to_vec(&refusal).unwrap_or_default();
            let _ = rustix::io::write(&reporter, &text);
            exit_now();
        }
    };
    drop((reporter, files));
    let mut text = Vec::new();
    // The pipe closes by itself when the program starts.
    match File::from(report).read_to_end(&mut text) {
        Ok(0) => Ok(child),
        Ok(_) => Err(serde_json::from_slice(&text).unwrap_or_else(|_| refusal("start", Errno::IO))),
        Err(error) => Err(Refusal { step: "start".to_owned(), reason: error.to_string(), errno: 0 }),
    }
}

/// What `execve` takes.
struct Image {
    program: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
}

impl Image {
    fn new(job: &Job) -> Result<Self, Refusal> {
        let text =
            |text: &OsStr| CString::new(text.as_bytes()).map_err(|_| refusal("pass a NUL", Errno::INVAL));
        let variable = |(name, value): &(std::ffi::OsString, std::ffi::OsString)| {
            let mut line = name.clone();
            line.push("=");
            line.push(value);
            text(&line)
        };
        Ok(Self {
            program: text(job.program.as_os_str())?,
            arguments: job.arguments.iter().map(|argument| text(argument)).collect::<Result<_, _>>()?,
            environment: job.environment.iter().map(variable).collect::<Result<_, _>>()?,
        })
    }
}

/// The child's way to the program. Returns only when it fails.
fn become_program(
    job: &Job,
    files: Files,
    image: &Image,
    guard: Pid,
    (ignored, confinement): (&[NixSignal], &mut Confinement),
) -> Result<Infallible, Refusal> {
    let step = |step: &'static str| move |errno: Errno| refusal(step, errno);
    rustix::process::setsid().map_err(step("make a session"))?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(step("bind to the guard"))?;
    if rustix::process::getppid() != Some(guard) {
        return Err(refusal("start", Errno::SRCH));
    }
    job.sandbox
        .enter_directory(&files.directory)
        .map_err(|error| failed("enter the working directory", &error))?;
    if job.terminal {
        rustix::process::ioctl_tiocsctty(&files.stdin).map_err(step("take the terminal"))?;
    }
    install(files).map_err(step("hand over the open files"))?;
    reset_signals(ignored).map_err(step("reset the signals"))?;
    job.sandbox.enter(confinement).map_err(|error| failed("enter the sandbox", &error))?;
    let arguments = &image.arguments;
    match nix::unistd::execve(&image.program, arguments, &image.environment) {
        Ok(never) => match never {},
        Err(errno) => {
            Err(refusal(&format!("run {}", job.program.display()), Errno::from_raw_os_error(errno as i32)))
        }
    }
}

/// Puts the files where the program expects them. Everything else closes when it starts.
fn install(files: Files) -> Result<(), Errno> {
    let Files { directory, stdin, stdout, stderr, extra } = files;
    drop(directory);
    let away = |file: OwnedFd| rustix::io::fcntl_dupfd_cloexec(file, OUT_OF_THE_WAY);
    let (stdin, stdout, stderr) = (away(stdin)?, away(stdout)?, away(stderr)?);
    let extra = extra.map(away).transpose()?;
    rustix::stdio::dup2_stdin(&stdin)?;
    rustix::stdio::dup2_stdout(&stdout)?;
    rustix::stdio::dup2_stderr(&stderr)?;
    if let Some(extra) = extra {
        duplicate_onto(&extra, EXTRA_DESCRIPTOR)?;
    }
    Ok(())
}

/// Makes `target` another number of `file`, open across the start of the program.
#[allow(unsafe_code)] // Nothing here owns `target`: the child has only what it was given, above OUT_OF_THE_WAY.
fn duplicate_onto(file: &impl AsFd, target: i32) -> Result<(), Errno> {
    // SAFETY: dup2 takes two numbers and touches no memory.
    match unsafe { nix::libc::dup2(file.as_fd().as_raw_fd(), target) } {
        -1 => Err(last_errno()),
        _ => Ok(()),
    }
}

fn last_errno() -> Errno {
    Errno::from_raw_os_error(nix::errno::Errno::last_raw())
}

/// The signals that this process ignores; all that there are where that cannot be found out.
pub(super) fn ignored_signals() -> Vec<NixSignal> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(u64::MAX);
    let is_ignored = |signal: &NixSignal| mask >> (*signal as i32 - 1) & 1 == 1;
    let can_be = |signal: &NixSignal| !matches!(signal, NixSignal::SIGKILL | NixSignal::SIGSTOP);
    NixSignal::iterator().filter(can_be).filter(is_ignored).collect()
}

/// Gives every signal its default meaning and lets all through: a program expects to start like that. Those that are
/// handled get their default by themselves when the program starts.
fn reset_signals(ignored: &[NixSignal]) -> Result<(), Errno> {
    let code = |error: nix::errno::Errno| Errno::from_raw_os_error(error as i32);
    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    for signal in ignored {
        set_action(*signal, &default).map_err(code)?;
    }
    SigSet::empty().thread_set_mask().map_err(code)
}

#[allow(unsafe_code)] // Only ever called with the default action.
fn set_action(signal: NixSignal, action: &SigAction) -> nix::Result<()> {
    // SAFETY: installing the default action runs no code of ours.
    unsafe { nix::sys::signal::sigaction(signal, action) }.map(drop)
}

enum Fork {
    Parent(Pid),
    Child,
}

/// Splits the process. The child is born in the control group, and shares with the guard what `chdir` and `umask`
/// change: so the guard knows where the program was at its end.
fn fork(cgroup: Option<&Cgroup>) -> Result<Fork, Errno> {
    if let Some(cgroup) = cgroup {
        match clone_into(cgroup) {
            // Kernels and sandboxes that do not know this call, or this group any more.
            Err(
                Errno::NOSYS
                | Errno::INVAL
                | Errno::PERM
                | Errno::NODEV
                | Errno::BUSY
                | Errno::ACCESS
                | Errno::OPNOTSUPP,
            ) => {}
            result => return result,
        }
    }
    let flags = (nix::libc::CLONE_FS | nix::libc::SIGCHLD) as nix::libc::c_ulong;
    // SAFETY: without CLONE_VM the child has a copy of this memory, and without a stack of its own it goes on on the
    // copy of this one: this is `fork`. The guard has one thread, so no lock can be held by another.
    #[allow(unsafe_code)]
    let result =
        unsafe { nix::libc::syscall(nix::libc::SYS_clone, flags, 0_usize, 0_usize, 0_usize, 0_usize) };
    forked(result)
}

fn clone_into(cgroup: &Cgroup) -> Result<Fork, Errno> {
    let descriptor = u64::try_from(cgroup.handle().as_raw_fd()).map_err(|_| Errno::BADF)?;
    let arguments = nix::libc::clone_args {
        flags: nix::libc::CLONE_FS as u64 | CLONE_INTO_CGROUP,
        pidfd: 0,
        child_tid: 0,
        parent_tid: 0,
        exit_signal: nix::libc::SIGCHLD as u64,
        stack: 0,
        stack_size: 0,
        tls: 0,
        set_tid: 0,
        set_tid_size: 0,
        cgroup: descriptor,
    };
    // SAFETY: as above; the arguments are read during the call only.
    #[allow(unsafe_code)]
    let result = unsafe {
        nix::libc::syscall(nix::libc::SYS_clone3, &raw const arguments, size_of::<nix::libc::clone_args>())
    };
    forked(result)
}

fn forked(result: nix::libc::c_long) -> Result<Fork, Errno> {
    match result {
        -1 => Err(last_errno()),
        0 => Ok(Fork::Child),
        pid => i32::try_from(pid).ok().and_then(Pid::from_raw).map(Fork::Parent).ok_or(Errno::RANGE),
    }
}

/// Ends the child without running anything that belongs to the guard.
#[allow(unsafe_code)] // There is no safe way to leave without the exit handlers.
fn exit_now() -> ! {
    // SAFETY: ends the process; nothing follows.
    unsafe { nix::libc::_exit(127) }
}
