//! Limits that the kernel keeps for the whole process.

use std::io;

use rustix::process::{Resource, Rlimit, setrlimit};

/// Address space beyond what the program itself takes: what JavaScript may keep at most, and room for frames.
const ADDRESS_SPACE: u64 = (256 + 128) * 1_024 * 1_024;
/// Seconds of processor time: no program runs longer than this in all.
const CPU_SECONDS: u64 = 900;
/// The stack; the engine itself stops far earlier.
const STACK: u64 = 8 * 1_024 * 1_024;

/// Lowers all limits but that of open files. Answers what they are now, for people.
///
/// # Errors
/// What the operating system says; a limit that is lower already stays.
pub(super) fn lower() -> io::Result<Vec<String>> {
    let address_space = ADDRESS_SPACE + own_size()?;
    let all = [
        (Resource::As, "as", address_space),
        (Resource::Core, "core", 0),
        (Resource::Nproc, "nproc", 0),
        (Resource::Fsize, "fsize", 0),
        (Resource::Cpu, "cpu", CPU_SECONDS),
        (Resource::Stack, "stack", STACK),
        (Resource::Memlock, "memlock", 0),
    ];
    let mut told = Vec::with_capacity(all.len() + 1);
    for (resource, name, value) in all {
        let value = lower_one(resource, value)?;
        told.push(match name {
            "as" => format!("{name}={} MiB", value / (1_024 * 1_024)),
            _ => format!("{name}={value}"),
        });
    }
    told.push(format!("nofile={OPEN_FILES}"));
    Ok(told)
}

/// The three that are open.
const OPEN_FILES: u64 = 3;

/// Denies every further open file.
///
/// # Errors
/// What the operating system says.
pub(super) fn no_more_files() -> io::Result<()> {
    lower_one(Resource::Nofile, OPEN_FILES).map(drop)
}

fn lower_one(resource: Resource, value: u64) -> io::Result<u64> {
    let old = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let value = value.min(old);
    setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) })?;
    Ok(value)
}

/// Address space of the process as it is.
fn own_size() -> io::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")?.trim().strip_suffix(" kB"));
    Ok(size.and_then(|kib| kib.trim().parse::<u64>().ok()).unwrap_or(0) * 1_024)
}
