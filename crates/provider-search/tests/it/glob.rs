//! `glob`: what matches, what is left out, and what is said about it.

use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::sandbox::{Sandbox, contains, notes, paths, refused};

async fn glob(sandbox: &Sandbox, arguments: Value) -> Value {
    sandbox.payload("glob", arguments).await
}

/// Checks which paths a pattern gives.
async fn check(sandbox: &Sandbox, pattern: &str, expected: &[&str]) -> Value {
    let payload = glob(sandbox, json!({"pattern": pattern})).await;
    assert_eq!(paths(&payload["paths"]), expected, "{pattern}: {payload}");
    assert_eq!(payload["total"], expected.len(), "{pattern}");
    payload
}

async fn with_files(names: &[&str]) -> Sandbox {
    let sandbox = Sandbox::new().await;
    for name in names {
        sandbox.put(name, "");
    }
    sandbox
}

#[tokio::test]
async fn every_form_of_the_grammar_finds_what_it_says() {
    let sandbox = with_files(&["a/x.rs", "a/c", "b/y.rs", "ab", "main.rs", "d/e/z.rs"]).await;
    check(&sandbox, "**/*.rs", &["a/x.rs", "b/y.rs", "d/e/z.rs", "main.rs"]).await;
    check(&sandbox, "**", &["a/c", "a/x.rs", "ab", "b/y.rs", "d/e/z.rs", "main.rs"]).await;
    check(&sandbox, "{a,b}/**", &["a/c", "a/x.rs", "b/y.rs"]).await;
    check(&sandbox, "{a/x,b/y,main}.rs", &["a/x.rs", "b/y.rs", "main.rs"]).await;
    check(&sandbox, "a[!a]", &["ab"]).await;
    check(&sandbox, "**/", &["a/", "b/", "d/", "d/e/"]).await;
    check(&sandbox, "*/", &["a/", "b/", "d/"]).await;
    check(&sandbox, "*", &["ab", "main.rs"]).await;
    check(&sandbox, "?/?.rs", &["a/x.rs", "b/y.rs"]).await;
    check(&sandbox, "d/**/z.rs", &["d/e/z.rs"]).await;
    check(&sandbox, "d/e/z.rs", &["d/e/z.rs"]).await;
    check(&sandbox, "./a//x.rs", &["a/x.rs"]).await;
    check(&sandbox, sandbox.at("a/*").to_str().unwrap(), &["a/c", "a/x.rs"]).await;
}

#[tokio::test]
async fn a_bad_pattern_is_an_error_with_its_position() {
    let sandbox = with_files(&["x"]).await;
    for (pattern, parts) in [
        ("!x", ["character 1", "excludes nothing"]),
        ("a[b", ["character 2", "not closed"]),
        ("src/{a,b", ["character 5", "not closed"]),
        ("[z-a]", ["character 2", "backwards"]),
        ("a\\", ["character 2", "next character"]),
        ("", ["character 1", "empty"]),
    ] {
        let outcome = sandbox.call("glob", json!({"pattern": pattern})).await;
        contains(&refused(&outcome, "invalid_arguments", ""), &["pattern", parts[0], parts[1]]);
    }
}

#[tokio::test]
async fn a_name_with_glob_characters_is_found_before_the_meaning_of_the_pattern() {
    let sandbox = with_files(&[
        "app/[id]/page.tsx",
        "app/d/page.tsx",
        "app/(g)/x.tsx",
        "!x",
        "a[b",
        "{a,b}/c",
        "a/c",
        "app/[id]/Zeta.tsx",
    ])
    .await;
    let both = ["app/[id]/page.tsx", "app/d/page.tsx"];
    check(&sandbox, "app/[id]/page.tsx", &both).await;
    for (offset, path) in both.iter().enumerate() {
        let page =
            glob(&sandbox, json!({"pattern": "app/[id]/page.tsx", "limit": 1, "offset": offset})).await;
        assert_eq!(paths(&page["paths"]), [*path]);
        assert_eq!(page["total"], 2);
    }
    check(&sandbox, "app/(g)/x.tsx", &["app/(g)/x.tsx"]).await;
    check(&sandbox, "app/[id]/*.tsx", &["app/[id]/Zeta.tsx", "app/[id]/page.tsx", "app/d/page.tsx"]).await;
    check(&sandbox, "{a,b}/c", &["{a,b}/c", "a/c"]).await;
    check(&sandbox, "!x", &["!x"]).await;
    check(&sandbox, "a[b", &["a[b"]).await;
    check(&sandbox, "app/[id]", &["app/[id]/", "app/d/"]).await;
}

