//! One command line for every tool provider.

fn main() {}
