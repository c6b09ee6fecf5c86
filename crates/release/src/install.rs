//! Filling the kernel's cache and a project's lock file from a release.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use semver::Version;

use crate::atomic;
use crate::cache::PluginCache;
use crate::hash::Sha256;
use crate::lock_file::{LockFile, LockFileError, Row};
use crate::manifest::Provider;
use crate::platform::Platform;
use crate::project_file::Entry;
use crate::source::{Release, ReleaseError};

/// The lock file of a project, below its folder.
const LOCK_FILE: &str = ".agent/agent.lock.hcl";

/// What is to be installed, and where.
#[derive(Clone, Debug)]
pub struct Request {
    /// Names of the providers; all of the release when empty.
    pub providers: Vec<String>,
    /// Platforms that go into the cache and the lock file. When empty, the cache gets this machine's, and the lock
    /// file all that the release has.
    pub platforms: Vec<Platform>,
    /// Folder of the project.
    pub project: PathBuf,
    /// The kernel's cache.
    pub cache: PluginCache,
    /// Whether another program of the same version may be replaced.
    pub replace: bool,
}

/// An installation that was planned and verified, and not yet done.
#[derive(Debug)]
pub struct Installation {
    programs: Vec<Program>,
    rows: Vec<Row>,
    entries: Vec<Entry>,
    changes: Vec<Change>,
    project: PathBuf,
    replace: bool,
}

#[derive(Debug)]
struct Program {
    path: PathBuf,
    content: Vec<u8>,
    hash: Sha256,
}

/// One thing that an installation does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A program comes into the cache.
    Add(PathBuf),
    /// A program takes the place of another one of the same version.
    Replace(PathBuf),
    /// A program is there already.
    Keep(PathBuf),
    /// A row is recorded.
    Record {
        /// The lock file.
        file: PathBuf,
        /// Local name of the provider.
        name: String,
        /// The version that was recorded before.
        from: Option<Version>,
        /// The version that is recorded now.
        to: Version,
        /// The platforms whose programs are recorded.
        platforms: Vec<Platform>,
    },
    /// A row says all this already.
    KeepRow {
        /// The lock file.
        file: PathBuf,
        /// Local name of the provider.
        name: String,
    },
}

impl Change {
    /// Whether it changes anything.
    #[must_use]
    pub fn is_change(&self) -> bool {
        !matches!(self, Self::Keep(_) | Self::KeepRow { .. })
    }
}

/// Why nothing is installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The release cannot be used.
    #[error(transparent)]
    Release(#[from] ReleaseError),
    /// The lock file cannot be changed.
    #[error("{path} is left as it is: {error}")]
    LockFile {
        /// The lock file.
        path: PathBuf,
        /// Why.
        error: LockFileError,
    },
    /// A provider is not in the release.
    #[error("the release has no provider {name}; it has {known}")]
    NoProvider {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// A provider was not built for a platform.
    #[error("the release has no {provider} for {platform}; it was built for {known}")]
    NoPlatform {
        /// The provider.
        provider: String,
        /// The platform.
        platform: Platform,
        /// What there is.
        known: String,
    },
    /// The lock file has another provider under the name.
    #[error(
        "{path} has a provider {name} from {found}, and this one is from {source_address}; give one of them another name"
    )]
    OtherSource {
        /// The lock file.
        path: PathBuf,
        /// Local name of the provider.
        name: String,
        /// Source in the lock file.
        found: String,
        /// Source in the release.
        source_address: String,
    },
    /// The same version is known with another program.
    #[error(
        "{path} has another program as {name} {version} for {platform}: a released version never changes, so one of them \
         is not what it says; --replace takes this one"
    )]
    OtherProgram {
        /// The lock file, or the program in the cache.
        path: PathBuf,
        /// The provider.
        name: String,
        /// Its version.
        version: Version,
        /// The platform.
        platform: Platform,
    },
    /// A file cannot be read or written.
    #[error("cannot {verb} {path}: {error}")]
    Io {
        /// What was tried.
        verb: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
}

