//! How the provider is configured.

use std::collections::BTreeMap;
use std::time::Duration;

use codemode::{Limits, Sandboxing, Setting};
use provider_core::prelude::*;

/// Configuration of the code provider.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct CodeConfig {
    /// Providers whose tools programs may call, each a name or a path. A name is a program provider-NAME beside this one
    /// or on PATH.
    #[serde(default)]
    pub providers: Vec<String>,
    /// Directories that those providers may use, where they ask for some.
    #[serde(default)]
    pub allowed_roots: Vec<String>,
    /// What those providers are configured with, each by its entry in providers: a JSON object.
    #[serde(default)]
    pub provider_config: BTreeMap<String, String>,
    /// Whether programs may call tools that change things. Nobody is asked before such a call: what approves execute
    /// approves every call its program makes.
    #[serde(default)]
    pub allow_resources: bool,
    /// Whether programs run where system calls cannot be filtered. Then only the engine stands between a program and
    /// this machine.
    #[serde(default)]
    pub allow_weak_sandbox: bool,
    /// How long JavaScript may run between two tool answers, in milliseconds.
    #[serde(default = "seconds_10")]
    #[schemars(range(min = 1, max = 600_000))]
    pub slice_ms: u64,
    /// How long a program may take in all, in milliseconds.
    #[serde(default = "minutes_15")]
    #[schemars(range(min = 1, max = 900_000))]
    pub timeout_ms: u64,
}

fn seconds_10() -> u64 {
    10_000
}

fn minutes_15() -> u64 {
    900_000
}

impl CodeConfig {
    /// What a program may use.
    pub fn limits(&self) -> Limits {
        Limits {
            slice: Duration::from_millis(self.slice_ms),
            total: Duration::from_millis(self.timeout_ms),
            ..Limits::default()
        }
    }

    /// How the sandbox is made.
    pub fn sandboxing(&self) -> Sandboxing {
        let settings = if self.allow_weak_sandbox { vec![Setting::AllowWeak] } else { Vec::new() };
        Sandboxing { settings, probe: None }
    }
}
