//! hashicorp/go-plugin's process contract, both sides, over gRPC.
//!
//! A host starts a plugin as a child process, reads one line from its standard output, and talks gRPC to
//! the socket that line names. This crate is everything around the services themselves: the magic cookie,
//! version negotiation, the line, the socket, health, the broker that lets the plugin call back, orderly
//! shutdown, and noticing that the other side is gone. It knows nothing of what the services do.
//!
//! * [`plugin::Listening`] is the plugin's side: bind, then serve until told to stop.
//! * [`host::Launch`] is the host's side: start, use [`host::Running::channel`], stop.
//! * [`log`] writes the lines hosts understand on a plugin's standard error.
//! * [`Contract`] is what both must agree on beforehand.
//!
//! Either side works with the Go library at the other end. Broker multiplexing is declined, and a host that
//! asks for automatic mTLS is refused at the start rather than served in the clear. Everything runs on a
//! current-thread tokio runtime with I/O and time enabled.
//!
//! ```no_run
//! use goplugin::{Contract, host::Launch, plugin::Listening};
//! use tonic::service::Routes;
//!
//! const CONTRACT: Contract =
//!     Contract { cookie_key: "GREETER_PLUGIN", cookie_value: "d3c1…", app_versions: &[1] };
//!
//! # async fn example(services: Routes) -> Result<(), Box<dyn std::error::Error>> {
//! // In the plugin's binary:
//! let listening = Listening::bind(&CONTRACT).await?;
//! listening.serve(services, |_reason| async {}).await?;
//!
//! // In the host's:
//! let running = Launch::new("./greeter", CONTRACT).basic_env().start(None).await?;
//! let channel = running.channel();
//! // … calls through `channel` …
//! running.stop().await;
//! # Ok(())
//! # }
//! ```

mod handshake;
pub mod host;
pub mod log;
mod os;
pub mod plugin;
mod socket;
pub mod wire;

pub use handshake::{Address, AddressError, Handshake, HandshakeError};

/// What both sides agree on before they talk.
///
/// The cookie keeps a plugin's binary from being run by hand by mistake; it is no secret and no protection.
///
/// ```
/// use goplugin::Contract;
///
/// const CONTRACT: Contract = Contract {
///     cookie_key: "GREETER_PLUGIN",
///     cookie_value: "d3c1a7",
///     app_versions: &[1, 2],
/// };
/// # assert_eq!(CONTRACT.app_versions.len(), 2);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Contract {
    /// Name of the environment variable that carries the cookie.
    pub cookie_key: &'static str,
    /// The exact value it must have.
    pub cookie_value: &'static str,
    /// The application's protocol versions that this side speaks, in any order.
    pub app_versions: &'static [u32],
}

/// Environment variables that a host may set for its plugin.
pub(crate) mod variable {
    pub(crate) const VERSIONS: &str = "PLUGIN_PROTOCOL_VERSIONS";
    pub(crate) const MIN_PORT: &str = "PLUGIN_MIN_PORT";
    pub(crate) const MAX_PORT: &str = "PLUGIN_MAX_PORT";
    pub(crate) const SOCKET_DIR: &str = "PLUGIN_UNIX_SOCKET_DIR";
    pub(crate) const SOCKET_GROUP: &str = "PLUGIN_UNIX_SOCKET_GROUP";
    pub(crate) const CLIENT_CERT: &str = "PLUGIN_CLIENT_CERT";
    pub(crate) const MULTIPLEX: &str = "PLUGIN_MULTIPLEX_GRPC";
}
