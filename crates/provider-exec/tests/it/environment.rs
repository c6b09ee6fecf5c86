//! What commands get of the environment, and what they do not.

use serde_json::json;

use crate::support::{notes, place};

#[tokio::test]
async fn only_known_variables_pass_and_the_others_are_named_once() {
    // The test itself is run with variables that are not passed on: cargo sets some.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let place = place(json!({ "env": { "FIXED": "1" }, "env_pass": ["CARGO_PKG_NAME"] })).await;
    let result = place.bash(json!({ "command": "env", "env": { "ASKED": "2" } })).await.payload().clone();
    let output = result["output"].as_str().unwrap();
    let names: Vec<&str> = output.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    for there in ["PATH", "HOME", "FIXED", "ASKED", "CARGO_PKG_NAME", "GIT_TERMINAL_PROMPT", "TMPDIR"] {
        assert!(names.contains(&there), "{there}: {output}");
    }
    assert!(!output.contains("CARGO_MANIFEST_DIR"), "{output}");
    let note = notes(&result).into_iter().find(|note| note.starts_with("environment variables")).unwrap();
    assert!(note.contains("CARGO_MANIFEST_DIR") && !note.contains(env!("CARGO_MANIFEST_DIR")), "{note}");
    assert!(!note.contains("CARGO_PKG_NAME,"), "{note}");
    assert!(!notes(&place.run("true").await).iter().any(|note| note.starts_with("environment variables")));
}

#[tokio::test]
async fn values_of_the_environment_stand_in_no_command_line() {
    let place = place(json!({ "env": { "CONFIGURED_SECRET": "hush-configured" } })).await;
    // The pattern does not match itself, wherever it stands in a command line.
    let command = "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -c 'hush-[a-z]'";
    let arguments = json!({ "command": command, "env": { "ASKED_SECRET": "hush-asked" } });
    let result = place.bash(arguments).await.payload().clone();
    assert_eq!(result["output"], "0\n", "{result}");
}

#[tokio::test]
async fn a_wrong_variable_is_refused_by_name() {
    let place = place(json!({})).await;
    let outcome = place.bash(json!({ "command": "true", "env": { "A=B": "x" } })).await;
    assert_eq!(outcome.error().message, "env: \"A=B\" cannot be the name of an environment variable");
}

#[tokio::test]
async fn temporary_files_go_to_the_sessions_own_directory() {
    let place = place(json!({})).await;
    let directory = async |session: &str| {
        let harness = place.harness.clone().in_session(session);
        let outcome =
            harness.call("bash", json!({ "command": "f=$(mktemp) && echo x > $f && dirname $f" })).await;
        outcome.payload()["output"].as_str().unwrap().trim().to_owned()
    };
    let (one, two) = (directory("one").await, directory("two").await);
    assert_ne!(one, two);
    assert_eq!(one, directory("one").await);
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(std::fs::metadata(&one).unwrap().permissions().mode() & 0o777, 0o700);
}
