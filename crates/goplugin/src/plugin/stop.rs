//! Being told to stop.

use std::io;
use std::pin::Pin;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// Why a plugin stops.
///
/// ```
/// use goplugin::plugin::StopReason;
///
/// fn tell(reason: StopReason) -> &'static str {
///     match reason {
///         StopReason::Shutdown => "the host said so",
///         StopReason::Terminated => "somebody sent SIGTERM",
///         StopReason::HostLost => "the host is gone",
///     }
/// }
/// # assert_eq!(tell(StopReason::HostLost), "the host is gone");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The host called Shutdown and waits for the answer.
    Shutdown,
    /// The process received SIGTERM.
    Terminated,
    /// The host has died or closed the connection without a word.
    HostLost,
}

/// Tells every [`Stopping`] made from it to stop. Only the first reason counts.
///
/// [`Listening`](super::Listening) has its own; one made by hand stands in for it in tests.
///
/// ```
/// use goplugin::plugin::{StopReason, Stopper};
///
/// let stopper = Stopper::new();
/// let stopping = stopper.stopping();
/// assert!(!stopping.is_stopping());
/// stopper.stop(StopReason::Terminated);
/// assert_eq!(stopping.reason(), Some(StopReason::Terminated));
/// ```
#[derive(Clone, Debug)]
pub struct Stopper(watch::Sender<Option<StopReason>>);

impl Stopper {
    /// One that has not been told yet.
    pub fn new() -> Self {
        Self(watch::Sender::new(None))
    }

    /// Tells to stop.
    pub fn stop(&self, reason: StopReason) {
        self.0.send_if_modified(|known| {
            let first = known.is_none();
            known.get_or_insert(reason);
            first
        });
    }

    /// A handle that learns of it.
    pub fn stopping(&self) -> Stopping {
        Stopping(self.0.subscribe())
    }
}

impl Default for Stopper {
    fn default() -> Self {
        Self::new()
    }
}

/// Tells when the plugin has to stop. It can be cloned and awaited any number of times.
///
/// ```
/// use goplugin::plugin::Stopping;
///
/// /// Works until told to stop.
/// async fn work(stopping: Stopping) {
///     tokio::select! {
///         _ = stopping.wait() => { /* put things away */ }
///         () = std::future::pending() => { /* the work */ }
///     }
/// }
/// # let _ = work;
/// ```
#[derive(Clone, Debug)]
pub struct Stopping(watch::Receiver<Option<StopReason>>);

impl Stopping {
    /// Whether the plugin has to stop by now.
    pub fn is_stopping(&self) -> bool {
        self.reason().is_some()
    }

    /// Why the plugin has to stop, if it does by now.
    pub fn reason(&self) -> Option<StopReason> {
        *self.0.borrow()
    }

    /// Resolves when the plugin has to stop; at once if it does already.
    pub async fn wait(&self) -> StopReason {
        let mut state = self.0.clone();
        // Nobody is left to stop the plugin when this fails.
        let Ok(reason) = state.wait_for(Option::is_some).await.map(|reason| *reason) else {
            return std::future::pending().await;
        };
        match reason {
            Some(reason) => reason,
            None => std::future::pending().await,
        }
    }
}

impl IntoFuture for Stopping {
    type Output = StopReason;
    type IntoFuture = Pin<Box<dyn Future<Output = StopReason> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.wait().await })
    }
}

/// The signals a plugin handles.
#[derive(Debug)]
pub(super) struct Signals {
    terminate: Signal,
}

impl Signals {
    /// Takes over SIGTERM and SIGINT for the rest of the process's life.
    ///
    /// SIGINT gets a handler that does nothing, not the disposition "ignore": programs the plugin starts
    /// later would inherit the latter.
    pub(super) fn handle() -> io::Result<Self> {
        // The handler outlives this listener, which nobody asks.
        drop(signal(SignalKind::interrupt())?);
        Ok(Self { terminate: signal(SignalKind::terminate())? })
    }

    /// Resolves when SIGTERM has arrived.
    pub(super) async fn terminated(&mut self) {
        if self.terminate.recv().await.is_none() {
            std::future::pending().await
        }
    }
}
