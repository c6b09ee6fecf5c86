//! Running a parser of somebody else's on somebody else's file.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

/// Parsers that recurse into what a file nests are given this much stack, in bytes.
const STACK: usize = 64 << 20;
/// How often a caller that waits looks whether the call was given up.
const LOOK: Duration = Duration::from_millis(50);

/// Why there is no result.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// It panicked.
    #[error("reading it failed in a way that only a broken file causes")]
    Panicked,
    /// It took too long.
    #[error("reading it took more than {} seconds", .0.as_secs())]
    TooLong(Duration),
    /// The caller gave up.
    #[error("the call was given up")]
    GivenUp,
}

/// Whether contained work should come to its end.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Whether nobody waits for the result any more.
    #[must_use]
    pub fn is_asked_for(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Runs `work` on a thread of its own, for `limit` at most and until `is_given_up`. Work that does not come to an end
/// is left behind with its [`Stop`] set.
///
/// # Errors
/// [`Broken`] when there is no result.
pub fn contained<T: Send + 'static>(
    limit: Duration,
    is_given_up: impl Fn() -> bool,
    work: impl FnOnce(&Stop) -> T + Send + 'static,
) -> Result<T, Broken> {
    let stop = Stop::default();
    let (sender, receiver) = sync_channel(1);
    let thread = std::thread::Builder::new().name("parser".to_owned()).stack_size(STACK).spawn({
        let stop = stop.clone();
        move || {
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&stop)));
            // Nobody may be waiting any more.
            let _ = sender.send(result);
        }
    });
    if thread.is_err() {
        return Err(Broken::Panicked);
    }
    let begun = Instant::now();
    let outcome = loop {
        match receiver.recv_timeout(LOOK) {
            Ok(result) => return result.map_err(|_| Broken::Panicked),
            Err(RecvTimeoutError::Disconnected) => break Broken::Panicked,
            Err(RecvTimeoutError::Timeout) if is_given_up() => break Broken::GivenUp,
            Err(RecvTimeoutError::Timeout) if begun.elapsed() > limit => break Broken::TooLong(limit),
            Err(RecvTimeoutError::Timeout) => {}
        }
    };
    stop.0.store(true, Ordering::Relaxed);
    Err(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_result_comes_back_and_a_panic_does_not_spread() {
        assert_eq!(contained(LONG, || false, |_| 7), Ok(7));
        assert_eq!(contained(LONG, || false, |_| -> u8 { panic!("a broken file") }), Err(Broken::Panicked));
    }

    #[test]
    fn what_takes_too_long_or_is_given_up_is_told_to_stop() {
        let waits = |told: std::sync::mpsc::Sender<()>| {
            move |stop: &Stop| {
                while !stop.is_asked_for() {
                    std::thread::yield_now();
                }
                told.send(()).unwrap();
            }
        };
        let (sender, receiver) = std::sync::mpsc::channel();
        let limit = Duration::from_millis(10);
        assert_eq!(contained(limit, || false, waits(sender.clone())), Err(Broken::TooLong(limit)));
        assert_eq!(contained(LONG, || true, waits(sender)), Err(Broken::GivenUp));
        receiver.recv_timeout(LONG).unwrap();
        receiver.recv_timeout(LONG).unwrap();
    }
}
