//! The code provider: runs a short JavaScript program that calls tools of other providers.
//!
//! [`codemode`] runs programs. Here is what a provider adds: it launches the providers whose tools a program may call,
//! because a kernel shows it none (`reach`), and its one tool. A host that has providers of its own runs programs over
//! those instead, with [`limits`](CodeConfig::limits) and [`outcome`] from here.
//!
//! A program that holds this provider calls [`run_if_asked`] first of all.

mod config;
mod provider;
mod reach;
mod tools;

pub use codemode::run_if_asked;
pub use config::CodeConfig;
pub use provider::Code;
pub use tools::execute::{Output, outcome};
