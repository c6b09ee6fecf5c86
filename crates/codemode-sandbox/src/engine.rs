//! The engine, and the loop between its jobs and the frames of the parent. Both know nothing of what the work is.

use std::cell::{RefCell, RefMut};
use std::rc::Rc;
use std::time::{Duration, Instant};

use rquickjs::context::intrinsic;
use rquickjs::{Context, Ctx, Function, Persistent, Runtime, Value};

use crate::channel::{Inbox, Outbox};
use crate::clock;
use crate::frames::{Done, Reason, ToParent};
use crate::memory::{self, Counted};

/// Garbage is looked for after this many new bytes.
const COLLECT_AFTER: usize = 8 * 1_024 * 1_024;
/// The stack that JavaScript may use, well below what the process has.
const STACK: usize = 1_024 * 1_024;

/// While answers are there to be worked on, the parent is told how far this has come this often.
const TELL_AFTER: Duration = Duration::from_millis(100);

/// The language, and nothing that an engine adds to it. `Eval` is what compiles at all.
type Language = (
    intrinsic::Date,
    intrinsic::Eval,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::Proxy,
    intrinsic::MapSet,
    intrinsic::TypedArrays,
    intrinsic::Promise,
    intrinsic::WeakRef,
);

/// A runtime with one context. It is never taken apart: the process ends instead.
pub(crate) struct Engine {
    pub(crate) context: Context,
    /// What is told of rejections, once there is something to tell.
    pub(crate) rejections: Rejections,
}

/// A function that is called with a promise, its reason, and whether the rejection is handled by now.
pub(crate) type Rejections = Rc<RefCell<Option<Persistent<Function<'static>>>>>;

impl Engine {
    /// # Errors
    /// Not enough memory.
    pub(crate) fn new() -> rquickjs::Result<Self> {
        let runtime = Runtime::new_with_alloc(Counted)?;
        runtime.set_gc_threshold(COLLECT_AFTER);
        runtime.set_max_stack_size(STACK);
        runtime.set_interrupt_handler(Some(Box::new(|| limit().is_some())));
        let rejections = Rejections::default();
        let told = rejections.clone();
        runtime.set_host_promise_rejection_tracker(Some(Box::new(move |ctx, promise, reason, handled| {
            let Some(tell) = told.borrow().clone() else { return };
            let done = tell.restore(&ctx).and_then(|tell| tell.call::<_, ()>((promise, reason, handled)));
            if done.is_err() {
                // Only a passed limit can do this, and that is seen elsewhere.
                ctx.catch();
            }
        })));
        Ok(Self { context: Context::custom::<Language>(&runtime)?, rejections })
    }
}

/// The limit that has been passed. What is passed stays passed, until the clock is started again.
pub(crate) fn limit() -> Option<Reason> {
    if memory::refused() {
        Some(Reason::Memory)
    } else if clock::expired() {
        Some(Reason::Time)
    } else {
        None
    }
}

/// What there is to do once no job is left.
pub(crate) enum Rest {
    /// Wait for the parent.
    Wait,
    /// Nothing; this is the end.
    Done(Done),
}

/// What an engine is kept for.
pub(crate) trait Work<'js> {
    /// How long JavaScript may run between two frames of the parent.
    fn slice(&self) -> Duration;
    /// Where frames to the parent go.
    fn outbox(&self) -> RefMut<'_, Outbox>;
    /// Takes a frame of the parent.
    fn receive(&self, frame: Value<'js>);
    /// Decides what follows when no job is left.
    fn at_rest(&self) -> Rest;
}

/// Runs jobs, and hands on frames of the parent, until the work says that it is the end or a limit is passed. The clock
/// runs when this is called, and when it returns.
pub(crate) fn serve<'js>(ctx: &Ctx<'js>, inbox: &mut Inbox, work: &impl Work<'js>) -> Done {
    let mut taken = 0;
    let mut flushed = Instant::now();
    loop {
        if let Some(reason) = drain(ctx) {
            return Done { reason: Some(reason), ..Done::default() };
        }
        match work.at_rest() {
            Rest::Done(done) => return done,
            Rest::Wait => {}
        }
        let mut outbox = work.outbox();
        outbox.push(&ToParent::Idle(taken));
        // A parent that sees how far this has come knows that nothing hangs.
        if !inbox.has_line() || flushed.elapsed() >= TELL_AFTER {
            outbox.flush();
            flushed = Instant::now();
        }
        drop(outbox);
        clock::stop();
        // A parent that has gone wants nothing more.
        let Some(line) = inbox.line() else { clock::leave(0) };
        clock::start(work.slice());
        taken += 1;
        match ctx.json_parse(line) {
            Ok(frame) => work.receive(frame),
            // A passed limit, which is seen before the next job.
            Err(_) => drop(ctx.catch()),
        }
    }
}

/// Runs jobs until there is none.
fn drain(ctx: &Ctx<'_>) -> Option<Reason> {
    loop {
        if let Some(reason) = limit() {
            return Some(reason);
        }
        if !ctx.execute_pending_job() {
            return limit();
        }
    }
}
