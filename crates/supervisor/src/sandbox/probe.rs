//! Trying a level: a process enters it and then does what it must not be able to do.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::Policy;
use super::level::{Level, Mode};

/// The first argument of a process that is to try a level.
pub(crate) const PROBE_ARGUMENT: &str = "__sandbox";

/// How long a try may take.
const LIMIT: Duration = Duration::from_secs(5);

/// What is to be tried.
#[derive(Serialize, Deserialize)]
struct Trial {
    policy: Policy,
    /// A directory with a file `old` that must stay as it is.
    outside: PathBuf,
    /// A directory like it, and whether it can be changed.
    inside: PathBuf,
    writable: bool,
    /// Whether mode and times of files are kept, too.
    attributes: bool,
    /// A service of the host that must not be reached.
    service: Option<SocketAddr>,
    /// Nothing is tried but to enter the policy.
    only_enter: bool,
}

/// Tries a level in a process of its own. The policy is made for what may be written.
///
/// # Errors
/// What let something through, or why the level cannot be entered.
pub(super) fn probe(level: Level, policy: impl Fn(&[PathBuf]) -> Policy) -> Result<(), String> {
    let failed =
        |what: &'static str| move |error: io::Error| format!("it could not be tried: {what}: {error}");
    let scratch = tempfile::tempdir().map_err(failed("make a directory"))?;
    let scratch_path = scratch.path().canonicalize().map_err(failed("find the directory"))?;
    let (outside, inside) = (scratch_path.join("outside"), scratch_path.join("inside"));
    for directory in [&outside, &inside] {
        fs::create_dir(directory).map_err(failed("make a directory"))?;
        fs::write(directory.join("old"), "old").map_err(failed("write a file"))?;
    }
    let service = level.network_off.map(|_| Service::start()).transpose().map_err(failed("listen"))?;
    let writable = level.mode == Mode::WorkspaceWrite;
    let write = if writable { vec![inside.clone()] } else { Vec::new() };
    let trial = Trial {
        policy: policy(&write),
        outside,
        inside,
        writable,
        attributes: level.mounts,
        service: service.as_ref().map(|service| service.address),
        only_enter: false,
    };
    let mut breaches = run(&trial)?;
    if service.is_some_and(|service| service.was_reached()) {
        breaches.push("the network was reached".to_owned());
    }
    if breaches.is_empty() { Ok(()) } else { Err(breaches.join(", ")) }
}

/// Whether a policy can be entered at all, whatever it keeps out.
///
/// # Errors
/// Why not.
pub(super) fn enter(policy: Policy) -> Result<(), String> {
    let nowhere = PathBuf::new;
    let (outside, inside) = (nowhere(), nowhere());
    let service = None;
    let trial =
        Trial { policy, outside, inside, writable: false, attributes: false, service, only_enter: true };
    run(&trial).map(drop)
}

/// A service on the loopback device, over TCP and UDP at one port.
struct Service {
    address: SocketAddr,
    tcp: TcpListener,
    udp: UdpSocket,
}

impl Service {
    fn start() -> io::Result<Self> {
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = tcp.local_addr()?;
        let udp = UdpSocket::bind(address)?;
        tcp.set_nonblocking(true)?;
        udp.set_nonblocking(true)?;
        Ok(Self { address, tcp, udp })
    }

    fn was_reached(&self) -> bool {
        self.tcp.accept().is_ok() || self.udp.recv(&mut [0]).is_ok()
    }
}

