//! `subagent_list`: which subagents run, and which have ended lately.

use std::time::{Duration, UNIX_EPOCH};

use provider_core::prelude::*;

use crate::provider::Agents;
use crate::register::Record;

/// Lists the subagents of this provider that run, and those that ended lately, so that work which was begun is not begun
/// again.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// Only those that run.
    running: Option<bool>,
}

/// The subagents.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Output {
    /// The subagents, oldest first.
    subagents: Vec<Told>,
    /// How many run.
    running: u64,
}

/// One subagent.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Told {
    /// The call that started it.
    id: String,
    /// What it is to do.
    title: String,
    /// The agent it runs on; session for a nested session.
    agent: String,
    /// running, completed, failed, limit, cancelled or empty.
    status: String,
    /// When it was started, in milliseconds since 1970.
    started: u64,
    /// The session that started it.
    owner: String,
    /// The file with all it printed.
    output_path: Option<String>,
}

pub(crate) struct SubagentList;

impl DataSource for SubagentList {
    const NAME: &'static str = "subagent_list";
    const CONCURRENCY: Concurrency = Concurrency::Shared;
    const TIMEOUT: Duration = Duration::from_secs(60);
    type Provider = Agents;
    type Args = Args;
    type Output = Output;
    type Stream = Silent;

    async fn invoke(agents: Arc<Agents>, args: Args, _: Cx<Silent>) -> Result<Output, ToolError> {
        let all = agents.register.all();
        let runs = |record: &&Record| record.ended.is_none();
        let running = u64::try_from(all.iter().filter(runs).count()).unwrap_or(u64::MAX);
        let wanted = |record: &&Record| runs(record) || args.running != Some(true);
        Ok(Output { subagents: all.iter().filter(wanted).map(Told::from).collect(), running })
    }

    fn render(output: &Output) -> Option<Node> {
        let row =
            |told: &Told| vec![told.status.clone(), told.title.clone(), told.agent.clone(), told.id.clone()];
        let headers = ["status", "title", "agent", "id"].map(str::to_owned).to_vec();
        Some(match output.subagents.as_slice() {
            [] => Node::text("no subagents"),
            all => Node::Table { headers, rows: all.iter().map(row).collect() },
        })
    }
}

impl From<&Record> for Told {
    fn from(record: &Record) -> Self {
        let started = record.started.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            id: record.id.clone(),
            title: record.title.clone(),
            agent: record.agent.clone(),
            status: record.ended.map_or("running", |status| status.name()).to_owned(),
            started: u64::try_from(started.as_millis()).unwrap_or(u64::MAX),
            owner: record.owner.clone(),
            output_path: record.output_path.as_ref().map(|path| path.display().to_string()),
        }
    }
}