#[tokio::test]
async fn a_segment_with_a_dot_of_its_own_reaches_hidden_names() {
    let names = [
        ".env",
        ".env.local",
        ".eslintrc.json",
        ".github/workflows/a.yml",
        ".github/workflows/b.yaml",
        "sub/.env",
        "x",
    ];
    let sandbox = with_files(&names).await;
    check(
        &sandbox,
        ".github/workflows/*.{yml,yaml}",
        &[".github/workflows/a.yml", ".github/workflows/b.yaml"],
    )
    .await;
    check(&sandbox, ".eslintrc.json", &[".eslintrc.json"]).await;
    check(&sandbox, "**/.env*", &[".env", ".env.local", "sub/.env"]).await;
    check(&sandbox, "{.github,sub}/**/*.yml", &[".github/workflows/a.yml"]).await;
    check(&sandbox, "**", &["x"]).await;
    let all = glob(&sandbox, json!({"pattern": "**", "hidden": true})).await;
    assert_eq!(all["total"], names.len());
    let nothing = check(&sandbox, "*.json", &[]).await;
    contains(&notes(&nothing), &["begins with a dot", "1 entry", "hidden: true"]);
}

#[tokio::test]
async fn what_git_ignores_is_left_out_counted_and_reached_by_name() {
    let sandbox =
        with_files(&["a.log", "src/b.log", "target/debug/x.d", "target/y.d", "src/x.d", ".env", "kept.txt"])
            .await;
    sandbox.repository("");
    sandbox.put(".gitignore", "*.log\n/target/\n.env\n");
    let payload = check(&sandbox, "**/*.d", &["src/x.d"]).await;
    assert_eq!(payload["hidden_by_ignore"], 1, "the directory target");
    let nothing = check(&sandbox, "**/*.log", &[]).await;
    assert_eq!(nothing["hidden_by_ignore"], 3, "two files, and target which could hold one");
    contains(&notes(&nothing), &["ignore files", "3 entries", "ignored: true"]);
    check(&sandbox, "target/**/*.d", &["target/debug/x.d", "target/y.d"]).await;
    check(&sandbox, "{target,src}/**/*.d", &["src/x.d", "target/debug/x.d", "target/y.d"]).await;
    check(&sandbox, "**/.env*", &[".env"]).await;
    check(&sandbox, "a.log", &["a.log"]).await;
    let all = glob(&sandbox, json!({"pattern": "**/*.log", "ignored": true})).await;
    assert_eq!(paths(&all["paths"]), ["a.log", "src/b.log"]);
    let below = glob(&sandbox, json!({"pattern": "**", "path": "target"})).await;
    assert_eq!(paths(&below["paths"]), ["target/debug/x.d", "target/y.d"]);
}

#[tokio::test]
async fn rules_of_a_parent_stop_at_a_repository() {
    let sandbox = with_files(&["child/AGENTS.md", "child/skip.log", "other/AGENTS.md"]).await;
    sandbox.repository("");
    sandbox.repository("child");
    sandbox.put(".gitignore", "*\n!.gitignore\n");
    sandbox.put("child/.gitignore", "*.log\n");
    let inside = glob(&sandbox, json!({"pattern": "**", "path": "child"})).await;
    assert_eq!(paths(&inside["paths"]), ["child/AGENTS.md"]);
    let harness = sandbox.harness.clone().in_directory(sandbox.at("child"));
    assert_eq!(paths(&harness.call("glob", json!({"pattern": "*"})).await.payload()["paths"]), ["AGENTS.md"]);
    check(&sandbox, "**", &[".gitignore"]).await;
}

#[tokio::test]
async fn a_rule_for_one_place_holds_there_from_wherever_the_search_starts() {
    let sandbox = with_files(&["x/f", "sub/x/f", "sub/y"]).await;
    sandbox.repository("");
    sandbox.put(".gitignore", "/x\n/sub/y\n");
    check(&sandbox, "**/*", &["sub/x/f"]).await;
    let below = glob(&sandbox, json!({"pattern": "**", "path": "sub"})).await;
    assert_eq!((paths(&below["paths"]), &below["hidden_by_ignore"]), (vec!["sub/x/f"], &json!(1)));
    let below = glob(&sandbox, json!({"pattern": "*", "path": "sub/x"})).await;
    assert_eq!(paths(&below["paths"]), ["sub/x/f"]);
}

