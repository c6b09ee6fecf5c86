//! The provider that is checked.

use std::ffi::OsString;
use std::path::PathBuf;

use tool_host::{EMBEDDED_ARGUMENT, ProviderSource};

/// A program that is a provider, and how it is started.
#[derive(Clone, Debug)]
pub struct Subject {
    /// What reports call it.
    pub name: String,
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<OsString>,
    pub(crate) env: Vec<(String, String)>,
}

impl Subject {
    /// The provider at `source`, with `env` in its environment besides `PATH`, `HOME` and `TMPDIR`.
    pub fn new(source: &ProviderSource, env: Vec<(String, String)>) -> Self {
        let (program, args) = match source {
            ProviderSource::Embedded { program, name } => {
                (program.clone(), vec![EMBEDDED_ARGUMENT.into(), name.into()])
            }
            ProviderSource::Path(path) => (path.clone(), Vec::new()),
        };
        // Some scenes start it from elsewhere.
        let program = match program.components().count() {
            0 | 1 => program,
            _ => std::path::absolute(&program).unwrap_or(program),
        };
        Self { name: source.to_string(), program, args, env }
    }
}
