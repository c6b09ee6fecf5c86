//! One command run to its end.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use provider_core::prelude::*;
use provider_core::subagent::Subagent;
use provider_core::supervisor::{
    Event, Files, Job, Limits, Piece, Pipes, ProcessName, Running, Source, memory_file, null,
};
use rustix::fs::{Mode, OFlags};
use tokio::time::Instant;

use crate::engine::kept::Kept;
use crate::engine::lines::{Decoder, Lines};
use crate::engine::template::{Command, Values};
use crate::provider::{Agents, Runner};
use crate::tools::spawn_subagent::Status;

/// Most bytes of the final text, half of the beginning and half of the end.
const LONGEST_TEXT: usize = 48 * 1_024;
/// Most bytes of one step.
const LONGEST_STEP: usize = 300;
/// Steps that are told in the result; the last ones.
const TOLD_STEPS: usize = 20;
/// Most bytes of output kept on disk.
const LONGEST_OUTPUT: u64 = 10 << 20;
/// How long processes may take to end before they are killed.
const GRACE: Duration = Duration::from_secs(2);
/// The same when the call is cancelled: the SDK waits two seconds for a clean end.
const CANCEL_GRACE: Duration = Duration::from_millis(1_000);
const TERM: i32 = 15;

/// What came of a command.
pub(crate) struct Ended {
    pub(crate) status: Status,
    pub(crate) text: String,
    /// What it did, as far as it said so; the last steps.
    pub(crate) done: Vec<String>,
}

/// What is to be run.
pub(crate) struct Run<'a> {
    pub(crate) runner: &'a Runner,
    pub(crate) command: Command,
    pub(crate) values: Values<'a>,
    pub(crate) directory: &'a Path,
    pub(crate) time: Duration,
    /// Where all output is written to.
    pub(crate) output: Option<PathBuf>,
}

impl Run<'_> {
    /// Runs the command, telling of it as it goes.
    ///
    /// # Errors
    /// It cannot be started, or the call was cancelled.
    pub(crate) async fn run(
        self,
        agents: &Agents,
        cx: &Cx<Events>,
        subagent: &Subagent,
    ) -> Result<Ended, ToolError> {
        let (files, pipes) = self.files()?;
        let job = self.job(agents)?;
        let running = agents.supervisor.start(&job, files).await.map_err(|error| {
            ToolError::execution_failed(format!(
                "the agent {:?} cannot be run: {error}",
                self.command.argv[0]
            ))
        })?;
        let watch = Watch {
            running,
            pipes,
            told: Told::new(self.output.as_deref()),
            until: Instant::now() + self.time,
            reason: None,
            exit: None,
            survivors: Vec::new(),
        };
        watch.finish(cx, subagent).await
    }

    fn files(&self) -> Result<(Files, Pipes), ToolError> {
        let failed =
            |error: std::io::Error| ToolError::execution_failed(format!("the agent cannot be run: {error}"));
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY;
        let directory = rustix::fs::open(self.directory, flags, Mode::empty()).map_err(|errno| {
            ToolError::execution_failed(format!(
                "the working directory {} cannot be opened: {errno}",
                self.directory.display()
            ))
        })?;
        let stdin = match self.command.has_prompt {
            true => null().map_err(failed)?,
            false => memory_file("prompt", self.values.prompt.as_bytes()).map_err(failed)?,
        };
        let (pipes, writers) = Pipes::new().map_err(failed)?;
        Ok((Files { directory, stdin, stdout: writers.stdout, stderr: writers.stderr, extra: None }, pipes))
    }

    fn job(&self, agents: &Agents) -> Result<Job, ToolError> {
        let family = agents.family.environment(self.time).map_err(|error| ToolError::unknown(&error))?;
        let mut write = agents.write_paths.clone();
        write.push(self.directory.to_owned());
        let mut environment = agents.environment.clone();
        environment.push(("PWD".into(), self.directory.into()));
        environment.extend(family);
        Ok(Job {
            program: self.runner.program.clone(),
            arguments: self.command.argv.iter().map(OsString::from).collect(),
            environment,
            sandbox: agents.sandbox.policy(&write, &[]),
            limits: Limits::default(),
            terminal: false,
        })
    }
}

/// Why the command was ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reason {
    TimeUp,
    Cancelled,
    LeftBehind,
}

/// A command at work.
struct Watch {
    running: Running,
    pipes: Pipes,
    told: Told,
    until: Instant,
    reason: Option<Reason>,
    /// The exit code of the program itself.
    exit: Option<i32>,
    /// What it had left behind.
    survivors: Vec<ProcessName>,
}

