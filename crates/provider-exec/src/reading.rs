//! Programs that only read: where they are found, what they are given, and what they are confined to.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use provider_core::Code;
use provider_core::ToolError;
use provider_core::jail::JailPath;
use provider_core::supervisor::find_program;
use provider_core::supervisor::sandbox::{Mode, Policy, Request, Sandbox, Wanted};
use tokio::sync::OnceCell;

use crate::Exec;
use crate::engine::allowed::{Allowed, NotAllowed, SAFE_SETTINGS, dangerous_value};
use crate::environment::Variables;
use crate::launch::{Launch, Stdin};
use crate::process::{Process, Step};

/// Where the system keeps its programs. What the root has on the PATH is not run: it may be anybody's.
const PROGRAMS: &[&str] = &[
    "/usr/local/bin",
    "/usr/bin",
    "/bin",
    "/usr/local/sbin",
    "/usr/sbin",
    "/sbin",
    "/opt/homebrew/bin",
    "/run/current-system/sw/bin",
];
/// What programs of the system need besides: themselves and their libraries.
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt/homebrew",
    "/nix/store",
    "/gnu/store",
    "/run/current-system",
];
/// What they read of the system: no secrets.
const FACTS: &[&str] = &[
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/passwd",
    "/etc/group",
    "/etc/nsswitch.conf",
    "/etc/localtime",
    "/etc/timezone",
    "/etc/gitconfig",
    "/etc/gitattributes",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/locale.alias",
    "/etc/os-release",
    "/etc/hostname",
    "/etc/alternatives",
    "/proc",
    "/sys/devices/system",
    "/sys/fs/cgroup",
];
/// The user's own settings of git, below the home directory.
const GIT_SETTINGS: &[&str] = &[".gitconfig", ".config/git"];
/// Variables that say how text is written and who asks.
const PASSED: &[&str] = &["HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ"];
/// More programs than this in the configuration of a repository are no accident.
const MOST_SETTINGS: usize = 500;
/// The names of all settings take no more.
const LONGEST: usize = 1 << 20;

/// The sandbox of programs that only read, found when the first one is run.
#[derive(Debug, Default)]
pub(crate) struct ReadOnly(OnceCell<Result<Sandbox, String>>);

impl ReadOnly {
    async fn get(&self) -> Result<&Sandbox, ToolError> {
        let chosen = self.0.get_or_init(|| async {
            let request = Request {
                wanted: Wanted::Confined(Mode::ReadOnly),
                required: true,
                network: false,
                protect: false,
            };
            match tokio::task::spawn_blocking(move || Sandbox::choose(&request)).await {
                Ok(chosen) => chosen.map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            }
        });
        chosen.await.as_ref().map_err(|error| {
            let message =
                format!("shell_read runs programs only in a read-only sandbox, but {error}; use bash");
            ToolError::permission_denied(message)
        })
    }
}

/// What is not allowed, as the call's error.
pub(crate) fn refused(error: &NotAllowed) -> ToolError {
    match error {
        NotAllowed::Empty | NotAllowed::Nul => ToolError::invalid_arguments(error.to_string()),
        NotAllowed::Program { .. } | NotAllowed::Argument { .. } => {
            ToolError::new(Code::Denied, error.to_string())
        }
    }
}

/// Runs programs for one call.
pub(crate) struct Reader<'a> {
    exec: &'a Exec,
    directory: &'a JailPath,
    root: PathBuf,
    temporary: PathBuf,
    path: Option<OsString>,
    sandbox: &'a Sandbox,
}

impl<'a> Reader<'a> {
    pub(crate) async fn new(
        exec: &'a Exec,
        session: &str,
        directory: &'a JailPath,
    ) -> Result<Self, ToolError> {
        Ok(Self {
            exec,
            directory,
            root: exec.roots.first().real_path().to_owned(),
            temporary: exec.temporary(session)?,
            path: exec.surroundings.path().await,
            sandbox: exec.read_only.get().await?,
        })
    }

    /// The name of what confines the programs.
    pub(crate) fn sandbox(&self) -> String {
        self.sandbox.name()
    }

    /// Where reads cannot be confined, refuses arguments that name something outside, and says so.
    pub(crate) fn note(&self, allowed: &Allowed) -> Result<Option<String>, ToolError> {
        if self.sandbox.level().is_some_and(|level| level.landlock) {
            return Ok(None);
        }
        let base = self.directory.absolute();
        let named = allowed.arguments.iter().flat_map(|argument| argument.split('='));
        for path in named.filter_map(|part| base.join(part).canonicalize().ok()) {
            if !path.starts_with(&self.root) {
                let message = format!(
                    "{} lies outside the root; shell_read reads only below {}",
                    path.display(),
                    self.root.display()
                );
                return Err(ToolError::new(Code::OutsideRoot, message));
            }
        }
        Ok(Some("this machine cannot confine what programs read: only the arguments were checked".to_owned()))
    }

    /// Starts a program.
    pub(crate) async fn start(&self, allowed: &Allowed) -> Result<Process, ToolError> {
        let program = self.find(allowed.program)?;
        let mut environment = self.environment();
        if allowed.is_git {
            let settings = self.git_settings(&program, allowed).await?;
            environment.extend(settings);
        }
        self.launch(program, allowed, environment).await
    }

