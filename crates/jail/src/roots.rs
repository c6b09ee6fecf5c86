//! The directories a process may work in, opened once.

use std::ffi::OsStr;
use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use rustix::fs::{AtFlags, CWD, fstat, statat};
use rustix::io::Errno;

use crate::beneath;
use crate::path::JailPath;
use crate::rules::CompiledRules;
use crate::spelling;
use crate::{FileKind, Metadata, PathError, RootError, Rules};

/// A set of open root directories. Cloning is cheap and shares the handles.
#[derive(Clone)]
pub struct Roots(Arc<Inner>);

struct Inner {
    roots: Vec<Arc<Root>>,
    rules: CompiledRules,
    home: Option<PathBuf>,
}

/// One root directory.
pub struct Root {
    path: PathBuf,
    real: PathBuf,
    handle: RwLock<Handle>,
}

#[derive(Clone)]
struct Handle {
    directory: Arc<OwnedFd>,
    id: (u64, u64),
}

/// A spot below a root: plain names only, but any of them may be a symbolic link.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) root: usize,
    pub(crate) directory: Arc<OwnedFd>,
    pub(crate) relative: PathBuf,
}

impl Roots {
    /// Opens every configured root: `.`, relative to `base`, absolute, or beginning with `~`.
    ///
    /// Each is resolved here and never again; a root that is itself a symbolic link stands for its target.
    ///
    /// # Errors
    ///
    /// [`RootError`] names the entry by position and says what is wrong with it.
    pub fn open(configured: &[String], base: &Path) -> Result<Self, RootError> {
        Self::open_with_home(configured, base, std::env::home_dir().as_deref())
    }

    /// [`Roots::open`] with `home` in place of the user's home directory.
    ///
    /// # Errors
    ///
    /// As [`Roots::open`].
    pub fn open_with_home(
        configured: &[String],
        base: &Path,
        home: Option<&Path>,
    ) -> Result<Self, RootError> {
        if configured.is_empty() {
            return Err(RootError::Empty);
        }
        let roots = configured
            .iter()
            .enumerate()
            .map(|(index, text)| {
                Root::open(text, base, home).map(Arc::new).map_err(|reason| RootError::Root {
                    index,
                    configured: text.clone(),
                    reason,
                })
            })
            .collect::<Result<_, _>>()?;
        let rules = CompiledRules::default();
        Ok(Self(Arc::new(Inner { roots, rules, home: home.map(Path::to_owned) })))
    }

    /// The same roots with `rules` in place of any they had.
    ///
    /// # Errors
    ///
    /// [`RootError::Pattern`] for a pattern that is not a glob.
    pub fn with_rules(&self, rules: &Rules) -> Result<Self, RootError> {
        let roots = self.0.roots.clone();
        let home = self.0.home.clone();
        let names: Vec<PathBuf> = roots.iter().flat_map(|root| root.names()).map(Path::to_owned).collect();
        let rules = CompiledRules::compile(rules, &names, home.as_deref())?;
        Ok(Self(Arc::new(Inner { roots, rules, home })))
    }

    /// The root that an empty working directory stands for.
    pub fn first(&self) -> &Root {
        &self.0.roots[0]
    }

    /// The roots in the order they were configured.
    pub fn iter(&self) -> impl Iterator<Item = &Root> {
        self.0.roots.iter().map(Arc::as_ref)
    }

    /// How many roots there are; at least one.
    #[allow(clippy::len_without_is_empty)] // Never empty.
    pub fn len(&self) -> usize {
        self.0.roots.len()
    }

    /// The root directory at `index` itself, as a path whose working directory it is.
    ///
    /// # Errors
    ///
    /// [`PathError::RootGone`], or [`PathError::Invalid`] for an index that is not there.
    pub fn directory(&self, index: usize) -> Result<JailPath, PathError> {
        let root = self.0.roots.get(index).ok_or_else(|| PathError::Invalid {
            path: index.to_string(),
            reason: format!("there are {} roots", self.len()),
        })?;
        let place = Place { root: index, directory: root.handle()?, relative: PathBuf::new() };
        Ok(JailPath::new(self.clone(), place, Arc::from(root.path())))
    }

    /// The place that `path`, as a caller wrote it, names: absolute, or relative to `working_directory` (empty: the
    /// first root).
    ///
    /// A name that exists exactly as written always wins. Otherwise the spellings that callers produce are tried:
    /// other spaces or Unicode form, shell quoting, `file://`, a leading `@`, `~`, `\xNN`; [`JailPath::note`] then says
    /// so. A name that does not exist in any spelling is no error here.
    ///
    /// # Errors
    ///
    /// [`PathError::Invalid`], [`PathError::OutsideRoot`] (also for a working directory outside the roots),
    /// [`PathError::Denied`], [`PathError::AmbiguousName`], [`PathError::LinkLoop`], [`PathError::RootGone`].
    pub fn resolve(&self, path: &str, working_directory: &Path) -> Result<JailPath, PathError> {
        spelling::resolve(self, path, working_directory)
    }

