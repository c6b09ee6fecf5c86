//! HTML to Markdown: the pages of a folder, and hostile ones. In this process, since what is measured is the reading and
//! not the fetching.

use std::convert::Infallible;
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use html5gum::Tokenizer;
use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use provider_web::text::html::{self, hostile};
use serde_json::{Value, json};
use url::Url;

use crate::spread;

/// How often all pages are read.
const PASSES: usize = 40;
/// What is read of a page by default, and at most.
const CAPS: [usize; 2] = [5 << 20, 32 << 20];

pub(crate) fn measure(folder: &Path) -> anyhow::Result<Value> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "html") {
            pages.push(fs::read_to_string(&path)?);
        }
    }
    ensure!(!pages.is_empty(), "{} has no pages", folder.display());
    let base = Url::parse("https://docs.example/a/page.html")?;
    let (mut ours, mut tokens) = (Vec::new(), Vec::new());
    for _ in 0..PASSES {
        ours.push(timed(|| {
            pages.iter().for_each(|page| drop(black_box(html::read(page, Some(&base), true))))
        }));
        tokens.push(timed(|| pages.iter().for_each(|page| tokenized(page))));
    }
    let bytes: usize = pages.iter().map(String::len).sum();
    let hostile: Vec<Value> = CAPS.iter().map(|cap| worst(*cap, &base)).collect();
    Ok(json!({
        "pages": pages.len(), "bytes": bytes, "ours": spread(ours), "tokens": spread(tokens), "hostile": hostile,
    }))
}

fn timed(work: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    work();
    begun.elapsed()
}

/// The tokens alone, which every reader has to make.
fn tokenized(page: &str) {
    let mut count = 0_u64;
    let emitter = CallbackEmitter::new(|_: CallbackEvent<'_>, _: html5gum::Span<()>| {
        count += 1;
        None::<Infallible>
    });
    let Ok(()) = Tokenizer::new_with_emitter(page, emitter).finish();
    black_box(count);
}

/// The hostile page of this size that takes longest: the least of three readings, so that it is the page and not the
/// machine.
fn worst(size: usize, base: &Url) -> Value {
    let times = hostile::pages(size).into_iter().map(|(name, page)| {
        let readings = (0..3).map(|_| timed(|| drop(black_box(html::read(&page, Some(base), true)))));
        (readings.min().unwrap_or_default(), name)
    });
    let (longest, name) = times.max().unwrap_or_default();
    json!({"bytes": size, "page": name, "seconds": longest.as_secs_f64()})
}
