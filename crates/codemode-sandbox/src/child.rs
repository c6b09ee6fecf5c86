//! The life of the process: lock up, take the first frame, work, be done.

use std::process::ExitCode;

use crate::channel::{Inbox, Outbox};
use crate::engine::Engine;
use crate::frames::{Done, Reason, Run, ToChild, ToParent};
use crate::{Setting, clock, confine, memory, program};

/// What a locked-up process works with.
pub(crate) struct Sandbox {
    pub(crate) inbox: Inbox,
    pub(crate) outbox: Outbox,
    pub(crate) engine: Engine,
}

/// Runs to the end of the process. Not one byte of input is read before the filter is on.
pub(crate) fn main(arguments: &[String]) -> ExitCode {
    let mut outbox = Outbox::default();
    let settings: Vec<Setting> = arguments.iter().filter_map(|argument| Setting::parse(argument)).collect();
    let parent = arguments.first().and_then(|pid| pid.parse().ok()).unwrap_or_default();
    let engine = match lock_up(parent, &settings, &mut outbox) {
        Ok(engine) => engine,
        Err(reason) => {
            outbox.push(&ToParent::Done(Done::failed(Reason::SandboxUnavailable, reason)));
            outbox.flush();
            return ExitCode::FAILURE;
        }
    };
    outbox.flush();
    let mut inbox = Inbox::default();
    let first = inbox.line().and_then(|line| serde_json::from_slice::<ToChild>(&line).ok());
    // A parent that only asked what the sandbox is made of says nothing.
    let Some(ToChild::Run(run)) = first else { clock::leave(0) };
    begin(run, Sandbox { inbox, outbox, engine })
}

fn lock_up(parent: i32, settings: &[Setting], outbox: &mut Outbox) -> Result<Engine, String> {
    let mut confinement = confine::give_up(parent, settings).map_err(|error| error.to_string())?;
    clock::install();
    // The engine is made before the filter: what it asks the system once, it does not ask later.
    let engine = Engine::new().map_err(|error| format!("the engine cannot be started: {error}"))?;
    confinement.seccomp = confine::shut(settings).map_err(|error| error.to_string())?;
    outbox.push(&ToParent::Ready(confinement));
    Ok(engine)
}

fn begin(run: Run, sandbox: Sandbox) -> ! {
    memory::allow(run.limits.memory_bytes);
    #[cfg(debug_assertions)]
    if let Some(name) = &run.probe {
        crate::probe::run(name);
    }
    program::run(run, sandbox)
}
