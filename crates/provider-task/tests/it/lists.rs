//! Creating, changing and listing.

use serde_json::json;

use crate::{Bench, lines};

#[tokio::test]
async fn a_task_is_created_changed_and_listed() {
    let bench = Bench::new().await;
    let created =
        bench.call("task_create", json!({"title": " write\n it ", "description": "all of it"})).await;
    assert_eq!(
        created,
        json!({
            "created": 1,
            "tasks": [{"id": "1", "title": "write it", "status": "pending", "depends_on": [], "revision": 1}],
            "revision": 1,
        })
    );
    let updated = bench.call("task_update", json!({"id": "1", "status": "in_progress", "revision": 1})).await;
    assert_eq!((&updated["updated"], &updated["tasks"][0]["revision"]), (&json!(1), &json!(2)));
    assert_eq!(bench.lines().await, ["1 in_progress write it"]);
    let one = bench.call("task_list", json!({"id": "1"})).await;
    assert_eq!(one["tasks"][0]["description"], "all of it");
}

#[tokio::test]
async fn several_tasks_are_created_together_or_not_at_all() {
    let bench = Bench::new().await;
    let tree = json!({"tasks": [
        {"title": "build"},
        {"title": "test", "parent": "#1", "depends_on": ["#3"]},
        {"title": "write", "parent": "#1"},
    ]});
    let created = bench.call("task_create", tree).await;
    assert_eq!(created["tasks"][1]["parent"], "1");
    assert_eq!(created["tasks"][1]["depends_on"], json!(["3"]));
    let (category, _, message) = bench
        .error("task_create", json!({"tasks": [{"title": "fine"}, {"title": "not", "parent": "9"}]}))
        .await;
    assert_eq!(category, "not_found");
    assert!(message.starts_with("tasks[1].parent: there is no task \"9\""), "{message}");
    assert_eq!(bench.lines().await.len(), 3);
}

#[tokio::test]
async fn several_changes_are_made_together_or_not_at_all() {
    let bench = Bench::new().await;
    bench.call("task_create", json!({"tasks": [{"title": "a"}, {"title": "b"}]})).await;
    let swap = json!({"tasks": [{"id": "1", "status": "completed"}, {"id": "2", "status": "in_progress", "revision": 7}]});
    let (category, code, message) = bench.error("task_update", swap).await;
    assert_eq!((category.as_str(), code.as_str()), ("concurrency_conflict", "stale"));
    assert!(
        message.contains("task 2 has changed since revision 7; it is now at revision 1, pending: b"),
        "{message}"
    );
    assert_eq!(bench.lines().await, ["1 pending a", "2 pending b"]);
    let both = json!({"tasks": [{"id": "1", "status": "completed"}, {"id": "2", "status": "in_progress"}]});
    let updated = bench.call("task_update", both).await;
    assert_eq!((&updated["updated"], &updated["revision"]), (&json!(2), &json!(2)));
}

#[tokio::test]
async fn cycles_are_refused() {
    let bench = Bench::new().await;
    bench.call("task_create", json!({"tasks": [{"title": "a"}, {"title": "b", "depends_on": ["#1"]}]})).await;
    let (category, _, message) = bench.error("task_update", json!({"id": "1", "depends_on": ["2"]})).await;
    assert_eq!(category, "invalid_arguments");
    assert_eq!(message, "depends_on: task 1 would wait for itself: 1 → 2 → 1");
}

#[tokio::test]
async fn only_what_changed_since_a_revision_is_listed() {
    let bench = Bench::new().await;
    bench.call("task_create", json!({"tasks": [{"title": "a"}, {"title": "b"}, {"title": "c"}]})).await;
    bench.call("task_update", json!({"id": "2", "status": "completed"})).await;
    let changes = bench.call("task_list", json!({"since": 1})).await;
    assert_eq!((lines(&changes), &changes["revision"]), (vec!["2 completed b".to_owned()], &json!(2)));
    assert_eq!(bench.call("task_list", json!({"since": 2})).await["total"], 0);
    let pending = bench.call("task_list", json!({"status": "pending", "limit": 1})).await;
    assert_eq!(
        (lines(&pending), &pending["total"], &pending["next_offset"]),
        (vec!["1 pending a".to_owned()], &json!(2), &json!(1))
    );
    assert_eq!(
        lines(&bench.call("task_list", json!({"status": "pending", "offset": 1})).await),
        ["3 pending c"]
    );
}

#[tokio::test]
async fn the_list_is_exported_as_markdown() {
    let bench = Bench::new().await;
    bench
        .call(
            "task_create",
            json!({"tasks": [{"title": "a", "status": "completed"}, {"title": "b", "parent": "#1"}]}),
        )
        .await;
    let exported = bench.call("task_list", json!({"format": "markdown"})).await;
    assert_eq!(exported["markdown"], "- [x] a #1\n  - [ ] b #2\n");
    assert_eq!(exported["tasks"], json!([]));
}

#[tokio::test]
async fn what_is_out_of_order_is_noted_and_done() {
    let bench = Bench::new().await;
    bench.call("task_create", json!({"tasks": [{"title": "a"}, {"title": "b", "depends_on": ["#1"]}]})).await;
    let updated = bench.call("task_update", json!({"id": "2", "status": "completed"})).await;
    assert_eq!(updated["notes"], json!(["task 2 is completed though 1 must come first"]));
}

#[tokio::test]
async fn wrong_arguments_are_named() {
    let bench = Bench::new().await;
    let check = async |tool: &str, arguments, says: &str| {
        let (category, _, message) = bench.error(tool, arguments).await;
        assert_eq!(category, "invalid_arguments", "{message}");
        assert!(message.contains(says), "{message}");
    };
    check("task_create", json!({}), "title: is missing").await;
    check("task_create", json!({"title": ""}), "title: is empty").await;
    check("task_create", json!({"title": "a", "tasks": [{"title": "b"}]}), "either title or tasks").await;
    check("task_create", json!({"title": "a", "status": "done"}), "status").await;
    check("task_update", json!({"status": "completed"}), "id: is missing").await;
    check("task_update", json!({"id": "1"}), "nothing is changed in task 1").await;
    let (category, _, message) = bench.error("task_update", json!({"id": "7", "status": "completed"})).await;
    assert_eq!((category.as_str(), message.contains("the list is empty")), ("not_found", true), "{message}");
    assert_eq!(bench.error("task_list", json!({"id": "x"})).await.0, "not_found");
}

#[tokio::test]
async fn sessions_have_lists_of_their_own() {
    let bench = Bench::new().await;
    bench.call("task_create", json!({"title": "mine"})).await;
    let other = bench.harness.clone().in_session("other");
    assert_eq!(other.call("task_list", json!({})).await.payload()["total"], 0);
    assert_eq!(other.call("task_create", json!({"title": "its"})).await.payload()["tasks"][0]["id"], "1");
    assert_eq!(bench.lines().await, ["1 pending mine"]);
}
