//! The call returns when the shell does, whoever still holds the pipes.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{mark, place, until, with_mark};

/// Longer than anything here takes, and far shorter than what is left running.
const SOON: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_child_in_the_background_does_not_hold_up_the_call_and_is_named() {
    let place = place(json!({})).await;
    for command in ["sleep {mark} & echo done", "nohup sleep {mark} >/dev/null 2>&1 & disown; echo done"] {
        let mark = mark();
        let begun = Instant::now();
        let result = place.run(&command.replace("{mark}", &mark)).await;
        assert!(begun.elapsed() < SOON);
        assert_eq!(
            (&result["output"], &result["status"], &result["exit_code"]),
            (&json!("done\n"), &json!("exited"), &json!(0))
        );
        let survivors = result["survivors"].as_array().unwrap();
        assert_eq!(survivors.len(), 1, "{result}");
        assert_eq!(survivors[0]["command"], format!("sleep {mark}"));
        assert_eq!(with_mark(&mark), [u32::try_from(survivors[0]["pid"].as_f64().unwrap() as i64).unwrap()]);
        let job = result["job_id"].as_str().unwrap();
        assert!(
            result["summary"].as_str().unwrap().ends_with(&format!("1 process of it left, as {job}")),
            "{result}"
        );
        let killed = place.tool("job_kill", json!({ "job_id": job })).await;
        assert_eq!(killed["status"], "killed");
        assert_eq!(with_mark(&mark), Vec::<u32>::new());
    }
}

#[tokio::test]
async fn a_server_in_the_background_goes_on_as_a_job() {
    let place = place(json!({})).await;
    let result = place.run("python3 -u -m http.server 0 --bind 127.0.0.1 & echo started").await;
    assert!(result["output"].as_str().unwrap().contains("started\n"), "{result}");
    let job = result["job_id"].clone();
    let output = place.tool("job_output", json!({ "job_id": job, "wait_ms": 20_000, "offset": 8 })).await;
    assert_eq!(output["status"], "running");
    assert!(output["output"].as_str().unwrap().contains("Serving HTTP"), "{output}");
    assert_eq!(place.tool("job_kill", json!({ "job_id": job })).await["status"], "killed");
}

#[tokio::test]
async fn what_was_printed_before_is_kept_while_a_child_holds_the_pipe() {
    let place = place(json!({})).await;
    let mark = mark();
    let result = place.run(&format!("seq 1 2000; sleep {mark} & echo done")).await;
    let output = result["output"].as_str().unwrap();
    assert!(output.starts_with("1\n2\n3\n") && output.ends_with("1999\n2000\ndone\n"), "{result}");
}

#[tokio::test]
async fn output_through_a_process_substitution_arrives() {
    let place = place(json!({})).await;
    let mark = mark();
    let result = place.run(&format!("exec > >(tee log); (sleep {mark} >&1 &) ; echo hi")).await;
    assert_eq!(result["output"], "hi\n", "{result}");
    assert_eq!(std::fs::read_to_string(place.root.join("log")).unwrap(), "hi\n");
    let survivors = result["survivors"].as_array().unwrap();
    assert!(survivors.iter().any(|one| one["command"] == format!("sleep {mark}")), "{result}");
}

#[tokio::test]
async fn survivors_are_ended_and_listed_where_that_is_configured() {
    let place = place(json!({ "survivors": "kill" })).await;
    let mark = mark();
    let result = place.run(&format!("sleep {mark} & echo done")).await;
    assert_eq!((&result["output"], &result["job_id"]), (&json!("done\n"), &json!(null)));
    assert_eq!(result["survivors"][0]["command"], format!("sleep {mark}"));
    assert_eq!(with_mark(&mark), Vec::<u32>::new());
}

#[tokio::test]
async fn standard_input_is_empty_unless_it_is_given() {
    let place = place(json!({})).await;
    assert_eq!(place.run("cat").await["output"], "");
    assert_eq!(place.run("read x; echo got:$x").await["output"], "got:\n");
    let python = place.run("python3 -c 'input()'").await;
    assert_eq!(python["exit_code"], 1);
    assert!(python["output"].as_str().unwrap().contains("EOFError"), "{python}");
    // A search without a path reads standard input where there is something to read.
    std::fs::write(place.root.join("a.txt"), "needle\n").unwrap();
    let found = place.run("command -v rg >/dev/null || exit 99; rg needle | wc -l").await;
    if found["exit_code"] == 99 {
        assert!(std::env::var_os("CI").is_none(), "this test needs rg");
        eprintln!("rg is not installed");
    } else {
        assert_eq!(found["output"], "1\n", "{found}");
    }
    let given = place.bash(json!({ "command": "read x; echo got:$x; cat", "stdin": "one\ntwo" })).await;
    assert_eq!(given.payload()["output"], "got:one\ntwo");
}