    /// The place of an absolute path that is spelled exactly, as [`JailPath::absolute`] spells it. It shows itself
    /// relative to `base` where that is above it.
    ///
    /// # Errors
    ///
    /// [`PathError::OutsideRoot`], [`PathError::RootGone`].
    pub fn exact(&self, absolute: &Path, base: &Path) -> Result<JailPath, PathError> {
        let shown = spelling::escape_bytes(absolute.as_os_str());
        let normal = absolute.is_absolute()
            && absolute.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        match self.containing(absolute).filter(|_| normal) {
            Some((index, relative)) => {
                Ok(JailPath::new(self.clone(), self.place_in(index, relative)?, Arc::from(base)))
            }
            None => Err(self.outside(&shown, None)),
        }
    }

    /// The working directory itself, which must lie in a root; empty means the first root.
    ///
    /// # Errors
    ///
    /// [`PathError::OutsideRoot`], and [`PathError::Invalid`] for a relative one.
    pub fn working_directory(&self, working_directory: &Path) -> Result<JailPath, PathError> {
        let absolute = match working_directory.as_os_str().is_empty() {
            true => self.first().path(),
            false => working_directory,
        };
        if !absolute.is_absolute() {
            return Err(PathError::Invalid {
                path: spelling::escape_bytes(absolute.as_os_str()),
                reason: "the working directory must be absolute".to_owned(),
            });
        }
        let shown = spelling::escape_bytes(absolute.as_os_str());
        let place = self.place(absolute, &shown)?;
        let base = Arc::from(self.absolute(&place));
        Ok(JailPath::new(self.clone(), place, base))
    }

    pub(crate) fn rules(&self) -> &CompiledRules {
        &self.0.rules
    }

    pub(crate) fn home(&self) -> Option<&Path> {
        self.0.home.as_deref()
    }

    pub(crate) fn root(&self, index: usize) -> &Root {
        &self.0.roots[index]
    }

    /// How a place is named in full, by the name its root was configured with.
    pub(crate) fn absolute(&self, place: &Place) -> PathBuf {
        join(&self.root(place.root).path, &place.relative)
    }

    /// `relative` below the root at `index`, from the handle that is current now.
    pub(crate) fn place_in(&self, index: usize, relative: PathBuf) -> Result<Place, PathError> {
        Ok(Place { root: index, directory: self.root(index).handle()?, relative })
    }

    /// Where an absolute path lies. `..` goes where it would for the operating system, also after a symbolic link.
    pub(crate) fn place(&self, absolute: &Path, shown: &str) -> Result<Place, PathError> {
        let normal = self.normalise(absolute, shown)?;
        let found = self.containing(&normal).or_else(|| self.containing_alias(&normal));
        match found {
            Some((index, relative)) => self.place_in(index, relative),
            None => Err(self.outside(shown, None)),
        }
    }

    pub(crate) fn outside(&self, shown: &str, link: Option<String>) -> PathError {
        PathError::OutsideRoot {
            path: shown.to_owned(),
            link,
            roots: self.iter().map(|root| root.path.clone()).collect(),
        }
    }

    /// The innermost root with a name that `normal` begins with, and the rest.
    pub(crate) fn containing(&self, normal: &Path) -> Option<(usize, PathBuf)> {
        let indexed = self.0.roots.iter().enumerate();
        indexed
            .flat_map(|(index, root)| root.names().map(move |name| (index, name)))
            .filter_map(|(index, name)| {
                let rest = normal.strip_prefix(name).ok()?;
                Some((name.as_os_str().len(), index, rest))
            })
            .max_by_key(|(length, index, _)| (*length, std::cmp::Reverse(*index)))
            .map(|(_, index, rest)| (index, rest.to_owned()))
    }

    /// The root that is *the same directory* as some beginning of `normal`: a root may have names that go through
    /// links outside it, such as `/tmp` for `/private/tmp`. Nothing but that identity is learnt, and what is opened
    /// afterwards is opened from the root's own handle.
    pub(crate) fn containing_alias(&self, normal: &Path) -> Option<(usize, PathBuf)> {
        let ids: Vec<_> = self.iter().map(Root::id).collect();
        let mut beginnings: Vec<&Path> = normal.ancestors().collect();
        beginnings.reverse();
        for beginning in beginnings {
            let directory = beneath::open_outside(beginning).ok()?;
            let id = Metadata::from(&fstat(&directory).ok()?).id();
            if let Some(index) = ids.iter().position(|known| *known == id) {
                return Some((index, normal.strip_prefix(beginning).ok()?.to_owned()));
            }
        }
        None
    }

    /// Takes `.` and `..` out of an absolute path.
    fn normalise(&self, absolute: &Path, shown: &str) -> Result<PathBuf, PathError> {
        let mut normal = PathBuf::from("/");
        for component in absolute.components() {
            match component {
                Component::Normal(name) => normal.push(name),
                Component::ParentDir => {
                    if let Some(real) = self.behind_link(&normal, shown)? {
                        normal = real;
                    }
                    normal.pop();
                }
                Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
            }
        }
        Ok(normal)
    }

