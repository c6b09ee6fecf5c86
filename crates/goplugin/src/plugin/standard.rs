//! The plugin's standard streams.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;

use crate::Handshake;

/// The pipe to the host that the handshake goes to, and nothing else.
#[derive(Debug)]
pub(super) struct HandshakeOutput(File);

impl HandshakeOutput {
    /// Takes the standard output away from the rest of the process, whose output would be taken for the
    /// handshake or, later, could fill a pipe that nobody reads; it goes to the standard error from now on.
    /// The standard input, which belongs to the host, becomes empty.
    pub(super) fn take() -> io::Result<Self> {
        let output = io::stdout().as_fd().try_clone_to_owned()?;
        rustix::stdio::dup2_stdout(io::stderr())?;
        rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
        Ok(Self(output.into()))
    }

    /// Writes the line and closes this end of the pipe.
    pub(super) fn write(mut self, handshake: &Handshake) -> io::Result<()> {
        self.0.write_all(format!("{handshake}\n").as_bytes())
    }
}
