//! The events of a call.

use harness_proto::tool::v1 as pb;
use pb::tool_event::Event;

use crate::judge::Judge;
use crate::requirement::requirements;
use crate::transcript::{End, Transcript};

requirements! {
    TERMINAL = "STREAM-01" Must
        "A result or an error closes every stream",
        "a terminal event before the stream ends";
    NOTHING_AFTER = "STREAM-02" Must
        "Nothing follows the terminal event",
        "a stream that ends with its first result or error";
    SINGLE = "STREAM-03" Must
        "A tool that does not stream sends one event",
        "the terminal event alone where streaming is false";
    EXIT_ONCE = "STREAM-04" Must
        "An exit status is sent at most once",
        "one exit_status or none in a stream";
    EXIT_FOREIGN = "STREAM-05" Must
        "Only tools backed by a process send an exit status",
        "no exit_status from a tool that the calls file does not list under process_tools";
    EXIT_SENT = "STREAM-06" Must
        "A tool backed by a process reports its exit",
        "one exit_status with the code that the calls file states";
    CHUNK_STREAM = "STREAM-07" Must
        "Every output chunk says where it came from",
        "STDOUT or STDERR";
    CHUNK_ORDER = "STREAM-08" Must
        "Output chunks keep their order",
        "chunks that make up the output the calls file states";
    PROGRESS = "STREAM-09" Must
        "Progress is a share of the work",
        "fraction_complete from 0 to 1, or absent";
    NO_EMPTY = "STREAM-10" Must
        "Every event says something",
        "one of the known variants";
}

/// What is known about the tool behind a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tool<'a> {
    pub(crate) name: &'a str,
    pub(crate) streaming: bool,
    /// Whether a process does its work; `None` where nobody has said.
    pub(crate) process: Option<bool>,
}

/// Holds a stream that had time to end against the rules.
pub(crate) fn judge(judge: &Judge, tool: Tool<'_>, transcript: &Transcript) {
    let name = tool.name;
    let terminal = transcript.first_terminal().map(|(index, _)| index);
    match (terminal, &transcript.end) {
        (Some(_), End::Open(limit)) => {
            judge.fail(NOTHING_AFTER, format!("{name} left its stream open for {limit:?} after it"));
        }
        (Some(index), _) => {
            judge.pass(TERMINAL);
            let extra: Vec<_> = transcript.events[index + 1..].iter().map(Option::as_ref).map(word).collect();
            judge.demand(NOTHING_AFTER, extra.is_empty(), || {
                format!("{name} sent after it: {}", extra.join(", "))
            });
        }
        // A failure that comes as a status has a rule of its own.
        (None, End::Status(_)) => {}
        (None, _) => judge.fail(TERMINAL, format!("{name} ended with {}", transcript.ending())),
    }
    if let Some(index) = terminal {
        single(judge, tool, index, transcript);
    }
    exits(judge, tool, transcript);
    for event in &transcript.events {
        one_event(judge, name, event.as_ref());
    }
}

/// What an event is called on the wire.
fn word(event: Option<&Event>) -> &'static str {
    match event {
        Some(Event::OutputChunk(_)) => "output_chunk",
        Some(Event::Progress(_)) => "progress",
        Some(Event::PartialResult(_)) => "partial_result",
        Some(Event::ExitStatus(_)) => "exit_status",
        Some(Event::Result(_)) => "result",
        Some(Event::Error(_)) => "error",
        None => "an event that says nothing",
    }
}

fn single(judge: &Judge, tool: Tool<'_>, terminal: usize, transcript: &Transcript) {
    if tool.streaming {
        return judge.unreached(SINGLE, "every tool that was called streams");
    }
    // An exit status and an event that says nothing have rules of their own.
    let ordinary = transcript.events[..terminal]
        .iter()
        .filter(|event| !matches!(event, Some(Event::ExitStatus(_)) | None));
    let lead_up = ordinary.count();
    judge.demand(SINGLE, lead_up == 0, || {
        format!("{} sent {lead_up} events before the terminal one", tool.name)
    });
}

fn exits(judge: &Judge, tool: Tool<'_>, transcript: &Transcript) {
    let exits = transcript.events.iter().filter(|event| matches!(event, Some(Event::ExitStatus(_)))).count();
    let name = tool.name;
    judge.demand(EXIT_ONCE, exits <= 1, || format!("{name} sent {exits}"));
    match tool.process {
        Some(false) => judge.demand(EXIT_FOREIGN, exits == 0, || format!("{name} sent {exits}")),
        Some(true) => judge.unreached(EXIT_FOREIGN, "every tool that was called is backed by a process"),
        None => judge.unreached(EXIT_FOREIGN, "only --calls says which tools are backed by a process"),
    }
}

fn one_event(judge: &Judge, name: &str, event: Option<&Event>) {
    judge.demand(NO_EMPTY, event.is_some(), || format!("{name} sent an event without a variant"));
    match event {
        Some(Event::OutputChunk(chunk)) => {
            let known = chunk.stream() != pb::OutputStream::Unspecified;
            judge.demand(CHUNK_STREAM, known, || format!("{name} sent a chunk of no stream"));
        }
        Some(Event::Progress(progress)) => {
            let fraction = progress.fraction_complete;
            judge.demand(PROGRESS, fraction.is_none_or(|fraction| (0.0..=1.0).contains(&fraction)), || {
                format!("{name} sent {fraction:?}")
            });
        }
        _ => {}
    }
    judge.unreached(CHUNK_STREAM, "no call sent output");
    judge.unreached(PROGRESS, "no call sent progress");
}
