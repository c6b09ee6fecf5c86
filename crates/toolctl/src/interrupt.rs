//! Ctrl-C, a terminal that closes, and the polite request to end.

use std::future::Future;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::Failure;

/// Watches for SIGINT, SIGTERM, SIGHUP and SIGQUIT. While it exists they no longer end the program by themselves.
pub(crate) struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    quit: Signal,
}

impl Interrupts {
    pub(crate) fn watch() -> Result<Self, Failure> {
        let watch =
            |kind| signal(kind).map_err(|error| Failure::provider(format!("cannot watch signals: {error}")));
        Ok(Self {
            interrupt: watch(SignalKind::interrupt())?,
            terminate: watch(SignalKind::terminate())?,
            hang_up: watch(SignalKind::hangup())?,
            quit: watch(SignalKind::quit())?,
        })
    }

    /// Resolves at the next one.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hang_up.recv() => {}
            _ = self.quit.recv() => {}
        }
    }

    /// Waits for `work`, unless interrupted; then `work` is dropped.
    pub(crate) async fn guard<T>(
        &mut self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        tokio::select! {
            biased;
            done = work => done,
            () = self.next() => Err(Failure::interrupted()),
        }
    }
}
