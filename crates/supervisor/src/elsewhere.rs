//! What the host's side is where there are no guards: it compiles, and every attempt to run something says so.

use std::convert::Infallible;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use crate::job::{Event, Files, Job, ProcessName, StartError};
use crate::piece::Piece;

/// The error of everything here.
pub(crate) fn unsupported() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "commands can be run, and reliably ended, only on Linux")
}

/// Starts jobs, where that can be done; not on this system.
#[derive(Clone, Default)]
pub struct Supervisor(());

impl Supervisor {
    /// Makes sure that a guard is ready.
    ///
    /// # Errors
    /// Always: there are none here.
    pub fn warm(&self) -> io::Result<()> {
        Err(unsupported())
    }

    /// Starts a job.
    ///
    /// # Errors
    /// Always: there is no guard for it here.
    pub async fn start(&self, _: &Job, _: Files) -> Result<Running, StartError> {
        Err(StartError::NoGuard(unsupported()))
    }

    /// Waits until no job is left; there never is one.
    pub async fn idle(&self) {}
}

/// A job at work, of which there is none here.
pub struct Running(Infallible);

impl Running {
    /// The number of the program's process.
    pub fn pid(&self) -> u32 {
        match self.0 {}
    }

    /// Whether no process of the job is left.
    pub fn is_over(&self) -> bool {
        match self.0 {}
    }

    /// The next thing that happens to the job.
    pub async fn event(&mut self) -> Option<Event> {
        match self.0 {}
    }

    /// The processes of the job.
    pub async fn processes(&mut self) -> Vec<ProcessName> {
        match self.0 {}
    }

    /// Sends a signal to all processes of the job.
    pub fn signal(&self, _: i32) {
        match self.0 {}
    }

    /// Sends a signal to all processes of the job, and kills what is left after the grace.
    pub fn end(&self, _: i32, _: Duration) {
        match self.0 {}
    }
}

/// The reading ends of a program's standard output and standard error, of which there are none here.
pub struct Pipes(Infallible);

/// The writing ends, for the program.
#[derive(Debug)]
pub struct Writers {
    /// Standard output.
    pub stdout: OwnedFd,
    /// Standard error.
    pub stderr: OwnedFd,
}

impl Pipes {
    /// Two pipes.
    ///
    /// # Errors
    /// Always: nothing could write to them.
    pub fn new() -> io::Result<(Self, Writers)> {
        Err(unsupported())
    }

    /// The next piece.
    pub async fn next(&mut self) -> Option<Piece> {
        match self.0 {}
    }

    /// The next piece that has been written already.
    pub fn try_next(&mut self) -> Option<Piece> {
        match self.0 {}
    }

    /// The program itself has ended.
    pub fn release(&mut self) {
        match self.0 {}
    }

    /// Whether both streams have ended.
    pub fn is_ended(&self) -> bool {
        match self.0 {}
    }
}

/// Our end of a terminal, of which there are none here.
pub struct Terminal(Infallible);

impl Terminal {
    /// A terminal of this size, and the program's end of it.
    ///
    /// # Errors
    /// Always: nothing could use it.
    pub fn new(_rows: u16, _columns: u16) -> io::Result<(Self, OwnedFd)> {
        Err(unsupported())
    }

    /// The next piece.
    pub async fn next(&mut self) -> Option<Piece> {
        match self.0 {}
    }

    /// The next piece that has been written already.
    pub fn try_next(&mut self) -> Option<Piece> {
        match self.0 {}
    }

    /// Whether no program has the terminal open any more.
    pub fn is_ended(&self) -> bool {
        match self.0 {}
    }

    /// Types `input`.
    ///
    /// # Errors
    /// Never, for there is no terminal.
    pub fn write(&self, _input: &[u8]) -> io::Result<usize> {
        match self.0 {}
    }

    /// Whether a process waits for somebody to type.
    pub fn waits_for_input(&self) -> bool {
        match self.0 {}
    }
}
