//! How the provider is configured.

use std::collections::BTreeMap;

use provider_core::prelude::*;

/// Configuration of the agent provider.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct AgentConfig {
    /// Commands that are agents, by name, for kernels without nested sessions: each a JSON list of the program and its
    /// arguments, in which {prompt}, {model} and {effort} are filled in. A list inside the list is left out where a
    /// value in it is missing: ["codex","exec",["--model","{model}"],"{prompt}"]. A command without {prompt} reads it
    /// from its standard input.
    #[serde(default)]
    pub runners: BTreeMap<String, String>,
    /// The runner of calls that name no agent. Default: the only one.
    pub default_agent: Option<String>,
    /// The profile of nested sessions of calls that name no type. Default: "default".
    pub default_profile: Option<String>,
    /// How deep subagents may start subagents. 1 allows subagents, but none of their own.
    #[serde(default = "two")]
    #[schemars(range(min = 0, max = 16))]
    pub max_depth: u32,
    /// How many subagents may run at one time, those of subagents counted in.
    #[serde(default = "eight")]
    #[schemars(range(min = 1, max = 64))]
    pub max_children: u32,
    /// How long a subagent may work, in milliseconds. The default is a minute less than a call may take, so that it is the
    /// subagent that ends, with what it had done, and not the call.
    #[serde(default = "minutes_59")]
    #[schemars(range(min = 1, max = 86_400_000))]
    pub timeout_ms: u64,
    /// Whether runners are confined to the working directory, the usual caches and write_paths.
    #[serde(default = "yes")]
    pub sandbox: bool,
    /// Paths outside the working directory that runners may write, such as the folder of an agent's own settings.
    #[serde(default)]
    pub write_paths: Vec<String>,
    /// Names of environment variables that runners get besides PATH, HOME, LANG, LC_*, TERM, TMPDIR, USER, SHELL,
    /// XDG_CONFIG_HOME and XDG_STATE_HOME; an agent's key, for example.
    #[serde(default)]
    pub env_pass: Vec<String>,
    /// Where output of runners is kept; by default below the user's state folder.
    pub state_dir: Option<String>,
}

fn two() -> u32 {
    2
}

fn eight() -> u32 {
    8
}

fn minutes_59() -> u64 {
    59 * 60 * 1_000
}

fn yes() -> bool {
    true
}
