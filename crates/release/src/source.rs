//! Where a release comes from: the folder that `cargo xtask dist` wrote, or a mirror of such folders; on disk, or from
//! wherever else [`Files`] can be read.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use semver::VersionReq;
use serde::{Deserialize, Serialize};

use crate::archive::{UnpackError, unpack};
use crate::hash::Sha256;
use crate::manifest::{Artifact, Manifest, Provider};

/// The name of the manifest in its folder.
pub(crate) const MANIFEST: &str = "manifest.json";
/// The name of the list of hashes in its folder.
pub(crate) const SUMS: &str = "SHA256SUMS";

/// The name of the list of a mirror's folders, for those who cannot list them.
pub(crate) const INDEX: &str = "index.json";

/// The files of a release or a mirror, wherever they are. Names have `/` between folders.
pub trait Files: fmt::Debug + Send + Sync {
    /// The content of a file.
    ///
    /// # Errors
    /// Why it cannot be read; `NotFound` where there is none.
    fn read(&self, name: &str) -> io::Result<Vec<u8>>;

    /// The folders that may hold a release: `""`, or those of a mirror.
    ///
    /// # Errors
    /// They cannot be found out.
    fn releases(&self) -> io::Result<Vec<String>>;
}

/// `index.json`: the folders of a mirror.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    /// [`crate::FORMAT_VERSION`].
    pub format_version: u32,
    /// The folders, each `<host>/<organisation>/<repository>/v<version>`.
    pub releases: Vec<String>,
}

impl Index {
    /// Writes the list of a mirror's folder into it, for those who cannot list folders.
    ///
    /// # Errors
    /// The folder cannot be read or written.
    pub fn write(mirror: &Path) -> io::Result<Self> {
        let index = Self { format_version: crate::FORMAT_VERSION, releases: mirrored(mirror)? };
        let text = serde_json::to_string_pretty(&index).map_err(io::Error::other)?;
        fs::write(mirror.join(INDEX), text + "\n")?;
        Ok(index)
    }

    /// Reads the list.
    ///
    /// # Errors
    /// It is none, or names what is no folder below the mirror.
    pub fn parse(text: &[u8]) -> io::Result<Self> {
        let malformed = |problem: String| io::Error::new(io::ErrorKind::InvalidData, problem);
        let index: Self = serde_json::from_slice(text).map_err(|error| malformed(error.to_string()))?;
        let astray = |folder: &&String| !folder.split('/').all(crate::manifest::is_file_name);
        match index.releases.iter().find(astray) {
            Some(folder) => Err(malformed(format!("{folder:?} is no folder of a mirror"))),
            None => Ok(index),
        }
    }
}

/// Files of this machine.
#[derive(Clone, Debug)]
struct Folder(PathBuf);

impl Files for Folder {
    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        fs::read(self.0.join(name))
    }

    fn releases(&self) -> io::Result<Vec<String>> {
        if self.0.join(MANIFEST).exists() { Ok(vec![String::new()]) } else { mirrored(&self.0) }
    }
}

