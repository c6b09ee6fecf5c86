//! The command line. The doc comments are the help.

mod agents;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::shell::ColorChoice;

pub(crate) use agents::*;

/// Call, inspect and preview the tools of any provider
///
/// PROVIDER is a name from the catalog, or the path of any provider program.
///
/// Exit codes: 0 done; 1 the tool returned an error; 2 usage; 3 the provider could not start or speak; 4 denied
/// or unanswered; 5 conformance failed; 124 timed out; 130 interrupted.
#[derive(Debug, Parser)]
#[command(name = "toolctl", version, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Cli {
    /// When to use colour
    #[arg(long, value_enum, default_value_t, global = true, value_name = "WHEN")]
    pub(crate) color: ColorChoice,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  toolctl list
  toolctl call filesystem read_file path=README.md limit=20
  toolctl call filesystem edit_file path=a.txt old_str=teh new_str=the
  toolctl preview ./my-provider my_tool --args '{\"name\": \"x\"}'";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List tools with kind, risk and purpose
    List(List),
    /// Describe a provider, or one of its tools
    Describe(Describe),
    /// Print everything a provider declares, as JSON
    Schema(Schema),
    /// Call a tool and show its result
    Call(Call),
    /// Show what a call would do, and change nothing
    Preview(Preview),
    /// Serve many calls, as NDJSON on stdin and stdout
    Session(Session),
    /// Serve the tools to a host on the plugin wire
    Plugin(PluginArgs),
    /// Print what an agent is told: the rules, and every tool there is
    Instructions(InstructionsArgs),
    /// Work with the rules of plugins
    Rules(RulesArgs),
    /// List plugins, and switch them on and off
    Plugins(PluginsArgs),
    /// Show the settings, or change them
    Settings(SettingsArgs),
    /// Serve the tools to any agent, over the Model Context Protocol
    Mcp(Mcp),
    /// Make the crate of a new provider
    New(New),
    /// Build a provider at every save, and show what it declares
    Dev(Dev),
    /// Show what changed between two versions of a provider, and what it breaks
    Diff(Diff),
    /// Check a provider against the tool protocol
    Check(Check),
    /// Put released providers, or this program's tools, where an agent finds them
    Install(Install),
    /// Check that the catalog works on this machine
    Doctor(Doctor),
    /// Print the completion script of a shell
    Completions(Completions),
    /// Print the manual page of the program, or of one command
    Man(Man),
}

impl Command {
    /// Whether stdout carries JSON only.
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::List(List { json, .. })
            | Self::Doctor(Doctor { json })
            | Self::Check(Check { json, .. })
            | Self::Install(Install { json, .. })
            | Self::Diff(Diff { json, .. }) => *json,
            Self::Describe(describe) => describe.shared.json,
            Self::Call(Call { target, .. }) | Self::Preview(Preview { target }) => target.shared.json,
            Self::Plugins(PluginsArgs { command: PluginsCommand::List { json } })
            | Self::Settings(SettingsArgs { json, .. }) => *json,
            Self::Schema(_) | Self::Session(_) => true,
            Self::Plugin(_) | Self::Instructions(_) | Self::Rules(_) | Self::Plugins(_) => false,
            // stdout carries the protocol, or the address of the server.
            Self::Mcp(_) => false,
            Self::New(_) | Self::Dev(_) | Self::Completions(_) | Self::Man(_) => false,
        }
    }
}

