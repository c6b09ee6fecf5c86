//! What a confined command may write besides its workspace.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Caches of package tools below the home directory. They hold what can be fetched again; none of them holds
/// programs on the `PATH` or settings that run commands.
const CACHES: &[&str] = &[
    ".cache",
    ".cargo/registry",
    ".cargo/git",
    ".cargo/.package-cache",
    ".cargo/.package-cache-mutate",
    ".cargo/.global-cache",
    ".npm",
    ".yarn/berry",
    ".local/share/pnpm/store",
    ".bun/install/cache",
    "go/pkg",
    ".gradle/caches",
    ".gradle/daemon",
    ".gradle/native",
    ".gradle/wrapper",
    ".m2/repository",
    ".ivy2/cache",
    ".nuget/packages",
    ".conda/pkgs",
    "Library/Caches",
];

/// Variables that move such a cache elsewhere, and what below them is the cache.
const MOVED: &[(&str, &[&str])] = &[
    ("XDG_CACHE_HOME", &["."]),
    ("CARGO_HOME", &["registry", "git", ".package-cache", ".package-cache-mutate", ".global-cache"]),
    ("GOCACHE", &["."]),
    ("GOMODCACHE", &["."]),
    ("GOPATH", &["pkg"]),
    ("npm_config_cache", &["."]),
    ("PIP_CACHE_DIR", &["."]),
    ("UV_CACHE_DIR", &["."]),
    ("GRADLE_USER_HOME", &["caches", "daemon", "native", "wrapper"]),
];

/// The package caches of a user, as far as they exist, without symbolic links.
///
/// `variable` gives the value of an environment variable.
pub fn default_write_paths(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let directory = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = directory("HOME");
    let in_home = home.iter().flat_map(|home| CACHES.iter().map(|cache| home.join(cache)));
    let moved = MOVED.iter().flat_map(|(name, parts)| {
        directory(name).into_iter().flat_map(|base| parts.iter().map(move |part| base.join(part)))
    });
    let mut paths: Vec<PathBuf> = in_home.chain(moved).filter_map(|path| path.canonicalize().ok()).collect();
    // A cache that was set to the home directory itself, or to what contains it, is no cache.
    let home = home.and_then(|home| home.canonicalize().ok());
    paths.retain(|path| home.as_ref().is_none_or(|home| !home.starts_with(path)));
    paths.sort();
    paths.dedup();
    paths
}

/// Devices and directories of devices that programs write to without changing anything that lasts.
const DEVICES: &[&str] = &[
    "null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm", "mqueue", "fuse", "kvm", "dri",
    "kfd",
];

/// The devices that every command may write, as far as they exist.
pub(super) fn devices() -> Vec<PathBuf> {
    let named = DEVICES.iter().map(|name| Path::new("/dev").join(name));
    let entries = std::fs::read_dir("/dev").into_iter().flatten().flatten();
    let numbered = entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"nvidia"));
    named.chain(numbered.map(|entry| entry.path())).filter(|path| path.exists()).collect()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::default_write_paths;

    #[test]
    fn caches_that_exist_are_found_also_where_they_were_moved() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        for directory in [".cargo/registry", ".cargo/bin", ".npm", "elsewhere/registry", "elsewhere/bin"] {
            std::fs::create_dir_all(home.join(directory)).unwrap();
        }
        let variable = |name: &str| match name {
            "HOME" => Some(home.clone().into_os_string()),
            "CARGO_HOME" => Some(home.join("elsewhere").into_os_string()),
            "GOCACHE" => Some(home.clone().into_os_string()),
            "PIP_CACHE_DIR" => Some(OsString::from("relative")),
            _ => None,
        };
        let expected = [".cargo/registry", ".npm", "elsewhere/registry"].map(|path| home.join(path));
        assert_eq!(default_write_paths(variable), expected);
    }
}
