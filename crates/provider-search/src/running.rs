//! Blocking work of a call that ends when the call does, with partial results on the way.

use std::sync::Arc;
use std::time::{Duration, Instant};

use provider_core::prelude::*;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::engine::stop::Stop;

/// A call that is answered within this time sends no partial results.
const QUIET: Duration = Duration::from_millis(200);
/// Partial results of one thread are this far apart.
const PAUSE: Duration = Duration::from_millis(100);
/// Items of one partial result.
const PART: usize = 100;

/// Runs `work` beside the event loop, and passes on what its [`Trickle`]s send. The work must ask `stop` often.
///
/// # Errors
/// Those of the work; `cancelled`, once the call is given up.
pub(crate) async fn run<T, I, P>(
    cx: &Cx<Events>,
    stop: &Arc<Stop>,
    part: impl Fn(Vec<I>) -> P,
    work: impl FnOnce(Trickle<I>) -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError>
where
    T: Send + 'static,
    I: Send + 'static,
    P: Serialize,
{
    let _dropped = StopOnDrop(stop.clone());
    let (sender, mut parts) = unbounded_channel();
    let trickle = Trickle { sender, waiting: Vec::new(), next: Instant::now() + QUIET };
    let work = cx.blocking(move || work(trickle));
    tokio::pin!(work);
    let mut cancelled = false;
    loop {
        tokio::select! {
            biased;
            () = cx.cancelled(), if !cancelled => {
                cancelled = true;
                stop.now();
            }
            result = &mut work => {
                send_rest(cx, &mut parts, &part).await?;
                return if cancelled { Err(ToolError::cancelled()) } else { result };
            }
            Some(items) = parts.recv() => cx.partial(&part(items)).await?,
        }
    }
}

async fn send_rest<I, P: Serialize>(
    cx: &Cx<Events>,
    parts: &mut UnboundedReceiver<Vec<I>>,
    part: &impl Fn(Vec<I>) -> P,
) -> Result<(), ToolError> {
    while let Ok(items) = parts.try_recv() {
        cx.partial(&part(items)).await?;
    }
    Ok(())
}

/// Ends the work when nobody waits for it any more.
pub(crate) struct StopOnDrop(pub(crate) Arc<Stop>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.now();
    }
}

/// Sends what one thread finds as partial results: not at once, and not one by one.
pub(crate) struct Trickle<I> {
    sender: UnboundedSender<Vec<I>>,
    waiting: Vec<I>,
    next: Instant,
}

impl<I> Clone for Trickle<I> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), waiting: Vec::new(), next: self.next }
    }
}

impl<I> Trickle<I> {
    /// Takes note of something found. What is more than one part at a time is only in the result.
    pub(crate) fn found(&mut self, item: impl FnOnce() -> I) {
        if self.waiting.len() < PART {
            self.waiting.push(item());
        }
        if self.waiting.len() == PART || self.waiting.len() % 16 == 1 {
            self.send_if_due();
        }
    }

    fn send_if_due(&mut self) {
        let now = Instant::now();
        if now >= self.next {
            self.next = now + PAUSE;
            // Nobody receives any more when the call is over.
            let _ = self.sender.send(std::mem::take(&mut self.waiting));
        }
    }
}
