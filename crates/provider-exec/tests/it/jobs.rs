//! Commands that go on beside the calls.

use harness_proto::hook::v1 as hook;
use hook::hook_subscriber_service_client::HookSubscriberServiceClient;
use serde_json::{Value, json};

use crate::support::{Place, mark, place, until, with_mark};

async fn background(place: &Place, arguments: Value) -> String {
    let mut all = json!({ "background": true });
    all.as_object_mut().unwrap().extend(arguments.as_object().unwrap().clone());
    let result = place.bash(all).await.payload().clone();
    assert_eq!(result["status"], "running", "{result}");
    result["job_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_server_in_the_foreground_is_yielded_and_goes_on() {
    let place = place(json!({})).await;
    let mark = mark();
    let arguments = json!({ "command": format!("echo ready; sleep {mark}"), "yield_ms": 500 });
    let outcome = place.bash(arguments).await;
    let result = outcome.payload();
    assert_eq!((&result["status"], &result["output"]), (&json!("running"), &json!("ready\n")), "{result}");
    assert!(result.get("exit_code").is_none());
    assert!(outcome.events.iter().all(|event| event["event"] != "exit_status"));
    assert!(!with_mark(&mark).is_empty());
    let job = result["job_id"].clone();
    let more = place.tool("job_output", json!({ "job_id": job })).await;
    assert_eq!(
        (&more["status"], &more["output"], &more["next_offset"]),
        (&json!("running"), &json!("ready\n"), &json!(6))
    );
    let killed = place.tool("job_kill", json!({ "job_id": job })).await;
    assert_eq!(
        (&killed["status"], &killed["signal"], &killed["exit_code"]),
        (&json!("killed"), &json!("SIGTERM"), &json!(143))
    );
    assert_eq!(with_mark(&mark), Vec::<u32>::new());
    let again = place.tool("job_kill", json!({ "job_id": job })).await;
    assert_eq!(again["status"], "killed");
}

#[tokio::test]
async fn output_is_waited_for_and_read_on_from_any_place() {
    let place = place(json!({})).await;
    let job = background(&place, json!({ "command": "echo one; read x <fifo; echo two; exit 3" })).await;
    // The job opens the FIFO only if it is there; until then it fails at once.
    let _ = job;
    std::fs::remove_file(place.root.join("fifo")).ok();
    place.run("mkfifo fifo").await;
    let job = background(&place, json!({ "command": "echo one; read x <fifo; echo two; exit 3" })).await;
    let first = place.tool("job_output", json!({ "job_id": job, "wait_ms": 30_000 })).await;
    assert_eq!((&first["output"], &first["next_offset"]), (&json!("one\n"), &json!(4)));
    place.run("echo go > fifo").await;
    let mut output = String::new();
    let mut offset = first["next_offset"].clone();
    loop {
        let next =
            place.tool("job_output", json!({ "job_id": job, "wait_ms": 30_000, "offset": offset })).await;
        output.push_str(next["output"].as_str().unwrap());
        offset = next["next_offset"].clone();
        if next["status"] != "running" {
            assert_eq!((&next["status"], &next["exit_code"]), (&json!("exited"), &json!(3)));
            break;
        }
    }
    assert_eq!(output, "two\n");
    let beyond = place.harness.call("job_output", json!({ "job_id": job, "offset": 1_000 })).await;
    assert_eq!(beyond.error().category, "invalid_arguments");
}

#[tokio::test]
async fn long_output_is_read_in_parts_that_neither_repeat_nor_skip() {
    let place = place(json!({})).await;
    let job = background(&place, json!({ "command": "seq 1 50000" })).await;
    let (mut output, mut offset, mut parts) = (String::new(), json!(0), 0);
    loop {
        let next =
            place.tool("job_output", json!({ "job_id": job, "wait_ms": 30_000, "offset": offset })).await;
        output.push_str(next["output"].as_str().unwrap());
        let at_end = next["next_offset"] == offset;
        offset = next["next_offset"].clone();
        parts += 1;
        if at_end && next["status"] != "running" {
            break;
        }
    }
    let expected: String = (1..=50_000).map(|number| format!("{number}\n")).collect();
    assert!(output == expected, "{} of {} bytes", output.len(), expected.len());
    assert!(parts > 8, "{parts}");
}

#[tokio::test]
async fn input_reaches_a_job_and_its_end_does_too() {
    let place = place(json!({})).await;
    let job = background(&place, json!({ "command": "cat; echo end", "stdin": "first\n" })).await;
    place.tool("job_output", json!({ "job_id": job, "wait_ms": 30_000 })).await;
    let answer = place.tool("job_write", json!({ "job_id": job, "input": "second\n" })).await;
    assert_eq!((&answer["status"], &answer["output"]), (&json!("running"), &json!("second\n")));
    let last = place.tool("job_write", json!({ "job_id": job, "input": "", "close": true })).await;
    assert_eq!((&last["status"], &last["output"]), (&json!("exited"), &json!("end\n")));
    let all = place.tool("job_output", json!({ "job_id": job })).await;
    assert_eq!(all["output"], "first\nsecond\nend\n");
    let closed = place.harness.call("job_write", json!({ "job_id": job, "input": "x" })).await;
    assert_eq!(closed.error().message, format!("{job} cannot be written to: it has ended"));
    let deaf = background(&place, json!({ "command": "sleep 1000" })).await;
    let refused = place.harness.call("job_write", json!({ "job_id": deaf, "input": "x" })).await;
    assert!(refused.error().message.contains("its standard input is /dev/null or was closed; a command that is to be written to is started with pty: true"), "{}", refused.error().message);
}

#[tokio::test]
async fn a_terminal_says_that_it_waits_and_takes_an_answer() {
    let place = place(json!({})).await;
    let command =
        "tty >/dev/null && echo terminal; read -p 'name? ' x; echo \"hello $x\"; read -s y; echo bye";
    let job = background(&place, json!({ "command": command, "pty": true })).await;
    let mut asked = Value::Null;
    for _ in 0..200 {
        asked = place.tool("job_output", json!({ "job_id": job, "wait_ms": 100 })).await;
        if asked["waiting_for_input"] == true {
            break;
        }
    }
    assert_eq!(
        (&asked["waiting_for_input"], &asked["output"]),
        (&json!(true), &json!("terminal\nname? ")),
        "{asked}"
    );
    let answer = place.tool("job_write", json!({ "job_id": job, "input": "you\n" })).await;
    assert_eq!(answer["status"], "running", "{answer}");
    assert!(answer["output"].as_str().unwrap().contains("hello you\n"), "{answer}");
    let last = place.tool("job_write", json!({ "job_id": job, "input": "secret\n" })).await;
    assert_eq!((&last["status"], &last["output"]), (&json!("exited"), &json!("bye\n")), "{last}");
}

#[tokio::test]
async fn jobs_are_listed_with_their_sessions_and_an_unknown_one_is_named() {
    let place = place(json!({})).await;
    assert_eq!(place.tool("job_list", json!({})).await, json!({ "jobs": [] }));
    let one = background(&place, json!({ "command": "sleep 1000" })).await;
    let two = background(&place, json!({ "command": "exit 0" })).await;
    place.tool("job_output", json!({ "job_id": two, "wait_ms": 30_000 })).await;
    let list = place.tool("job_list", json!({})).await;
    let row = |index: usize| {
        let job = &list["jobs"][index];
        json!([job["job_id"], job["command"], job["status"], job["owner"]])
    };
    assert_eq!(row(0), json!([one, "sleep 1000", "running", "session-1"]));
    assert_eq!(row(1), json!([two, "exit 0", "exited", "session-1"]));
    let unknown = place.harness.call("job_kill", json!({ "job_id": "job-77" })).await;
    assert_eq!(unknown.error().category, "not_found");
    assert_eq!(unknown.error().message, format!("there is no job \"job-77\"; there are {one}, {two}"));
}

#[tokio::test]
async fn there_is_room_for_sixteen_jobs() {
    let place = place(json!({})).await;
    for _ in 0..16 {
        background(&place, json!({ "command": "sleep 1000" })).await;
    }
    let refused = place.bash(json!({ "command": "sleep 1000", "background": true })).await;
    assert!(refused.error().message.starts_with("16 jobs run already"), "{}", refused.error().message);
    assert_eq!(place.run("echo still").await["output"], "still\n");
    place.tool("job_kill", json!({ "job_id": "job-3", "signal": "KILL" })).await;
    background(&place, json!({ "command": "sleep 1000" })).await;
}

#[tokio::test]
async fn a_background_job_with_a_timeout_is_ended_by_it() {
    let place = place(json!({ "grace_ms": 100 })).await;
    let mark = mark();
    let job =
        background(&place, json!({ "command": format!("echo on; sleep {mark}"), "timeout_ms": 300 })).await;
    until("the job goes on", || with_mark(&mark).is_empty()).await;
    let output = place.tool("job_output", json!({ "job_id": job, "wait_ms": 30_000, "offset": 3 })).await;
    assert_eq!((&output["status"], &output["signal"]), (&json!("timed_out"), &json!("SIGTERM")));
}

#[tokio::test]
async fn jobs_end_with_their_provider() {
    let mark = mark();
    let place = place(json!({})).await;
    background(&place, json!({ "command": format!("trap '' TERM; sleep {mark}; true") })).await;
    until("the job does not begin", || with_mark(&mark).len() == 2).await;
    drop(place);
    until("the job goes on", || with_mark(&mark).is_empty()).await;
}

#[tokio::test]
async fn jobs_end_with_their_session_and_others_go_on() {
    let place = place(json!({})).await;
    let other = place.harness.clone().in_session("other");
    let (mine, theirs) = (mark(), mark());
    background(&place, json!({ "command": format!("sleep {mine}") })).await;
    let arguments = json!({ "command": format!("sleep {theirs}"), "background": true });
    let kept = other.call("bash", arguments).await.payload()["job_id"].clone();
    let temporary = place.run("echo $TMPDIR").await["output"].as_str().unwrap().trim().to_owned();
    end_session(&place, "session-1").await;
    until("the job goes on", || with_mark(&mine).is_empty()).await;
    until("its directory stays", || !std::path::Path::new(&temporary).exists()).await;
    assert_eq!(with_mark(&theirs).len(), 1);
    let list = place.tool("job_list", json!({})).await;
    assert_eq!(list["jobs"].as_array().unwrap().len(), 1, "{list}");
    assert_eq!(list["jobs"][0]["job_id"], kept);
}

#[tokio::test]
async fn a_question_on_a_terminal_comes_back_to_the_caller() {
    let place = place(json!({})).await;
    let result = place
        .bash(json!({ "command": "read -p 'sure? ' x; echo got:$x", "pty": true }))
        .await
        .payload()
        .clone();
    assert_eq!(
        (&result["status"], &result["output"], &result["waiting_for_input"]),
        (&json!("running"), &json!("sure? "), &json!(true)),
        "{result}"
    );
    let answer = place.tool("job_write", json!({ "job_id": result["job_id"], "input": "yes\n" })).await;
    assert_eq!(answer["status"], "exited", "{answer}");
    assert!(answer["output"].as_str().unwrap().ends_with("got:yes\n"), "{answer}");
}

#[tokio::test]
async fn a_flood_in_the_background_stays_within_its_quota_and_goes_with_its_session() {
    let quota = 200_000;
    let place = place(json!({ "spill_quota_bytes": quota, "grace_ms": 100 })).await;
    let mark = mark();
    let job = background(&place, json!({ "command": format!("yes {mark}") })).await;
    let spilled = || {
        let folder = place.root.parent().unwrap().join("state/exec");
        let folders = std::fs::read_dir(folder).unwrap().flatten();
        let files = folders.flat_map(|folder| std::fs::read_dir(folder.path()).unwrap().flatten());
        let logs = files.filter(|file| file.path().extension().is_some_and(|name| name == "log"));
        logs.filter_map(|log| Some(log.metadata().ok()?.len())).collect::<Vec<u64>>()
    };
    let mut offset = json!(0);
    for _ in 0..1_000 {
        let next =
            place.tool("job_output", json!({ "job_id": job, "offset": offset, "wait_ms": 1_000 })).await;
        offset = next["next_offset"].clone();
        assert!(spilled().iter().sum::<u64>() <= quota, "{:?}", spilled());
        if offset.as_f64().unwrap() > 1_500_000.0 {
            break;
        }
    }
    assert!(offset.as_f64().unwrap() > 1_500_000.0, "the flood has stopped at {offset}");
    let lost = place.tool("job_output", json!({ "job_id": job, "offset": 120_000 })).await;
    let note = crate::support::notes(&lost).concat();
    assert!(note.contains("are not kept: there was more output than spill_quota_bytes"), "{note}");
    assert!(!spilled().is_empty());
    end_session(&place, "session-1").await;
    until("the flood goes on", || with_mark(&mark).is_empty()).await;
    until("its output stays", || spilled().is_empty()).await;
}

async fn end_session(place: &Place, session: &str) {
    let payload = hook::SessionEndPayload { session_id: session.to_owned(), ..Default::default() };
    let request = hook::DispatchHookRequest {
        payload: Some(hook::HookPayload { payload: Some(hook::hook_payload::Payload::SessionEnd(payload)) }),
        mode: hook::HookMode::Observe.into(),
        subscription_id: None,
    };
    HookSubscriberServiceClient::new(place.harness.channel()).dispatch_hook(request).await.unwrap();
}
