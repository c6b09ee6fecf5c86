//! Landlock without a single rule: no file, no connection, no signal to others.

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
    RulesetStatus, Scope,
};

/// The newest version whose rights are known here. Older kernels enforce what they know.
const NEWEST: ABI = ABI::V6;

/// Denies all that Landlock can deny. Answers how far the kernel does it, for people.
///
/// # Errors
/// The kernel does none of it.
pub(super) fn deny() -> Result<String, String> {
    let restricted = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))
        .and_then(|ruleset| ruleset.handle_access(AccessNet::from_all(NEWEST)))
        .and_then(|ruleset| ruleset.scope(Scope::from_all(NEWEST)))
        .and_then(Ruleset::create)
        .and_then(|ruleset| ruleset.restrict_self())
        .map_err(|error| error.to_string())?;
    match restricted.ruleset {
        RulesetStatus::FullyEnforced => Ok(format!("fully enforced (version {})", NEWEST as i32)),
        RulesetStatus::PartiallyEnforced => Ok("partially enforced by an older kernel".to_owned()),
        RulesetStatus::NotEnforced => Err("unknown to this kernel".to_owned()),
    }
}
