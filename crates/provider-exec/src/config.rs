//! How the provider is configured.

use std::collections::BTreeMap;

use provider_core::prelude::*;

/// Configuration of the exec provider.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct ExecConfig {
    /// The directory in which commands work: absolute, relative to the process's directory (".") or starting with
    /// "~". Working directories cannot lie outside.
    #[schemars(length(min = 1))]
    pub root: String,
    /// The shell that runs commands, by name or path. Default: bash, and sh where there is none.
    pub shell: Option<String>,
    /// What commands may write.
    #[serde(default)]
    pub sandbox: SandboxWanted,
    /// Refuses to start where the sandbox does not hold, instead of working without.
    #[serde(default)]
    pub sandbox_required: bool,
    /// Whether commands may use the network. Turning it off needs a sandbox.
    #[serde(default = "yes")]
    pub network: bool,
    /// Names of environment variables that are passed on besides PATH, HOME, LANG, LC_*, TERM, TMPDIR, USER and SHELL.
    #[serde(default)]
    pub env_pass: Vec<String>,
    /// Environment variables that every command gets.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// How long a command may run when the call says nothing, in milliseconds.
    #[serde(default = "two_minutes")]
    #[schemars(range(min = 1, max = 86_400_000))]
    pub default_timeout_ms: u64,
    /// The longest timeout a call may ask for, in milliseconds.
    #[serde(default = "ten_minutes")]
    #[schemars(range(min = 1, max = 86_400_000))]
    pub max_timeout_ms: u64,
    /// How long processes may take to end after SIGTERM, before SIGKILL, in milliseconds.
    #[serde(default = "two_seconds")]
    #[schemars(range(min = 0, max = 60_000))]
    pub grace_ms: u64,
    /// How many bytes of output a result carries; of more, the beginning and the end.
    #[serde(default = "kib_32")]
    #[schemars(range(min = 1_024, max = 1_048_576))]
    pub max_output_bytes: u64,
    /// How many bytes of one command's output are kept on disk; of more, the end.
    #[serde(default = "mib_100")]
    #[schemars(range(min = 65_536))]
    pub spill_quota_bytes: u64,
    /// Ends a command whose processes together hold more memory than this, in bytes. Default: no limit.
    #[schemars(range(min = 1_048_576))]
    pub memory_limit_bytes: Option<u64>,
    /// Ends a command that has more processes than this at one time. Default: no limit.
    #[schemars(range(min = 1))]
    pub process_limit: Option<u64>,
    /// Paths outside the root that commands may write in the sandbox. Default: the usual package caches, such as
    /// ~/.cargo/registry, ~/.npm and ~/.cache.
    pub write_paths: Option<Vec<String>>,
    /// Paths in the root that commands must not write: paths, or globs relative to the root, which are looked up when
    /// the provider is configured. This needs a sandbox with mounts; where there is none, results say so. Default:
    /// .git/hooks.
    pub protect: Option<Vec<String>>,
    /// What becomes of processes that outlive the shell that started them.
    #[serde(default)]
    pub survivors: Survivors,
    /// Where state is kept; by default below the user's state folder.
    pub state_dir: Option<String>,
}

fn yes() -> bool {
    true
}

fn two_minutes() -> u64 {
    120_000
}

fn ten_minutes() -> u64 {
    600_000
}

fn two_seconds() -> u64 {
    2_000
}

fn kib_32() -> u64 {
    32 * 1_024
}

fn mib_100() -> u64 {
    100 * 1_024 * 1_024
}

/// What commands may write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SandboxWanted {
    /// The strongest workspace_write that holds on this machine, or else everything.
    #[default]
    Auto,
    /// The root, a temporary directory and write_paths.
    WorkspaceWrite,
    /// A temporary directory.
    ReadOnly,
    /// Everything.
    Off,
}

/// What becomes of processes that outlive the shell that started them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Survivors {
    /// They become a job, which ends with the session.
    #[default]
    Adopt,
    /// They are ended at once.
    Kill,
}
