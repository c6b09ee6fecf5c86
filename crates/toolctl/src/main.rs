//! One command line for every tool provider.

mod paint;

fn main() {}