impl Watch {
    async fn finish(mut self, cx: &Cx<Events>, subagent: &Subagent) -> Result<Ended, ToolError> {
        while !self.running.is_over() {
            tokio::select! {
                event = self.running.event() => match event {
                    Some(event) => self.event(event),
                    None => break,
                },
                Some(piece) = self.pipes.next() => self.told.piece(&piece, subagent).await,
                () = cx.cancelled(), if self.reason != Some(Reason::Cancelled) => {
                    self.reason = Some(Reason::Cancelled);
                    self.running.end(TERM, CANCEL_GRACE);
                }
                () = tokio::time::sleep_until(self.until), if self.reason.is_none() => {
                    self.reason = Some(Reason::TimeUp);
                    self.running.end(TERM, GRACE);
                }
            }
        }
        self.pipes.release();
        while let Some(piece) = self.pipes.try_next() {
            self.told.piece(&piece, subagent).await;
        }
        self.told.finish(subagent).await;
        self.ended(cx)
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Exited { status, survivors, .. } => {
                self.exit = Some(status.code());
                if !survivors.is_empty() {
                    self.survivors = survivors;
                    // What an agent leaves behind ends with it.
                    self.reason = self.reason.or(Some(Reason::LeftBehind));
                    self.running.end(TERM, GRACE);
                }
            }
            Event::LimitPassed(_) | Event::Ending { .. } | Event::Over { .. } | Event::GuardLost => {}
        }
    }

    fn ended(self, cx: &Cx<Events>) -> Result<Ended, ToolError> {
        if !self.survivors.is_empty() {
            let names: Vec<String> = self
                .survivors
                .iter()
                .map(|process| format!("{} ({})", process.pid, process.command))
                .collect();
            cx.note(format!("ended what the agent had left running: {}", names.join(", ")));
        }
        let (text, done) = self.told.into_parts();
        let status = match (self.reason, self.exit) {
            (Some(Reason::Cancelled), _) => {
                let so_far = if text.trim().is_empty() { "nothing".to_owned() } else { text };
                cx.effects().record(format!("ran an agent, which had said: {so_far}"));
                return Err(ToolError::cancelled());
            }
            (Some(Reason::TimeUp), _) => {
                cx.note("the agent was ended because its time was up");
                Status::Limit
            }
            (_, Some(0)) if text.trim().is_empty() => Status::Empty,
            (_, Some(0)) => Status::Completed,
            (_, Some(code)) => {
                cx.note(format!("the agent ended with exit code {code}"));
                Status::Failed
            }
            (_, None) => {
                cx.note("the agent was killed from outside");
                Status::Failed
            }
        };
        Ok(Ended { status, text, done })
    }
}

/// What the command has said so far. Standard output is its answer, standard error what it does meanwhile.
struct Told {
    answer: Decoder,
    activity: Decoder,
    text: Kept,
    lines: Lines,
    steps: std::collections::VecDeque<String>,
    output: Option<File>,
    written: u64,
}

impl Told {
    fn new(output: Option<&Path>) -> Self {
        let open = |path: &Path| File::options().create(true).append(true).mode(0o600).open(path).ok();
        Self {
            answer: Decoder::default(),
            activity: Decoder::default(),
            text: Kept::new(LONGEST_TEXT / 2),
            lines: Lines::new(LONGEST_STEP),
            steps: std::collections::VecDeque::new(),
            output: output.and_then(open),
            written: 0,
        }
    }

    async fn piece(&mut self, piece: &Piece, subagent: &Subagent) {
        self.keep(&piece.bytes);
        match piece.source {
            Source::Stdout => {
                let text = self.answer.push(&piece.bytes);
                self.answer_grows(text, subagent).await;
            }
            Source::Stderr => {
                let text = self.activity.push(&piece.bytes);
                let lines = self.lines.push(&text);
                self.steps_grow(lines, subagent).await;
            }
        }
    }

    async fn finish(&mut self, subagent: &Subagent) {
        let text = self.answer.finish();
        self.answer_grows(text, subagent).await;
        let rest = self.activity.finish();
        let mut lines = self.lines.push(&rest);
        lines.extend(self.lines.finish());
        self.steps_grow(lines, subagent).await;
    }

    async fn answer_grows(&mut self, text: String, subagent: &Subagent) {
        if !text.is_empty() {
            self.text.push(&text);
            subagent.text(text).await;
        }
    }

    async fn steps_grow(&mut self, lines: Vec<String>, subagent: &Subagent) {
        for line in lines {
            subagent.step(line.clone()).await;
            self.steps.push_back(line);
            if self.steps.len() > TOLD_STEPS {
                self.steps.pop_front();
            }
        }
    }

    /// Writes output to the file, up to its limit. A full disk costs the file, not the run.
    fn keep(&mut self, bytes: &[u8]) {
        let room = usize::try_from(LONGEST_OUTPUT.saturating_sub(self.written)).unwrap_or(usize::MAX);
        if let Some(file) = &mut self.output {
            let bytes = &bytes[..bytes.len().min(room)];
            self.written += bytes.len() as u64;
            if file.write_all(bytes).is_err() {
                self.output = None;
            }
        }
    }

    fn into_parts(self) -> (String, Vec<String>) {
        (questions::clean(&self.text.text()), self.steps.into())
    }
}
