//! Writing a release.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use semver::Version;

use crate::archive::{Entry, pack};
use crate::hash::Sha256;
use crate::manifest::{Artifact, FORMAT_VERSION, Manifest, Provider};
use crate::platform::Platform;
use crate::source::{Index, MANIFEST, Release, SUMS};

/// A release in the making: archives are written as they come, what lists them at the end.
#[derive(Debug)]
pub struct Builder {
    folder: PathBuf,
    manifest: Manifest,
}

/// What is released of a provider, whatever the platform.
#[derive(Clone, Debug)]
pub struct Described {
    /// Its name in the catalog.
    pub name: String,
    /// Its source address.
    pub source: String,
    /// Its category in the kernel.
    pub category: String,
    /// A configuration that it accepts.
    pub example: serde_json::Map<String, serde_json::Value>,
}

impl Builder {
    /// Begins a release in `folder`. What another machine has built of the same version and commit, and is there
    /// whole, stays in it.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn new(folder: &Path, version: Version, commit: &str) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let begun = Release::open(folder).ok().filter(|release| release.verify().is_ok());
        let begun = begun.map(|release| release.manifest().clone());
        let manifest = begun.filter(|begun| begun.version == version && begun.commit == commit);
        let manifest = manifest.unwrap_or_else(|| Manifest {
            format_version: FORMAT_VERSION,
            version,
            commit: commit.to_owned(),
            providers: Vec::new(),
            programs: BTreeMap::new(),
        });
        Ok(Self { folder: folder.to_path_buf(), manifest })
    }

    /// Packs the program of a provider for a platform, with `papers` (licences, list of parts) beside it.
    ///
    /// # Errors
    /// The archive cannot be written.
    pub fn add(
        &mut self,
        described: &Described,
        platform: &Platform,
        program: Vec<u8>,
        papers: &[Entry],
    ) -> io::Result<()> {
        let repository = described.source.rsplit('/').next().unwrap_or(&described.source);
        let artifact = self.archive(repository, platform, program, papers)?;
        self.provider(described).artifacts.insert(platform.clone(), artifact);
        Ok(())
    }

    /// Packs a program that is no provider.
    ///
    /// # Errors
    /// The archive cannot be written.
    pub fn add_program(
        &mut self,
        name: &str,
        platform: &Platform,
        program: Vec<u8>,
        papers: &[Entry],
    ) -> io::Result<()> {
        let artifact = self.archive(name, platform, program, papers)?;
        self.manifest.programs.entry(name.to_owned()).or_default().insert(platform.clone(), artifact);
        Ok(())
    }

    /// Takes over what another machine has built of the same version and commit.
    ///
    /// # Errors
    /// The other release is damaged or of something else, or a file cannot be copied.
    pub fn adopt(&mut self, other: &Release) -> io::Result<()> {
        other.verify().map_err(io::Error::other)?;
        let theirs = other.manifest();
        if (&theirs.version, &theirs.commit) != (&self.manifest.version, &self.manifest.commit) {
            return Err(io::Error::other(format!(
                "{} is {} at {}, and this release is {} at {}",
                other.folder().display(),
                theirs.version,
                theirs.commit,
                self.manifest.version,
                self.manifest.commit
            )));
        }
        for artifact in theirs.artifacts() {
            fs::copy(other.folder().join(&artifact.archive), self.folder.join(&artifact.archive))?;
        }
        for provider in &theirs.providers {
            let described = Described {
                name: provider.name.clone(),
                source: provider.source.clone(),
                category: provider.category.clone(),
                example: provider.example.clone(),
            };
            self.provider(&described).artifacts.extend(provider.artifacts.clone());
        }
        for (name, artifacts) in &theirs.programs {
            self.manifest.programs.entry(name.clone()).or_default().extend(artifacts.clone());
        }
        Ok(())
    }

    fn archive(
        &self,
        name: &str,
        platform: &Platform,
        program: Vec<u8>,
        papers: &[Entry],
    ) -> io::Result<Artifact> {
        let file = format!("{name}{}", platform.program_suffix());
        let (program_sha256, program_bytes) = (Sha256::of(&program), program.len() as u64);
        let mut entries = vec![Entry { name: file.clone(), executable: true, content: program }];
        entries.extend_from_slice(papers);
        let packed = pack(&entries)?;
        let archive = format!("{name}_{}_{platform}.tar.gz", self.manifest.version);
        fs::write(self.folder.join(&archive), &packed)?;
        let archive_sha256 = Sha256::of(&packed);
        Ok(Artifact { archive, archive_sha256, program: file, program_sha256, program_bytes })
    }

    /// Writes the manifest, the list of hashes, and `mirror/`, where each provider has a release of its own at the
    /// place that its source names, and a list of these places.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn finish(mut self) -> io::Result<Release> {
        self.manifest.providers.sort_by(|one, other| one.name.cmp(&other.name));
        list(&self.folder, &self.manifest)?;
        let mirror = self.folder.join("mirror");
        if mirror.exists() {
            fs::remove_dir_all(&mirror)?;
        }
        for provider in &self.manifest.providers {
            let folder = mirror.join(&provider.source).join(format!("v{}", self.manifest.version));
            fs::create_dir_all(&folder)?;
            for artifact in provider.artifacts.values() {
                let (from, to) = (self.folder.join(&artifact.archive), folder.join(&artifact.archive));
                fs::hard_link(&from, &to).or_else(|_| fs::copy(&from, &to).map(drop))?;
            }
            list(&folder, &self.manifest.only(provider))?;
        }
        fs::create_dir_all(&mirror)?;
        Index::write(&mirror)?;
        Release::open(&self.folder).map_err(io::Error::other)
    }

    fn provider(&mut self, described: &Described) -> &mut Provider {
        let providers = &mut self.manifest.providers;
        let index =
            providers.iter().position(|known| known.source == described.source).unwrap_or_else(|| {
                providers.push(Provider {
                    name: String::new(),
                    source: described.source.clone(),
                    category: String::new(),
                    example: serde_json::Map::new(),
                    artifacts: BTreeMap::new(),
                });
                providers.len() - 1
            });
        let provider = &mut providers[index];
        provider.name.clone_from(&described.name);
        provider.category.clone_from(&described.category);
        provider.example.clone_from(&described.example);
        provider
    }
}

