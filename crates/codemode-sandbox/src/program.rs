//! Code mode: one program, compiled, run, and told about.

mod compile;
mod hint;

use std::cell::{Cell, RefCell, RefMut};
use std::rc::Rc;
use std::time::Duration;

use rquickjs::context::EvalOptions;
use rquickjs::{Ctx, Function, Object, Persistent, Value};
use serde_json::value::RawValue;

use crate::channel::{Inbox, Outbox};
use crate::child::Sandbox;
use crate::clock;
use crate::engine::{Rejections, Rest, Work, limit, serve};
use crate::frames::{
    Call, Done, FRAME_MARGIN, LONGEST_FRAME, Limits, MOST_OUTSTANDING, Reason, Run, Text, ToParent,
};

use compile::{Compiled, compile, with_own_columns};

/// The head of a value that is too large.
const HEAD: usize = 4 * 1_024;

/// Runs the program to the end of the process.
pub(crate) fn run(run: Run, sandbox: Sandbox) -> ! {
    clock::start(run.limits.slice());
    let Sandbox { mut inbox, outbox, engine } = sandbox;
    let desk = Rc::new(Desk::new(outbox, run.limits));
    let done = engine.context.with(|ctx| match Running::begin(&ctx, &run, &desk, &engine.rejections) {
        Ok(Begun::Runs(running)) => running.finish(&ctx, &mut inbox),
        Ok(Begun::Refused(done)) => done,
        Err(error) => Done::failed(limit().unwrap_or(Reason::Crashed), format!("the engine failed: {error}")),
    });
    clock::stop();
    let mut outbox = desk.outbox.borrow_mut();
    outbox.push(&ToParent::Done(done));
    outbox.flush();
    clock::leave(0)
}

/// What the native functions of a program share.
struct Desk {
    outbox: RefCell<Outbox>,
    limits: Limits,
    /// Calls without an answer.
    outstanding: Cell<usize>,
    /// Bytes of console text so far.
    logged: Cell<usize>,
    /// How the program's own promise was settled.
    settled: RefCell<Option<Done>>,
}

impl Desk {
    fn new(outbox: Outbox, limits: Limits) -> Self {
        Self {
            outbox: RefCell::new(outbox),
            limits,
            outstanding: Cell::new(0),
            logged: Cell::new(0),
            settled: RefCell::new(None),
        }
    }

    /// Sends a call. Answers why it was not sent, or nothing.
    fn call(&self, id: u64, plugin: String, tool: String, input: String) -> &'static str {
        // Names are written with escapes, input is JSON already.
        if input.len() + 6 * (plugin.len() + tool.len()) + FRAME_MARGIN > LONGEST_FRAME {
            return "its input is larger than 32 MiB";
        }
        if self.outstanding.get() >= MOST_OUTSTANDING {
            return "10000 calls are without an answer; await some";
        }
        let Ok(input) = RawValue::from_string(input) else { return "its input is no JSON" };
        self.outbox.borrow_mut().push(&ToParent::Call(Call { id, plugin, tool, input }));
        self.outstanding.set(self.outstanding.get() + 1);
        ""
    }

    /// Sends a line of the console at once, so that it outlives this process. What comes after the program has settled
    /// is not part of what it says.
    fn log(&self, text: String) {
        let logged = self.logged.get();
        if self.settled.borrow().is_some() || logged > self.limits.console_bytes {
            return;
        }
        // The parent cuts; one line more than it shows tells it that there was more.
        self.logged.set(logged + text.len() + 1);
        let mut outbox = self.outbox.borrow_mut();
        outbox.push(&ToParent::Log(text));
        outbox.flush();
    }

    fn settle(&self, done: Done) {
        self.settled.borrow_mut().get_or_insert(done);
    }

    fn returned(&self, kind: &str, text: String) {
        let bytes = text.len();
        let cut = match bytes > self.limits.value_bytes {
            true => text[..text.floor_char_boundary(HEAD)].to_owned(),
            false => text,
        };
        let value = (kind != "nothing").then_some(Text { text: cut, bytes });
        let reason = (bytes > self.limits.value_bytes).then_some(Reason::ResultTooLarge);
        self.settle(Done { reason, value, ..Done::default() });
    }

    fn failed(&self, reason: &str, message: String, stack: String) {
        let reason = if reason == "threw" { Reason::Threw } else { Reason::ValueNotJson };
        let message = hint::for_thrown(message);
        self.settle(Done { stack: with_own_columns(&stack), ..Done::failed(reason, message) });
    }
}

/// A program that runs.
struct Running<'js> {
    desk: Rc<Desk>,
    receive: Function<'js>,
    left_over: Function<'js>,
}

enum Begun<'js> {
    Runs(Running<'js>),
    Refused(Done),
}

