//! Calls to every provider of the catalog at once, by two crews of the same programs: one that is left in peace and must
//! not leak, and one that is killed, stopped and frozen. Every answer is held against what it must be.

mod acts;
mod crew;
mod files;
mod leaks;
mod server;
mod trouble;

use std::time::Duration;

use anyhow::Context as _;
use futures_util::future::try_join_all;

use self::acts::{Act, Tally};
use self::crew::Crew;
use super::process::built;
use super::{Run, Stress};

/// The run.
pub const STRESS: Stress = Stress {
    name: "mixed",
    about: "calls to all providers at once, cancelled, killed and disturbed: every answer right, nothing leaked",
    short_rounds: 14,
    run,
};

/// Rounds until what a provider holds on to is taken for what it needs.
const WARM: u64 = 8;
/// The most calls at once.
const MOST_AT_ONCE: usize = 10;

fn run(run: &Run) -> anyhow::Result<String> {
    let program = built("toolctl")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let own = leaks::Own::now()?;
        let mut crew = Crew::start(program).await?;
        let (mut tally, mut troubles) = (Tally::default(), trouble::Counts::default());
        let mut warm = None;
        while let Some(mut random) = run.next_round() {
            let acts: Vec<Act> =
                (0..1 + random.below(MOST_AT_ONCE)).map(|_| Act::draw(&mut crew, &mut random)).collect();
            let trouble = trouble::Trouble::draw(&mut random);
            let (done, met) = {
                let crew = &crew;
                let (done, met) = tokio::join!(
                    try_join_all(acts.into_iter().map(|act| act.play(crew))),
                    trouble.make(crew, &mut random),
                );
                (done?, met.with_context(|| format!("{trouble:?}"))?)
            };
            for act in done {
                act.back(&mut crew, &mut tally);
            }
            troubles.count(trouble, met);
            crew.relaunch(trouble.victim()).await.with_context(|| format!("after {trouble:?}"))?;
            if run.rounds() == WARM {
                warm = Some(leaks::Held::by(&crew)?);
            }
        }
        let figures = match warm {
            Some(warm) => warm.compare(&crew).await?,
            None => "too short to look for leaks".to_owned(),
        };
        crew.end().await?;
        own.compare().await?;
        Ok(format!("{tally}; {troubles}; {figures}"))
    })
}

/// How long anything may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);
