//! Landlock: changes of files are denied except below given paths.

use std::io;
use std::path::PathBuf;

use landlock::{
    ABI, AccessFs, BitFlags, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset, RulesetAttr as _,
    RulesetCreated, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope,
};
use rustix::fs::{FileType, fstat, stat};

use super::Reads;

/// Without the rights of this version, files elsewhere could be emptied, and files in the workspace not moved.
const NEEDED: ABI = ABI::V3;

/// Landlock's rules for one job after another. Making them takes longer than looking whether they are still right.
#[derive(Default)]
pub(crate) struct Confinement(Option<Made>);

/// Rules, with what they were made from.
struct Made {
    write: Vec<PathBuf>,
    reads: Option<Reads>,
    alone: bool,
    /// What each path led to; a rule holds for that, not for the path.
    places: Vec<Option<(u64, u64)>>,
    rules: RulesetCreated,
}

impl Confinement {
    /// Makes rules that deny every change of files that is not below one of the `write` paths. Paths that do not exist
    /// are left out. With `reads`, reading and running are denied elsewhere, too. With `alone`, sockets without a name in
    /// the file system that belong to others cannot be connected to either, where the kernel can deny that.
    ///
    /// Not denied are changes of mode, owner, times and extended attributes: Landlock does not know them.
    ///
    /// # Errors
    /// The kernel does not do all of it.
    pub(super) fn get_ready(
        &mut self,
        write: &[PathBuf],
        reads: Option<&Reads>,
        alone: bool,
    ) -> io::Result<()> {
        let places = places(write, reads);
        let is_same = |made: &Made| {
            (&made.write[..], made.reads.as_ref(), made.alone) == (write, reads, alone)
                && made.places == places
        };
        if !self.0.as_ref().is_some_and(is_same) {
            let rules = rules(write, reads, alone).map_err(told)?;
            self.0 = Some(Made { write: write.to_vec(), reads: reads.cloned(), alone, places, rules });
        }
        Ok(())
    }

    /// Holds this process, and all it starts, to the rules.
    ///
    /// # Errors
    /// There are none, or the kernel does not enforce them.
    pub(super) fn enter(&mut self) -> io::Result<()> {
        let made = self.0.take().ok_or_else(|| io::Error::other("Landlock: nothing is ready"))?;
        match made.rules.restrict_self().map_err(told)?.ruleset {
            RulesetStatus::NotEnforced => Err(io::Error::other("Landlock: not enforced by this kernel")),
            // Partly is also when only the sockets could not be kept apart, which is best effort.
            RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        }
    }
}

fn told(error: RulesetError) -> io::Error {
    io::Error::other(format!("Landlock: {error}"))
}

/// What the paths lead to. While a rule is there its file is not forgotten, so that no other one gets the number.
fn places(write: &[PathBuf], reads: Option<&Reads>) -> Vec<Option<(u64, u64)>> {
    let reads = reads.into_iter().flat_map(|reads| reads.read.iter().chain(&reads.run));
    let place = |path: &PathBuf| stat(path).ok().map(|stat| (stat.st_dev, stat.st_ino));
    write.iter().chain(reads).map(place).collect()
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

fn rules(write: &[PathBuf], reads: Option<&Reads>, alone: bool) -> Result<RulesetCreated, RulesetError> {
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
    Ok(ruleset)
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
