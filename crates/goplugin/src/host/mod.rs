//! The host's side: start a plugin, use its channel, stop it.
//!
//! ```no_run
//! use std::time::Duration;
//! use goplugin::{Contract, host::Launch};
//!
//! # async fn example(contract: Contract, callback: tonic::service::Routes) -> Result<(), Box<dyn std::error::Error>> {
//! let running = Launch::new("/usr/lib/greeter", contract)
//!     .basic_env()
//!     .env("GREETER_LANGUAGE", "en")
//!     .on_stderr(|line| eprintln!("greeter: {line}"))
//!     .start(Some(callback))
//!     .await?;
//!
//! let channel = running.channel();
//! // … calls through `channel` …
//! # async fn call(_: tonic::transport::Channel) -> Result<(), tonic::Status> { Ok(()) }
//! if let Err(status) = call(channel).await {
//!     // A crash shows as an error of the call first, and as an exit within moments.
//!     match tokio::time::timeout(Duration::from_millis(200), running.exited()).await {
//!         Ok(exit) => eprintln!("the plugin {exit}: {}", running.stderr_tail()),
//!         Err(_) => eprintln!("the plugin lives and says: {status}"),
//!     }
//! }
//! println!("the plugin {}", running.stop().await);
//! # Ok(())
//! # }
//! ```

mod exit;
mod launch;
mod process;
mod running;
mod start;
mod streams;

pub use exit::{Death, Exit};
pub use launch::Launch;
pub use running::Running;
pub use start::{LastWords, LaunchError};

/// The broker id under which a plugin finds its host's callback services, by convention never negotiated.
///
/// ```
/// use goplugin::host::CALLBACK_SERVICE;
/// use goplugin::plugin::Broker;
/// use std::time::Duration;
///
/// # async fn example(broker: Broker) -> Result<(), goplugin::plugin::DialError> {
/// // In the plugin:
/// let host = broker.dial(CALLBACK_SERVICE, Duration::from_secs(5)).await?;
/// # drop(host);
/// # Ok(())
/// # }
/// ```
pub const CALLBACK_SERVICE: u32 = 1;
