//! `job_list`: which jobs there are.

use std::time::SystemTime;

use provider_core::prelude::*;

use crate::Exec;
use crate::record::JobStatus;

/// Longest command in the list, in characters.
const LONGEST_COMMAND: usize = 200;

/// Lists the jobs of this provider, the oldest first; those that have ended as long as their output is kept.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {}

/// The jobs.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Output {
    /// The jobs, the oldest first.
    jobs: Vec<Listed>,
}

/// A job.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Listed {
    /// Its name for the other tools.
    job_id: String,
    /// The command it was started with, cut where it is long.
    command: String,
    /// How it stands.
    status: JobStatus,
    /// When it was started, in RFC 3339.
    started: String,
    /// The session it belongs to.
    owner: String,
}

pub(crate) struct JobList;

impl DataSource for JobList {
    const NAME: &'static str = "job_list";
    const CONCURRENCY: Concurrency = Concurrency::Shared;
    type Provider = Exec;
    type Args = Args;
    type Output = Output;
    type Stream = Silent;

    async fn invoke(exec: Arc<Exec>, _: Args, _: Cx<Silent>) -> Result<Output, ToolError> {
        let listed = |job: &Arc<crate::job::Job>| Listed {
            job_id: job.id.clone(),
            command: short(&job.command),
            status: job.record.status(),
            started: rfc3339(job.started),
            owner: job.owner.clone(),
        };
        Ok(Output { jobs: exec.jobs.all().iter().map(listed).collect() })
    }

    fn render(output: &Output) -> Option<Node> {
        if output.jobs.is_empty() {
            return Some(Node::text("no jobs"));
        }
        let status = |job: &Listed| serde_json::to_value(job.status).ok()?.as_str().map(str::to_owned);
        let row = |job: &Listed| {
            vec![
                job.job_id.clone(),
                status(job).unwrap_or_default(),
                job.started.clone(),
                job.command.clone(),
            ]
        };
        let headers = ["job", "status", "started", "command"].map(str::to_owned).to_vec();
        Some(Node::Table { headers, rows: output.jobs.iter().map(row).collect() })
    }
}

fn short(command: &str) -> String {
    match command.char_indices().nth(LONGEST_COMMAND) {
        Some((index, _)) => format!("{}…", &command[..index]),
        None => command.to_owned(),
    }
}

/// A moment in UTC, to the second.
fn rfc3339(moment: SystemTime) -> String {
    let seconds = moment.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3_600, rest / 60 % 60, rest % 60)
}

/// The date of a day counted from 1970-01-01, in the Gregorian calendar.
fn civil(days: u64) -> (u64, u64, u64) {
    // Years begin in March here, so that the leap day is the last of one. An era is 400 years.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + carry, month, day)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn moments_are_written_in_utc() {
        let check = |seconds, expected: &str| {
            assert_eq!(rfc3339(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)), expected);
        };
        check(0, "1970-01-01T00:00:00Z");
        check(951_782_399, "2000-02-28T23:59:59Z");
        check(951_782_400, "2000-02-29T00:00:00Z");
        check(1_764_547_199, "2025-11-30T23:59:59Z");
        check(4_102_444_800, "2100-01-01T00:00:00Z");
    }
}
