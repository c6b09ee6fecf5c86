//! The workspace's own chores: docs, bench, generated code.

fn main() {}
