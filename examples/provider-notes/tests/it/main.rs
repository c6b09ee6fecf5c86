//! The notes provider over real gRPC, in this process.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use provider_core::Catalogue;
use provider_core::testing::{Harness, Scenarios};
use provider_notes::Notes;
use serde_json::json;

const KEY: &str = "k-2718281828";

/// A configured provider with a folder of its own that holds these notes.
async fn notes(content: &str) -> (tempfile::TempDir, Harness) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("notes.txt"), content).unwrap();
    let config = json!({"root": folder.path(), "limit": 5, "service_key": KEY});
    let harness = Harness::start::<Notes>(config).await.unwrap();
    (folder, harness)
}

fn content(folder: &tempfile::TempDir) -> String {
    std::fs::read_to_string(folder.path().join("notes.txt")).unwrap()
}

#[tokio::test]
async fn notes_are_listed_and_what_was_left_out_is_said() {
    let (_folder, notes) = notes("milk\nbread\nmilk again\n").await;
    let outcome = notes.call("list_notes", json!({"contains": "milk", "limit": 1})).await;
    let expected = json!({
        "found": [{"number": 1, "text": "milk"}], "total": 2, "truncated": true,
        "notes": ["1 of 2 notes; pass a larger limit for more"],
    });
    assert_eq!(outcome.payload(), &expected);
}

#[tokio::test]
async fn a_preview_shows_the_line_and_writes_nothing() {
    let (folder, notes) = notes("milk\n").await;
    let tree = notes.preview_as("call-1", "add_note", json!({"text": "bread"})).await.unwrap();
    let shown = format!("{tree:?}");
    assert!(shown.contains("bread") && shown.contains("notes.txt"), "{shown}");
    assert_eq!(content(&folder), "milk\n");
}

#[tokio::test]
async fn the_last_line_gets_its_end_before_another_is_added() {
    let (folder, notes) = notes("milk").await;
    assert_eq!(notes.call("add_note", json!({"text": "bread"})).await.payload(), &json!({"added": 2}));
    assert_eq!(content(&folder), "milk\nbread\n");
}

#[tokio::test]
async fn a_call_after_another_change_than_previewed_is_stale() {
    let (folder, notes) = notes("milk\n").await;
    notes.preview_as("call-1", "add_note", json!({"text": "bread"})).await.unwrap();
    std::fs::write(folder.path().join("notes.txt"), "milk\neggs\n").unwrap();
    let outcome = notes.call_as("call-1", "add_note", json!({"text": "bread"}), None).await;
    assert_eq!(outcome.error().code, "stale");
    assert_eq!(content(&folder), "milk\neggs\n");
}

#[tokio::test]
async fn an_import_tells_how_far_it_is() {
    let (folder, notes) = notes("").await;
    let outcome = notes.call("import_notes", json!({"texts": ["milk", "bread"]})).await;
    assert_eq!(
        outcome.events[0],
        json!({"event": "progress", "message": "added note 1", "fraction_complete": 0.5})
    );
    assert_eq!(outcome.payload(), &json!({"first": 1, "last": 2}));
    assert_eq!(content(&folder), "milk\nbread\n");
}

#[tokio::test]
async fn errors_say_what_to_do_and_never_show_the_key() {
    let (folder, notes) = notes("1\n2\n3\n4\n5\n").await;
    let full = notes.call("add_note", json!({"text": "6"})).await.error();
    assert_eq!((full.code.as_str(), full.category.as_str()), ("too_large", "execution_failed"));
    assert!(full.message.contains("remove one first"), "{}", full.message);
    let secret = notes.call("add_note", json!({"text": format!("the key is {KEY}")})).await;
    assert_eq!(secret.error().code, "denied");
    assert!(!format!("{secret:?}").contains(KEY), "{secret:?}");
    let blank = notes.call("add_note", json!({"text": " "})).await.error();
    assert_eq!(blank.category, "invalid_arguments");
    assert_eq!(content(&folder), "1\n2\n3\n4\n5\n");
}

#[tokio::test]
async fn a_wrong_configuration_is_refused_with_the_attribute() {
    let refused = Harness::start::<Notes>(json!({"root": "/nowhere/at/all"})).await.err().unwrap();
    assert!(refused.message().starts_with("root: "), "{}", refused.message());
}

#[tokio::test]
async fn scenarios_end_as_they_are_written_down() {
    Scenarios::in_folder("tests/scenarios")
        .configured(|root, _state| json!({"root": root}))
        .check::<Notes>()
        .await;
}

#[test]
fn every_result_is_recognised_as_its_own_tools() {
    let catalogue = Catalogue::<Notes>::of().unwrap();
    assert_eq!(catalogue.recognise(&json!({"found": [], "total": 0, "truncated": false})), ["list_notes"]);
    assert_eq!(catalogue.recognise(&json!({"added": 1})), ["add_note"]);
    assert_eq!(catalogue.recognise(&json!({"first": 1, "last": 2})), ["import_notes"]);
}
