//! `spawn_subagent`: hands a piece of work to another agent and waits for what it says.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use provider_core::prelude::*;
use provider_core::subagent::{Subagent, SubagentStart, SubagentStatus};
use provider_core::{CallbackError, Category, Style, SubSession};

use crate::engine::template::Values;
use crate::family::{NoPlace, Place};
use crate::provider::{Agents, Runner, names};
use crate::register::{Entry, Record};
use crate::runner::{Ended, Run};

/// The longest title, in characters.
const LONGEST_TITLE: usize = 100;
/// The longest prompt in bytes: what fits in one argument of a command.
const LONGEST_PROMPT: usize = 120 * 1_024;

/// Hands a piece of work to another agent and waits for its answer. The other agent sees nothing but the prompt, so say
/// in it everything it needs. Several calls may run at the same time.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// What the other agent is to do, and everything it needs to know. At most 122,880 bytes.
    prompt: String,
    /// The agent it runs on, by its name in the configuration.
    agent: Option<String>,
    /// The model it runs on.
    model: Option<String>,
    /// How much it thinks.
    effort: Option<String>,
    /// What it is to do, on one line, for those who watch.
    title: Option<String>,
    /// What kind of subagent it is: the profile of its session.
    r#type: Option<String>,
}

/// What came of it.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Output {
    /// completed; failed; limit (time, turns or budget were used up); cancelled; or empty (it ended well without a word).
    status: Status,
    /// What it said at the end, or until then. At most 48 KiB.
    text: String,
    /// Its session, where the kernel has one.
    session_id: Option<String>,
    /// What it did, as far as it said so; the last steps.
    done: Vec<String>,
}

/// How a subagent ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    /// It came to its end.
    Completed,
    /// It failed.
    Failed,
    /// Time, turns or budget were used up.
    Limit,
    /// It was cancelled.
    Cancelled,
    /// It ended well without a word.
    Empty,
}

impl Status {
    /// The name on the wire.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Limit => "limit",
            Self::Cancelled => "cancelled",
            Self::Empty => "empty",
        }
    }

    fn shown(self) -> SubagentStatus {
        match self {
            Self::Completed | Self::Empty => SubagentStatus::Completed,
            Self::Failed | Self::Limit => SubagentStatus::Failed,
            Self::Cancelled => SubagentStatus::Stopped,
        }
    }
}

pub(crate) struct SpawnSubagent;

impl Resource for SpawnSubagent {
    const NAME: &'static str = "spawn_subagent";
    const RISK: Risk = Risk::Critical;
    const IDEMPOTENT: bool = false;
    const CONCURRENCY: Concurrency = Concurrency::Keyed(&["prompt"]);
    const TIMEOUT: Duration = Duration::from_secs(3_600);
    type Provider = Agents;
    type Args = Args;
    type Output = Output;
    type Stream = Events;

    async fn invoke(agents: Arc<Agents>, args: Args, cx: Cx<Events>) -> Result<Output, ToolError> {
        args.check()?;
        let _place = place(&agents)?;
        let subagent = Subagent::start(Arc::new(cx.clone()), args.start(&agents)).await;
        let outcome = run(&agents, &args, &cx, &subagent).await;
        let status = match &outcome {
            Ok(output) => output.status.shown(),
            Err(error) if error.category() == Category::Cancelled => SubagentStatus::Stopped,
            Err(_) => SubagentStatus::Failed,
        };
        subagent.end(status, None).await;
        outcome
    }

    fn render(output: &Output) -> Option<Node> {
        let summary = format!("subagent {}", output.status.name());
        if let Some(session_id) = &output.session_id {
            let session = Node::SubSession { session_id: session_id.clone(), summary };
            return Some(Node::Group(vec![session, Node::text(output.text.clone())]));
        }
        let steps = output.done.iter().map(|step| Node::styled(step.clone(), Style::Dim)).collect();
        let steps = Node::Collapsible { summary, children: steps, collapsed: true };
        Some(Node::Group(vec![steps, Node::text(output.text.clone())]))
    }
}

