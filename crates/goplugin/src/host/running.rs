//! A plugin that answers.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::transport::Channel;

use super::Exit;
use super::process::Process;
use super::streams::{Source, Words};
use crate::wire::conn_info::Knock;
use crate::wire::grpc_broker_client::GrpcBrokerClient;
use crate::wire::grpc_controller_client::GrpcControllerClient;
use crate::wire::grpc_stdio_client::GrpcStdioClient;
use crate::wire::{ConnInfo, Empty};
use crate::{Address, Handshake};

/// How much older than its making a file may look.
const CLOCK_LAG: Duration = Duration::from_millis(100);

/// Sends the answers to what the plugin asks on the stream that announces services.
struct Answering {
    messages: mpsc::WeakUnboundedSender<ConnInfo>,
    announcement: Option<ConnInfo>,
}

/// How long the last of the standard error may take to be read after the plugin has ended.
const LONGEST_REST: Duration = Duration::from_millis(200);

/// A plugin that has been started and connected to.
///
/// [`stop`](Self::stop) ends it in order. Dropping it kills it and its process group, and in either case its
/// sockets are removed. See the [module](super) for an example.
///
/// ```
/// use goplugin::host::Running;
///
/// async fn watch(running: Running) {
///     println!("{} listens on {:?}", running.pid(), running.handshake().address);
///     let exited = running.exited();
///     // … calls through `running.channel()` …
///     if running.exit().is_some() {
///         println!("it died: {}", running.stderr_tail());
///     }
///     running.stop().await;
///     println!("{}", exited.await);
/// }
/// # let _ = watch;
/// ```
#[derive(Debug)]
pub struct Running {
    // Dropped in this order: the process must be dead before its folder goes.
    process: Process,
    _sockets: Sockets,
    tasks: JoinSet<()>,
    stderr: JoinSet<()>,
    words: Words,
    handshake: Handshake,
    channel: Channel,
    broker: Option<BrokerStream>,
    stop_timeout: Duration,
}

/// What the start hands over: process, sockets, tasks to end with it, the reader of its standard error, and
/// what it says.
pub(super) type Parts = (Process, Sockets, JoinSet<()>, JoinSet<()>, Words);

/// The host's end of the stream that announces services.
#[derive(Debug)]
struct BrokerStream {
    messages: mpsc::UnboundedSender<ConnInfo>,
    announcement: Option<ConnInfo>,
}

/// The socket files of one plugin, removed when dropped.
#[derive(Debug)]
pub(super) struct Sockets {
    dir: TempDir,
    since: SystemTime,
    plugin: Option<Address>,
}

impl Sockets {
    pub(super) fn in_dir(dir: TempDir) -> Self {
        Self { dir, since: SystemTime::now(), plugin: None }
    }

    /// The folder that goes with them.
    pub(super) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Notes where the plugin listens.
    pub(super) fn note(&mut self, plugin: Address) {
        self.plugin = Some(plugin);
    }

    /// Whether there is a socket that was made for this plugin, and not one of somebody else's that it names.
    fn is_its_own(&self, path: &Path) -> bool {
        // File systems take their time from a clock that lags behind a little.
        let since = self.since - CLOCK_LAG;
        std::fs::symlink_metadata(path).is_ok_and(|found| {
            let changed =
                Duration::new(found.ctime().unsigned_abs(), found.ctime_nsec().unsigned_abs() as u32);
            found.file_type().is_socket() && SystemTime::UNIX_EPOCH + changed >= since
        })
    }
}

