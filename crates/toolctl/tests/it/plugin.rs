//! `plugin`: the tools on the plugin wire, from the program itself.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use plugin_wire::conventions::Framing;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::{Bench, until};

/// The program as a plugin, and this as its host.
struct Plugin {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    framing: Framing,
}

impl Plugin {
    fn start(bench: &Bench, arguments: &[&str]) -> Self {
        let arguments = [&["plugin"], arguments].concat();
        let mut child = bench.command(&arguments).stdin(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdin, stdout, framing: Framing::Lines }
    }

    /// With the first exchange done.
    fn initialized(bench: &Bench, arguments: &[&str]) -> Self {
        let mut plugin = Self::start(bench, arguments);
        plugin.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}));
        assert_eq!(plugin.next()["result"]["name"], "toolctl");
        plugin
    }

    fn bytes(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(bytes).unwrap();
        stdin.flush().unwrap();
    }

    fn send(&mut self, message: &Value) {
        let bytes = self.framing.encode(&message.to_string());
        self.bytes(&bytes);
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        match self.framing {
            Framing::Lines => {
                self.stdout.read_line(&mut line).unwrap();
            }
            Framing::Headers => {
                self.stdout.read_line(&mut line).unwrap();
                let length: usize = line.trim().strip_prefix("Content-Length: ").unwrap().parse().unwrap();
                self.stdout.read_line(&mut line).unwrap();
                let mut body = vec![0; length];
                self.stdout.read_exact(&mut body).unwrap();
                line = String::from_utf8(body).unwrap();
            }
        }
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    fn call(&mut self, name: &str, input: Value, context: Value) -> Value {
        let params = json!({"name": name, "input": input, "context": context});
        self.send(&json!({"jsonrpc": "2.0", "id": "c", "method": "tool/call", "params": params}));
        self.answer("c")
    }

    /// The answer to that request; notifications before it are passed over.
    fn answer(&mut self, id: &str) -> Value {
        loop {
            let message = self.next();
            if message["id"] == id {
                return message;
            }
            assert!(message["method"].is_string(), "{message}");
        }
    }

    fn close(&mut self) {
        self.stdin = None;
    }

    /// Waits for its end; returns the rest of its output, and its exit code.
    fn end(mut self) -> (String, i32) {
        self.close();
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        (rest, self.child.wait().unwrap().code().unwrap_or(-1))
    }
}

