//! `rules`, `instructions`, `plugins` and `settings`.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::Bench;

/// Makes a plugin's folder in the bench.
fn plugin(bench: &Bench, name: &str, rules: &[(&str, &str)]) -> PathBuf {
    let folder = bench.path().join(name);
    fs::create_dir_all(&folder).unwrap();
    let listed: Vec<&str> = rules.iter().map(|(path, _)| *path).collect();
    let manifest = json!({"name": name, "version": "0.1.0", "contributes": {"rules": listed}});
    fs::write(folder.join("plugin.json"), manifest.to_string()).unwrap();
    for (path, text) in rules {
        fs::write(folder.join(path), text).unwrap();
    }
    folder
}

/// Two plugins with rules, enabled, and nothing of the catalog.
fn two_plugins() -> Bench {
    let bench = Bench::new(&[]);
    plugin(&bench, "b-style", &[("z.md", "Z\r\n"), ("a.md", "A\n\n")]);
    plugin(&bench, "a-style", &[("rules.md", "First.\n")]);
    for name in ["./b-style", "./a-style"] {
        let ran = bench.run(&["plugins", "enable", name]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    let off: Vec<String> = ["filesystem", "search", "exec", "web", "user", "task", "agent", "code"]
        .map(|name| format!("plugins.{name}=off"))
        .to_vec();
    let arguments: Vec<&str> = std::iter::once("settings").chain(off.iter().map(String::as_str)).collect();
    assert_eq!(bench.run(&arguments).code, 0);
    bench
}

const TWO: &str = "## a-style\n\nFirst.\n\n## b-style\n\nZ\n\nA\n";

fn rendered(bench: &Bench, arguments: &[&str]) -> String {
    let ran = bench.run(&[&["rules", "render", "--for"], arguments].concat());
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    ran.stdout
}

#[test]
fn the_text_is_ordered_and_the_same_every_time() {
    let bench = two_plugins();
    for agent in ["codex", "claude", "opencode"] {
        assert_eq!(rendered(&bench, &[agent]), TWO);
        assert_eq!(rendered(&bench, &[agent]), TWO);
    }
}

#[test]
fn what_is_switched_off_is_absent_and_without_rules_there_is_nothing() {
    let bench = two_plugins();
    bench.run(&["settings", "rules.a-style=off"]);
    assert_eq!(rendered(&bench, &["codex"]), "## b-style\n\nZ\n\nA\n");
    bench.run(&["plugins", "disable", "b-style"]);
    for agent in ["codex", "claude", "opencode", "acp", "agents-md"] {
        assert_eq!(rendered(&bench, &[agent]), "", "{agent}");
    }
    bench.run(&["settings", "rules.a-style=on"]);
    assert_eq!(rendered(&bench, &["codex"]), "## a-style\n\nFirst.\n");
}

#[test]
fn an_edit_is_in_the_next_text() {
    let bench = two_plugins();
    fs::write(bench.path().join("a-style/rules.md"), "Second.").unwrap();
    assert!(rendered(&bench, &["codex"]).starts_with("## a-style\n\nSecond.\n"));
}

#[test]
fn acp_gets_one_block_in_a_new_session_and_opencode_the_text_with_each_prompt() {
    let bench = two_plugins();
    let block: Value = serde_json::from_str(&rendered(&bench, &["acp"])).unwrap();
    assert_eq!(block, json!({"type": "text", "text": TWO}));
    assert_eq!(rendered(&bench, &["acp", "--session", "loaded"]), "");
    assert_eq!(rendered(&bench, &["opencode", "--session", "loaded"]), TWO);
}

#[test]
fn agents_md_is_rewritten_between_its_marks_only() {
    let bench = two_plugins();
    let file = bench.path().join("AGENTS.md");
    fs::write(&file, "# Mine\r\n\r\nKeep this.\r\n").unwrap();
    let into = ["agents-md", "--into", "AGENTS.md"];
    let write = || bench.run(&[&["rules", "render", "--for"], into.as_slice()].concat());
    assert_eq!(write().stderr, "wrote AGENTS.md\n");
    let first = bench.read("AGENTS.md");
    assert!(first.starts_with("# Mine\r\n\r\nKeep this.\r\n") && first.contains(TWO), "{first}");
    assert_eq!(write().stderr, "kept AGENTS.md\n");
    assert_eq!(bench.read("AGENTS.md"), first);
    fs::write(&file, format!("{first}\r\nAfter\t")).unwrap();
    fs::write(bench.path().join("a-style/rules.md"), "Other.").unwrap();
    write();
    assert_eq!(bench.read("AGENTS.md"), format!("{}\r\nAfter\t", first.replace("First.", "Other.")));
    let block = rendered(&bench, &["agents-md"]);
    assert!(
        block.starts_with("<!-- toolctl rules: begin") && block.ends_with("<!-- toolctl rules: end -->\n")
    );
}

#[test]
fn json_has_every_file() {
    let bench = two_plugins();
    let document: Value = serde_json::from_str(&rendered(&bench, &["json"])).unwrap();
    assert_eq!(document["text"], TWO);
    assert_eq!(document["plugins"][1]["name"], "b-style");
    assert_eq!(
        document["plugins"][1]["rules"],
        json!([{"path": "z.md", "text": "Z"}, {"path": "a.md", "text": "A"}])
    );
}

#[test]
fn bad_files_are_warned_of_and_the_rest_stays() {
    let bench = Bench::new(&[("secret.md", "Secret")]);
    plugin(&bench, "mixed", &[("good.md", "Good.")]);
    let manifest = json!({
        "name": "mixed", "version": "0.1.0",
        "contributes": {"rules": ["../secret.md", "link.md", "gone.md", "good.md"]},
    });
    fs::write(bench.path().join("mixed/plugin.json"), manifest.to_string()).unwrap();
    std::os::unix::fs::symlink("../secret.md", bench.path().join("mixed/link.md")).unwrap();
    let ran = bench.run(&["rules", "render", "--for", "codex", "--plugin", "mixed"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "## mixed\n\nGood.\n"));
    assert_eq!(ran.stderr.lines().count(), 3, "{}", ran.stderr);
    assert!(ran.stderr.lines().all(|line| line.starts_with("warning: the rules ")), "{}", ran.stderr);
}

#[test]
fn the_catalog_has_rules_of_its_own() {
    let bench = Bench::new(&[]);
    let text = rendered(&bench, &["codex"]);
    let headings: Vec<&str> = text.lines().filter(|line| line.starts_with("## ")).collect();
    assert_eq!(
        headings,
        ["## agent", "## exec", "## filesystem", "## search", "## task", "## user", "## web"]
    );
    assert!(text.len() < 8_000, "short enough to be read every time: {}", text.len());
}

#[test]
fn enabling_shows_every_permission_with_its_reason_and_the_rules() {
    let bench = Bench::new(&[]);
    let folder = plugin(&bench, "weather", &[("rules.md", "Say the unit.")]);
    let manifest = |hosts: Value| {
        json!({
            "name": "weather", "version": "0.2.0", "main": "main.js", "contributes": {"rules": ["rules.md"]},
            "permissions": {
                "tools.provide": {"reason": "Give agents the weather tool"},
                "net": {"hosts": hosts, "reason": "Ask for the weather"},
                "commands.run": {"reason": "Open the map"},
                "ui.window": {},
            },
        })
    };
    fs::write(folder.join("plugin.json"), manifest(json!(["wttr.in", "*.example.com"])).to_string()).unwrap();
    let looked = bench.run(&["plugins", "enable", "weather", "--dry-run"]);
    for shown in [
        "  tools.provide: Give agents the weather tool\n",
        "  net (wttr.in, *.example.com): Ask for the weather\n",
        "  commands.run: Open the map\n",
        "  ui.window: no reason given [not known here, and never granted]\n",
        "  | Say the unit.\n",
    ] {
        assert!(looked.stdout.contains(shown), "{shown:?} in {}", looked.stdout);
    }
    assert!(!bench.path().join(".config").exists());
    let enabled = bench.run(&["plugins", "enable", "weather"]);
    assert!(enabled.code == 0 && enabled.stdout.ends_with("enabled weather\n"), "{}", enabled.stdout);

    // A later version that wants more is not given it.
    let state = || {
        let list = bench.run(&["plugins", "list", "--json"]);
        let list = list.json();
        let found = list["plugins"]
            .as_array()
            .unwrap()
            .iter()
            .find(|known| known["name"] == "weather")
            .unwrap()
            .clone();
        (found["state"].as_str().unwrap().to_owned(), found["not_granted"].clone())
    };
    assert_eq!(state(), ("enabled".to_owned(), json!([])));
    fs::write(folder.join("plugin.json"), manifest(json!(["wttr.in", "evil.example"])).to_string()).unwrap();
    assert_eq!(state(), ("asks_for_more".to_owned(), json!(["net:evil.example"])));
    assert_eq!(bench.run(&["settings", "plugins.weather=on"]).code, 2);
    bench.run(&["plugins", "enable", "weather"]);
    assert_eq!(state().0, "enabled");
    bench.run(&["plugins", "disable", "weather"]);
    assert_eq!(state().0, "disabled");
    let forgot = bench.run(&["plugins", "disable", "weather", "--forget"]);
    assert_eq!(forgot.stdout, "disabled and forgot weather\n");
    assert_eq!(bench.run(&["plugins", "disable", "weather"]).code, 2);
}

#[test]
fn a_wrong_manifest_is_refused_with_everything_that_is_wrong() {
    let bench = Bench::new(&[]);
    fs::create_dir(bench.path().join("bad")).unwrap();
    fs::write(
        bench.path().join("bad/manifest.json"),
        r#"{"name": "x y", "permissions": {"net": {"hosts": []}}}"#,
    )
    .unwrap();
    let ran = bench.run(&["plugins", "enable", "./bad"]);
    assert_eq!(ran.code, 2);
    for wrong in [
        "name: ",
        "version: is missing",
        "permissions.net.reason: is missing",
        "permissions.net.hosts: is empty",
    ] {
        assert!(ran.stderr.contains(wrong), "{wrong} in {}", ran.stderr);
    }
    assert_eq!(bench.run(&["plugins", "enable", "nothing"]).code, 2);
}

#[test]
fn a_plugin_that_is_gone_or_renamed_is_told_and_does_no_harm() {
    let bench = two_plugins();
    fs::rename(bench.path().join("a-style"), bench.path().join("elsewhere")).unwrap();
    let ran = bench.run(&["rules", "render", "--for", "codex"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "## b-style\n\nZ\n\nA\n"));
    assert!(ran.stderr.starts_with("warning: the plugin a-style cannot be used: "), "{}", ran.stderr);
    let list = bench.run(&["plugins", "list"]).stdout;
    assert!(list.lines().any(|line| line.contains("a-style") && line.contains("broken")), "{list}");
}

#[test]
fn settings_are_one_file_and_wrong_ones_are_refused() {
    let bench = Bench::new(&[]);
    let shown = bench.run(&["settings"]);
    assert!(shown.stdout.starts_with("mode=code\nplugins.agent=on\nrules.agent=on\n"), "{}", shown.stdout);
    assert_eq!(bench.run(&["settings", "mode=separate", "rules.exec=off"]).code, 0);
    assert_eq!(
        serde_json::from_str::<Value>(&bench.read(".config/pluggable-harness/settings.json")).unwrap(),
        json!({"mode": "separate", "plugins": {"exec": {"enabled": true, "rules": false}}})
    );
    let json = bench.run(&["settings", "--json"]).json();
    assert_eq!(
        (&json["mode"], &json["plugins"]["exec"]),
        (&json!("separate"), &json!({"enabled": true, "rules": false}))
    );
    for wrong in ["mode=loud", "colour=red", "plugins.nothing=off", "rules.exec=perhaps", "mode"] {
        let ran = bench.run(&["settings", "mode=code", wrong]);
        assert_eq!(ran.code, 2, "{wrong}");
    }
    assert_eq!(bench.run(&["settings", "--json"]).json()["mode"], "separate", "all or nothing");
}

#[test]
fn instructions_have_the_rules_and_every_tool() {
    let bench = Bench::new(&[]);
    for agent in ["codex", "claude", "opencode"] {
        let ran = bench.run(&["instructions", "--for", agent]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let text = ran.stdout;
        assert!(
            text.starts_with("# Rules\n\n## agent\n") && text.contains("\n# Tools\n\nYou call the tools"),
            "{text}"
        );
        assert!(text.contains("COMPLETE: all"), "no carrier of these has a cap");
        for tool in [
            "tools.filesystem.read_file(",
            "tools.exec.bash(",
            "tools.web.web_fetch(",
            "tools.user.ask_user(",
        ] {
            assert!(text.contains(tool), "{tool}");
        }
        assert!(!text.contains("tools.code."));
    }
    let separate = bench.run(&["instructions", "--for", "codex", "--tools", "separate"]).stdout;
    assert!(separate.contains("\nfilesystem:\n- read_file: "), "{separate}");
}

#[test]
fn a_cap_leaves_names_and_says_so() {
    let bench = Bench::new(&[]);
    let all = bench.run(&["list", "--json"]).json();
    for arguments in [["--limit", "14000"].as_slice(), &["--limit", "6000", "--tools", "separate"]] {
        let ran = bench.run(&[&["instructions", "--for", "codex"], arguments].concat());
        assert!(ran.stdout.len() <= 14_000, "{}", ran.stdout.len());
        assert!(ran.stderr.contains("named only"), "{}", ran.stderr);
        let tools = all["providers"].as_array().unwrap().iter().filter(|provider| provider["name"] != "code");
        for tool in tools.flat_map(|provider| provider["tools"].as_array().unwrap()) {
            assert!(ran.stdout.contains(tool["name"].as_str().unwrap()), "{tool} is named");
        }
    }
    let block = bench.run(&["instructions", "--for", "agents-md"]);
    assert!(block.stdout.len() <= 32 * 1024 + 200, "{}", block.stdout.len());
}