    /// Where a path in a root leads if its last name is a symbolic link: what `..` must start from.
    fn behind_link(&self, normal: &Path, shown: &str) -> Result<Option<PathBuf>, PathError> {
        let Some((index, relative)) = self.containing(normal) else { return Ok(None) };
        if relative.as_os_str().is_empty() {
            return Ok(None);
        }
        let place = self.place_in(index, relative)?;
        if !self.is_symlink(&place, shown) {
            return Ok(None);
        }
        let real = self.follow(&place, crate::follow::Last::Follow, shown)?;
        Ok(Some(join(&self.root(real.root).real, &real.relative)))
    }
}

impl fmt::Debug for Roots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Root {
    /// The absolute name it was configured with.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its name without symbolic links, as it was when it was opened.
    pub fn real_path(&self) -> &Path {
        &self.real
    }

    fn open(configured: &str, base: &Path, home: Option<&Path>) -> Result<Self, String> {
        let path = expand(configured, base, home)?;
        // Opened by the name without links: if one is put there in between, opening fails rather than follows it.
        let real = path.canonicalize().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => "there is no such directory".to_owned(),
            std::io::ErrorKind::NotADirectory => "it is not a directory".to_owned(),
            _ => error.to_string(),
        })?;
        let handle = Handle::open(&real).map_err(|errno| match errno {
            Errno::NOTDIR => "it is not a directory".to_owned(),
            other => std::io::Error::from(other).to_string(),
        })?;
        Ok(Self { path, real, handle: RwLock::new(handle) })
    }

    /// Both names, the configured one first; once if they are the same.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Path> {
        let real = (self.real != self.path).then_some(self.real.as_path());
        std::iter::once(self.path.as_path()).chain(real)
    }

    fn id(&self) -> (u64, u64) {
        self.handle.read().unwrap_or_else(PoisonError::into_inner).id
    }

    /// The open directory, opened anew if another one now has the root's name.
    pub(crate) fn handle(&self) -> Result<Arc<OwnedFd>, PathError> {
        let known = self.handle.read().unwrap_or_else(PoisonError::into_inner).clone();
        match statat(CWD, &self.real, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if Metadata::from(&stat).id() == known.id => Ok(known.directory),
            Ok(_) => self.reopen(),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {
                Err(self.gone("it was removed or renamed".to_owned()))
            }
            // The name can no longer be looked up, but the directory was ours before that.
            Err(_) => Ok(known.directory),
        }
    }

    fn reopen(&self) -> Result<Arc<OwnedFd>, PathError> {
        let fresh = Handle::open(&self.real).map_err(|errno| {
            self.gone(match errno {
                Errno::LOOP => "a symbolic link is in its place".to_owned(),
                Errno::NOTDIR => "something that is not a directory is in its place".to_owned(),
                other => std::io::Error::from(other).to_string(),
            })
        })?;
        *self.handle.write().unwrap_or_else(PoisonError::into_inner) = fresh.clone();
        Ok(fresh.directory)
    }

    fn gone(&self, reason: String) -> PathError {
        PathError::RootGone { root: self.path.clone(), reason }
    }
}

impl fmt::Debug for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Root").field(&self.path).finish()
    }
}

impl Handle {
    fn open(real: &Path) -> rustix::io::Result<Self> {
        let directory = beneath::open_absolute(real)?;
        let metadata = Metadata::from(&fstat(directory.as_fd())?);
        match metadata.kind {
            FileKind::Directory => Ok(Self { directory: Arc::new(directory), id: metadata.id() }),
            _ => Err(Errno::NOTDIR),
        }
    }
}

/// The absolute, lexically normal path that a configured root stands for.
fn expand(configured: &str, base: &Path, home: Option<&Path>) -> Result<PathBuf, String> {
    if configured.is_empty() || configured.contains('\0') {
        return Err("it is not a usable path".to_owned());
    }
    let path = match configured.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            let home = home.ok_or("there is no home directory to put in place of `~`")?;
            home.join(rest.trim_start_matches('/'))
        }
        _ => base.join(configured),
    };
    if !path.is_absolute() {
        return Err("it is relative, and so is the directory it is relative to".to_owned());
    }
    // `..` after a link goes where the operating system says; only without `..` is the spelling kept.
    if path.components().any(|component| component == Component::ParentDir) {
        return path.canonicalize().map_err(|error| error.to_string());
    }
    Ok(path.components().collect())
}

/// `base` itself if `relative` is empty: `Path::join` would add a slash.
pub(crate) fn join(base: &Path, relative: impl AsRef<OsStr>) -> PathBuf {
    match relative.as_ref().is_empty() {
        true => base.to_owned(),
        false => base.join(relative.as_ref()),
    }
}
