//! `mcp`: an agent starts the program and speaks the Model Context Protocol with it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Bench, until};

/// An agent with the program as its server.
struct Agent {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    next_id: u64,
}

impl Agent {
    fn start(bench: &Bench, arguments: &[&str]) -> Self {
        let mut all = vec!["mcp"];
        all.extend(arguments);
        Self::of(bench.command(&all))
    }

    fn of(mut command: Command) -> Self {
        // Nobody reads what it says beside the protocol.
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdin, stdout, next_id: 0 }
    }

    fn initialized(bench: &Bench, arguments: &[&str]) -> (Self, Value) {
        let mut agent = Self::start(bench, arguments);
        let answer = agent.initialize("2025-11-25");
        (agent, answer)
    }

    fn initialize(&mut self, version: &str) -> Value {
        let own = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": own});
        let answer = self.request("initialize", params);
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        answer["result"].clone()
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// The answer; every line that stands before it is of the protocol, too.
    fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        loop {
            let message = self.next().expect("the program has ended");
            if message["id"] == id {
                return message;
            }
        }
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({"name": tool, "arguments": arguments}))["result"].clone()
    }

    fn tools(&mut self) -> Vec<Value> {
        self.request("tools/list", json!({}))["result"]["tools"].as_array().unwrap().clone()
    }

    fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        let count = self.stdout.read_line(&mut line).unwrap();
        (count > 0).then(|| {
            let message: Value =
                serde_json::from_str(&line).unwrap_or_else(|_| panic!("no protocol: {line}"));
            assert_eq!(message["jsonrpc"], "2.0", "no protocol: {line}");
            message
        })
    }

    /// Ends the input; what still came, and the exit code.
    fn end(mut self) -> (Vec<Value>, Option<i32>) {
        self.stdin = None;
        let rest = std::iter::from_fn(|| self.next()).collect();
        (rest, self.child.wait().unwrap().code())
    }
}

fn text(result: &Value) -> String {
    let items = result["content"].as_array().unwrap_or_else(|| panic!("no content: {result}"));
    items.iter().filter_map(|item| item["text"].as_str()).collect::<Vec<_>>().join("\n")
}

#[test]
fn code_mode_is_what_an_agent_gets() {
    let bench = Bench::new(&[("a.txt", "one\ntwo\n")]);
    let (mut agent, initialized) = Agent::initialized(&bench, &[]);
    assert_eq!(initialized["serverInfo"]["name"], "toolctl");
    let tools = agent.tools();
    assert_eq!(tools.len(), 1);
    assert_eq!(tools[0]["name"], "execute");
    let description = tools[0]["description"].as_str().unwrap();
    assert!(
        description.contains("filesystem: read_file") && description.contains("task_list"),
        "{description}"
    );
    let program =
        "const {content} = await tools.filesystem.read_file({path: 'a.txt'}); return content.split('\\n')[1]";
    assert_eq!(text(&agent.call("execute", json!({"code": program}))), "two");
    let (rest, code) = agent.end();
    assert_eq!((rest, code), (Vec::new(), Some(0)));
}

#[test]
fn separate_tools_read_like_text() {
    let bench = Bench::new(&[("a.txt", "one\ntwo\nthree\n")]);
    let (mut agent, _) = Agent::initialized(&bench, &["--tools", "separate", "--provider", "filesystem"]);
    let read = agent.call("read_file", json!({"path": "a.txt", "limit": 1}));
    assert!(read.get("structuredContent").is_none(), "{read}");
    let shown = text(&read);
    assert!(shown.starts_with("one\n\n"), "{shown}");
    assert!(shown.contains("\"next_offset\":2") && shown.contains("\"truncated\":true"), "{shown}");
    let edit = json!({"path": "a.txt", "old_str": "two", "new_str": "2"});
    let edited = text(&agent.call("edit_file", edit));
    assert!(edited.contains("-two\n+2") && edited.contains("change_id"), "{edited}");
    assert_eq!(edited.matches("-two").count(), 1, "the diff stands twice: {edited}");
    assert_eq!(bench.read("a.txt"), "one\n2\nthree\n");
    let missing = agent.call("read_file", json!({"path": "none.txt"}));
    assert_eq!(missing["isError"], true);
    assert!(text(&missing).starts_with("not_found: "), "{missing}");
    agent.end();
}

