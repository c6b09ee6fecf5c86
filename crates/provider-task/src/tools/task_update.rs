//! `task_update`: changes tasks, all or none.

use std::time::Duration;

use provider_core::prelude::*;

use super::{ToldStatus, ToldTask, nodes};
use crate::engine::plan::{Change, remarks};
use crate::provider::Tasks;

/// Changes a task of this session's list, or several at once with `tasks`; either all are changed or none. What is not
/// given stays as it is.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The task.
    id: Option<String>,
    /// How far it is.
    status: Option<ToldStatus>,
    /// What is to be done, on one line of at most 500 characters.
    title: Option<String>,
    /// More about it, at most 20,000 characters.
    description: Option<String>,
    /// The id of the task it is a part of; empty for none.
    parent: Option<String>,
    /// The ids of the tasks that come first, instead of those until now.
    depends_on: Option<Vec<String>>,
    /// The revision the task was seen at; the change is refused if it has changed since.
    revision: Option<u64>,
    /// Several changes, instead of `id`.
    tasks: Option<Vec<Item>>,
}

/// One of several changes.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Item {
    /// The task.
    id: String,
    /// How far it is.
    status: Option<ToldStatus>,
    /// What is to be done, on one line of at most 500 characters.
    title: Option<String>,
    /// More about it, at most 20,000 characters.
    description: Option<String>,
    /// The id of the task it is a part of; empty for none.
    parent: Option<String>,
    /// The ids of the tasks that come first, instead of those until now.
    depends_on: Option<Vec<String>>,
    /// The revision the task was seen at; the change is refused if it has changed since.
    revision: Option<u64>,
}

/// The changed tasks.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Output {
    /// How many were changed.
    updated: u64,
    /// The changed tasks.
    tasks: Vec<ToldTask>,
    /// The list's revision; give it to task_list as `since` to see only later changes.
    revision: u64,
}

pub(crate) struct TaskUpdate;

impl Resource for TaskUpdate {
    const NAME: &'static str = "task_update";
    const RISK: Risk = Risk::Low;
    const IDEMPOTENT: bool = false;
    const CONCURRENCY: Concurrency = Concurrency::Keyed(&["id"]);
    const TIMEOUT: Duration = Duration::from_secs(10);
    type Provider = Tasks;
    type Args = Args;
    type Output = Output;
    type Stream = Events;

    async fn invoke(provider: Arc<Tasks>, args: Args, cx: Cx<Events>) -> Result<Output, ToolError> {
        let changes = args.changes()?;
        let session = cx.session_id().to_owned();
        let changed = cx.blocking(move || Ok(provider.store.update(&session, &changes)?)).await?;
        cx.effects().record(format!("changed {} tasks", changed.ids.len()));
        remarks(&changed.list, &changed.ids).into_iter().for_each(|remark| cx.note(remark));
        let tasks: Vec<ToldTask> =
            changed.ids.iter().filter_map(|id| changed.list.get(id)).map(ToldTask::brief).collect();
        Ok(Output {
            updated: u64::try_from(tasks.len()).unwrap_or(u64::MAX),
            tasks,
            revision: changed.revision,
        })
    }

    fn render(output: &Output) -> Option<Node> {
        Some(nodes(&output.tasks))
    }
}

impl Preview for TaskUpdate {
    async fn preview(_: Arc<Tasks>, args: Args, _: &PreviewCx) -> Result<Node, ToolError> {
        Ok(Node::Group(args.changes()?.iter().map(|change| Node::text(shown(change))).collect()))
    }
}

/// A change on one line.
fn shown(change: &Change) -> String {
    let quoted = |text: &String| format!("{:?}", text.trim());
    let parts = [
        change.status.map(|status| format!("status {status}")),
        change.title.as_ref().map(|title| format!("title {}", quoted(title))),
        change.description.as_ref().map(|text| format!("description of {} characters", text.chars().count())),
        change.parent.as_ref().map(|parent| match parent.trim() {
            "" => "part of none".to_owned(),
            parent => format!("part of {parent}"),
        }),
        change.depends_on.as_ref().map(|first| match first.as_slice() {
            [] => "after none".to_owned(),
            first => format!("after {}", first.join(", ")),
        }),
    ];
    format!("task {}: {}", change.id, parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
}

impl Args {
    /// The changes, in whichever way they were given.
    fn changes(self) -> Result<Vec<Change>, ToolError> {
        let items = match (self.id, self.tasks) {
            (Some(id), None) => vec![Item {
                id,
                status: self.status,
                title: self.title,
                description: self.description,
                parent: self.parent,
                depends_on: self.depends_on,
                revision: self.revision,
            }],
            (None, Some(items)) if !items.is_empty() => items,
            (Some(_), Some(_)) => {
                return Err(ToolError::invalid_arguments("tasks: give either id or tasks, not both"));
            }
            (None, _) => return Err(ToolError::invalid_arguments("id: is missing; say which task changes")),
        };
        items.into_iter().map(Change::try_from).collect()
    }
}

impl TryFrom<Item> for Change {
    type Error = ToolError;

    fn try_from(item: Item) -> Result<Self, ToolError> {
        let change = Self {
            id: item.id,
            revision: item.revision,
            status: item.status.map(Into::into),
            title: item.title,
            description: item.description,
            parent: item.parent,
            depends_on: item.depends_on,
        };
        let empty = Self { id: change.id.clone(), revision: change.revision, ..Self::default() };
        if change == empty {
            let message = format!(
                "status: nothing is changed in task {}; give status, title, description, parent or depends_on",
                change.id
            );
            return Err(ToolError::invalid_arguments(message));
        }
        Ok(change)
    }
}
