//! The plugin's side: bind, then serve until told to stop.
//!
//! ```no_run
//! # use goplugin::{Contract, plugin::Listening};
//! # const CONTRACT: Contract = Contract { cookie_key: "K", cookie_value: "V", app_versions: &[1] };
//! # fn services() -> tonic::service::Routes { unimplemented!() }
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> std::process::ExitCode {
//!     let listening = match Listening::bind(&CONTRACT).await {
//!         Ok(listening) => listening,
//!         Err(error) => return error.report(),
//!     };
//!     let stopping = listening.stopping();
//!     // Hand `stopping` and `listening.broker()` to whatever the services need them for.
//!     match listening.serve(services(), |_reason| async { /* end what still runs */ }).await {
//!         Ok(_reason) => std::process::ExitCode::SUCCESS,
//!         Err(_) => std::process::ExitCode::FAILURE,
//!     }
//! }
//! ```

mod broker;
mod environment;
mod listen;
mod lost;
mod serve;
mod services;
mod standard;
mod stop;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

pub use broker::{Broker, DialError};
pub use serve::ServeError;
pub use stop::{StopReason, Stopper, Stopping};

use crate::{Contract, Handshake};
use environment::Request;
use listen::Bound;
use standard::HandshakeOutput;

/// The kind of socket to listen on.
///
/// ```
/// use goplugin::{Contract, plugin::{Listening, Transport}};
///
/// # async fn example(contract: Contract) -> Result<(), Box<dyn std::error::Error>> {
/// let listening = Listening::bind_to(&contract, Transport::Tcp).await?;
/// # drop(listening);
/// # Ok(())
/// # }
/// # let _ = example;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// A unix socket that only this user (or the group the host names) can connect to.
    #[default]
    Unix,
    /// A port on the loopback interface, open to every local user.
    Tcp,
}

/// A plugin whose socket accepts connections, but which has not told its host yet.
///
/// See the [module](self) for the whole of a plugin's `main`.
///
/// ```
/// use goplugin::{Contract, plugin::Listening};
/// use tonic::service::Routes;
///
/// # async fn example(contract: Contract, services: Routes) -> Result<(), Box<dyn std::error::Error>> {
/// let listening = Listening::bind(&contract).await?;
/// let broker = listening.broker();
/// listening
///     .serve(services, |reason| async move {
///         // End what runs; the process is about to exit.
///         eprintln!("stopping: {reason:?}");
///     })
///     .await?;
/// # drop(broker);
/// # Ok(())
/// # }
/// # let _ = example;
/// ```
#[derive(Debug)]
pub struct Listening {
    bound: Bound,
    handshake: Handshake,
    output: HandshakeOutput,
    broker: Broker,
    stopper: Stopper,
    signals: stop::Signals,
}

/// Why a plugin cannot start. Its `Display` is one line for a person; the process should print it on its
/// standard error and exit with code 1, as [`report`](Self::report) does.
///
/// ```
/// use std::process::ExitCode;
/// use goplugin::{Contract, plugin::Listening};
///
/// # async fn example(contract: Contract) -> ExitCode {
/// match Listening::bind(&contract).await {
///     Ok(_listening) => ExitCode::SUCCESS,
///     // One line on stderr, for the person who started a plugin by hand.
///     Err(error) => error.report(),
/// }
/// # }
/// # let _ = example;
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The cookie is absent or different.
    #[error(
        "this program is a plugin: it is started by its host and does nothing when run by hand \
         (the host's {cookie_key} is not set)"
    )]
    NotLaunchedByHost {
        /// The variable that the host would have set.
        cookie_key: &'static str,
    },
    /// The contract names no version at all.
    #[error("this plugin names no protocol version that it speaks")]
    NoVersion,
    /// The host asks for TLS on every connection.
    #[error("the host asks for automatic mTLS (PLUGIN_CLIENT_CERT), which this plugin does not offer")]
    MutualTls,
    /// A variable of the host's does not say what it should.
    #[error("the host's {name}={value:?} is not understood")]
    Variable {
        /// The variable's name.
        name: &'static str,
        /// What it says.
        value: String,
    },
    /// No socket could be made.
    #[error("cannot listen in {place}: {source}")]
    Listen {
        /// The folder or port range that was tried last.
        place: String,
        /// What the system says.
        source: io::Error,
    },
    /// The socket could not be reserved for those who may connect.
    #[error("cannot restrict the socket {path} to {whom}: {source}", path = path.display())]
    Restrict {
        /// The socket.
        path: PathBuf,
        /// The group that the host names, or this user.
        whom: String,
        /// What the system says.
        source: io::Error,
    },
    /// The standard streams could not be put in order.
    #[error("cannot redirect the standard streams: {0}")]
    Streams(#[source] io::Error),
    /// The signal handlers could not be set.
    #[error("cannot handle signals: {0}")]
    Signals(#[source] io::Error),
}

impl StartError {
    /// Prints the line on the standard error and returns the exit code that goes with it.
    pub fn report(&self) -> ExitCode {
        use io::Write;
        // With nobody to read the line, the exit code is all that is left to say.
        let _ = writeln!(io::stderr(), "{self}");
        ExitCode::FAILURE
    }
}

impl Listening {
    /// Checks that a host started this process and listens on a unix socket.
    ///
    /// From here on the process's standard output belongs to the handshake: whatever else is written to it
    /// goes to the standard error. The standard input reads as empty. SIGINT, which a terminal sends to
    /// host and plugin alike, is ignored (programs started later do not inherit that), and SIGTERM stops
    /// the plugin.
    ///
    /// Must be called within a tokio runtime that has I/O and time enabled.
    pub async fn bind(contract: &Contract) -> Result<Self, StartError> {
        Self::bind_to(contract, Transport::default()).await
    }

    /// Like [`bind`](Self::bind), on a socket of the given kind.
    pub async fn bind_to(contract: &Contract, transport: Transport) -> Result<Self, StartError> {
        let request = Request::read(contract, |name| std::env::var_os(name))?;
        let signals = stop::Signals::handle().map_err(StartError::Signals)?;
        let bound = Bound::new(&request, transport)?;
        // Last, so that an error before this point leaves the streams as they are.
        let output = HandshakeOutput::take().map_err(StartError::Streams)?;
        let handshake = Handshake {
            app_version: request.app_version,
            address: bound.address.clone(),
            multiplexing: request.multiplexing_asked.then_some(false),
        };
        Ok(Self { bound, handshake, output, broker: Broker::new(), stopper: Stopper::new(), signals })
    }

    /// What the handshake will say.
    pub fn handshake(&self) -> &Handshake {
        &self.handshake
    }

    /// Where the host's announced services can be dialled, now or later.
    pub fn broker(&self) -> Broker {
        self.broker.clone()
    }

    /// Tells when the plugin is asked or forced to stop.
    pub fn stopping(&self) -> Stopping {
        self.stopper.stopping()
    }
}