impl<'js> Work<'js> for Running<'js> {
    fn slice(&self) -> Duration {
        self.desk.limits.slice()
    }

    fn outbox(&self) -> RefMut<'_, Outbox> {
        self.desk.outbox.borrow_mut()
    }

    fn receive(&self, frame: Value<'js>) {
        // An error is a passed limit, which is seen before the next job.
        if let Ok(true) = self.receive.call((frame,)) {
            self.desk.outstanding.set(self.desk.outstanding.get().saturating_sub(1));
        }
    }

    fn at_rest(&self) -> Rest {
        if self.desk.outstanding.get() > 0 {
            return Rest::Wait;
        }
        let settled = self.desk.settled.borrow_mut().take();
        Rest::Done(settled.unwrap_or_else(|| {
            Done::failed(Reason::Deadlock, "the program waits for a promise that nothing will settle")
        }))
    }
}

impl<'js> Running<'js> {
    /// Makes the surroundings, compiles the program and starts it.
    fn begin(
        ctx: &Ctx<'js>,
        run: &Run,
        desk: &Rc<Desk>,
        rejections: &Rejections,
    ) -> rquickjs::Result<Begun<'js>> {
        let names = ctx.json_parse(serde_json::to_vec(&run.tools).unwrap_or_default())?;
        let prelude: Function<'js> =
            ctx.eval_with_options(include_str!("prelude.js"), options("prelude.js"))?;
        let bridge: Object<'js> = prelude.call((natives(ctx, desk)?, names))?;
        let rejected: Function<'js> = bridge.get("rejected")?;
        *rejections.borrow_mut() = Some(Persistent::save(ctx, rejected));
        match compile(ctx, &run.code) {
            Ok(Compiled { program, is_expression }) => {
                let start: Function<'js> = bridge.get("run")?;
                // The promise that comes back never rejects; an error is a passed limit.
                if start.call::<_, Value<'js>>((program, is_expression)).is_err() {
                    ctx.catch();
                }
                let (receive, left_over) = (bridge.get("receive")?, bridge.get("leftOver")?);
                Ok(Begun::Runs(Self { desk: desk.clone(), receive, left_over }))
            }
            Err(thrown) => refuse(&bridge, thrown, &run.code).map(Begun::Refused),
        }
    }

    fn finish(self, ctx: &Ctx<'js>, inbox: &mut Inbox) -> Done {
        let mut done = serve(ctx, inbox, &self);
        if matches!(done.reason, Some(Reason::Time | Reason::Memory)) {
            return done;
        }
        // The program's own failure is said first; what it left behind besides.
        let texts: String = self.left_over.call(()).unwrap_or_default();
        done.unhandled = serde_json::from_str(&texts).unwrap_or_default();
        if let Some(reason) = limit() {
            return Done { reason: Some(reason), ..Done::default() };
        }
        if done.reason.is_none() && !done.unhandled.is_empty() {
            done.reason = Some(Reason::UnhandledRejection);
        }
        done
    }
}

/// What is said of a program that does not compile.
fn refuse<'js>(bridge: &Object<'js>, thrown: Value<'js>, code: &str) -> rquickjs::Result<Done> {
    if let Some(reason) = limit() {
        return Ok(Done { reason: Some(reason), ..Done::default() });
    }
    let error_text: Function<'js> = bridge.get("errorText")?;
    let stack_of: Function<'js> = bridge.get("stackOf")?;
    let message: String = error_text.call((thrown.clone(),))?;
    let stack: String = stack_of.call((thrown,))?;
    Ok(Done {
        stack: with_own_columns(&stack),
        ..Done::failed(Reason::Syntax, hint::for_syntax(message, code))
    })
}

pub(crate) fn options(file: &str) -> EvalOptions {
    let mut options = EvalOptions::default();
    options.filename = Some(file.to_owned());
    options
}

/// The functions that the prelude is given.
fn natives<'js>(ctx: &Ctx<'js>, desk: &Rc<Desk>) -> rquickjs::Result<Object<'js>> {
    let natives = Object::new(ctx.clone())?;
    let own = desk.clone();
    let call = move |id: f64, plugin: String, tool: String, input: String| {
        // Ids count from 1 in steps of 1, far below where a float is no longer exact.
        own.call(id as u64, plugin, tool, input)
    };
    natives.set("call", Function::new(ctx.clone(), call)?)?;
    let own = desk.clone();
    natives.set("log", Function::new(ctx.clone(), move |text: String| own.log(text))?)?;
    let own = desk.clone();
    let returned = move |kind: String, text: String| own.returned(&kind, text);
    natives.set("returned", Function::new(ctx.clone(), returned)?)?;
    let own = desk.clone();
    let failed = move |reason: String, message: String, stack: String| own.failed(&reason, message, stack);
    natives.set("failed", Function::new(ctx.clone(), failed)?)?;
    Ok(natives)
}
