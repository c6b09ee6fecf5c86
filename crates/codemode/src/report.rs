//! What came of a program, and how it reads.

use codemode_sandbox::frames::{Done, Reason};

use crate::program::Limits;

/// Calls listed one by one; beyond that they are only counted.
const LISTED: usize = 50;
/// Bytes of a message or a stack: what 65,536 UTF-16 units can have.
const LONGEST_MESSAGE: usize = 3 * 65_536;
/// Rejections that are told.
const MOST_UNHANDLED: usize = 20;

/// What came of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Why it failed; `None` when it did not.
    pub reason: Option<Reason>,
    /// What the agent reads: what the program returned and wrote, or else the reason first.
    pub text: String,
    /// The calls it made, in the order it made them.
    pub calls: Vec<CallRecord>,
    /// Calls that it made after those.
    pub more_calls: usize,
}

/// A call that a program made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallRecord {
    /// The tool, as `plugin.tool`.
    pub tool: String,
    /// What became of it.
    pub status: CallStatus,
}

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallStatus {
    /// It answered.
    Ok,
    /// It failed.
    Failed,
    /// It was refused before it was made.
    Denied,
    /// It was running when the program ended, and was given up.
    Cancelled,
    /// It was waiting for its turn when the program ended.
    NotStarted,
}

impl CallStatus {
    /// The name, for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Denied => "denied",
            Self::Cancelled => "cancelled",
            Self::NotStarted => "not_started",
        }
    }

    /// The status for people.
    fn in_words(self) -> &'static str {
        match self {
            Self::Cancelled => "running (cancelled)",
            Self::NotStarted => "not started",
            other => other.as_str(),
        }
    }
}

impl Report {
    /// A report of how a program ended, what it wrote, and what it called. What the child said is cut to what it may
    /// say.
    pub(crate) fn new(
        mut done: Done,
        limits: &Limits,
        console: &str,
        calls: Vec<CallRecord>,
        more_calls: usize,
    ) -> Self {
        bound(&mut done, limits);
        let text = match done.reason {
            None => success(&done, console),
            Some(reason) => failure(reason, &done, console, limits) + &calls_made(&calls, more_calls),
        };
        Self { reason: done.reason, text, calls, more_calls }
    }
}

/// A child that keeps to its limits never sends more than this.
fn bound(done: &mut Done, limits: &Limits) {
    let cut = |text: &mut String, most: usize| text.truncate(text.floor_char_boundary(most));
    cut(&mut done.message, LONGEST_MESSAGE);
    cut(&mut done.stack, LONGEST_MESSAGE);
    if let Some(value) = &mut done.value {
        cut(&mut value.text, limits.value);
    }
    done.unhandled.truncate(MOST_UNHANDLED);
    done.unhandled.iter_mut().for_each(|text| cut(text, LONGEST_MESSAGE));
}

fn success(done: &Done, console: &str) -> String {
    match (&done.value, console) {
        (None, "") => "(no value: use return)".to_owned(),
        (None, console) => console.to_owned(),
        (Some(value), "") => value.text.clone(),
        (Some(value), console) => format!("{}\n\n{console}", value.text),
    }
}

fn failure(reason: Reason, done: &Done, console: &str, limits: &Limits) -> String {
    let mut head = format!("{reason}: {}", message(reason, done, limits.value));
    if !done.stack.is_empty() {
        head = format!("{head}\n{}", done.stack);
    }
    let mut parts = vec![head];
    let also = if reason == Reason::UnhandledRejection { 1 } else { 0 };
    let more: Vec<&str> = done.unhandled.iter().skip(also).map(String::as_str).collect();
    if !more.is_empty() {
        parts.push(format!("Also rejected, and not handled: {}", more.join("; ")));
    }
    parts.extend(done.value.as_ref().map(|value| value.text.clone()).filter(|text| !text.is_empty()));
    if !console.is_empty() {
        parts.push(console.to_owned());
    }
    parts.join("\n\n")
}

fn calls_made(calls: &[CallRecord], more: usize) -> String {
    match calls {
        [] => String::new(),
        calls => format!("\n\nCalls made: {}", calls_in_words(calls, more)),
    }
}

