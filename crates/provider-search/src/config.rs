//! How the provider is configured.

use std::time::Duration;

use provider_core::prelude::*;

/// Configuration of the search provider.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct SearchConfig {
    /// The directories that may be searched: absolute, relative to the process's directory (".") or starting with "~".
    #[schemars(length(min = 1))]
    pub allowed_roots: Vec<String>,
    /// Globs of paths, relative to a root or absolute, that are neither searched nor listed.
    #[serde(default)]
    pub deny: Vec<String>,
    /// How long one search may take, in milliseconds. What was found until then is answered, and marked as incomplete.
    #[serde(default = "ten_seconds")]
    #[schemars(range(min = 1, max = 600_000))]
    pub deadline_ms: u64,
}

fn ten_seconds() -> u64 {
    10_000
}

impl SearchConfig {
    /// [`SearchConfig::deadline_ms`] as a duration.
    pub(crate) fn deadline(&self) -> Duration {
        Duration::from_millis(self.deadline_ms)
    }
}
