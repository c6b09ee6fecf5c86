//! From a command to a running process.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use provider_core::supervisor::sandbox::Policy;
use provider_core::supervisor::{
    EXTRA_DESCRIPTOR, Files, Job, Limits, Pipes, StartError, Supervisor, Terminal, memory_file, null,
};

use crate::environment::Variables;
use crate::process::{Input, Output, Process};

/// Longer arguments and variables are not passed on by Linux, with the NUL behind them.
pub(crate) const LONGEST_ARGUMENT: usize = 128 * 1_024 - 1;

/// The size of a terminal that nobody looks at: wide, so that little is wrapped.
pub(crate) const ROWS: u16 = 40;
/// See [`ROWS`].
pub(crate) const COLUMNS: u16 = 120;

/// What standard input is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stdin {
    /// Nothing: it has ended before it began.
    Null,
    /// This text, and then its end.
    Text(String),
    /// This text, and then what is written later.
    Open(String),
    /// A terminal, with this typed ahead.
    Terminal(String),
}

/// A program to start.
pub(crate) struct Launch {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) environment: Variables,
    pub(crate) directory: OwnedFd,
    pub(crate) stdin: Stdin,
    pub(crate) sandbox: Policy,
    pub(crate) limits: Limits,
    /// A file at [`EXTRA_DESCRIPTOR`].
    pub(crate) extra: Option<OwnedFd>,
}

/// How a shell is given a command: as it is. A command too long for an argument is given as a file.
pub(crate) fn shell_arguments(
    shell: &Path,
    options: &[&str],
    command: &str,
) -> io::Result<(Vec<OsString>, Option<OwnedFd>)> {
    let name = shell.file_name().map_or_else(|| shell.into(), OsString::from);
    let mut arguments = vec![name];
    arguments.extend(options.iter().map(OsString::from));
    if command.len() <= LONGEST_ARGUMENT {
        arguments.extend(["-c".into(), command.into()]);
        return Ok((arguments, None));
    }
    arguments.push(format!("/proc/self/fd/{EXTRA_DESCRIPTOR}").into());
    Ok((arguments, Some(memory_file("command", command.as_bytes())?)))
}

impl Launch {
    /// Starts the program.
    ///
    /// # Errors
    /// It cannot be started; the text names what went wrong.
    pub(crate) async fn start(self, supervisor: &Supervisor) -> Result<Process, StartError> {
        let terminal = matches!(self.stdin, Stdin::Terminal(_));
        let (files, output, input) =
            streams(self.directory, &self.stdin, self.extra).map_err(StartError::NoGuard)?;
        let job = Job {
            program: self.program,
            arguments: self.arguments,
            environment: self.environment.into_iter().collect(),
            sandbox: self.sandbox,
            limits: self.limits,
            terminal,
        };
        let running = supervisor.start(&job, files).await?;
        let process = Process::new(running, output, input);
        if let Stdin::Terminal(text) | Stdin::Open(text) = &self.stdin
            && !text.is_empty()
        {
            // A new pipe or terminal has room; a program that is gone already does not need the text.
            let _ = process.write(text.as_bytes());
        }
        Ok(process)
    }
}

fn streams(directory: OwnedFd, stdin: &Stdin, extra: Option<OwnedFd>) -> io::Result<(Files, Output, Input)> {
    if let Stdin::Terminal(_) = stdin {
        let (terminal, theirs) = Terminal::new(ROWS, COLUMNS)?;
        let files = Files {
            directory,
            stdin: theirs.try_clone()?,
            stdout: theirs.try_clone()?,
            stderr: theirs,
            extra,
        };
        return Ok((files, Output::Terminal(terminal), Input::Terminal));
    }
    let (stdin, input) = match stdin {
        Stdin::Null | Stdin::Terminal(_) => (null()?, Input::None),
        Stdin::Text(text) => (memory_file("stdin", text.as_bytes())?, Input::None),
        Stdin::Open(_) => {
            let (reader, writer) = std::io::pipe()?;
            rustix::io::ioctl_fionbio(&writer, true)?;
            (reader.into(), Input::Pipe(writer.into()))
        }
    };
    let (pipes, writers) = Pipes::new()?;
    let files = Files { directory, stdin, stdout: writers.stdout, stderr: writers.stderr, extra };
    Ok((files, Output::Pipes(pipes), input))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_an_argument_until_it_is_too_long_for_one() {
        let check =
            |command: &str| shell_arguments(Path::new("/bin/bash"), &["-o", "pipefail"], command).unwrap();
        let (arguments, extra) = check("echo 'a b'");
        assert_eq!(arguments, ["bash", "-o", "pipefail", "-c", "echo 'a b'"]);
        assert!(extra.is_none());
        let (arguments, extra) = check(&"#".repeat(LONGEST_ARGUMENT + 1));
        assert_eq!(arguments, ["bash", "-o", "pipefail", "/proc/self/fd/63"]);
        assert!(extra.is_some());
    }
}
