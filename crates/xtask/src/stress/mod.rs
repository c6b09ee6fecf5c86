//! `cargo xtask stress NAME`: long runs that look for what examples do not find, one module each.
//!
//! Every run is seeded: the same seed gives the same inputs in the same order. A full run is bounded by time
//! (`--minutes`); the short form that the tests run has a fixed number of rounds. To add one, write a module with a
//! `run(&Run) -> anyhow::Result<String>` and name it in [`STRESSES`].

mod corpus;
pub mod exec_trees;
pub mod fs_kill;
pub mod fs_swap;
pub mod fuzz_edit;
pub mod fuzz_inputs;
pub mod fuzz_patch;
pub mod glob_compare;
mod process;
mod random;
pub mod search_compare;
mod search_tree;
mod tree;

use std::cell::Cell;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

pub use random::Random;

/// One kind of long run.
pub struct Stress {
    /// The name on the command line.
    pub name: &'static str,
    /// What is looked for, in one line.
    pub about: &'static str,
    /// The rounds of the short form that the tests run.
    pub short_rounds: u64,
    /// Does it. Answers the figures of the run in one line; an error is a finding, and names the round.
    pub run: fn(&Run) -> anyhow::Result<String>,
}

/// All of them, in the order of names.
pub const STRESSES: &[Stress] = &[
    exec_trees::STRESS,
    fs_kill::STRESS,
    fs_swap::STRESS,
    fuzz_inputs::ARGUMENTS,
    fuzz_edit::STRESS,
    fuzz_inputs::HANDSHAKE,
    fuzz_inputs::HTML,
    fuzz_patch::STRESS,
    glob_compare::STRESS,
    search_compare::STRESS,
];

/// How long a run goes on, and where its inputs come from.
pub struct Run {
    seed: u64,
    end: End,
    round: Cell<u64>,
}

enum End {
    At(Instant),
    After(u64),
}

impl Run {
    /// A run of `duration`.
    #[must_use]
    pub fn lasting(seed: u64, duration: Duration) -> Self {
        Self { seed, end: End::At(Instant::now() + duration), round: Cell::new(0) }
    }

    /// A run of `rounds`.
    #[must_use]
    pub fn of_rounds(seed: u64, rounds: u64) -> Self {
        Self { seed, end: End::After(rounds), round: Cell::new(0) }
    }

    /// The seed of the whole run.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The source of the next round's inputs, which depend on nothing but the seed and the number of the round;
    /// `None` once the run is over.
    pub fn next_round(&self) -> Option<Random> {
        let round = self.round.get();
        let goes_on = match self.end {
            End::At(end) => Instant::now() < end,
            End::After(rounds) => round < rounds,
        };
        self.round.set(round + u64::from(goes_on));
        goes_on.then(|| Random::new(self.seed, round))
    }

    /// How many rounds have begun.
    #[must_use]
    pub fn rounds(&self) -> u64 {
        self.round.get()
    }
}

/// Arguments of `cargo xtask stress`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Which run; without one the names are listed.
    name: Option<String>,
    /// How long it goes on.
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// Where the inputs come from; the same seed gives the same.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Run this many rounds instead of some minutes.
    #[arg(long)]
    rounds: Option<u64>,
}

/// Does a run and prints its figures.
///
/// # Errors
/// There is no such run, or it found something.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    use std::io::Write as _;
    let Some(name) = &arguments.name else {
        let list: String =
            STRESSES.iter().map(|stress| format!("{:<16}{}\n", stress.name, stress.about)).collect();
        return Ok(std::io::stdout().write_all(list.as_bytes())?);
    };
    let Some(stress) = STRESSES.iter().find(|stress| stress.name == name) else {
        let names: Vec<_> = STRESSES.iter().map(|stress| stress.name).collect();
        bail!("there is no run `{name}`; there is {}", names.join(", "));
    };
    let run = match arguments.rounds {
        Some(rounds) => Run::of_rounds(arguments.seed, rounds),
        None => {
            let duration = Duration::try_from_secs_f64(60.0 * arguments.minutes).context("--minutes")?;
            Run::lasting(arguments.seed, duration)
        }
    };
    let begun = Instant::now();
    let outcome = (stress.run)(&run);
    let (rounds, seed, seconds) = (run.rounds(), run.seed(), begun.elapsed().as_secs());
    let figures = outcome.with_context(|| format!("{name}, seed {seed}, in round {rounds}"))?;
    writeln!(std::io::stdout(), "{name}, seed {seed}: {rounds} rounds in {seconds} s: {figures}")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_form_of_every_run_finds_nothing() {
        for stress in STRESSES {
            let run = Run::of_rounds(1, stress.short_rounds);
            if let Err(error) = (stress.run)(&run) {
                panic!("{}, round {}: {error:#}", stress.name, run.rounds());
            }
            assert_eq!(run.rounds(), stress.short_rounds, "{} did all its rounds", stress.name);
        }
    }

    #[test]
    fn a_round_depends_on_seed_and_number_only() {
        let draw = |seed| {
            let run = Run::of_rounds(seed, 3);
            std::iter::from_fn(|| run.next_round().map(|mut random| random.below(1 << 40)))
                .collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        assert_eq!(draw(7).len(), 3);
    }
}