/// The flags that every provider accepts.
#[derive(Debug, Args)]
pub(crate) struct Shared {
    /// Directory the provider may work in; repeatable, the first is the working directory [default: .]
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Vec<PathBuf>,
    /// Working directory of the call, where it is not the first root
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Configuration attribute, typed by the provider's schema; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) config: Vec<String>,
    /// Configuration as JSON, or from a file with @FILE; --config goes over it
    #[arg(long, value_name = "JSON|@FILE")]
    pub(crate) config_json: Option<String>,
    /// Longest time a call may run, for example 500ms, 10s, 2m [default: what the tool declares]
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// Approve calls that change something without asking
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Rules for which calls run, are asked about, or are refused: a JSON list of {name, match, action}. --yes answers
    /// what they ask, never what they deny
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
    /// Write JSON to stdout, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
    /// Answers to interactive calls: a JSON object for every question, or a list used in order
    #[arg(long, value_name = "FILE")]
    pub(crate) answers: Option<PathBuf>,
    /// Session the calls belong to [default: one per working directory]
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Environment variable for the provider; NAME alone passes this shell's value on; repeatable
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<String>,
    /// Show everything the provider logs
    #[arg(long, short)]
    pub(crate) verbose: bool,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Providers to list [default: the whole catalog]
    #[arg(value_name = "PROVIDER")]
    pub(crate) providers: Vec<String>,
    /// Write JSON to stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Describe {
    /// Catalog name, or path of a provider program
    pub(crate) provider: String,
    /// Tool to describe in full
    pub(crate) tool: Option<String>,
    #[command(flatten)]
    pub(crate) shared: Shared,
}

#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// Catalog name, or path of a provider program
    pub(crate) provider: String,
    #[command(flatten)]
    pub(crate) shared: Shared,
}

/// A tool and its arguments.
#[derive(Debug, Args)]
pub(crate) struct Target {
    /// Catalog name, or path of a provider program
    pub(crate) provider: String,
    /// Tool to call
    pub(crate) tool: String,
    /// Arguments, typed by the tool's schema: key=value; key:=JSON; key@=FILE
    #[arg(value_name = "KEY=VALUE")]
    pub(crate) assignments: Vec<String>,
    /// Arguments as a JSON object, from a file with @FILE, or from stdin with -; KEY=VALUE goes over them
    #[arg(long, value_name = "JSON|@FILE|-", allow_hyphen_values = true)]
    pub(crate) args: Option<String>,
    #[command(flatten)]
    pub(crate) shared: Shared,
}

#[derive(Debug, Args)]
pub(crate) struct Call {
    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Debug, Args)]
pub(crate) struct Preview {
    #[command(flatten)]
    pub(crate) target: Target,
}

/// Serve many calls, as NDJSON on stdin and stdout
///
/// Each line of stdin is a request: {"id":"1","provider":"filesystem","tool":"read_file","args":{"path":"a"}},
/// with "preview":true to only show what it would do, and "cwd" and "session" where they differ from the flags;
/// or {"cancel":"1"}. Each line of stdout is an event with the id of its request.
#[derive(Debug, Args)]
pub(crate) struct Session {
    /// Catalog names, or paths of provider programs
    #[arg(value_name = "PROVIDER", required = true)]
    pub(crate) providers: Vec<String>,
    #[command(flatten)]
    pub(crate) shared: Shared,
}

/// Serve the tools to any agent, over the Model Context Protocol
///
/// An agent starts this program and speaks with it on stdin and stdout, until it closes stdin. It sees one tool, execute,
/// whose programs call all others, or with --tools separate each tool by itself. The agent decides which calls are made;
/// --policy and --deny-kind can only refuse more. ask_user asks the person behind the agent, where the agent can show a
/// form.
///
/// With --http the protocol is served on this machine's loopback interface, and one line of JSON on stdout tells the url
/// and the token that requests must carry as Authorization: Bearer TOKEN. TOOLCTL_MCP_TOKEN sets the token.
#[derive(Debug, Args)]
#[command(after_help = MCP_EXAMPLES)]
pub(crate) struct Mcp {
    /// Provider to serve, a name from the catalog or a path; repeatable [default: the whole catalog]
    #[arg(long = "provider", value_name = "NAME|PATH")]
    pub(crate) providers: Vec<String>,
    /// MCP server to take tools from as well: a name, and the command that starts it; repeatable
    #[arg(long = "server", value_name = "NAME=COMMAND")]
    pub(crate) servers: Vec<ServerCommand>,
    /// Serve no provider of the catalog, only what --server and --provider name
    #[arg(long)]
    pub(crate) servers_only: bool,
    /// How the agent sees the tools
    #[arg(long, value_enum, default_value_t, value_name = "VIEW")]
    pub(crate) tools: ToolsView,
    /// Declare what separate tools return, and answer with that value in place of text for reading
    #[arg(long)]
    pub(crate) structured: bool,
    /// Do not offer tools of this kind, and refuse their calls; repeatable
    #[arg(long, value_enum, value_name = "KIND")]
    pub(crate) deny_kind: Vec<RefusedKind>,
    /// Offer only what changes nothing: --deny-kind resource
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Serve on this address of the loopback interface, such as 127.0.0.1:0, in place of stdin and stdout
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) shared: Shared,
}

