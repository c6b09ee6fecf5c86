//! A toolbox as what programs call.

use std::sync::Arc;

use codemode::catalogue::Catalogue;
use codemode::{Answer, Failure, ToolCall, ToolHost};
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use tool_host::source::ToolResult;
use tool_host::{CallError, Host, Invocation, Outcome};

use crate::toolbox::{Answered, Toolbox};

/// The tools of a toolbox, called through a host of the program's own.
pub(crate) struct Programs {
    pub(crate) toolbox: Toolbox,
    pub(crate) host: Host,
}

impl ToolHost for Programs {
    fn tools(&self) -> Arc<Catalogue> {
        self.toolbox.shelf().catalogue.clone()
    }

    fn call<'a>(
        &'a self,
        call: ToolCall,
        cancel: CancellationToken,
    ) -> BoxFuture<'a, Result<Answer, Failure>> {
        Box::pin(async move {
            let shelf = self.toolbox.shelf();
            let Some(entry) = shelf.of_plugin(&call.plugin, &call.tool) else {
                return Err(Failure::new(format!("there is no tool {}.{}", call.plugin, call.tool)));
            };
            let made = self.toolbox.call(&self.host, entry, call.input, Some(call.id));
            match entry.ended(outcome(made, cancel).await) {
                Ok(Answered::Payload(payload)) => {
                    Answer::structured(&payload).map_err(|error| Failure::new(error.to_string()))
                }
                Ok(Answered::Content(result)) => answer(result, entry.output_schema.is_some()),
                Err(error) => Err(failure(error)),
            }
        })
    }
}

/// Reads a call to its end; once `cancel` is cancelled, to the end of what it still reports.
async fn outcome(mut made: Invocation, cancel: CancellationToken) -> Outcome {
    let canceller = made.canceller();
    let mut cancelled = false;
    loop {
        tokio::select! {
            event = made.next() => {
                if event.is_none() {
                    return made.outcome().await;
                }
            }
            () = cancel.cancelled(), if !cancelled => {
                cancelled = true;
                canceller.cancel();
            }
        }
    }
}

/// What a program gets of a result: the value that the tool promises, a list where there are pictures, else the text.
fn answer(result: ToolResult, promises: bool) -> Result<Answer, Failure> {
    if result.failed {
        return Err(Failure::new(result.text_of_content()));
    }
    let written = match result.structured {
        Some(value) if promises => Answer::structured(&value),
        _ if result.has_media() => serde_json::value::to_raw_value(&result.content).map(Answer::Content),
        _ => Ok(Answer::Text(result.text_of_content())),
    };
    written.map_err(|error| Failure::new(error.to_string()))
}

fn failure(error: CallError) -> Failure {
    if error.is_denial() { Failure::denied(error.message) } else { Failure::new(error.message) }
}
