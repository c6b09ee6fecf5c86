//! The optimised client of `cargo xtask bench`: launches the provider binary it is given, measures, and prints one
//! JSON object. It is a program of its own because an unoptimised client would measure itself.

mod calls;
mod cancel;
mod exec;
mod files;
mod flood;
mod html;
mod many;
mod process;
mod provider;
mod search;

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

const USAGE: &str = "usage: bench-client calls|exec|files|flood|many PROVIDER-BINARY, bench-client cancel PROVIDER-BINARY \
                     TREE, bench-client search PROVIDER-BINARY TREE [FIGURE], or bench-client html FOLDER-OF-PAGES";

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    let what = arguments.next().context(USAGE)?;
    let binary = arguments.next().context(USAGE)?;
    let (binary, tree, only) = (Path::new(&binary), arguments.next(), arguments.next());
    let tree = || tree.as_ref().map(Path::new).context(USAGE);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let figures = runtime.block_on(async {
        match what.to_str() {
            Some("calls") => calls::measure(binary).await,
            Some("cancel") => cancel::measure(binary, tree()?).await,
            Some("exec") => exec::measure(binary).await,
            Some("files") => files::measure(binary).await,
            Some("html") => html::measure(binary),
            Some("flood") => flood::measure(binary).await,
            Some("many") => many::measure(binary).await,
            Some("search") => {
                search::measure(binary, tree()?, only.as_deref().and_then(|only| only.to_str())).await
            }
            _ => bail!(USAGE),
        }
    })?;
    writeln!(std::io::stdout(), "{figures}")?;
    Ok(())
}

/// Least, median, 99th percentile and most, in microseconds.
fn spread(mut durations: Vec<Duration>) -> Value {
    durations.sort_unstable();
    let last = durations.len().saturating_sub(1);
    let at = |share: usize| durations.get((last * share).div_ceil(100)).copied().unwrap_or_default();
    let [least, median, high, most] = [0, 50, 99, 100].map(|share| at(share).as_secs_f64() * 1e6);
    json!({"least": least, "median": median, "high": high, "most": most})
}
