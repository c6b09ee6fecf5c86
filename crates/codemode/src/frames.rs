//! Frames over the child's pipes.

use std::io;

use codemode_sandbox::frames::{AnswerKind, FRAME_MARGIN, LONGEST_FRAME, ToParent};
use serde::Serialize;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::host::{Answer, Failure};
use crate::report::CallStatus;

/// Frames from the child.
#[derive(Debug)]
pub(crate) struct Reader<R> {
    source: R,
    buffer: Vec<u8>,
    /// Up to where there is no newline.
    searched: usize,
}

/// Why there is no further frame.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoFrame {
    /// The child has closed its end.
    #[error("it ended without a word")]
    End,
    /// What it sent is none.
    #[error("it sent what is no frame")]
    Nonsense,
    /// The pipe failed.
    #[error("its output cannot be read: {0}")]
    Broken(#[from] io::Error),
}

impl<R: AsyncRead + Unpin> Reader<R> {
    pub(crate) fn new(source: R) -> Self {
        Self { source, buffer: Vec::new(), searched: 0 }
    }

    /// The next frame. May be dropped and called again.
    pub(crate) async fn next(&mut self) -> Result<ToParent, NoFrame> {
        loop {
            if let Some(at) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') {
                let end = self.searched + at;
                let frame = serde_json::from_slice(&self.buffer[..end]).map_err(|_| NoFrame::Nonsense);
                self.buffer.drain(..=end);
                self.searched = 0;
                return frame;
            }
            self.searched = self.buffer.len();
            if self.buffer.len() > LONGEST_FRAME {
                return Err(NoFrame::Nonsense);
            }
            if self.source.read_buf(&mut self.buffer).await? == 0 {
                return Err(NoFrame::End);
            }
        }
    }
}

/// An answer to the child, as a line.
#[derive(Serialize)]
pub(crate) struct AnswerFrame<'a, V: ?Sized> {
    ans: AnswerBody<'a, V>,
}

#[derive(Serialize)]
struct AnswerBody<'a, V: ?Sized> {
    id: u64,
    ok: bool,
    kind: AnswerKind,
    value: &'a V,
}

/// The line that answers a call, and what became of it.
pub(crate) fn of_result(id: u64, result: &Result<Answer, Failure>) -> (Vec<u8>, CallStatus) {
    let line = match result {
        Ok(Answer::Structured(value)) => answer_line(id, true, AnswerKind::Structured, value),
        Ok(Answer::Text(text)) => answer_line(id, true, AnswerKind::Text, text),
        Ok(Answer::Content(items)) => answer_line(id, true, AnswerKind::Content, items),
        Err(failure) => answer_line(id, false, AnswerKind::Text, &failure.message),
    };
    let status = match result {
        Ok(_) => CallStatus::Ok,
        Err(failure) if failure.denied => CallStatus::Denied,
        Err(_) => CallStatus::Failed,
    };
    match line {
        Some(line) => (line, status),
        None => {
            let message = "the tool answered with more than 32 MiB, which cannot be passed on; ask for less";
            (of_answer(id, Err(message.to_owned())), CallStatus::Failed)
        }
    }
}

/// The line of an answer that was made here, and is short.
pub(crate) fn of_answer(id: u64, answer: Result<Value, String>) -> Vec<u8> {
    let line = match answer {
        Ok(value) => answer_line(id, true, AnswerKind::Structured, &value),
        Err(message) => answer_line(id, false, AnswerKind::Text, &message),
    };
    line.unwrap_or_default()
}

/// The line of an answer; `None` when it would be too long.
fn answer_line<V: Serialize + ?Sized>(id: u64, ok: bool, kind: AnswerKind, value: &V) -> Option<Vec<u8>> {
    let mut line = serde_json::to_vec(&AnswerFrame { ans: AnswerBody { id, ok, kind, value } }).ok()?;
    line.push(b'\n');
    // A raw value keeps its own white space, and a line must be one.
    if let Some(inner) = line.len().checked_sub(1).filter(|_| line[..line.len() - 1].contains(&b'\n')) {
        line[..inner]
            .iter_mut()
            .filter(|byte| **byte == b'\n' || **byte == b'\r')
            .for_each(|byte| *byte = b' ');
    }
    (line.len() <= LONGEST_FRAME - FRAME_MARGIN).then_some(line)
}
