//! Which files ignore files exclude.

use serde_json::json;

use crate::sandbox::{Sandbox, paths};

/// The files of a tree that are searched from `from`, all of which hold the same word.
async fn searched(sandbox: &Sandbox, from: &str) -> String {
    let payload = sandbox.payload("grep", json!({"pattern": "needle", "path": from, "limit": 1000})).await;
    paths(&payload["matches"]).join(" ")
}

fn put_all(sandbox: &Sandbox, names: &[&str]) {
    names.iter().for_each(|name| drop(sandbox.put(name, "needle\n")));
}

#[tokio::test]
async fn rules_of_git_hold_only_in_a_repository() {
    let sandbox = Sandbox::new().await;
    put_all(&sandbox, &["a.log", "b.txt", "sub/c.log"]);
    sandbox.put(".gitignore", "*.log\n");
    assert_eq!(searched(&sandbox, ".").await, "a.log b.txt sub/c.log");
    sandbox.put(".ignore", "sub\n");
    assert_eq!(searched(&sandbox, ".").await, "a.log b.txt");
    sandbox.repository("");
    assert_eq!(searched(&sandbox, ".").await, "b.txt");
}

#[tokio::test]
async fn rules_of_a_parent_stop_where_a_repository_begins() {
    let sandbox = Sandbox::new().await;
    sandbox.repository("");
    sandbox.put(".gitignore", "*\n!.gitignore\n");
    sandbox.repository("child");
    put_all(&sandbox, &["child/AGENTS.md", "child/sub/x.md"]);
    assert_eq!(searched(&sandbox, "child").await, "child/AGENTS.md child/sub/x.md");
}

#[tokio::test]
async fn worktrees_in_an_ignored_directory_stay_ignored_and_share_the_exclusions() {
    let sandbox = Sandbox::new().await;
    sandbox.repository("");
    sandbox.put(".git/info/exclude", "excluded.txt\n");
    sandbox.put(".git/worktrees/one/commondir", "../..\n");
    sandbox.put(".gitignore", "/trees/\n");
    let gitdir = format!("gitdir: {}\n", sandbox.at(".git/worktrees/one").display());
    sandbox.put("trees/one/.git", gitdir);
    put_all(&sandbox, &["trees/one/a.txt", "trees/one/excluded.txt", "a.txt", "excluded.txt"]);
    assert_eq!(searched(&sandbox, ".").await, "a.txt");
    assert_eq!(searched(&sandbox, "trees/one").await, "trees/one/a.txt");
}

#[tokio::test]
async fn the_innermost_rule_decides_and_a_wanted_name_may_be_hidden() {
    let sandbox = Sandbox::new().await;
    sandbox.repository("");
    sandbox.put(".gitignore", "*.log\n!.shown\n");
    sandbox.put("sub/.gitignore", "!keep.log\n");
    put_all(&sandbox, &["a.log", "sub/keep.log", "sub/other.log", ".shown", ".hidden"]);
    assert_eq!(searched(&sandbox, ".").await, ".shown sub/keep.log");
    assert_eq!(searched(&sandbox, "sub").await, "sub/keep.log");
}

#[tokio::test]
async fn deep_trees_and_large_directories_are_walked_whole() {
    let sandbox = Sandbox::new().await;
    let deep: String = (0..400).map(|level| format!("d{}/", level % 10)).collect();
    sandbox.put(&format!("{deep}last.txt"), "needle\n");
    for level in (0..400).step_by(3) {
        sandbox.put(&format!("{}side/x.txt", &deep[..level * 3]), "needle\n");
    }
    for number in 0..3000 {
        sandbox.put(&format!("flat/{number}"), "needle\n");
    }
    let payload =
        sandbox.payload("grep", json!({"pattern": "needle", "mode": "files", "limit": 10_000})).await;
    assert_eq!(payload["total_files"], 1 + 134 + 3000);
    assert_eq!(payload["errors"], json!([]));
}