#[tokio::test]
async fn worktrees_in_an_ignored_directory_do_not_drown_the_result() {
    let sandbox = with_files(&["src/main.rs"]).await;
    sandbox.repository("");
    sandbox.put(".gitignore", "/.trees/\n/trees/\n");
    for n in 0..6 {
        sandbox.put(&format!("trees/{n}/src/main.rs"), "");
        sandbox.put(&format!("trees/{n}/.git"), format!("gitdir: ../../.git/worktrees/{n}\n"));
        sandbox.put(&format!("trees/{n}/.gitignore"), "*.log\n");
        sandbox.put(&format!("trees/{n}/x.log"), "");
    }
    let payload = check(&sandbox, "**/*.rs", &["src/main.rs"]).await;
    assert_eq!(payload["hidden_by_ignore"], 1);
    let inside = glob(&sandbox, json!({"pattern": "**/*.*", "path": "trees/3"})).await;
    assert_eq!(
        paths(&inside["paths"]),
        ["trees/3/src/main.rs"],
        "the .git file makes it a repository of its own"
    );
}

#[tokio::test]
async fn pages_neither_overlap_nor_skip() {
    let sandbox = Sandbox::new().await;
    for n in 0..250 {
        sandbox.put(&format!("d{}/f{n:03}", n % 7), "");
    }
    let whole = glob(&sandbox, json!({"pattern": "**"})).await;
    assert_eq!((&whole["total"], &whole["truncated"]), (&json!(250), &json!(false)));
    let (mut found, mut offset) = (Vec::new(), json!(0));
    loop {
        let page = glob(&sandbox, json!({"pattern": "**", "limit": 60, "offset": offset})).await;
        assert_eq!(page["total"], 250);
        found.extend(page["paths"].as_array().unwrap().clone());
        match page.get("next_offset") {
            Some(next) => offset = next.clone(),
            None => break,
        }
    }
    assert_eq!(json!(found), whole["paths"]);
    let past = glob(&sandbox, json!({"pattern": "**", "offset": 300})).await;
    assert_eq!((paths(&past["paths"]).len(), &past["truncated"]), (0, &json!(false)));
    contains(&notes(&past), &["offset 300 \u{2265} 250"]);
}

#[tokio::test]
async fn the_most_recently_modified_come_first() {
    let sandbox = with_files(&["a", "b", "c", "d/e"]).await;
    let times = [("a", 300), ("b", 100), ("c", 400), ("d/e", 200)];
    for (name, seconds) in times {
        let time = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 + seconds);
        std::fs::File::options().write(true).open(sandbox.at(name)).unwrap().set_modified(time).unwrap();
    }
    let payload = glob(&sandbox, json!({"pattern": "**", "sort": "modified"})).await;
    assert_eq!(paths(&payload["paths"]), ["c", "a", "d/e", "b"]);
    let page = glob(&sandbox, json!({"pattern": "**", "sort": "modified", "limit": 2, "offset": 1})).await;
    assert_eq!((paths(&page["paths"]), &page["total"]), (vec!["a", "d/e"], &json!(4)));
}

#[tokio::test]
async fn links_are_listed_and_not_followed_and_those_that_leave_are_counted() {
    let sandbox = with_files(&["real/x.rs"]).await;
    std::fs::create_dir(sandbox.outside().join("secret")).unwrap();
    std::fs::write(sandbox.outside().join("secret/y.rs"), "").unwrap();
    symlink("../../secret", sandbox.at("real/out")).unwrap();
    symlink("real", sandbox.at("inside")).unwrap();
    symlink("..", sandbox.at("real/up")).unwrap();
    let payload = check(&sandbox, "**/*.rs", &["real/x.rs"]).await;
    contains(&notes(&payload), &["out of the allowed roots", "1 symbolic link"]);
    check(&sandbox, "**", &["inside", "real/out", "real/up", "real/x.rs"]).await;
    check(&sandbox, "inside/*.rs", &["inside/x.rs"]).await;
    refused(
        &sandbox.call("glob", json!({"pattern": "real/out/*"})).await,
        "permission_denied",
        "outside_root",
    );
    refused(&sandbox.call("glob", json!({"pattern": "../*"})).await, "permission_denied", "outside_root");
    refused(&sandbox.call("glob", json!({"pattern": "/etc/*"})).await, "permission_denied", "outside_root");
}

#[tokio::test]
async fn special_files_are_listed_and_never_opened() {
    let sandbox = with_files(&["plain"]).await;
    nix_fifo(&sandbox.at("pipe"));
    let _socket = std::os::unix::net::UnixListener::bind(sandbox.at("socket")).unwrap();
    nix_fifo(&sandbox.at(".gitignore"));
    nix_fifo(&sandbox.at(".ignore"));
    check(&sandbox, "*", &["pipe", "plain", "socket"]).await;
}

