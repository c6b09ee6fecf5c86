//! `execute`: the tool that runs programs over all others.

use std::sync::Arc;
use std::time::Duration;

use codemode::catalogue::{Catalogue, DEFAULT_BUDGET};
use codemode::{Limits, Program, Progress, Reason, Sandboxing};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tool_host::catalogue::Kind;
use tool_host::source::{Annotations, SourceTool, ToolResult};
use tool_host::{Call, CallError, Category, Event, Host, Object, Reporter, Source, ToolSource};

use crate::limits::MOST_CHARACTERS;
use crate::programs::Programs;
use crate::toolbox::Toolbox;

/// The name of the tool, and of what has it.
pub(crate) const EXECUTE: &str = "execute";
const OWNER: &str = "code";

/// How long a call may take: what a program may, and the time to tell.
const LONGEST: Duration = Duration::from_secs(16 * 60);

/// What every program may rely on. The names of the tools follow it.
const CONTRACT: &str = "\
Runs a short JavaScript program that calls tools, so that calls can be chained, repeated and filtered before anything is \
read. `code` is the body of an async function that returns what you want to read, or one expression; an expression that is \
a function is called with `tools`. A tool is `await tools.<plugin>.<tool>(input)`. A call resolves to the tool's result \
object, or to its text where it declares no output; it rejects with an Error whose message is the tool's text. Calls made \
together, with Promise.all, run together. `tools.$list()`, `tools.$search({query, limit})` and \
`tools.$describe(\"plugin.tool\")` tell of tools and their schemas; the description of `code` lists them. There is the \
language and nothing else: no files, network, programs, timers or modules. 256 MiB of memory, 10 s of JavaScript between \
two answers, 15 minutes in all. You read what the program returned, as JSON (a string as it is), then what it wrote with \
console.log (64 KiB at most). A program that threw or went over a limit is an error that begins with the reason.";

/// How programs run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Code {
    pub(crate) limits: Limits,
    pub(crate) sandboxing: Sandboxing,
}

/// The tool for one call: its programs call the toolbox through `host`.
pub(crate) fn source(toolbox: &Toolbox, host: Host, code: Code) -> Source {
    let tool = declare(toolbox);
    let programs = Programs { toolbox: toolbox.clone(), host };
    let execute = Execute { tool: Arc::new(vec![tool]), programs: Arc::new(programs), code };
    Source::new(OWNER, env!("CARGO_PKG_VERSION"), "", execute)
}

/// The tool as it is offered now.
pub(crate) fn declare(toolbox: &Toolbox) -> SourceTool {
    let shelf = toolbox.shelf();
    let catalogue = shelf.catalogue.text(DEFAULT_BUDGET);
    let reads_only = toolbox.setting().refused.contains(&Kind::Resource);
    SourceTool {
        name: EXECUTE.to_owned(),
        title: Some("Run a program over the tools".to_owned()),
        description: format!("{CONTRACT}\n\nTools: {}", name_list(&shelf.catalogue, room_for_names())),
        input_schema: json!({
            "type": "object",
            "properties": {"code": {
                "type": "string",
                "description": format!(
                    "The program: the body of an async function that returns what you want to read, or one \
                     expression.\n\n{}",
                    catalogue.text
                ),
            }},
            "required": ["code"],
        }),
        output_schema: None,
        annotations: Annotations {
            read_only: Some(reads_only),
            destructive: Some(!reads_only),
            idempotent: Some(false),
            open_world: Some(true),
        },
    }
}

/// A call of the tool. A program has its own time, so the call is given a little more.
pub(crate) fn call(toolbox: &Toolbox, arguments: Object) -> Call {
    let setting = toolbox.setting();
    let mut call = Call::new(EXECUTE, arguments, setting.session.clone());
    call.working_directory.clone_from(&setting.working_directory);
    call.timeout = Some(LONGEST);
    call
}

fn room_for_names() -> usize {
    MOST_CHARACTERS.saturating_sub(CONTRACT.chars().count() + "\n\nTools: ".len())
}

