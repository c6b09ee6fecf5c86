//! `shell_read`: runs a program that only reads.

use std::time::Duration;

use provider_core::prelude::*;
use tokio::time::{Instant, sleep_until};

use crate::Exec;
use crate::engine::allowed;
use crate::engine::capture::Ends;
use crate::engine::transcript::Channel;
use crate::process::{Process as Running, Step};
use crate::reading::{Reader, refused};
use crate::shown::scrollback;

/// How long a program may run.
const LIMIT: Duration = Duration::from_secs(50);
/// What is said where output was left out.
const HINT: &str = "ask for less, or run it with bash, which keeps all of it in a file";

/// Runs one program that only reads, without a shell: no pipes, no redirections, no patterns, and each argument is
/// one element of argv. Allowed are ls, cat, head, tail, wc, grep, find, rg, fd, sed, sort, diff, stat, jq, ps, git
/// (status, log, diff, show, blame and the like) and others of that kind, with options that cannot write, run a
/// program or reach the network. It reads below the root only. For anything else use bash.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The program and its arguments, such as ["git", "log", "--oneline", "-5"].
    #[schemars(length(min = 1), extend("x-aliases" = ["command", "args"]))]
    argv: Vec<String>,
}

/// What the program printed.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Output {
    /// The exit code; 128 + n after signal n.
    exit_code: i32,
    /// What was printed on standard output.
    stdout: String,
    /// What was printed on standard error.
    stderr: String,
    /// The signal that ended it, such as SIGKILL.
    signal: Option<String>,
    /// Whether output is left out here.
    truncated: Option<bool>,
    /// How many bytes of output are left out.
    omitted_bytes: Option<u64>,
    /// What confined the program.
    sandbox: String,
}

pub(crate) struct ShellRead;

impl DataSource for ShellRead {
    const NAME: &'static str = "shell_read";
    const CONCURRENCY: Concurrency = Concurrency::Shared;
    const TIMEOUT: Duration = Duration::from_secs(60);
    type Provider = Exec;
    type Args = Args;
    type Output = Output;
    type Stream = Process;

    async fn invoke(exec: Arc<Exec>, args: Args, cx: Cx<Process>) -> Result<Output, ToolError> {
        let allowed = allowed::check(&args.argv).map_err(|error| refused(&error))?;
        let start = exec.sessions.start(&exec.roots, cx.session_id(), cx.working_directory(), None)?;
        start.note.into_iter().for_each(|note| cx.note(note));
        cx.progress("starting process", None).await;
        cx.check_cancelled()?;
        let reader = Reader::new(&exec, cx.session_id(), &start.directory).await?;
        reader.note(&allowed)?.into_iter().for_each(|note| cx.note(note));
        let process = reader.start(&allowed).await?;
        let mut reading = Reading {
            process,
            stdout: Ends::new(exec.settings.output_bytes),
            stderr: Ends::new(exec.settings.output_bytes / 2),
            cx,
        };
        reading.run(&args.argv).await?;
        reading.output(reader.sandbox()).await
    }

    fn render(output: &Output) -> Option<Node> {
        let code = output.exit_code;
        let summary = format!("exit code {code}");
        Some(scrollback(&summary, &format!("{}{}", output.stdout, output.stderr), code == 0))
    }
}

/// A program at work.
struct Reading {
    process: Running,
    stdout: Ends,
    stderr: Ends,
    cx: Cx<Process>,
}

impl Reading {
    /// Follows the program to its end.
    async fn run(&mut self, argv: &[String]) -> Result<(), ToolError> {
        let cx = self.cx.clone();
        let limit = Instant::now() + LIMIT.min(cx.remaining().unwrap_or(LIMIT));
        loop {
            let step = tokio::select! {
                biased;
                () = cx.cancelled() => return Err(ToolError::cancelled()),
                () = sleep_until(limit) => return Err(timed_out(argv)),
                step = self.process.step() => step,
            };
            match step {
                Step::Piece(piece) => self.take(piece).await,
                // What it left behind has nothing to say any more: it is ended when this is dropped.
                Step::Changed if self.process.status.is_some() => break,
                Step::Changed => {}
                Step::Finished => break,
            }
        }
        while let Some(piece) = self.process.piece() {
            self.take(piece).await;
        }
        Ok(())
    }

    async fn take(&mut self, piece: provider_core::supervisor::Piece) {
        let (channel, output) = match piece.source {
            provider_core::supervisor::Source::Stdout => (Channel::Stdout, provider_core::Output::Stdout),
            provider_core::supervisor::Source::Stderr => (Channel::Stderr, provider_core::Output::Stderr),
        };
        match channel {
            Channel::Stdout => self.stdout.push(&piece.bytes),
            Channel::Stderr => self.stderr.push(&piece.bytes),
        }
        self.cx.chunk(output, piece.bytes).await;
    }

    async fn output(&self, sandbox: String) -> Result<Output, ToolError> {
        let Some(status) = self.process.status else {
            let message = "the program was lost: the process that guarded it was killed; run it again";
            return Err(ToolError::execution_failed(message));
        };
        let signal = status.signal_name();
        self.cx.exit_status(status.code(), signal.clone()).await;
        let (stdout, stderr) = (self.stdout.view(true), self.stderr.view(true));
        let omitted = stdout.omitted_bytes() + stderr.omitted_bytes();
        Ok(Output {
            exit_code: status.code(),
            stdout: stdout.text(HINT),
            stderr: stderr.text(HINT),
            signal,
            truncated: (omitted > 0).then_some(true),
            omitted_bytes: (omitted > 0).then_some(omitted),
            sandbox,
        })
    }
}

fn timed_out(argv: &[String]) -> ToolError {
    let program = argv.first().map_or("", String::as_str);
    ToolError::timeout(format!(
        "{program} did not end within {} s and was ended; ask for less, or run it with bash and a timeout_ms",
        LIMIT.as_secs()
    ))
}
