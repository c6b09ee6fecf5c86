//! What a walk found is kept, so that the next one need not walk.
//!
//! The first call walks as if there were nothing here. After it is answered, a thread of its own lists and watches the
//! same directories once more, whenever no call is at work; then it ends. Later calls answer from memory what is
//! still true, list what has changed, and go back to walking when that would be slower or when anything is in doubt.
//! Nothing runs while nobody asks: changes wait in the kernel's queue until the next call takes them out.

#[cfg(target_os = "linux")]
mod answer;
#[cfg(target_os = "linux")]
mod entries;
#[cfg(target_os = "linux")]
mod fill;
#[cfg(target_os = "linux")]
mod tree;
#[cfg(target_os = "linux")]
mod watch;

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests;

#[cfg(target_os = "linux")]
pub(crate) use fill::{Busy, Warm};

/// Where changes are not told, every walk is a first one.
#[cfg(not(target_os = "linux"))]
mod cold {
    use crate::engine::glob::start::Start;
    use crate::engine::glob::walk::{Query, Sink, Tally};
    use crate::engine::stop::Stop;

    /// There is nothing that a call could be disturbed by.
    pub(crate) struct Busy;

    /// Keeps nothing.
    #[derive(Debug, Default)]
    pub(crate) struct Warm;

    impl Warm {
        pub(crate) fn busy(&self) -> Busy {
            Busy
        }

        pub(crate) fn answer<S: Sink>(
            &self,
            _: &Start,
            _: Query<'_>,
            _: &Stop,
            _: impl Fn() -> S,
        ) -> Option<(S, Tally)> {
            None
        }

        pub(crate) fn keep(&self, _: &Start, _: bool) {}

        pub(crate) fn close(&self) {}
    }
}
#[cfg(not(target_os = "linux"))]
pub(crate) use cold::{Busy, Warm};
