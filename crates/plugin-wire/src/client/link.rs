//! Requests and answers over a pair of pipes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{mpsc, oneshot};

use crate::conventions::{Decoder, Frame, Framing, method};
use crate::message::{Id, Incoming, Outgoing, RpcError, parse, write};

/// A request that is waited for.
type Waiting = oneshot::Sender<Result<Value, RpcError>>;

/// This side of a connection. Clones share it.
#[derive(Clone)]
pub(super) struct Link(Arc<Shared>);

struct Shared {
    /// `None` once the other side's input has been closed.
    out: Mutex<Option<mpsc::UnboundedSender<Vec<u8>>>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    last: u64,
    waiting: HashMap<Id, Waiting>,
    /// Nothing will be answered any more.
    over: bool,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum NoAnswer {
    /// An error came in its place.
    Refused(RpcError),
    /// The other side is gone.
    Gone,
}

/// A request that has been sent. Dropping it forgets it.
pub(super) struct Request {
    link: Link,
    id: Id,
    answer: oneshot::Receiver<Result<Value, RpcError>>,
    /// Whether it is a call, which can be given up.
    is_call: bool,
}

impl Link {
    /// Starts to write to `stdin`.
    pub(super) fn open(mut stdin: ChildStdin) -> Self {
        let (out, mut pieces) = mpsc::unbounded_channel::<Vec<u8>>();
        tokio::spawn(async move {
            while let Some(piece) = pieces.recv().await {
                // Whoever does not read any more is about to end, which is noticed elsewhere.
                if stdin.write_all(&piece).await.is_err() || stdin.flush().await.is_err() {
                    break;
                }
            }
        });
        Self(Arc::new(Shared { out: Mutex::new(Some(out)), state: Mutex::default() }))
    }

    /// Reads from `stdout` to its end: answers go where they are waited for, the rest to `receive`, and what is no message
    /// to `complain`.
    pub(super) async fn read(
        &self,
        mut stdout: ChildStdout,
        mut receive: impl FnMut(Incoming),
        mut complain: impl FnMut(String),
    ) {
        let mut decoder = Decoder::default();
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = stdout.read(&mut buffer).await {
            decoder.feed(&buffer[..count]);
            while let Some(frame) = decoder.next_frame() {
                match self.frame(frame) {
                    Ok(Some(message)) => receive(message),
                    Ok(None) => {}
                    Err(why) => complain(why),
                }
            }
        }
        self.over();
    }

    fn frame(&self, frame: Frame) -> Result<Option<Incoming>, String> {
        let bytes = match frame {
            Frame::Message(bytes) => bytes,
            Frame::TooLong => return Err("it sent a message that is too long, which was skipped".to_owned()),
            Frame::BadHeader(why) => return Err(format!("it sent what is no message: {why}")),
        };
        match parse(&bytes) {
            Ok(parsed) => match parsed.message {
                Incoming::Response { id, result } => {
                    let waiting = self.state().waiting.remove(&id);
                    if let Some(waiting) = waiting {
                        // Whoever has given up does not wait any more.
                        let _ = waiting.send(result);
                    }
                    Ok(None)
                }
                message => Ok(Some(message)),
            },
            Err(malformed) => {
                let head: String = String::from_utf8_lossy(&bytes).chars().take(80).collect();
                Err(format!(
                    "it wrote what is no message to its standard output ({}): {head}",
                    malformed.error
                ))
            }
        }
    }

    /// Sends a request.
    pub(super) fn request(&self, method: &str, params: Value) -> Request {
        let (sender, answer) = oneshot::channel();
        let id = {
            let mut state = self.state();
            state.last += 1;
            let id = Id::Number(state.last.to_string());
            if !state.over {
                state.waiting.insert(id.clone(), sender);
            }
            id
        };
        self.send(&Outgoing::Request { id: id.clone(), method: method.to_owned(), params });
        Request { link: self.clone(), id, answer, is_call: false }
    }

    /// Sends a call of a tool. When it is dropped before it is answered, the other side is told that it was given up.
    pub(super) fn call(&self, params: Value) -> Request {
        let mut request = self.request(method::TOOL_CALL, params);
        request.is_call = true;
        request
    }

    pub(super) fn answer(&self, id: Id, result: Result<Value, RpcError>) {
        self.send(&Outgoing::Response { id: Some(id), result });
    }

    fn send(&self, message: &Outgoing) {
        let out = self.0.out.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(out) = &*out {
            // A writer that has ended is noticed by the reader.
            let _ = out.send(Framing::Lines.encode(&write(message, true)));
        }
    }

    /// Closes the other side's input, when what is on its way has been written.
    pub(super) fn close(&self) {
        self.0.out.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Nothing will be answered any more.
    fn over(&self) {
        let mut state = self.state();
        state.over = true;
        state.waiting.clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Request {
    /// The answer.
    ///
    /// # Errors
    /// There is none.
    pub(super) async fn answer(&mut self) -> Result<Value, NoAnswer> {
        match (&mut self.answer).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(NoAnswer::Refused(error)),
            Err(_) => Err(NoAnswer::Gone),
        }
    }

    /// Tells the other side that the call is given up.
    pub(super) fn cancel(&self) {
        let params = json!({"id": self.id.to_json()});
        self.link.send(&Outgoing::Notification { method: method::TOOL_CANCEL.to_owned(), params });
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        let unanswered = self.link.state().waiting.remove(&self.id).is_some();
        if unanswered && self.is_call {
            self.cancel();
        }
    }
}
