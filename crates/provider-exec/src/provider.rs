//! The configured provider: its root, its shell, its sandbox, its jobs.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use provider_core::configured_path;
use provider_core::jail::{JailPath, Roots};
use provider_core::prelude::*;
use provider_core::supervisor::sandbox::{Mode, Policy, Request, Sandbox, Wanted, default_write_paths};
use provider_core::supervisor::{Limits, Supervisor, find_program};
use provider_core::{HookEvent, HookPoint, Hooks};

use crate::config::{ExecConfig, SandboxWanted, Survivors};
use crate::environment::Environment;
use crate::job::Jobs;
use crate::login::LoginPath;
use crate::protect;
use crate::reading::ReadOnly;
use crate::record::Record;
use crate::session::Sessions;
use crate::spill::SpillFolder;
use crate::state;
use crate::tools::bash::Bash;
use crate::tools::job_kill::JobKill;
use crate::tools::job_list::JobList;
use crate::tools::job_output::JobOutput;
use crate::tools::job_write::JobWrite;
use crate::tools::shell_read::ShellRead;

/// How many outputs are kept on disk at one time.
const KEPT_OUTPUTS: usize = 48;
/// How long the end of all jobs may take when the provider ends.
const CLOSE_LIMIT: Duration = Duration::from_millis(900);

/// Commands below a root.
pub struct Exec {
    pub(crate) roots: Roots,
    pub(crate) shell: PathBuf,
    pub(crate) sandbox: Sandbox,
    pub(crate) read_only: ReadOnly,
    pub(crate) surroundings: Arc<Surroundings>,
    pub(crate) sessions: Sessions,
    pub(crate) jobs: Jobs,
    pub(crate) limits: Limits,
    pub(crate) settings: Settings,
    write_paths: Vec<PathBuf>,
    protect: Vec<PathBuf>,
    folder: SpillFolder,
    /// By the temporary directory of the session.
    policies: Mutex<HashMap<PathBuf, Policy>>,
    outputs: AtomicU64,
    kept: Mutex<VecDeque<Arc<Record>>>,
}

/// What commands are started with and in.
pub(crate) struct Surroundings {
    pub(crate) supervisor: Supervisor,
    pub(crate) environment: Environment,
    login_path: LoginPath,
}

impl Surroundings {
    /// The PATH that commands get.
    pub(crate) async fn path(&self) -> Option<OsString> {
        self.login_path.get(&self.supervisor, &self.environment).await.map(OsString::from)
    }
}

/// What is configured in numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) default_timeout: Duration,
    pub(crate) max_timeout: Duration,
    pub(crate) grace: Duration,
    pub(crate) output_bytes: usize,
    pub(crate) survivors: Survivors,
    spill_quota: u64,
}

impl Settings {
    fn new(config: &ExecConfig) -> Result<Self, ToolError> {
        if config.default_timeout_ms > config.max_timeout_ms {
            return Err(ToolError::invalid_arguments(format!(
                "default_timeout_ms: {} is more than max_timeout_ms, which is {}",
                config.default_timeout_ms, config.max_timeout_ms
            )));
        }
        Ok(Self {
            default_timeout: Duration::from_millis(config.default_timeout_ms),
            max_timeout: Duration::from_millis(config.max_timeout_ms),
            grace: Duration::from_millis(config.grace_ms),
            output_bytes: usize::try_from(config.max_output_bytes).unwrap_or(usize::MAX),
            survivors: config.survivors,
            spill_quota: config.spill_quota_bytes,
        })
    }
}

impl Provider for Exec {
    const NAME: &'static str = "exec";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Config = ExecConfig;

