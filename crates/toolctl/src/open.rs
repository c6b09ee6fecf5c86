//! From the command line to a provider that is configured and ready.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use provider_code::Code;
use provider_core::Provider as _;
use serde_json::Value;
use tool_host::assign::Assignment;
use tool_host::catalogue::Attribute;
use tool_host::config::Settings;
use tool_host::people::{ApproveAll, DenyAll, NoAnswers, PreparedAnswers};
use tool_host::{Answerer, Approver, Call, Host, LaunchOptions, Object, Policy, Provider};

use crate::cli::Shared;
use crate::embedded;
use crate::exit::Failure;
use crate::prompt::{TerminalAnswers, TerminalApproval};
use crate::reach::{Reach, is_code};
use crate::shell::Shell;

/// What the shared flags mean, with paths absolute and files read.
pub(crate) struct Setup {
    pub(crate) settings: Settings,
    pub(crate) working_directory: PathBuf,
    pub(crate) session: String,
    env: Vec<(String, String)>,
}

impl Setup {
    /// # Errors
    /// A usage error when a flag cannot be used.
    pub(crate) fn new(shared: &Shared) -> Result<Self, Failure> {
        let roots = match shared.root.as_slice() {
            [] => vec![absolute(Path::new("."))?],
            roots => roots.iter().map(|root| absolute(root)).collect::<Result<_, _>>()?,
        };
        let working_directory = match &shared.cwd {
            Some(cwd) => absolute(cwd)?,
            None => roots[0].clone(),
        };
        let json = match &shared.config_json {
            Some(text) => object("--config-json", &text_or_file("--config-json", text)?)?,
            None => Object::new(),
        };
        let assignments = assignments(&shared.config)?;
        let session = shared.session.clone().unwrap_or_else(|| default_session(&working_directory));
        let env = shared.env.iter().map(|given| variable(given)).collect::<Result<_, _>>()?;
        Ok(Self { settings: Settings { roots, json, assignments }, working_directory, session, env })
    }

    /// Starts a provider without configuring it.
    ///
    /// # Errors
    /// A usage error for an unknown name, else why it does not start.
    pub(crate) async fn launch(&self, provider: &str, shell: &Shell) -> Result<Provider, Failure> {
        let source = embedded::source(provider)?;
        let options = LaunchOptions { env: self.env.clone(), current_dir: None, notices: shell.notices() };
        Ok(Provider::launch(&source, options).await?)
    }

    /// Starts a provider and configures it.
    ///
    /// # Errors
    /// As [`Self::launch`], and what the provider refuses about its configuration.
    pub(crate) async fn open(&self, provider: &str, shell: &Shell) -> Result<Provider, Failure> {
        let running = self.launch(provider, shell).await?;
        let config = self.settings.resolve(&running.catalogue().config)?;
        configure(provider, &running, config).await?;
        Ok(running)
    }

    /// The same, for work in another folder.
    pub(crate) fn rooted_at(&self, folder: &Path) -> Self {
        let settings = Settings { roots: vec![folder.to_owned()], ..self.settings.clone() };
        let (session, env) = (self.session.clone(), self.env.clone());
        Self { settings, working_directory: folder.to_owned(), session, env }
    }

