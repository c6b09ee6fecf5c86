//! `bash`: runs a command.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

use provider_core::jail::JailPath;
use provider_core::prelude::*;
use provider_core::supervisor::{Limit, ProcessName, StartError};
use tokio::time::Instant;

use crate::Exec;
use crate::config::Survivors;
use crate::environment::{Particulars, check};
use crate::foreground::{Foreground, Wait};
use crate::job::Candidate;
use crate::launch::{Launch, Stdin, shell_arguments};
use crate::process::Process as Running;
use crate::record::{Ending, JobStatus, Record, ending};
use crate::shown::{CommandPreview, Processes, Seconds, preview, scrollback};

/// Most names of variables in one note.
const MOST_NAMES: usize = 60;

/// Runs a command in a shell and returns what it printed, in the order it was printed. The command is passed on
/// unchanged, also over several lines and with here-documents. It has no terminal and its standard input is empty
/// unless asked for. The working directory carries over to the next command. Processes that outlive the shell go on
/// as a job. For a server or a watcher use background or yield_ms, then job_output.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The command, as it would be typed to the shell.
    #[schemars(extend("x-aliases" = ["cmd", "script"]))]
    command: String,
    /// The directory it starts in, absolute or relative to the working directory. Default: where the last command
    /// of this session ended.
    #[schemars(extend("x-aliases" = ["workdir", "working_directory"]))]
    cwd: Option<String>,
    /// How long it may run, in milliseconds; then it is ended and what it printed is returned. Default 120000, at
    /// most 600000, unless configured otherwise. Without a default in the background.
    #[schemars(extend("x-aliases" = ["timeout"]))]
    timeout_ms: Option<f64>,
    /// What standard input holds. With background or yield_ms it stays open for job_write after that.
    stdin: Option<String>,
    /// Whether it runs on a terminal, as for programs that ask questions. When it waits for an answer the call
    /// returns, and job_write gives one. Default false.
    #[schemars(extend("x-aliases" = ["tty"]))]
    pty: Option<bool>,
    /// Whether to return at once and let it go on as a job. Default false.
    #[schemars(extend("x-aliases" = ["run_in_background"]))]
    background: Option<bool>,
    /// How long to wait for it, in milliseconds; if it has not ended then, it goes on as a job.
    yield_ms: Option<f64>,
    /// Environment variables for this command.
    #[schemars(extend("x-aliases" = ["environment"]))]
    env: Option<BTreeMap<String, String>>,
    /// Whether a pipeline fails when any of its commands does, and not only the last. Default false.
    pipefail: Option<bool>,
}

/// What came of the command.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Output {
    /// How it stands: exited (by itself), running (as a job), timed_out or killed.
    status: JobStatus,
    /// The same in words.
    summary: String,
    /// The exit code of the shell; 128 + n after signal n. Absent while it runs.
    exit_code: Option<i32>,
    /// The signal that ended the shell, such as SIGKILL.
    signal: Option<String>,
    /// What was printed on both streams, in order; escape sequences and overwritten text are taken out.
    output: String,
    /// What was printed on standard output, where both streams were printed on.
    stdout: Option<String>,
    /// What was printed on standard error, where both streams were printed on.
    stderr: Option<String>,
    /// How long it ran, in milliseconds.
    duration_ms: u64,
    /// Whether output is left out here.
    truncated: Option<bool>,
    /// How many bytes of output are left out.
    omitted_bytes: Option<u64>,
    /// The file that holds the whole output, where it is left out here.
    spill_path: Option<String>,
    /// The working directory of the next command, absolute.
    cwd: String,
    /// Processes that outlived the shell.
    survivors: Option<Vec<Survivor>>,
    /// What confined the command.
    sandbox: String,
    /// The job it goes on as; for job_output, job_write and job_kill.
    job_id: Option<String>,
    /// Whether the command waits for somebody to type on its terminal. Absent without a terminal.
    waiting_for_input: Option<bool>,
}

/// A process that outlived the shell.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Survivor {
    /// Its number.
    pid: u32,
    /// Its command line.
    command: String,
}

pub(crate) struct Bash;

impl Resource for Bash {
    const NAME: &'static str = "bash";
    const RISK: Risk = Risk::High;
    const IDEMPOTENT: bool = false;
    const CONCURRENCY: Concurrency = Concurrency::Keyed(&["cwd"]);
    const TIMEOUT: Duration = Duration::from_secs(610);
    type Provider = Exec;
    type Args = Args;
    type Output = Output;
    type Stream = Process;

