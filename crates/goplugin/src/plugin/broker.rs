//! Dialling what the host serves on the side.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tonic::transport::Channel;

use crate::wire::ConnInfo;
use crate::{Address, AddressError, socket};

/// Where the host's announced services can be dialled.
///
/// An announcement is remembered for the life of the process: dialling late is as good as dialling early.
/// A repeated one replaces the earlier.
///
/// ```no_run
/// # async fn example(broker: goplugin::plugin::Broker) -> Result<(), goplugin::plugin::DialError> {
/// use std::time::Duration;
///
/// // The first dial waits for the announcement and connects; later ones return the same channel.
/// let channel = broker.dial(1, Duration::from_secs(5)).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Broker(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    announced: watch::Sender<HashMap<u32, Announced>>,
    dialled: Mutex<HashMap<u32, (Address, Channel)>>,
}

/// What the host said; a wrong address is only an error for whoever dials it.
type Announced = Result<Address, AddressError>;

/// Why a service cannot be reached.
///
/// ```
/// use goplugin::plugin::{Broker, DialError};
/// use std::time::Duration;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// // A host need not serve callbacks: go without them.
/// let dialled = Broker::new().dial(1, Duration::from_millis(1)).await;
/// assert!(matches!(dialled, Err(DialError::NotAnnounced { service_id: 1, .. })));
/// # });
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DialError {
    /// The host has not said where the service is.
    #[error("the host did not announce service {service_id} within {waited:?}")]
    NotAnnounced {
        /// The service.
        service_id: u32,
        /// How long the dial waited.
        waited: Duration,
    },
    /// What the host said names no place.
    #[error("the host's announcement of service {service_id} is of no use: {source}")]
    Address {
        /// The service.
        service_id: u32,
        /// What is wrong with it.
        source: AddressError,
    },
    /// Nothing accepts connections there.
    #[error("cannot connect to the host's service {service_id}: {source}")]
    Connect {
        /// The service.
        service_id: u32,
        /// What tonic says.
        source: tonic::transport::Error,
    },
    /// The connection was not made in time.
    #[error("no connection to the host's service {service_id} within {waited:?}")]
    TimedOut {
        /// The service.
        service_id: u32,
        /// How long the dial waited.
        waited: Duration,
    },
}

impl Broker {
    /// One without announcements: those of [`Listening`](super::Listening) get theirs from the host, others
    /// (in tests, say) by [`announce`](Self::announce).
    pub fn new() -> Self {
        Self::default()
    }

    /// Records where a service is, in place of what was known before.
    pub fn announce(&self, service_id: u32, address: Address) {
        self.learn(service_id, Ok(address));
    }

    /// A channel to a service, waiting at most `wait` for its announcement and for the connection.
    ///
    /// The channel is kept and shared. When its connection is lost it makes a new one on the next call, to
    /// whichever address was announced last.
    pub async fn dial(&self, service_id: u32, wait: Duration) -> Result<Channel, DialError> {
        if let Some(channel) = self.dialled(service_id) {
            return Ok(channel);
        }
        match tokio::time::timeout(wait, self.connect(service_id)).await {
            Ok(result) => result,
            Err(_) if self.current(service_id).is_none() => {
                Err(DialError::NotAnnounced { service_id, waited: wait })
            }
            Err(_) => Err(DialError::TimedOut { service_id, waited: wait }),
        }
    }

    /// Drops the kept channel, so that the next dial makes a new connection and tells its error. The
    /// announcement stays.
    pub fn forget(&self, service_id: u32) {
        self.lock().remove(&service_id);
    }

    /// Records what the host said.
    pub(super) fn receive(&self, message: &ConnInfo) {
        // A knock belongs to multiplexing, which the handshake declined; it announces nothing.
        if message.knock.is_none() {
            self.learn(message.service_id, Address::parse(&message.network, &message.address));
        }
    }

    fn learn(&self, service_id: u32, announced: Announced) {
        self.0.announced.send_modify(|known| {
            known.insert(service_id, announced);
        });
    }

    fn current(&self, service_id: u32) -> Option<Announced> {
        self.0.announced.borrow().get(&service_id).cloned()
    }

    /// The kept channel, unless the service has moved since.
    fn dialled(&self, service_id: u32) -> Option<Channel> {
        let current = self.current(service_id)?.ok()?;
        self.lock()
            .get(&service_id)
            .filter(|(address, _)| *address == current)
            .map(|(_, channel)| channel.clone())
    }

    async fn connect(&self, service_id: u32) -> Result<Channel, DialError> {
        let announced = self.announced(service_id).await;
        let address = announced.map_err(|source| DialError::Address { service_id, source })?;
        // Only the announcements are shared with the channel, not what keeps the channel alive.
        let announcements = self.0.announced.subscribe();
        let resolve = move || match announcements.borrow().get(&service_id) {
            Some(Ok(address)) => Ok(address.clone()),
            _ => Err(io::Error::from(io::ErrorKind::AddrNotAvailable)),
        };
        let channel =
            socket::channel(resolve).await.map_err(|source| DialError::Connect { service_id, source })?;
        self.lock().insert(service_id, (address, channel.clone()));
        Ok(channel)
    }

    async fn announced(&self, service_id: u32) -> Announced {
        let mut announcements = self.0.announced.subscribe();
        loop {
            if let Some(announced) = announcements.borrow_and_update().get(&service_id) {
                return announced.clone();
            }
            // Cannot fail: `self` holds the sender.
            let _ = announcements.changed().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u32, (Address, Channel)>> {
        self.0.dialled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
