//! How the provider is configured.

use provider_core::prelude::*;

/// Configuration of the filesystem provider.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct FilesystemConfig {
    /// The directories that may be used: absolute, relative to the process's directory (".") or starting with "~".
    #[schemars(length(min = 1))]
    pub allowed_roots: Vec<String>,
    /// Refuses every change.
    #[serde(default)]
    pub read_only: bool,
    /// Globs of paths, relative to a root or absolute, that are neither read nor written.
    #[serde(default)]
    pub deny: Vec<String>,
    /// Globs of paths that are read but never written.
    #[serde(default = "git_folders")]
    pub protect: Vec<String>,
    /// What happens to a change of a file that something else changed since it was read.
    #[serde(default)]
    pub stale: Stale,
    /// How images are answered.
    #[serde(default)]
    pub media: Media,
    /// Where state is kept; by default below the user's state folder.
    pub state_dir: Option<String>,
}

fn git_folders() -> Vec<String> {
    vec!["**/.git/**".to_owned()]
}

/// What happens to a change of a file that changed since it was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stale {
    /// An edit applies with a note if its text still occurs exactly once; a write is refused.
    #[default]
    Unique,
    /// Unread and changed files are refused.
    Strict,
    /// Only expected_sha256 is looked at.
    Off,
}

/// How images are answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Media {
    /// With their type and size in words.
    #[default]
    Describe,
    /// With their bytes as well.
    Inline,
}
