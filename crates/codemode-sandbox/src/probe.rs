//! What hostile native code would try, for tests of the sandbox and of the parent. Only in builds with debug assertions.

use std::io::Write as _;
use std::sync::atomic::Ordering;

use crate::clock;

/// Says what no honest child says.
fn lie(name: &str) {
    let mut parent = std::io::stdout().lock();
    // A parent that listens no more ends this, one way or another.
    let mut say = |text: &str| parent.write_all(text.as_bytes()).is_ok();
    let call =
        |id: u64| format!(r#"{{"call":{{"id":{id},"plugin":"fx","tool":"stuck","input":{{}}}}}}"#) + "\n";
    match name {
        "call_twice" => drop(say(&call(1)) && say(&call(1))),
        "call_for_ever" => drop((1..).all(|id| say(&call(id)))),
        "log_for_ever" => while say("{\"log\":\"again\"}\n") {},
        "line_for_ever" => while say(&"x".repeat(4_096)) {},
        "nonsense" => drop(say("{\"call\":7}\n")),
        _ => return,
    }
    // What it said is all that there is to judge it by.
    std::thread::park();
}

/// Tries it. What is not stopped by the sandbox leaves the process with an exit code that no other end has.
#[allow(unsafe_code)] // Nothing here is meant to be right.
pub(crate) fn run(name: &str) {
    lie(name);
    let path = c"/etc/passwd".as_ptr();
    let null = std::ptr::null_mut::<libc::c_void>();
    let map = |bytes, protection| {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a fresh mapping touches nothing.
        unsafe { libc::mmap(null, bytes, protection, flags, -1, 0) }
    };
    let (page, all) = (4_096, libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC);
    // SAFETY: each of these ends the process or changes nothing that is used later.
    unsafe {
        match name {
            "open" => drop(libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path, libc::O_RDONLY)),
            "socket" => drop(libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0)),
            "fork" => drop(libc::fork()),
            "execve" => drop(libc::execve(
                c"/bin/true".as_ptr(),
                [std::ptr::null()].as_ptr(),
                [std::ptr::null()].as_ptr(),
            )),
            "ptrace" => drop(libc::ptrace(libc::PTRACE_TRACEME, 0, null, null)),
            "kill" => drop(libc::kill(libc::getpid(), 0)),
            "kill_parent" => drop(libc::syscall(libc::SYS_kill, i64::from(libc::getpid()) - 1, 0)),
            "mmap_exec" => drop(map(page, all)),
            "mprotect_exec" => drop(libc::mprotect(map(page, libc::PROT_READ), page, all)),
            "io_uring" => drop(libc::syscall(libc::SYS_io_uring_setup, 1, null)),
            "memfd" => drop(libc::syscall(libc::SYS_memfd_create, path, 0)),
            "write_elsewhere" => drop(libc::syscall(libc::SYS_write, 5, path, 1)),
            "read_elsewhere" => drop(libc::syscall(libc::SYS_read, 5, path, 1)),
            // These are not stopped by a signal; the exit code says what was found.
            "mmap_large" => {
                let refused = map(500 * 1_024 * 1_024, libc::PROT_READ) == libc::MAP_FAILED;
                clock::leave(if refused { 40 } else { 41 })
            }
            "segfault" => std::ptr::null_mut::<u8>().wrapping_add(8).write_volatile(1),
            "abort" => libc::abort(),
            "abort_near_limit" => {
                clock::USED.store(clock::ALLOWED.load(Ordering::Relaxed), Ordering::Relaxed);
                libc::abort()
            }
            _ => {}
        }
    }
    clock::leave(99)
}