    /// Starts a provider and configures it with what it knows of the flags, which may be meant for others.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) async fn open_among_others(&self, provider: &str, shell: &Shell) -> Result<Provider, Failure> {
        let running = self.launch(provider, shell).await?;
        let attributes = &running.catalogue().config;
        configure(provider, &running, self.settings.restricted_to(attributes).resolve(attributes)?).await?;
        Ok(running)
    }

    /// Starts and configures several providers. Each takes from the flags what it knows; what none of them
    /// knows is refused.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) async fn open_all(
        &self,
        providers: &[String],
        shell: &Shell,
    ) -> Result<Vec<Provider>, Failure> {
        let mut running = Vec::with_capacity(providers.len());
        for provider in providers {
            running.push(self.launch(provider, shell).await?);
        }
        let known: Vec<Attribute> =
            running.iter().flat_map(|provider| provider.catalogue().config.clone()).collect();
        self.settings.check_known_to_any(&known)?;
        for (given, provider) in providers.iter().zip(&running) {
            let attributes = &provider.catalogue().config;
            configure(given, provider, self.settings.restricted_to(attributes).resolve(attributes)?).await?;
        }
        Ok(running)
    }

    /// Starts and configures those of the named providers that can be. Each takes from the flags what it knows; of the others
    /// a warning tells.
    ///
    /// # Errors
    /// A flag that none of them knows.
    pub(crate) async fn open_usable(
        &self,
        names: impl Iterator<Item = &str>,
        shell: &Shell,
    ) -> Result<Vec<Provider>, Failure> {
        let mut usable: Vec<Provider> = Vec::new();
        for name in names {
            match self.open_for_programs(name, None, &usable, shell).await {
                Ok(provider) => usable.push(provider),
                Err(failure) => shell.warning(&format!("without {name}: {}", failure.error.message)),
            }
        }
        let known: Vec<Attribute> =
            usable.iter().flat_map(|provider| provider.catalogue().config.clone()).collect();
        if let Err(unknown) = self.settings.check_known_to_any(&known) {
            for provider in &usable {
                provider.stop().await;
            }
            return Err(unknown.into());
        }
        Ok(usable)
    }

    /// Starts and configures the code provider, and the providers that its programs may call: those of the catalog, or
    /// those that its `providers` attribute names. What cannot be started or configured is left out, with a warning, unless
    /// it was named.
    ///
    /// # Errors
    /// As [`Self::open`], about the code provider; an attribute that no provider knows.
    pub(crate) async fn open_code(&self, host: &Host, shell: &Shell) -> Result<(Provider, Reach), Failure> {
        let code = self.launch(Code::NAME, shell).await?;
        let mut attributes = code.catalogue().config.clone();
        let mut config = self.settings.restricted_to(&attributes).resolve(&attributes)?;
        // This program starts them, not the provider.
        let wanted = config.remove("providers").unwrap_or_default();
        let configs = config.remove("provider_config").unwrap_or_default();
        let named = matches!(wanted, Value::Array(_));
        let wanted: Vec<String> = match wanted {
            Value::Array(names) => names.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => embedded::names().filter(|name| *name != Code::NAME).map(str::to_owned).collect(),
        };
        let mut others = Vec::new();
        for name in &wanted {
            let own = configs.get(name).and_then(Value::as_str);
            match self.open_for_programs(name, own, &others, shell).await {
                Ok(provider) => {
                    attributes.extend(provider.catalogue().config.clone());
                    others.push(provider);
                }
                Err(failure) if named => return Err(failure),
                Err(failure) => {
                    shell
                        .warning(&format!("programs cannot call tools of {name}: {}", failure.error.message));
                }
            }
        }
        self.settings.check_known_to_any(&attributes)?;
        configure(Code::NAME, &code, config.clone()).await?;
        Ok((code, Reach::new(host, others, config).map_err(Failure::usage)?))
    }

    async fn open_for_programs(
        &self,
        name: &str,
        own: Option<&str>,
        others: &[Provider],
        shell: &Shell,
    ) -> Result<Provider, Failure> {
        let provider = self.launch(name, shell).await?;
        let identity = &provider.identity().name;
        if identity == Code::NAME {
            return Err(Failure::wrong_usage(format!("providers: {name}: a program cannot run programs")));
        }
        if others.iter().any(|other| other.identity().name == *identity) {
            return Err(Failure::wrong_usage(format!("providers: {name}: {identity} is there already")));
        }
        let attributes = &provider.catalogue().config;
        let mut config = self.settings.restricted_to(attributes).resolve(attributes)?;
        if let Some(own) = own {
            config.extend(object(&format!("provider_config.{name}"), own)?);
        }
        configure(name, &provider, config).await?;
        Ok(provider)
    }

    /// A call under these flags.
    pub(crate) fn call(&self, tool: &str, arguments: Object, shared: &Shared) -> Call {
        let mut call = Call::new(tool, arguments, self.session.clone());
        call.working_directory.clone_from(&self.working_directory);
        call.timeout = shared.timeout;
        call
    }
}

/// Configures a provider; `given` is what it was called on the command line.
///
/// # Errors
/// What the provider refuses; the code provider by another name, whose programs would meet nobody's policy.
async fn configure(given: &str, provider: &Provider, config: Object) -> Result<(), Failure> {
    if provider.identity().name == Code::NAME && !is_code(given) {
        return Err(Failure::wrong_usage(format!(
            "{given} runs programs, which toolctl does itself, so that its policy and its questions hold for them"
        ))
        .hint(format!("name it `{}`", Code::NAME)));
    }
    provider.configure(config).await.map_err(|error| {
        let mut failure = Failure::provider(error.message.clone());
        failure.error = error;
        failure.hint(format!("toolctl describe {given} shows its configuration"))
    })
}

/// The host that the flags and the terminal make: `interactive` says whether stdin is free for answers.
///
/// # Errors
/// A usage error when `--answers` or `--policy` cannot be used.
pub(crate) fn host(shared: &Shared, shell: &Shell, interactive: bool) -> Result<Host, Failure> {
    let ask = interactive && shell.can_ask();
    let approver: Arc<dyn Approver> = match (shared.yes, ask) {
        (true, _) => Arc::new(ApproveAll),
        (false, true) => Arc::new(TerminalApproval::new(shell.clone())),
        (false, false) => Arc::new(DenyAll { hint: "pass --yes to approve it beforehand" }),
    };
    let answerer: Arc<dyn Answerer> = match (&shared.answers, ask) {
        (Some(path), _) => Arc::new(prepared_answers(path)?),
        (None, true) => Arc::new(TerminalAnswers::new(shell.clone())),
        (None, false) => Arc::new(NoAnswers { hint: "pass --answers FILE" }),
    };
    under_policy(Host::new(approver, answerer), shared)
}

