//! What a confined process must not be able to do even as root.

use std::io;

use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, capabilities, clear_ambient_capability_set, remove_capability_from_bounding_set,
    set_capabilities,
};

/// Abilities that lead around file rules: to mount, to make or write devices, to load code into the kernel, to open
/// files by number, to look into other processes.
const AROUND: CapabilitySet = CapabilitySet::SYS_ADMIN
    .union(CapabilitySet::SYS_MODULE)
    .union(CapabilitySet::SYS_RAWIO)
    .union(CapabilitySet::SYS_BOOT)
    .union(CapabilitySet::SYS_TIME)
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::SYS_CHROOT)
    .union(CapabilitySet::MKNOD)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::MAC_ADMIN)
    .union(CapabilitySet::MAC_OVERRIDE)
    .union(CapabilitySet::BPF)
    .union(CapabilitySet::PERFMON)
    .union(CapabilitySet::CHECKPOINT_RESTORE);

/// And what would give a network namespace a way out again.
const NETWORK: CapabilitySet = CapabilitySet::NET_ADMIN;

/// Whether this process may make namespaces without becoming somebody else.
pub(super) fn can_make_namespaces() -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_ADMIN))
}

/// Gives up the abilities that lead around the confinement, for this process and all it starts. `all` gives up
/// every ability: right in a user namespace, whose abilities exist only to set the namespaces up.
///
/// # Errors
/// The kernel refused.
pub(super) fn give_up(all: bool) -> io::Result<()> {
    let lost = if all { CapabilitySet::all() } else { AROUND | NETWORK };
    // Kernels before 4.3 have none.
    let _ = clear_ambient_capability_set();
    // Only who has this ability needs to: without it, nothing can be gained by starting a program.
    if capabilities(None)?.effective.contains(CapabilitySet::SETPCAP) {
        for capability in (0..64).map(|bit| CapabilitySet::from_bits_retain(1 << bit)) {
            if lost.contains(capability) {
                match remove_capability_from_bounding_set(capability) {
                    // Beyond the last one that this kernel knows.
                    Ok(()) | Err(Errno::INVAL) => {}
                    Err(errno) => return Err(errno.into()),
                }
            }
        }
    }
    let mut sets = capabilities(None)?;
    sets.effective.remove(lost);
    sets.permitted.remove(lost);
    sets.inheritable.remove(lost);
    Ok(set_capabilities(None, sets)?)
}