    async fn configure(config: ExecConfig, setup: Setup) -> Result<Self, ToolError> {
        let settings = Settings::new(&config)?;
        let roots = Roots::open(std::slice::from_ref(&config.root), setup.directory())
            .map_err(|error| ToolError::invalid_arguments(format!("root: {error}")))?;
        let environment = Environment::new(std::env::vars_os(), &config.env_pass, &config.env)?;
        let shell = shell(config.shell.as_deref(), &environment)?;
        let sandbox = choose_sandbox(&config).await?;
        let folder = folder(config.state_dir.as_deref(), &setup)?;
        let write_paths = match &config.write_paths {
            Some(paths) => paths.iter().map(|path| setup.path(path)).collect(),
            None => default_write_paths(|name| environment.get(name).map(OsString::from)),
        };
        let protect = protected(&config, roots.first().real_path())?;
        let surroundings = Arc::new(Surroundings {
            supervisor: Supervisor::default(),
            environment,
            login_path: LoginPath::default(),
        });
        prepare(&surroundings);
        Ok(Self {
            roots,
            shell,
            sandbox,
            read_only: ReadOnly::default(),
            surroundings,
            sessions: Sessions::default(),
            jobs: Jobs::default(),
            limits: Limits { memory_bytes: config.memory_limit_bytes, processes: config.process_limit },
            settings,
            write_paths,
            protect,
            folder,
            policies: Mutex::default(),
            outputs: AtomicU64::new(0),
            kept: Mutex::default(),
        })
    }

    fn tools(tools: &mut Tools<Self>) {
        tools.resource::<Bash>().with_preview();
        tools.data_source::<ShellRead>();
        tools.data_source::<JobOutput>();
        tools.resource::<JobWrite>();
        tools.resource::<JobKill>();
        tools.data_source::<JobList>();
    }

    fn hooks(hooks: &mut Hooks<Self>) {
        hooks.observe(HookPoint::SessionEnd, |exec: Arc<Self>, event| async move {
            if let HookEvent::SessionEnd { session_id } = event {
                exec.end_session(&session_id).await;
            }
        });
    }

    async fn close(&self) {
        let hurried = Duration::from_millis(500);
        self.jobs.all().iter().filter(|job| job.is_running()).for_each(|job| job.end(TERM, hurried));
        let _ = tokio::time::timeout(CLOSE_LIMIT, self.surroundings.supervisor.idle()).await;
    }
}

const TERM: i32 = 15;

/// Begins what the first command would otherwise wait for.
fn prepare(surroundings: &Arc<Surroundings>) {
    // Without a warm guard the first command only starts a little later, and says so if there can be none.
    let _ = surroundings.supervisor.warm();
    let surroundings = surroundings.clone();
    tokio::spawn(async move { surroundings.path().await });
}

fn folder(configured: Option<&str>, setup: &Setup) -> Result<SpillFolder, ToolError> {
    let state = setup.state_folder(configured);
    state::folder(state.as_deref(), configured.is_some()).map_err(|error| {
        let place =
            state.map_or_else(|| "the user's state folder".to_owned(), |path| path.display().to_string());
        ToolError::invalid_arguments(format!("state_dir: no state can be kept in {place}: {error}"))
    })
}

fn shell(configured: Option<&str>, environment: &Environment) -> Result<PathBuf, ToolError> {
    let path = environment.get("PATH");
    let found = match configured {
        Some(name) => find_program(name, path),
        None => find_program("bash", path)
            .or_else(|| find_program("/bin/bash", None))
            .or_else(|| find_program("/bin/sh", None)),
    };
    found.ok_or_else(|| {
        let name = configured.unwrap_or("bash or sh");
        ToolError::invalid_arguments(format!(
            "shell: there is no program {name}, by absolute path or on PATH"
        ))
    })
}

/// What stays as it is in the root.
fn protected(config: &ExecConfig, root: &Path) -> Result<Vec<PathBuf>, ToolError> {
    let by_default = || protect::BY_DEFAULT.iter().map(|path| (*path).to_owned()).collect();
    let patterns = config.protect.clone().unwrap_or_else(by_default);
    protect::find(root, &patterns, |path| configured_path(path, root))
}

async fn choose_sandbox(config: &ExecConfig) -> Result<Sandbox, ToolError> {
    let wanted = match config.sandbox {
        SandboxWanted::Auto => Wanted::Auto,
        SandboxWanted::WorkspaceWrite => Wanted::Confined(Mode::WorkspaceWrite),
        SandboxWanted::ReadOnly => Wanted::Confined(Mode::ReadOnly),
        SandboxWanted::Off => Wanted::Off,
    };
    let request = Request {
        wanted,
        required: config.sandbox_required,
        network: config.network,
        // What is protected anyway is not worth what a user namespace changes.
        protect: config.protect.as_ref().is_some_and(|paths| !paths.is_empty()),
    };
    let chosen = tokio::task::spawn_blocking(move || Sandbox::choose(&request)).await;
    match chosen {
        Ok(Ok(sandbox)) => Ok(sandbox),
        Ok(Err(error)) => Err(ToolError::permission_denied(format!("sandbox: {error}"))),
        Err(error) => Err(ToolError::unknown(&error)),
    }
}

