//! The chores behind `cargo xtask`, one module each, so that tests can run them too.

pub mod bench;
pub mod dist;
pub mod docs;
pub mod new_provider;
pub mod proto;
mod requirements;
pub mod stress;

use std::path::{Path, PathBuf};

/// The root of the workspace this program was built from.
#[must_use]
pub fn workspace_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}
