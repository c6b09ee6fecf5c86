//! Programs over the providers of a session: gated, ordered and cancelled as direct calls are.

use serde_json::{Value, json};

use crate::support::Bench;

/// A policy file that lets programs run without a question, with more rules.
fn policy(more: Value) -> String {
    let mut rules = vec![json!({"name": "programs", "match": {"tool_name": "execute"}, "action": "allow"})];
    rules.extend(more.as_array().unwrap().clone());
    Value::Array(rules).to_string()
}

#[test]
fn a_program_calls_the_providers_of_the_catalog() {
    let bench = Bench::new(&[("a.txt", "one\n"), ("b.txt", "two\nthree\n")]);
    let code = "const {paths} = await tools.search.glob({pattern: '*.txt'});
                const all = await Promise.all(paths.map((path) => tools.filesystem.read_file({path})));
                return all.map((file) => [file.path, file.total_lines])";
    let ran = bench.run(&["call", "code", "execute", &format!("code={code}"), "--yes", "--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let last = ran.json_lines().pop().unwrap();
    assert_eq!(last["payload"]["text"], r#"[["a.txt",1],["b.txt",2]]"#);
    assert_eq!(last["payload"]["calls"][0], json!({"tool": "search.glob", "status": "ok"}));
}

#[test]
fn only_the_providers_that_are_named_are_there() {
    let bench = Bench::new(&[]);
    let code = "code=return Object.keys(tools)";
    let ran = bench.run(&["call", "code", "execute", code, "--yes", "--config", "providers=search"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "[\"search\"]\n"), "{ran:?}");
}

#[test]
fn there_is_no_way_to_run_programs_in_programs() {
    let bench = Bench::new(&[]);
    let code = "code=return [Object.keys(tools), 'code' in tools, 'execute' in tools]";
    let ran = bench.run(&["call", "code", "execute", code, "--yes"]);
    let seven = r#"[["agent","exec","filesystem","search","task","user","web"],false,false]"#;
    assert_eq!((ran.code, ran.stdout.trim_end()), (0, seven), "{ran:?}");
    let ran = bench.run(&["call", "code", "execute", code, "--yes", "--config", "providers=code"]);
    assert!(ran.code == 2 && ran.stderr.contains("a program cannot run programs"), "{ran:?}");
    let ran = bench.run(&[
        "call",
        "code",
        "execute",
        code,
        "--yes",
        "--config",
        r#"providers:=["search","search"]"#,
    ]);
    assert!(ran.code == 2 && ran.stderr.contains("search is there already"), "{ran:?}");
}

#[test]
fn a_program_needs_approval_itself() {
    let bench = Bench::new(&[]);
    let ran = bench.run(&["call", "code", "execute", "code=return 1"]);
    assert_eq!(ran.code, 4, "{ran:?}");
}

#[test]
fn what_a_program_changes_is_asked_about_as_if_it_were_called_directly() {
    let bench = Bench::new(&[("policy.json", &policy(json!([])))]);
    let code = "code=try { await tools.filesystem.write_file({path: 'x', content: 'x'}) } catch (e) { return e.message }";
    let ran = bench.run(&["call", "code", "execute", code, "--policy", "policy.json", "--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let last = ran.json_lines().pop().unwrap();
    assert!(last["payload"]["text"].as_str().unwrap().contains("needs approval"), "{last}");
    assert_eq!(last["payload"]["calls"], json!([{"tool": "filesystem.write_file", "status": "denied"}]));
    assert!(!bench.path().join("x").exists());
}

#[test]
fn the_policy_rules_calls_of_programs_whoever_approves() {
    let deny = json!([{"name": "no shell", "match": {"tool_name": "bash"}, "action": "deny"}]);
    let bench = Bench::new(&[("policy.json", &policy(deny)), ("keep", "x")]);
    let code = "code=await tools.filesystem.write_file({path: 'y', content: 'y'}); await tools.exec.bash({command: 'rm -f keep'})";
    let ran = bench.run(&["call", "code", "execute", code, "--policy", "policy.json", "--yes"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(
        ran.stderr.contains("threw: Error: exec.bash is denied by the policy \"no shell\""),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("Calls made: filesystem.write_file ok, exec.bash denied"), "{}", ran.stderr);
    assert_eq!((bench.read("keep").as_str(), bench.read("y").as_str()), ("x", "y"));
}

#[test]
fn a_question_of_a_program_is_answered_like_any_other() {
    let bench = Bench::new(&[("answers.json", r#"[{"answer": "blue"}]"#)]);
    let code = "code=return (await tools.user.ask_user({question: 'Which colour?'})).answer";
    let ran = bench.run(&["call", "code", "execute", code, "--yes", "--answers", "answers.json"]);
    assert!(ran.code == 0 && ran.stdout.starts_with("blue\n"), "{ran:?}");
    let nobody = bench.run(&["call", "code", "execute", code, "--yes"]);
    assert_eq!(nobody.code, 1, "{nobody:?}");
    assert!(nobody.stderr.contains("nobody is there to answer"), "{}", nobody.stderr);
}

#[test]
fn a_session_gives_programs_its_own_providers() {
    let bench = Bench::new(&[("a.txt", "one\n")]);
    let request = |id: &str, code: &str| json!({"id": id, "provider": "code", "tool": "execute", "args": {"code": code}});
    let input = [
        request("1", "return Object.keys(tools)"),
        request("2", "return (await tools.filesystem.read_file({path: 'a.txt'})).content"),
        request("3", "return 1 +"),
    ];
    let input: String = input.iter().map(|line| format!("{line}\n")).collect();
    let ran = bench.run_with_input(&["session", "filesystem", "code", "--yes"], &input);
    assert_eq!(ran.code, 0, "{ran:?}");
    let end = |id: &str| {
        let all = ran.json_lines();
        let ends = |line: &Value| line["event"] == "result" || line["event"] == "error";
        all.into_iter().find(|line| line["id"] == id && ends(line)).unwrap()
    };
    assert_eq!(end("1")["payload"]["text"], r#"["filesystem"]"#);
    assert_eq!(end("2")["payload"]["text"], "one\n");
    assert!(end("3")["message"].as_str().unwrap().starts_with("syntax: "));
    assert_eq!(end("3")["details"]["reason"], "syntax");
}

#[test]
fn a_program_that_is_given_up_ends_what_it_called() {
    let bench = Bench::new(&[]);
    let code = "await tools.exec.bash({command: 'echo $$ > pid; exec sleep 600'})";
    let request = json!({"id": "1", "provider": "code", "tool": "execute", "args": {"code": code}});
    let mut child = bench
        .command(&["session", "exec", "code", "--yes"])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, format!("{request}\n").as_bytes()).unwrap();
    crate::support::until("the command runs", || {
        std::fs::read_to_string(bench.path().join("pid")).is_ok_and(|pid| pid.ends_with('\n'))
    });
    std::io::Write::write_all(&mut stdin, b"{\"cancel\":\"1\"}\n").unwrap();
    drop(stdin);
    let ran = bench.finish(child);
    let lines = ran.json_lines();
    let last = lines.last().unwrap();
    assert_eq!(last["category"], "cancelled", "{ran:?}");
    let note = lines.iter().find(|line| line["event"] == "partial_result").unwrap();
    assert!(note["payload"]["note"].as_str().unwrap().contains("exec.bash running (cancelled)"), "{note}");
    let pid = bench.read("pid");
    crate::support::until("the command is gone", || !std::path::Path::new("/proc").join(pid.trim()).exists());
}

#[test]
fn the_doctor_shows_the_sandbox_of_programs() {
    let bench = Bench::new(&[]);
    let ran = bench.run(&["doctor", "--json"]);
    let findings = ran.json()["findings"].clone();
    let found = findings
        .as_array()
        .unwrap()
        .iter()
        .find(|finding| finding["check"] == "code sandbox")
        .unwrap()
        .clone();
    let detail = found["detail"].as_str().unwrap();
    for part in ["seccomp on", "landlock", "namespaces", "nofile=3"] {
        assert!(detail.contains(part), "{detail}");
    }
}
