//! Giving up work that nobody wants any more, from inside its loops.
//!
//! Planning an edit of hundreds of megabytes takes seconds, in loops far below whoever knows that the call has been
//! cancelled. Those loops look in on [`check`]; once the one who asked has given up it unwinds (without a panic's
//! message) to [`unless`], so that nothing on the way has to carry a half-made result, and every lock and temporary
//! file on the way is let go. Work that must not stop half-way begins with [`see_through`].

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// How many looks there are for each time that is asked.
const LOOKS: u32 = 256;

type Asks = Box<dyn Fn() -> bool>;

thread_local! {
    static GIVEN_UP: RefCell<Option<Asks>> = const { RefCell::new(None) };
    static LEFT: Cell<u32> = const { Cell::new(LOOKS) };
}

/// The work was given up before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the work was given up")]
pub struct GivenUp;

/// Puts back what was asked before, also when the work unwinds.
struct Restore(Option<Asks>);

impl Drop for Restore {
    fn drop(&mut self) {
        GIVEN_UP.set(self.0.take());
    }
}

/// Does the work unless it is given up meanwhile, on this thread.
///
/// # Errors
/// [`GivenUp`]. What the work had in hand is dropped then.
pub fn unless<T>(given_up: impl Fn() -> bool + 'static, work: impl FnOnce() -> T) -> Result<T, GivenUp> {
    let restore = Restore(GIVEN_UP.replace(Some(Box::new(given_up))));
    let outcome = catch_unwind(AssertUnwindSafe(work));
    drop(restore);
    outcome.map_err(|thrown| match thrown.downcast::<GivenUp>() {
        Ok(given_up) => *given_up,
        Err(panic) => resume_unwind(panic),
    })
}

/// To be called in every loop that may be long. Costs next to nothing, and unwinds once the work is given up.
#[inline]
pub fn check() {
    let left = LEFT.get();
    LEFT.set(left.wrapping_sub(1));
    if left == 0 {
        ask();
    }
}

#[cold]
fn ask() {
    LEFT.set(LOOKS);
    if GIVEN_UP.with_borrow(|asks| asks.as_ref().is_some_and(|asks| asks())) {
        resume_unwind(Box::new(GivenUp));
    }
}

/// From here to the end of the [`unless`] around it, the work is not given up any more.
pub fn see_through() {
    GIVEN_UP.set(None);
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    fn long_work(rounds: &Cell<u32>) {
        for _ in 0..10_000 {
            check();
            rounds.set(rounds.get() + 1);
        }
    }

    #[test]
    fn work_that_is_given_up_ends_and_lets_go_of_what_it_holds() {
        let (rounds, held) = (Rc::new(Cell::new(0)), Rc::new(()));
        let outcome = unless(
            {
                let rounds = rounds.clone();
                move || rounds.get() > 1_000
            },
            || {
                let _held = held.clone();
                long_work(&rounds);
            },
        );
        assert_eq!(outcome, Err(GivenUp));
        assert!((1_000..2_000).contains(&rounds.get()), "{rounds:?}");
        assert_eq!(Rc::strong_count(&held), 1);
    }

    #[test]
    fn outside_and_once_it_is_seen_through_it_goes_on() {
        let rounds = Cell::new(0);
        long_work(&rounds);
        assert_eq!(rounds.get(), 10_000);
        let outcome = unless(
            || true,
            || {
                see_through();
                long_work(&rounds);
                7
            },
        );
        assert_eq!((outcome, rounds.get()), (Ok(7), 20_000));
    }

    #[test]
    fn inner_work_is_given_up_by_itself_and_a_panic_stays_one() {
        let rounds = Cell::new(0);
        let outcome = unless(
            || false,
            || {
                assert_eq!(unless(|| true, || long_work(&rounds)), Err(GivenUp));
                long_work(&rounds);
            },
        );
        assert_eq!(outcome, Ok(()));
        assert!(rounds.get() >= 10_000);
        assert!(catch_unwind(|| unless(|| false, || panic!("expected here"))).is_err());
    }
}
