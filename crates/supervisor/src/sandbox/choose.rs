//! Which level is used: the strongest one that holds on this machine.

use std::path::PathBuf;

use super::level::{Level, Mode, NetworkOff, OFF};
use super::probe::{enter, probe};
use super::{Mounts, Namespaces, Policy, paths};

/// What the operator asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The strongest [`Mode::WorkspaceWrite`] that holds, or else none.
    Auto,
    /// This, or else none.
    Confined(Mode),
    /// No confinement.
    Off,
}

/// What is asked of a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Which one.
    pub wanted: Wanted,
    /// Refuses to work without it.
    pub required: bool,
    /// Whether the network may be used.
    pub network: bool,
    /// Whether paths in the workspace were named that must stay as they are. It is worth a user namespace.
    pub protect: bool,
}

/// The sandbox that was asked for cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum Unavailable {
    /// No level holds on this machine.
    #[error("no sandbox holds on this machine: {}", .0.iter().map(Finding::to_string).collect::<Vec<_>>().join("; "))]
    NothingHolds(Vec<Finding>),
    /// The network cannot be off without a sandbox.
    #[error("the network can be off only in a sandbox, but the sandbox is off")]
    NetworkOffWithoutSandbox,
    /// A sandbox cannot be required and off.
    #[error("a sandbox is required, but the sandbox is off")]
    RequiredButOff,
}

/// A level, and what is wrong with it on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The level.
    pub level: Level,
    /// Whether it needs a user namespace here.
    pub user_namespace: bool,
    /// Why it does not hold; nothing if it does.
    pub broken: Option<String>,
}

impl Finding {
    /// The sandbox of this level, if it holds.
    pub fn sandbox(&self) -> Option<Sandbox> {
        let way = Way { level: self.level, user: self.user_namespace };
        self.broken.is_none().then(|| Sandbox { way: Some(way), tried: vec![self.clone()] })
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let how = if self.user_namespace { " in a user namespace" } else { "" };
        match &self.broken {
            None => write!(f, "{}{how} holds", self.level),
            Some(reason) => write!(f, "{}{how}: {reason}", self.level),
        }
    }
}

/// A way to confine: a level and what it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Way {
    level: Level,
    user: bool,
}

/// The sandbox of a provider.
#[derive(Clone, Debug)]
pub struct Sandbox {
    way: Option<Way>,
    tried: Vec<Finding>,
}

impl Sandbox {
    /// Finds the strongest level that holds. Each is tried for real, in a process of its own, which takes some
    /// milliseconds; blocks meanwhile.
    ///
    /// # Errors
    /// None holds, and one is required, or the network should be off and cannot be.
    pub fn choose(request: &Request) -> Result<Self, Unavailable> {
        let mode = match request.wanted {
            Wanted::Auto => Mode::WorkspaceWrite,
            Wanted::Confined(mode) => mode,
            Wanted::Off if request.required => return Err(Unavailable::RequiredButOff),
            Wanted::Off if !request.network => return Err(Unavailable::NetworkOffWithoutSandbox),
            Wanted::Off => return Ok(Self { way: None, tried: Vec::new() }),
        };
        let mut tried = Vec::new();
        for way in ways(mode, request) {
            let broken = probe(way.level, |write| way.policy(write, &[])).err();
            let holds = broken.is_none();
            tried.push(Finding { level: way.level, user_namespace: way.user, broken });
            if holds {
                return Ok(Self { way: Some(way), tried });
            }
        }
        if request.required || !request.network {
            return Err(Unavailable::NothingHolds(tried));
        }
        Ok(Self { way: None, tried })
    }

    /// The name that results report: [`OFF`], or that of a [`Level`].
    pub fn name(&self) -> String {
        self.way.map_or_else(|| OFF.to_owned(), |way| way.level.to_string())
    }

    /// The level; none without confinement.
    pub fn level(&self) -> Option<Level> {
        self.way.map(|way| way.level)
    }

    /// Whether paths within the workspace can be protected.
    pub fn can_protect(&self) -> bool {
        self.way.is_some_and(|way| way.level.mounts)
    }

    /// What was tried, in this order; the last one holds unless there is no confinement.
    pub fn tried(&self) -> &[Finding] {
        &self.tried
    }