impl Preview for SpawnSubagent {
    async fn preview(agents: Arc<Agents>, args: Args, _: &PreviewCx) -> Result<Node, ToolError> {
        args.check()?;
        let mut nodes = vec![Node::styled(format!("subagent: {}", args.title()), Style::Bold)];
        match args.runner(&agents) {
            Ok((name, runner)) => {
                let mut argv = args.filled(name, runner)?.argv;
                argv.iter_mut().filter(|argument| **argument == args.prompt).for_each(|argument| {
                    *argument = "PROMPT".to_owned();
                });
                nodes.push(Node::text(format!("without nested sessions it runs: {argv:?}")));
                nodes.push(Node::text(format!("sandbox: {}", agents.sandbox.name())));
            }
            Err(error) => {
                nodes
                    .push(Node::styled(format!("only as a nested session: {}", error.message()), Style::Dim));
            }
        }
        nodes.push(Node::Code { language: String::new(), content: args.prompt.clone() });
        Ok(Node::Group(nodes))
    }
}

impl Args {
    fn check(&self) -> Result<(), ToolError> {
        match self.prompt.len() {
            0 => Err(ToolError::invalid_arguments("prompt: is empty; say what the other agent is to do")),
            _ if self.prompt.trim().is_empty() => {
                Err(ToolError::invalid_arguments("prompt: is blank; say what the other agent is to do"))
            }
            long if long > LONGEST_PROMPT => Err(ToolError::invalid_arguments(format!(
                "prompt: has {long} bytes, at most {LONGEST_PROMPT} are passed on; write the rest to a file and name it"
            ))),
            _ if self.prompt.contains('\0') => Err(ToolError::invalid_arguments(
                "prompt: has a NUL character, which no command can be given",
            )),
            _ => Ok(()),
        }
    }

    /// One line about the work.
    fn title(&self) -> String {
        let text = questions::clean(self.title.as_ref().unwrap_or(&self.prompt));
        let line = text.lines().next().unwrap_or_default();
        match line.char_indices().nth(LONGEST_TITLE) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line.to_owned(),
        }
    }

    fn start(&self, agents: &Agents) -> SubagentStart {
        SubagentStart {
            title: self.title(),
            name: self.r#type.clone(),
            agent: self.agent.clone().or_else(|| agents.default_agent.clone()),
            model: self.model.clone(),
            effort: self.effort.clone(),
            prompt: None,
        }
    }

    fn runner<'a>(&self, agents: &'a Agents) -> Result<(&'a str, &'a Runner), ToolError> {
        let known = names(&agents.runners);
        let Some(name) = self.agent.as_ref().or(agents.default_agent.as_ref()) else {
            return Err(match agents.runners.len() {
                0 => ToolError::new(
                    Code::NotConfigured,
                    "there is no agent to hand this to: the kernel has no nested sessions and the configuration has no \
                     runners. Do the work yourself, or have runners configured",
                ),
                _ => ToolError::invalid_arguments(format!("agent: is missing; there are {known}")),
            });
        };
        agents.runners.get_key_value(name).map(|(name, runner)| (name.as_str(), runner)).ok_or_else(|| {
            ToolError::not_found(format!("agent: there is no agent {name:?}; there are {known}"))
        })
    }

    fn values(&self) -> Values<'_> {
        Values { prompt: &self.prompt, model: self.model.as_deref(), effort: self.effort.as_deref() }
    }

    fn filled(&self, name: &str, runner: &Runner) -> Result<crate::engine::template::Command, ToolError> {
        runner.template.fill(&self.values()).map_err(|missing| {
            ToolError::invalid_arguments(format!(
                "{missing}: is missing; the agent {name:?} cannot be run without"
            ))
        })
    }
}

fn place(agents: &Agents) -> Result<Place, ToolError> {
    agents.family.enter().map_err(|none| match none {
        NoPlace::TooDeep(depth) => ToolError::new(
            Code::DepthLimit,
            format!("at depth {depth} no further subagent may be started; do the work here, or say in your answer what is left"),
        ),
        NoPlace::Full(children) => ToolError::execution_failed(format!(
            "{children} subagents run already, which is all that is allowed; wait for one (subagent_list shows them), or do \
             the work here"
        )),
        NoPlace::Unusable(error) => {
            ToolError::execution_failed(format!("cannot tell how many subagents run: {error}; none was started"))
        }
    })
}

/// Runs it the first way there is.
async fn run(
    agents: &Agents,
    args: &Args,
    cx: &Cx<Events>,
    subagent: &Subagent,
) -> Result<Output, ToolError> {
    match nested(agents, args, cx).await? {
        Some(output) => Ok(output),
        None => command(agents, args, cx, subagent).await,
    }
}