const MCP_EXAMPLES: &str = "\
Examples:
  toolctl mcp
  toolctl mcp --tools separate --provider filesystem --provider search --read-only
  toolctl mcp --server 'github=npx -y @modelcontextprotocol/server-github'
  toolctl mcp --http 127.0.0.1:0";

impl Mcp {
    /// The kinds of tools that are refused.
    pub(crate) fn refused(&self) -> impl Iterator<Item = RefusedKind> {
        let resource = self.read_only.then_some(RefusedKind::Resource);
        self.deny_kind.iter().copied().chain(resource)
    }
}

/// How an agent sees the tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ToolsView {
    /// One tool, execute, whose programs call all others.
    #[default]
    Code,
    /// Each tool by itself.
    Separate,
}

/// A kind of tools that can be refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum RefusedKind {
    /// Tools that change something.
    #[value(name = "resource")]
    Resource,
    /// Tools that only read.
    #[value(name = "data_source")]
    DataSource,
    /// Tools that ask a person.
    #[value(name = "interactive")]
    Interactive,
}

/// How a server is started, and what it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerCommand {
    pub(crate) name: String,
    pub(crate) command: Vec<String>,
}

impl std::str::FromStr for ServerCommand {
    type Err = String;

    /// `NAME=COMMAND`, where the command is a JSON list, or words between blanks.
    fn from_str(text: &str) -> Result<Self, String> {
        let wanted =
            "wanted NAME=COMMAND, such as git=uvx mcp-server-git, or git=[\"uvx\",\"mcp-server-git\"]";
        let (name, command) = text.split_once('=').ok_or(wanted)?;
        let command: Vec<String> = match command.trim_start().starts_with('[') {
            true => serde_json::from_str(command)
                .map_err(|error| format!("the command is no JSON list of texts: {error}"))?,
            false => command.split_whitespace().map(str::to_owned).collect(),
        };
        let named =
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        if !named {
            return Err(format!("{name:?} is no name of letters, digits, _ and -: {wanted}"));
        }
        if command.is_empty() {
            return Err(format!("there is no command: {wanted}"));
        }
        Ok(Self { name: name.to_owned(), command })
    }
}

