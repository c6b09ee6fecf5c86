//! How long JavaScript has run, and the last words of a process that is stopped by a signal.
//!
//! Two of the three layers of time are here. The engine asks [`expired`] between steps of the interpreter; code that
//! does not ask, such as the join of a huge sparse array, is met by an alarm half a second later, whose handler writes
//! the last frame itself. The third layer is the parent.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How much later the alarm rings than the engine's own limit.
const ALARM_MARGIN: Duration = Duration::from_millis(500);
/// How long the alarm waits for a frame to be whole.
const SNOOZE: Duration = Duration::from_millis(20);

/// The exit code of a process that an alarm has ended.
pub(crate) const ENDED_BY_ALARM: i32 = 86;
/// The exit code of a process that a fault has ended.
pub(crate) const ENDED_BY_FAULT: i32 = 87;

/// When the slice ends, in microseconds as [`now`] counts them; 0 while JavaScript waits.
static DEADLINE: AtomicU64 = AtomicU64::new(0);
/// A frame is being written.
static WRITING: AtomicBool = AtomicBool::new(false);
/// Bytes that JavaScript keeps.
pub(crate) static USED: AtomicUsize = AtomicUsize::new(0);
/// Bytes that JavaScript may keep.
pub(crate) static ALLOWED: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Microseconds since this was first asked for.
fn now() -> u64 {
    static BEGINNING: OnceLock<Instant> = OnceLock::new();
    microseconds(BEGINNING.get_or_init(Instant::now).elapsed())
}

fn microseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// JavaScript runs from now on, for as long as this at most.
pub(crate) fn start(slice: Duration) {
    DEADLINE.store(now().saturating_add(microseconds(slice)).max(1), Ordering::Relaxed);
    set_alarm(slice + ALARM_MARGIN);
}

/// JavaScript waits from now on.
pub(crate) fn stop() {
    set_alarm(Duration::ZERO);
    DEADLINE.store(0, Ordering::Relaxed);
}

/// Whether JavaScript has run for too long.
pub(crate) fn expired() -> bool {
    let deadline = DEADLINE.load(Ordering::Relaxed);
    deadline != 0 && now() >= deadline
}

/// Until this is dropped, the alarm only waits.
pub(crate) fn writing() -> impl Drop {
    struct Whole;
    impl Drop for Whole {
        fn drop(&mut self) {
            WRITING.store(false, Ordering::SeqCst);
        }
    }
    WRITING.store(true, Ordering::SeqCst);
    Whole
}

#[allow(unsafe_code)] // No wrapper knows this call.
fn set_alarm(after: Duration) {
    let value = libc::timeval {
        tv_sec: after.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_usec: after.subsec_micros().into(),
    };
    let timer = libc::itimerval { it_interval: libc::timeval { tv_sec: 0, tv_usec: 0 }, it_value: value };
    // SAFETY: the structure is whole and lives through the call; nothing is written back.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut()) };
}

/// Ends the process at once: no destructors, no exit handlers.
#[allow(unsafe_code)] // There is no safe way to leave without the exit handlers.
pub(crate) fn leave(code: i32) -> ! {
    // SAFETY: nothing of this process is of use to anybody else.
    unsafe { libc::_exit(code) }
}

/// Writes a last frame from a signal handler.
#[allow(unsafe_code)] // Allocates nothing and takes no lock, as a handler must.
fn last_words(frame: &[u8], code: i32) -> ! {
    // SAFETY: the buffer is static and of that length.
    unsafe { libc::write(1, frame.as_ptr().cast(), frame.len()) };
    leave(code)
}

extern "C" fn on_alarm(_: libc::c_int) {
    if WRITING.load(Ordering::SeqCst) {
        return set_alarm(SNOOZE);
    }
    last_words(b"{\"done\":{\"reason\":\"time\"}}\n", ENDED_BY_ALARM)
}

extern "C" fn on_fault(_: libc::c_int) {
    // A process that dies while it has little memory left dies of that.
    let near = ALLOWED.load(Ordering::Relaxed) / 4 * 3;
    let frame: &[u8] = match USED.load(Ordering::Relaxed) >= near {
        true => b"{\"done\":{\"reason\":\"memory\"}}\n",
        false => b"{\"done\":{\"reason\":\"crashed\"}}\n",
    };
    // In the middle of a frame nothing can be said.
    let frame = if WRITING.load(Ordering::SeqCst) { &[] } else { frame };
    last_words(frame, ENDED_BY_FAULT)
}

/// Signals that mean a fault of the process.
const FAULTS: [libc::c_int; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT];
/// The room for handlers: a fault may be that the stack is used up.
const HANDLER_STACK: usize = 64 * 1_024;

/// Installs the handlers. To be called once, while there is one thread.
#[allow(unsafe_code)] // No wrapper installs a handler on a stack of its own.
pub(crate) fn install() {
    let stack = Box::leak(vec![0_u8; HANDLER_STACK].into_boxed_slice());
    let stack = libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: HANDLER_STACK };
    // SAFETY: the stack is never freed, and only the kernel uses it.
    unsafe { libc::sigaltstack(&raw const stack, std::ptr::null_mut()) };
    let handle = |signal: libc::c_int, handler: extern "C" fn(libc::c_int)| {
        // SAFETY: all fields of the structure are plain data, for which zeros are right.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_ONSTACK;
        // SAFETY: the handlers use only atomics and calls that a handler may make.
        unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
    };
    handle(libc::SIGALRM, on_alarm);
    for signal in FAULTS {
        handle(signal, on_fault);
    }
}
