//! What output and commands mean, without any process.

pub mod allowed;
pub mod capture;
pub mod command;
pub mod decode;
mod escapes;
mod rows;
pub mod sheet;
mod tail;
pub mod terminal;
pub mod transcript;
