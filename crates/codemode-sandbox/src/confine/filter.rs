//! The filter of system calls: what is not listed here kills the process.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

/// Calls that are allowed whatever their arguments: memory, time, waiting, the end, and signals to itself.
const ALLOWED: &[i64] = &[
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_futex,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_sigaltstack,
    libc::SYS_clock_gettime,
    libc::SYS_gettimeofday,
    libc::SYS_getrandom,
    libc::SYS_setitimer,
    libc::SYS_getpid,
    // What `abort` asks before it sends its signal.
    libc::SYS_gettid,
];

/// Turns the filter on.
///
/// # Errors
/// The kernel has no filters, or this machine is of a kind that is not known here.
pub(super) fn apply() -> io::Result<()> {
    let program = program().map_err(|error| io::Error::other(error.to_string()))?;
    seccompiler::apply_filter(&program).map_err(|error| io::Error::other(error.to_string()))
}

fn program() -> Result<BpfProgram, seccompiler::BackendError> {
    let number = |value: i32| u64::try_from(value).unwrap_or_default();
    let one = |argument, wanted| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, wanted)
            .and_then(|condition| SeccompRule::new(vec![condition]))
    };
    let not_executable = || {
        let executable = number(libc::PROT_EXEC);
        SeccompCondition::new(2, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(executable), 0)
            .and_then(|condition| SeccompRule::new(vec![condition]))
    };
    let own_abort = vec![
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, u64::from(std::process::id()))?,
        SeccompCondition::new(2, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, number(libc::SIGABRT))?,
    ];
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
    rules.insert(libc::SYS_read, vec![one(0, 0)?]);
    rules.insert(libc::SYS_write, vec![one(0, 1)?, one(0, 2)?]);
    rules.insert(libc::SYS_mmap, vec![not_executable()?]);
    rules.insert(libc::SYS_mprotect, vec![not_executable()?]);
    rules.insert(libc::SYS_tgkill, vec![SeccompRule::new(own_abort)?]);
    let architecture = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, SeccompAction::KillProcess, SeccompAction::Allow, architecture)?.try_into()
}
