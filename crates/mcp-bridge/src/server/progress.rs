//! Progress notifications: only for who asked for them, always increasing, never after the result.

use std::time::Duration;

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RoleServer};
use tokio::time::{Instant, sleep_until};

use super::running::Report;

/// How often a client that waits hears something at least.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(10);
/// Messages that come faster are left to the next heartbeat.
const AT_MOST_EVERY: Duration = Duration::from_millis(100);
/// What the whole is, for a tool that says how much is done.
const WHOLE: f64 = 100.0;
/// How much a sign of life counts where the tool says how much is done.
const LITTLE: f64 = 0.001;

/// Tells the client of one request how its call is getting on.
pub(super) struct Teller {
    /// `None` where the client did not ask.
    token: Option<ProgressToken>,
    peer: Peer<RoleServer>,
    heartbeat: Duration,
    message: String,
    progress: f64,
    has_whole: bool,
    last: Instant,
    told_before: bool,
}

impl Teller {
    pub(super) fn new(
        token: Option<ProgressToken>,
        peer: Peer<RoleServer>,
        heartbeat: Duration,
        message: String,
    ) -> Self {
        let last = Instant::now();
        Self { token, peer, heartbeat, message, progress: 0.0, has_whole: false, last, told_before: false }
    }

    /// Resolves when the client should hear something.
    pub(super) async fn due(&self) {
        sleep_until(self.last + self.heartbeat).await;
    }

    /// Passes on what the call says.
    pub(super) async fn hear(&mut self, report: Report) {
        self.message = report.message;
        match report.fraction {
            Some(fraction) => {
                self.has_whole = true;
                let progress = fraction.clamp(0.0, 1.0) * WHOLE;
                let first = !self.told_before && progress == 0.0;
                if progress > self.progress || first {
                    self.progress = progress;
                    self.send().await;
                }
            }
            None if self.told_before && self.last.elapsed() < AT_MOST_EVERY => {}
            None => self.beat().await,
        }
    }

    /// Says that the call is still running.
    pub(super) async fn beat(&mut self) {
        self.progress += if self.has_whole { LITTLE } else { 1.0 };
        self.send().await;
    }

    async fn send(&mut self) {
        self.last = Instant::now();
        self.told_before = true;
        let Some(token) = self.token.clone() else { return };
        let mut told =
            ProgressNotificationParam::new(token, self.progress).with_message(self.message.clone());
        if self.has_whole {
            told = told.with_total(WHOLE);
        }
        // A client that is gone is noticed where its answer goes.
        if let Err(error) = self.peer.notify_progress(told).await {
            tracing::debug!(%error, "progress is not told");
        }
    }
}
