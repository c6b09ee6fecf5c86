//! Folders to look at.

use std::fs;
use std::path::PathBuf;

use plugins::Plugin;
use serde_json::json;
use tempfile::TempDir;

/// A plugin's folder, and room beside it.
pub(crate) struct Folder {
    outer: TempDir,
}

impl Folder {
    /// A plugin of that name with these files of rules, listed as they are here.
    pub(crate) fn new(name: &str, rules: &[(&str, &[u8])]) -> Self {
        let listed: Vec<&str> = rules.iter().map(|(path, _)| *path).collect();
        let folder = Self::with_list(name, &listed);
        for (path, bytes) in rules {
            fs::write(folder.path().join(path), bytes).unwrap();
        }
        folder
    }

    /// A plugin of that name that lists these rules, and has none of them.
    pub(crate) fn with_list(name: &str, listed: &[&str]) -> Self {
        let folder = Self { outer: TempDir::new().unwrap() };
        fs::create_dir(folder.path()).unwrap();
        let manifest = json!({"name": name, "version": "0.1.0", "contributes": {"rules": listed}});
        fs::write(folder.path().join("plugin.json"), manifest.to_string()).unwrap();
        folder
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.outer.path().join("plugin")
    }

    /// A file beside the folder.
    pub(crate) fn beside(&self, name: &str, content: &str) -> PathBuf {
        let path = self.outer.path().join(name);
        fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn open(&self) -> Plugin {
        Plugin::open(&self.path()).unwrap()
    }
}
