//! Runs programs so that they really end.
//!
//! Every job has a guard: a small process, this same program re-executed, that is the parent of all the job's
//! processes and outlives none of them. It confines the job ([`sandbox`]), ends the whole tree when it is told to
//! or when its host is gone, and says what survived.

pub mod sandbox;