fn nix_fifo(path: &std::path::Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[tokio::test]
async fn denied_and_temporary_names_are_not_there() {
    let sandbox = Sandbox::with(json!({"deny": ["secret", "*.pem", "sub/inner/**"]})).await;
    for name in ["a", "secret/b", "sub/key.pem", "sub/inner/c", ".ph-abc123.tmp", "sub/d"] {
        sandbox.put(name, "");
    }
    let all = glob(&sandbox, json!({"pattern": "**", "hidden": true, "ignored": true})).await;
    assert_eq!(paths(&all["paths"]), ["a", "sub/d"]);
    assert_eq!(all["total"], 2);
    refused(&sandbox.call("glob", json!({"pattern": "sub/inner/*"})).await, "permission_denied", "denied");
    check(&sandbox, "**/*.pem", &[]).await;
    check(&sandbox, ".ph-abc123.tmp", &[]).await;
}

#[tokio::test]
async fn nothing_is_empty_without_a_word() {
    let sandbox = with_files(&["src/deep/x.rs", "src/y.txt"]).await;
    contains(&notes(&check(&sandbox, "x.rs", &[]).await), &["**/x.rs", "matches 1"]);
    contains(&notes(&check(&sandbox, "missing/*.rs", &[]).await), &["nothing can match", "missing"]);
    contains(&notes(&check(&sandbox, "src/y.txt/*", &[]).await), &["nothing can match"]);
    contains(&notes(&check(&sandbox, "src\\*.txt", &[]).await), &["separated by /"]);
    contains(&notes(&check(&sandbox, "src/**.rs", &[]).await), &["whole segment", "**/*.rs"]);
    contains(&notes(&check(&sandbox, "src/*", &["src/y.txt"]).await), &["1 directory", "ends in /"]);
    check(&sandbox, "src", &["src/"]).await;
}

#[tokio::test]
async fn names_that_are_no_text_are_shown_so_that_they_can_be_asked_for() {
    use std::os::unix::ffi::OsStrExt;
    let sandbox = with_files(&["plain"]).await;
    std::fs::write(sandbox.root().join(std::ffi::OsStr::from_bytes(b"caf\xe9.txt")), "").unwrap();
    check(&sandbox, "*.txt", &["caf\\xe9.txt"]).await;
    check(&sandbox, "caf?.txt", &["caf\\xe9.txt"]).await;
}

#[tokio::test]
async fn paths_are_relative_to_the_working_directory_where_they_can_be() {
    let sandbox = with_files(&["a/b/x", "c/y"]).await;
    let harness = sandbox.harness.clone().in_directory(sandbox.at("a"));
    let payload = harness.call("glob", json!({"pattern": "**"})).await.payload().clone();
    assert_eq!(paths(&payload["paths"]), ["b/x"]);
    let payload = harness.call("glob", json!({"pattern": "../c/*"})).await.payload().clone();
    assert_eq!(paths(&payload["paths"]), [sandbox.at("c/y").to_str().unwrap()]);
    let payload = harness.call("glob", json!({"pattern": "*", "path": "b"})).await.payload().clone();
    assert_eq!(paths(&payload["paths"]), ["b/x"]);
}

#[tokio::test]
async fn a_deadline_gives_what_was_found_and_says_so() {
    let sandbox = Sandbox::with(json!({"deadline_ms": 1})).await;
    for directory in 0..300 {
        for file in 0..20 {
            sandbox.put(&format!("{directory}/{file}"), "");
        }
    }
    let payload = glob(&sandbox, json!({"pattern": "**", "limit": 100_000})).await;
    assert_eq!(payload["timed_out"], true, "{}", payload["total"]);
    assert_eq!(payload["total"], paths(&payload["paths"]).len());
    contains(&notes(&payload), &["time ran out", "there may be more"]);
}

#[tokio::test]
async fn a_cancelled_call_ends_at_once() {
    let sandbox = Sandbox::new().await;
    for directory in 0..400 {
        std::fs::create_dir(sandbox.at(&directory.to_string())).unwrap();
        for file in 0..50 {
            std::fs::write(sandbox.at(&format!("{directory}/{file}")), "").unwrap();
        }
    }
    let harness = sandbox.harness.clone();
    let call = tokio::spawn(async move {
        harness.call_as("walk", "glob", json!({"pattern": "**", "sort": "modified"}), None).await
    });
    while !sandbox.harness.cancel("walk").await && !call.is_finished() {
        tokio::task::yield_now().await;
    }
    let asked = Instant::now();
    call.await.unwrap();
    // Generous for a busy machine; `cargo xtask bench` measures it.
    assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
}