fn message(reason: Reason, done: &Done, value_limit: usize) -> String {
    match (reason, &done.value, done.unhandled.first()) {
        (Reason::ResultTooLarge, Some(value), _) => format!(
            "the value has {} KiB, at most {} KiB are shown; return less of it. It begins:",
            value.bytes.div_ceil(1_024),
            value_limit / 1_024
        ),
        (Reason::UnhandledRejection, _, Some(first)) => first.clone(),
        _ => done.message.clone(),
    }
}

/// `fx.echo ok (3 times), fx.boom failed`: equal neighbours together.
fn calls_in_words(calls: &[CallRecord], more: usize) -> String {
    let groups: Vec<(&CallRecord, usize)> = calls
        .chunk_by(|one, next| one == next)
        .filter_map(|group| Some((group.first()?, group.len())))
        .collect();
    let one = |(call, count): &(&CallRecord, usize)| match count {
        1 => format!("{} {}", call.tool, call.status.in_words()),
        count => format!("{} {} ({count} times)", call.tool, call.status.in_words()),
    };
    let mut words: Vec<String> = groups.iter().take(LISTED).map(one).collect();
    let more = more + groups.iter().skip(LISTED).map(|(_, count)| count).sum::<usize>();
    if more > 0 {
        words.push(format!("and {more} more"));
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use codemode_sandbox::frames::Text;

    use super::*;

    fn value(text: &str) -> Option<Text> {
        Some(Text { text: text.to_owned(), bytes: text.len() })
    }

    #[track_caller]
    fn check(done: Done, console: &str, calls: &[(&str, CallStatus)], expected: &str) {
        let record =
            |(tool, status): &(&str, CallStatus)| CallRecord { tool: (*tool).to_owned(), status: *status };
        let limits = Limits { value: 1_024, ..Limits::default() };
        let report = Report::new(done, &limits, console, calls.iter().map(record).collect(), 0);
        assert_eq!(report.text, expected);
    }

    #[test]
    fn a_success_reads_value_then_console() {
        check(Done { value: value("q"), ..Done::default() }, "l", &[], "q\n\nl");
        check(Done { value: value(""), ..Done::default() }, "", &[], "");
        check(Done::default(), "l", &[], "l");
        check(Done::default(), "", &[("fx.echo", CallStatus::Ok)], "(no value: use return)");
    }

    #[test]
    fn a_failure_begins_with_its_reason_and_ends_with_the_calls() {
        let done = Done {
            stack: "    at program.js:3:1".to_owned(),
            ..Done::failed(Reason::Threw, "TypeError: bad")
        };
        let calls = [
            ("weather.forecast", CallStatus::Ok),
            ("weather.forecast", CallStatus::Ok),
            ("exec.bash", CallStatus::Cancelled),
        ];
        check(
            done,
            "l",
            &calls,
            "threw: TypeError: bad\n    at program.js:3:1\n\nl\n\n\
             Calls made: weather.forecast ok (2 times), exec.bash running (cancelled)",
        );
    }

    #[test]
    fn what_a_child_says_is_cut_to_what_it_may_say() {
        let long = "é".repeat(1 << 20);
        let unhandled = vec![long.clone(); 100];
        let done = Done { stack: long.clone(), value: value(&long), unhandled, ..Done::default() };
        let done = Done { reason: Some(Reason::Threw), message: long, ..done };
        let report = Report::new(done, &Limits::default(), "", Vec::new(), 0);
        let most = 22 * LONGEST_MESSAGE + Limits::default().value;
        assert!(report.text.len() <= most + 1_024, "{}", report.text.len());
    }

    #[test]
    fn calls_beyond_those_that_are_kept_are_counted() {
        let calls = vec![CallRecord { tool: "fx.echo".to_owned(), status: CallStatus::Ok }];
        let report = Report::new(Done::failed(Reason::Threw, "x"), &Limits::default(), "", calls, 3);
        assert_eq!(report.text, "threw: x\n\nCalls made: fx.echo ok, and 3 more");
    }

    #[test]
    fn rejections_and_values_are_both_told() {
        let unhandled = vec!["Error: boom!".to_owned(), "Error: bang!".to_owned()];
        let reason = Some(Reason::UnhandledRejection);
        check(
            Done { reason, value: value("1"), unhandled, ..Done::default() },
            "",
            &[],
            "unhandled-rejection: Error: boom!\n\nAlso rejected, and not handled: Error: bang!\n\n1",
        );
    }
}
