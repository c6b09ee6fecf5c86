//! Opening folders.

use std::fs;
use std::os::unix::fs::symlink;

use plugins::{Plugin, PluginError};

use crate::support::Folder;

#[test]
fn the_first_manifest_counts() {
    let folder = Folder::new("one", &[]);
    fs::write(folder.path().join("manifest.json"), r#"{"name": "two", "version": "1.0.0"}"#).unwrap();
    assert_eq!(folder.open().manifest.name.as_str(), "one");
    fs::remove_file(folder.path().join("plugin.json")).unwrap();
    assert_eq!(folder.open().manifest.name.as_str(), "two");
    fs::remove_file(folder.path().join("manifest.json")).unwrap();
    assert!(matches!(Plugin::open(&folder.path()), Err(PluginError::NoManifest { .. })));
}

#[test]
fn what_is_wrong_names_the_file() {
    let folder = Folder::new("one", &[]);
    let file = folder.path().join("plugin.json");
    fs::write(&file, r#"{"name": "", "version": 1}"#).unwrap();
    assert_eq!(
        Plugin::open(&folder.path()).unwrap_err().to_string(),
        format!(
            "{} is no manifest of a plugin:\nname: is empty: wanted a text\nversion: wanted a text, got a number",
            file.display()
        )
    );
    let nowhere = folder.path().join("nowhere");
    assert!(matches!(Plugin::open(&nowhere), Err(PluginError::NoFolder { .. })));
}

#[test]
fn a_manifest_that_is_no_plain_file_of_the_folder_is_refused() {
    let folder = Folder::new("one", &[]);
    let file = folder.path().join("plugin.json");
    fs::remove_file(&file).unwrap();
    let outside = folder.beside("elsewhere.json", r#"{"name": "x", "version": "1.0.0"}"#);
    symlink(outside, &file).unwrap();
    let error = Plugin::open(&folder.path()).unwrap_err();
    assert!(matches!(error, PluginError::Unreadable { .. }), "{error}");
    fs::remove_file(&file).unwrap();
    // Opening it would wait for a writer for good.
    let made = std::process::Command::new("mkfifo").arg(&file).status().unwrap();
    assert!(made.success());
    let error = Plugin::open(&folder.path()).unwrap_err();
    assert!(matches!(error, PluginError::Unreadable { .. }), "{error}");
}
