//! The names of what confines a command. There is a fixed set of them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a confined command may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// Nothing but its temporary directory.
    ReadOnly,
    /// The workspace and what else it was given.
    WorkspaceWrite,
}

/// How the network is kept away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NetworkOff {
    /// The command has a network of its own with nothing in it but a loopback device.
    Namespace,
    /// No socket can be made but local ones.
    Filter,
}

/// What confines a command, in full. Its [`Display`](fmt::Display) form is what results report, and one of
/// [`Level::all`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Level {
    /// What may be written.
    pub mode: Mode,
    /// Landlock denies changes of files elsewhere.
    pub landlock: bool,
    /// Everything else is mounted read-only in a mount namespace; so are protected paths.
    pub mounts: bool,
    /// The network is kept away, and how.
    pub network_off: Option<NetworkOff>,
}

impl Level {
    /// Every level there is.
    pub fn all() -> impl Iterator<Item = Self> {
        let modes = [Mode::ReadOnly, Mode::WorkspaceWrite];
        let means = [(true, true), (true, false), (false, true)];
        let networks = [None, Some(NetworkOff::Namespace), Some(NetworkOff::Filter)];
        modes.into_iter().flat_map(move |mode| {
            means.into_iter().flat_map(move |(landlock, mounts)| {
                networks.into_iter().map(move |network_off| Self { mode, landlock, mounts, network_off })
            })
        })
    }
}

/// The name of no confinement.
pub const OFF: &str = "off";

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.mode {
            Mode::ReadOnly => "read_only",
            Mode::WorkspaceWrite => "workspace_write",
        })?;
        f.write_str(match (self.landlock, self.mounts) {
            (true, true) => " (landlock, mounts)",
            (true, false) => " (landlock)",
            (false, true) => " (mounts)",
            (false, false) => " (nothing)",
        })?;
        f.write_str(match self.network_off {
            None => "",
            Some(NetworkOff::Namespace) => ", no network (namespace)",
            Some(NetworkOff::Filter) => ", no network (filter)",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::Level;

    #[test]
    fn every_level_has_a_name_of_its_own() {
        let names: HashSet<String> = Level::all().map(|level| level.to_string()).collect();
        assert_eq!(names.len(), 18);
        assert!(names.contains("workspace_write (landlock, mounts)"));
        assert!(names.contains("read_only (landlock), no network (filter)"));
        assert!(!names.iter().any(|name| name.contains("nothing")));
    }
}