/// A folder with a manifest, and the archives that it names.
#[derive(Clone, Debug)]
pub struct Release {
    files: Arc<dyn Files>,
    /// Within the files.
    below: String,
    /// What the files are called in front of people.
    place: PathBuf,
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
        Self::open_all_of(&(Arc::new(Folder(folder.to_path_buf())) as Arc<dyn Files>), folder, wanted)
    }

    /// The same for any files, which errors call `place`.
    ///
    /// # Errors
    /// There is none, none fits, or one is damaged.
    pub fn open_all_of(
        files: &Arc<dyn Files>,
        place: &Path,
        wanted: &VersionReq,
    ) -> Result<Vec<Self>, ReleaseError> {
        let folders =
            files.releases().map_err(|error| ReleaseError::Read { path: place.to_path_buf(), error })?;
        if folders.is_empty() {
            return Err(ReleaseError::NoRelease(place.to_path_buf()));
        }
        let mut newest: BTreeMap<String, Self> = BTreeMap::new();
        let mut known = Vec::new();
        for folder in folders {
            let release = Self::open_in(files.clone(), place, folder)?;
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
                folder: place.to_path_buf(),
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
        Self::open_in(Arc::new(Folder(folder.to_path_buf())), folder, String::new())
    }

    fn open_in(files: Arc<dyn Files>, place: &Path, below: String) -> Result<Self, ReleaseError> {
        let manifest = Manifest {
            format_version: crate::FORMAT_VERSION,
            version: semver::Version::new(0, 0, 0),
            commit: String::new(),
            providers: Vec::new(),
            programs: BTreeMap::new(),
        };
        let mut release = Self { files, below, place: place.to_path_buf(), manifest };
        let text = release.read(MANIFEST)?;
        match release.recorded(MANIFEST) {
            Ok(recorded) => verify(&release.path(MANIFEST), &text, recorded, SUMS)?,
            // A release without the list has its hashes in the manifest.
            Err(ReleaseError::Read { error, .. }) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let malformed = |problem: String| ReleaseError::Malformed { path: release.path(MANIFEST), problem };
        let manifest: Manifest =
            serde_json::from_slice(&text).map_err(|error| malformed(error.to_string()))?;
        if let Some(problem) = manifest.problem() {
            return Err(malformed(problem));
        }
        release.manifest = manifest;
        Ok(release)
    }

    /// Where it is.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        if self.below.is_empty() { self.place.clone() } else { self.place.join(&self.below) }
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
        let path = self.path(&artifact.archive);
        let archive = self.read(&artifact.archive)?;
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
            let archive = self.read(&artifact.archive)?;
            verify(&self.path(&artifact.archive), &archive, self.recorded(&artifact.archive)?, SUMS)?;
            self.program(artifact)?;
        }
        Ok(())
    }

    fn only(&self, provider: &Provider) -> Self {
        let manifest = self.manifest.only(provider);
        Self { manifest, ..self.clone() }
    }

    /// A file of the release as it is named in front of people.
    fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    fn read(&self, name: &str) -> Result<Vec<u8>, ReleaseError> {
        let within = if self.below.is_empty() { name.to_owned() } else { format!("{}/{name}", self.below) };
        self.files.read(&within).map_err(|error| ReleaseError::Read { path: self.path(name), error })
    }

    /// The hash that [`SUMS`] has of a file beside it.
    fn recorded(&self, name: &str) -> Result<Sha256, ReleaseError> {
        let text = String::from_utf8_lossy(&self.read(SUMS)?).into_owned();
        let hash = text.lines().find_map(|line| {
            let (hash, file) = line.split_once(' ')?;
            (file.trim_start_matches([' ', '*']) == name).then(|| hash.parse().ok())?
        });
        let problem = format!("it has no hash of {name}");
        hash.ok_or_else(|| ReleaseError::Malformed { path: self.path(SUMS), problem })
    }
}

/// The folders of a mirror: `<host>/<organisation>/<repository>/v<version>`.
fn mirrored(folder: &Path) -> io::Result<Vec<String>> {
    let mut level = vec![String::new()];
    for _ in 0..4 {
        let mut next = Vec::new();
        for below in level {
            for entry in fs::read_dir(folder.join(&below))?.filter_map(Result::ok) {
                let name = entry.file_name().into_string().ok().filter(|_| entry.path().is_dir());
                next.extend(name.map(|name| if below.is_empty() { name } else { format!("{below}/{name}") }));
            }
        }
        level = next;
    }
    level.retain(|below| folder.join(below).join(MANIFEST).exists());
    level.sort();
    Ok(level)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_names_folders_of_its_mirror_and_no_others() {
        let read = |folder: &str| {
            Index::parse(format!("{{\"format_version\": 1, \"releases\": [{folder:?}]}}").as_bytes())
        };
        assert_eq!(read("github.com/o/provider-x/v1.0.0").unwrap().releases.len(), 1);
        for folder in ["../x", "/etc", "a//b", "", "a/./b", "https://other.example/x", "a?b", ".hidden"] {
            assert_eq!(read(folder).unwrap_err().kind(), io::ErrorKind::InvalidData, "{folder}");
        }
        assert!(Index::parse(b"<html>").is_err());
    }
}
