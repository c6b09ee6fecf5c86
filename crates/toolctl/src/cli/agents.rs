//! The commands that serve other agents.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::Shared;

/// Serve the tools to a host on the plugin wire
///
/// Answers JSON-RPC on stdin and stdout: initialize, tools/list, tool/call and tool/cancel. Each call works in the
/// workspace that its context names, which is the only folder it may reach, unless --root says otherwise. The host is
/// the one to ask whether a call may be made; --policy can only deny.
#[derive(Debug, Args)]
pub(crate) struct PluginArgs {
    /// Provider to serve: catalog name, or path of a program; repeatable [default: every enabled one]
    #[arg(long = "provider", value_name = "NAME|PATH")]
    pub(crate) providers: Vec<String>,
    /// Serve each tool by itself, or the one tool that runs programs over them
    #[arg(long, value_enum, default_value_t = Shape::Separate, value_name = "SHAPE")]
    pub(crate) tools: Shape,
    /// Refuse calls that name no workspace, in place of working in the current directory
    #[arg(long)]
    pub(crate) require_workspace: bool,
    #[command(flatten)]
    pub(crate) shared: Shared,
}

/// How tools are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shape {
    /// Each by itself.
    Separate,
    /// One tool, execute.
    Code,
}

/// Work with the rules of plugins
#[derive(Debug, Args)]
pub(crate) struct RulesArgs {
    #[command(subcommand)]
    pub(crate) command: RulesCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RulesCommand {
    /// Print the rules of every enabled plugin, as an agent takes them
    Render(RulesRender),
}

#[derive(Debug, Args)]
pub(crate) struct RulesRender {
    #[command(flatten)]
    pub(crate) rendering: Rendering,
}

/// Print what an agent is told: the rules, and every tool there is
///
/// In code mode that is how programs call tools, and each tool with description, input and what it returns.
#[derive(Debug, Args)]
pub(crate) struct InstructionsArgs {
    #[command(flatten)]
    pub(crate) rendering: Rendering,
    /// Longest text, in bytes; beyond it tools are named only [default: what the carrier takes]
    #[arg(long, value_name = "BYTES")]
    pub(crate) limit: Option<usize>,
    /// How the agent sees the tools [default: the mode of the settings]
    #[arg(long, value_enum, value_name = "SHAPE")]
    pub(crate) tools: Option<Shape>,
}

/// For whom, and from what.
#[derive(Debug, Args)]
pub(crate) struct Rendering {
    /// The agent
    #[arg(long = "for", value_enum, value_name = "AGENT")]
    pub(crate) carrier: Carrier,
    /// Folder of a plugin to take, enabled or not; repeatable [default: every enabled plugin]
    #[arg(long = "plugin", value_name = "DIR|NAME")]
    pub(crate) plugins: Vec<String>,
    /// The session the text is for; an ACP agent is told in a new one only
    #[arg(long, value_enum, default_value_t = SessionKind::New, value_name = "KIND")]
    pub(crate) session: SessionKind,
    /// For agents-md: write the block into this file, between its markers, in place of printing it
    #[arg(long, value_name = "FILE")]
    pub(crate) into: Option<PathBuf>,
}

/// What carries a text to an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Carrier {
    /// Developer instructions.
    Codex,
    /// An addition to the system prompt.
    Claude,
    /// System text of each prompt.
    Opencode,
    /// A text block before the first message of a new session.
    Acp,
    /// A block of AGENTS.md.
    AgentsMd,
    /// A document for programs.
    Json,
}

/// Whether a session is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SessionKind {
    /// It begins.
    New,
    /// It goes on.
    Loaded,
}

/// List plugins, and switch them on and off
#[derive(Debug, Args)]
pub(crate) struct PluginsArgs {
    #[command(subcommand)]
    pub(crate) command: PluginsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PluginsCommand {
    /// List the plugins that are known
    List {
        /// Write JSON to stdout
        #[arg(long)]
        json: bool,
    },
    /// Enable a plugin: shows what it asks for, and why, and the rules it brings
    Enable {
        /// Folder with a plugin.json, or the name of a plugin that is known
        #[arg(value_name = "DIR|NAME")]
        plugin: String,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
        /// Show what it asks for, and change nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Disable a plugin: agents get neither its tools nor its rules
    Disable {
        /// Name of a plugin
        #[arg(value_name = "NAME")]
        plugin: String,
        /// Also forget where it is and what it was granted
        #[arg(long)]
        forget: bool,
    },
}

/// Show the settings, or change them
///
/// Settings are mode (code or separate), plugins.NAME and rules.NAME (on or off).
#[derive(Debug, Args)]
pub(crate) struct SettingsArgs {
    /// What to change, for example mode=separate or rules.house-style=off
    #[arg(value_name = "KEY=VALUE")]
    pub(crate) changes: Vec<String>,
    /// Write JSON to stdout
    #[arg(long)]
    pub(crate) json: bool,
}
