//! `job_kill`: ends a job.

use std::time::Duration;

use provider_core::prelude::*;
use provider_core::supervisor::signal_name;

use crate::Exec;
use crate::record::JobStatus;

/// What killing may take after the grace.
const KILL_LIMIT: Duration = Duration::from_secs(4);
/// How long a signal that need not end a job is given to show its effect.
const EFFECT: Duration = Duration::from_millis(500);

/// Ends a job with all its processes: SIGTERM, and SIGKILL for what is left after a grace of two seconds. SIGKILL ends
/// it at once. Any other signal is only sent.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The job.
    job_id: String,
    /// The signal, such as TERM, KILL, INT or HUP. Default TERM.
    signal: Option<String>,
}

/// How the job stands after that.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Output {
    /// How it stands.
    status: JobStatus,
    /// The exit code, if it has ended.
    exit_code: Option<i32>,
    /// The signal that ended it, if one did.
    signal: Option<String>,
}

pub(crate) struct JobKill;

impl Resource for JobKill {
    const NAME: &'static str = "job_kill";
    const RISK: Risk = Risk::Moderate;
    const IDEMPOTENT: bool = false;
    const CONCURRENCY: Concurrency = Concurrency::Keyed(&["job_id"]);
    const TIMEOUT: Duration = Duration::from_secs(70);
    type Provider = Exec;
    type Args = Args;
    type Output = Output;
    type Stream = Events;

    async fn invoke(exec: Arc<Exec>, args: Args, cx: Cx<Events>) -> Result<Output, ToolError> {
        let job = exec.jobs.get(&args.job_id)?;
        let signal = number(args.signal.as_deref().unwrap_or("TERM"))?;
        if !job.is_running() {
            cx.note(format!("{} had ended already", job.id));
        } else if matches!(signal, TERM | KILL) {
            let grace = if signal == KILL { Duration::ZERO } else { exec.settings.grace };
            job.end(signal, grace);
            cx.effects().record(format!("sent {} to {}", signal_name(signal), job.id));
            let _ = tokio::time::timeout(grace + KILL_LIMIT, job.record.ended()).await;
        } else {
            job.signal(signal);
            cx.effects().record(format!("sent {} to {}", signal_name(signal), job.id));
            let _ = tokio::time::timeout(EFFECT, job.record.ended()).await;
        }
        let ending = job.record.ending();
        Ok(Output {
            status: job.record.status(),
            exit_code: ending.as_ref().and_then(|ending| ending.code),
            signal: ending.and_then(|ending| ending.signal),
        })
    }

    fn render(output: &Output) -> Option<Node> {
        let how = match (output.status, &output.signal, output.exit_code) {
            (JobStatus::Running, _, _) => "still running".to_owned(),
            (_, Some(signal), _) => format!("ended by {signal}"),
            (_, None, Some(code)) => format!("ended with exit code {code}"),
            (_, None, None) => "ended".to_owned(),
        };
        Some(Node::text(how))
    }
}

const TERM: i32 = 15;
const KILL: i32 = 9;

/// The number of a signal that is named as people name it: TERM, SIGTERM, sigterm, 15.
fn number(name: &str) -> Result<i32, ToolError> {
    let bare = name.trim().to_ascii_uppercase();
    let bare = bare.strip_prefix("SIG").unwrap_or(&bare);
    let known = |number: &i32| signal_name(*number) == format!("SIG{bare}") || number.to_string() == bare;
    (1..32).find(known).ok_or_else(|| {
        let message =
            format!("signal: there is no signal {name:?}; common ones are TERM, KILL, INT, HUP and USR1");
        ToolError::invalid_arguments(message)
    })
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn signals_are_known_by_every_usual_name() {
        for name in ["TERM", "SIGTERM", "sigterm", "15", " term "] {
            assert_eq!(number(name).unwrap(), 15, "{name}");
        }
        assert_eq!(number("KILL").unwrap(), 9);
        for name in ["", "SIG", "0", "99", "TERMINATE"] {
            assert!(number(name).is_err(), "{name:?}");
        }
    }
}
