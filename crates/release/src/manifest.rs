//! `manifest.json`: what a release holds.

use std::collections::BTreeMap;

use semver::Version;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::hash::Sha256;
use crate::platform::Platform;

/// The version of the manifest's form that this crate writes, and the newest it reads.
pub const FORMAT_VERSION: u32 = 1;

/// What a release holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`FORMAT_VERSION`].
    pub format_version: u32,
    /// Version of every provider in it.
    pub version: Version,
    /// Commit it was built from.
    pub commit: String,
    /// The providers, by name.
    pub providers: Vec<Provider>,
    /// What else is released, such as `toolctl`: the artifacts of each program, by its name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub programs: BTreeMap<String, BTreeMap<Platform, Artifact>>,
}

/// A provider of a release.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Provider {
    /// Its name in the catalog, such as `filesystem`.
    pub name: String,
    /// Its source address, such as `github.com/pluggable-harness/provider-filesystem`.
    pub source: String,
    /// Its category in the kernel: `tool`.
    pub category: String,
    /// A configuration that it accepts, for the example `agent.hcl`.
    #[serde(default)]
    pub example: Map<String, Value>,
    /// What was built, per platform.
    pub artifacts: BTreeMap<Platform, Artifact>,
}

/// One archive and the program in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Artifact {
    /// File name of the archive, beside the manifest.
    pub archive: String,
    /// Hash of the archive.
    pub archive_sha256: Sha256,
    /// File name of the program inside the archive.
    pub program: String,
    /// Hash of the program, which is what the kernel's lock file records.
    pub program_sha256: Sha256,
    /// Size of the program, in bytes.
    pub program_bytes: u64,
}

impl Provider {
    /// The last part of the source: the name of the program in the kernel's cache.
    #[must_use]
    pub fn repository(&self) -> &str {
        self.source.rsplit('/').next().unwrap_or(&self.source)
    }
}

impl Manifest {
    /// The file's text.
    #[must_use]
    pub fn to_json(&self) -> String {
        // A manifest is strings, numbers and maps with string keys: it always has a text.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// The manifest of a release that holds nothing but one of these providers.
    pub(crate) fn only(&self, provider: &Provider) -> Self {
        Self { providers: vec![provider.clone()], programs: BTreeMap::new(), ..self.clone() }
    }

    /// Every archive, of providers and of other programs.
    pub fn artifacts(&self) -> impl Iterator<Item = &Artifact> {
        let providers = self.providers.iter().flat_map(|provider| provider.artifacts.values());
        providers.chain(self.programs.values().flat_map(BTreeMap::values))
    }

    /// What is wrong with the names in it: they become file names, so none may lead elsewhere.
    pub(crate) fn problem(&self) -> Option<String> {
        if self.format_version > FORMAT_VERSION {
            return Some(format!(
                "format_version is {}, and {FORMAT_VERSION} is the newest this program knows; use a newer toolctl",
                self.format_version
            ));
        }
        let named = self.artifacts().flat_map(|artifact| [&artifact.archive, &artifact.program]);
        let astray = named.into_iter().find(|name| !is_file_name(name));
        astray
            .map(|name| format!("{name:?} is no plain file name"))
            .or_else(|| self.providers.iter().find_map(Provider::problem))
    }
}

/// Whether a text can only be a file in a folder, whatever the folder.
pub(crate) fn is_file_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('.')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-+".contains(&byte))
}

impl Provider {
    fn problem(&self) -> Option<String> {
        if !is_file_name(&self.name) {
            return Some(format!("name {:?} is no name of a provider", self.name));
        }
        if self.source.split('/').count() < 3 || !self.source.split('/').all(is_file_name) {
            return Some(format!("source {:?} is not <host>/<organisation>/<repository>", self.source));
        }
        None
    }
}
