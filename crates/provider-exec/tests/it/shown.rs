//! Previews and stored results as render trees.

use provider_core::Catalogue;
use provider_exec::Exec;
use serde_json::{Value, json};

use crate::support::{Place, place};

async fn preview(place: &Place, arguments: Value) -> String {
    let tree = place.harness.preview_as(&place.harness.next_id(), "bash", arguments).await.unwrap();
    format!("{tree:?}")
}

#[tokio::test]
async fn a_preview_shows_the_command_its_directory_and_what_deserves_a_look() {
    let place = place(json!({})).await;
    let shown = preview(
        &place,
        json!({ "command": "sudo rm -rf build > log; killall provider-exec", "env": { "A": "b" } }),
    )
    .await;
    let root = place.root.display().to_string();
    for part in [
        "sudo rm -rf build > log; killall provider-exec",
        &root,
        "worth a look",
        "rm -rf build",
        "killall",
        "A=b",
        "sandbox: ",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let plain = preview(&place, json!({ "command": "ls" })).await;
    assert!(!plain.contains("worth a look"), "{plain}");
    assert!(!place.root.join("log").exists());
}

#[tokio::test]
async fn a_preview_of_a_wrong_call_says_what_is_wrong() {
    let place = place(json!({})).await;
    let wrong = |arguments| place.harness.preview_as("p", "bash", arguments);
    let status = wrong(json!({ "command": "ls", "timeout_ms": 0 })).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::InvalidArgument);
    let status = wrong(json!({ "command": "ls", "cwd": "/usr" })).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::PermissionDenied);
}

#[tokio::test]
async fn stored_results_are_recognised_by_one_tool_each_and_shown() {
    let place = place(json!({})).await;
    let bash = place.run("echo shown; exit 3").await;
    let job =
        place.bash(json!({ "command": "cat", "stdin": "", "background": true })).await.payload().clone();
    let id = job["job_id"].clone();
    let written = place.tool("job_write", json!({ "job_id": id, "input": "typed\n" })).await;
    let list = place.tool("job_list", json!({})).await;
    let killed = place.tool("job_kill", json!({ "job_id": id })).await;
    let output = place.tool("job_output", json!({ "job_id": id })).await;
    let catalogue = Catalogue::<Exec>::of().unwrap();
    for (tool, payload, part) in [
        ("bash", &bash, "exit code 3"),
        ("bash", &job, "running as job-1"),
        ("job_write", &written, "typed"),
        ("job_list", &list, "job-1"),
        ("job_kill", &killed, "ended by SIGTERM"),
        ("job_output", &output, "typed"),
    ] {
        assert_eq!(catalogue.recognise(payload), [tool], "{payload}");
        let tree = format!("{:?}", place.harness.render(payload).await.unwrap());
        assert!(tree.contains(part), "{tool}: {tree}");
    }
}
