//! The protocol over HTTP, for clients on this machine.
//!
//! Whoever can reach the port could call the tools, so the port is on the loopback interface only, requests carry a token
//! that only the one who started the server knows, and those that a web page made (another `Host`, another `Origin`) are
//! refused before anything is read of them.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::{Bridge, secret};

/// Where the protocol is served.
const PATH: &str = "/mcp";

/// Who may call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Who sends this as a bearer token.
    Token(String),
    /// Everybody on this machine. For servers whose tools do no harm.
    Open,
}

impl Access {
    /// Access with a token that nobody can guess.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn random() -> io::Result<Self> {
        secret::token().map(Self::Token)
    }
}

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The address can be reached from other machines.
    #[error(
        "{0} can be reached from other machines, and the tools are for this one: use 127.0.0.1:0, and a tunnel for others"
    )]
    NotLoopback(SocketAddr),
    /// The port cannot be opened.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
}

/// A server at work.
#[derive(Debug)]
pub struct Serving {
    address: SocketAddr,
    bridge: Bridge,
    task: JoinHandle<io::Result<()>>,
}

impl Serving {
    /// Where clients find it.
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// Waits until the server ends, which it does when the bridge is closed.
    ///
    /// # Errors
    /// Why it ended by itself.
    pub async fn ended(&mut self) -> io::Result<()> {
        (&mut self.task).await.map_err(io::Error::other)?
    }

    /// Ends the server and gives up its calls.
    pub async fn stop(mut self) {
        self.bridge.close();
        // It has been told to end; why it did not is no news any more.
        let _ = tokio::time::timeout(super::LAST_WORDS, self.ended()).await;
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves clients on this machine; port 0 takes any that is free.
///
/// # Errors
/// The address is not of this machine alone, or cannot be listened on.
pub async fn serve_http(bridge: &Bridge, address: SocketAddr, access: Access) -> Result<Serving, HttpError> {
    if !address.ip().is_loopback() {
        return Err(HttpError::NotLoopback(address));
    }
    let failed = |source| HttpError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let port = address.port();
    let own = ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("{host}:{port}"));
    let closing = bridge.0.closing.clone();
    let config = StreamableHttpServerConfig::default()
        .with_allowed_origins(own.iter().map(|host| format!("http://{host}")))
        .with_allowed_hosts(own)
        .with_cancellation_token(closing.child_token());
    let served = bridge.clone();
    let protocol = StreamableHttpService::new(
        move || Ok(served.clone()),
        Arc::new(LocalSessionManager::default()),
        config,
    );
    let router =
        Router::new().route_service(PATH, protocol).layer(from_fn_with_state(Arc::new(access), admit));
    let task = tokio::spawn(async move {
        axum::serve(listener, router).with_graceful_shutdown(closing.cancelled_owned()).await
    });
    Ok(Serving { address, bridge: bridge.clone(), task })
}

/// Lets through who has the token.
async fn admit(State(access): State<Arc<Access>>, request: Request, next: Next) -> Response {
    let Access::Token(token) = &*access else { return next.run(request).await };
    let given = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let bearer = given.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
    if secret::equal(bearer.trim().as_bytes(), token.as_bytes()) {
        return next.run(request).await;
    }
    let wanted = [(header::WWW_AUTHENTICATE, "Bearer")];
    (StatusCode::UNAUTHORIZED, wanted, "send the token as Authorization: Bearer TOKEN\n").into_response()
}
