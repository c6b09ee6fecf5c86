//! `job_write`: types something to a job.

use std::time::Duration;

use provider_core::prelude::*;

use crate::Exec;
use crate::job::{InputError, Job};
use crate::record::JobStatus;
use crate::shown::scrollback;

/// How long the answer of a program is waited for.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);
/// A program that prints nothing for so long has answered.
const QUIET: Duration = Duration::from_millis(150);

/// Writes to the standard input or the terminal of a job, and returns what it printed in answer. A line ends with a
/// newline, which is not added.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The job.
    job_id: String,
    /// What to write, literally: "yes\n" answers a question, "\u0003" is Ctrl-C on a terminal.
    #[schemars(extend("x-aliases" = ["text", "stdin"]))]
    input: String,
    /// Whether the input ends after that. Default false.
    close: Option<bool>,
}

/// What the job printed in answer.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Output {
    /// How it stands.
    status: JobStatus,
    /// What it printed after the input was written; see job_output for more.
    output: String,
    /// Whether it waits for somebody to type on its terminal. Absent without a terminal.
    waiting_for_input: Option<bool>,
}

pub(crate) struct JobWrite;

impl Resource for JobWrite {
    const NAME: &'static str = "job_write";
    const RISK: Risk = Risk::High;
    const IDEMPOTENT: bool = false;
    const CONCURRENCY: Concurrency = Concurrency::Keyed(&["job_id"]);
    const TIMEOUT: Duration = Duration::from_secs(70);
    type Provider = Exec;
    type Args = Args;
    type Output = Output;
    type Stream = Events;

    async fn invoke(exec: Arc<Exec>, args: Args, cx: Cx<Events>) -> Result<Output, ToolError> {
        let job = exec.jobs.get(&args.job_id)?;
        let before = job.record.total();
        let length = args.input.len();
        let written = job.write(args.input.into_bytes(), args.close.unwrap_or(false)).await;
        written.map_err(|error| refused(&job, &error))?;
        cx.effects().record(format!("wrote {length} bytes to {}", job.id));
        answered(&job, before).await;
        let part = job.record.part(before, exec.settings.output_bytes).map_err(|error| {
            ToolError::execution_failed(format!("the output of {} cannot be read: {error}", job.id))
        })?;
        if part.next < job.record.total() {
            cx.note(format!("there is more output; go on with job_output from offset {}", part.next));
        }
        Ok(Output { status: job.record.status(), output: part.text, waiting_for_input: job.record.waits() })
    }

    fn render(output: &Output) -> Option<Node> {
        let summary = if output.status == JobStatus::Running { "running" } else { "ended" };
        Some(scrollback(summary, &output.output, true))
    }
}

/// Waits until the program has answered: it has ended, waits to be typed to again, or has become quiet.
async fn answered(job: &Job, before: u64) {
    let answer = async {
        let mut seen = before;
        loop {
            let quiet = tokio::time::timeout(QUIET, job.record.news(seen)).await.is_err();
            let total = job.record.total();
            if !job.is_running() || (total == seen && (quiet || job.record.waits() == Some(true))) {
                return;
            }
            seen = total;
        }
    };
    let _ = tokio::time::timeout(ANSWER_LIMIT, answer).await;
}

fn refused(job: &Job, error: &InputError) -> ToolError {
    let hint = match error {
        InputError::Closed => "; a command that is to be written to is started with pty: true, or with stdin",
        InputError::Full { .. } => "; wait until it reads, or end it with job_kill",
        InputError::Ended | InputError::Io(_) => "",
    };
    ToolError::execution_failed(format!("{} cannot be written to: {error}{hint}", job.id))
}
