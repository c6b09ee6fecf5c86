//! Every policy, with every knowledge of a file, for every tool that changes text.

use serde_json::{Value, json};

use crate::sandbox::{Sandbox, contains, notes, refused};

const BEFORE: &str = "alpha\nbeta\ngamma\n";

/// What a session knows of the file that it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// Nothing.
    Unread,
    /// All of it.
    Whole,
    /// Its first line.
    Part,
    /// All of it, and then something else changed the text that is to be replaced.
    ChangedInside,
    /// All of it, and then something else changed another line.
    ChangedElsewhere,
    /// All of it, and then something else put the text there a second time.
    ChangedToTwo,
    /// Its first line, and then something else changed another one.
    PartChanged,
}

impl Known {
    const ALL: [Self; 7] = [
        Self::Unread,
        Self::Whole,
        Self::Part,
        Self::ChangedInside,
        Self::ChangedElsewhere,
        Self::ChangedToTwo,
        Self::PartChanged,
    ];

    /// What is in the file when it is to be changed.
    fn content(self) -> &'static str {
        match self {
            Self::Unread | Self::Whole | Self::Part => BEFORE,
            Self::ChangedInside => "alpha\nBETA!\ngamma\n",
            Self::ChangedElsewhere | Self::PartChanged => "alpha\nbeta\nGAMMA!\n",
            Self::ChangedToTwo => "alpha\nbeta\ngamma\nbeta\n",
        }
    }

    fn is_changed(self) -> bool {
        self.content() != BEFORE
    }
}

/// How a change is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// It is made, and there is nothing to say about it.
    Made,
    /// It is made, and it is said that the file had changed.
    MadeWithNote,
    /// Refused: the session does not know the file as it is.
    Stale,
    /// Refused: the text is not there.
    NoMatch,
    /// Refused: the text is there twice.
    Ambiguous,
}

const TOOLS: [&str; 4] = ["edit_file", "multi_edit", "apply_patch", "write_file"];

fn arguments(tool: &str) -> Value {
    match tool {
        "edit_file" => json!({"path": "f", "old_str": "beta\n", "new_str": "new\n"}),
        "multi_edit" => json!({"edits": [{"path": "f", "old_str": "beta\n", "new_str": "new\n"}]}),
        "apply_patch" => {
            json!({"patch": "*** Begin Patch\n*** Update File: f\n@@\n-beta\n+new\n*** End Patch\n"})
        }
        _ => json!({"path": "f", "content": "written\n"}),
    }
}

/// What is decided.
fn expected(policy: &str, known: Known, tool: &str) -> End {
    let place = match known {
        Known::ChangedInside => End::NoMatch,
        Known::ChangedToTwo => End::Ambiguous,
        _ => End::Made,
    };
    match (policy, known, tool) {
        ("off", _, "write_file") => End::Made,
        ("off", _, _) => place,
        ("strict", Known::Unread, _) => End::Stale,
        ("strict", known, _) if known.is_changed() => End::Stale,
        (_, Known::Part, "write_file") => End::Stale,
        (_, known, "write_file") if known.is_changed() => End::Stale,
        (_, known, _) if known.is_changed() && place == End::Made => End::MadeWithNote,
        (_, known, _) if known.is_changed() => End::Stale,
        _ => End::Made,
    }
}

async fn check(policy: &str, known: Known, tool: &str) {
    let sandbox = Sandbox::with(json!({"stale": policy})).await;
    sandbox.put("f", BEFORE);
    match known {
        Known::Unread => {}
        Known::Part | Known::PartChanged => drop(sandbox.read(json!({"path": "f", "limit": 1})).await),
        _ => drop(sandbox.read(json!({"path": "f"})).await),
    }
    sandbox.put("f", known.content());
    let outcome = sandbox.change_all(tool, arguments(tool)).await;
    let what = format!("{policy}, {known:?}, {tool}: {}", outcome.terminal());
    let changed = match tool {
        "write_file" => "written\n".to_owned(),
        _ => known.content().replacen("beta\n", "new\n", 1),
    };
    let end = expected(policy, known, tool);
    match end {
        End::Made => assert_eq!(outcome.payload().get("notes"), None, "{what}"),
        End::MadeWithNote => contains(&notes(&outcome), &["changed by something else"]),
        End::Stale => {
            let message = refused(&outcome, "concurrency_conflict", "stale");
            assert_eq!(outcome.terminal()["retryable"], true, "{what}");
            contains(&message, &["f", "nothing was changed"]);
            if known.is_changed() {
                contains(&message, &["--- a/f", "+++ b/f"]);
            }
        }
        End::NoMatch => drop(refused(&outcome, "execution_failed", "no_match")),
        End::Ambiguous => drop(refused(&outcome, "execution_failed", "ambiguous")),
    }
    let is_made = matches!(end, End::Made | End::MadeWithNote);
    let expected = if is_made { changed } else { known.content().to_owned() };
    assert_eq!(String::from_utf8(sandbox.bytes("f")).unwrap(), expected, "{what}");
}

