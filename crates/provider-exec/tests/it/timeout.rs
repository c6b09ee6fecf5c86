//! Time that runs out, and limits.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{mark, place, with_mark};

#[tokio::test]
async fn a_pipe_does_not_keep_a_timeout_from_ending_all() {
    let place = place(json!({ "grace_ms": 300 })).await;
    let mark = mark();
    let begun = Instant::now();
    let command = format!("(trap '' TERM; echo begun; sleep {mark}; true) | tee f");
    let result = place.bash(json!({ "command": command, "timeout_ms": 1_000 })).await.payload().clone();
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert_eq!((&result["status"], &result["output"]), (&json!("timed_out"), &json!("begun\n")), "{result}");
    assert_eq!(result["signal"], "SIGTERM", "{result}");
    let summary = result["summary"].as_str().unwrap();
    assert!(summary.starts_with("timed out after 1.0 s; SIGTERM was sent to "), "{summary}");
    assert!(summary.contains("after 300 ms SIGKILL ended "), "{summary}");
    assert_eq!(with_mark(&mark), Vec::<u32>::new());
    assert_eq!(std::fs::read_to_string(place.root.join("f")).unwrap(), "begun\n");
}

#[tokio::test]
async fn a_timeout_is_checked_before_anything_runs() {
    let place = place(json!({})).await;
    for wrong in [json!(0), json!(-1), json!(99_999_999_999_i64), json!(1.5)] {
        let outcome = place.bash(json!({ "command": "touch ran", "timeout_ms": wrong })).await;
        let error = outcome.error();
        assert_eq!(error.category, "invalid_arguments", "{wrong}");
        assert!(
            error.message.starts_with("timeout_ms: it must be an integer from 1 to 600000"),
            "{}",
            error.message
        );
    }
    assert!(!place.root.join("ran").exists());
    for right in [json!(60_000), json!("60000"), Value::Null] {
        let outcome = place.bash(json!({ "command": "echo ran", "timeout_ms": right })).await;
        assert_eq!(outcome.payload()["output"], "ran\n", "{right}");
    }
}

#[tokio::test]
async fn a_flood_does_not_keep_a_timeout_from_its_time() {
    let place = place(json!({ "grace_ms": 0 })).await;
    for command in ["while :; do echo x; done", "yes", "cat /dev/zero"] {
        let result = place.bash(json!({ "command": command, "timeout_ms": 300 })).await.payload().clone();
        assert_eq!(result["status"], "timed_out", "{command}");
        let took = result["duration_ms"].as_f64().unwrap();
        assert!((300.0..20_000.0).contains(&took), "{command}: {took}");
    }
}

#[tokio::test]
async fn a_memory_limit_is_named_in_the_result() {
    let place = place(json!({ "memory_limit_bytes": 200 << 20 })).await;
    let command = "python3 -c 'a = b\"x\" * (600 << 20); import time; time.sleep(1000)'";
    let result = place.run(command).await;
    assert_eq!(
        (&result["status"], &result["exit_code"], &result["signal"]),
        (&json!("killed"), &json!(137), &json!("SIGKILL"))
    );
    assert!(result["summary"].as_str().unwrap().starts_with("killed: memory limit"), "{result}");
}

#[tokio::test]
async fn a_fork_bomb_meets_the_process_limit() {
    let place = place(json!({ "process_limit": 30 })).await;
    let mark = mark();
    // It ends by itself, so that a machine survives a limit that does not hold: after about a thousand processes.
    let bomb = "bomb() { [ $1 -gt 8 ] && sleep 1000; bomb $(($1 + 1)) | bomb $(($1 + 1)) & }; bomb 0; sleep";
    let result = place.run(&format!("{bomb} {mark}")).await;
    assert_eq!(result["status"], "killed", "{result}");
    assert!(result["summary"].as_str().unwrap().starts_with("killed: process limit"), "{result}");
    assert_eq!(with_mark(&mark), Vec::<u32>::new());
}