impl Installation {
    /// Verifies everything that is asked for, and plans what to do about it. Nothing is written.
    ///
    /// # Errors
    /// The release lacks or fails something, or what is there already contradicts it.
    pub fn plan(releases: &[Release], request: &Request) -> Result<Self, InstallError> {
        let path = request.project.join(LOCK_FILE);
        let mut lock_file = read_lock_file(&path)?;
        let mut plan = Self {
            programs: Vec::new(),
            rows: Vec::new(),
            entries: Vec::new(),
            changes: Vec::new(),
            project: request.project.clone(),
            replace: request.replace,
        };
        for (release, provider) in selected(releases, &request.providers)? {
            plan.provider(release, provider, request)?;
        }
        for row in &plan.rows {
            plan.changes.push(record(&mut lock_file, row, &path, request.replace)?);
        }
        Ok(plan)
    }

    /// What it will do, in order.
    #[must_use]
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// The providers, as `agent.hcl` names them.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Does it: the programs first, then the lock file, which is read anew under a lock, so that what another
    /// installation has recorded meanwhile stays.
    ///
    /// # Errors
    /// A file cannot be written, or the lock file contradicts the release by now. What was installed so far stays;
    /// the lock file is the old one.
    pub fn apply(&self) -> Result<(), InstallError> {
        self.programs.iter().try_for_each(put)?;
        let path = self.project.join(LOCK_FILE);
        let folder = path.parent().unwrap_or(&self.project);
        fs::create_dir_all(folder).map_err(|error| io_error("create", folder, error))?;
        let _held = atomic::lock(folder).map_err(|error| io_error("lock", folder, error))?;
        atomic::sweep(folder).map_err(|error| io_error("tidy", folder, error))?;
        let mut lock_file = read_lock_file(&path)?;
        let before = lock_file.clone();
        for row in &self.rows {
            record(&mut lock_file, row, &path, self.replace)?;
        }
        if lock_file == before && path.exists() {
            return Ok(());
        }
        let mode = fs::metadata(&path).map_or(0o644, |found| found.mode() & 0o7777);
        atomic::write(&path, lock_file.text().as_bytes(), mode)
            .map_err(|error| io_error("write", &path, error))
    }

    fn provider(
        &mut self,
        release: &Release,
        provider: &Provider,
        request: &Request,
    ) -> Result<(), InstallError> {
        let version = &release.manifest().version;
        let here = [Platform::here()];
        let cached = if request.platforms.is_empty() { &here[..] } else { &request.platforms };
        let recorded: Vec<&Platform> = match request.platforms.as_slice() {
            [] => provider.artifacts.keys().collect(),
            some => some.iter().collect(),
        };
        let absent = cached.iter().find(|platform| !provider.artifacts.contains_key(platform));
        if let Some(platform) = absent {
            return Err(no_platform(provider, platform));
        }
        let mut checksums = BTreeMap::new();
        for platform in recorded {
            let artifact = provider.artifacts.get(platform).ok_or_else(|| no_platform(provider, platform))?;
            let content = release.program(artifact)?;
            checksums.insert(platform.clone(), artifact.program_sha256);
            if cached.contains(platform) {
                let path = request.cache.program(&provider.source, version, platform);
                let program = Program { path, content, hash: artifact.program_sha256 };
                let change = program.change(request.replace).map_err(|path| InstallError::OtherProgram {
                    path,
                    name: provider.name.clone(),
                    version: version.clone(),
                    platform: platform.clone(),
                })?;
                self.changes.push(change);
                self.programs.push(program);
            }
        }
        self.rows.push(Row {
            name: provider.name.clone(),
            source: provider.source.clone(),
            version: version.clone(),
            checksums,
            category: Some(provider.category.clone()),
        });
        self.entries.push(Entry {
            name: provider.name.clone(),
            source: provider.source.clone(),
            version: version.clone(),
            configuration: provider.example.clone(),
        });
        Ok(())
    }
}

impl Program {
    /// What putting it there means; the path is the error when another program is there and must not be replaced.
    fn change(&self, replace: bool) -> Result<Change, PathBuf> {
        match fs::read(&self.path) {
            Ok(there) if Sha256::of(&there) == self.hash => Ok(Change::Keep(self.path.clone())),
            Ok(_) if replace => Ok(Change::Replace(self.path.clone())),
            Ok(_) => Err(self.path.clone()),
            Err(_) => Ok(Change::Add(self.path.clone())),
        }
    }
}