#[test]
fn structured_tools_answer_with_what_they_promise() {
    let bench = Bench::new(&[("a.txt", "one\n")]);
    let arguments = ["--tools", "separate", "--structured", "--provider", "filesystem"];
    let (mut agent, _) = Agent::initialized(&bench, &arguments);
    let tools = agent.tools();
    assert!(tools.iter().all(|tool| tool["outputSchema"]["type"] == "object"), "{tools:?}");
    let read = agent.call("read_file", json!({"path": "a.txt"}));
    assert_eq!(read["structuredContent"]["content"], "one\n");
    let told: Value = serde_json::from_str(&text(&read)).unwrap();
    assert_eq!(told, read["structuredContent"]);
    agent.end();
}

#[test]
fn an_image_is_an_image() {
    // One red pixel.
    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\x90wS\xde\0\0\0\x0cIDATx\x9cc\xf8\xcf\xc0\0\0\x03\x01\x01\0\xc9\xfe\x92\xef\0\0\0\0IEND\xaeB`\x82";
    let bench = Bench::new(&[]);
    std::fs::write(bench.path().join("a.png"), PNG).unwrap();
    let arguments = ["--tools", "separate", "--provider", "filesystem", "--config", "media=inline"];
    let (mut agent, _) = Agent::initialized(&bench, &arguments);
    let read = agent.call("read_file", json!({"path": "a.png"}));
    let image = &read["content"].as_array().unwrap().iter().find(|item| item["type"] == "image").unwrap();
    assert_eq!(image["mimeType"], "image/png");
    assert!(!text(&read).contains(image["data"].as_str().unwrap()), "the image stands in the text, too");
    agent.end();
}

#[test]
fn every_revision_is_spoken() {
    let bench = Bench::new(&[]);
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut agent = Agent::start(&bench, &["--provider", "task"]);
        assert_eq!(agent.initialize(version)["protocolVersion"], version);
        assert_eq!(agent.end().1, Some(0));
    }
    let mut agent = Agent::start(&bench, &["--provider", "task"]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let answer = agent.request("server/discover", json!({ "_meta": meta }));
    assert!(answer["result"]["supportedVersions"].to_string().contains("2026-07-28"), "{answer}");
    let answer =
        agent.request("tools/call", json!({"name": "execute", "arguments": {"code": "1+1"}, "_meta": meta}));
    assert_eq!(text(&answer["result"]), "2");
    assert_eq!(agent.end().1, Some(0));
}

/// What the hints of a tool have to be, by what it declares.
fn expected_hints(tool: &Value, provider: &str) -> Value {
    let resource = tool["kind"] == "resource";
    let closed = ["filesystem", "search", "task", "user"].contains(&provider)
        || ["shell_read", "job_output", "job_list", "job_kill", "subagent_list"]
            .contains(&tool["name"].as_str().unwrap());
    json!({
        "readOnlyHint": !resource,
        "destructiveHint": resource && tool["risk"] != "low",
        "idempotentHint": tool["idempotent"],
        "openWorldHint": !closed,
    })
}

#[test]
fn every_tool_of_the_catalog_is_declared_right() {
    let bench = Bench::new(&[]);
    let providers = ["filesystem", "search", "exec", "web", "user", "task", "agent"];
    let (mut agent, initialized) = Agent::initialized(&bench, &["--tools", "separate"]);
    let declared = agent.tools();
    let mut count = 0;
    for provider in providers {
        let schema = bench.run(&["schema", provider]).json();
        for tool in schema["tools"].as_array().unwrap() {
            let name = tool["name"].as_str().unwrap();
            let shown = declared
                .iter()
                .find(|shown| shown["name"] == name)
                .unwrap_or_else(|| panic!("{name} is missing"));
            assert_eq!(shown["annotations"], expected_hints(tool, provider), "{provider}.{name}");
            assert!(shown["inputSchema"]["properties"].is_object(), "{name}");
            assert_eq!(shown["inputSchema"]["type"], "object", "{name}");
            assert!(shown["description"].as_str().unwrap().chars().count() <= 2_048, "{name}");
            assert!(shown.get("outputSchema").is_none(), "{name}");
            count += 1;
        }
    }
    assert_eq!(declared.len(), count);
    let instructions = initialized["instructions"].as_str().unwrap();
    assert!(instructions.chars().count() <= 2_048);
    assert!(instructions.chars().take(512).collect::<String>().trim_end().ends_with('.'));
    agent.end();
}

#[test]
fn read_only_offers_what_changes_nothing() {
    let bench = Bench::new(&[("a.txt", "one\n")]);
    let arguments = ["--tools", "separate", "--read-only", "--provider", "filesystem", "--provider", "exec"];
    let (mut agent, _) = Agent::initialized(&bench, &arguments);
    let tools = agent.tools();
    assert!(tools.iter().all(|tool| tool["annotations"]["readOnlyHint"] == true), "{tools:?}");
    assert!(tools.iter().any(|tool| tool["name"] == "read_file"));
    let refused = agent.call("delete_path", json!({"path": "a.txt"}));
    assert!(text(&refused).contains("filesystem.delete_path is a resource"), "{refused}");
    assert_eq!(bench.read("a.txt"), "one\n");
    agent.end();
    let (mut agent, _) = Agent::initialized(&bench, &["--read-only"]);
    let refused =
        agent.call("execute", json!({"code": "await tools.filesystem.delete_path({path: 'a.txt'})"}));
    assert_eq!(refused["isError"], true);
    assert_eq!(bench.read("a.txt"), "one\n");
    agent.end();
}

#[test]
fn a_policy_can_only_deny() {
    let rules = r#"[{"name": "no removal", "match": {"tool_name": "delete_path"}, "action": "deny"}]"#;
    let bench = Bench::new(&[("a.txt", "one\n"), ("policy.json", rules)]);
    let arguments = ["--tools", "separate", "--provider", "filesystem", "--policy", "policy.json"];
    let (mut agent, _) = Agent::initialized(&bench, &arguments);
    let refused = agent.call("delete_path", json!({"path": "a.txt"}));
    assert!(text(&refused).contains("no removal"), "{refused}");
    assert_eq!(bench.read("a.txt"), "one\n");
    // The client is the gate: what no rule denies is made.
    let written = agent.call("write_file", json!({"path": "b.txt", "content": "two\n"}));
    assert_ne!(written["isError"], true, "{written}");
    agent.end();
}

#[test]
fn a_client_that_cannot_ask_is_not_waited_for() {
    let bench = Bench::new(&[]);
    let (mut agent, _) = Agent::initialized(&bench, &["--tools", "separate", "--provider", "user"]);
    let asked = agent.call("ask_user", json!({"question": "Sure?"}));
    assert_eq!(asked["isError"], true);
    assert!(text(&asked).contains("no human can be asked in this client"), "{asked}");
    agent.end();
}

#[test]
fn a_cancelled_command_is_ended() {
    let bench = Bench::new(&[]);
    let (mut agent, _) = Agent::initialized(&bench, &["--tools", "separate", "--provider", "exec"]);
    let command = json!({"command": "echo $$ > pid; sleep 600"});
    let id = agent.begin("tools/call", json!({"name": "bash", "arguments": command}));
    let pid = bench.path().join("pid");
    until("the command runs", || std::fs::read_to_string(&pid).is_ok_and(|pid| pid.ends_with('\n')));
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    agent.send(&cancelled);
    let pid = std::fs::read_to_string(pid).unwrap().trim().to_owned();
    until("the command has ended", || !std::path::Path::new(&format!("/proc/{pid}")).exists());
    let answer = agent.call("job_list", json!({}));
    assert_ne!(answer["isError"], true, "{answer}");
    let (rest, _) = agent.end();
    assert!(rest.iter().all(|message| message["id"] != id), "{rest:?}");
}

#[test]
fn the_end_of_the_input_ends_everything() {
    let bench = Bench::new(&[]);
    let (mut agent, _) = Agent::initialized(&bench, &["--tools", "separate", "--verbose"]);
    let command = json!({"command": "echo $$ > pid; exec sleep 600"});
    agent.begin("tools/call", json!({"name": "bash", "arguments": command}));
    let pid = bench.path().join("pid");
    until("the command runs", || std::fs::read_to_string(&pid).is_ok_and(|pid| pid.ends_with('\n')));
    let pid = std::fs::read_to_string(pid).unwrap().trim().to_owned();
    let start = Instant::now();
    let (_, code) = agent.end();
    assert_eq!(code, Some(0));
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    until("the command has ended", || !std::path::Path::new(&format!("/proc/{pid}")).exists());
}

#[test]
fn an_input_that_ends_at_once_is_no_failure() {
    let bench = Bench::new(&[]);
    let ran = bench.run_with_input(&["mcp", "--provider", "task"], "");
    assert_eq!((ran.stdout.as_str(), ran.code), ("", 0), "{ran:?}");
}

#[test]
fn over_http_the_address_and_the_token_are_told() {
    let bench = Bench::new(&[]);
    let mut command = bench.command(&["mcp", "--provider", "task", "--http", "127.0.0.1:0"]);
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ready: Value = serde_json::from_str(&line).unwrap();
    let address =
        ready["url"].as_str().unwrap().trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    assert_eq!(ready["token"].as_str().unwrap().len(), 64);
    let mut stream = std::net::TcpStream::connect(&address).unwrap();
    write!(stream, "POST /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        .unwrap();
    let mut status = String::new();
    BufReader::new(stream).read_line(&mut status).unwrap();
    assert!(status.contains("401"), "{status}");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn what_cannot_be_served_is_said_before_anything_is() {
    let bench = Bench::new(&[]);
    for (arguments, code, expected) in [
        (&["mcp", "--provider", "task", "--http", "0.0.0.0:0"][..], 2, "can be reached from other machines"),
        (&["mcp", "--provider", "fielsystem"], 2, "did you mean filesystem?"),
        (&["mcp", "--provider", "code"], 2, "--tools code"),
        (&["mcp", "--provider", "task", "--server", "x"], 2, "NAME=COMMAND"),
        (&["mcp", "--provider", "task", "--server", "x=/does/not/exist"], 3, "cannot be started"),
        (&["mcp", "--provider", "task", "--server", "other=/bin/true"], 3, "Model Context Protocol"),
        (&["mcp", "--provider", "task", "--answers", "a.json"], 2, "--answers"),
    ] {
        let ran = bench.run(arguments);
        assert_eq!((ran.stdout.as_str(), ran.code), ("", code), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{arguments:?}: {}", ran.stderr);
    }
}

#[test]
fn tools_of_another_server_are_served_with_ours() {
    let bench = Bench::new(&[("a.txt", "one\n")]);
    let own = env!("CARGO_BIN_EXE_toolctl");
    let server = format!("files={}", json!([own, "mcp", "--tools", "separate", "--provider", "filesystem"]));
    let arguments = ["--tools", "separate", "--provider", "filesystem", "--server", &server];
    let (mut agent, _) = Agent::initialized(&bench, &arguments);
    let read = agent.call("files_read_file", json!({"path": "a.txt"}));
    assert!(text(&read).starts_with("one"), "{read}");
    let read = agent.call("filesystem_read_file", json!({"path": "a.txt"}));
    assert!(text(&read).starts_with("one"), "{read}");
    agent.end();
}
