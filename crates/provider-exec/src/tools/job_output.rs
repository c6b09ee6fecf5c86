//! `job_output`: what a job has printed.

use std::time::Duration;

use provider_core::prelude::*;

use crate::Exec;
use crate::record::JobStatus;
use crate::shown::scrollback;

/// The longest wait, in milliseconds.
const LONGEST_WAIT: u32 = 60_000;

/// Returns what a job has printed from a place on, and how it stands. With wait_ms it waits until there is something.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The job.
    job_id: String,
    /// How many bytes of the output to skip: 0, or next_offset of the last answer. Default 0.
    offset: Option<u64>,
    /// How long to wait for more output, or for the end, in milliseconds. Default 0.
    #[schemars(range(min = 0, max = 60_000))]
    wait_ms: Option<u32>,
}

/// What the job has printed.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Output {
    /// How it stands.
    status: JobStatus,
    /// What it printed from the offset on; escape sequences and overwritten text are taken out.
    output: String,
    /// Where to go on.
    next_offset: u64,
    /// The exit code, once it has ended.
    exit_code: Option<i32>,
    /// The signal that ended it, if one did.
    signal: Option<String>,
    /// Whether it waits for somebody to type on its terminal. Absent without a terminal.
    waiting_for_input: Option<bool>,
}

pub(crate) struct JobOutput;

impl DataSource for JobOutput {
    const NAME: &'static str = "job_output";
    const CONCURRENCY: Concurrency = Concurrency::Shared;
    const TIMEOUT: Duration = Duration::from_secs(70);
    type Provider = Exec;
    type Args = Args;
    type Output = Output;
    type Stream = Silent;

    async fn invoke(exec: Arc<Exec>, args: Args, cx: Cx<Silent>) -> Result<Output, ToolError> {
        let job = exec.jobs.get(&args.job_id)?;
        let offset = args.offset.unwrap_or(0);
        let total = job.record.total();
        if offset > total {
            let message = format!("offset: {} has printed {total} bytes, but the offset is {offset}", job.id);
            return Err(ToolError::invalid_arguments(message));
        }
        let wait = Duration::from_millis(args.wait_ms.unwrap_or(0).min(LONGEST_WAIT).into());
        // No news within the time is an answer, too.
        let _ = tokio::time::timeout(wait, job.record.news(offset)).await;
        let ending = job.record.ending();
        let part = job.record.part(offset, exec.settings.output_bytes).map_err(|error| {
            ToolError::execution_failed(format!("the output of {} cannot be read: {error}", job.id))
        })?;
        if part.lost > 0 {
            cx.note(format!(
                "{} bytes from offset {offset} on are not kept: there was more output than spill_quota_bytes",
                part.lost
            ));
        }
        Ok(Output {
            status: ending.as_ref().map_or(JobStatus::Running, |ending| ending.status),
            output: part.text,
            next_offset: part.next,
            exit_code: ending.as_ref().and_then(|ending| ending.code),
            signal: ending.and_then(|ending| ending.signal),
            waiting_for_input: job.record.waits(),
        })
    }

    fn render(output: &Output) -> Option<Node> {
        let summary = match (output.status, output.exit_code) {
            (JobStatus::Running, _) => "running".to_owned(),
            (_, Some(code)) => format!("ended with exit code {code}"),
            (_, None) => "ended".to_owned(),
        };
        let succeeded = output.status == JobStatus::Running || output.exit_code == Some(0);
        Some(scrollback(&summary, &output.output, succeeded))
    }
}
