//! `toolctl call`: one call, from its arguments to its painted result.

use serde_json::Value;
use tool_host::{Event, Invocation, Object, Outcome, Provider};

use crate::cli::Call;
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::open::{Setup, arguments, host};
use crate::paint::{paint, safe};
use crate::reach::is_code;
use crate::shell::Shell;

pub(super) async fn run(args: Call, shell: &Shell, interrupts: &mut Interrupts) -> Result<Exit, Failure> {
    let target = args.target;
    super::verbosity(target.shared.verbose, shell);
    let setup = Setup::new(&target.shared)?;
    let host = host(&target.shared, shell, target.args.as_deref() != Some("-"))?;
    let (provider, reach) = match is_code(&target.provider) {
        true => {
            let (code, reach) = interrupts.guard(setup.open_code(&host, shell)).await?;
            (code, Some(reach))
        }
        false => (interrupts.guard(setup.open(&target.provider, shell)).await?, None),
    };
    let tool = provider.tool(&target.tool).map_err(Failure::usage)?;
    let arguments = arguments(tool, target.args.as_deref(), &target.assignments)?;
    let call = setup.call(&target.tool, arguments, &target.shared);
    let invocation = match &reach {
        Some(reach) => reach.call(&host, &provider, call),
        None => host.call(&provider, call),
    };
    let outcome = follow(&provider, invocation, shell, interrupts).await;
    let shown = show(&provider, &outcome, shell).await;
    provider.stop().await;
    if let Some(reach) = reach {
        reach.stop().await;
    }
    shown
}

/// Shows the events of a call as they come, up to its outcome. The first interrupt cancels the call, the
/// second kills the provider.
async fn follow(
    provider: &Provider,
    mut invocation: Invocation,
    shell: &Shell,
    interrupts: &mut Interrupts,
) -> Outcome {
    let canceller = invocation.canceller();
    let mut cancelled = false;
    loop {
        tokio::select! {
            biased;
            event = invocation.next() => match event {
                Some(event) => show_event(&event, shell),
                None => return invocation.outcome().await,
            },
            () = interrupts.next() => {
                if cancelled {
                    provider.kill();
                    return Err(tool_host::call::cancelled());
                }
                cancelled = true;
                canceller.cancel();
                shell.status("cancelling; once more ends the provider at once");
            }
        }
        if shell.reader_gone() && !cancelled {
            cancelled = true;
            canceller.cancel();
        }
    }
}

fn show_event(event: &Event, shell: &Shell) {
    if shell.json() {
        return shell.event_line(None, event);
    }
    match event {
        Event::OutputChunk { stream, data } => shell.live(*stream, data.as_bytes()),
        Event::Progress { message, fraction_complete } => {
            let percent =
                fraction_complete.map_or_else(String::new, |part| format!(" {:.0} %", part * 100.0));
            shell.status(&format!("{message}{percent}"));
        }
        Event::PartialResult { payload } => {
            shell.note(&format!("partial result: {}\n", safe(&partial(payload))));
        }
        // The result says how the process ended.
        Event::ExitStatus { .. } => {}
    }
}

/// A report in one line: its note, where that is all there is to it.
fn partial(payload: &Object) -> String {
    match payload.get("note").and_then(Value::as_str) {
        Some(note) => note.to_owned(),
        None => Value::Object(payload.clone()).to_string(),
    }
}

async fn show(provider: &Provider, outcome: &Outcome, shell: &Shell) -> Result<Exit, Failure> {
    if shell.reader_gone() {
        return Ok(Exit::Done);
    }
    if shell.json() {
        shell.outcome_line(None, outcome);
        return Ok(Exit::of(outcome));
    }
    let payload = outcome.as_ref().map_err(|error| error.clone())?;
    let picture = match provider.render(payload).await {
        Ok(tree) => tree,
        Err(error) => {
            shell.warning(&format!("{} cannot show its result: {}", provider.identity().name, error.message));
            None
        }
    };
    match picture {
        Some(tree) => shell.data(&paint(&tree, shell.out())),
        None => shell.data(&format!("{}\n", safe(&format!("{:#}", Value::Object(payload.clone()))))),
    }
    Ok(Exit::Done)
}
