//! `execute`: runs a program.

use codemode::{Program, Progress, Reason, Report};
use provider_core::Style;
use provider_core::prelude::*;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::provider::Code;

/// Calls that are listed in a result; the text is what is read.
const MOST_CALLS: usize = 1_000;
/// Lines of a program in its preview.
const PREVIEW_LINES: usize = 400;
/// What happened, but was not told yet, is kept up to so many messages.
const PROGRESS_AHEAD: usize = 256;

/// Runs a short JavaScript program that calls tools, so that calls can be chained, repeated and filtered before anything
/// is read. `code` is the body of an async function, or one expression; an expression that is a function is called with
/// `tools`. A tool is `tools.<provider>.<tool>(input)`, for example
/// `const {matches} = await tools.search.grep({pattern: "TODO"}); return matches.length`. A call resolves to the tool's
/// result object and rejects with an Error whose message is the tool's text; calls made together, with Promise.all, run
/// together. `await tools.$list()` answers all tools, `await tools.$search({query, limit})` those that fit, and
/// `await tools.$describe("provider.tool")` the schemas of one. There is the language and nothing else: no files, network,
/// programs, timers or modules. 256 MiB of memory, 10 s of JavaScript between two answers, 15 minutes in all. You read
/// what the program returned, as JSON (a string as it is), then what it wrote with console.log (64 KiB at most); a program
/// that threw or went over a limit is an error that begins with the reason.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The program: the body of an async function that returns what you want to read, or one expression.
    code: String,
}

/// What the program said.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Output {
    /// What the program returned, then what it wrote to the console.
    pub text: String,
    /// The calls it made, in order, 1,000 at most.
    pub calls: Vec<CallMade>,
}

/// A call that a program made.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct CallMade {
    /// The tool, as provider.tool.
    pub tool: String,
    /// What became of it: ok, failed, denied, cancelled or not_started.
    pub status: String,
}

/// The result that a report is, or the message of the error in its place.
///
/// # Errors
/// The text of a failed program, which begins with the reason.
pub fn outcome(report: Report) -> Result<Output, (Reason, String)> {
    if let Some(reason) = report.reason {
        return Err((reason, report.text));
    }
    let call =
        |call: codemode::CallRecord| CallMade { tool: call.tool, status: call.status.as_str().to_owned() };
    Ok(Output { text: report.text, calls: report.calls.into_iter().take(MOST_CALLS).map(call).collect() })
}

pub(crate) struct Execute;

impl Resource for Execute {
    const NAME: &'static str = "execute";
    const RISK: Risk = Risk::High;
    const IDEMPOTENT: bool = false;
    const CONCURRENCY: Concurrency = Concurrency::Keyed(&["code"]);
    const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(960);
    type Provider = Code;
    type Args = Args;
    type Output = Output;
    type Stream = Events;

    async fn invoke(code: Arc<Code>, args: Args, cx: Cx<Events>) -> Result<Output, ToolError> {
        let host = code.providers.for_session(cx.session_id(), cx.working_directory());
        let cancel = CancellationToken::new();
        let (sender, mut happened) = mpsc::channel(PROGRESS_AHEAD);
        let effects = cx.effects();
        let program = Program::new(Arc::new(host), args.code, cx.call_id())
            .within(code.limits)
            .in_sandbox(code.sandboxing.clone())
            .until(cancel.clone())
            .telling(move |progress| match progress {
                // Kept for the report of a call that is given up.
                Progress::Ended { tool, status } => {
                    effects.record(format!("called {tool}: {}", status.as_str()));
                }
                // Those who watch may be slow, or gone; the program does not wait for them.
                Progress::Console(line) => drop(sender.try_send(line)),
                Progress::Started { tool } => {
                    // What is given up before it ends may have changed something all the same.
                    effects.record(format!("began {tool}"));
                    drop(sender.try_send(format!("calling {tool}")));
                }
            });
        let running = program.run();
        tokio::pin!(running);
        // An arm of its own: while somebody slow is told, the program goes on and its limits hold.
        let telling = async {
            while let Some(message) = happened.recv().await {
                cx.progress(message, None).await;
            }
        };
        tokio::pin!(telling);
        let mut told = false;
        let report = loop {
            tokio::select! {
                biased;
                report = &mut running => break report,
                () = cx.cancelled(), if !cancel.is_cancelled() => cancel.cancel(),
                () = &mut telling, if !told => told = true,
            }
        };
        if !told {
            telling.await;
        }
        let calls = report.calls.len() + report.more_calls;
        if calls > MOST_CALLS {
            cx.note(format!("{calls} calls were made; the first {MOST_CALLS} are listed"));
        }
        outcome(report).map_err(|(reason, text)| match reason {
            Reason::Cancelled => ToolError::cancelled(),
            reason => ToolError::execution_failed(text).with_detail("reason", reason.as_str()),
        })
    }

    fn render(output: &Output) -> Option<Node> {
        let text = Node::text(output.text.clone());
        if output.calls.is_empty() {
            return Some(text);
        }
        let rows = output.calls.iter().map(|call| vec![call.tool.clone(), call.status.clone()]).collect();
        let headers = vec!["call".to_owned(), "status".to_owned()];
        let summary = match output.calls.len() {
            1 => "1 call".to_owned(),
            count => format!("{count} calls"),
        };
        let calls =
            Node::Collapsible { summary, children: vec![Node::Table { headers, rows }], collapsed: true };
        Some(Node::Group(vec![text, calls]))
    }
}

impl Preview for Execute {
    async fn preview(code: Arc<Code>, args: Args, _: &PreviewCx) -> Result<Node, ToolError> {
        use codemode::ToolHost as _;
        let tools = code.providers.tools();
        let names: Vec<&str> = tools.plugins().iter().map(|plugin| plugin.name.as_str()).collect();
        let reach = match names.as_slice() {
            // Perhaps the host runs it, over providers of its own.
            [] => "runs a program".to_owned(),
            names => format!("runs a program that can call tools of {}", names.join(", ")),
        };
        let mut lines = args.code.lines();
        let shown: Vec<&str> = lines.by_ref().take(PREVIEW_LINES).collect();
        let mut nodes = vec![
            Node::text(reach),
            Node::Code { language: "javascript".to_owned(), content: shown.join("\n") },
        ];
        let more = lines.count();
        if more > 0 {
            nodes.push(Node::styled(format!("and {more} more lines"), Style::Warning));
        }
        Ok(Node::Group(nodes))
    }
}
