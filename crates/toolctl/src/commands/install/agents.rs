//! Claude Code, Codex and OpenCode: their own configuration files, and what each is to say.
//!
//! Each agent gets two things: the tools, as an MCP server, and a carrier of the rules. Claude Code runs a command when a
//! session starts and reads what it prints; Codex and OpenCode read texts, which are written here and say what the rules
//! were when they were written.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::json_file::JsonFile;
use super::toml_file::TomlFile;
use crate::carrier::into_markdown;
use crate::cli::Agent;

/// What the server is called in every agent.
const NAME: &str = "toolctl";
/// How long Codex waits for the server to start, and for a call, in seconds: a program may take 15 minutes.
const CODEX_STARTUP: i64 = 30;
const CODEX_CALL: i64 = 960;
/// How long OpenCode waits, in milliseconds; every sign of life begins it anew.
const OPENCODE_TIMEOUT: u64 = 60_000;
/// The sessions of Claude Code that begin with the rules.
const CLAUDE_SESSIONS: &str = "startup|resume|clear|compact";
/// What the command ends with that prints the rules for Claude Code.
const CLAUDE_RULES: &str = " rules render --for claude";
/// Where OpenCode reads the rules, from the folder of its configuration.
const OPENCODE_RULES: &str = ".opencode/toolctl-rules.md";

/// What an agent starts.
#[derive(Clone, Debug)]
pub(super) struct Server {
    /// The program.
    pub(super) command: String,
    /// Its arguments.
    pub(super) arguments: Vec<String>,
}

/// What is written where.
pub(super) struct Edit {
    pub(super) path: PathBuf,
    what: What,
}

enum What {
    ClaudeServer(Server),
    ClaudeRules(Server),
    Codex(Server, String),
    OpenCode(Server),
    Rules(String),
}

/// Where agents have their files.
pub(super) struct Places {
    pub(super) project: PathBuf,
    pub(super) codex_home: PathBuf,
}

/// Everything that an agent needs; `rules` is the text of the rules as they are now.
pub(super) fn edits(agent: Agent, server: &Server, rules: &str, places: &Places) -> Vec<Edit> {
    let project = &places.project;
    let edit = |path: PathBuf, what| Edit { path, what };
    match agent {
        Agent::Claude => vec![
            edit(project.join(".mcp.json"), What::ClaudeServer(server.clone())),
            edit(project.join(".claude/settings.json"), What::ClaudeRules(server.clone())),
        ],
        Agent::Codex => {
            vec![edit(places.codex_home.join("config.toml"), What::Codex(server.clone(), rules.to_owned()))]
        }
        Agent::Opencode => vec![
            edit(opencode_file(project), What::OpenCode(server.clone())),
            edit(project.join(OPENCODE_RULES), What::Rules(rules.to_owned())),
        ],
        Agent::Harness | Agent::Plugin => Vec::new(),
    }
}

/// The file that is there, else the one that is usual.
fn opencode_file(project: &Path) -> PathBuf {
    let with_comments = project.join("opencode.jsonc");
    if with_comments.exists() { with_comments } else { project.join("opencode.json") }
}

impl Edit {
    /// What the file says afterwards; `None` where it is not needed any more. `remove` takes back what was written.
    ///
    /// # Errors
    /// The file is not what it should be.
    pub(super) fn apply(&self, before: Option<&str>, remove: bool) -> Result<Option<String>, String> {
        let text = before.unwrap_or_default();
        if remove && before.is_none() {
            return Ok(None);
        }
        match &self.what {
            What::ClaudeServer(server) => json(text, |file| {
                let path = ["mcpServers", NAME];
                if remove {
                    file.remove(&path);
                    return Ok(());
                }
                file.set(
                    &path,
                    &json!({"type": "stdio", "command": server.command, "args": server.arguments}),
                )
            }),
            What::ClaudeRules(server) => json(text, |file| claude_rules(file, server, remove)),
            What::Codex(server, rules) => codex(text, server, if remove { "" } else { rules }, remove),
            What::OpenCode(server) => json(text, |file| opencode(file, server, remove)),
            What::Rules(rules) => {
                let rules = if remove { "" } else { rules };
                let text = into_markdown(text, rules).map_err(str::to_owned)?;
                Ok((!text.is_empty()).then_some(text))
            }
        }
    }
}

fn json(text: &str, change: impl FnOnce(&JsonFile) -> Result<(), String>) -> Result<Option<String>, String> {
    let file = JsonFile::parse(text)?;
    change(&file)?;
    Ok(file.finish())
}

fn claude_rules(file: &JsonFile, server: &Server, remove: bool) -> Result<(), String> {
    let path = ["hooks", "SessionStart"];
    let is_ours = |entry: &Value| {
        let hooks = entry.get("hooks").and_then(Value::as_array);
        let command = |hook: &Value| hook.get("command").and_then(Value::as_str).map(str::to_owned);
        // One that somebody has put other commands into is theirs.
        matches!(hooks.map(Vec::as_slice), Some([hook]) if command(hook).is_some_and(|text| text.ends_with(CLAUDE_RULES)))
    };
    if remove {
        file.take_from_list(&path, is_ours);
        return Ok(());
    }
    let command = format!("{}{CLAUDE_RULES}", quoted(&server.command));
    let entry = json!({"matcher": CLAUDE_SESSIONS, "hooks": [{"type": "command", "command": command}]});
    file.put_in_list(&path, &entry, is_ours)
}

fn opencode(file: &JsonFile, server: &Server, remove: bool) -> Result<(), String> {
    let path = ["mcp", NAME];
    let is_ours = |entry: &Value| entry.as_str() == Some(OPENCODE_RULES);
    if remove {
        file.remove(&path);
        file.take_from_list(&["instructions"], is_ours);
        return Ok(());
    }
    let command: Vec<&str> =
        std::iter::once(&server.command).chain(&server.arguments).map(String::as_str).collect();
    let entry = json!({"type": "local", "command": command, "enabled": true, "timeout": OPENCODE_TIMEOUT});
    file.set(&path, &entry)?;
    file.put_in_list(&["instructions"], &json!(OPENCODE_RULES), is_ours)
}

fn codex(text: &str, server: &Server, rules: &str, remove: bool) -> Result<Option<String>, String> {
    const INSTRUCTIONS: &str = "developer_instructions";
    let mut file = TomlFile::parse(text)?;
    let told = file.text(INSTRUCTIONS)?.unwrap_or_default().to_owned();
    let tells = into_markdown(&told, rules).map_err(|why| format!("{INSTRUCTIONS}: {why}"))?;
    if tells != told {
        file.set_text(INSTRUCTIONS, (!tells.is_empty()).then_some(tells.as_str()));
    }
    if remove {
        file.remove("mcp_servers", NAME);
    } else {
        let arguments: toml_edit::Array = server.arguments.iter().collect();
        let values = [
            ("command", server.command.as_str().into()),
            ("args", toml_edit::Value::Array(arguments)),
            ("startup_timeout_sec", CODEX_STARTUP.into()),
            ("tool_timeout_sec", CODEX_CALL.into()),
        ];
        file.set("mcp_servers", NAME, &values)?;
    }
    Ok(file.finish())
}

/// The text as one word of a shell.
pub(super) fn quoted(text: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+".contains(letter);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(quoted(text), expected);
    }

    #[test]
    fn a_word_of_a_shell() {
        check("/usr/bin/toolctl", "/usr/bin/toolctl");
        check("/home/a b/toolctl", "'/home/a b/toolctl'");
        check("it's", r"'it'\''s'");
        check("", "''");
    }
}