fn structured(answer: &Value) -> &Value {
    &answer["result"]["structuredContent"]
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

const FILES: [&str; 4] = ["--provider", "filesystem", "--provider", "exec"];

#[test]
fn read_file_by_lines_and_by_headers_with_and_without_a_version() {
    for framing in [Framing::Lines, Framing::Headers] {
        for versioned in [true, false] {
            let bench = Bench::new(&[("a.txt", "one\ntwo\n")]);
            let mut plugin = Plugin::start(&bench, &["--provider", "filesystem"]);
            plugin.framing = framing;
            let message = |mut message: Value| {
                if versioned {
                    message["jsonrpc"] = "2.0".into();
                }
                framing.encode(&message.to_string())
            };
            let sent = [
                message(json!({"id": 1, "method": "initialize", "params": {"protocolVersion": "9"}})),
                message(json!({"id": 2, "method": "tools/list", "params": {}})),
                message(json!({"id": 3, "method": "tool/call", "params": {"name": "read_file", "input": {"path": "a.txt"}}})),
            ]
            .concat();
            // Two messages in one write, and one of them cut.
            let (head, tail) = sent.split_at(sent.len() - 20);
            plugin.bytes(head);
            plugin.bytes(tail);
            let answers = [plugin.next(), plugin.next(), plugin.next()];
            let version = if versioned { json!("2.0") } else { Value::Null };
            assert!(answers.iter().all(|answer| answer["jsonrpc"] == version));
            assert_eq!(answers[0]["result"]["protocolVersion"], "9");
            let tools = answers[1]["result"]["tools"].as_array().unwrap();
            let read = tools.iter().find(|tool| tool["name"] == "read_file").unwrap();
            assert_eq!(read["annotations"]["readOnlyHint"], true);
            assert_eq!(read["title"], "Read file");
            assert_eq!(read["inputSchema"]["required"], json!(["path"]));
            assert!(read["outputSchema"]["properties"]["content"].is_object());
            assert_eq!(structured(&answers[2])["content"], "one\ntwo\n");
            assert_eq!(serde_json::from_str::<Value>(text(&answers[2])).unwrap(), *structured(&answers[2]));
            assert_eq!(plugin.end(), (String::new(), 0));
        }
    }
}

#[test]
fn a_request_that_comes_byte_by_byte() {
    let bench = Bench::new(&[("a.txt", "one\n")]);
    let mut plugin = Plugin::initialized(&bench, &["--provider", "filesystem"]);
    let call = json!({"id": "c", "method": "tool/call", "params": {"name": "read_file", "input": {"path": "a.txt"}}});
    for byte in Framing::Lines.encode(&call.to_string()) {
        plugin.bytes(&[byte]);
    }
    assert_eq!(structured(&plugin.answer("c"))["content"], "one\n");
}

#[test]
fn what_is_wrong_with_a_call_is_an_error_or_for_the_agent_to_read() {
    let bench = Bench::new(&[("a.txt", "one\n")]);
    let mut plugin = Plugin::initialized(&bench, &FILES);
    let unknown = plugin.call("read_fil", json!({}), json!({}));
    assert_eq!(unknown["error"]["code"], -32602);
    assert_eq!(unknown["error"]["message"], "there is no tool read_fil; did you mean read_file?");
    let bad = plugin.call("read_file", json!({"pth": "a.txt"}), json!({}));
    assert_eq!(bad["result"]["isError"], true);
    assert!(text(&bad).starts_with("invalid_arguments: ") && text(&bad).contains("path"), "{bad}");
    let missing = plugin.call("read_file", json!({"path": "b.txt"}), json!({}));
    assert!(text(&missing).starts_with("not_found: "), "{missing}");
    assert!(missing["result"]["structuredContent"].is_null());
    let changed = plugin.call("write_file", json!({"path": "b.txt", "content": "x\n"}), json!({}));
    assert_eq!(structured(&changed)["created"], true, "the host is the one to ask: {changed}");
    assert_eq!(bench.read("b.txt"), "x\n");
}

#[test]
fn calls_in_two_workspaces_at_once_do_not_mix() {
    let bench = Bench::new(&[]);
    let folder = |name: &str| bench.path().join(name);
    for name in ["one", "two", "away"] {
        std::fs::create_dir(folder(name)).unwrap();
        std::fs::write(folder(name).join("a.txt"), name).unwrap();
    }
    let mut plugin = Plugin::initialized(&bench, &FILES);
    for round in 0..3 {
        for name in ["one", "two"] {
            let params = json!({"name": "read_file", "input": {"path": "a.txt"}, "context": {"workspace": folder(name)}});
            plugin.send(&json!({"id": format!("{name}{round}"), "method": "tool/call", "params": params}));
        }
        let mut answers = [plugin.next(), plugin.next()];
        answers.sort_by_key(|answer| answer["id"].to_string());
        assert_eq!(structured(&answers[0])["content"], "one");
        assert_eq!(structured(&answers[1])["content"], "two");
    }
    // A workspace is the only folder that its calls reach.
    let outside = plugin.call(
        "read_file",
        json!({"path": folder("away").join("a.txt")}),
        json!({"workspace": folder("one")}),
    );
    assert!(text(&outside).starts_with("permission_denied: "), "{outside}");
    let shell = plugin.call("bash", json!({"command": "pwd"}), json!({"workspace": folder("two")}));
    assert_eq!(
        structured(&shell)["output"].as_str().unwrap().trim(),
        folder("two").canonicalize().unwrap().to_str().unwrap()
    );
    let relative = plugin.call("read_file", json!({"path": "a.txt"}), json!({"workspace": "one"}));
    assert!(text(&relative).contains("context.workspace: one is not absolute"), "{relative}");
    assert_eq!(plugin.end().1, 0);
}

#[test]
fn without_a_workspace_the_configured_root_holds_or_the_call_fails() {
    let bench = Bench::new(&[("a.txt", "here")]);
    std::fs::create_dir(bench.path().join("root")).unwrap();
    std::fs::write(bench.path().join("root/a.txt"), "root").unwrap();
    let content = |arguments: &[&str]| {
        let mut plugin = Plugin::initialized(&bench, &[&["--provider", "filesystem"], arguments].concat());
        let answer = plugin.call("read_file", json!({"path": "a.txt"}), json!({}));
        answer["result"].clone()
    };
    assert_eq!(content(&[])["structuredContent"]["content"], "here");
    assert_eq!(content(&["--root", "root"])["structuredContent"]["content"], "root");
    let refused = content(&["--require-workspace"]);
    assert_eq!(refused["isError"], true);
    assert!(refused["content"][0]["text"].as_str().unwrap().contains("context.workspace"), "{refused}");
    // With roots, a workspace must lie in them.
    let mut plugin = Plugin::initialized(&bench, &["--provider", "filesystem", "--root", "root"]);
    let outside = plugin.call("read_file", json!({"path": "a.txt"}), json!({"workspace": bench.path()}));
    assert!(text(&outside).starts_with("permission_denied: "), "{outside}");
}

#[test]
fn a_cancelled_command_is_answered_with_what_it_had_done() {
    let bench = Bench::new(&[]);
    let mut plugin = Plugin::initialized(&bench, &FILES);
    let command = "echo begun; touch begun; sleep 600";
    plugin.send(
        &json!({"id": 1, "method": "tool/call", "params": {"name": "bash", "input": {"command": command}}}),
    );
    until("the command runs", || bench.path().join("begun").exists());
    // Meanwhile others are answered.
    assert_eq!(structured(&plugin.call("read_file", json!({"path": "begun"}), json!({})))["total_bytes"], 0);
    plugin.send(&json!({"method": "tool/cancel", "params": {"id": 1}}));
    let answer = plugin.next();
    assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!(1), &json!(true)));
    assert!(text(&answer).starts_with("cancelled: ") && text(&answer).contains("begun"), "{answer}");
    assert_eq!(plugin.end().1, 0);
}

