//! The tools, one file each, and the form in which all of them tell of a task.

pub(crate) mod task_create;
pub(crate) mod task_list;
pub(crate) mod task_update;

use provider_core::Style;
use provider_core::prelude::*;

use crate::engine::task::{Status, Task};

/// One task, as a result tells it.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct ToldTask {
    /// Names the task in this list, for good.
    id: String,
    /// What is to be done.
    title: String,
    /// How far it is.
    status: ToldStatus,
    /// The task it is a part of.
    parent: Option<String>,
    /// The tasks that come first.
    depends_on: Vec<String>,
    /// Counts the list's changes; the one that changed this task last.
    revision: u64,
    /// More about it; told when one task is asked for.
    description: Option<String>,
    /// The files that were changed while it was in progress; told when one task is asked for.
    files: Option<Vec<String>>,
}

/// How far a task is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToldStatus {
    /// Not begun.
    #[default]
    Pending,
    /// Being worked on.
    InProgress,
    /// Done.
    Completed,
    /// Given up.
    Cancelled,
}

impl From<Status> for ToldStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Pending => Self::Pending,
            Status::InProgress => Self::InProgress,
            Status::Completed => Self::Completed,
            Status::Cancelled => Self::Cancelled,
        }
    }
}

impl From<ToldStatus> for Status {
    fn from(status: ToldStatus) -> Self {
        match status {
            ToldStatus::Pending => Self::Pending,
            ToldStatus::InProgress => Self::InProgress,
            ToldStatus::Completed => Self::Completed,
            ToldStatus::Cancelled => Self::Cancelled,
        }
    }
}

impl ToldTask {
    /// A task in a list: without its description and files.
    pub(crate) fn brief(task: &Task) -> Self {
        Self {
            id: task.id.to_string(),
            title: task.title.clone(),
            status: task.status.into(),
            parent: task.parent.map(|parent| parent.to_string()),
            depends_on: task.depends_on.iter().map(u64::to_string).collect(),
            revision: task.revision,
            description: None,
            files: None,
        }
    }

    /// A task by itself: with all there is.
    pub(crate) fn whole(task: &Task) -> Self {
        let description = Some(task.description.clone()).filter(|text| !text.is_empty());
        let files = Some(task.files.clone()).filter(|files| !files.is_empty());
        Self { description, files, ..Self::brief(task) }
    }

    /// The task on one line.
    pub(crate) fn node(&self) -> Node {
        let mark = match self.status {
            ToldStatus::Pending => "[ ]",
            ToldStatus::InProgress => "[>]",
            ToldStatus::Completed => "[x]",
            ToldStatus::Cancelled => "[-]",
        };
        let first = match self.depends_on.as_slice() {
            [] => String::new(),
            first => format!(" (after {})", first.join(", ")),
        };
        let line = format!("{mark} {} {}{first}", self.id, self.title);
        match self.status {
            ToldStatus::Pending => Node::text(line),
            ToldStatus::InProgress => Node::styled(line, Style::Bold),
            ToldStatus::Completed | ToldStatus::Cancelled => Node::styled(line, Style::Dim),
        }
    }
}

/// Tasks as lines.
pub(crate) fn nodes(tasks: &[ToldTask]) -> Node {
    match tasks {
        [] => Node::styled("no tasks", Style::Dim),
        tasks => Node::Group(tasks.iter().map(ToldTask::node).collect()),
    }
}
