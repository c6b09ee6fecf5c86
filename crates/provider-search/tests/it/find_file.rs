//! `find_file`: what fits, in which order, and what is left out.

use serde_json::{Value, json};

use crate::sandbox::{Sandbox, contains, notes, paths, refused};

const TREE: &[&str] = &[
    "Cargo.toml",
    "README.md",
    "crates/core/src/config.rs",
    "crates/core/src/lib.rs",
    "crates/search/src/config.rs",
    "crates/search/src/main.rs",
    "docs/main/index.md",
    "src/user_controller.rb",
    ".github/workflows/build.yml",
    ".eslintrc.json",
];

async fn with_files(names: &[&str]) -> Sandbox {
    let sandbox = Sandbox::new().await;
    for name in names {
        sandbox.put(name, "");
    }
    sandbox
}

async fn find(sandbox: &Sandbox, query: &str) -> Value {
    sandbox.payload("find_file", json!({"query": query})).await
}

#[tokio::test]
async fn the_best_match_comes_first() {
    let sandbox = with_files(TREE).await;
    for (query, first) in [
        ("main.rs", "crates/search/src/main.rs"),
        ("main", "crates/search/src/main.rs"),
        ("usrctl", "src/user_controller.rb"),
        ("UserController", "src/user_controller.rb"),
        ("core config", "crates/core/src/config.rs"),
        ("search/src/config.rs", "crates/search/src/config.rs"),
        ("./crates/search/src/config.rs:12:5", "crates/search/src/config.rs"),
        ("core\\src\\lib.rs", "crates/core/src/lib.rs"),
        ("eslintrc", ".eslintrc.json"),
        ("build.yml", ".github/workflows/build.yml"),
        ("mian.rs", "crates/search/src/main.rs"),
        ("raedme", "README.md"),
        ("Crago.toml", "Cargo.toml"),
        ("user_controler.rb", "src/user_controller.rb"),
    ] {
        let payload = find(&sandbox, query).await;
        assert_eq!(paths(&payload["matches"]).first(), Some(&first), "{query}: {payload}");
    }
}

#[tokio::test]
async fn the_order_is_the_same_each_time_and_a_limit_cuts_its_end() {
    let sandbox = Sandbox::new().await;
    for n in 0..120 {
        sandbox.put(&format!("d{}/config{n:03}.rs", n % 11), "");
    }
    let all = sandbox.payload("find_file", json!({"query": "config", "limit": 1000})).await;
    assert_eq!((&all["total"], &all["truncated"]), (&json!(120), &json!(false)));
    for _ in 0..4 {
        let some = sandbox.payload("find_file", json!({"query": "config", "limit": 7})).await;
        assert_eq!(paths(&some["matches"]), paths(&all["matches"])[..7]);
        assert_eq!((&some["total"], &some["truncated"]), (&json!(120), &json!(true)));
    }
    let scores: Vec<_> =
        all["matches"].as_array().unwrap().iter().map(|found| found["score"].as_u64()).collect();
    assert!(scores.is_sorted_by(|one, other| one >= other), "{scores:?}");
}

#[tokio::test]
async fn what_git_ignores_is_found_only_where_nothing_else_fits() {
    let sandbox = with_files(&["src/lib.rs", "target/debug/generated.rs", ".git/generated.rs"]).await;
    sandbox.put(".gitignore", "/target/\n");
    assert_eq!(paths(&find(&sandbox, "lib.rs").await["matches"]), ["src/lib.rs"]);
    let payload = find(&sandbox, "generated.rs").await;
    assert_eq!(paths(&payload["matches"]), ["target/debug/generated.rs"]);
    contains(&notes(&payload), &["git would ignore"]);
    let nothing = find(&sandbox, "kubernetes").await;
    assert_eq!((&nothing["total"], &nothing["matches"]), (&json!(0), &json!([])));
}

#[tokio::test]
async fn denied_and_temporary_files_are_not_there() {
    let sandbox = Sandbox::with(json!({"deny": ["secret", "*.pem"]})).await;
    for name in ["secret/key.rs", "sub/key.pem", "key.txt", ".ph-key1.tmp"] {
        sandbox.put(name, "");
    }
    assert_eq!(paths(&find(&sandbox, "key").await["matches"]), ["key.txt"]);
}

#[tokio::test]
async fn a_query_without_words_is_refused() {
    let sandbox = with_files(&["x"]).await;
    let outcome = sandbox.call("find_file", json!({"query": " \t"})).await;
    contains(&refused(&outcome, "invalid_arguments", ""), &["query", "no word"]);
}

#[tokio::test]
async fn what_changes_between_two_calls_is_seen() {
    let sandbox = with_files(TREE).await;
    for n in 0..20 {
        assert_eq!(paths(&find(&sandbox, "main.rs").await["matches"]).len(), 1 + n);
        sandbox.put(&format!("new{n}/main.rs"), "");
        let globbed = sandbox.payload("glob", json!({"pattern": "**/main.rs"})).await;
        assert_eq!(globbed["total"], 2 + n);
    }
}