/// A plugin with a command that would run for long, and the folder that all of it works in.
fn with_a_long_command(bench: &Bench) -> (Plugin, String) {
    let mut plugin = Plugin::initialized(bench, &FILES);
    let command = "touch begun; sleep 600";
    plugin.send(
        &json!({"id": 1, "method": "tool/call", "params": {"name": "bash", "input": {"command": command}}}),
    );
    until("the command runs", || bench.path().join("begun").exists());
    let folder = bench.path().to_str().unwrap().to_owned();
    (plugin, folder)
}

/// The processes that work in that folder.
fn at_work_in(folder: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let places = processes.filter_map(|entry| std::fs::read_link(entry.path().join("cwd")).ok());
    places.filter(|place| place.starts_with(folder)).count()
}

#[test]
fn the_end_of_the_input_ends_everything_within_seconds() {
    let bench = Bench::new(&[]);
    let (plugin, folder) = with_a_long_command(&bench);
    let (rest, code) = plugin.end();
    assert_eq!(code, 0);
    let lines: Vec<Value> = rest.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().all(|line| line["jsonrpc"] == "2.0"), "{rest}");
    until("nothing is left", || at_work_in(&folder) == 0);
}

#[test]
fn a_polite_signal_ends_everything() {
    let bench = Bench::new(&[]);
    let (mut plugin, folder) = with_a_long_command(&bench);
    kill_process(Pid::from_child(&plugin.child), Signal::TERM).unwrap();
    let mut rest = String::new();
    plugin.stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(plugin.child.wait().unwrap().code(), Some(130));
    until("nothing is left", || at_work_in(&folder) == 0);
}

#[test]
fn a_kill_leaves_nothing_behind() {
    let bench = Bench::new(&[]);
    let (mut plugin, folder) = with_a_long_command(&bench);
    plugin.child.kill().unwrap();
    plugin.child.wait().unwrap();
    until("nothing is left", || at_work_in(&folder) == 0);
}