/// Runs it as a nested session; `None` where the kernel has none.
async fn nested(agents: &Agents, args: &Args, cx: &Cx<Events>) -> Result<Option<Output>, ToolError> {
    if agents.no_sessions.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let facts = cx.kernel().session().await.ok();
    let depth = facts.as_ref().map_or(0, |facts| facts.depth);
    let own = i64::from(agents.max_depth) - i64::from(depth);
    if own <= 0 {
        let message = format!(
            "at depth {depth} no further subagent may be started; do the work here, or say in your answer what is left"
        );
        return Err(ToolError::new(Code::DepthLimit, message));
    }
    let left = facts.as_ref().map_or(own, |facts| own.min(i64::from(facts.remaining_depth)));
    let left = left.min(i64::from(agents.family.levels())).saturating_sub(1);
    let child = SubSession {
        profile: args.r#type.clone().unwrap_or_else(|| agents.default_profile.clone()),
        prompt: args.prompt.clone(),
        remaining_depth: i32::try_from(left).unwrap_or(0),
        remaining_cost_budget_usd: facts.map_or(0.0, |facts| facts.remaining_cost_budget_usd),
    };
    let entry = begin(agents, args, cx, "session", None);
    let ended = match tokio::time::timeout(agents.time(), cx.kernel().run_session(child)).await {
        Ok(Ok(ended)) => ended,
        Ok(Err(CallbackError::NotOffered(_))) => {
            agents.no_sessions.store(true, Ordering::Relaxed);
            entry.forget();
            return Ok(None);
        }
        Ok(Err(error)) => {
            entry.end(Status::Failed);
            return Err(ToolError::execution_failed(format!("the subagent could not be run: {error}")));
        }
        Err(_) => {
            entry.end(Status::Limit);
            cx.note("the subagent was ended because its time was up");
            return Ok(Some(Output {
                status: Status::Limit,
                text: String::new(),
                session_id: None,
                done: Vec::new(),
            }));
        }
    };
    let status = match ended.status.as_str() {
        "completed" if ended.text.trim().is_empty() => Status::Empty,
        "completed" => Status::Completed,
        "cancelled" => Status::Cancelled,
        limit if limit.starts_with("error_max_") => {
            cx.note(format!("the subagent was ended by a limit: {}", limit.trim_start_matches("error_max_")));
            Status::Limit
        }
        _ => Status::Failed,
    };
    entry.end(status);
    let session_id = Some(ended.session_id).filter(|id| !id.is_empty());
    Ok(Some(Output { status, text: ended.text, session_id, done: Vec::new() }))
}

/// Runs it as a command.
async fn command(
    agents: &Agents,
    args: &Args,
    cx: &Cx<Events>,
    subagent: &Subagent,
) -> Result<Output, ToolError> {
    let (name, runner) = args.runner(agents)?;
    let command = args.filled(name, runner)?;
    let directory = match cx.working_directory() {
        empty if empty.as_os_str().is_empty() => {
            std::env::current_dir().map_err(|error| ToolError::unknown(&error))?
        }
        directory => directory.to_owned(),
    };
    let output = output_file(agents, cx).await;
    let entry = begin(agents, args, cx, name, output.clone());
    let run =
        Run { runner, command, values: args.values(), directory: &directory, time: agents.time(), output };
    let Ended { status, text, done } = run.run(agents, cx, subagent).await?;
    entry.end(status);
    Ok(Output { status, text, session_id: None, done })
}

fn begin(agents: &Agents, args: &Args, cx: &Cx<Events>, agent: &str, output_path: Option<PathBuf>) -> Entry {
    agents.register.begin(Record {
        id: cx.call_id().to_owned(),
        title: args.title(),
        agent: agent.to_owned(),
        owner: cx.session_id().to_owned(),
        started: SystemTime::now(),
        ended: None,
        output_path,
    })
}

/// A new file for the output, with old ones cleared away. Where none can be made, there is none.
async fn output_file(agents: &Agents, cx: &Cx<Events>) -> Option<PathBuf> {
    let folder = agents.outputs.clone()?;
    cx.blocking(move || Ok(crate::outputs::new_file(&folder))).await.ok().flatten()
}
