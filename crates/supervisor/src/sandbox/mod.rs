//! What a job may write, and whether it may use the network.

use std::io;

use serde::{Deserialize, Serialize};

/// The confinement of one job. It is chosen by the host, travels to the guard with the job's description, and is
/// entered by the child between the fork and the start of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {}

impl Policy {
    /// No confinement at all.
    pub fn none() -> Self {
        Self::default()
    }

    /// Confines this process, and with it all that it starts, for good. The process has one thread.
    ///
    /// # Errors
    /// The operating system refused; then the program must not be started.
    pub(crate) fn enter(&self) -> io::Result<()> {
        Ok(())
    }
}