#[test]
fn stdout_has_nothing_but_messages_whatever_is_logged() {
    let bench = Bench::new(&[("a.txt", "x\n")]);
    let arguments = [
        "plugin",
        "--verbose",
        "--provider",
        "filesystem",
        "--env",
        "RUST_LOG=trace",
        "--env",
        "RUST_BACKTRACE=1",
    ];
    let input = [
        json!({"id": 1, "method": "initialize"}),
        json!({"id": 2, "method": "tool/call", "params": {"name": "read_file", "input": {"path": "a.txt"}}}),
    ];
    let input: String = input.iter().map(|message| format!("{message}\n")).collect();
    let ran = bench.run_with_input(&arguments, &input);
    let lines = ran.json_lines();
    assert_eq!((ran.code, lines.len()), (0, 2), "{} {}", ran.stdout, ran.stderr);
    assert_eq!(lines[1]["result"]["structuredContent"]["content"], "x\n");
}

#[test]
fn by_default_everything_but_programs_and_questions_is_served() {
    let bench = Bench::new(&[]);
    let mut plugin = Plugin::initialized(&bench, &[]);
    plugin.send(&json!({"id": "l", "method": "tools/list"}));
    let answer = plugin.answer("l");
    let names: Vec<&str> = answer["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    for there in ["read_file", "grep", "bash", "web_fetch", "task_create", "spawn_subagent"] {
        assert!(names.contains(&there), "{names:?}");
    }
    for absent in ["execute", "ask_user"] {
        assert!(!names.contains(&absent), "{names:?}");
    }
    assert_eq!(plugin.end().1, 0);
}

#[test]
fn programs_can_be_served_in_place_of_the_tools() {
    let bench = Bench::new(&[("a.txt", "x\n")]);
    let mut plugin = Plugin::initialized(&bench, &["--tools", "code"]);
    plugin.send(&json!({"id": "l", "method": "tools/list"}));
    let tools = plugin.answer("l")["result"]["tools"].clone();
    assert_eq!((tools.as_array().unwrap().len(), &tools[0]["name"]), (1, &json!("execute")));
    let code = "return (await tools.filesystem.read_file({path: \"a.txt\"})).content";
    let answer = plugin.call("execute", json!({"code": code}), json!({"workspace": bench.path()}));
    assert_eq!(structured(&answer)["text"], "x\n", "{answer}");
    assert_eq!(plugin.end().1, 0);
}

#[test]
fn a_change_of_the_settings_is_told_once() {
    let bench = Bench::new(&[]);
    let mut plugin = Plugin::initialized(&bench, &[]);
    let ran = bench.run(&["settings", "plugins.web=off"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(plugin.next(), json!({"jsonrpc": "2.0", "method": "host/tools.changed"}));
    plugin.send(&json!({"id": "l", "method": "tools/list"}));
    let list = plugin.next();
    assert_eq!(list["id"], "l", "only once");
    assert!(!list.to_string().contains("web_fetch"), "{list}");
    let gone = plugin.call("web_fetch", json!({"url": "https://example.org"}), json!({}));
    assert_eq!(gone["error"]["code"], -32602);
    bench.run(&["settings", "plugins.web=on"]);
    assert_eq!(plugin.next()["method"], "host/tools.changed");
    // What changes no tool is no change.
    bench.run(&["settings", "rules.web=off"]);
    plugin.send(&json!({"id": "l", "method": "tools/list"}));
    assert!(plugin.next().to_string().contains("web_fetch"));
    assert_eq!(plugin.end().0, "");
}

#[test]
fn a_policy_denies_and_wrong_flags_are_usage() {
    let policy = r#"[{"name": "no shell", "match": {"tool_name": "bash"}, "action": "deny"}]"#;
    let bench = Bench::new(&[("policy.json", policy)]);
    let mut plugin = Plugin::initialized(&bench, &[FILES.as_slice(), &["--policy", "policy.json"]].concat());
    let denied = plugin.call("bash", json!({"command": "touch x"}), json!({}));
    assert!(text(&denied).starts_with("permission_denied: exec.bash is denied by the policy"), "{denied}");
    assert!(!Path::new(&bench.path().join("x")).exists());
    assert_eq!(bench.run(&["plugin", "--provider", "nothing"]).code, 2);
    assert_eq!(bench.run(&["plugin", "--config", "no_such=1"]).code, 2);
}