    /// The policy for a job. `write` is what it may write, with all below, besides devices; `protect` is what of
    /// that it may not. All are absolute paths; what does not exist is left out.
    pub fn policy(&self, write: &[PathBuf], protect: &[PathBuf]) -> Policy {
        self.way.map_or_else(Policy::none, |way| way.policy(write, protect))
    }
}

impl Way {
    fn policy(self, write: &[PathBuf], protect: &[PathBuf]) -> Policy {
        let resolved =
            |paths: &[PathBuf]| paths.iter().filter_map(|path| path.canonicalize().ok()).collect::<Vec<_>>();
        let mut write = resolved(write);
        write.extend(paths::devices());
        let Level { landlock, mounts, network_off, .. } = self.level;
        Policy {
            namespaces: Namespaces {
                user: self.user,
                mounts: mounts.then(|| Mounts { write: write.clone(), protect: resolved(protect) }),
                network: network_off == Some(NetworkOff::Namespace),
            },
            files: landlock.then_some(write),
            reads: None,
            filter: network_off == Some(NetworkOff::Filter),
            network_off: network_off.is_some(),
        }
    }
}

/// The ways to do what is asked, the strongest first.
fn ways(mode: Mode, request: &Request) -> Vec<Way> {
    let way = |landlock, mounts, network_off: NetworkOff, user| {
        let network_off = (!request.network).then_some(network_off);
        Way { level: Level { mode, landlock, mounts, network_off }, user }
    };
    use NetworkOff::{Filter, Namespace};
    let mut ways = if privileged() {
        // In some containers root may mount, but may not make a network.
        vec![
            way(true, true, Namespace, false),
            way(true, true, Filter, false),
            way(true, false, Namespace, false),
            way(true, false, Filter, false),
            way(false, true, Namespace, false),
            way(false, true, Filter, false),
        ]
    } else if !request.network || request.protect {
        vec![
            way(true, true, Namespace, true),
            way(true, false, Filter, false),
            way(false, true, Namespace, true),
        ]
    } else {
        vec![way(true, false, Filter, false), way(false, true, Namespace, true)]
    };
    ways.dedup();
    ways
}

#[cfg(target_os = "linux")]
fn privileged() -> bool {
    super::privileges::can_make_namespaces()
}

#[cfg(not(target_os = "linux"))]
fn privileged() -> bool {
    false
}

/// The namespaces that levels are made of, by name, and why one cannot be entered here. Blocks for some milliseconds each.
pub fn namespaces() -> Vec<(&'static str, Result<(), String>)> {
    let user = !privileged();
    let mounts = Mounts { write: Vec::new(), protect: Vec::new() };
    let all = [
        ("user", Namespaces { user: true, ..Namespaces::default() }),
        ("mount", Namespaces { user, mounts: Some(mounts), network: false }),
        ("network", Namespaces { user, mounts: None, network: true }),
    ];
    let entered = |namespaces| enter(Policy { namespaces, ..Policy::none() });
    all.map(|(name, namespaces)| (name, entered(namespaces))).into()
}

/// The version of Landlock that the kernel has; none where there is none, or it is turned off.
pub fn landlock_version() -> Option<u32> {
    #[cfg(target_os = "linux")]
    return super::landlock::version();
    #[cfg(not(target_os = "linux"))]
    return None;
}

/// Every level, and whether it holds on this machine. Blocks for some milliseconds each.
pub fn survey() -> Vec<Finding> {
    let user_namespace =
        |level: &Level| !privileged() && (level.mounts || level.network_off == Some(NetworkOff::Namespace));
    Level::all()
        .map(|level| {
            let way = Way { level, user: user_namespace(&level) };
            let broken = probe(level, |write| way.policy(write, &[])).err();
            Finding { level, user_namespace: way.user, broken }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Request, Sandbox, Wanted};

    #[test]
    fn off_is_off_without_a_look() {
        let request = Request { wanted: Wanted::Off, required: false, network: true, protect: false };
        let sandbox = Sandbox::choose(&request).unwrap();
        assert_eq!(sandbox.name(), "off");
        assert!(sandbox.policy(&["/tmp".into()], &[]).is_none());
        assert!(sandbox.tried().is_empty());
        assert!(Sandbox::choose(&Request { required: true, ..request }).is_err());
        assert!(Sandbox::choose(&Request { network: false, ..request }).is_err());
    }
}