async fn check_policy(policy: &str) {
    for known in Known::ALL {
        for tool in TOOLS {
            check(policy, known, tool).await;
        }
    }
}

#[tokio::test]
async fn unique_applies_what_is_certain() {
    check_policy("unique").await;
}

#[tokio::test]
async fn strict_applies_what_was_read_and_has_not_changed() {
    check_policy("strict").await;
}

#[tokio::test]
async fn off_applies_what_has_one_place() {
    check_policy("off").await;
}

#[tokio::test]
async fn force_applies_what_has_one_place_under_every_policy() {
    for policy in ["unique", "strict"] {
        for known in Known::ALL {
            for tool in TOOLS {
                let sandbox = Sandbox::with(json!({"stale": policy})).await;
                sandbox.put("f", BEFORE);
                if known != Known::Unread {
                    sandbox.read(json!({"path": "f"})).await;
                }
                sandbox.put("f", known.content());
                let mut arguments = arguments(tool);
                arguments["force"] = json!(true);
                let outcome = sandbox.change_all(tool, arguments).await;
                let is_made = outcome.terminal()["event"] == "result";
                let end = expected("off", known, tool);
                assert_eq!(is_made, end == End::Made, "{policy} {known:?} {tool}: {}", outcome.terminal());
                assert_eq!(sandbox.bytes("f") != known.content().as_bytes(), is_made);
            }
        }
    }
}

#[tokio::test]
async fn a_text_that_went_away_is_told_with_what_changed_and_what_is_there_now() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", BEFORE);
    sandbox.read(json!({"path": "f"})).await;
    sandbox.put("f", "alpha\nbetas\ngamma\n");
    let message = refused(&sandbox.edit("f", "beta\n", "x\n").await, "concurrency_conflict", "stale");
    contains(&message, &["Read it again", "-beta", "+betas", "old_str does not occur", "line 2"]);
    assert!(!message.contains("force"), "no force makes a place: {message}");
}

#[tokio::test]
async fn a_removal_by_a_diff_holds_to_what_was_read() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", "a\n");
    sandbox.read(json!({"path": "f"})).await;
    sandbox.put("f", "a\nmore\n");
    let patch = json!({"patch": "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"});
    let message = refused(&sandbox.change_all("apply_patch", patch).await, "concurrency_conflict", "stale");
    contains(&message, &["+more"]);
}

#[tokio::test]
async fn a_change_that_only_its_line_number_places_is_not_made_in_a_changed_file_in_part_either() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", "a\nb\n");
    sandbox.read(json!({"path": "f"})).await;
    sandbox.put("f", "a\na\nb\n");
    let patch = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+A\n@@ -9 +9 @@\n-none\n+x\n";
    let arguments = json!({"patch": patch, "partial": true});
    refused(&sandbox.change_all("apply_patch", arguments).await, "concurrency_conflict", "stale");
    let patch = "--- a/f\n+++ b/f\n@@ -2 +2 @@\n-b\n+B\n@@ -9 +9 @@\n-none\n+x\n";
    let outcome = sandbox.change_all("apply_patch", json!({"patch": patch, "partial": true})).await;
    contains(&notes(&outcome), &["changed by something else", "what was applied has one place only"]);
    assert_eq!(sandbox.bytes("f"), b"a\na\nB\n");
}

#[tokio::test]
async fn what_was_read_is_known_under_the_name_that_a_patch_gives_it() {
    let sandbox = Sandbox::with(json!({"stale": "strict"})).await;
    sandbox.put("f", BEFORE);
    sandbox.read(json!({"path": "f"})).await;
    let patch = "*** Begin Patch\n*** Update File: f\n*** Move to: g\n@@\n-beta\n+new\n*** End Patch\n";
    sandbox.change_all("apply_patch", json!({"patch": patch})).await.payload();
    sandbox.edit("g", "gamma", "delta").await.payload();
    sandbox.write("g", "all of it\n").await.payload();
}

#[tokio::test]
async fn a_file_that_was_read_in_part_and_edited_is_still_known_in_part() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", BEFORE);
    sandbox.read(json!({"path": "f", "limit": 1})).await;
    sandbox.edit("f", "alpha", "ALPHA").await.payload();
    let message = refused(&sandbox.write("f", "x\n").await, "concurrency_conflict", "stale");
    contains(&message, &["only a part of it was read"]);
}

#[tokio::test]
async fn what_was_undone_is_known_as_it_was() {
    let sandbox = Sandbox::with(json!({"stale": "strict"})).await;
    sandbox.put("f", BEFORE);
    sandbox.read(json!({"path": "f"})).await;
    sandbox.edit("f", "beta", "new").await.payload();
    sandbox.change_all("undo_change", json!({})).await.payload();
    sandbox.edit("f", "beta", "other").await.payload();
    sandbox.write("f", "all of it\n").await.payload();
}
