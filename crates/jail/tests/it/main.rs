//! Real files in temporary directories: what is reached, what is refused, and what is left behind.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod concurrency;
mod links;
mod listing;
mod oracle;
mod races;
mod roots;
mod rules;
mod spelling;
mod support;
mod writing;