/// Writes the manifest and the hashes of a folder.
fn list(folder: &Path, manifest: &Manifest) -> io::Result<()> {
    let text = manifest.to_json();
    let mut sums = BTreeMap::from([(MANIFEST, Sha256::of(text.as_bytes()))]);
    for artifact in manifest.artifacts() {
        sums.insert(&artifact.archive, artifact.archive_sha256);
    }
    let lines: String = sums.iter().map(|(name, hash)| format!("{hash}  {name}\n")).collect();
    fs::write(folder.join(MANIFEST), &text)?;
    fs::write(folder.join(SUMS), lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(name: &str) -> Described {
        Described {
            name: name.to_owned(),
            source: format!("github.com/o/provider-{name}"),
            category: "tool".to_owned(),
            example: serde_json::Map::new(),
        }
    }

    fn build(folder: &Path, commit: &str, parts: &[(&str, &str)]) -> Release {
        let mut builder = Builder::new(folder, Version::new(1, 0, 0), commit).unwrap();
        for (name, platform) in parts {
            let program = format!("{name} {platform}").into_bytes();
            builder.add(&described(name), &platform.parse().unwrap(), program, &[]).unwrap();
        }
        builder.finish().unwrap()
    }

    /// Every file below a folder with its bytes.
    fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        let mut folders = vec![folder.to_path_buf()];
        while let Some(next) = folders.pop() {
            for entry in fs::read_dir(next).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    found.insert(path.strip_prefix(folder).unwrap().to_path_buf(), fs::read(&path).unwrap());
                }
            }
        }
        found
    }

    #[test]
    fn the_same_programs_make_the_same_files() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        build(one.path(), "c", &[("b", "linux_amd64"), ("a", "linux_amd64")]);
        build(other.path(), "c", &[("a", "linux_amd64"), ("b", "linux_amd64")]);
        assert_eq!(files(one.path()), files(other.path()));
    }

    #[test]
    fn the_list_of_hashes_is_one_that_others_read() {
        let folder = tempfile::tempdir().unwrap();
        build(folder.path(), "c", &[("a", "linux_amd64")]);
        let mut check = std::process::Command::new("sha256sum");
        check.args(["-c", "--quiet", SUMS]).current_dir(folder.path());
        assert!(check.status().expect("sha256sum(1) is needed for this test").success());
    }

    #[test]
    fn two_machines_build_one_release() {
        let folder = tempfile::tempdir().unwrap();
        build(folder.path(), "c", &[("a", "linux_amd64"), ("b", "linux_amd64")]);
        let release = build(folder.path(), "c", &[("a", "darwin_arm64")]);
        let platforms = |index: usize| release.manifest().providers[index].artifacts.len();
        assert_eq!((platforms(0), platforms(1)), (2, 1));
        release.verify().unwrap();
        let mirrored = Release::open(&folder.path().join("mirror/github.com/o/provider-a/v1.0.0")).unwrap();
        mirrored.verify().unwrap();
        assert_eq!(mirrored.manifest().providers.len(), 1);
    }

    #[test]
    fn what_other_machines_built_is_put_together() {
        let (one, other, whole) =
            (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let parts = [
            build(one.path(), "c", &[("a", "linux_amd64")]),
            build(other.path(), "c", &[("a", "darwin_arm64"), ("b", "darwin_arm64")]),
        ];
        let mut builder = Builder::new(whole.path(), Version::new(1, 0, 0), "c").unwrap();
        parts.iter().for_each(|part| builder.adopt(part).unwrap());
        let release = builder.finish().unwrap();
        release.verify().unwrap();
        assert_eq!(release.manifest().providers[0].artifacts.len(), 2);

        let mut builder = Builder::new(whole.path(), Version::new(1, 0, 0), "d").unwrap();
        let error = builder.adopt(&parts[0]).unwrap_err().to_string();
        assert!(error.ends_with("is 1.0.0 at c, and this release is 1.0.0 at d"), "{error}");
    }

    #[test]
    fn another_commit_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        build(folder.path(), "c", &[("a", "linux_amd64"), ("b", "linux_amd64")]);
        let release = build(folder.path(), "d", &[("a", "linux_amd64")]);
        assert_eq!(release.manifest().providers.len(), 1);
    }
}
