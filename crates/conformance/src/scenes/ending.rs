//! Calls that are ended from outside while they run.

use std::time::Duration;

use harness_proto::control::v1::CancelRequest;
use harness_proto::control::v1::call_control_client::CallControlClient;
use harness_proto::tool::v1 as pb;
use pb::tool_event::Event;
use pb::{ToolErrorCategory, ToolKind};
use provider_core::wire::map_to_struct;
use tokio::time::{Instant, sleep, timeout};
use tonic::{Code, Request};

use crate::Requirement;
use crate::calls::{Call, fill_object};
use crate::kernel::Conduct;
use crate::processes::Processes;
use crate::run::Run;
use crate::scenes::hosts::first_call;
use crate::session::{Session, Stage};
use crate::topics::cancel::*;
use crate::transcript::{Terminal, Transcript};

/// How long the rest of a call may take to be gone.
pub(crate) const SWEEP_LIMIT: Duration = Duration::from_secs(10);
/// How often it is looked at.
pub(crate) const PACE: Duration = Duration::from_millis(50);
/// How long a call may take to show that it runs: with its first event, or with a process.
const START_LIMIT: Duration = Duration::from_secs(10);
/// How much later it is taken to be well under way.
const SETTLE: Duration = Duration::from_millis(500);
/// A call that shows neither is taken to run after this.
const SILENT_START: Duration = Duration::from_millis(500);
/// The deadline that calls run into.
const TIME: Duration = Duration::from_millis(2_500);
/// How long after its time a stream is read on, for an end that is under way.
const AFTER_TIME: Duration = Duration::from_millis(500);

/// Why nothing here can be looked at.
pub(crate) const NO_LONG_CALL: &str = "the calls file lists no long call";

pub(crate) async fn play(run: &Run<'_>) {
    let Some(call) = run.calls.and_then(|calls| calls.long()) else {
        // Whether a short call is there to be ended is a matter of luck; that nothing of it stays is not.
        if let Some(call) = run.calls.and_then(|calls| run.first_of_a_data_source(calls)) {
            at_once(run, call).await;
        }
        return run.judge.all_unreached(ALL, NO_LONG_CALL);
    };
    reset(run, call).await;
    at_once(run, call).await;
    asked(run, call).await;
    deadline(run, call).await;
}

/// A call that runs.
pub(crate) struct Underway {
    pub(crate) session: Session,
    /// What there was before it.
    pub(crate) before: Processes,
    wire: pb::ToolCall,
    pub(crate) running: tokio::task::JoinHandle<Transcript>,
}

impl Underway {
    /// Starts the provider, configures it and makes the call.
    pub(crate) async fn start(run: &Run<'_>, call: &Call, timeout: Option<Duration>) -> Option<Self> {
        let stage = Stage { callbacks: Some(Conduct::Serve), ..Stage::default() };
        let session = run.configured(&stage).await?;
        let before = session.processes().ok()?;
        let arguments = map_to_struct(fill_object(&call.arguments, &run.names(&session)));
        let wire = session.call(&call.tool, Some(arguments), call.cwd.as_deref());
        let mut request = Request::new(pb::InvokeRequest { call: Some(wire.clone()) });
        if let Some(timeout) = timeout {
            request.set_timeout(timeout);
        }
        let client = session.client();
        let running =
            tokio::spawn(
                async move { Transcript::watch(client, request, Duration::from_secs(60), |_| {}).await },
            );
        Some(Self { session, before, wire, running })
    }

    /// Waits until the call can be seen to run.
    pub(crate) async fn is_running(&self) {
        let start = Instant::now();
        while start.elapsed() < START_LIMIT {
            let new = self.session.processes().is_ok_and(|now| now.has_new(&self.before));
            if new || start.elapsed() >= SILENT_START || self.running.is_finished() {
                break;
            }
            sleep(PACE).await;
        }
        sleep(SETTLE).await;
    }

    /// Resets the stream, as the kernel does.
    pub(crate) fn reset(&self) {
        self.running.abort();
    }
}

/// What is left of a call after its time, empty once all is gone. What is left then is ended from here.
pub(crate) async fn left_over(
    before: &Processes,
    now: impl Fn() -> Option<Processes>,
    limit: Duration,
) -> Vec<String> {
    let start = Instant::now();
    loop {
        let Some(now) = now() else { return Vec::new() };
        let left = now.beyond(before);
        if left.is_empty() || start.elapsed() >= limit {
            now.end_beyond(before);
            return left;
        }
        sleep(PACE).await;
    }
}

async fn swept(run: &Run<'_>, requirement: &'static Requirement, underway: &Underway, tool: &str) {
    let left = left_over(&underway.before, || underway.session.processes().ok(), SWEEP_LIMIT).await;
    run.judge.demand(requirement, left.is_empty(), || format!("{tool} left {}", left.join(", ")));
}

