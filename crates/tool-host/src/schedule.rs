//! Which calls of one provider may run at the same time.
//!
//! First come, first served: a call starts when it conflicts with nothing that runs and with nothing that
//! waits before it. Waiting ends, without a trace, when its future is dropped.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::oneshot;

use crate::catalogue::{Concurrency, Tool};
use crate::event::Object;

/// What a call needs to itself while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim(Need);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Need {
    /// The whole provider.
    Everything,
    /// Nothing.
    Nothing,
    /// One key: the tool and the values of its key arguments.
    Key(String),
}

impl Claim {
    /// What a call of `tool` with these arguments needs.
    ///
    /// Values are compared as they were given: `a.txt` and `./a.txt` are two keys, absent and null are one.
    pub fn of(tool: &Tool, arguments: &Object) -> Self {
        Self(match &tool.concurrency {
            Concurrency::Exclusive => Need::Everything,
            Concurrency::Shared { keys } if keys.is_empty() => Need::Nothing,
            Concurrency::Shared { keys } => {
                let values =
                    keys.iter().map(|key| arguments.get(key).cloned().unwrap_or(Value::Null)).collect();
                Need::Key(format!("{} {}", tool.name, Value::Array(values)))
            }
        })
    }

    fn conflicts_with(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Need::Everything, _) | (_, Need::Everything) => true,
            (Need::Key(one), Need::Key(other)) => one == other,
            _ => false,
        }
    }
}

/// The queue of one provider's calls. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Scheduler(Arc<Mutex<Queue>>);

#[derive(Debug, Default)]
struct Queue {
    next: u64,
    running: Vec<(u64, Claim)>,
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    id: u64,
    claim: Claim,
    start: oneshot::Sender<()>,
}

/// The right to run. Dropping it lets the next calls start.
#[derive(Debug)]
pub struct Permit {
    queue: Scheduler,
    id: u64,
}

impl Scheduler {
    /// Waits until the claim conflicts with nothing that came before it.
    pub async fn enter(&self, claim: Claim) -> Permit {
        let (start, started) = oneshot::channel();
        let permit = {
            let mut queue = self.queue();
            let id = queue.next;
            queue.next += 1;
            queue.waiting.push_back(Waiting { id, claim, start });
            queue.start_what_can();
            Permit { queue: self.clone(), id }
        };
        // The sender lives in the queue until the call starts; the permit, dropped on cancellation, removes it.
        let _ = started.await;
        permit
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn start_what_can(&mut self) {
        let mut still_waiting: VecDeque<Waiting> = VecDeque::with_capacity(self.waiting.len());
        for call in self.waiting.drain(..) {
            let blocked = self.running.iter().any(|(_, claim)| claim.conflicts_with(&call.claim))
                || still_waiting.iter().any(|before| before.claim.conflicts_with(&call.claim));
            if blocked {
                still_waiting.push_back(call);
            } else {
                self.running.push((call.id, call.claim));
                // A receiver that is gone drops its permit, which takes the claim out again.
                let _ = call.start.send(());
            }
        }
        self.waiting = still_waiting;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut queue = self.queue.queue();
        queue.running.retain(|(id, _)| *id != self.id);
        queue.waiting.retain(|call| call.id != self.id);
        queue.start_what_can();
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn key(name: &str) -> Claim {
        Claim(Need::Key(name.to_owned()))
    }

    const ALL: Claim = Claim(Need::Everything);
    const FREE: Claim = Claim(Need::Nothing);

    /// Whether the future has its permit yet.
    fn poll(future: std::pin::Pin<&mut impl Future<Output = Permit>>) -> Option<Permit> {
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(permit) => Some(permit),
            Poll::Pending => None,
        }
    }

    fn enters(scheduler: &Scheduler, claim: Claim) -> Option<Permit> {
        poll(pin!(scheduler.enter(claim)))
    }

    #[test]
    fn equal_keys_wait_and_different_keys_do_not() {
        let scheduler = Scheduler::default();
        let a = enters(&scheduler, key("a")).unwrap();
        let _b = enters(&scheduler, key("b")).unwrap();
        let _free = enters(&scheduler, FREE).unwrap();
        assert!(enters(&scheduler, key("a")).is_none());
        drop(a);
        assert!(enters(&scheduler, key("a")).is_some());
    }

    #[test]
    fn an_exclusive_call_runs_alone() {
        let scheduler = Scheduler::default();
        let free = enters(&scheduler, FREE).unwrap();
        assert!(enters(&scheduler, ALL).is_none());
        drop(free);
        let _all = enters(&scheduler, ALL).unwrap();
        assert!(enters(&scheduler, FREE).is_none());
        assert!(enters(&scheduler, key("a")).is_none());
    }

    #[test]
    fn a_later_call_does_not_overtake_a_waiting_exclusive_one() {
        let scheduler = Scheduler::default();
        let first = enters(&scheduler, FREE).unwrap();
        let mut all = pin!(scheduler.enter(ALL));
        assert!(poll(all.as_mut()).is_none());
        let mut late = pin!(scheduler.enter(FREE));
        assert!(poll(late.as_mut()).is_none());
        drop(first);
        let all = poll(all.as_mut()).unwrap();
        assert!(poll(late.as_mut()).is_none());
        drop(all);
        assert!(poll(late.as_mut()).is_some());
    }

    #[test]
    fn a_call_that_gives_up_waiting_blocks_nobody() {
        let scheduler = Scheduler::default();
        let running = enters(&scheduler, FREE).unwrap();
        assert!(enters(&scheduler, ALL).is_none(), "polled once, then dropped");
        assert!(enters(&scheduler, FREE).is_some());
        drop(running);
        assert!(scheduler.queue().waiting.is_empty() && scheduler.queue().running.is_empty());
    }
}
