//! Where the kernel looks for programs.

use std::path::{Path, PathBuf};

use semver::Version;

use crate::platform::Platform;

/// The folder of all installed programs: `$XDG_CACHE_HOME/agent/plugins`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginCache {
    folder: PathBuf,
}

impl PluginCache {
    /// The cache in `folder`.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The cache that the kernel uses with these values of `XDG_CACHE_HOME` and `HOME`; `None` when neither is set
    /// to an absolute path, which is how the XDG specification wants relative ones treated.
    #[must_use]
    pub fn of_user(xdg_cache_home: Option<PathBuf>, home: Option<PathBuf>) -> Option<Self> {
        let absolute = |path: &PathBuf| path.is_absolute();
        let caches = xdg_cache_home
            .filter(absolute)
            .or_else(|| home.filter(absolute).map(|home| home.join(".cache")))?;
        Some(Self { folder: caches.join("agent/plugins") })
    }

    /// The folder itself.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the program of `source` is: a folder for the source with `_` for `/`, one for the version, one for
    /// the platform, and the last part of the source.
    #[must_use]
    pub fn program(&self, source: &str, version: &Version, platform: &Platform) -> PathBuf {
        let name = source.rsplit('/').next().unwrap_or(source);
        self.folder
            .join(source.replace('/', "_"))
            .join(version.to_string())
            .join(platform.as_str())
            .join(format!("{name}{}", platform.program_suffix()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(cache: Option<&str>, home: Option<&str>, expected: Option<&str>) {
        let found = PluginCache::of_user(cache.map(PathBuf::from), home.map(PathBuf::from));
        assert_eq!(found.as_ref().map(|cache| cache.folder()), expected.map(Path::new));
    }

    #[test]
    fn the_users_folders_decide() {
        check(Some("/c"), Some("/h"), Some("/c/agent/plugins"));
        check(None, Some("/h"), Some("/h/.cache/agent/plugins"));
        check(Some("relative"), Some("/h"), Some("/h/.cache/agent/plugins"));
        check(Some(""), None, None);
    }

    #[test]
    fn a_program_has_one_place() {
        let cache = PluginCache::new("/c".into());
        let path =
            cache.program("github.com/o/provider-x", &Version::new(1, 2, 3), &"linux_amd64".parse().unwrap());
        assert_eq!(path, Path::new("/c/github.com_o_provider-x/1.2.3/linux_amd64/provider-x"));
    }
}
