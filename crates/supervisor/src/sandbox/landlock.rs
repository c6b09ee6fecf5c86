//! Landlock: changes of files are denied except below given paths.

use std::io;
use std::path::PathBuf;

use landlock::{
    ABI, AccessFs, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetStatus, Scope,
};

/// Without the rights of this version, files elsewhere could be emptied, and files in the workspace not moved.
const NEEDED: ABI = ABI::V3;
/// What a device is written with. Devices are never made.
const FILE: ABI = ABI::V3;

/// Denies this process, and all it starts, every change of files that is not below one of the paths. Paths that do
/// not exist are left out. With `alone`, sockets without a name in the file system that belong to others cannot be
/// connected to either, where the kernel can deny that.
///
/// Not denied are changes of mode, owner, times and extended attributes: Landlock does not know them.
///
/// # Errors
/// The kernel does not do all of it.
pub(super) fn enter(write: &[PathBuf], alone: bool) -> io::Result<()> {
    let changes = AccessFs::from_write(NEEDED);
    let made = changes & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    let other = |error: &dyn std::fmt::Display| io::Error::other(format!("Landlock: {error}"));
    let restrict = || {
        let ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(changes)?
            .set_compatibility(CompatLevel::BestEffort);
        let ruleset = if alone { ruleset.scope(Scope::AbstractUnixSocket)? } else { ruleset };
        let mut ruleset = ruleset.create()?.set_compatibility(CompatLevel::HardRequirement);
        for path in write {
            let Ok(path) = PathFd::new(path) else { continue };
            let is_directory = rustix::fs::fstat(&path)
                .is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir());
            let rights = if is_directory { made } else { made & AccessFs::from_file(FILE) };
            ruleset = ruleset.add_rule(PathBeneath::new(path, rights))?;
        }
        ruleset.restrict_self()
    };
    let status = restrict().map_err(|error: landlock::RulesetError| other(&error))?;
    match status.ruleset {
        RulesetStatus::NotEnforced => Err(other(&"not enforced by this kernel")),
        // Partly is also when only the sockets could not be kept apart, which is best effort.
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
    }
}
