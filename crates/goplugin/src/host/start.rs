//! From a program to a plugin that answers.

use std::fmt;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use tokio::net::UnixListener;
use tokio::net::unix::pipe::Receiver;
use tokio::task::JoinSet;
use tonic::service::Routes;
use tonic::transport::Channel;

use super::process::Process;
use super::running::{Running, Sockets};
use super::streams::{self, Words};
use super::{CALLBACK_SERVICE, Exit, Launch};
use crate::socket::{self, Incoming, Listener};
use crate::wire::ConnInfo;
use crate::{Address, Handshake, HandshakeError};

/// How long what an ended plugin wrote may take to be read. Its own children can hold the pipe for longer.
const LONGEST_REST: Duration = Duration::from_millis(200);

/// Room for a socket's name below the folder, within the shortest limit of any system.
const LONGEST_DIR: usize = 70;

/// The end of what a plugin wrote to its standard error; displays as nothing if it wrote nothing.
///
/// ```
/// use goplugin::host::LastWords;
///
/// assert_eq!(LastWords(String::new()).to_string(), "");
/// assert_eq!(LastWords("no config\n".to_owned()).to_string(), "\nits standard error ends with:\nno config");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastWords(pub String);

impl fmt::Display for LastWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.trim_end() {
            "" => Ok(()),
            words => write!(f, "\nits standard error ends with:\n{words}"),
        }
    }
}

/// Why a plugin could not be started. In every case nothing of it is left: no process, no file.
///
/// ```
/// use goplugin::{Contract, host::Launch};
///
/// # async fn example(contract: Contract) {
/// match Launch::new("./greeter", contract).start(None).await {
///     Ok(running) => drop(running.stop().await),
///     // Says what happened and what the process last wrote to stderr.
///     Err(error) => println!("{error}"),
/// }
/// # }
/// # let _ = example;
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// The folder for the sockets, or the callback's socket in it, could not be made.
    #[error("cannot make the sockets to talk through: {0}")]
    Sockets(#[source] io::Error),
    /// The program could not be started at all.
    #[error("cannot start {program}: {source}", program = program.display())]
    Spawn {
        /// What was to be started.
        program: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It exited before it could be connected to.
    #[error("{program} {exit} before it was ready{last_words}", program = program.display())]
    Exited {
        /// What was started.
        program: PathBuf,
        /// How it ended.
        exit: Exit,
        /// What it had to say.
        last_words: LastWords,
    },
    /// It closed its standard output without printing a handshake, but runs on.
    #[error("{program} closed its standard output without a handshake{last_words}", program = program.display())]
    Silent {
        /// What was started.
        program: PathBuf,
        /// What it had to say.
        last_words: LastWords,
    },
    /// It printed no handshake, or accepted no connection, in time.
    #[error("{program} was not ready within {limit:?}{last_words}", program = program.display())]
    TimedOut {
        /// What was started.
        program: PathBuf,
        /// The limit.
        limit: Duration,
        /// What it had to say.
        last_words: LastWords,
    },
    /// Its first line of output is no handshake.
    #[error("{program} printed {line:?} instead of a handshake: {source}{last_words}", program = program.display())]
    Malformed {
        /// What was started.
        program: PathBuf,
        /// The line, shortened.
        line: String,
        /// What is wrong with it.
        source: HandshakeError,
        /// What it had to say.
        last_words: LastWords,
    },
    /// It speaks another version of the application's protocol.
    #[error("{program} speaks protocol version {version}, the host {offered:?}", program = program.display())]
    Version {
        /// What was started.
        program: PathBuf,
        /// The plugin's version.
        version: u32,
        /// The host's versions.
        offered: &'static [u32],
    },
    /// Nothing accepts connections where the handshake says.
    #[error("cannot connect to {program} at {address}: {source}{last_words}", program = program.display())]
    Connect {
        /// What was started.
        program: PathBuf,
        /// Where it should listen.
        address: Address,
        /// What tonic says.
        source: tonic::transport::Error,
        /// What it had to say.
        last_words: LastWords,
    },
}

/// What goes wrong between the start and the first connection, before the program's end is awaited.
enum Failure {
    Ended,
    TimedOut,
    Malformed(String, HandshakeError),
    Version(u32),
    Connect(Address, tonic::transport::Error),
}

impl Launch {
    /// Starts the plugin and connects to it. The plugin finds `callback` under
    /// [`CALLBACK_SERVICE`](super::CALLBACK_SERVICE); it is served until the plugin has ended.
    ///
    /// Dropping the returned future kills what was started.
    pub async fn start(mut self, callback: Option<Routes>) -> Result<Running, LaunchError> {
        let dir = socket_dir().map_err(LaunchError::Sockets)?;
        let mut sockets = Sockets::in_dir(dir);
        let mut tasks = JoinSet::new();
        let announcement = match callback {
            Some(routes) => {
                Some(serve_callback(routes, sockets.dir(), &mut tasks).map_err(LaunchError::Sockets)?)
            }
            None => None,
        };
        let spawn_error = |source| LaunchError::Spawn { program: self.program.clone(), source };
        let mut child = self.command(sockets.dir().as_os_str()).spawn().map_err(spawn_error)?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let process = Process::new(child);
        let mut stdout = piped(stdout).map_err(spawn_error)?;
        let words = Words::new(self.stderr.take());
        let draining = streams::drain_stderr(piped(stderr).map_err(spawn_error)?, words.source());
        let mut stderr = JoinSet::new();
        stderr.spawn(draining);

        let limit = self.handshake_timeout;
        let mut rest = Vec::new();
        let ready = tokio::time::timeout(
            limit,
            connect((&mut stdout, &mut rest), &process, &mut sockets, self.contract.app_versions),
        );
        match ready.await.unwrap_or(Err(Failure::TimedOut)) {
            Ok((handshake, channel)) => {
                tasks.spawn(streams::drain_stdout(stdout, rest, self.stdout.take()));
                let parts = (process, sockets, tasks, stderr, words);
                Ok(Running::new(parts, handshake, channel, announcement, self.stop_timeout))
            }
            Err(failure) => Err(self.explain(failure, process, stderr, &words).await),
        }
    }

    /// Ends the process and says what went wrong, with what it had to say itself.
    async fn explain(
        self,
        failure: Failure,
        process: Process,
        mut stderr: JoinSet<()>,
        words: &Words,
    ) -> LaunchError {
        // An output that ended, or a refused connection, is usually the first sign of an exit.
        let exit = match failure {
            Failure::Ended | Failure::Connect(..) => {
                tokio::time::timeout(LONGEST_REST, process.exited()).await.ok()
            }
            _ => process.exit(),
        };
        process.kill();
        process.exited().await;
        let _ = tokio::time::timeout(LONGEST_REST, stderr.join_next()).await;
        let last_words = LastWords(words.tail());
        let program = self.program;
        match failure {
            Failure::Ended | Failure::Connect(..) if let Some(exit) = exit => {
                LaunchError::Exited { program, exit, last_words }
            }
            Failure::Ended => LaunchError::Silent { program, last_words },
            Failure::TimedOut => LaunchError::TimedOut { program, limit: self.handshake_timeout, last_words },
            Failure::Malformed(line, source) => LaunchError::Malformed { program, line, source, last_words },
            Failure::Version(version) => {
                LaunchError::Version { program, version, offered: self.contract.app_versions }
            }
            Failure::Connect(address, source) => {
                LaunchError::Connect { program, address, source, last_words }
            }
        }
    }
}

/// A private folder for the sockets of one plugin, in the temporary folder if paths below it are short
/// enough.
fn socket_dir() -> io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("goplugin-").permissions(Permissions::from_mode(0o700));
    let preferred = std::path::absolute(std::env::temp_dir())?;
    if preferred.as_os_str().len() <= LONGEST_DIR
        && let Ok(dir) = builder.tempdir_in(preferred)
    {
        return Ok(dir);
    }
    builder.tempdir_in("/tmp")
}

