//! Measured times, and rows that hold them against a budget.

use std::fmt;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::Value;

/// How some durations are spread.
pub(super) struct Spread {
    least: Duration,
    pub(super) median: Duration,
    high: Duration,
    pub(super) most: Duration,
}

impl Spread {
    /// Of what was measured here.
    pub(super) fn of(mut durations: Vec<Duration>) -> Self {
        durations.sort_unstable();
        let last = durations.len().saturating_sub(1);
        let at = |share: usize| durations.get((last * share).div_ceil(100)).copied().unwrap_or_default();
        Self { least: at(0), median: at(50), high: at(99), most: at(100) }
    }

    /// Of what the client measured, which it writes in microseconds.
    pub(super) fn read(figures: &Value) -> anyhow::Result<Self> {
        let at = |name: &str| {
            let figure = figures[name].as_f64().with_context(|| format!("no {name} in {figures}"))?;
            anyhow::Ok(Duration::from_secs_f64(figure / 1e6))
        };
        Ok(Self { least: at("least")?, median: at("median")?, high: at("high")?, most: at("most")? })
    }

    pub(super) fn beside(&self, peer: &Self) -> Ratio {
        let ratio =
            |one: Duration, other: Duration| one.as_secs_f64() / other.as_secs_f64().max(f64::MIN_POSITIVE);
        Ratio { median: ratio(self.median, peer.median), least: ratio(self.least, peer.least) }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, least {}, p99 {}", time(self.median), time(self.least), time(self.high))
    }
}

/// One spread as a part of another: medians, which are judged, and the least of each.
pub(super) struct Ratio {
    pub(super) median: f64,
    least: f64,
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} (least {:.2})", self.median, self.least)
    }
}

/// A duration with three digits or so.
pub(super) fn time(duration: Duration) -> String {
    match duration.as_secs_f64() {
        seconds if seconds < 1e-3 => format!("{:.0} µs", seconds * 1e6),
        seconds if seconds < 0.1 => format!("{:.2} ms", seconds * 1e3),
        seconds if seconds < 1.0 => format!("{:.0} ms", seconds * 1e3),
        seconds => format!("{seconds:.2} s"),
    }
}

pub(super) fn megabytes(bytes: f64) -> String {
    format!("{:.1} MB", bytes / 1e6)
}

/// The number of this name among figures.
pub(super) fn number(figures: &Value, name: &str) -> anyhow::Result<f64> {
    figures[name].as_f64().with_context(|| format!("no {name} in {figures}"))
}

/// One measured thing.
#[derive(Default)]
pub(super) struct Row {
    pub(super) what: String,
    /// Empty where there is none.
    pub(super) budget: String,
    pub(super) measured: String,
    pub(super) met: Option<bool>,
    pub(super) beside: String,
}

/// Rows that belong together.
pub(super) struct Section {
    pub(super) title: &'static str,
    /// How it was measured, with the command lines.
    pub(super) about: String,
    pub(super) rows: Vec<Row>,
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n## {}\n\n{}\n", self.title, self.about)?;
        writeln!(
            f,
            "| what | budget | measured | met | beside it, in the same run |\n|---|---|---|---|---|"
        )?;
        for Row { what, budget, measured, met, beside } in &self.rows {
            let met = met.map_or("", |met| if met { "yes" } else { "**no**" });
            writeln!(f, "| {what} | {budget} | {measured} | {met} | {beside} |")?;
        }
        Ok(())
    }
}

/// Code in a cell of a table.
pub(super) fn code(text: &str) -> String {
    let fence = if text.contains('`') { "``" } else { "`" };
    format!("{fence}{}{fence}", text.replace('|', "\\|"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_has_the_least_the_middle_and_the_most() {
        let spread = Spread::of((1..=101).rev().map(Duration::from_millis).collect());
        let found = [spread.least, spread.median, spread.high, spread.most].map(|at| at.as_millis());
        assert_eq!(found, [1, 51, 100, 101]);
        assert_eq!(spread.to_string(), "51.00 ms, least 1.00 ms, p99 100 ms");
        let half = Spread::of((1..=101).map(|time| Duration::from_millis(2 * time)).collect());
        assert_eq!(spread.beside(&half).to_string(), "0.50 (least 0.50)");
    }

    #[test]
    fn a_missed_budget_stands_out_and_a_cell_stays_one() {
        let row = Row { what: code("a|b"), met: Some(false), ..Row::default() };
        let section = Section { title: "T", about: "A".to_owned(), rows: vec![row] };
        assert!(section.to_string().contains("| `a\\|b` |  |  | **no** |  |\n"), "{section}");
    }
}