/// Puts a program in its place. One that is there already is only made executable.
fn put(program: &Program) -> Result<(), InstallError> {
    let folder = program.path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder).map_err(|error| io_error("create", folder, error))?;
    let _held = atomic::lock(folder).map_err(|error| io_error("lock", folder, error))?;
    atomic::sweep(folder).map_err(|error| io_error("tidy", folder, error))?;
    if matches!(program.change(true), Ok(Change::Keep(_))) {
        return fs::set_permissions(&program.path, fs::Permissions::from_mode(0o755))
            .map_err(|error| io_error("change", &program.path, error));
    }
    atomic::write(&program.path, &program.content, 0o755)
        .map_err(|error| io_error("write", &program.path, error))
}

/// The providers that are asked for, each with its release.
fn selected<'a>(
    releases: &'a [Release],
    names: &[String],
) -> Result<Vec<(&'a Release, &'a Provider)>, InstallError> {
    let all: Vec<(&Release, &Provider)> = releases
        .iter()
        .flat_map(|release| release.manifest().providers.iter().map(move |provider| (release, provider)))
        .collect();
    if names.is_empty() {
        return Ok(all);
    }
    let find = |name: &String| {
        all.iter().find(|(_, provider)| provider.name == *name).copied().ok_or_else(|| {
            InstallError::NoProvider {
                name: name.clone(),
                known: all.iter().map(|(_, provider)| provider.name.as_str()).collect::<Vec<_>>().join(", "),
            }
        })
    };
    names.iter().map(find).collect()
}

fn no_platform(provider: &Provider, platform: &Platform) -> InstallError {
    InstallError::NoPlatform {
        provider: provider.name.clone(),
        platform: platform.clone(),
        known: provider.artifacts.keys().map(Platform::as_str).collect::<Vec<_>>().join(", "),
    }
}

/// Records a row, unless what is recorded contradicts it.
fn record(lock_file: &mut LockFile, row: &Row, path: &Path, replace: bool) -> Result<Change, InstallError> {
    let wrong = |error| InstallError::LockFile { path: path.to_path_buf(), error };
    let known = lock_file.row(&row.name).map_err(wrong)?;
    if let Some(known) = &known {
        if known.source != row.source {
            return Err(InstallError::OtherSource {
                path: path.to_path_buf(),
                name: row.name.clone(),
                found: known.source.clone(),
                source_address: row.source.clone(),
            });
        }
        let contradicts = |(platform, hash): &(&Platform, &Sha256)| {
            known.version == row.version && known.checksums.get(platform).is_some_and(|known| known != *hash)
        };
        if let (Some((platform, _)), false) = (row.checksums.iter().find(contradicts), replace) {
            return Err(InstallError::OtherProgram {
                path: path.to_path_buf(),
                name: row.name.clone(),
                version: row.version.clone(),
                platform: platform.clone(),
            });
        }
    }
    let moment = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    // Platforms of the same version that this release was not asked for stay recorded.
    let mut row = row.clone();
    if let Some(known) = known.as_ref().filter(|known| known.version == row.version && !replace) {
        for (platform, hash) in &known.checksums {
            row.checksums.entry(platform.clone()).or_insert(*hash);
        }
    }
    let file = path.to_path_buf();
    if lock_file.set(&row, &moment).map_err(wrong)? {
        let platforms = row.checksums.into_keys().collect();
        let from = known.map(|known| known.version);
        Ok(Change::Record { file, name: row.name, from, to: row.version, platforms })
    } else {
        Ok(Change::KeepRow { file, name: row.name })
    }
}

fn read_lock_file(path: &Path) -> Result<LockFile, InstallError> {
    match fs::read_to_string(path) {
        Ok(text) => {
            LockFile::parse(&text).map_err(|error| InstallError::LockFile { path: path.to_path_buf(), error })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(LockFile::new()),
        Err(error) => Err(io_error("read", path, error)),
    }
}

fn io_error(verb: &'static str, path: &Path, error: io::Error) -> InstallError {
    InstallError::Io { verb, path: path.to_path_buf(), error }
}

#[cfg(test)]
#[path = "install_tests.rs"]
mod tests;
