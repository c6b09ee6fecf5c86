//! Noticing that the host is gone.

use std::time::Duration;

use tokio::sync::watch;

/// How long a host that closed the broker stream has to say Shutdown, as orderly hosts do next.
const FAREWELL: Duration = Duration::from_millis(500);

/// How long a connection may be the last one when no broker stream tells whether it was the host's.
const STRANGER: Duration = Duration::from_secs(5);

/// What connects the plugin with its host.
#[derive(Clone, Debug)]
pub(super) struct Links(watch::Sender<Counts>);

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    connections: Count,
    broker_streams: Count,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    open: usize,
    ever: bool,
}

impl Count {
    fn all_gone(self) -> bool {
        self.ever && self.open == 0
    }
}

/// Which of the counts a link belongs to.
type Kind = fn(&mut Counts) -> &mut Count;

/// Counts as one link until dropped.
#[derive(Debug)]
pub(super) struct Link {
    links: Links,
    kind: Kind,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.links.0.send_modify(|counts| (self.kind)(counts).open -= 1);
    }
}

impl Links {
    pub(super) fn new() -> Self {
        Self(watch::Sender::default())
    }

    /// Counts a connection.
    pub(super) fn connection(&self) -> Link {
        self.open(|counts| &mut counts.connections)
    }

    /// Counts a broker stream.
    pub(super) fn broker_stream(&self) -> Link {
        self.open(|counts| &mut counts.broker_streams)
    }

    fn open(&self, kind: Kind) -> Link {
        self.0.send_modify(|counts| {
            let count = kind(counts);
            count.open += 1;
            count.ever = true;
        });
        Link { links: self.clone(), kind }
    }

    /// Resolves when the host has closed what connected it.
    pub(super) async fn lost(&self) {
        let mut counts = self.0.subscribe();
        loop {
            let doubt = counts.borrow_and_update().doubt();
            let unchanged = async {
                match doubt {
                    Some(wait) => tokio::time::sleep(wait).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = unchanged => return,
                // Cannot fail: `self` holds a sender.
                _ = counts.changed() => {}
            }
        }
    }
}

impl Counts {
    /// How much longer to wait for a sign of life, if there is reason to doubt.
    fn doubt(self) -> Option<Duration> {
        if self.broker_streams.all_gone() {
            let connected = self.connections.open > 0;
            return Some(if connected { FAREWELL } else { Duration::ZERO });
        }
        let only_strangers = !self.broker_streams.ever && self.connections.all_gone();
        only_strangers.then_some(STRANGER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn is_lost_within(links: &Links, limit: Duration) -> bool {
        tokio::time::timeout(limit, links.lost()).await.is_ok()
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn a_closed_connection_with_a_broker_stream_is_noticed_at_once() {
        let links = Links::new();
        let connection = links.connection();
        let stream = links.broker_stream();
        assert!(!is_lost_within(&links, Duration::from_secs(3600)).await);
        drop((stream, connection));
        assert!(is_lost_within(&links, Duration::from_millis(1)).await);
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn a_closed_broker_stream_leaves_time_for_shutdown() {
        let links = Links::new();
        let _connection = links.connection();
        drop(links.broker_stream());
        assert!(!is_lost_within(&links, FAREWELL / 2).await);
        assert!(is_lost_within(&links, FAREWELL * 2).await);
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn a_new_broker_stream_ends_the_doubt() {
        let links = Links::new();
        let _connection = links.connection();
        drop(links.broker_stream());
        let _stream = links.broker_stream();
        assert!(!is_lost_within(&links, Duration::from_secs(3600)).await);
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn a_stranger_that_leaves_does_not_stop_the_plugin_at_once() {
        let links = Links::new();
        assert!(!is_lost_within(&links, Duration::from_secs(3600)).await);
        drop(links.connection());
        assert!(!is_lost_within(&links, STRANGER / 2).await);
        assert!(is_lost_within(&links, STRANGER * 2).await);
    }
}