/// Runs a trial and answers what it got through with.
fn run(trial: &Trial) -> Result<Vec<String>, String> {
    let failed = |error: &dyn std::fmt::Display| format!("it could not be tried: {error}");
    let mut command = Command::new(crate::program::program());
    command.arg0("sandbox-probe").arg(PROBE_ARGUMENT).env_clear();
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = child.map_err(|error| failed(&error))?;
    let text = serde_json::to_vec(trial).map_err(|error| failed(&error))?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(&text).map_err(|error| failed(&error))?;
    }
    let deadline = Instant::now() + LIMIT;
    while child.try_wait().map_err(|error| failed(&error))?.is_none() {
        if Instant::now() > deadline {
            // It is collected below.
            let _ = child.kill();
            let _ = child.wait();
            return Err(failed(&"it took too long"));
        }
        std::thread::sleep(Duration::from_micros(500));
    }
    let mut answer = Vec::new();
    if let Some(mut stdout) = child.stdout.take() {
        stdout.read_to_end(&mut answer).map_err(|error| failed(&error))?;
    }
    serde_json::from_slice(&answer).unwrap_or_else(|_| Err(failed(&"the process that tried it died")))
}

/// The process that tries. It reads a [`Trial`] from standard input and writes the answer to standard output.
pub(crate) fn main() -> ExitCode {
    let mut text = Vec::new();
    let read = io::stdin().read_to_end(&mut text);
    let trial = read.ok().and_then(|_| serde_json::from_slice::<Trial>(&text).ok());
    let Some(trial) = trial else { return ExitCode::FAILURE };
    let mut confinement = super::Confinement::default();
    let entered = trial
        .policy
        .prepare()
        .and_then(|()| trial.policy.get_ready(&mut confinement))
        .and_then(|()| trial.policy.enter(&mut confinement));
    let tried = |()| if trial.only_enter { Vec::new() } else { breaches(&trial) };
    let answer = entered.map(tried).map_err(|error| error.to_string());
    match serde_json::to_writer(io::stdout(), &answer) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// What could be done that should not, and could not be done that should.
fn breaches(trial: &Trial) -> Vec<String> {
    let mut found = Vec::new();
    let mut must_fail = |what: &str, done: io::Result<()>| {
        if done.is_ok() {
            found.push(format!("{what} was possible"));
        }
    };
    attempts(&trial.outside)
        .into_iter()
        .for_each(|(what, done)| must_fail(&format!("to {what} elsewhere"), done));
    if trial.attributes {
        let mode = fs::Permissions::from_mode(0o600);
        must_fail("to change a mode elsewhere", fs::set_permissions(trial.outside.join("old"), mode));
    }
    if let Some(service) = trial.service {
        must_fail("to connect", TcpStream::connect_timeout(&service, Duration::from_millis(500)).map(drop));
    }
    if !trial.writable {
        attempts(&trial.inside).into_iter().for_each(|(what, done)| must_fail(&format!("to {what}"), done));
    }
    if let Some(service) = trial.service {
        // Whether it arrives is looked at by the host: in a network of one's own, sending works.
        let _ = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|socket| socket.send_to(b"x", service));
    }
    let mut must_work = |what: &str, done: io::Result<()>| {
        if let Err(error) = done {
            found.push(format!("{what} was not possible: {error}"));
        }
    };
    must_work("to write to /dev/null", fs::write("/dev/null", "x"));
    must_work("to read elsewhere", fs::read(trial.outside.join("old")).map(drop));
    if trial.writable {
        attempts(&trial.inside)
            .into_iter()
            .for_each(|(what, done)| must_work(&format!("to {what} inside"), done));
    }
    found
}

/// Everything that changes files, tried below a directory that has a file `old`; all of it can succeed in this order.
fn attempts(directory: &Path) -> Vec<(&'static str, io::Result<()>)> {
    let (old, new, below) = (directory.join("old"), directory.join("new"), directory.join("below"));
    vec![
        ("create a file", fs::write(&new, "x")),
        ("append to a file", OpenOptions::new().append(true).open(&old).map(drop)),
        ("empty a file", OpenOptions::new().write(true).truncate(true).open(&old).map(drop)),
        ("make a directory", fs::create_dir(&below)),
        ("move a file", fs::rename(&old, below.join("moved"))),
        ("link", std::os::unix::fs::symlink("old", directory.join("link"))),
        ("remove a file", fs::remove_file(&new).and_then(|()| fs::remove_file(&old).or(Ok(())))),
    ]
}
