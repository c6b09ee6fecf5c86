//! `task_create`: adds tasks, all or none.

use std::time::Duration;

use provider_core::prelude::*;

use super::{ToldStatus, ToldTask, nodes};
use crate::engine::plan::{NewTask, remarks};
use crate::provider::Tasks;

/// Adds a task to this session's list, or several at once with `tasks`; either all are added or none. Ids stay the same
/// for good.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// What is to be done, on one line of at most 500 characters.
    title: Option<String>,
    /// More about it, at most 20,000 characters.
    description: Option<String>,
    /// How far it is; by default pending.
    status: Option<ToldStatus>,
    /// The id of the task it is a part of.
    parent: Option<String>,
    /// The ids of the tasks that come first.
    depends_on: Option<Vec<String>>,
    /// Several tasks, instead of `title`. Here `#1` in parent and depends_on is the first of them, `#2` the second.
    tasks: Option<Vec<Item>>,
}

/// One of several new tasks.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Item {
    /// What is to be done, on one line of at most 500 characters.
    title: String,
    /// More about it, at most 20,000 characters.
    description: Option<String>,
    /// How far it is; by default pending.
    status: Option<ToldStatus>,
    /// The id of the task it is a part of.
    parent: Option<String>,
    /// The ids of the tasks that come first.
    depends_on: Option<Vec<String>>,
}

/// The new tasks.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Output {
    /// How many were added.
    created: u64,
    /// The new tasks.
    tasks: Vec<ToldTask>,
    /// The list's revision; give it to task_list as `since` to see only later changes.
    revision: u64,
}

pub(crate) struct TaskCreate;

impl Resource for TaskCreate {
    const NAME: &'static str = "task_create";
    const RISK: Risk = Risk::Low;
    const IDEMPOTENT: bool = false;
    const CONCURRENCY: Concurrency = Concurrency::Keyed(&["title"]);
    const TIMEOUT: Duration = Duration::from_secs(10);
    type Provider = Tasks;
    type Args = Args;
    type Output = Output;
    type Stream = Events;

    async fn invoke(provider: Arc<Tasks>, args: Args, cx: Cx<Events>) -> Result<Output, ToolError> {
        let new = args.tasks()?;
        let session = cx.session_id().to_owned();
        let changed = cx.blocking(move || Ok(provider.store.create(&session, &new)?)).await?;
        cx.effects().record(format!("added {} tasks", changed.ids.len()));
        remarks(&changed.list, &changed.ids).into_iter().for_each(|remark| cx.note(remark));
        let tasks: Vec<ToldTask> =
            changed.ids.iter().filter_map(|id| changed.list.get(id)).map(ToldTask::brief).collect();
        Ok(Output {
            created: u64::try_from(tasks.len()).unwrap_or(u64::MAX),
            tasks,
            revision: changed.revision,
        })
    }

    fn render(output: &Output) -> Option<Node> {
        Some(nodes(&output.tasks))
    }
}

impl Preview for TaskCreate {
    async fn preview(_: Arc<Tasks>, args: Args, _: &PreviewCx) -> Result<Node, ToolError> {
        let line = |task: &NewTask| Node::text(format!("add task: {}", task.title.trim()));
        Ok(Node::Group(args.tasks()?.iter().map(line).collect()))
    }
}

impl Args {
    /// The new tasks, in whichever way they were given.
    fn tasks(self) -> Result<Vec<NewTask>, ToolError> {
        match (self.title, self.tasks) {
            (Some(title), None) => {
                let (description, status, parent, depends_on) =
                    (self.description, self.status, self.parent, self.depends_on);
                Ok(vec![Item { title, description, status, parent, depends_on }.into()])
            }
            (None, Some(items)) if !items.is_empty() => Ok(items.into_iter().map(NewTask::from).collect()),
            (Some(_), Some(_)) => {
                Err(ToolError::invalid_arguments("tasks: give either title or tasks, not both"))
            }
            (None, _) => Err(ToolError::invalid_arguments("title: is missing; say what is to be done")),
        }
    }
}

impl From<Item> for NewTask {
    fn from(item: Item) -> Self {
        Self {
            title: item.title,
            description: item.description.unwrap_or_default(),
            status: item.status.unwrap_or_default().into(),
            parent: item.parent,
            depends_on: item.depends_on.unwrap_or_default(),
        }
    }
}