    async fn invoke(exec: Arc<Exec>, args: Args, cx: Cx<Process>) -> Result<Output, ToolError> {
        let plan = Plan::new(&exec, args)?;
        let start =
            exec.sessions.start(&exec.roots, cx.session_id(), cx.working_directory(), plan.cwd.as_deref())?;
        start.note.into_iter().for_each(|note| cx.note(note));
        start.directory.note().into_iter().for_each(|note| cx.note(note));
        if plan.may_become_job() {
            exec.jobs.ensure_room()?;
        }
        cx.progress("starting process", None).await;
        let call = Call { exec, plan, directory: start.directory, cx };
        call.run().await
    }

    fn render(output: &Output) -> Option<Node> {
        Some(scrollback(&output.summary, &output.output, output.succeeded()))
    }
}

impl Preview for Bash {
    async fn preview(exec: Arc<Exec>, args: Args, cx: &PreviewCx) -> Result<Node, ToolError> {
        let plan = Plan::new(&exec, args)?;
        let known = cx.working_directory().unwrap_or(Path::new(""));
        let start = exec.sessions.peek(&exec.roots, cx.session_id(), known, plan.cwd.as_deref())?;
        Ok(preview(&plan.preview(&exec, &start.directory)))
    }
}

impl Output {
    fn succeeded(&self) -> bool {
        match self.status {
            JobStatus::Running => true,
            JobStatus::Exited => self.exit_code == Some(0),
            JobStatus::TimedOut | JobStatus::Killed => false,
        }
    }
}

/// A call whose arguments are checked.
struct Plan {
    command: String,
    cwd: Option<String>,
    timeout: Duration,
    /// The caller named the timeout.
    timeout_asked: bool,
    stdin: Stdin,
    background: bool,
    yielding: Option<Duration>,
    env: BTreeMap<String, String>,
    pipefail: bool,
}

impl Plan {
    fn new(exec: &Exec, args: Args) -> Result<Self, ToolError> {
        let Args { command, cwd, timeout_ms, stdin, pty, background, yield_ms, env, pipefail } = args;
        if command.trim().is_empty() {
            return Err(ToolError::invalid_arguments("command: it is empty; pass the command to run"));
        }
        if command.contains('\0') {
            let message =
                "command: it holds a NUL character, which no shell can be given; write it as \\0 in printf";
            return Err(ToolError::invalid_arguments(message));
        }
        let longest = exec.settings.max_timeout;
        let timeout = timeout_ms.map(|timeout| milliseconds("timeout_ms", timeout, longest)).transpose()?;
        let yielding = yield_ms.map(|wait| milliseconds("yield_ms", wait, longest)).transpose()?;
        let env = env.unwrap_or_default();
        check("env", &env)?;
        let background = background.unwrap_or(false);
        let stays = background || yielding.is_some();
        let stdin = match (pty.unwrap_or(false), stdin) {
            (true, text) => Stdin::Terminal(text.unwrap_or_default()),
            (false, Some(text)) if stays => Stdin::Open(text),
            (false, Some(text)) => Stdin::Text(text),
            (false, None) => Stdin::Null,
        };
        Ok(Self {
            command,
            cwd,
            timeout: timeout.unwrap_or(exec.settings.default_timeout),
            timeout_asked: timeout.is_some(),
            stdin,
            background,
            yielding,
            env,
            pipefail: pipefail.unwrap_or(false),
        })
    }

    fn may_become_job(&self) -> bool {
        self.background || self.yielding.is_some()
    }

    fn terminal(&self) -> bool {
        matches!(self.stdin, Stdin::Terminal(_))
    }

    fn options(&self) -> &'static [&'static str] {
        if self.pipefail { &["-o", "pipefail"] } else { &[] }
    }

    fn preview(&self, exec: &Exec, directory: &JailPath) -> CommandPreview {
        CommandPreview {
            command: self.command.clone(),
            directory: directory.absolute().display().to_string(),
            environment: self.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
            sandbox: exec.sandbox.name(),
            terminal: self.terminal(),
            background: self.background,
            timeout: (!self.background || self.timeout_asked).then_some(self.timeout),
        }
    }
}

