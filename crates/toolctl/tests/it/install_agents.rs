//! `install` for other agents.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use plugins::{Main, Plugin};
use serde_json::{Value, json};

use crate::support::Bench;

fn program() -> &'static str {
    env!("CARGO_BIN_EXE_toolctl")
}

fn install(bench: &Bench, arguments: &[&str]) -> crate::support::Ran {
    bench.run(&[&["install", "--for"], arguments].concat())
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn claude_gets_a_server_and_a_hook_that_prints_the_rules() {
    let bench = Bench::new(&[]);
    let ran = install(&bench, &["claude", "--yes"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stdout.contains("+++ $DIR/.mcp.json") && ran.stdout.contains("+    \"toolctl\": {"),
        "{}",
        ran.stdout
    );
    let server = json_of(&bench.read(".mcp.json"))["mcpServers"]["toolctl"].clone();
    assert_eq!(server, json!({"type": "stdio", "command": program(), "args": ["mcp"]}));
    let hook = json_of(&bench.read(".claude/settings.json"))["hooks"]["SessionStart"][0].clone();
    assert_eq!(hook["matcher"], "startup|resume|clear|compact");
    // The hook is run as the agent runs it, and what it prints is the rules.
    let command = hook["hooks"][0]["command"].as_str().unwrap();
    let output =
        Command::new("/bin/sh").args(["-c", command]).env_clear().env("HOME", bench.path()).output().unwrap();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        bench.run(&["rules", "render", "--for", "claude"]).stdout
    );

    let again = install(&bench, &["claude", "--yes"]);
    assert_eq!(again.stdout, "keep $DIR/.mcp.json\nkeep $DIR/.claude/settings.json\n");
    let other = install(&bench, &["claude", "--yes", "--tools", "separate", "--provider", "filesystem"]);
    assert_eq!(other.code, 0);
    let server = json_of(&bench.read(".mcp.json"))["mcpServers"]["toolctl"].clone();
    assert_eq!(server["args"], json!(["mcp", "--tools", "separate", "--provider", "filesystem"]));
    install(&bench, &["claude", "--yes", "--remove"]);
    assert!(!bench.path().join(".mcp.json").exists() && !bench.path().join(".claude/settings.json").exists());
    assert_eq!(install(&bench, &["claude", "--yes", "--remove"]).code, 0, "there is nothing to take back");
}

#[test]
fn what_others_have_there_stays_byte_for_byte() {
    let mcp = "{\n\t\"mcpServers\": {\n\t\t\"other\": { \"command\": \"x\",\"args\": [] }\n\t}\n}\n";
    let settings = "{\n  \"hooks\": {\n    \"SessionStart\": [\n      {\"hooks\": [{\"type\": \"command\", \"command\": \"./mine.sh\"}]}\n    ]\n  },\n  \"model\":   \"opus\"\n}\n";
    let codex = "# mine\nmodel = \"o3\"  # why\n\n[mcp_servers.other]\ncommand = 'x'\n\n# the end\n";
    let opencode = "{\n  // mine\n  \"$schema\": \"https://opencode.ai/config.json\",\n  \"instructions\": [\"CONTRIBUTING.md\"], /* odd */\n  \"theme\": \"x\",\n}\n";
    let bench = Bench::new(&[(".mcp.json", mcp), ("opencode.jsonc", opencode)]);
    for (folder, name, text) in [(".claude", "settings.json", settings), (".codex", "config.toml", codex)] {
        fs::create_dir(bench.path().join(folder)).unwrap();
        fs::write(bench.path().join(folder).join(name), text).unwrap();
    }
    for agent in ["claude", "codex", "opencode"] {
        assert_eq!(install(&bench, &[agent, "--yes"]).code, 0, "{agent}");
    }
    for (file, piece) in [
        (".mcp.json", "\t\t\"other\": { \"command\": \"x\",\"args\": [] }"),
        (".claude/settings.json", "\"model\":   \"opus\""),
        (".codex/config.toml", "# mine\nmodel = \"o3\"  # why\n"),
        (".codex/config.toml", "[mcp_servers.other]\ncommand = 'x'\n"),
        ("opencode.jsonc", "  // mine\n"),
        ("opencode.jsonc", "/* odd */"),
    ] {
        assert!(bench.read(file).contains(piece), "{piece} in {}", bench.read(file));
    }
    assert!(!bench.path().join("opencode.json").exists(), "the file that is there is used");
    for agent in ["claude", "codex", "opencode"] {
        assert_eq!(install(&bench, &[agent, "--yes", "--remove"]).code, 0, "{agent}");
    }
    assert_eq!(bench.read(".mcp.json"), mcp);
    assert_eq!(bench.read(".claude/settings.json"), settings);
    assert_eq!(bench.read(".codex/config.toml"), codex);
    assert_eq!(bench.read("opencode.jsonc"), opencode);
    assert!(!bench.path().join(".opencode/toolctl-rules.md").exists());
}

#[test]
fn codex_gets_a_server_and_developer_instructions() {
    let bench = Bench::new(&[]);
    let ran = install(&bench, &["codex", "--yes"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let read = || -> toml_edit::DocumentMut { bench.read(".codex/config.toml").parse().unwrap() };
    let config = read();
    let server = &config["mcp_servers"]["toolctl"];
    assert_eq!(server["command"].as_str(), Some(program()));
    assert_eq!(
        server["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap()).collect::<Vec<_>>(),
        ["mcp"]
    );
    assert_eq!(server["tool_timeout_sec"].as_integer(), Some(960));
    let told = config["developer_instructions"].as_str().unwrap();
    assert!(told.contains(&bench.run(&["rules", "render", "--for", "codex"]).stdout), "{told}");

    // What the user has told it stays around the rules.
    let mine = bench
        .read(".codex/config.toml")
        .replace("<!-- toolctl rules: begin", "Be kind.\n\n<!-- toolctl rules: begin");
    fs::write(bench.path().join(".codex/config.toml"), mine).unwrap();
    bench.run(&["settings", "rules.web=off"]);
    install(&bench, &["codex", "--yes"]);
    let told = read()["developer_instructions"].as_str().unwrap().to_owned();
    assert!(told.starts_with("Be kind.\n\n<!-- toolctl") && !told.contains("## web"), "{told}");
    install(&bench, &["codex", "--yes", "--remove"]);
    assert_eq!(read()["developer_instructions"].as_str(), Some("Be kind.\n\n"));

    // Another home is honoured.
    let home = bench.path().join("elsewhere");
    let mut command = bench.command(&["install", "--for", "codex", "--yes"]);
    assert!(command.env("CODEX_HOME", &home).output().unwrap().status.success());
    assert!(home.join("config.toml").exists());
}

#[test]
fn opencode_gets_a_server_and_a_file_of_instructions() {
    let bench = Bench::new(&[]);
    assert_eq!(install(&bench, &["opencode", "--yes"]).code, 0);
    let config = json_of(&bench.read("opencode.json"));
    assert_eq!(
        config["mcp"]["toolctl"],
        json!({"type": "local", "command": [program(), "mcp"], "enabled": true, "timeout": 60000})
    );
    let file = config["instructions"][0].as_str().unwrap();
    assert!(bench.read(file).contains(&bench.run(&["rules", "render", "--for", "opencode"]).stdout));
    install(&bench, &["opencode", "--yes", "--remove"]);
    assert!(!bench.path().join("opencode.json").exists() && !bench.path().join(file).exists());
}

#[test]
fn nothing_is_written_that_nobody_has_agreed_to() {
    let bench = Bench::new(&[]);
    let refused = install(&bench, &["claude"]);
    assert_eq!(refused.code, 4, "{}", refused.stderr);
    assert!(
        refused.stdout.contains("+    \"toolctl\": {") && refused.stderr.contains("--yes"),
        "{}",
        refused.stdout
    );
    let looked = install(&bench, &["claude", "--dry-run", "--json"]);
    let document = looked.json();
    assert_eq!((looked.code, &document["applied"]), (0, &json!(false)));
    assert_eq!(document["changes"][0]["action"], "create");
    assert!(!bench.path().join(".mcp.json").exists());
}

#[test]
fn a_file_that_is_not_understood_is_named_and_left_alone() {
    let bench = Bench::new(&[(".mcp.json", "{ \"mcpServers\": [] }"), ("opencode.json", "{ nonsense")]);
    for (agent, file, why) in
        [("claude", ".mcp.json", "mcpServers is no object"), ("opencode", "opencode.json", "it is not JSON")]
    {
        let before = bench.read(file);
        let ran = install(&bench, &[agent, "--yes"]);
        assert_eq!(ran.code, 1);
        assert!(ran.stderr.contains(file) && ran.stderr.contains(why), "{}", ran.stderr);
        assert_eq!(bench.read(file), before);
    }
    assert!(!bench.path().join(".claude").exists(), "nothing is written by halves");
}

#[test]
fn a_link_to_a_configuration_stays_a_link() {
    let bench = Bench::new(&[("dotfile.toml", "model = \"o3\"\n")]);
    fs::create_dir(bench.path().join(".codex")).unwrap();
    symlink("../dotfile.toml", bench.path().join(".codex/config.toml")).unwrap();
    assert_eq!(install(&bench, &["codex", "--yes"]).code, 0);
    assert_eq!(
        fs::read_link(bench.path().join(".codex/config.toml")).unwrap(),
        PathBuf::from("../dotfile.toml")
    );
    assert!(bench.read("dotfile.toml").contains("[mcp_servers.toolctl]"));
    install(&bench, &["codex", "--yes", "--remove"]);
    assert_eq!(bench.read("dotfile.toml"), "model = \"o3\"\n");
}

#[test]
fn a_plugin_folder_works_when_it_is_launched() {
    let bench = Bench::new(&[]);
    let ran = install(&bench, &["plugin", "made"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let folder = bench.path().join("made");
    let plugin = Plugin::open(&folder).unwrap();
    assert_eq!(plugin.manifest.name.as_str(), "toolctl");
    assert!(plugin.manifest.permissions.tools_provide.is_some());
    let rules = plugins::rules::read(&plugin);
    assert!(rules.warnings.is_empty() && rules.files[0].text.starts_with("### agent\n"), "{rules:?}");
    let Some(Main::Program(main)) = &plugin.manifest.main else { panic!("{:?}", plugin.manifest.main) };

    let work = bench.path().join("work");
    fs::create_dir(&work).unwrap();
    fs::write(work.join("a.txt"), "there\n").unwrap();
    let mut child = Command::new(plugin.locate(main).unwrap())
        .current_dir(&folder)
        .env_clear()
        .env("HOME", bench.path())
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let requests = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tool/call",
            "params": {"name": "read_file", "input": {"path": "a.txt"}, "context": {"workspace": work}}}),
        json!({"jsonrpc": "2.0", "id": 3, "method": "tool/call", "params": {"name": "read_file", "input": {"path": "a.txt"}}}),
    ];
    let mut stdin = child.stdin.take().unwrap();
    let mut answers = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    let mut next = |request: &Value| -> Value {
        std::io::Write::write_all(&mut stdin, format!("{request}\n").as_bytes()).unwrap();
        json_of(&answers.next().unwrap().unwrap())
    };
    assert_eq!(next(&requests[0])["result"]["name"], "toolctl");
    assert_eq!(next(&requests[1])["result"]["structuredContent"]["content"], "there\n");
    assert_eq!(next(&requests[2])["result"]["isError"], true, "it does not work in its own folder");
    drop(stdin);
    assert!(child.wait().unwrap().success());

    // It is made again, and not over somebody else's plugin.
    assert!(install(&bench, &["plugin", "made"]).stdout.lines().all(|line| line.starts_with("keep ")));
    fs::create_dir(bench.path().join("theirs")).unwrap();
    fs::write(bench.path().join("theirs/plugin.json"), r#"{"name": "x", "version": "1.0.0"}"#).unwrap();
    assert_eq!(install(&bench, &["plugin", "theirs"]).code, 2);
    assert_eq!(install(&bench, &["plugin", "theirs", "--remove"]).code, 2);
    assert_eq!(install(&bench, &["plugin"]).code, 2);
    assert_eq!(install(&bench, &["plugin", "made", "--remove"]).code, 0);
    assert!(!folder.exists());
}

#[test]
fn an_enabled_program_serves_its_tools_beside_the_catalogs() {
    let bench = Bench::new(&[]);
    install(&bench, &["plugin", "made"]);
    // Under another name, it is a plugin like any other.
    let file = bench.path().join("made/plugin.json");
    let manifest = fs::read_to_string(&file).unwrap().replace("\"name\": \"toolctl\"", "\"name\": \"inner\"");
    fs::write(&file, manifest).unwrap();
    let main = bench.path().join("made/main");
    let script = fs::read_to_string(&main).unwrap().replace("--require-workspace", "--provider filesystem");
    fs::write(&main, script).unwrap();
    assert_eq!(bench.run(&["plugins", "enable", "made"]).code, 0);
    let list = json!({"id": 1, "method": "initialize"}).to_string()
        + "\n"
        + &json!({"id": 2, "method": "tools/list"}).to_string()
        + "\n";
    let ran = bench.run_with_input(&["plugin"], &list);
    let lines = ran.json_lines();
    let names: Vec<&str> = lines[1]["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert!(
        names.contains(&"filesystem_read_file") && names.contains(&"inner_read_file"),
        "{names:?} {}",
        ran.stderr
    );
    let text = bench.run(&["instructions", "--for", "codex"]).stdout;
    assert!(text.contains("tools.inner.read_file("), "{text}");
}