    fn find(&self, name: &str) -> Result<PathBuf, ToolError> {
        // Debian calls it by another name.
        let names: &[&str] = if name == "fd" { &["fd", "fdfind"] } else { &[name] };
        let own = self.path.iter().flat_map(std::env::split_paths);
        let own =
            own.filter(|directory| directory.canonicalize().is_ok_and(|real| !real.starts_with(&self.root)));
        let all: Vec<PathBuf> = PROGRAMS.iter().map(PathBuf::from).chain(own).collect();
        let path = std::env::join_paths(all).unwrap_or_default();
        let found = names.iter().find_map(|name| find_program(name, Some(&path)));
        let found = found.and_then(|program| program.canonicalize().ok());
        found.filter(|program| !program.starts_with(&self.root)).ok_or_else(|| {
            ToolError::not_found(format!(
                "{name} is not installed here, or only below the root, from where it is not run"
            ))
        })
    }

    fn environment(&self) -> Variables {
        let own = &self.exec.surroundings.environment;
        let passed = PASSED.iter().filter_map(|name| Some((OsString::from(name), own.get(name)?.to_owned())));
        let mut all: Variables = passed.chain(own.locale()).collect();
        let fixed = [
            ("PATH", OsStr::new("/usr/local/bin:/usr/bin:/bin")),
            ("TERM", OsStr::new("dumb")),
            ("TMPDIR", self.temporary.as_os_str()),
        ];
        all.extend(fixed.map(|(name, value)| (name.into(), value.to_owned())));
        all
    }

    fn policy(&self, program: &Path) -> Policy {
        let mut policy = self.sandbox.policy(std::slice::from_ref(&self.temporary), &[]);
        let home = self.exec.surroundings.environment.get("HOME").map(PathBuf::from);
        let settings = home.iter().flat_map(|home| GIT_SETTINGS.iter().map(|name| home.join(name)));
        let read: Vec<PathBuf> =
            [self.root.clone()].into_iter().chain(FACTS.iter().map(PathBuf::from)).chain(settings).collect();
        let run: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).chain([program.to_owned()]).collect();
        policy.confine_reads(&read, &run);
        policy
    }

    async fn launch(
        &self,
        program: PathBuf,
        allowed: &Allowed,
        environment: Variables,
    ) -> Result<Process, ToolError> {
        let arguments = std::iter::once(allowed.program).chain(allowed.arguments.iter().map(String::as_str));
        let launch = Launch {
            arguments: arguments.map(OsString::from).collect(),
            sandbox: self.policy(&program),
            program,
            environment,
            directory: self.exec.open(self.directory)?,
            stdin: Stdin::Null,
            limits: self.exec.limits,
            extra: None,
        };
        let started = launch.start(&self.exec.surroundings.supervisor).await;
        started.map_err(|error| ToolError::execution_failed(error.to_string()))
    }

    /// The variables that keep git from running what its configuration names. The names that a repository has chosen
    /// itself are asked for first.
    async fn git_settings(&self, program: &Path, allowed: &Allowed) -> Result<Variables, ToolError> {
        let directories = allowed.arguments.iter().skip_while(|argument| *argument != "-C");
        let directories =
            directories.enumerate().take_while(|(index, argument)| index % 2 == 1 || *argument == "-C");
        let directories = directories.map(|(_, argument)| argument.clone());
        let list = ["config", "--list", "--name-only", "-z"].map(str::to_owned);
        let asking = Allowed { program: "git", arguments: directories.chain(list).collect(), is_git: true };
        let mut environment = self.environment();
        environment.extend(git_variables(&[]));
        let mut process = self.launch(program.to_owned(), &asking, environment).await?;
        let mut names = Vec::new();
        loop {
            match process.step().await {
                Step::Piece(piece) if names.len() <= LONGEST => names.extend(piece.bytes),
                Step::Finished => break,
                Step::Piece(_) | Step::Changed => {}
            }
        }
        let mut chosen: Vec<(String, &'static str)> = Vec::new();
        for name in names.split(|byte| *byte == 0) {
            let name = String::from_utf8_lossy(name).into_owned();
            if let Some(value) = dangerous_value(&name) {
                chosen.push((name, value));
            }
        }
        chosen.sort_unstable();
        chosen.dedup();
        if chosen.len() > MOST_SETTINGS || names.len() > LONGEST {
            let message =
                "the configuration of this repository names too many programs to be trusted; use bash";
            return Err(ToolError::new(Code::Denied, message));
        }
        Ok(git_variables(&chosen))
    }
}

/// Everything that is said to git through its environment.
fn git_variables(chosen: &[(String, &'static str)]) -> Variables {
    let fixed = SAFE_SETTINGS.iter().map(|(name, value)| ((*name).to_owned(), *value));
    let settings: Vec<(String, &str)> = fixed.chain(chosen.iter().cloned()).collect();
    let mut all: Variables = [
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("GIT_NO_LAZY_FETCH", "1"),
        ("GIT_ALLOW_PROTOCOL", "none"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_PAGER", "cat"),
        ("GIT_EDITOR", "false"),
        ("GIT_ASKPASS", "false"),
        ("GIT_SSH_COMMAND", "false"),
    ]
    .into_iter()
    .map(|(name, value)| (name.into(), value.into()))
    .collect();
    all.insert("GIT_CONFIG_COUNT".into(), settings.len().to_string().into());
    for (index, (name, value)) in settings.into_iter().enumerate() {
        all.insert(format!("GIT_CONFIG_KEY_{index}").into(), name.into());
        all.insert(format!("GIT_CONFIG_VALUE_{index}").into(), value.into());
    }
    all
}