impl Drop for Sockets {
    /// A plugin that ignores the folder it was given, as old ones do, may leave its socket elsewhere.
    fn drop(&mut self) {
        if let Some(Address::Unix(path)) = &self.plugin
            && self.is_its_own(path)
        {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Running {
    pub(super) fn new(
        (process, sockets, mut tasks, stderr, words): Parts,
        handshake: Handshake,
        channel: Channel,
        announcement: Option<ConnInfo>,
        stop_timeout: Duration,
    ) -> Self {
        tasks.spawn(hold_stdio(channel.clone(), words.source()));
        let (messages, outgoing) = mpsc::unbounded_channel();
        let broker = BrokerStream { messages, announcement };
        broker.announce();
        // Only `Running` keeps the stream open, so the conversation gets no sender of its own.
        let answering =
            Answering { messages: broker.messages.downgrade(), announcement: broker.announcement.clone() };
        tasks.spawn(converse(channel.clone(), outgoing, answering));
        Self {
            process,
            _sockets: sockets,
            tasks,
            stderr,
            words,
            handshake,
            channel,
            broker: Some(broker),
            stop_timeout,
        }
    }

    /// The connection to the plugin's services. Clones share it.
    pub fn channel(&self) -> Channel {
        self.channel.clone()
    }

    /// What the plugin's handshake said.
    pub fn handshake(&self) -> &Handshake {
        &self.handshake
    }

    /// The plugin's process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Tells the plugin again where the callback is. Plugins built on the Go library forget what they do not
    /// dial within five seconds; for others it changes nothing.
    pub fn announce_callback(&self) {
        if let Some(broker) = &self.broker {
            broker.announce();
        }
    }

    /// Resolves when the plugin has ended, however it does.
    pub fn exited(&self) -> impl Future<Output = Exit> + Send + use<> {
        self.process.exited()
    }

    /// How the plugin has ended, if it has by now.
    pub fn exit(&self) -> Option<Exit> {
        self.process.exit()
    }

    /// The last 16 KiB at most of what the plugin wrote to its standard error, or sent in its place.
    pub fn stderr_tail(&self) -> String {
        self.words.tail()
    }

    /// Ends the plugin in order: closes the broker stream, calls Shutdown, closes the connection, waits, and
    /// kills what has not left in time. Returns how it ended, now or before.
    pub async fn stop(mut self) -> Exit {
        self.process.expect_stop();
        self.broker = None;
        let mut controller = GrpcControllerClient::new(self.channel.clone());
        tokio::select! {
            // Whether it answers or not: what counts is that it leaves.
            _ = tokio::time::timeout(self.stop_timeout, controller.shutdown(Empty {})) => {}
            _ = self.process.exited() => {}
        }
        drop(controller);
        self.tasks.abort_all();
        let exit = match tokio::time::timeout(self.stop_timeout, self.process.exited()).await {
            Ok(exit) => exit,
            Err(_) => {
                self.process.kill();
                self.process.exited().await
            }
        };
        let _ = tokio::time::timeout(LONGEST_REST, self.stderr.join_next()).await;
        exit
    }
}

impl Running {
    /// Closes every connection without a word, as a host that dies does, and gives the plugin `limit` to leave by
    /// itself. `None` if it did not; it is killed then. Clones of [`channel`](Self::channel) must be gone, or the
    /// plugin still has a host.
    pub async fn abandon(self, limit: Duration) -> Option<Exit> {
        let Self { process, _sockets, mut tasks, channel, broker, .. } = self;
        process.expect_stop();
        drop(broker);
        tasks.shutdown().await;
        drop(channel);
        tokio::time::timeout(limit, process.exited()).await.ok()
    }
}

impl BrokerStream {
    /// A stream that has ended cannot be told anything; the plugin is going then.
    fn announce(&self) {
        if let Some(announcement) = &self.announcement {
            let _ = self.messages.send(announcement.clone());
        }
    }
}

impl Answering {
    /// Answers a message of the plugin's, if it asks something and the stream is not being closed.
    fn receive(&self, message: ConnInfo) {
        if let Some((messages, answer)) = self.messages.upgrade().zip(self.answer(message)) {
            let _ = messages.send(answer);
        }
    }

    fn answer(&self, message: ConnInfo) -> Option<ConnInfo> {
        if message.knock.is_some() {
            let error = "the host does not multiplex the broker".to_owned();
            return Some(ConnInfo { knock: Some(Knock { knock: true, ack: true, error }), ..message });
        }
        let asks = message.address.is_empty();
        self.announcement.clone().filter(|known| asks && known.service_id == message.service_id)
    }
}

/// Keeps the stdio stream open, which not every plugin has. Plugins built on the Go library send through it
/// what they print once they serve.
async fn hold_stdio(channel: Channel, mut source: Source) {
    if let Ok(response) = GrpcStdioClient::new(channel).stream_stdio(()).await {
        let mut output = response.into_inner();
        while let Ok(Some(piece)) = output.message().await {
            source.push(&piece.data);
        }
    }
}

/// Keeps the broker stream open and answers what the plugin asks on it.
///
/// A plugin built on the Go library sends its headers with its first message, if ever: nothing may wait for
/// them.
async fn converse(channel: Channel, outgoing: mpsc::UnboundedReceiver<ConnInfo>, answering: Answering) {
    let stream = UnboundedReceiverStream::new(outgoing);
    let Ok(response) = GrpcBrokerClient::new(channel).start_stream(stream).await else { return };
    let mut incoming = response.into_inner();
    while let Ok(Some(message)) = incoming.message().await {
        answering.receive(message);
    }
}
