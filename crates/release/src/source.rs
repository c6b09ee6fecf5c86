//! Where a release comes from: the folder that `cargo xtask dist` wrote, or a mirror of such folders.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use semver::VersionReq;

use crate::archive::{UnpackError, unpack};
use crate::hash::Sha256;
use crate::manifest::{Artifact, Manifest, Provider};

/// The name of the manifest in its folder.
pub(crate) const MANIFEST: &str = "manifest.json";
/// The name of the list of hashes in its folder.
pub(crate) const SUMS: &str = "SHA256SUMS";

/// A folder with a manifest, and the archives that it names.
#[derive(Clone, Debug)]
pub struct Release {
    folder: PathBuf,
    manifest: Manifest,
}

/// Why a release cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseError {
    /// There is none.
    #[error("{0} holds no release: neither {MANIFEST}, nor the folders of a mirror (github.com/…/…/v1.2.3)")]
    NoRelease(PathBuf),
    /// No version fits.
    #[error("{folder} has no version that fits {wanted}; it has {known}")]
    NoVersion {
        /// Where was looked.
        folder: PathBuf,
        /// What was asked for.
        wanted: VersionReq,
        /// The versions that are there.
        known: String,
    },
    /// A file cannot be read.
    #[error("cannot read {path}: {error}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file is not what its name says.
    #[error("{path}: {problem}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A file is not the one that was released.
    #[error("{path} is not what was released: its SHA-256 is {found}, and {recorded_in} has {recorded}")]
    Tampered {
        /// The file.
        path: PathBuf,
        /// Its hash.
        found: Sha256,
        /// The hash it should have.
        recorded: Sha256,
        /// The file that says so.
        recorded_in: &'static str,
    },
}

impl Release {
    /// Opens the releases that `folder` holds and that fit `wanted`: the one of a dist folder, or the newest of each
    /// provider in a mirror.
    ///
    /// # Errors
    /// There is none, none fits, or one is damaged.
    pub fn open_all(folder: &Path, wanted: &VersionReq) -> Result<Vec<Self>, ReleaseError> {
        let folders =
            if folder.join(MANIFEST).exists() { vec![folder.to_path_buf()] } else { mirrored(folder)? };
        if folders.is_empty() {
            return Err(ReleaseError::NoRelease(folder.to_path_buf()));
        }
        let mut newest: BTreeMap<String, Self> = BTreeMap::new();
        let mut known = Vec::new();
        for folder in folders {
            let release = Self::open(&folder)?;
            known.push(release.manifest.version.clone());
            if !wanted.matches(&release.manifest.version) {
                continue;
            }
            for provider in &release.manifest.providers {
                let rival = newest.get(&provider.source).map(|rival| &rival.manifest.version);
                if rival.is_none_or(|rival| *rival < release.manifest.version) {
                    newest.insert(provider.source.clone(), release.only(provider));
                }
            }
        }
        if newest.is_empty() {
            known.sort();
            known.dedup();
            let known = known.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            return Err(ReleaseError::NoVersion {
                folder: folder.to_path_buf(),
                wanted: wanted.clone(),
                known,
            });
        }
        Ok(newest.into_values().collect())
    }

    /// Opens the release in `folder` itself.
    ///
    /// # Errors
    /// There is no manifest, it is malformed, or it is not the one that `SHA256SUMS` lists.
    pub fn open(folder: &Path) -> Result<Self, ReleaseError> {
        let path = folder.join(MANIFEST);
        let text = read(&path)?;
        if folder.join(SUMS).exists() {
            verify(&path, &text, recorded(folder, MANIFEST)?, SUMS)?;
        }
        let malformed = |problem: String| ReleaseError::Malformed { path: path.clone(), problem };
        let manifest: Manifest =
            serde_json::from_slice(&text).map_err(|error| malformed(error.to_string()))?;
        if let Some(problem) = manifest.problem() {
            return Err(malformed(problem));
        }
        Ok(Self { folder: folder.to_path_buf(), manifest })
    }

    /// Where it is.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What it holds.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The program of one artifact, verified: the archive has the hash that was released, and so has the program.
    ///
    /// # Errors
    /// A hash is another one, or the archive cannot be read.
    pub fn program(&self, artifact: &Artifact) -> Result<Vec<u8>, ReleaseError> {
        let path = self.folder.join(&artifact.archive);
        let archive = read(&path)?;
        verify(&path, &archive, artifact.archive_sha256, MANIFEST)?;
        let program = unpack(&archive, &artifact.program).map_err(|error: UnpackError| {
            ReleaseError::Malformed { path: path.clone(), problem: error.to_string() }
        })?;
        verify(&path.join(&artifact.program), &program, artifact.program_sha256, MANIFEST)?;
        Ok(program)
    }

    /// Compares every file of the release with `SHA256SUMS`, and every program with the manifest.
    ///
    /// # Errors
    /// A file is missing, not listed, or not the one that was released.
    pub fn verify(&self) -> Result<(), ReleaseError> {
        for artifact in self.manifest.artifacts() {
            let path = self.folder.join(&artifact.archive);
            verify(&path, &read(&path)?, recorded(&self.folder, &artifact.archive)?, SUMS)?;
            self.program(artifact)?;
        }
        Ok(())
    }

    fn only(&self, provider: &Provider) -> Self {
        let manifest = self.manifest.only(provider);
        Self { folder: self.folder.clone(), manifest }
    }
}

/// The folders of a mirror: `<host>/<organisation>/<repository>/v<version>`.
fn mirrored(folder: &Path) -> Result<Vec<PathBuf>, ReleaseError> {
    let mut level = vec![folder.to_path_buf()];
    for _ in 0..4 {
        let mut next = Vec::new();
        for folder in level {
            let entries =
                fs::read_dir(&folder).map_err(|error| ReleaseError::Read { path: folder.clone(), error })?;
            let entries = entries.filter_map(Result::ok).map(|entry| entry.path());
            next.extend(entries.filter(|path| path.is_dir()));
        }
        level = next;
    }
    level.retain(|folder| folder.join(MANIFEST).exists());
    level.sort();
    Ok(level)
}

/// The hash that [`SUMS`] has of a file beside it.
fn recorded(folder: &Path, name: &str) -> Result<Sha256, ReleaseError> {
    let path = folder.join(SUMS);
    let text = String::from_utf8_lossy(&read(&path)?).into_owned();
    let hash = text.lines().find_map(|line| {
        let (hash, file) = line.split_once(' ')?;
        (file.trim_start_matches([' ', '*']) == name).then(|| hash.parse().ok())?
    });
    hash.ok_or_else(|| ReleaseError::Malformed { path, problem: format!("it has no hash of {name}") })
}

fn verify(
    path: &Path,
    content: &[u8],
    recorded: Sha256,
    recorded_in: &'static str,
) -> Result<(), ReleaseError> {
    let found = Sha256::of(content);
    if found == recorded {
        return Ok(());
    }
    Err(ReleaseError::Tampered { path: path.to_path_buf(), found, recorded, recorded_in })
}

fn read(path: &Path) -> Result<Vec<u8>, ReleaseError> {
    fs::read(path).map_err(|error| ReleaseError::Read { path: path.to_path_buf(), error })
}
