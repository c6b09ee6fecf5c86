//! The configured provider, and what it serves beside its tools.

use provider_core::prelude::*;
use provider_core::{Commands, HookEvent, HookPoint, Hooks};

use crate::engine::changed_files::changed_files;
use crate::engine::plan::PlanError;
use crate::store::{Store, StoreError};
use crate::tools::task_create::TaskCreate;
use crate::tools::task_list::TaskList;
use crate::tools::task_update::TaskUpdate;

/// The lists of what is to be done, one per session.
pub struct Tasks {
    pub(crate) store: Arc<Store>,
}

/// Configuration of the task provider.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct TaskConfig {
    /// Where the lists are kept; by default below the user's state folder.
    pub state_dir: Option<String>,
}

/// What `/plan` sends to the model.
const PLAN: &str = "Plan this before you begin: {goal}\n\nWrite the steps with task_create, in the order they are done, \
                    with depends_on where one needs another. Set a task in_progress when you begin it and completed when \
                    it is done and checked.";

impl Provider for Tasks {
    const NAME: &'static str = "task";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Config = TaskConfig;

    async fn configure(config: TaskConfig, setup: Setup) -> Result<Self, ToolError> {
        let state = setup.state_folder(config.state_dir.as_deref()).ok_or_else(|| {
            ToolError::invalid_arguments(
                "state_dir: there is no home directory to keep tasks below; set state_dir to a folder",
            )
        })?;
        let store = Store::open(&state).map_err(|error| {
            ToolError::invalid_arguments(format!(
                "state_dir: tasks cannot be kept: {error}. Set state_dir to a folder that can be written"
            ))
        })?;
        Ok(Self { store: Arc::new(store) })
    }

    fn tools(tools: &mut Tools<Self>) {
        tools.resource::<TaskCreate>().with_preview();
        tools.resource::<TaskUpdate>().with_preview();
        tools.data_source::<TaskList>();
    }

    fn hooks(hooks: &mut Hooks<Self>) {
        hooks.observe(HookPoint::PostToolCall, |tasks: Arc<Self>, event| async move {
            if let HookEvent::PostToolCall(call, Ok(result)) = event {
                note_files(tasks, call.session_id, &result).await;
            }
        });
    }

    fn commands(commands: &mut Commands<Self>) {
        commands.prompt("plan", "Plan a piece of work as tasks before beginning it", PLAN);
        commands.run("tasks", "Show the task list", TaskList::NAME);
    }
}

/// Notes on the task in progress which files a call has changed.
async fn note_files(tasks: Arc<Tasks>, session: String, result: &serde_json::Value) {
    let files = changed_files(result);
    if files.is_empty() {
        return;
    }
    let noted = tokio::task::spawn_blocking(move || tasks.store.note_files(&session, &files)).await;
    // A hook has no caller to tell.
    match noted {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::warn!(%error, "changed files are not noted on their task"),
        Err(error) => tracing::warn!(%error, "changed files are not noted on their task"),
    }
}

impl From<StoreError> for ToolError {
    fn from(error: StoreError) -> Self {
        match &error {
            StoreError::Plan(PlanError::Wrong(_)) => Self::invalid_arguments(error.to_string()),
            StoreError::Plan(PlanError::Unknown(_)) => Self::not_found(error.to_string()),
            StoreError::Plan(PlanError::Stale(_)) => Self::new(Code::Stale, error.to_string()),
            StoreError::Busy => Self::timeout(error.to_string()),
            StoreError::Unusable { .. } => {
                Self::execution_failed(format!("the task list cannot be used: {error}; nothing was changed"))
            }
        }
    }
}