/// `plugin: tool, tool; plugin: tool`, as far as the room goes.
pub(crate) fn name_list(catalogue: &Catalogue, room: usize) -> String {
    const MORE: &str = "; and more, which tools.$list() names";
    let all: Vec<String> = catalogue
        .plugins()
        .iter()
        .map(|plugin| {
            let tools: Vec<&str> = plugin.tools.iter().map(|tool| tool.name.as_str()).collect();
            format!("{}: {}", plugin.name, tools.join(", "))
        })
        .collect();
    let whole = all.join("; ");
    if whole.chars().count() <= room {
        return if whole.is_empty() { "none".to_owned() } else { whole };
    }
    let end = whole.char_indices().nth(room.saturating_sub(MORE.len())).map_or(whole.len(), |(end, _)| end);
    let cut = whole[..end].rfind(", ").unwrap_or(0);
    format!("{}{MORE}", &whole[..cut])
}

struct Execute {
    tool: Arc<Vec<SourceTool>>,
    programs: Arc<Programs>,
    code: Code,
}

impl ToolSource for Execute {
    fn tools(&self) -> Arc<Vec<SourceTool>> {
        self.tool.clone()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        watch::channel(0).1
    }

    fn call<'a>(
        &'a self,
        call: &'a Call,
        reporter: &'a Reporter,
    ) -> BoxFuture<'a, Result<ToolResult, CallError>> {
        Box::pin(self.run(call, reporter))
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

impl Execute {
    async fn run(&self, call: &Call, reporter: &Reporter) -> Result<ToolResult, CallError> {
        let code = program_of(call)?;
        let cancel = CancellationToken::new();
        let (sender, mut happened) = mpsc::unbounded_channel();
        let running = Program::new(self.programs.clone(), code, call.id.clone())
            .within(self.code.limits)
            .in_sandbox(self.code.sandboxing.clone())
            .until(cancel.clone())
            .telling(move |progress| {
                // Nobody may be there to be told any more.
                let _ = sender.send(progress);
            })
            .run();
        tokio::pin!(running);
        let report = loop {
            tokio::select! {
                biased;
                report = &mut running => break report,
                () = reporter.cancelled(), if !cancel.is_cancelled() => cancel.cancel(),
                Some(progress) = happened.recv() => tell(progress, reporter).await,
            }
        };
        while let Ok(progress) = happened.try_recv() {
            tell(progress, reporter).await;
        }
        match report.reason {
            Some(Reason::Cancelled) => Err(tool_host::call::cancelled()),
            reason => Ok(ToolResult { failed: reason.is_some(), ..ToolResult::text(report.text) }),
        }
    }
}

fn program_of(call: &Call) -> Result<String, CallError> {
    let wrong =
        |what: &str| CallError::new(Category::InvalidArguments, format!("execute takes {{code}}: {what}"));
    if let Some(other) = call.arguments.keys().find(|name| *name != "code") {
        return Err(wrong(&format!("there is no argument {other}")));
    }
    match call.arguments.get("code") {
        Some(Value::String(code)) => Ok(code.clone()),
        Some(_) => Err(wrong("code must be a string, the program")),
        None => Err(wrong("code is missing")),
    }
}

/// Passes on what those who watch want to see.
async fn tell(progress: Progress, reporter: &Reporter) {
    let message = match progress {
        Progress::Console(line) => line,
        Progress::Started { tool } => format!("waiting for {tool}"),
        Progress::Ended { .. } => return,
    };
    reporter.send(Event::Progress { message, fraction_complete: None }).await;
}

#[cfg(test)]
mod tests {
    use codemode::catalogue::{Plugin, Tool};

    use super::*;

    fn catalogue(count: usize) -> Catalogue {
        let tool = |index: usize| Tool {
            name: format!("a_rather_long_name_of_a_tool_{index}"),
            description: String::new(),
            input_schema: Value::Null,
            output_schema: None,
        };
        Catalogue::new([Plugin { name: "p".to_owned(), tools: (0..count).map(tool).collect() }])
    }

    #[test]
    fn the_description_fits_however_many_tools_there_are() {
        for count in [0, 1, 5, 1_000] {
            let names = name_list(&catalogue(count), room_for_names());
            let length = format!("{CONTRACT}\n\nTools: {names}").chars().count();
            assert!(length <= MOST_CHARACTERS, "{count} tools: {length}");
        }
        assert!(room_for_names() > 700, "the contract leaves room for names: {}", room_for_names());
        assert!(name_list(&catalogue(1_000), 300).ends_with("and more, which tools.$list() names"));
        assert_eq!(name_list(&catalogue(0), 300), "none");
    }
}
