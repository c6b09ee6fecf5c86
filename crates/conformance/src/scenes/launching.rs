//! The process between its start and its first line: what a host may ask for in its environment, and what is not for
//! it.

use std::io::Write as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::Stdio;
use std::time::Duration;

use provider_core::CONTRACT;
use rustix::pipe::PipeFlags;
use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use crate::Requirement;
use crate::kernel::Conduct;
use crate::run::Run;
use crate::scenes::stopping::signalled;
use crate::session::{RPC_LIMIT, Session, Stage};
use crate::topics::handshake::{AFTER_KILL, ENCRYPTED, MULTIPLEXED, STDIN};
use crate::transcript::shortened;
use crate::world::World;

/// A certificate of a host; nobody has its key.
const CERTIFICATE: &str = include_str!("host.pem");
/// The place of the certificate in the line, and that of the word about multiplexing.
const CERTIFICATE_FIELD: usize = 5;
const MULTIPLEX_FIELD: usize = 6;
/// Anything shorter in the certificate's place is not taken for one by the Go library.
const SHORTEST_CERTIFICATE: usize = 51;
/// How long a provider that serves may take to come to reading what is not for it.
const AFTER_LINE: Duration = Duration::from_millis(300);
/// What stands on the standard input.
const TYPED: &[u8] = b"typed for somebody else\n";

pub(crate) async fn play(run: &Run<'_>) {
    unread(run).await;
    encrypted(run).await;
    multiplexed(run).await;
    after_a_kill(run).await;
}

/// The program with nothing in its environment but what every host gives it, and all pipes to be chosen.
pub(crate) fn command(run: &Run<'_>, world: &World) -> Command {
    let mut command = Command::new(&run.subject.program);
    command
        .args(&run.subject.args)
        .env_clear()
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .env("HOME", world.home())
        .env("TMPDIR", world.temporary())
        .envs(run.subject.env.iter().map(|(name, value)| (name, value)))
        .env("PLUGIN_PROTOCOL_VERSIONS", "1")
        .current_dir(world.root())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// A program that was started with the cookie, and its first line if it printed one.
struct Launched {
    line: Option<String>,
    // Kept, so that it runs while it is looked at, and is killed then.
    _child: Child,
    _world: World,
}

/// Starts the program and waits for its first line, or its end.
async fn launched(run: &Run<'_>, change: impl FnOnce(&mut Command)) -> Result<Launched, String> {
    let world = World::new(None).map_err(|error| error.to_string())?;
    let mut command = command(run, &world);
    command.env(CONTRACT.cookie_key, CONTRACT.cookie_value).stderr(Stdio::null());
    change(&mut command);
    let mut child = command.spawn().map_err(|error| format!("it cannot be started: {error}"))?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("it has no stdout")?).lines();
    let line = timeout(RPC_LIMIT, lines.next_line()).await;
    let line = line.map_err(|_| format!("neither a line nor an end within {RPC_LIMIT:?}"))?;
    Ok(Launched { line: line.ok().flatten(), _child: child, _world: world })
}

/// What is typed into the terminal of the host stays there.
async fn unread(run: &Run<'_>) {
    let pipe = || -> std::io::Result<_> {
        let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        Ok((read.try_clone()?, read, write))
    };
    let Ok((ours, theirs, write)) = pipe() else {
        return run.judge.unreached(STDIN, "no pipe can be made");
    };
    let mut write = std::fs::File::from(write);
    if write.write_all(TYPED).is_err() {
        return run.judge.unreached(STDIN, "nothing can be written to a pipe");
    }
    let launched = launched(run, |command| _ = command.stdin(theirs)).await;
    let finding = match launched {
        Err(came) => Err(came),
        // That it does not start has a rule of its own.
        Ok(Launched { line: None, .. }) => return,
        Ok(_running) => {
            sleep(AFTER_LINE).await;
            left_in(&ours)
        }
    };
    run.judge.rule(STDIN, finding);
}

fn left_in(pipe: &OwnedFd) -> Result<(), String> {
    match rustix::io::ioctl_fionread(pipe.as_fd()) {
        Ok(left) if left == TYPED.len() as u64 => Ok(()),
        Ok(left) => Err(format!("it read {} bytes", (TYPED.len() as u64).saturating_sub(left))),
        Err(error) => Err(error.to_string()),
    }
}

/// A host that wants TLS gets it, or no connection.
async fn encrypted(run: &Run<'_>) {
    let launched = launched(run, |command| _ = command.env("PLUGIN_CLIENT_CERT", CERTIFICATE)).await;
    asked(run, ENCRYPTED, launched, |line| match line {
        None => true,
        Some(fields) => fields.get(CERTIFICATE_FIELD).is_some_and(|it| it.len() >= SHORTEST_CERTIFICATE),
    });
}

async fn multiplexed(run: &Run<'_>) {
    let launched = launched(run, |command| _ = command.env("PLUGIN_MULTIPLEX_GRPC", "true")).await;
    asked(run, MULTIPLEXED, launched, |line| {
        line.is_some_and(|fields| {
            fields.get(MULTIPLEX_FIELD).is_some_and(|it| ["true", "false"].contains(it))
        })
    });
}

/// Holds the fields of the first line against what the host has asked for.
fn asked(
    run: &Run<'_>,
    requirement: &'static Requirement,
    launched: Result<Launched, String>,
    answered: impl FnOnce(Option<&[&str]>) -> bool,
) {
    let finding = launched.and_then(|launched| {
        let fields: Option<Vec<&str>> = launched.line.as_ref().map(|line| line.split('|').collect());
        let came = || launched.line.as_deref().map_or_else(|| "no line".to_owned(), shortened);
        if answered(fields.as_deref()) { Ok(()) } else { Err(came()) }
    });
    run.judge.rule(requirement, finding);
}

/// The kernel kills a program that it has started to find out what it is, and starts it again at once.
async fn after_a_kill(run: &Run<'_>) {
    let stage = Stage { callbacks: Some(Conduct::Serve), ..Stage::default() };
    let Some(first) = run.start(&stage).await else { return };
    if let Some(config) = run.wire_config_in(&first) {
        let _ = first.configure(config).await;
    }
    let world = first.world.clone();
    signalled(&first, Signal::KILL, RPC_LIMIT).await;
    let finding = match Session::start(&run.subject, world, &stage, &run.canaries).await {
        Err(error) => Err(error.to_string()),
        Ok(second) => again(run, &second).await,
    };
    run.judge.rule(AFTER_KILL, finding);
}

async fn again(run: &Run<'_>, second: &Session) -> Result<(), String> {
    second.describe().await.map_err(|refusal| format!("Describe: {refusal}"))?;
    let Some(config) = run.wire_config_in(second) else { return Ok(()) };
    match second.configure(config).await {
        // What is refused anyway has a rule of its own.
        Err(refusal) if run.usual_end().await.is_some() => Err(format!("Configure: {refusal}")),
        _ => Ok(()),
    }
}
