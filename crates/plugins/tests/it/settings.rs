//! The one file of settings.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use plugins::{Manifest, Mode, SettingsError, SettingsFile};
use serde_json::{Value, json};
use tempfile::TempDir;

fn file() -> (TempDir, SettingsFile) {
    let dir = TempDir::new().unwrap();
    let file = SettingsFile::at(dir.path().join("deep/er/settings.json"));
    (dir, file)
}

#[test]
fn without_a_file_the_defaults_hold() {
    let (_dir, file) = file();
    let settings = file.load().unwrap();
    assert_eq!(settings.mode, Mode::Code);
    let about = settings.plugin("filesystem");
    assert!(about.enabled && about.rules && about.folder.is_none());
}

#[test]
fn what_is_chosen_is_kept_and_what_is_not_known_stays() {
    let (_dir, file) = file();
    file.update(|settings| settings.mode = Mode::Separate).unwrap();
    let text = fs::read_to_string(file.path()).unwrap();
    assert_eq!(text, "{\n  \"mode\": \"separate\"\n}\n");
    let newer = json!({"mode": "separate", "colour": {"deep": 1}, "plugins": {"a": {"rules": false}}});
    fs::write(file.path(), newer.to_string()).unwrap();
    file.update(|settings| {
        settings.plugin_mut("a").enabled = false;
        settings.plugin_mut("b").folder = Some(PathBuf::from("/p/b"));
    })
    .unwrap();
    let now: Value = serde_json::from_slice(&fs::read(file.path()).unwrap()).unwrap();
    assert_eq!(
        now,
        json!({
            "mode": "separate", "colour": {"deep": 1},
            "plugins": {
                "a": {"enabled": false, "rules": false},
                "b": {"folder": "/p/b", "enabled": true, "rules": true},
            },
        })
    );
}

#[test]
fn a_broken_file_is_named_and_never_written_over() {
    let (_dir, file) = file();
    file.update(|_| {}).unwrap();
    fs::write(file.path(), "{ \"mode\": \"loud\" }").unwrap();
    assert!(matches!(file.load(), Err(SettingsError::Malformed { .. })));
    let error = file.update(|settings| settings.mode = Mode::Code).unwrap_err();
    assert!(matches!(error, SettingsError::Malformed { .. }), "{error}");
    assert_eq!(fs::read_to_string(file.path()).unwrap(), "{ \"mode\": \"loud\" }");
}

#[test]
fn a_link_to_the_file_and_its_mode_stay() {
    let (dir, file) = file();
    let real = dir.path().join("dotfiles.json");
    fs::write(&real, "{}").unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    fs::create_dir_all(file.path().parent().unwrap()).unwrap();
    symlink("../../dotfiles.json", file.path()).unwrap();
    file.update(|settings| settings.mode = Mode::Separate).unwrap();
    assert_eq!(fs::read_link(file.path()).unwrap(), PathBuf::from("../../dotfiles.json"));
    assert!(fs::read_to_string(&real).unwrap().contains("separate"));
    assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    let left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "nothing else is left: {left:?}");
}

#[test]
fn changes_at_the_same_time_are_all_kept() {
    let (_dir, file) = file();
    std::thread::scope(|scope| {
        for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
            let file = &file;
            scope.spawn(move || file.update(|settings| settings.plugin_mut(name).rules = false).unwrap());
        }
    });
    assert_eq!(file.load().unwrap().plugins.len(), 8);
}

#[test]
fn more_than_was_granted_is_named() {
    let manifest = |hosts: Value| {
        Manifest::from_json(&json!({
            "name": "a", "version": "1.0.0", "main": "main.js",
            "permissions": {"tools.provide": {"reason": "x"}, "net": {"hosts": hosts, "reason": "y"}},
        }))
        .unwrap()
    };
    let (_dir, file) = file();
    let granted = manifest(json!(["wttr.in"])).permissions.grants();
    let settings = file.update(|settings| settings.plugin_mut("a").granted = granted).unwrap();
    let about = settings.plugin("a");
    assert_eq!(about.not_granted(&manifest(json!(["wttr.in"])).permissions), [""; 0]);
    assert_eq!(
        about.not_granted(&manifest(json!(["wttr.in", "evil.example"])).permissions),
        ["net:evil.example"]
    );
}
