//! `task_list`: the list, whole and short, or what changed in it.

use std::time::Duration;

use provider_core::prelude::*;

use super::{ToldStatus, ToldTask, nodes};
use crate::engine::markdown::markdown;
use crate::engine::plan::List;
use crate::engine::task::{Status, Task};
use crate::provider::Tasks;

/// The most tasks of one answer when nothing else is said.
const DEFAULT_LIMIT: u64 = 1_000;

/// Lists this session's tasks: all, those of one status, one with its description, or those changed since a revision.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// One task, told with its description and the files that were changed for it.
    id: Option<String>,
    /// Only tasks that are this far.
    status: Option<ToldStatus>,
    /// Only tasks changed after this revision of the list.
    since: Option<u64>,
    /// tasks lists them as data; markdown writes the list as a document instead.
    format: Option<Format>,
    /// The most tasks to list; by default 1,000.
    #[schemars(range(min = 1, max = 10_000))]
    limit: Option<u64>,
    /// How many tasks to leave out at the start.
    offset: Option<u64>,
}

/// How the list is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Format {
    /// As data.
    #[default]
    Tasks,
    /// As a document.
    Markdown,
}

/// The tasks.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Output {
    /// The tasks by id, in the order they were added; empty when the list is told as Markdown.
    tasks: Vec<ToldTask>,
    /// How many tasks there are that were asked for.
    total: u64,
    /// The list's revision; give it as `since` to see only later changes.
    revision: u64,
    /// Whether tasks are left out.
    truncated: bool,
    /// Give it as `offset` to go on.
    next_offset: Option<u64>,
    /// The list as a document.
    markdown: Option<String>,
}

pub(crate) struct TaskList;

impl DataSource for TaskList {
    const NAME: &'static str = "task_list";
    const CONCURRENCY: Concurrency = Concurrency::Shared;
    const TIMEOUT: Duration = Duration::from_secs(60);
    type Provider = Tasks;
    type Args = Args;
    type Output = Output;
    type Stream = Silent;

    async fn invoke(provider: Arc<Tasks>, args: Args, cx: Cx<Silent>) -> Result<Output, ToolError> {
        let session = cx.session_id().to_owned();
        let (list, revision) = cx.blocking(move || Ok(provider.store.list(&session)?)).await?;
        if let Some(since) = args.since.filter(|since| *since > revision) {
            cx.note(format!("since is {since}, and the list is only at revision {revision}"));
        }
        args.answer(&list, revision)
    }

    fn render(output: &Output) -> Option<Node> {
        Some(match &output.markdown {
            Some(text) => Node::Code { language: "markdown".to_owned(), content: text.clone() },
            None => nodes(&output.tasks),
        })
    }
}

impl Args {
    fn answer(&self, list: &List, revision: u64) -> Result<Output, ToolError> {
        let one = self.id.as_deref().map(|id| known(list, id)).transpose()?;
        let asked: List = list
            .iter()
            .filter(|(id, task)| one.is_none_or(|one| one.id == **id) && self.wants(task))
            .map(|(id, task)| (*id, task.clone()))
            .collect();
        let total = u64::try_from(asked.len()).unwrap_or(u64::MAX);
        if self.format == Some(Format::Markdown) {
            let markdown = Some(markdown(&asked));
            return Ok(Output {
                tasks: Vec::new(),
                total,
                revision,
                truncated: false,
                next_offset: None,
                markdown,
            });
        }
        let (offset, limit) = (self.offset.unwrap_or(0), self.limit.unwrap_or(DEFAULT_LIMIT));
        let end = offset.saturating_add(limit);
        let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let told = if one.is_some() { ToldTask::whole } else { ToldTask::brief };
        let tasks = asked.values().skip(count(offset)).take(count(limit)).map(told).collect();
        let next_offset = (end < total).then_some(end);
        Ok(Output { tasks, total, revision, truncated: next_offset.is_some(), next_offset, markdown: None })
    }

    fn wants(&self, task: &Task) -> bool {
        self.status.is_none_or(|status| Status::from(status) == task.status)
            && self.since.is_none_or(|since| task.revision > since)
    }
}

fn known<'a>(list: &'a List, id: &str) -> Result<&'a Task, ToolError> {
    let task = id.trim().trim_start_matches('#').parse::<u64>().ok().and_then(|id| list.get(&id));
    task.ok_or_else(|| {
        ToolError::not_found(format!(
            "id: there is no task {id:?}; the list has {} tasks, task_list without id shows them",
            list.len()
        ))
    })
}