/// The host under the policy that the flags name.
///
/// # Errors
/// A usage error when it cannot be used.
pub(crate) fn under_policy(host: Host, shared: &Shared) -> Result<Host, Failure> {
    Ok(match &shared.policy {
        Some(path) => host.under(policy(path)?),
        None => host,
    })
}

pub(crate) fn policy(path: &Path) -> Result<Policy, Failure> {
    let value = json("--policy", &read("--policy", path)?)?;
    Policy::from_json(value)
        .map_err(|error| Failure::wrong_usage(format!("--policy: {}: {error}", path.display())))
}

/// The answers that `--answers` names.
///
/// # Errors
/// A usage error when they cannot be used.
pub(crate) fn prepared_answers(path: &Path) -> Result<PreparedAnswers, Failure> {
    let text = read("--answers", path)?;
    let value = json("--answers", &text)?;
    PreparedAnswers::from_json(value)
        .ok_or_else(|| Failure::wrong_usage("--answers: wanted a JSON object, or a list of objects"))
}

/// The arguments of a call: `--args` below, assignments above.
///
/// # Errors
/// A usage error when they cannot be read.
pub(crate) fn arguments(
    tool: &tool_host::catalogue::Tool,
    args: Option<&str>,
    typed: &[String],
) -> Result<Object, Failure> {
    let mut arguments = match args {
        Some(text) => object("--args", &text_or_file("--args", text)?)?,
        None => Object::new(),
    };
    tool_host::assign::apply_to_arguments(&tool.input, &mut arguments, &assignments(typed)?)?;
    Ok(arguments)
}

/// `key=value`, `key:=JSON`, and `key@=FILE` for a text that is in a file.
fn assignments(typed: &[String]) -> Result<Vec<Assignment>, Failure> {
    let assignment = |text: &String| match text.split_once('=') {
        Some((key, path)) if key.ends_with('@') => {
            let key = key.trim_end_matches('@');
            let text = read(key, Path::new(path))?;
            Ok(Assignment { key: key.to_owned(), value: tool_host::assign::Given::Text(text) })
        }
        _ => Ok(text.parse::<Assignment>()?),
    };
    typed.iter().map(assignment).collect()
}

/// JSON itself, `@FILE`, or `-` for stdin.
fn text_or_file(flag: &str, text: &str) -> Result<String, Failure> {
    match text {
        "-" => read(flag, Path::new("-")),
        text => {
            text.strip_prefix('@').map_or_else(|| Ok(text.to_owned()), |path| read(flag, Path::new(path)))
        }
    }
}

fn read(what: &str, path: &Path) -> Result<String, Failure> {
    let text = if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(path)
    };
    text.map_err(|error| Failure::wrong_usage(format!("{what}: cannot read {}: {error}", path.display())))
}

fn json(what: &str, text: &str) -> Result<Value, Failure> {
    serde_json::from_str(text).map_err(|error| Failure::wrong_usage(format!("{what}: not JSON: {error}")))
}

fn object(what: &str, text: &str) -> Result<Object, Failure> {
    match json(what, text)? {
        Value::Object(object) => Ok(object),
        _ => Err(Failure::wrong_usage(format!("{what}: wanted a JSON object"))),
    }
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    // A shell expands `~`, but not in every place where one can be written.
    if let (Ok(below), Some(home)) = (path.strip_prefix("~"), std::env::home_dir()) {
        return Ok(home.join(below));
    }
    // The working directory as the system knows it, so that `.` is not an unresolved dot in every path.
    let absolute = if path == Path::new(".") { std::env::current_dir() } else { std::path::absolute(path) };
    absolute.map_err(|error| Failure::wrong_usage(format!("{}: {error}", path.display())))
}

pub(crate) fn variable(given: &str) -> Result<(String, String), Failure> {
    match given.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        Some(_) => Err(Failure::wrong_usage(format!("--env: {given:?} has no name"))),
        None => std::env::var(given)
            .map(|value| (given.to_owned(), value))
            .map_err(|_| Failure::wrong_usage(format!("--env: {given} is not set"))),
    }
}

/// One session per working directory, so that what one command reads the next one knows.
fn default_session(working_directory: &Path) -> String {
    // FNV-1a: the name must be the same tomorrow, which the standard hasher does not promise.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in working_directory.as_os_str().as_encoded_bytes() {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("cli-{hash:016x}")
}
