//! What to start, and how.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::streams::{RawSink, Sink};
use crate::{Contract, variable};

/// What every program may need and no secret is in.
const BASIC_VARIABLES: [&str; 3] = ["PATH", "HOME", "TMPDIR"];

/// The ports a plugin may choose from where it cannot use a unix socket: what the Go library offers.
const PORTS: (u16, u16) = (10_000, 25_000);

/// A plugin to be started.
///
/// Its environment is exactly what is named here plus the contract's own variables, nothing of the host's.
/// See the [module](super) for an example.
///
/// ```
/// use std::time::Duration;
/// use goplugin::{Contract, host::Launch};
///
/// # async fn example(contract: Contract) -> Result<(), Box<dyn std::error::Error>> {
/// let running = Launch::new("./greeter", contract)
///     .basic_env()
///     .inherit(["LANG"])
///     .env("GREETING", "hello")
///     .current_dir("/tmp")
///     .handshake_timeout(Duration::from_secs(10))
///     .on_stderr(|line| eprintln!("{line}"))
///     .start(None)
///     .await?;
/// running.stop().await;
/// # Ok(())
/// # }
/// # let _ = example;
/// ```
pub struct Launch {
    pub(super) program: PathBuf,
    pub(super) args: Vec<OsString>,
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) current_dir: Option<PathBuf>,
    pub(super) contract: Contract,
    pub(super) handshake_timeout: Duration,
    pub(super) stop_timeout: Duration,
    pub(super) stderr: Option<Sink>,
    pub(super) stdout: Option<RawSink>,
}

impl fmt::Debug for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The environment may carry secrets.
        f.debug_struct("Launch")
            .field("program", &self.program)
            .field("args", &self.args)
            .finish_non_exhaustive()
    }
}

impl Launch {
    /// A program (a path, or a name looked up in the `PATH` the plugin gets) that keeps `contract`.
    pub fn new(program: impl Into<PathBuf>, contract: Contract) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            current_dir: None,
            contract,
            handshake_timeout: Duration::from_secs(60),
            stop_timeout: Duration::from_secs(2),
            stderr: None,
            stdout: None,
        }
    }

    /// Adds arguments. Plugins usually take none.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets a variable in the plugin's environment. Of two of the same name the later counts.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Copies the named variables from the host's environment, as far as they are set.
    #[must_use]
    pub fn inherit<N: AsRef<OsStr>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        let known = names
            .into_iter()
            .filter_map(|name| std::env::var_os(&name).map(|value| (name.as_ref().to_owned(), value)));
        self.env.extend(known);
        self
    }

    /// Copies `PATH`, `HOME` and `TMPDIR` from the host's environment, as far as they are set.
    #[must_use]
    pub fn basic_env(self) -> Self {
        self.inherit(BASIC_VARIABLES)
    }

    /// Where the plugin runs; otherwise where the host does.
    #[must_use]
    pub fn current_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.current_dir = Some(dir.into());
        self
    }

    /// How long the plugin may take to print its handshake and to accept the connection; 60 seconds unless
    /// said otherwise.
    #[must_use]
    pub fn handshake_timeout(mut self, limit: Duration) -> Self {
        self.handshake_timeout = limit;
        self
    }

    /// How long the plugin may take to answer Shutdown, and then to exit, before it is killed; 2 seconds
    /// each unless said otherwise.
    #[must_use]
    pub fn stop_timeout(mut self, limit: Duration) -> Self {
        self.stop_timeout = limit;
        self
    }

    /// Receives each line of the plugin's standard error, or sent in its place, without its end. A line of more than 64 KiB comes
    /// in pieces. It runs on the runtime's thread and must not block.
    #[must_use]
    pub fn on_stderr(mut self, sink: impl FnMut(&str) + Send + 'static) -> Self {
        self.stderr = Some(Box::new(sink));
        self
    }

    /// Receives what the plugin writes to its standard output after the handshake, which should be nothing. It
    /// runs on the runtime's thread and must not block.
    #[must_use]
    pub fn on_stdout(mut self, sink: impl FnMut(&[u8]) + Send + 'static) -> Self {
        self.stdout = Some(Box::new(sink));
        self
    }

    /// The command that starts the plugin as the leader of its own process group.
    pub(super) fn command(&self, socket_dir: &OsStr) -> Command {
        use std::os::unix::process::CommandExt;
        let versions: Vec<String> = self.contract.app_versions.iter().map(u32::to_string).collect();
        // A relative path would be looked up from the plugin's folder on some systems and ours on others.
        let has_folder = self.program.components().count() > 1;
        let program = has_folder.then(|| std::path::absolute(&self.program).ok()).flatten();
        let mut command = Command::new(program.as_deref().unwrap_or(&self.program));
        command
            .args(&self.args)
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .env(self.contract.cookie_key, self.contract.cookie_value)
            .env(variable::VERSIONS, versions.join(","))
            .env(variable::MIN_PORT, PORTS.0.to_string())
            .env(variable::MAX_PORT, PORTS.1.to_string())
            .env(variable::SOCKET_DIR, socket_dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        if let Some(dir) = &self.current_dir {
            command.current_dir(dir);
        }
        command
    }
}