async fn reset(run: &Run<'_>, call: &Call) {
    let Some(underway) = Underway::start(run, call, None).await else { return };
    underway.is_running().await;
    if underway.running.is_finished() {
        return run.judge.all_unreached(ALL, &format!("{} ended before it could be cancelled", call.tool));
    }
    underway.reset();
    swept(run, NOTHING_LEFT, &underway, &call.tool).await;
    let usable = alive_and_well(run, &underway.session).await;
    run.judge.rule(USABLE, usable);
    underway.session.look_aside();
}

async fn alive_and_well(run: &Run<'_>, session: &Session) -> Result<(), String> {
    if !session.is_alive() {
        return Err("the process has ended".to_owned());
    }
    session.describe().await.map_err(|refusal| format!("Describe: {refusal}"))?;
    first_call(run, session).await
}

/// Resets streams so early that the provider may not have come to the call yet, each a little later.
async fn at_once(run: &Run<'_>, call: &Call) {
    let Some(underway) = Underway::start(run, call, None).await else { return };
    underway.reset();
    for delay in [1, 4, 16, 64] {
        let again = underway.session.call(&call.tool, underway.wire.arguments.clone(), call.cwd.as_deref());
        let request = Request::new(pb::InvokeRequest { call: Some(again) });
        let stream = Transcript::watch(underway.session.client(), request, SWEEP_LIMIT, |_| {});
        let _ = timeout(Duration::from_millis(delay), stream).await;
    }
    // What a call starts late would show only then.
    sleep(SILENT_START).await;
    swept(run, AT_ONCE, &underway, &call.tool).await;
    if let Err(came) = alive_and_well(run, &underway.session).await {
        run.judge.fail(AT_ONCE, came);
    }
}

/// Cancels through the service that keeps the stream open.
async fn asked(run: &Run<'_>, call: &Call) {
    let Some(underway) = Underway::start(run, call, None).await else { return };
    underway.is_running().await;
    let mut control = CallControlClient::new(underway.session.running.channel());
    let request = CancelRequest { call_id: underway.wire.id.clone() };
    match timeout(SWEEP_LIMIT, control.cancel(request)).await {
        Ok(Err(status)) if status.code() == Code::Unimplemented => {
            let why = "CallControl is not served, and nothing can be heard after a reset";
            return run.judge.all_unreached(&[NO_RESULT, REPORT], why);
        }
        Ok(Ok(_)) => {}
        Ok(Err(status)) => {
            return run.judge.fail(NO_RESULT, format!("CallControl.Cancel: {:?}", status.code()));
        }
        Err(_) => {
            return run.judge.fail(NO_RESULT, format!("CallControl.Cancel: no answer in {SWEEP_LIMIT:?}"));
        }
    }
    let Underway { session, before, running, .. } = underway;
    let Ok(Ok(transcript)) = timeout(SWEEP_LIMIT, running).await else {
        return run.judge.fail(NO_RESULT, format!("{}: the stream is open after {SWEEP_LIMIT:?}", call.tool));
    };
    session.look_through(&call.tool, &transcript);
    run.judge.demand(NO_RESULT, transcript.payload().is_none(), || format!("{} sent a result", call.tool));
    reported(run, call, &transcript);
    let left = left_over(&before, || session.processes().ok(), SWEEP_LIMIT).await;
    run.judge.demand(NOTHING_LEFT, left.is_empty(), || format!("{} left {}", call.tool, left.join(", ")));
}

fn reported(run: &Run<'_>, call: &Call, transcript: &Transcript) {
    if run.tool(&call.tool).map(pb::ToolSchema::kind) != Some(ToolKind::Resource) {
        return run.judge.unreached(REPORT, "the long call is of no resource");
    }
    let told = |event: &Event| matches!(event, Event::OutputChunk(_) | Event::PartialResult(_));
    run.judge.demand(REPORT, transcript.events.iter().flatten().any(told), || {
        format!("{} said nothing of what had happened", call.tool)
    });
}

async fn deadline(run: &Run<'_>, call: &Call) {
    let Some(underway) = Underway::start(run, call, Some(TIME)).await else { return };
    let Underway { session, before, mut running, .. } = underway;
    let own = match timeout(TIME + AFTER_TIME, &mut running).await {
        Ok(Ok(transcript)) => {
            session.look_through(&call.tool, &transcript);
            match transcript.first_terminal() {
                Some((_, Terminal::Error(error))) if error.category() == ToolErrorCategory::Timeout => Ok(()),
                _ => Err(format!("{} ended with {}", call.tool, transcript.ending())),
            }
        }
        _ => {
            // The kernel's client resets a stream whose time is up; this one's does not by itself.
            running.abort();
            Err(format!("{} had said nothing when its time was up", call.tool))
        }
    };
    run.judge.rule(OWN_TIMEOUT, own);
    let left = left_over(&before, || session.processes().ok(), SWEEP_LIMIT).await;
    run.judge.demand(DEADLINE, left.is_empty(), || format!("{} left {}", call.tool, left.join(", ")));
}
