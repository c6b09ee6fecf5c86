//! The notes provider: notes in a text file, one a line.

mod tools;

use std::path::Path;

use provider_core::Secret;
use provider_core::jail::{JailPath, PathError, RootError, Roots};
use provider_core::prelude::*;

use crate::tools::add_note::AddNote;
use crate::tools::import_notes::ImportNotes;
use crate::tools::list_notes::ListNotes;

/// Where the notes are, and what they may hold.
#[derive(Deserialize, JsonSchema)]
pub struct NotesConfig {
    /// The folder that notes.txt is in.
    root: String,
    /// How many notes there may be.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100_000))]
    limit: usize,
    /// The key of the service that the file is shared with; no note may hold it.
    service_key: Option<Secret>,
}

fn default_limit() -> usize {
    1_000
}

/// What a configured notes provider holds; all calls share it.
pub struct Notes {
    file: JailPath,
    limit: usize,
    service_key: Option<Secret>,
}

impl Provider for Notes {
    const NAME: &'static str = "notes";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Config = NotesConfig;

    async fn configure(config: NotesConfig, setup: Setup) -> Result<Self, ToolError> {
        let roots = Roots::open(&[config.root], setup.directory()).map_err(|error| match error {
            RootError::Root { configured, reason, .. } => {
                ToolError::invalid_arguments(format!("root: `{configured}`: {reason}"))
            }
            other => ToolError::invalid_arguments(format!("root: {other}")),
        })?;
        let file = roots.resolve("notes.txt", Path::new(""))?;
        Ok(Self { file, limit: config.limit, service_key: config.service_key })
    }

    fn tools(tools: &mut Tools<Self>) {
        tools.data_source::<ListNotes>();
        tools.resource::<AddNote>().with_preview();
        tools.resource::<ImportNotes>();
    }
}

impl Notes {
    /// The notes in the order of the file.
    pub(crate) fn read(&self) -> Result<Vec<String>, ToolError> {
        match self.file.read() {
            Ok(bytes) => Ok(lines(&bytes)),
            Err(PathError::NotFound { .. }) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    /// Refuses a note that cannot stand behind `count` others. Preview and call both ask here.
    pub(crate) fn check(&self, text: &str, count: usize) -> Result<(), ToolError> {
        if text.trim().is_empty() || text.contains(['\n', '\r']) {
            return Err(ToolError::invalid_arguments("text: wanted one line that is not blank"));
        }
        if self.service_key.as_ref().is_some_and(|key| text.contains(key.reveal())) {
            return Err(ToolError::new(
                Code::Denied,
                "text: holds the service key; write the note without it",
            ));
        }
        if count >= self.limit {
            let message = format!("there are {count} notes and {} may be kept; remove one first", self.limit);
            return Err(ToolError::new(Code::TooLarge, message));
        }
        Ok(())
    }

    /// Writes one more note, unless `allowed` objects to its number. Answers the number, from 1.
    pub(crate) fn append(
        &self,
        text: &str,
        allowed: impl FnOnce(usize) -> Result<(), ToolError>,
    ) -> Result<usize, ToolError> {
        let mut lock = self.file.lock_for_write()?;
        let mut bytes = lock.contents()?.unwrap_or_default();
        let count = lines(&bytes).len();
        self.check(text, count)?;
        allowed(count + 1)?;
        if !bytes.is_empty() && !bytes.ends_with(b"\n") {
            bytes.push(b'\n');
        }
        bytes.extend_from_slice(text.as_bytes());
        bytes.push(b'\n');
        lock.replace(&bytes)?;
        Ok(count + 1)
    }
}

fn lines(bytes: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect()
}
