//! What output and commands mean, without any process.
