//! What the tests share.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use goplugin::host::Launch;
use goplugin::{Address, Contract, Handshake};
use rustix::process::{Pid, Signal};
use tokio::sync::mpsc;
use tonic::service::Routes;
use tonic::transport::{Channel, Endpoint};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

pub(crate) const DEMO: &str = env!("CARGO_BIN_EXE_goplugin-demo");

pub(crate) const CONTRACT: Contract =
    Contract { cookie_key: "DEMO_COOKIE", cookie_value: "crumbs", app_versions: &[1, 2] };

/// How long anything may take that should happen at all.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A plugin started without the host side of this crate.
pub(crate) struct Bare {
    pub(crate) child: Child,
    pub(crate) stdout: BufReader<ChildStdout>,
    pub(crate) line: String,
    stderr: PathBuf,
    _dir: tempfile::TempDir,
}

/// The demo plugin's command with an empty environment but for the cookie and `variables`.
pub(crate) fn demo(variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(DEMO);
    command.env_clear().env(CONTRACT.cookie_key, CONTRACT.cookie_value).envs(variables.iter().copied());
    command
}

impl Bare {
    /// Starts the demo and reads its handshake.
    pub(crate) fn start(variables: &[(&str, &str)]) -> Self {
        Self::spawn(&mut demo(variables))
    }

    pub(crate) fn spawn(command: &mut Command) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let stderr = dir.path().join("stderr");
        // A plugin that is killed leaves its socket behind.
        if command.get_envs().all(|(name, _)| name != "TMPDIR") {
            command.env("TMPDIR", dir.path());
        }
        let output = File::create(&stderr).unwrap();
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(output).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        Self { child, stdout, line, stderr, _dir: dir }
    }

    pub(crate) fn handshake(&self) -> Handshake {
        Handshake::parse(&self.line).unwrap()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        match self.handshake().address {
            Address::Unix(path) => path,
            Address::Tcp(address) => panic!("no unix socket but {address}"),
        }
    }

    /// Everything the plugin wrote to its standard output after the handshake, until nobody could any more.
    pub(crate) fn rest_of_stdout(&mut self) -> String {
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        rest
    }

    pub(crate) fn stderr(&self) -> String {
        std::fs::read_to_string(&self.stderr).unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        rustix::process::kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the plugin to end by itself.
    pub(crate) async fn exited(&mut self) -> ExitStatus {
        until("the plugin exits", || self.child.try_wait().unwrap()).await
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until `look` finds something.
pub(crate) async fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Whether a process exists and is no zombie.
pub(crate) fn is_alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().starts_with(" Z"))
}

pub(crate) async fn until_dead(pid: u32) {
    until(&format!("process {pid} is gone"), || (!is_alive(pid)).then_some(())).await;
}

/// Connects to a unix socket without this crate's help.
pub(crate) async fn connect(path: &Path) -> Channel {
    let path = path.to_owned();
    let connector = tower::service_fn(move |_| {
        let path = path.clone();
        async move { tokio::net::UnixStream::connect(path).await.map(hyper_util::rt::TokioIo::new) }
    });
    Endpoint::from_static("http://localhost").connect_with_connector(connector).await.unwrap()
}

/// The health that a server tells of one of its services.
pub(crate) async fn health(channel: Channel, service: &str) -> Result<i32, tonic::Status> {
    let request = HealthCheckRequest { service: service.to_owned() };
    Ok(HealthClient::new(channel).check(request).await?.into_inner().status)
}

/// A callback that answers with a status of its own for the service named "callback".
pub(crate) async fn callback(status: tonic_health::ServingStatus) -> Routes {
    let (reporter, health) = tonic_health::server::health_reporter();
    reporter.set_service_status("callback", status).await;
    Routes::new(health)
}

/// The standard error of a launched plugin, line by line.
pub(crate) struct Stderr(mpsc::UnboundedReceiver<String>);

impl Stderr {
    /// The rest of the first line that begins with `start`.
    pub(crate) async fn after(&mut self, start: &str) -> String {
        let search = async {
            let mut seen = Vec::new();
            while let Some(line) = self.0.recv().await {
                match line.strip_prefix(start) {
                    Some(rest) => return rest.to_owned(),
                    None => seen.push(line),
                }
            }
            panic!("no line {start:?} in {seen:?}")
        };
        tokio::time::timeout(PATIENCE, search).await.unwrap_or_else(|_| panic!("no line {start:?} in time"))
    }
}

/// A launch of the demo in the given mode.
pub(crate) fn launch(mode: &str) -> (Launch, Stderr) {
    let (sender, lines) = mpsc::unbounded_channel();
    let launch = Launch::new(DEMO, CONTRACT).env("DEMO", mode).on_stderr(move |line| {
        let _ = sender.send(line.to_owned());
    });
    (launch, Stderr(lines))
}
