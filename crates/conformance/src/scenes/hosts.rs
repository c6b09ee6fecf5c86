//! Hosts that are less helpful than the kernel.

use std::time::Duration;

use provider_core::wire::map_to_struct;
use tokio::time::{Instant, sleep};

use crate::Requirement;
use crate::calls::fill_object;
use crate::kernel::Conduct;
use crate::run::Run;
use crate::scenes::ending::{PACE, SWEEP_LIMIT, Underway, left_over};
use crate::scenes::listed::CALL_LIMIT;
use crate::session::{Session, Stage};
use crate::topics::callback;
use crate::transcript::Transcript;

/// How long an entry about a cancelled call may take to come.
const LOG_LIMIT: Duration = Duration::from_secs(5);

pub(crate) async fn play(run: &Run<'_>) {
    under(run, callback::ABSENT, None).await;
    under(run, callback::HANGING, Some(Conduct::Hang)).await;
    under(run, callback::REFUSING, Some(Conduct::Refuse)).await;
    cancelled(run).await;
}

/// A call that was cancelled is what a provider has most reason to log: nothing else of its end reaches the kernel.
async fn cancelled(run: &Run<'_>) {
    let Some(call) = run.calls.and_then(|calls| calls.long()) else { return };
    let Some(underway) = Underway::start(run, call, None).await else { return };
    underway.is_running().await;
    underway.reset();
    let session = &underway.session;
    left_over(&underway.before, || session.processes().ok(), SWEEP_LIMIT).await;
    // It may take a moment to come; a calls file that says that nothing comes spares the wait.
    let silent = run.calls.is_some_and(|calls| calls.excuse(callback::LOG.id).is_some());
    let start = Instant::now();
    let logged = || session.callbacks.callbacks().iter().any(|callback| callback.rpc == "Log");
    while !silent && !logged() && start.elapsed() < LOG_LIMIT {
        sleep(PACE).await;
    }
    callback::judge(&run.judge, &session.callbacks.callbacks());
    session.look_aside();
}

async fn under(run: &Run<'_>, requirement: &'static Requirement, callbacks: Option<Conduct>) {
    let stage = Stage { callbacks, ..Stage::default() };
    let session = match run.try_start(&stage).await {
        None => return run.judge.unreached(requirement, "no scratch directory can be made"),
        Some(Err(error)) => return run.judge.fail(requirement, error.to_string()),
        Some(Ok(session)) => session,
    };
    run.judge.rule(requirement, usual(run, &session).await);
    session.look_aside();
}

/// What a provider does under any host.
async fn usual(run: &Run<'_>, session: &Session) -> Result<(), String> {
    session.describe().await.map_err(|refusal| format!("Describe: {refusal}"))?;
    session.schema().await.map_err(|refusal| format!("GetSchema: {refusal}"))?;
    let Some(config) = run.wire_config_in(session) else { return Ok(()) };
    match session.configure(config).await {
        // What is refused anyway has a rule of its own.
        Err(refusal) if refusal.code().is_some() => return Ok(()),
        Err(refusal) => return Err(format!("Configure: {refusal}")),
        Ok(()) => {}
    }
    first_call(run, session).await
}

/// Makes the first listed call, which works by itself, and compares its end with the one it usually has.
pub(crate) async fn first_call(run: &Run<'_>, session: &Session) -> Result<(), String> {
    let (Some(usual), Some(now)) = (run.usual_end().await, made(run, session).await) else { return Ok(()) };
    match now.kind() == *usual {
        true => Ok(()),
        false => Err(format!("a call that usually ends with {usual} ended with {}", now.ending())),
    }
}

/// The first listed call, made.
async fn made(run: &Run<'_>, session: &Session) -> Option<Transcript> {
    let call = run.calls.and_then(|calls| calls.calls.iter().find(|call| !call.long))?;
    let arguments = map_to_struct(fill_object(&call.arguments, &run.names(session)));
    let wire = session.call(&call.tool, Some(arguments), call.cwd.as_deref());
    Some(session.invoke(wire, CALL_LIMIT).await)
}

/// How the first listed call ends under a host like the kernel.
pub(crate) async fn usual_end(run: &Run<'_>) -> Option<String> {
    let stage = Stage { callbacks: Some(Conduct::Serve), ..Stage::default() };
    let session = run.configured(&stage).await?;
    made(run, &session).await.map(|transcript| transcript.kind())
}
