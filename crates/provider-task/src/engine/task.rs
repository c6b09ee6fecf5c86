//! One task.

use std::fmt;

/// One thing to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Unique in its list, counted from 1, never used again.
    pub id: u64,
    /// What is to be done, on one line.
    pub title: String,
    /// More about it; may be empty.
    pub description: String,
    /// How far it is.
    pub status: Status,
    /// The task it is a part of.
    pub parent: Option<u64>,
    /// The tasks that come first, in ascending order.
    pub depends_on: Vec<u64>,
    /// The files that were changed while it was in progress, in the order of their first change.
    pub files: Vec<String>,
    /// The revision of the list that changed it last.
    pub revision: u64,
}

/// How far a task is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Status {
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

impl Status {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Pending, Self::InProgress, Self::Completed, Self::Cancelled];

    /// The name on the wire and in the store.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
        }
    }

    /// The status of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

    /// Whether nothing more is to be done.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Cancelled)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