/// Serves the callback on a socket of its own and returns what to tell the plugin.
fn serve_callback(routes: Routes, dir: &Path, tasks: &mut JoinSet<()>) -> io::Result<ConnInfo> {
    let path = dir.join("callback");
    let listener = UnixListener::bind(&path)?;
    let incoming = Incoming::new(Listener::Unix(listener), || ());
    let serving = socket::server().add_routes(routes.prepare()).serve_with_incoming(incoming);
    tasks.spawn(async move {
        // It ends with the set of tasks; before that, accepting connections cannot fail for good.
        let _ = serving.await;
    });
    let address = Address::Unix(path);
    Ok(ConnInfo {
        service_id: CALLBACK_SERVICE,
        network: address.network().to_owned(),
        address: address.to_string(),
        knock: None,
    })
}

fn piped(end: Option<impl Into<std::os::fd::OwnedFd>>) -> io::Result<Receiver> {
    streams::pipe(end.ok_or(io::ErrorKind::BrokenPipe)?)
}

async fn connect(
    stdout: (&mut Receiver, &mut Vec<u8>),
    process: &Process,
    sockets: &mut Sockets,
    offered: &[u32],
) -> Result<(Handshake, Channel), Failure> {
    let line = handshake_line(stdout, process).await.ok_or(Failure::Ended)?;
    let handshake = match Handshake::parse(&line) {
        Ok(handshake) => handshake,
        Err(error) => return Err(Failure::Malformed(shortened(line), error)),
    };
    sockets.note(handshake.address.clone());
    if !offered.contains(&handshake.app_version) {
        return Err(Failure::Version(handshake.app_version));
    }
    let address = handshake.address.clone();
    let target = address.clone();
    match socket::channel(move || Ok(target.clone())).await {
        Ok(channel) => Ok((handshake, channel)),
        Err(error) => Err(Failure::Connect(address, error)),
    }
}

/// The first line of output, if the process prints one before it closes its output or exits.
async fn handshake_line((stdout, rest): (&mut Receiver, &mut Vec<u8>), process: &Process) -> Option<String> {
    let line = streams::first_line(stdout, rest);
    tokio::pin!(line);
    let line = tokio::select! {
        biased;
        line = &mut line => line,
        // A child of the process may still hold the output open.
        _ = process.exited() => tokio::time::timeout(LONGEST_REST, line).await.ok()?,
    };
    line.ok().flatten()
}

/// Enough of a line to recognise it.
fn shortened(line: String) -> String {
    match line.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
