//! What is not below a root, or is no regular file, is not touched, whatever it is called.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

use provider_core::testing::{Harness, Outcome};
use provider_filesystem::Filesystem;
use serde_json::{Value, json};

use crate::process::STATE;
use crate::sandbox::{Sandbox, contains, notes, refused};

/// All ways to get at the content of a file, each with `path`.
fn uses(path: &str) -> [(&'static str, Value); 3] {
    [
        ("read_file", json!({"path": path})),
        ("edit_file", json!({"path": path, "old_str": "secret", "new_str": "x"})),
        ("write_file", json!({"path": path, "content": "x", "create_parents": true})),
    ]
}

async fn use_file(sandbox: &Sandbox, tool: &str, arguments: Value) -> Outcome {
    match tool {
        "edit_file" | "write_file" => sandbox.change(tool, arguments).await,
        _ => sandbox.call(tool, arguments).await,
    }
}

/// Expects that no tool gets at `path`, and that nothing anywhere changes.
async fn check_refused(sandbox: &Sandbox, path: &str, code: &str) {
    let before = sandbox.tree();
    for (tool, arguments) in uses(path) {
        let outcome = use_file(sandbox, tool, arguments).await;
        let message = refused(&outcome, "permission_denied", code);
        assert!(!message.contains("s3cret"), "{message}");
    }
    assert_eq!(sandbox.tree(), before);
}

/// A sandbox with a file beside its root, and links in the root that lead to it.
async fn beside() -> Sandbox {
    let sandbox = Sandbox::new().await;
    let outside = sandbox.outside();
    std::fs::write(outside.join("f"), "s3cret secret").unwrap();
    std::fs::create_dir(outside.join("root-evil")).unwrap();
    std::fs::write(outside.join("root-evil/f"), "s3cret secret").unwrap();
    symlink(outside.join("f"), sandbox.at("link")).unwrap();
    symlink(outside, sandbox.at("dir")).unwrap();
    symlink("../f", sandbox.at("relative-link")).unwrap();
    symlink("link", sandbox.at("link-to-link")).unwrap();
    symlink(outside.join("new"), sandbox.at("dangling")).unwrap();
    std::fs::create_dir(sandbox.at("sub")).unwrap();
    sandbox
}

#[tokio::test]
async fn no_spelling_leads_out_of_the_root() {
    let sandbox = beside().await;
    let outside = sandbox.outside().display().to_string();
    let absolute = sandbox.outside().join("f").display().to_string();
    for path in [
        "../f",
        "sub/../../f",
        "./../f",
        "sub/./.././../f",
        absolute.as_str(),
        "link",
        "relative-link",
        "link-to-link",
        "dir/f",
        "../root-evil/f",
        &format!("{outside}/root-evil/f"),
        &format!("/proc/self/root{absolute}"),
        &format!("file://{absolute}"),
        &format!("@{absolute}"),
        "/etc/passwd",
    ] {
        check_refused(&sandbox, path, "outside_root").await;
    }
}

#[tokio::test]
async fn of_a_link_that_leads_outside_only_the_link_is_described() {
    let sandbox = beside().await;
    let info = sandbox.call("file_info", json!({"path": "link"})).await;
    assert_eq!((&info.payload()["type"], info.payload().get("sha256")), (&json!("symlink"), None));
    for path in ["../f", "dir/f", "/etc/passwd", "/proc/self/root/etc/passwd"] {
        let info = sandbox.call("file_info", json!({"path": path})).await;
        refused(&info, "permission_denied", "outside_root");
    }
}

#[tokio::test]
async fn no_new_file_appears_outside_through_a_link() {
    let sandbox = beside().await;
    let before = sandbox.tree();
    for path in ["dangling", "dir/new", "dir/x/y.txt", "../new", "sub/../../new"] {
        let arguments = json!({"path": path, "content": "x", "create_parents": true});
        let outcome = sandbox.change("write_file", arguments).await;
        refused(&outcome, "permission_denied", "outside_root");
    }
    assert_eq!(sandbox.tree(), before);
}

#[tokio::test]
async fn a_listing_does_not_leave_the_root() {
    let sandbox = beside().await;
    for path in ["..", "dir", "dir/.", "/"] {
        let outcome = sandbox.call("list_directory", json!({"path": path})).await;
        refused(&outcome, "permission_denied", "outside_root");
    }
    let outcome = sandbox.call("list_directory", json!({"depth": 8})).await;
    let text = outcome.payload().to_string();
    assert!(!text.contains("evil"), "{text}");
}

#[tokio::test]
async fn every_spelling_of_a_denied_path_is_denied() {
    let sandbox = Sandbox::with(json!({"deny": ["**/.aws/**", "*.pem"]})).await;
    sandbox.put(".aws/credentials", "s3cret secret");
    sandbox.put("key.pem", "s3cret secret");
    sandbox.put("x/y", "");
    symlink(".aws", sandbox.at("innocent")).unwrap();
    symlink("key.pem", sandbox.at("key.txt")).unwrap();
    for path in [
        ".aws/credentials",
        ".//.aws/credentials",
        "x/../.aws/credentials",
        ".aws/./credentials",
        ".aws/x/../credentials",
        "innocent/credentials",
        "key.pem",
        "x/../key.pem",
        "key.txt",
        &sandbox.at(".aws/credentials").display().to_string(),
    ] {
        check_refused(&sandbox, path, "denied").await;
    }
}

#[tokio::test]
async fn a_denied_directory_is_denied_itself() {
    let sandbox = Sandbox::with(json!({"deny": [".aws/"]})).await;
    sandbox.put(".aws/credentials", "s3cret secret");
    for path in [".aws", ".aws/", ".aws/.", ".//.aws", ".aws//"] {
        let outcome = sandbox.call("list_directory", json!({"path": path})).await;
        refused(&outcome, "permission_denied", "denied");
    }
    check_refused(&sandbox, ".aws/credentials", "denied").await;
}

#[tokio::test]
async fn special_files_are_named_and_not_opened() {
    let sandbox = Sandbox::new().await;
    nix::unistd::mkfifo(&sandbox.at("notes.md"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let _socket = UnixListener::bind(sandbox.at("socket")).unwrap();
    for (path, kind) in [("notes.md", "fifo"), ("socket", "socket")] {
        for (tool, arguments) in uses(path) {
            let outcome = use_file(&sandbox, tool, arguments).await;
            contains(&refused(&outcome, "permission_denied", "special_file").to_lowercase(), &[kind]);
        }
        let info = sandbox.call("file_info", json!({"path": path})).await;
        assert_eq!(info.payload()["type"], kind);
    }
    let listing = sandbox.call("list_directory", json!({})).await;
    assert_eq!(listing.payload()["entries"][0]["type"], "fifo");
}

#[tokio::test]
async fn a_device_is_not_read() {
    let harness =
        Harness::start::<Filesystem>(json!({"allowed_roots": ["/dev"], "state_dir": STATE})).await.unwrap();
    let outcome = harness.call("read_file", json!({"path": "/dev/zero"})).await;
    refused(&outcome, "permission_denied", "special_file");
}

#[tokio::test]
async fn directories_and_dangling_links_have_errors_of_their_own() {
    let sandbox = Sandbox::new().await;
    std::fs::create_dir(sandbox.at("sub")).unwrap();
    symlink("nowhere", sandbox.at("dangling")).unwrap();
    symlink("loop", sandbox.at("loop")).unwrap();
    sandbox.put("readme.md", "");
    let outcome = sandbox.call("read_file", json!({"path": "sub"})).await;
    contains(&refused(&outcome, "execution_failed", "is_directory"), &["list_directory"]);
    refused(&sandbox.write("sub", "x").await, "execution_failed", "is_directory");
    refused(&sandbox.edit("sub", "a", "x").await, "execution_failed", "is_directory");
    let outcome = sandbox.call("read_file", json!({"path": "dangling"})).await;
    refused(&outcome, "not_found", "");
    let outcome = sandbox.call("read_file", json!({"path": "loop"})).await;
    contains(&outcome.error().message, &["symbolic links"]);
    let outcome = sandbox.call("read_file", json!({"path": "raedme.md"})).await;
    contains(&refused(&outcome, "not_found", ""), &["readme.md"]);
    let outcome = sandbox.call("list_directory", json!({"path": "readme.md"})).await;
    contains(&outcome.error().message, &["not a directory"]);
}

#[tokio::test]
async fn no_path_at_all_is_an_error_of_the_argument() {
    let sandbox = Sandbox::new().await;
    let deep = vec!["d"; 300].join("/");
    for path in [
        json!("a\0b"),
        json!(""),
        json!("x".repeat(5_000)),
        json!({"a": 1}),
        json!(["a", "b"]),
        json!(null),
        json!(true),
    ] {
        for tool in ["read_file", "write_file", "edit_file", "file_info"] {
            let mut arguments = json!({"path": path, "content": "c", "old_str": "o", "new_str": "n"});
            let fields: &[&str] = match tool {
                "write_file" => &["path", "content"],
                "edit_file" => &["path", "old_str", "new_str"],
                _ => &["path"],
            };
            arguments.as_object_mut().unwrap().retain(|key, _| fields.contains(&key.as_str()));
            let outcome = sandbox.call(tool, arguments).await;
            let message = refused(&outcome, "invalid_arguments", "");
            assert!(message.len() < 2_000, "{message}");
        }
    }
    assert_ne!(sandbox.call("read_file", json!({"path": deep})).await.error().category, "unknown");
    sandbox.put("alive", "yes");
    assert_eq!(sandbox.read(json!({"path": "alive"})).await["content"], "yes");
}

#[tokio::test]
async fn a_wrong_path_is_named_by_its_field() {
    let sandbox = Sandbox::new().await;
    for path in [json!({"a": 1}), json!(null), json!(["a", "b"])] {
        let outcome = sandbox.call("read_file", json!({"path": path})).await;
        contains(&outcome.error().message, &["path"]);
    }
}

/// Reads `asked` in a directory with a file called `stored`, and expects to get it.
async fn check_found(stored: &str, asked: &str) {
    let sandbox = Sandbox::new().await;
    sandbox.put(stored, "content\n");
    let outcome = sandbox.call("read_file", json!({"path": asked})).await;
    assert_eq!(outcome.payload()["content"], "content\n", "{asked:?}");
    assert!(!notes(&outcome).is_empty(), "{asked:?}: the other spelling is not mentioned");
    let info = sandbox.call("file_info", json!({"path": asked})).await;
    assert_eq!(notes(&info), notes(&outcome));
    sandbox.edit(asked, "content", "new").await.payload();
    assert_eq!(sandbox.bytes(stored), b"new\n");
}

#[tokio::test]
async fn names_that_look_the_same_are_found() {
    check_found("Screenshot at 9.22.20\u{202f}PM.png", "Screenshot at 9.22.20 PM.png").await;
    check_found("a\u{a0}b.txt", "a b.txt").await;
    check_found("cafe\u{301}.txt", "caf\u{e9}.txt").await;
    check_found("caf\u{e9}.txt", "cafe\u{301}.txt").await;
    check_found("\u{1112}\u{1161}\u{11ab}.md", "\u{d55c}.md").await;
    check_found("My Notes/a.md", "My\\ Notes/a.md").await;
    check_found("a b.md", "'a b.md'").await;
    check_found("a.md", "@a.md").await;
}

#[tokio::test]
async fn a_file_url_is_a_path() {
    let sandbox = Sandbox::new().await;
    let path = sandbox.put("a b.md", "content\n");
    let url = format!("file://{}", path.display().to_string().replace(' ', "%20"));
    assert_eq!(sandbox.read(json!({"path": url})).await["content"], "content\n");
}

#[tokio::test]
async fn an_exact_name_wins_over_a_similar_one() {
    let sandbox = Sandbox::new().await;
    sandbox.put("x\\ y", "escaped");
    sandbox.put("x y", "plain");
    assert_eq!(sandbox.read(json!({"path": "x\\ y"})).await["content"], "escaped");
}

#[tokio::test]
async fn two_similar_names_are_both_listed() {
    let sandbox = Sandbox::new().await;
    sandbox.put("a\u{a0}b", "1");
    sandbox.put("a\u{202f}b", "2");
    let outcome = sandbox.call("read_file", json!({"path": "a b"})).await;
    let message = refused(&outcome, "execution_failed", "ambiguous");
    contains(&message, &["several names"]);
}

#[tokio::test]
async fn a_root_may_be_a_link_and_have_any_name() {
    for name in ["real", "my proj's \"$x\" (1)", "-rf *", "ünï"] {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().join(name);
        let link = folder.path().join("link");
        std::fs::create_dir(&real).unwrap();
        symlink(&real, &link).unwrap();
        std::fs::write(real.join("a"), "old").unwrap();
        let harness =
            Harness::start::<Filesystem>(json!({"allowed_roots": [link], "state_dir": STATE})).await.unwrap();
        let harness = harness.in_directory(&link);
        for path in [link.join("a"), real.join("a"), Path::new("a").to_owned()] {
            let outcome = harness.call("read_file", json!({"path": path})).await;
            assert_eq!(outcome.payload()["content"], "old", "{path:?}");
        }
        let arguments = json!({"path": link.join("a"), "old_str": "old", "new_str": "new"});
        let outcome = harness.call("edit_file", arguments).await;
        assert_eq!(outcome.payload().get("notes"), None);
        harness.call("write_file", json!({"path": "b", "content": "b"})).await.payload();
        assert_eq!(std::fs::read(real.join("a")).unwrap(), b"new");
        let listing = harness.call("list_directory", json!({})).await;
        assert_eq!(listing.payload()["total"], 2);
    }
}

/// Two roots and a place beside them.
async fn two_roots() -> (tempfile::TempDir, Harness) {
    let folder = tempfile::tempdir().unwrap();
    for (root, content) in [("one", "first"), ("two", "second")] {
        std::fs::create_dir_all(folder.path().join(root).join("sub")).unwrap();
        std::fs::write(folder.path().join(root).join("f"), content).unwrap();
        std::fs::write(folder.path().join(root).join("sub/f"), format!("{content} below")).unwrap();
    }
    let roots =
        json!({"allowed_roots": [folder.path().join("one"), folder.path().join("two")], "state_dir": STATE});
    let harness = Harness::start::<Filesystem>(roots).await.unwrap();
    (folder, harness)
}

#[tokio::test]
async fn relative_paths_start_from_the_working_directory_or_the_first_root() {
    let (folder, harness) = two_roots().await;
    for (directory, content) in [
        ("", "first"),
        ("one", "first"),
        ("one/sub", "first below"),
        ("two", "second"),
        ("two/sub", "second below"),
    ] {
        let harness = match directory {
            "" => harness.clone(),
            directory => harness.clone().in_directory(folder.path().join(directory)),
        };
        let outcome = harness.call("read_file", json!({"path": "f"})).await;
        assert_eq!(outcome.payload()["content"], content, "{directory:?}");
        assert_eq!(outcome.payload()["path"], "f", "{directory:?}");
    }
}

#[tokio::test]
async fn the_second_root_is_changed_from_within_it() {
    let (folder, harness) = two_roots().await;
    let harness = harness.in_directory(folder.path().join("two"));
    harness.call("write_file", json!({"path": "f", "content": "new"})).await.payload();
    assert_eq!(std::fs::read(folder.path().join("two/f")).unwrap(), b"new");
    assert_eq!(std::fs::read(folder.path().join("one/f")).unwrap(), b"first");
}

#[tokio::test]
async fn an_unusable_working_directory_is_an_error() {
    let (folder, harness) = two_roots().await;
    let relative = harness.clone().in_directory("sub");
    let outcome = relative.call("read_file", json!({"path": "f"})).await;
    contains(&refused(&outcome, "invalid_arguments", ""), &["working directory"]);
    let missing = harness.clone().in_directory(folder.path().join("one/none"));
    refused(&missing.call("read_file", json!({"path": "f"})).await, "not_found", "");
    let outside = harness.clone().in_directory(folder.path());
    for (tool, arguments) in uses("f") {
        refused(&outside.call(tool, arguments).await, "permission_denied", "outside_root");
    }
    refused(&outside.call("list_directory", json!({})).await, "permission_denied", "outside_root");
}

#[tokio::test]
async fn a_number_or_a_list_is_no_path() {
    let sandbox = Sandbox::new().await;
    sandbox.put("5", "five\n");
    sandbox.put("a", "a\n");
    for path in [json!(5), json!(["a"]), json!([])] {
        let outcome = sandbox.call("read_file", json!({"path": path})).await;
        contains(&refused(&outcome, "invalid_arguments", ""), &["path"]);
    }
}

#[tokio::test]
async fn every_change_works_below_a_root_of_any_name() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("my proj's \"$x\" (1) `; rm -rf *");
    std::fs::create_dir(&root).unwrap();
    let state = folder.path().join("state");
    let config = json!({"allowed_roots": [root], "state_dir": state});
    let harness = Harness::start::<Filesystem>(config).await.unwrap().in_directory(&root);
    let odd = "a 'b' \"c\" $(d) \\e\n\tf é.txt";
    let patch = format!("*** Begin Patch\n*** Add File: {}\n+p\n*** End Patch\n", "p 'q' $r");
    for (tool, arguments) in [
        ("write_file", json!({"path": odd, "content": "one\n"})),
        ("read_file", json!({"path": odd})),
        ("file_info", json!({"path": odd})),
        ("edit_file", json!({"path": odd, "old_str": "one", "new_str": "two"})),
        ("multi_edit", json!({"edits": [{"path": odd, "old_str": "two", "new_str": "three"}]})),
        ("apply_patch", json!({"patch": patch})),
        ("create_directory", json!({"path": "-rf *"})),
        ("copy_path", json!({"from": odd, "to": "-rf */--"})),
        ("move_path", json!({"from": "-rf */--", "to": "-rf */$HOME"})),
        ("delete_path", json!({"path": "-rf *", "recursive": true})),
        ("undo_change", json!({})),
    ] {
        let outcome = harness.call(tool, arguments).await;
        assert_eq!(outcome.terminal()["event"], "result", "{tool}: {}", outcome.terminal());
    }
    assert_eq!(std::fs::read(root.join(odd)).unwrap(), b"three\n");
    assert_eq!(std::fs::read(root.join("-rf */$HOME")).unwrap(), b"three\n");
}

#[tokio::test]
async fn a_name_of_any_bytes_is_changed_as_it_is_listed() {
    use std::os::unix::ffi::OsStrExt;
    let sandbox = Sandbox::new().await;
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9 \\x.txt");
    std::fs::write(sandbox.root().join(name), "old\n").unwrap();
    let listing = sandbox.call("list_directory", json!({})).await;
    let shown = listing.payload()["entries"][0]["path"].as_str().unwrap().to_owned();
    sandbox.edit(&shown, "old", "new").await.payload();
    sandbox.call("move_path", json!({"from": shown, "to": "plain"})).await.payload();
    sandbox.call("undo_change", json!({})).await.payload();
    let patch = format!("*** Begin Patch\n*** Update File: {shown}\n@@\n-new\n+newer\n*** End Patch\n");
    let outcome = sandbox.change_all("apply_patch", json!({"patch": patch})).await;
    assert_eq!(outcome.payload()["files"][0]["path"], shown);
    assert_eq!(std::fs::read(sandbox.root().join(name)).unwrap(), b"newer\n");
}

#[tokio::test]
async fn a_name_that_is_spelled_otherwise_is_told_by_every_change() {
    for (tool, arguments) in [
        ("move_path", json!({"from": "caf\u{e9}", "to": "new"})),
        ("copy_path", json!({"from": "caf\u{e9}", "to": "new"})),
        ("delete_path", json!({"path": "caf\u{e9}"})),
        ("multi_edit", json!({"edits": [{"path": "caf\u{e9}", "old_str": "a", "new_str": "b"}]})),
        (
            "apply_patch",
            json!({"patch": "*** Begin Patch\n*** Update File: caf\u{e9}\n@@\n-a\n+b\n*** End Patch\n"}),
        ),
    ] {
        let sandbox = Sandbox::new().await;
        sandbox.put("cafe\u{301}", "a\n");
        let outcome = sandbox.call(tool, arguments).await;
        contains(&notes(&outcome), &["cafe\u{301}"]);
    }
}
