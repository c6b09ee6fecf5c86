//! The server's side.

mod answer;
mod declare;
mod http;
mod instructions;
mod progress;
mod questions;
mod requests;
mod rounds;
mod running;
mod secret;
mod stdio;

use std::sync::Arc;
use std::time::Duration;

use codemode::{Limits, Sandboxing};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use rmcp::ErrorData;
use rmcp::model::{CallToolResponse, CallToolResult, Implementation};
use rmcp::service::{RequestContext, RoleServer};
use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tool_host::{Object, Outcome};

use crate::execute::{self, Code, EXECUTE};
use crate::toolbox::{Entry, Shelf, Toolbox, no_such_tool};
use progress::Teller;
use questions::{Asked, ClientAnswers, Reply};
use rounds::Rounds;
use running::Running;

pub use http::{Access, HttpError, Serving, serve_http};
pub use stdio::{ServeError, serve_stdio, serve_stream};

/// How long calls may take to end once the client is gone.
const LAST_WORDS: Duration = Duration::from_millis(1_500);

/// How agents see the tools.
#[derive(Clone, Debug)]
pub enum View {
    /// One tool, `execute`, whose programs call all others.
    Code {
        /// What a program may use.
        limits: Limits,
        /// How its sandbox is made.
        sandboxing: Sandboxing,
    },
    /// Every tool by itself.
    Separate {
        /// Whether results are values that fit a declared schema, in place of texts for reading.
        structured: bool,
    },
}

/// A server of the tools of a toolbox. Clones are the same server.
#[derive(Clone)]
pub struct Bridge(Arc<Inner>);

struct Inner {
    toolbox: Toolbox,
    view: View,
    identity: Implementation,
    rounds: Rounds,
    /// A client shows one question at a time.
    dialog: Mutex<()>,
    heartbeat: Duration,
    /// Cancelled once the client is gone, or the server is to end.
    closing: CancellationToken,
}

impl std::fmt::Debug for Bridge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bridge")
            .field("toolbox", &self.0.toolbox)
            .field("view", &self.0.view)
            .finish_non_exhaustive()
    }
}

/// A call at work, and what is needed to tell its end.
struct Work {
    /// The tool as the client calls it.
    name: String,
    /// The tool as `plugin.tool`.
    label: String,
    running: Running,
    /// `None` for a program.
    entry: Option<Entry>,
}

impl Bridge {
    /// A server of that name and version.
    ///
    /// # Errors
    /// The system has no random numbers, without which no state can be sealed.
    pub fn new(
        toolbox: Toolbox,
        view: View,
        name: impl Into<String>,
        version: impl Into<String>,
    ) -> std::io::Result<Self> {
        Ok(Self(Arc::new(Inner {
            toolbox,
            view,
            identity: Implementation::new(name, version),
            rounds: Rounds::new()?,
            dialog: Mutex::new(()),
            heartbeat: progress::HEARTBEAT,
            closing: CancellationToken::new(),
        })))
    }

    /// The same with another time between two signs of life; only before it is served.
    #[must_use]
    pub fn with_heartbeat(mut self, heartbeat: Duration) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.heartbeat = heartbeat;
        }
        self
    }

    /// Gives up all calls. What serves this server then ends.
    pub fn close(&self) {
        self.0.closing.cancel();
        self.0.rounds.clear();
    }

    fn begin(&self, name: &str, arguments: Object, client_can_ask: bool) -> Result<Begun, ErrorData> {
        let (answers, questions) = ClientAnswers::new(client_can_ask);
        let host = self.0.toolbox.host().clone().answered_by(answers);
        let (made, entry, label) = match &self.0.view {
            View::Code { limits, sandboxing } => {
                if name != EXECUTE {
                    return Err(unknown(name, &[EXECUTE.to_owned()]));
                }
                let code = Code { limits: *limits, sandboxing: sandboxing.clone() };
                let source = execute::source(&self.0.toolbox, host.clone(), code);
                (host.call_source(&source, execute::call(&self.0.toolbox, arguments)), None, name.to_owned())
            }
            View::Separate { .. } => {
                let shelf = self.0.toolbox.shelf();
                let Some(entry) = shelf.named(name) else { return self.refusal(&shelf, name) };
                let label = format!("{}.{}", entry.owner.name(), entry.tool.name);
                (self.0.toolbox.call(&host, entry, arguments, None), Some(entry.clone()), label)
            }
        };
        let running = Running::follow(made, questions);
        Ok(Begun::Works(Box::new(Work { name: name.to_owned(), label, running, entry })))
    }

    /// What a call of a tool that is not offered gets: the reason, where it exists but is refused.
    fn refusal(&self, shelf: &Shelf, name: &str) -> Result<Begun, ErrorData> {
        match shelf.refused.get(name) {
            Some(error) => Ok(Begun::Refused(answer::failed(error))),
            None => Err(unknown(name, &shelf.names)),
        }
    }

    /// Follows a call for one request, to its end or to a question that ends the request.
    async fn drive(
        &self,
        mut work: Work,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let stateless = requests::is_stateless(context);
        let mut teller = Teller::new(
            context.meta.get_progress_token(),
            context.peer.clone(),
            self.0.heartbeat,
            format!("waiting for {}", work.label),
        );
        let mut dialogs = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                () = context.ct.cancelled() => return Err(given_up()),
                () = self.0.closing.cancelled() => {
                    work.running.cancel();
                    // Whatever it says now, nobody reads it.
                    let _ = timeout(LAST_WORDS, &mut work.running.done).await;
                    return Err(given_up());
                }
                Some(report) = work.running.reports.recv() => teller.hear(report).await,
                outcome = &mut work.running.done => {
                    let outcome = outcome.unwrap_or_else(|_| Err(tool_host::call::cancelled()));
                    return Ok(self.result(&work, outcome).await.into());
                }
                Some(asked) = work.running.questions.recv() => {
                    if stateless {
                        return Ok(self.0.rounds.park(work, asked).into());
                    }
                    dialogs.push(self.put(asked, context));
                }
                Some(()) = dialogs.next() => {}
                () = teller.due() => teller.beat().await,
            }
        }
    }

    /// Puts a question to the client, during the call.
    async fn put(&self, mut asked: Asked, context: &RequestContext<RoleServer>) {
        let _dialog = self.0.dialog.lock().await;
        let reply = tokio::select! {
            reply = requests::elicit(&context.peer, asked.params.clone()) => reply,
            () = asked.reply.closed() => return,
        };
        let reply = reply.unwrap_or_else(|error| Reply::Failed(error.to_string()));
        // A question whose time is up has answered itself.
        let _ = asked.reply.send(reply);
    }

    async fn result(&self, work: &Work, outcome: Outcome) -> CallToolResult {
        match (&work.entry, &self.0.view) {
            (Some(entry), View::Separate { structured }) => {
                answer::of_tool(entry, *structured, outcome).await
            }
            _ => answer::of_program(outcome),
        }
    }
}

/// What became of a request for a call.
enum Begun {
    Works(Box<Work>),
    Refused(CallToolResult),
}

fn unknown(name: &str, known: &[String]) -> ErrorData {
    ErrorData::invalid_params(no_such_tool(name, known).message, None)
}

/// The answer to a request that was cancelled. No client reads it.
fn given_up() -> ErrorData {
    ErrorData::internal_error("the call was cancelled", None)
}
