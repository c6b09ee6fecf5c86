//! A started command: what it prints and what happens to it, as one sequence of steps.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use provider_core::supervisor::{
    Event, FinalDirectory, Limit, Piece, Pipes, ProcessName, Running, Status, Terminal,
};
use rustix::io::Errno;

/// Where output comes from.
pub(crate) enum Output {
    Pipes(Pipes),
    Terminal(Terminal),
}

impl Output {
    async fn next(&mut self) -> Option<Piece> {
        match self {
            Self::Pipes(pipes) => pipes.next().await,
            Self::Terminal(terminal) => terminal.next().await,
        }
    }

    fn try_next(&mut self) -> Option<Piece> {
        match self {
            Self::Pipes(pipes) => pipes.try_next(),
            Self::Terminal(terminal) => terminal.try_next(),
        }
    }

    fn is_ended(&self) -> bool {
        match self {
            Self::Pipes(pipes) => pipes.is_ended(),
            Self::Terminal(terminal) => terminal.is_ended(),
        }
    }
}

/// Where input goes.
pub(crate) enum Input {
    /// Nowhere: standard input is `/dev/null`, a file, or was closed.
    None,
    /// The writing end of a pipe.
    Pipe(OwnedFd),
    /// The terminal that output comes from.
    Terminal,
}

/// The next thing about a command.
#[derive(Debug)]
pub(crate) enum Step {
    /// It printed something.
    Piece(Piece),
    /// Something happened to it: see the fields of [`Process`].
    Changed,
    /// No process of it is left and everything it printed has been told.
    Finished,
}

/// What ending a command took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// Processes that were sent a signal.
    pub(crate) asked: u32,
    /// Processes that were killed after the grace.
    pub(crate) killed: u32,
}

/// A command at work. Dropping it ends it.
pub(crate) struct Process {
    running: Running,
    output: Output,
    input: Input,
    /// How the shell ended, once it has.
    pub(crate) status: Option<Status>,
    /// Where the shell was at its end.
    pub(crate) directory: Option<FinalDirectory>,
    /// What lived on when the shell ended.
    pub(crate) survivors: Vec<ProcessName>,
    pub(crate) limit: Option<Limit>,
    pub(crate) ended: Option<Ended>,
    pub(crate) unkillable: Vec<ProcessName>,
    pub(crate) guard_lost: bool,
}

impl Process {
    pub(crate) fn new(running: Running, output: Output, input: Input) -> Self {
        Self {
            running,
            output,
            input,
            status: None,
            directory: None,
            survivors: Vec::new(),
            limit: None,
            ended: None,
            unkillable: Vec::new(),
            guard_lost: false,
        }
    }

    /// What comes next. May be dropped and called again without losing anything.
    pub(crate) async fn step(&mut self) -> Step {
        loop {
            if self.running.is_over() {
                // Nobody writes any more, so what is there is all there is.
                return self.output.try_next().map_or(Step::Finished, Step::Piece);
            }
            let ended = self.output.is_ended();
            tokio::select! {
                biased;
                event = self.running.event() => if let Some(event) = event {
                    self.note(event);
                    return Step::Changed;
                },
                piece = self.output.next(), if !ended => if let Some(piece) = piece {
                    return Step::Piece(piece);
                },
            }
        }
    }

    /// A piece that has been printed already.
    pub(crate) fn piece(&mut self) -> Option<Piece> {
        self.output.try_next()
    }

    /// Whether nobody has the output open any more.
    pub(crate) fn output_ended(&self) -> bool {
        self.output.is_ended()
    }

    fn note(&mut self, event: Event) {
        match event {
            Event::Exited { status, directory, survivors } => {
                self.status = Some(status);
                self.directory = directory;
                self.survivors = survivors;
                if let Output::Pipes(pipes) = &mut self.output {
                    pipes.release();
                }
            }
            Event::LimitPassed(limit) => self.limit = Some(limit),
            Event::Ending { asked, killed } => self.ended = Some(Ended { asked, killed }),
            Event::Over { unkillable } => self.unkillable = unkillable,
            Event::GuardLost => self.guard_lost = true,
        }
        if self.is_over()
            && let Output::Pipes(pipes) = &mut self.output
        {
            pipes.release();
        }
    }

    /// Whether no process is left.
    pub(crate) fn is_over(&self) -> bool {
        self.running.is_over()
    }

    /// The number of the shell.
    pub(crate) fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// Sends a signal to all processes.
    pub(crate) fn signal(&self, signal: i32) {
        self.running.signal(signal);
    }

    /// Sends a signal to all processes, and kills what is left after the grace.
    pub(crate) fn end(&self, signal: i32, grace: Duration) {
        self.running.end(signal, grace);
    }

    /// The processes that are there now.
    pub(crate) async fn processes(&mut self) -> Vec<ProcessName> {
        self.running.processes().await
    }

    /// Gives input to the command; answers how much of it was taken. `WouldBlock` when there is no room.
    pub(crate) fn write(&self, input: &[u8]) -> io::Result<usize> {
        match (&self.input, &self.output) {
            (Input::Pipe(pipe), _) => write(pipe, input),
            (Input::Terminal, Output::Terminal(terminal)) => terminal.write(input),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Ends the input: the pipe is closed, or the terminal's end-of-file character is typed.
    pub(crate) fn close_input(&mut self) -> io::Result<()> {
        /// Ctrl-D.
        const END_OF_FILE: &[u8] = b"\x04";
        match (&self.input, &self.output) {
            (Input::Terminal, Output::Terminal(terminal)) => terminal.write(END_OF_FILE).map(drop),
            _ => {
                self.input = Input::None;
                Ok(())
            }
        }
    }

    /// Whether the command can be given input.
    pub(crate) fn takes_input(&self) -> bool {
        !matches!(self.input, Input::None)
    }

    /// Whether the command waits for somebody to type; `None` without a terminal, where that cannot be known.
    pub(crate) fn waits_for_input(&self) -> Option<bool> {
        match &self.output {
            Output::Terminal(terminal) => Some(terminal.waits_for_input()),
            Output::Pipes(_) => None,
        }
    }
}

fn write(pipe: impl AsFd, input: &[u8]) -> io::Result<usize> {
    match rustix::io::retry_on_intr(|| rustix::io::write(&pipe, input)) {
        Err(Errno::PIPE) => Err(io::ErrorKind::BrokenPipe.into()),
        result => Ok(result?),
    }
}
