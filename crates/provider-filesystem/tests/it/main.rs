//! The filesystem provider over real gRPC, in this process and as a process of its own.
#![allow(clippy::unwrap_used, clippy::expect_used, unreachable_pub)]

mod arguments;
mod bytes;
mod cancelled;
mod confined;
mod crossing;
mod encodings;
mod entries;
mod full_disk;
mod large;
mod listing;
mod matching;
mod metadata;
mod notebooks;
mod patches;
mod paths;
mod preview;
mod previewed;
mod process;
mod races;
mod random;
mod read;
mod sandbox;
mod scenarios;
mod stale;
mod stale_matrix;
mod undo;
