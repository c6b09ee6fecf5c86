//! Pages that are being read in parts: whoever asks for the next part gets it of the very same text.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

use crate::fetch::{Page, READ_ON_FOR};
use crate::text::{Document, Format};

/// The bytes that are held at most, of all texts and images together.
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// A page and the text that was made of it.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) page: Page,
    pub(crate) document: Document,
}

/// The texts that were read last.
#[derive(Debug, Default)]
pub(crate) struct Readings(Mutex<VecDeque<Held>>);

#[derive(Debug)]
struct Held {
    url: String,
    format: Format,
    since: Instant,
    reading: Arc<Reading>,
}

impl Readings {
    /// The text of `url` in this form, if it was read a short while ago.
    pub(crate) fn get(&self, url: &str, format: Format) -> Option<Arc<Reading>> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = held.iter().find(|held| held.url == url && held.format == format);
        found.filter(|held| held.since.elapsed() < READ_ON_FOR).map(|held| held.reading.clone())
    }

    /// Holds a text, and lets go of the oldest beyond the bound.
    pub(crate) fn put(&self, url: &str, format: Format, reading: Arc<Reading>) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|known| {
            !(known.url == url && known.format == format) && known.since.elapsed() < READ_ON_FOR
        });
        held.push_back(Held { url: url.to_owned(), format, since: Instant::now(), reading });
        let size = |held: &Held| held.reading.document.text.len() + held.reading.page.body.len();
        let mut total: usize = held.iter().map(size).sum();
        while total > MOST_BYTES {
            match held.pop_front() {
                Some(oldest) => total -= size(&oldest),
                None => break,
            }
        }
    }
}