#[tokio::test]
async fn a_prompt_on_the_terminal_fails_at_once() {
    let place = place(json!({})).await;
    let result = place.run("read x </dev/tty; echo code $?").await;
    assert!(result["output"].as_str().unwrap().contains("/dev/tty: No such device or address"), "{result}");
    let result = place.run("git -c credential.helper= ls-remote http://127.0.0.1:1/x; ssh -o BatchMode=no -p 1 127.0.0.1; true").await;
    assert_eq!(result["status"], "exited");
    // It asks on the terminal, and where there is none with a program that it finds in the environment.
    let result =
        place.run("ssh-keygen -q -t ed25519 -N secret -f key && ssh-keygen -y -f key; echo code $?").await;
    let output = result["output"].as_str().unwrap();
    assert!(output.ends_with("code 255\n") || output.ends_with("code 1\n"), "{result}");
    assert!(!output.contains("ssh-ed25519"), "{result}");
    // An editor that would wait for somebody is none.
    let commit = "git init -q r && cd r && git -c user.name=n -c user.email=e@x commit --allow-empty";
    let result = place.run(commit).await;
    assert_eq!(result["exit_code"], 1, "{result}");
    assert!(result["output"].as_str().unwrap().contains("empty commit message"), "{result}");
}

#[tokio::test]
async fn words_that_look_like_a_prompt_end_nothing() {
    let place = place(json!({})).await;
    let result = place.bash(json!({ "command": "echo 'a >'; sleep 1; echo b", "yield_ms": 30_000 })).await;
    assert_eq!(
        (&result.payload()["output"], &result.payload()["status"]),
        (&json!("a >\nb\n"), &json!("exited"))
    );
}

#[tokio::test]
async fn exit_codes_and_signals_are_told_apart() {
    let place = place(json!({})).await;
    let check = async |command: &str, code: i64, signal: Option<&str>| {
        let outcome = place.bash(json!({ "command": command })).await;
        let payload = outcome.payload();
        assert_eq!((&payload["exit_code"], &payload["signal"]), (&json!(code), &json!(signal)), "{command}");
        assert_eq!(payload["status"], "exited", "{command}");
        let statuses: Vec<_> =
            outcome.events.iter().filter(|event| event["event"] == "exit_status").collect();
        assert_eq!(statuses.len(), 1, "{command}: {:?}", outcome.events);
        assert_eq!(
            (&statuses[0]["exit_code"], &statuses[0]["signal"]),
            (&json!(code), &json!(signal)),
            "{command}"
        );
    };
    check("true", 0, None).await;
    check("false | true", 0, None).await;
    check("kill -SEGV $$", 139, Some("SIGSEGV")).await;
    check("bash -c 'kill -SEGV $$'; exit $?", 139, None).await;
    check("exit 300", 44, None).await;
    check("touch script; ./script", 126, None).await;
    check("no-such-command-anywhere", 127, None).await;
    check("if", 2, None).await;
    let failed = place.bash(json!({ "command": "false | true", "pipefail": true })).await;
    assert_eq!(failed.payload()["exit_code"], 1);
}

#[tokio::test]
async fn the_first_event_says_that_the_process_starts() {
    let place = place(json!({})).await;
    let outcome = place.bash(json!({ "command": "echo x" })).await;
    let kinds: Vec<&str> = outcome.events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["progress", "output_chunk", "exit_status", "result"]);
    assert_eq!(outcome.events[0]["message"], "starting process");
}

#[tokio::test]
async fn a_shell_that_is_gone_but_lives_on_in_its_children_is_read_to_the_end() {
    let place = place(json!({})).await;
    let result = place.run("(sleep 0.2; echo late) & echo early").await;
    let first = result["output"].as_str().unwrap().to_owned();
    assert!(first.starts_with("early\n"), "{result}");
    if let Some(job) = result["job_id"].as_str() {
        until("the job does not end", || with_mark("sleep 0.2").is_empty()).await;
        let rest = place
            .tool("job_output", json!({ "job_id": job, "wait_ms": 20_000, "offset": first.len() }))
            .await;
        assert_eq!(rest["output"], "late\n");
    }
}
