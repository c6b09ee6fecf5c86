//! Landlock: changes of files are denied except below given paths.

use std::io;
use std::path::PathBuf;

use landlock::{
    ABI, AccessFs, BitFlags, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset, RulesetAttr as _,
    RulesetCreated, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope,
};
use rustix::fs::{FileType, fstat};

use super::Reads;

/// Without the rights of this version, files elsewhere could be emptied, and files in the workspace not moved.
const NEEDED: ABI = ABI::V3;

/// Denies this process, and all it starts, every change of files that is not below one of the `write` paths. Paths that
/// do not exist are left out. With `reads`, reading and running are denied elsewhere, too. With `alone`, sockets without
/// a name in the file system that belong to others cannot be connected to either, where the kernel can deny that.
///
/// Not denied are changes of mode, owner, times and extended attributes: Landlock does not know them.
///
/// # Errors
/// The kernel does not do all of it.
pub(super) fn enter(write: &[PathBuf], reads: Option<&Reads>, alone: bool) -> io::Result<()> {
    let status =
        restrict(write, reads, alone).map_err(|error| io::Error::other(format!("Landlock: {error}")))?;
    match status {
        RulesetStatus::NotEnforced => Err(io::Error::other("Landlock: not enforced by this kernel")),
        // Partly is also when only the sockets could not be kept apart, which is best effort.
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
    }
}

/// The version of Landlock here, as the kernel counts them.
#[allow(unsafe_code)] // No wrapper tells the number.
pub(super) fn version() -> Option<u32> {
    const ASK_FOR_VERSION: u32 = 1;
    // SAFETY: with this flag the call takes no structure and only answers a number.
    let version = unsafe {
        nix::libc::syscall(
            nix::libc::SYS_landlock_create_ruleset,
            std::ptr::null::<u8>(),
            0_usize,
            ASK_FOR_VERSION,
        )
    };
    u32::try_from(version).ok().filter(|version| *version > 0)
}

fn restrict(write: &[PathBuf], reads: Option<&Reads>, alone: bool) -> Result<RulesetStatus, RulesetError> {
    let changes = AccessFs::from_write(NEEDED);
    let (look, run) = (AccessFs::ReadFile | AccessFs::ReadDir, AccessFs::from_read(NEEDED));
    let handled = if reads.is_some() { changes | run } else { changes };
    let ruleset =
        Ruleset::default().set_compatibility(CompatLevel::HardRequirement).handle_access(handled)?;
    let ruleset = ruleset.set_compatibility(CompatLevel::BestEffort);
    let ruleset = if alone { ruleset.scope(Scope::AbstractUnixSocket)? } else { ruleset };
    let mut ruleset = ruleset.create()?.set_compatibility(CompatLevel::HardRequirement);
    let made = changes & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    let made = if reads.is_some() { made | look } else { made };
    ruleset = allow(ruleset, write, made)?;
    if let Some(reads) = reads {
        ruleset = allow(allow(ruleset, &reads.read, look)?, &reads.run, run)?;
    }
    Ok(ruleset.restrict_self()?.ruleset)
}

/// Adds rights below paths. Files get those that files can have.
fn allow(
    mut ruleset: RulesetCreated,
    paths: &[PathBuf],
    rights: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    for path in paths {
        let Ok(path) = PathFd::new(path) else { continue };
        let is_directory = fstat(&path).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_dir());
        let rights = if is_directory { rights } else { rights & AccessFs::from_file(NEEDED) };
        ruleset = ruleset.add_rule(PathBeneath::new(path, rights))?;
    }
    Ok(ruleset)
}
