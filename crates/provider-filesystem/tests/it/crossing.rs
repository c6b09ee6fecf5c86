//! Moving and copying between two file systems.

use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use provider_core::testing::tree::snapshot;
use serde_json::json;

use crate::sandbox::{Sandbox, contains, notes, refused};

/// A folder on another file system than temporary files usually are on.
fn elsewhere() -> Option<tempfile::TempDir> {
    let here = tempfile::tempdir().unwrap().path().metadata().unwrap().dev();
    let folders = ["/dev/shm", "/run/user/self", "/var/tmp", "/run"];
    let other = folders.into_iter().find_map(|path| {
        let differs = Path::new(path).metadata().is_ok_and(|metadata| metadata.dev() != here);
        differs.then(|| tempfile::tempdir_in(path).ok()).flatten()
    });
    if other.is_none() {
        assert!(std::env::var_os("CI").is_none(), "no other file system is at hand, such as /dev/shm");
        let _ = writeln!(std::io::stderr(), "no other file system is at hand: nothing is moved between two");
    }
    other
}

/// A sandbox with a second root, on another file system.
async fn sandbox() -> Option<(Sandbox, tempfile::TempDir)> {
    let other = elsewhere()?;
    let sandbox = Sandbox::new().await;
    let config = json!({"allowed_roots": [sandbox.root(), other.path()], "state_dir": sandbox.state()});
    sandbox.harness.configure(config).await.unwrap();
    Some((sandbox, other))
}

/// A directory with something of everything.
fn furnish(sandbox: &Sandbox) -> PathBuf {
    sandbox.put("dir/a", "a\n");
    sandbox.put("dir/below/b", "b\n".repeat(100_000));
    std::fs::create_dir(sandbox.at("dir/empty")).unwrap();
    symlink("below/b", sandbox.at("dir/link")).unwrap();
    std::fs::set_permissions(sandbox.at("dir/a"), std::fs::Permissions::from_mode(0o751)).unwrap();
    std::fs::set_permissions(sandbox.at("dir/empty"), std::fs::Permissions::from_mode(0o500)).unwrap();
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let times = std::fs::FileTimes::new().set_modified(old);
    std::fs::File::options().write(true).open(sandbox.at("dir/below/b")).unwrap().set_times(times).unwrap();
    sandbox.at("dir")
}

#[tokio::test]
async fn a_directory_moved_to_another_file_system_is_all_there_and_can_come_back() {
    let Some((sandbox, other)) = sandbox().await else { return };
    let directory = furnish(&sandbox);
    let before = (snapshot(&sandbox.root()), snapshot(&directory));
    let modified = sandbox.at("dir/below/b").metadata().unwrap().modified().unwrap();
    let to = other.path().join("moved");

    let arguments = json!({"from": "dir", "to": to});
    let id = sandbox.harness.next_id();
    let preview = format!("{:?}", sandbox.preview(&id, "move_path", arguments.clone()).await.unwrap());
    contains(&preview, &["between two file systems"]);
    let outcome = sandbox.harness.call_as(&id, "move_path", arguments, None).await;
    assert_eq!(outcome.payload()["atomic"], false, "{}", outcome.terminal());
    contains(&notes(&outcome), &["different file systems"]);
    assert_eq!(snapshot(&to), before.1);
    assert_eq!(to.join("below/b").metadata().unwrap().modified().unwrap(), modified);
    assert!(!directory.exists());

    sandbox.call("undo_change", json!({})).await.payload();
    assert_eq!(snapshot(&sandbox.root()), before.0);
    assert_eq!(snapshot(other.path()).len(), 0);
    let redo = sandbox.call("undo_change", json!({"change_id": latest(&sandbox)})).await;
    redo.payload();
    assert_eq!(snapshot(&to), before.1);
}

/// The id of the newest change in the journal.
fn latest(sandbox: &Sandbox) -> String {
    let roots = std::fs::read_dir(sandbox.state().join("filesystem")).unwrap();
    let changes = roots.flat_map(|root| std::fs::read_dir(root.unwrap().path().join("changes")).unwrap());
    changes.map(|change| change.unwrap().file_name().into_string().unwrap()).max().unwrap()
}

#[tokio::test]
async fn a_file_moved_over_another_file_system_s_file_replaces_it_and_both_come_back() {
    let Some((sandbox, other)) = sandbox().await else { return };
    sandbox.put("f", "from here");
    let to = other.path().join("f");
    std::fs::write(&to, "was there").unwrap();
    std::fs::set_permissions(&to, std::fs::Permissions::from_mode(0o640)).unwrap();
    let before = (snapshot(&sandbox.root()), snapshot(other.path()));
    let refusal = sandbox.call("move_path", json!({"from": "f", "to": to})).await;
    refused(&refusal, "execution_failed", "exists");
    for tool in ["move_path", "copy_path"] {
        let outcome = sandbox.call(tool, json!({"from": "f", "to": to, "overwrite": true})).await;
        assert!(outcome.payload()["change_id"].is_string(), "{}", outcome.terminal());
        assert_eq!(std::fs::read(&to).unwrap(), b"from here");
        assert_eq!(sandbox.at("f").exists(), tool == "copy_path");
        sandbox.call("undo_change", json!({})).await.payload();
        assert_eq!((snapshot(&sandbox.root()), snapshot(other.path())), before, "{tool}");
    }
}

#[tokio::test]
async fn a_cancelled_move_or_copy_says_how_far_it_came_and_leaves_the_original_alone() {
    let Some((sandbox, other)) = sandbox().await else { return };
    for number in 0..4_000 {
        sandbox.put(&format!("dir/{}/{number}", number / 1_000), "some content\n");
    }
    let before = snapshot(&sandbox.root());
    for tool in ["move_path", "copy_path"] {
        let id = sandbox.harness.next_id();
        let arguments = json!({"from": "dir", "to": other.path().join("there")});
        let call = sandbox.harness.call_as(&id, tool, arguments, None);
        let cancel = async {
            // As soon as something is there, and long before all is.
            while snapshot(other.path()).is_empty() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            assert!(sandbox.harness.cancel(&id).await, "the call was over already");
        };
        let (outcome, ()) = tokio::join!(call, cancel);
        let last = outcome.terminal();
        assert_eq!(last["event"], "partial_result", "{last}");
        contains(
            last["payload"]["note"].as_str().unwrap(),
            &["cancelled", "copied", "bytes", "removed that incomplete"],
        );
        assert!(snapshot(&sandbox.root()) == before, "{tool}: the original was changed");
        let left: Vec<_> = snapshot(other.path()).into_keys().collect();
        assert!(left.is_empty(), "{tool} left {left:?}");
    }
    // Nothing of it stands in the way of doing it.
    sandbox.call("move_path", json!({"from": "dir", "to": other.path().join("there")})).await.payload();
    assert!(!sandbox.at("dir").exists());
}

#[tokio::test]
async fn what_is_removed_is_kept_across_file_systems() {
    let Some(state) = elsewhere() else { return };
    let sandbox = Sandbox::with(json!({"state_dir": state.path()})).await;
    furnish(&sandbox);
    let before = sandbox.tree();
    let outcome = sandbox.call("delete_path", json!({"path": "dir", "recursive": true})).await;
    assert!(outcome.payload()["change_id"].is_string(), "{}", outcome.terminal());
    assert!(!sandbox.at("dir").exists());
    sandbox.call("undo_change", json!({})).await.payload();
    assert_eq!(sandbox.tree(), before);
}