/// Make the crate of a new provider
///
/// The crate has one tool, tests, and a dependency on the SDK's public repository, or on a checkout of it with
/// --sdk. Nothing is ever written over.
#[derive(Debug, Args)]
pub(crate) struct New {
    /// Name of the provider, such as web or issue-tracker
    pub(crate) name: String,
    /// Folder to make [default: provider-NAME]
    #[arg(value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Checkout of the SDK to depend on, in place of its public repository
    #[arg(long, value_name = "DIR")]
    pub(crate) sdk: Option<PathBuf>,
    /// Show what would be created, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Build a provider at every save, and show what it declares
///
/// Prints the block that makes the kernel start this build, and then, at every save, builds the crate anew, starts
/// it, lists its tools and shows how its declaration changed. A provider that something else builds is given by the
/// path of its program. Ctrl-C ends, with exit code 0.
#[derive(Debug, Args)]
pub(crate) struct Dev {
    /// Folder of a crate, or path of a program
    pub(crate) provider: String,
    /// Build and show once, and end with exit code 3 if that fails
    #[arg(long)]
    pub(crate) once: bool,
    /// Show everything the provider logs
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Arguments for cargo build, such as --release or --bin NAME
    #[arg(last = true, value_name = "CARGO ARGUMENT")]
    pub(crate) cargo: Vec<String>,
}

/// Show what changed between two versions of a provider, and what it breaks
///
/// A change is breaking when a call, a configuration or a program that was right before can be wrong after it: a
/// tool that is gone, an argument that is required now, a result field that can be missing, a raised risk. The
/// rule that decides stands behind each change.
///
/// Exit codes: 0 nothing breaks; 1 something does, or with --exact, something changed at all; 2 usage; 3 a
/// provider could not start.
#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// Old version: catalog name, path of a program, or file with what `toolctl schema` printed (- is stdin)
    pub(crate) old: String,
    /// New version, given the same way
    pub(crate) new: String,
    /// Show and count breaking changes only
    #[arg(long)]
    pub(crate) breaking: bool,
    /// Exit with 1 also when all changes are compatible
    #[arg(long, conflicts_with = "breaking")]
    pub(crate) exact: bool,
    /// Write JSON to stdout
    #[arg(long)]
    pub(crate) json: bool,
}

/// Check a provider against the tool protocol
///
/// The program is launched the way the kernel does, several times, in scratch directories of its own. Every
/// requirement has a number, a level (MUST, SHOULD, MAY) and an outcome: pass, fail, or not reached when nothing
/// in the run could show it. Requirements about calls need --calls.
///
/// The exit code is 5 when a MUST is broken.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Catalog name, or path of a provider program
    pub(crate) provider: String,
    /// Calls file: a configuration the provider accepts, files to work on, and calls with their right ends
    #[arg(long, value_name = "FILE")]
    pub(crate) calls: Option<PathBuf>,
    /// Only look at this topic, such as INVOKE; repeatable
    #[arg(long, value_name = "TOPIC", value_parser = topic)]
    pub(crate) topic: Vec<String>,
    /// Also fail on a broken SHOULD, and on what was not reached unless the calls file says why
    #[arg(long)]
    pub(crate) strict: bool,
    /// Write JSON to stdout
    #[arg(long)]
    pub(crate) json: bool,
    /// Also write a JUnit report
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Environment variable for the provider; NAME alone passes this shell's value on; repeatable
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<String>,
    /// Show what passed as well
    #[arg(long, short)]
    pub(crate) verbose: bool,
}

