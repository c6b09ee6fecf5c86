//! The configured provider.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use provider_core::prelude::*;
use provider_core::supervisor::sandbox::{Request, Sandbox, Wanted, default_write_paths};
use provider_core::supervisor::{Supervisor, find_program, is_passed_on};

use crate::config::AgentConfig;
use crate::engine::template::Template;
use crate::family::Family;
use crate::register::Register;
use crate::tools::spawn_subagent::SpawnSubagent;
use crate::tools::subagent_list::SubagentList;

/// What agents get besides what every program gets: where they, and providers they start, keep their own affairs.
const PASSED: [&str; 2] = ["XDG_CONFIG_HOME", "XDG_STATE_HOME"];

/// Other agents, and what they may do.
pub struct Agents {
    pub(crate) runners: BTreeMap<String, Runner>,
    pub(crate) default_agent: Option<String>,
    pub(crate) default_profile: String,
    pub(crate) max_depth: u32,
    pub(crate) timeout: Duration,
    pub(crate) sandbox: Sandbox,
    pub(crate) write_paths: Vec<PathBuf>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// The folder for output, where there is one.
    pub(crate) outputs: Option<PathBuf>,
    pub(crate) family: Family,
    pub(crate) register: Register,
    pub(crate) supervisor: Supervisor,
    /// The kernel has said that it has no nested sessions.
    pub(crate) no_sessions: AtomicBool,
}

/// An agent with a command line.
#[derive(Clone, Debug)]
pub(crate) struct Runner {
    pub(crate) template: Template,
    /// Where the program is.
    pub(crate) program: PathBuf,
}

impl Provider for Agents {
    const NAME: &'static str = "agent";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Config = AgentConfig;

    async fn configure(config: AgentConfig, setup: Setup) -> Result<Self, ToolError> {
        let runners = runners(&config, &setup)?;
        if let Some(name) = config.default_agent.as_ref().filter(|name| !runners.contains_key(*name)) {
            let known = names(&runners);
            return Err(ToolError::invalid_arguments(format!(
                "default_agent: there is no runner {name:?}; runners has {known}"
            )));
        }
        let request = Request {
            wanted: if config.sandbox { Wanted::Auto } else { Wanted::Off },
            required: false,
            network: true,
            protect: false,
        };
        let sandbox = tokio::task::spawn_blocking(move || Sandbox::choose(&request))
            .await
            .map_err(|error| ToolError::unknown(&error))?
            .map_err(|error| ToolError::invalid_arguments(format!("sandbox: {error}")))?;
        let outputs = setup.state_folder(config.state_dir.as_deref()).map(|state| state.join("agent"));
        let default_agent = config.default_agent.or_else(|| match runners.len() {
            1 => runners.keys().next().cloned(),
            _ => None,
        });
        Ok(Self {
            default_agent,
            runners,
            default_profile: config.default_profile.unwrap_or_else(|| "default".to_owned()),
            max_depth: config.max_depth,
            timeout: Duration::from_millis(config.timeout_ms),
            sandbox,
            write_paths: write_paths(&config.write_paths, &setup),
            environment: environment(&config.env_pass),
            outputs,
            family: Family::new(config.max_depth, config.max_children, |name| std::env::var_os(name)),
            register: Register::default(),
            supervisor: Supervisor::default(),
            no_sessions: AtomicBool::new(false),
        })
    }

    fn tools(tools: &mut Tools<Self>) {
        tools.resource::<SpawnSubagent>().with_preview();
        tools.data_source::<SubagentList>();
    }

    async fn close(&self) {
        self.supervisor.idle().await;
        self.family.close();
    }
}

impl Agents {
    /// How long a subagent may work.
    pub(crate) fn time(&self) -> Duration {
        self.family.time(self.timeout)
    }
}

/// The names of the runners, for people.
pub(crate) fn names(runners: &BTreeMap<String, Runner>) -> String {
    match runners.len() {
        0 => "none".to_owned(),
        _ => runners.keys().map(String::as_str).collect::<Vec<_>>().join(", "),
    }
}

fn runners(config: &AgentConfig, setup: &Setup) -> Result<BTreeMap<String, Runner>, ToolError> {
    let mut wrong = Vec::new();
    let mut runners = BTreeMap::new();
    for (name, command) in &config.runners {
        let found = Template::parse(command).and_then(|template| {
            let program = program(template.program(), setup).ok_or_else(|| {
                format!("there is no program {:?} on PATH; install it or give its path", template.program())
            })?;
            Ok(Runner { template, program })
        });
        match found {
            Ok(runner) => drop(runners.insert(name.clone(), runner)),
            Err(reason) => wrong.push(format!("runners.{name}: {reason}")),
        }
    }
    match wrong.is_empty() {
        true => Ok(runners),
        false => Err(ToolError::invalid_arguments(wrong.join("\n"))),
    }
}

/// The path of a program: on `PATH`, or where a configured path says.
fn program(name: &str, setup: &Setup) -> Option<PathBuf> {
    match name.contains('/') {
        true => find_program(setup.path(name).to_str()?, None),
        false => find_program(name, std::env::var_os("PATH").as_deref()),
    }
}

fn write_paths(configured: &[String], setup: &Setup) -> Vec<PathBuf> {
    let mut paths = default_write_paths(|name| std::env::var_os(name));
    paths.push(std::env::temp_dir());
    paths.extend(configured.iter().map(|path| setup.path(path)));
    paths
}

fn environment(pass: &[String]) -> Vec<(OsString, OsString)> {
    let is_passed = |name: &OsString| {
        is_passed_on(name)
            || PASSED.iter().any(|own| name == own)
            || pass.iter().any(|passed| name == passed.as_str())
    };
    std::env::vars_os().filter(|(name, _)| is_passed(name)).collect()
}