/// A number of milliseconds from 1 to `longest`.
fn milliseconds(field: &str, value: f64, longest: Duration) -> Result<Duration, ToolError> {
    let most = longest.as_millis();
    #[allow(clippy::cast_precision_loss)] // Far below 2^53.
    let in_range = value >= 1.0 && value <= most as f64 && value.fract() == 0.0;
    if !in_range {
        let hint =
            if field == "timeout_ms" { "; for a command that runs longer use background: true" } else { "" };
        return Err(ToolError::invalid_arguments(format!(
            "{field}: it must be an integer from 1 to {most} (milliseconds), but is {value}{hint}"
        )));
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // In the range, and whole.
    Ok(Duration::from_millis(value as u64))
}

/// One call at work.
struct Call {
    exec: Arc<Exec>,
    plan: Plan,
    directory: JailPath,
    cx: Cx<Process>,
}

impl Call {
    async fn run(self) -> Result<Output, ToolError> {
        let started = SystemTime::now();
        // From here on the call ends by itself when it is given up, so that it can say what has happened.
        self.cx.check_cancelled()?;
        let process = self.launch().await?;
        let begun = Instant::now();
        let record = self.exec.record(self.plan.terminal());
        if self.plan.background {
            return Ok(self.go_on(process, record, started, Vec::new()));
        }
        let mut foreground = Foreground { process, record, cx: self.cx.clone() };
        let yielding = self.plan.yielding.map(|wait| begun + wait);
        match foreground.wait(begun + self.plan.timeout, yielding).await {
            Wait::Yielded => {
                let waits = foreground.process.waits_for_input();
                foreground.record.set_waits(waits);
                Ok(self.go_on(foreground.process, foreground.record, started, Vec::new()))
            }
            Wait::Cancelled => self.cancelled(foreground).await,
            Wait::TimedOut => {
                foreground.end(self.exec.settings.grace).await;
                Ok(self.ended(foreground, Some(JobStatus::TimedOut), Vec::new()).await)
            }
            Wait::Exited => self.exited(foreground, started).await,
        }
    }

    async fn launch(&self) -> Result<Running, ToolError> {
        let Self { exec, plan, directory, cx } = self;
        let temporary = exec.temporary(cx.session_id())?;
        let path = exec.surroundings.path().await;
        let shown = directory.absolute();
        let particulars = Particulars {
            path: path.as_deref(),
            directory: &shown,
            temporary: Some(&temporary),
            terminal: plan.terminal(),
            asked: &plan.env,
        };
        self.tell_once();
        let (arguments, extra) = shell_arguments(&exec.shell, plan.options(), &plan.command)
            .map_err(|error| ToolError::unknown(&error))?;
        let launch = Launch {
            program: exec.shell.clone(),
            arguments,
            environment: exec.surroundings.environment.of(&particulars),
            directory: exec.open(directory)?,
            stdin: plan.stdin.clone(),
            sandbox: exec.policy(&temporary),
            limits: exec.limits,
            extra,
        };
        launch.start(&exec.surroundings.supervisor).await.map_err(|error| start_error(&error, &shown))
    }

    /// What a session should know, the first time it runs a command.
    fn tell_once(&self) {
        let exec = &self.exec;
        if !exec.sessions.tell_once(self.cx.session_id()) {
            return;
        }
        let dropped = exec.surroundings.environment.dropped();
        if !dropped.is_empty() {
            let names = dropped.iter().take(MOST_NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
            let more = match dropped.len().saturating_sub(MOST_NAMES) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            self.cx.note(format!(
                "environment variables that commands do not get unless configured in env_pass: {names}{more}"
            ));
        }
        exec.sandbox_note().into_iter().for_each(|note| self.cx.note(note));
    }

    /// The command goes on as a job.
    fn go_on(
        &self,
        process: Running,
        record: Arc<Record>,
        started: SystemTime,
        survivors: Vec<ProcessName>,
    ) -> Output {
        let deadline = (self.plan.timeout_asked && process.status.is_none())
            .then(|| (Instant::from_std(record.begun) + self.plan.timeout, self.exec.settings.grace));
        let status = process.status;
        let candidate = Candidate {
            process,
            record: record.clone(),
            command: self.plan.command.clone(),
            owner: self.cx.session_id().to_owned(),
            started,
            deadline,
        };
        let job = self.exec.jobs.adopt(candidate);
        let mut output = self.output(&record);
        let ended = status.map(|status| Ending {
            status: JobStatus::Exited,
            code: Some(status.code()),
            signal: status.signal_name(),
        });
        output.status = ended.as_ref().map_or(JobStatus::Running, |ending| ending.status);
        output.exit_code = ended.as_ref().and_then(|ending| ending.code);
        output.signal = ended.as_ref().and_then(|ending| ending.signal.clone());
        output.summary = match &ended {
            None => format!("running as {}; read on with job_output, end it with job_kill", job.id),
            Some(ending) => format!(
                "{}; {} of it left, as {}",
                in_words(ending, record.begun.elapsed()),
                Processes(survivors.len()),
                job.id
            ),
        };
        output.survivors = named(survivors);
        output.job_id = Some(job.id.clone());
        output
    }

    /// Nobody waits for the command any more.
    async fn cancelled(&self, mut foreground: Foreground) -> Result<Output, ToolError> {
        foreground.end(self.exec.settings.grace).await;
        self.report_cancelled(&foreground);
        Err(ToolError::cancelled())
    }

    /// The shell has ended.
    async fn exited(&self, mut foreground: Foreground, started: SystemTime) -> Result<Output, ToolError> {
        let survivors = match foreground.process.is_over() {
            true => Vec::new(),
            false => foreground.settle().await,
        };
        if !survivors.is_empty() && self.cx.check_cancelled().is_err() {
            // A job is only left to a caller who is told of it.
            return self.cancelled(foreground).await;
        }
        if let Some(directory) = foreground.process.directory.clone() {
            self.moved(&directory.path, directory.deleted);
        }
        if survivors.is_empty() || self.exec.settings.survivors == Survivors::Kill {
            if !survivors.is_empty() {
                foreground.end(self.exec.settings.grace).await;
            }
            return Ok(self.ended(foreground, None, survivors).await);
        }
        if let Some(status) = foreground.process.status {
            self.cx.exit_status(status.code(), status.signal_name()).await;
        }
        let Foreground { process, record, .. } = foreground;
        Ok(self.go_on(process, record, started, survivors))
    }

    /// Where the next command of the session starts.
    fn moved(&self, path: &Path, deleted: bool) {
        let exec = &self.exec;
        match exec.roots.working_directory(path) {
            Ok(inside) => {
                exec.sessions.moved(self.cx.session_id(), &inside.absolute());
                if deleted {
                    let text = format!("the working directory {} was removed by the command", path.display());
                    self.cx.note(text);
                }
            }
            Err(_) => self.cx.note(format!(
                "the command ended in {}, which is outside the root; the next one starts in {}",
                path.display(),
                self.directory.absolute().display()
            )),
        }
    }

    /// The result of a command of which nothing is left.
    async fn ended(
        &self,
        mut foreground: Foreground,
        asked: Option<JobStatus>,
        survivors: Vec<ProcessName>,
    ) -> Output {
        if foreground.process.is_over() {
            foreground.drain().await;
        }
        let Foreground { process, record, .. } = foreground;
        let ending = ending(&process, asked);
        record.finish(ending.clone());
        if let Some(code) = ending.code {
            self.cx.exit_status(code, ending.signal.clone()).await;
        }
        let mut output = self.output(&record);
        output.summary = self.summary(&process, &ending, &record, survivors.len());
        output.status = ending.status;
        output.exit_code = ending.code;
        output.signal = ending.signal;
        let unkillable = process.unkillable.clone();
        output.survivors = named(if unkillable.is_empty() { survivors } else { unkillable });
        output
    }

    fn summary(&self, process: &Running, ending: &Ending, record: &Record, survivors: usize) -> String {
        let ran = record.begun.elapsed();
        let mut text = match (ending.status, process.limit) {
            (_, Some(Limit::Memory)) => format!(
                "killed: memory limit: its processes held more than {} bytes",
                self.exec.limits.memory_bytes.unwrap_or_default()
            ),
            (_, Some(Limit::Processes)) => format!(
                "killed: process limit: there were more than {} processes",
                self.exec.limits.processes.unwrap_or_default()
            ),
            (JobStatus::TimedOut, None) => format!(
                "timed out after {}{}",
                Seconds(self.plan.timeout),
                how_it_ended(process, self.exec.settings.grace)
            ),
            (JobStatus::Killed, None) if process.guard_lost => {
                "killed: the process that guarded it was killed, so all of it was ended".to_owned()
            }
            _ => in_words(ending, ran),
        };
        if survivors > 0 {
            text.push_str(&format!("; ended {} that outlived it", Processes(survivors)));
        }
        if !process.unkillable.is_empty() {
            text.push_str(&format!("; {} could not be killed", Processes(process.unkillable.len())));
        }
        text
    }

    /// What the caller is told of a call it gave up.
    fn report_cancelled(&self, foreground: &Foreground) {
        let Foreground { process, record, .. } = foreground;
        let ran = record.begun.elapsed();
        let how = how_it_ended(process, self.exec.settings.grace);
        let command: String = self.plan.command.chars().take(200).collect();
        self.cx.effects().record(format!(
            "ran `{command}` (process {}) for {}{how}; it had printed {} bytes",
            process.pid(),
            Seconds(ran),
            record.total()
        ));
        let left = match (process.is_over(), process.unkillable.as_slice()) {
            (true, []) => return,
            (true, left) => format!("processes that could not be killed: {}", list(left)),
            (false, _) => "processes of it are still being ended".to_owned(),
        };
        self.cx.effects().record(left);
    }

    /// What was printed so far, and where the session is.
    fn output(&self, record: &Arc<Record>) -> Output {
        let exec = &self.exec;
        let (captured, _) = record.view(false);
        let apart = captured.apart.as_ref();
        let omitted = captured.output.omitted_bytes();
        let cut = omitted > 0
            || apart.is_some_and(|apart| apart.stdout.omitted.is_some() || apart.stderr.omitted.is_some());
        let (_, kept) = record.view(cut);
        let spill_path = kept.as_ref().filter(|_| cut).and_then(|kept| kept.files.first());
        if let Some(kept) = &kept {
            exec.keep(record.clone());
            self.note_losses(kept);
        }
        let hint = spill_path.map_or_else(String::new, |path| format!("all of it is in {}", path.display()));
        let screen = record.full_screen();
        let base = exec.sessions.current(self.cx.session_id()).unwrap_or_else(|| self.directory.absolute());
        Output {
            output: screen.unwrap_or_else(|| captured.output.text(&hint)),
            stdout: apart.map(|apart| apart.stdout.text(&hint)),
            stderr: apart.map(|apart| apart.stderr.text(&hint)),
            duration_ms: u64::try_from(record.begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            truncated: (omitted > 0).then_some(true),
            omitted_bytes: (omitted > 0).then_some(omitted),
            spill_path: spill_path.map(|path| path.display().to_string()),
            cwd: base.display().to_string(),
            sandbox: exec.sandbox.name(),
            waiting_for_input: record.waits(),
            ..Output::default()
        }
    }

    fn note_losses(&self, kept: &crate::spill::Kept) {
        if let Some((from, to)) = kept.lost {
            self.cx.note(format!(
                "the output was more than spill_quota_bytes: bytes {from} to {to} of it are not kept; the end is in {}",
                kept.files[1..].iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(" and ")
            ));
        }
        kept.failure.iter().for_each(|failure| self.cx.note(failure.clone()));
    }
}

/// How a command that was ended came to its end: `, ended by SIGTERM`.
fn how_it_ended(process: &Running, grace: Duration) -> String {
    match process.ended {
        Some(ended) if ended.killed > 0 => format!(
            "; SIGTERM was sent to {}, and after {} SIGKILL ended {}",
            Processes(ended.asked as usize),
            Seconds(grace),
            ended.killed
        ),
        Some(ended) => format!("; SIGTERM ended {}", Processes(ended.asked as usize)),
        None => String::new(),
    }
}

fn in_words(ending: &Ending, ran: Duration) -> String {
    let ran = Seconds(ran);
    match (&ending.signal, ending.code) {
        (Some(signal), _) => format!("ended by {signal} after {ran}"),
        (None, Some(code)) => format!("exit code {code} after {ran}"),
        (None, None) => format!("ended after {ran}"),
    }
}

fn named(processes: Vec<ProcessName>) -> Option<Vec<Survivor>> {
    let survivor = |ProcessName { pid, command }| Survivor { pid, command };
    (!processes.is_empty()).then(|| processes.into_iter().map(survivor).collect())
}

fn list(processes: &[ProcessName]) -> String {
    let one = |process: &ProcessName| format!("{} ({})", process.pid, process.command);
    processes.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn start_error(error: &StartError, directory: &Path) -> ToolError {
    let message = match error {
        StartError::Refused(refusal) if refusal.step == "enter the working directory" => {
            format!("the working directory {} cannot be entered: {}", directory.display(), refusal.reason)
        }
        error => error.to_string(),
    };
    ToolError::execution_failed(message)
}
