//! The end of the process, idle and at work.

use std::time::Duration;

use goplugin::Address;
use goplugin::host::{Death, Exit};
use goplugin::wire::Empty;
use goplugin::wire::grpc_controller_client::GrpcControllerClient;
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::timeout;

use crate::calls::Call;
use crate::kernel::Conduct;
use crate::processes::Processes;
use crate::run::Run;
use crate::scenes::ending::{NO_LONG_CALL, Underway, left_over};
use crate::session::{Session, Stage};
use crate::topics::shutdown::*;
use crate::world::World;

/// How long the kernel waits after Shutdown, and what is left over after a call may take.
const EXIT_LIMIT: Duration = Duration::from_secs(2);
/// Nobody waits for a provider whose host is gone; it only must not stay.
const GONE_LIMIT: Duration = Duration::from_secs(5);
/// A signal that is ignored shows in nothing; one that is not does so well within this.
const SIGNAL_LIMIT: Duration = Duration::from_millis(500);

pub(crate) async fn play(run: &Run<'_>) {
    if let Some(session) = session(run).await {
        interrupted(run, &session).await;
        shut_down(run, session).await;
    }
    if let Some(session) = session(run).await {
        let exit = signalled(&session, Signal::TERM, EXIT_LIMIT).await;
        run.judge.demand(TERMINATED, exit.is_some(), || format!("it still ran after {EXIT_LIMIT:?}"));
    }
    if let Some(session) = session(run).await {
        let (exit, _world) = abandoned(session).await;
        run.judge.demand(HOST_GONE, exit.is_some(), || format!("it still ran after {GONE_LIMIT:?}"));
    }
    match run.calls.and_then(|calls| calls.long()) {
        None => run.judge.all_unreached(&[BUSY, CALL_ENDS, KILLED], NO_LONG_CALL),
        Some(call) => at_work(run, call).await,
    }
}

/// A provider as it is between calls; where it accepts no configuration, as it is before.
async fn session(run: &Run<'_>) -> Option<Session> {
    let stage = Stage { callbacks: Some(Conduct::Serve), ..Stage::default() };
    let session = run.start(&stage).await?;
    if let Some(config) = run.wire_config_in(&session) {
        let _ = session.configure(config).await;
    }
    Some(session)
}

async fn interrupted(run: &Run<'_>, session: &Session) {
    send(session, Signal::INT);
    let exit = timeout(SIGNAL_LIMIT, session.running.exited()).await;
    let finding = match exit {
        Ok(exit) => Err(format!("it {exit}")),
        Err(_) => session.describe().await.map(|_| ()).map_err(|refusal| refusal.to_string()),
    };
    run.judge.rule(INTERRUPTED, finding);
}

async fn shut_down(run: &Run<'_>, session: Session) {
    if !session.is_alive() {
        return;
    }
    let exit = told(&session).await;
    let code = match exit {
        None => Err(format!("it still ran after {EXIT_LIMIT:?}")),
        Some(Exit::Orderly | Exit::Crashed(Death::Code(0))) => Ok(()),
        Some(other) => Err(format!("it {other}")),
    };
    let left_in_time = code.is_ok();
    run.judge.rule(EXITS, code);
    if !left_in_time {
        return;
    }
    if let Address::Unix(path) = &session.running.handshake().address {
        run.judge.demand(SOCKET, !path.exists(), || format!("{} is there", path.display()));
    } else {
        run.judge.unreached(SOCKET, "it listens on TCP");
    }
    let left = left_over(&Processes::default(), || session.processes().ok(), EXIT_LIMIT).await;
    run.judge.demand(CLEAN, left.is_empty(), || left.join(", "));
}

/// Tells the provider to leave and waits for it.
async fn told(session: &Session) -> Option<Exit> {
    let mut controller = GrpcControllerClient::new(session.running.channel());
    let leave = async {
        // Whether it answers or not: what counts is that it leaves.
        let _ = controller.shutdown(Empty {}).await;
        session.running.exited().await
    };
    timeout(EXIT_LIMIT, leave).await.ok()
}

fn send(session: &Session, signal: Signal) {
    let pid = i32::try_from(session.running.pid()).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // One that has left already shows in what is looked at next.
        let _ = kill_process(pid, signal);
    }
}

/// Sends a signal and waits for the end of the process.
pub(crate) async fn signalled(session: &Session, signal: Signal, limit: Duration) -> Option<Exit> {
    send(session, signal);
    timeout(limit, session.running.exited()).await.ok()
}

/// Closes every connection, as a host that dies does. The world stays, to be looked at.
async fn abandoned(session: Session) -> (Option<Exit>, World) {
    let Session { running, world, .. } = session;
    (running.abandon(GONE_LIMIT).await, world)
}

/// Each way to end, while a call runs.
async fn at_work(run: &Run<'_>, call: &Call) {
    if let Some(underway) = busy(run, call).await {
        let exit = told(&underway.session).await;
        run.judge.demand(BUSY, exit.is_some(), || format!("it still ran after {EXIT_LIMIT:?}"));
        outlived(run, &underway, "Shutdown", CALL_ENDS).await;
    }
    if let Some(underway) = busy(run, call).await {
        signalled(&underway.session, Signal::TERM, GONE_LIMIT).await;
        outlived(run, &underway, "SIGTERM", CALL_ENDS).await;
    }
    if let Some(underway) = busy(run, call).await {
        signalled(&underway.session, Signal::KILL, GONE_LIMIT).await;
        outlived(run, &underway, "SIGKILL", KILLED).await;
    }
    if let Some(Underway { session, running, .. }) = busy(run, call).await {
        running.abort();
        // Its connection closes with the task.
        let _ = running.await;
        let pid = session.running.pid();
        let (_, world) = abandoned(session).await;
        let left =
            left_over(&Processes::default(), || Processes::of(pid, world.path()).ok(), GONE_LIMIT).await;
        run.judge.demand(CALL_ENDS, left.is_empty(), || {
            format!("{} left {} when the host was gone", call.tool, left.join(", "))
        });
    }
}

async fn busy(run: &Run<'_>, call: &Call) -> Option<Underway> {
    let underway = Underway::start(run, call, None).await?;
    underway.is_running().await;
    Some(underway)
}

async fn outlived(run: &Run<'_>, underway: &Underway, how: &str, requirement: &'static crate::Requirement) {
    let left = left_over(&Processes::default(), || underway.session.processes().ok(), GONE_LIMIT).await;
    run.judge.demand(requirement, left.is_empty(), || format!("after {how}: {}", left.join(", ")));
}