/// Put released providers, or this program's tools, where an agent finds them
///
/// For claude, codex and opencode, the agent's own configuration gets the tools, as an MCP server, and what carries the
/// rules of the enabled plugins; all else in it stays as it is. The change is shown first, and asked about unless --yes is
/// given; --remove takes it back. For plugin, a folder is made that a host of the plugin wire can load.
///
/// For the harness, programs go into the kernel's cache, and their hashes into the project's
/// .agent/agent.lock.hcl, in which all that is not theirs stays as it is. Archives and programs are verified first.
/// An agent.hcl that starts what was installed goes to stdout.
#[derive(Debug, Args)]
pub(crate) struct Install {
    /// The agent to install for
    #[arg(long = "for", value_enum, value_name = "AGENT")]
    pub(crate) agent: Agent,
    /// For plugin: the folder to make
    #[arg(value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// For harness: folder with the release, or its https address: what `cargo xtask dist` wrote, or a mirror
    #[arg(long, value_name = "DIR|URL", required_if_eq("agent", "harness"))]
    pub(crate) from: Option<String>,
    /// For harness: PEM file of certificates to trust besides those of the web, for an address
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
    /// For harness: proxy for an address: http://host:port or socks5://host:port
    #[arg(long, value_name = "URL")]
    pub(crate) proxy: Option<String>,
    /// Take back what was installed
    #[arg(long)]
    pub(crate) remove: bool,
    /// Do not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// How the agent sees the tools [default: what is usual for it]
    #[arg(long, value_enum, value_name = "SHAPE")]
    pub(crate) tools: Option<Shape>,
    /// Directory the tools may work in; repeatable [default: where the agent works]
    #[arg(long = "root", value_name = "DIR")]
    pub(crate) roots: Vec<PathBuf>,
    /// How the agent starts this program [default: toolctl, or its path where that does not find it]
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) command: Option<String>,
    /// Provider to install; repeatable [default: all]
    #[arg(long = "provider", value_name = "NAME")]
    pub(crate) providers: Vec<String>,
    /// For harness: platform to install and record, such as linux_amd64; repeatable [default: install for this machine, record all]
    #[arg(long = "platform", value_name = "OS_ARCH")]
    pub(crate) platforms: Vec<release::Platform>,
    /// Which version to take from a mirror, such as ^1.2 or =1.2.3 [default: the newest]
    #[arg(long, value_name = "VERSION", default_value = "*", hide_default_value = true)]
    pub(crate) release: semver::VersionReq,
    /// Folder of the project
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) project: PathBuf,
    /// The kernel's cache [default: agent/plugins in the user's cache folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// Replace another program of the same version
    #[arg(long)]
    pub(crate) replace: bool,
    /// Verify and show what would change, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Write JSON to stdout
    #[arg(long)]
    pub(crate) json: bool,
}

/// An agent that providers are installed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Agent {
    /// The Pluggable Harness.
    Harness,
    /// Claude Code, in the project: .mcp.json and .claude/settings.json.
    Claude,
    /// Codex, for the user: config.toml in ~/.codex.
    Codex,
    /// OpenCode, in the project: opencode.json.
    Opencode,
    /// A folder for a host of the plugin wire.
    Plugin,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Write JSON to stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// Shell to complete for
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Command to print the page of
    pub(crate) command: Option<String>,
}

/// The word that the numbers of a topic of requirements begin with.
fn topic(text: &str) -> Result<String, String> {
    let wanted = text.to_ascii_uppercase();
    let mut known = conformance::topics().map(|(word, _, _)| word);
    if known.clone().any(|word| word == wanted) {
        return Ok(wanted);
    }
    let list: Vec<&str> = known.by_ref().collect();
    Err(format!("wanted one of {}", list.join(", ")))
}

/// A time with a unit, or plain seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = match unit.trim() {
        "ms" => 0.001,
        "s" | "" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err("wanted a number with ms, s, m or h".to_owned()),
    };
    let number: f64 = number.parse().map_err(|_| "wanted a number with ms, s, m or h".to_owned())?;
    match Duration::try_from_secs_f64(number * unit) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err("wanted a time above zero".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[track_caller]
    fn check(text: &str, expected: Option<u64>) {
        assert_eq!(duration(text).ok(), expected.map(Duration::from_millis), "{text}");
    }

    #[test]
    fn times_have_units() {
        check("500ms", Some(500));
        check("10s", Some(10_000));
        check("1.5m", Some(90_000));
        check("2", Some(2_000));
        check("1h", Some(3_600_000));
        check("0s", None);
        check("soon", None);
        check("-1s", None);
        check("", None);
    }

    #[test]
    fn flags_and_arguments_mix() {
        let cli = Cli::try_parse_from(["toolctl", "call", "p", "t", "a=1", "--json", "b=-2", "--args", "-"])
            .unwrap();
        let Command::Call(call) = cli.command else { panic!("a call") };
        assert_eq!(call.target.assignments, ["a=1", "b=-2"]);
        assert_eq!((call.target.args.as_deref(), call.target.shared.json), (Some("-"), true));
    }
}
