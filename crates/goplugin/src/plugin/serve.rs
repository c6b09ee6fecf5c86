//! Serving until told to stop.

use std::io;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tonic::service::Routes;

use super::lost::Links;
use super::services::{self, Stopped};
use super::{Listening, StopReason};
use crate::os;
use crate::socket::{self, Incoming, Listener};

/// How long the plugin may take to end what it does. A host kills two seconds after Shutdown.
const LONGEST_STOP: Duration = Duration::from_millis(1500);

/// How long open calls, the answer to Shutdown among them, may take to be written after that.
const LONGEST_DRAIN: Duration = Duration::from_millis(250);

/// Why a plugin could not serve.
///
/// ```
/// use goplugin::plugin::{Listening, ServeError};
/// use std::process::ExitCode;
///
/// async fn serve(listening: Listening, services: tonic::service::Routes) -> ExitCode {
///     match listening.serve(services, |_reason| async {}).await {
///         Ok(_reason) => ExitCode::SUCCESS,
///         Err(error @ (ServeError::Handshake(_) | ServeError::Server(_))) => {
///             eprintln!("{error}");
///             ExitCode::FAILURE
///         }
///         Err(_) => ExitCode::FAILURE,
///     }
/// }
/// # let _ = serve;
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The handshake could not be written: the host does not read it.
    #[error("cannot tell the host where the plugin listens: {0}")]
    Handshake(#[source] io::Error),
    /// The server ended without having been stopped.
    #[error("the plugin's server failed: {0}")]
    Server(#[source] Box<dyn std::error::Error + Send + Sync>),
}

type Serving = JoinHandle<Result<(), tonic::transport::Error>>;

impl Listening {
    /// Prints the handshake and serves until the host calls Shutdown, SIGTERM arrives, or the host is gone.
    ///
    /// When that happens, every [`Stopping`](super::Stopping) resolves, and `on_stop` is awaited for at most
    /// 1.5 seconds: it should end the calls that still run and everything they started. Only then is
    /// Shutdown answered. The socket's file is gone when this returns, within two seconds of the call.
    ///
    /// The process should exit with code 0 then, and not wait for anything that still runs: a blocking task can
    /// hold up a runtime's end, unless [`shutdown_background`](tokio::runtime::Runtime::shutdown_background) or
    /// [`exit`](std::process::exit) cuts it off.
    pub async fn serve<F, Fut>(self, services: Routes, on_stop: F) -> Result<StopReason, ServeError>
    where
        F: FnOnce(StopReason) -> Fut,
        Fut: Future<Output = ()>,
    {
        let Self { bound, handshake, output, broker, stopper, mut signals } = self;
        let parent_ended = os::parent_ended();
        let links = Links::new();
        let (stopped, stopped_seen) = watch::channel(false);
        let routes =
            services::add(services, broker, links.clone(), stopper.clone(), stopped_seen.clone()).await;
        let mut serving = AbortOnDrop(spawn(routes, bound.listener, links.clone(), stopped_seen));
        output.write(&handshake).map_err(ServeError::Handshake)?;

        let stopping = stopper.stopping();
        let outcome = tokio::select! {
            reason = stopping.wait() => Ok(reason),
            () = signals.terminated() => Ok(StopReason::Terminated),
            () = parent_ended => Ok(StopReason::HostLost),
            () = links.lost() => Ok(StopReason::HostLost),
            ended = &mut serving.0 => Err(ServeError::Server(failure(ended))),
        };
        // Without a server there is no way to the host either.
        let reason = outcome.as_ref().copied().unwrap_or(StopReason::HostLost);
        stopper.stop(reason);
        // Whatever does not end in time ends with the process.
        let _ = tokio::time::timeout(LONGEST_STOP, on_stop(reason)).await;
        stopped.send_replace(true);
        if outcome.is_ok() {
            let _ = tokio::time::timeout(LONGEST_DRAIN, &mut serving.0).await;
        }
        drop(bound.file);
        outcome
    }
}

fn spawn(routes: Routes, listener: Listener, links: Links, mut stopped: Stopped) -> Serving {
    let incoming = Incoming::new(listener, move || links.connection());
    let server = socket::server()
        .add_routes(routes.prepare())
        .serve_with_incoming_shutdown(incoming, async move { services::wait(&mut stopped).await });
    tokio::spawn(server)
}

fn failure(
    ended: Result<Result<(), tonic::transport::Error>, tokio::task::JoinError>,
) -> Box<dyn std::error::Error + Send + Sync> {
    match ended {
        Ok(Ok(())) => "it ended by itself".into(),
        Ok(Err(error)) => error.into(),
        Err(error) => error.into(),
    }
}

/// Ends the server when the future that drives it is dropped.
struct AbortOnDrop(Serving);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