impl Exec {
    /// Ends the jobs of a session, and forgets it with all that was kept for it.
    async fn end_session(&self, session: &str) {
        let jobs = self.jobs.take_of(session);
        jobs.iter().filter(|job| job.is_running()).for_each(|job| job.end(TERM, self.settings.grace));
        for job in jobs {
            job.record.ended().await;
            job.record.forget();
        }
        if let Some(directory) = self.sessions.forget(session) {
            // What cannot be removed now goes with the folder.
            let directory = self.folder.path().join(directory);
            self.policies.lock().unwrap_or_else(PoisonError::into_inner).remove(&directory);
            let _ = std::fs::remove_dir_all(directory);
        }
    }

    /// What a command of a session may do. The paths are looked at once: what is not there then cannot be made by a
    /// command later.
    pub(crate) fn policy(&self, temporary: &Path) -> Policy {
        let mut policies = self.policies.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(policy) = policies.get(temporary) {
            return policy.clone();
        }
        let policy = self.new_policy(temporary);
        policies.insert(temporary.to_owned(), policy.clone());
        policy
    }

    fn new_policy(&self, temporary: &Path) -> Policy {
        let temporary = std::iter::once(temporary.to_owned());
        let write: Vec<PathBuf> = match self.sandbox.level().map(|level| level.mode) {
            Some(Mode::ReadOnly) => temporary.collect(),
            _ => {
                let root = self.roots.first().real_path().to_owned();
                temporary.chain([root]).chain(self.write_paths.iter().cloned()).collect()
            }
        };
        self.sandbox.policy(&write, &self.protect)
    }

    fn root(&self) -> &Path {
        self.roots.first().real_path()
    }

    /// What the sandbox does not keep.
    pub(crate) fn sandbox_note(&self) -> Option<String> {
        let Some(level) = self.sandbox.level() else {
            let nothing = "no sandbox holds on this machine, so commands may write everywhere";
            return (!self.sandbox.tried().is_empty()).then(|| nothing.to_owned());
        };
        // Where not even the directory above is there, there is nothing yet to protect.
        let is_there = |path: &Path| {
            path.exists() || path.parent().is_some_and(|above| above != self.root() && above.exists())
        };
        let open: Vec<String> = self
            .protect
            .iter()
            .filter(|path| is_there(path) && !(self.sandbox.can_protect() && path.exists()))
            .map(|path| path.display().to_string())
            .collect();
        if open.is_empty() || level.mode == Mode::ReadOnly {
            return None;
        }
        let why = if self.sandbox.can_protect() {
            "what does not exist when a command begins cannot be protected"
        } else {
            "that needs a mount namespace, which this machine does not grant"
        };
        Some(format!("not protected from commands: {}; {why}", open.join(", ")))
    }

    /// The temporary directory of a session.
    pub(crate) fn temporary(&self, session: &str) -> Result<PathBuf, ToolError> {
        let path = self.folder.path().join(self.sessions.directory_name(session));
        state::private_directory(path.clone()).map_err(|error| {
            let message = format!("the temporary directory {} cannot be made: {error}", path.display());
            ToolError::execution_failed(message)
        })
    }

    /// An empty record for a command.
    pub(crate) fn record(&self, terminal: bool) -> Arc<Record> {
        let number = self.outputs.fetch_add(1, Ordering::Relaxed) + 1;
        let spill = self.folder.spill(&format!("output-{number}"), self.settings.spill_quota);
        Arc::new(Record::new(self.settings.output_bytes, spill, terminal))
    }

    /// Keeps the output of a command on disk, and gives up that of older ones where there are many.
    pub(crate) fn keep(&self, record: Arc<Record>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_back(record);
        if kept.len() > KEPT_OUTPUTS
            && let Some(oldest) = kept.iter().position(|record| record.ending().is_some())
            && let Some(record) = kept.remove(oldest)
        {
            record.forget();
        }
    }

    /// The open directory of a path.
    pub(crate) fn open(&self, directory: &JailPath) -> Result<OwnedFd, ToolError> {
        let opened = directory.open_dir()?;
        opened.as_fd().try_clone_to_owned().map_err(|error| ToolError::unknown(&error))
    }
}
