//! A provider's process, from launch to stop.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use goplugin::host::{Exit, Launch, Running};
use harness_proto::control::v1::call_control_client::CallControlClient;
use harness_proto::kernel::v1::kernel_callback_service_server::KernelCallbackServiceServer;
use harness_proto::render::v1::RenderTree;
use harness_proto::tool::v1 as pb;
use pb::tool_service_client::ToolServiceClient;
use provider_core::CONTRACT;
use tokio::time::timeout;
use tonic::service::Routes;
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::call::{Call, Invocation};
use crate::catalogue::{Catalogue, Identity};
use crate::event::{CallError, Category, Object};
use crate::invoke::invoke;
use crate::json::to_struct;
use crate::kernel::Kernel;
use crate::notice::{Notices, What};
use crate::schedule::Scheduler;
use crate::status::unary_error;

/// Describe, GetSchema and Configure must be quick; this is only to never wait for good.
const BRING_UP_LIMIT: Duration = Duration::from_secs(30);
/// Somebody waits for a preview or a rendering; the kernel gives them as long.
const VIEW_LIMIT: Duration = Duration::from_secs(5);
/// How long a plugin on the Go library remembers a callback it has not dialled, less a margin.
const ANNOUNCEMENT_LIFE: Duration = Duration::from_secs(4);
/// How long after a broken connection the death of the process may become known.
const DEATH_LIMIT: Duration = Duration::from_millis(500);
/// Variables besides `PATH`, `HOME` and `TMPDIR`: where state goes, how text is written, and what is left of the limits
/// on subagents, without which a subagent that starts providers could start subagents without end.
const INHERITED: [&str; 12] = [
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "USER",
    "RUST_BACKTRACE",
    "PLUGGABLEHARNESS_SUBAGENT_DEPTH",
    "PLUGGABLEHARNESS_SUBAGENT_LEVELS",
    "PLUGGABLEHARNESS_SUBAGENT_PLACES",
    "PLUGGABLEHARNESS_SUBAGENT_UNTIL",
];

/// Which program a provider is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderSource {
    /// A provider inside a program that runs it when its first argument is `__provider` and its second the name.
    Embedded {
        /// The program; usually the running one.
        program: PathBuf,
        /// The provider's name.
        name: String,
    },
    /// A program that is a provider, in whatever language.
    Path(PathBuf),
}

/// The first argument that turns a program into one of the providers inside it.
pub const EMBEDDED_ARGUMENT: &str = "__provider";

impl fmt::Display for ProviderSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Embedded { name, .. } => f.write_str(name),
            Self::Path(path) => write!(f, "{}", path.display()),
        }
    }
}

/// How a provider is launched.
#[derive(Clone, Debug)]
pub struct LaunchOptions {
    /// Variables to set beyond the few that every provider gets.
    pub env: Vec<(String, String)>,
    /// Where the process runs; otherwise where the host does.
    pub current_dir: Option<PathBuf>,
    /// Receives what happens beside the calls.
    pub notices: Notices,
}

impl Default for LaunchOptions {
    fn default() -> Self {
        Self { env: Vec::new(), current_dir: None, notices: Notices::ignored() }
    }
}

/// Why a provider cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// It could not be started or does not speak the plugin protocol.
    #[error("{provider} cannot be started: {source}")]
    Start {
        /// Which provider.
        provider: String,
        /// Why.
        #[source]
        source: Box<goplugin::host::LaunchError>,
    },
    /// It started, but did not answer one of the first questions.
    #[error("{provider} does not answer {rpc}: {reason}")]
    Silent {
        /// Which provider.
        provider: String,
        /// Which question.
        rpc: &'static str,
        /// What came instead.
        reason: String,
    },
    /// It is a plugin of another category.
    #[error("{provider} is no tool provider but serves the category {category}")]
    Category {
        /// Which provider.
        provider: String,
        /// What it serves.
        category: String,
    },
}

/// A provider that runs and has said who it is. Clones share the process.
#[derive(Clone)]
pub struct Provider(Arc<Inner>);

struct Inner {
    identity: Identity,
    catalogue: Catalogue,
    raw_schema: pb::GetSchemaResponse,
    channel: Channel,
    kernel: Kernel,
    notices: Notices,
    scheduler: Scheduler,
    /// When the process was last told where the callback is.
    announced: Mutex<Instant>,
    /// `None` once stopped.
    running: Mutex<Option<Running>>,
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider").field("identity", &self.0.identity).finish_non_exhaustive()
    }
}

impl Provider {
    /// Starts the process and asks it who it is and what it offers. It is not configured yet.
    ///
    /// # Errors
    /// Where it cannot be started, does not answer, or is no tool provider.
    pub async fn launch(source: &ProviderSource, options: LaunchOptions) -> Result<Self, LaunchError> {
        let LaunchOptions { env, current_dir, notices } = options;
        let label = source.to_string();
        let launch = match source {
            ProviderSource::Embedded { program, name } => {
                Launch::new(program, CONTRACT).args([EMBEDDED_ARGUMENT, name])
            }
            ProviderSource::Path(path) => Launch::new(path, CONTRACT),
        };
        let stderr = {
            let (notices, label) = (notices.clone(), label.clone());
            move |line: &str| notices.send(&label, What::Stderr(line.to_owned()))
        };
        let mut launch = launch.basic_env().inherit(INHERITED).on_stderr(stderr);
        for (name, value) in env {
            launch = launch.env(name, value);
        }
        if let Some(dir) = current_dir {
            launch = launch.current_dir(dir);
        }
        let kernel = Kernel::new(&label, notices.clone());
        let callback = Routes::new(
            KernelCallbackServiceServer::new(kernel.clone()).max_decoding_message_size(usize::MAX),
        );
        let running = launch
            .start(Some(callback))
            .await
            .map_err(|source| LaunchError::Start { provider: label.clone(), source: Box::new(source) })?;
        Self::introduce(label, running, kernel, notices).await
    }

    async fn introduce(
        label: String,
        running: Running,
        kernel: Kernel,
        notices: Notices,
    ) -> Result<Self, LaunchError> {
        let channel = running.channel();
        let mut client = tool_client(channel.clone());
        let silent = |rpc, reason| LaunchError::Silent { provider: label.clone(), rpc, reason };
        let described = answer(client.describe(pb::DescribeRequest {}))
            .await
            .map_err(|reason| silent("Describe", reason))?;
        let producer =
            described.producer.ok_or_else(|| silent("Describe", "it names no producer".to_owned()))?;
        let identity = Identity::from(producer);
        if identity.category != "tool" {
            return Err(LaunchError::Category { provider: label, category: identity.category });
        }
        let schema = answer(client.get_schema(pb::GetSchemaRequest {}))
            .await
            .map_err(|reason| silent("GetSchema", reason))?;
        kernel.identify(&identity.name);
        let catalogue = Catalogue::from(schema.clone());
        let provider = Self(Arc::new(Inner {
            identity,
            catalogue,
            raw_schema: schema,
            channel,
            kernel,
            notices,
            scheduler: Scheduler::default(),
            announced: Mutex::new(Instant::now()),
            running: Mutex::new(Some(running)),
        }));
        for warning in &provider.0.catalogue.warnings {
            provider.notice(What::Warning(warning.clone()));
        }
        Ok(provider)
    }

    /// Who it is.
    pub fn identity(&self) -> &Identity {
        &self.0.identity
    }

    /// Whether both are one process.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// What it offers.
    pub fn catalogue(&self) -> &Catalogue {
        &self.0.catalogue
    }

    /// The answer to GetSchema as it came.
    pub fn raw_schema(&self) -> &pb::GetSchemaResponse {
        &self.0.raw_schema
    }

    /// Which of its calls may run at the same time.
    pub fn scheduler(&self) -> &Scheduler {
        &self.0.scheduler
    }

    /// The connection to the process, for what this type does not offer.
    pub fn channel(&self) -> Channel {
        self.0.channel.clone()
    }

    /// The process id, while it has not been stopped.
    pub fn pid(&self) -> Option<u32> {
        self.running().as_ref().map(Running::pid)
    }

    /// Configures it. Done once in the life of a process.
    ///
    /// # Errors
    /// What the provider refuses.
    pub async fn configure(&self, config: Object) -> Result<(), CallError> {
        let config = to_struct(config);
        self.0.kernel.configured(config.clone());
        let request = pb::ConfigureRequest { config: Some(config) };
        match timeout(BRING_UP_LIMIT, self.tool_client().configure(request)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(status)) => Err(self.unary(&status).await),
            Err(_) => Err(too_slow("Configure", BRING_UP_LIMIT)),
        }
    }

    /// What the call would do; `None` where the tool cannot say.
    ///
    /// # Errors
    /// Why the call would fail.
    pub async fn preview(&self, call: &Call) -> Result<Option<RenderTree>, CallError> {
        let request = pb::PreviewRequest { call: Some(call.to_wire()) };
        match timeout(VIEW_LIMIT, self.tool_client().preview(request)).await {
            Ok(Ok(response)) => Ok(response.into_inner().preview),
            Ok(Err(status)) if status.code() == Code::Unimplemented => Ok(None),
            Ok(Err(status)) => Err(self.unary(&status).await),
            Err(_) => Err(too_slow("Preview", VIEW_LIMIT)),
        }
    }

    /// The result's payload as a tree; `None` where the provider has no picture of it.
    ///
    /// # Errors
    /// Why it cannot be shown.
    pub async fn render(&self, payload: &Object) -> Result<Option<RenderTree>, CallError> {
        let payload = serde_json::to_vec(payload).map_err(|error| {
            CallError::new(Category::Unknown, format!("the payload cannot be written: {error}"))
        })?;
        let request = pb::RenderRequest { payload: payload.into(), schema_version: "1".to_owned() };
        match timeout(VIEW_LIMIT, self.tool_client().render(request)).await {
            Ok(Ok(response)) => Ok(response.into_inner().tree),
            Ok(Err(status)) if status.code() == Code::Unimplemented => Ok(None),
            Ok(Err(status)) => Err(self.unary(&status).await),
            Err(_) => Err(too_slow("Render", VIEW_LIMIT)),
        }
    }

    /// Makes the call at once: without approval, without waiting for others. See [`crate::Host::call`] for
    /// the way the kernel makes it.
    pub fn invoke(&self, call: Call) -> Invocation {
        let provider = self.clone();
        Invocation::spawn(|line| async move {
            let tool = provider.tool(&call.tool)?;
            provider.open_session(&call);
            invoke(&provider, tool, &call, &line).await
        })
    }

    /// The tool of that name.
    ///
    /// # Errors
    /// `not_found`, naming the nearest.
    pub fn tool(&self, name: &str) -> Result<&crate::catalogue::Tool, CallError> {
        self.0.catalogue.tool(name).ok_or_else(|| {
            let names = self.0.catalogue.tools.iter().map(|tool| tool.name.as_str());
            let hint = crate::nearest(name, names.clone()).map_or_else(
                || format!("it has {}", names.collect::<Vec<_>>().join(", ")),
                |nearest| format!("did you mean {nearest}?"),
            );
            CallError::new(Category::NotFound, format!("{} has no tool {name}; {hint}", self.0.identity.name))
        })
    }

    /// Ends the process in order. Later calls fail.
    pub async fn stop(&self) -> Option<Exit> {
        let running = self.running().take();
        match running {
            Some(running) => Some(running.stop().await),
            None => None,
        }
    }

    /// Ends the process at once.
    pub fn kill(&self) {
        drop(self.running().take());
    }

    /// Makes the process ready for the call: grants it the session, and tells it again where the callback is
    /// if the last time is so long ago that a plugin on the Go library may have forgotten.
    pub(crate) fn open_session(&self, call: &Call) {
        self.0.kernel.open_session(&call.session, &call.working_directory.to_string_lossy());
        let mut announced = self.0.announced.lock().unwrap_or_else(PoisonError::into_inner);
        if announced.elapsed() >= ANNOUNCEMENT_LIFE {
            *announced = Instant::now();
            if let Some(running) = &*self.running() {
                running.announce_callback();
            }
        }
    }

    pub(crate) fn notice(&self, what: What) {
        self.0.notices.send(&self.0.identity.name, what);
    }

    pub(crate) fn tool_client(&self) -> ToolServiceClient<Channel> {
        tool_client(self.0.channel.clone())
    }

    pub(crate) fn control_client(&self) -> CallControlClient<Channel> {
        CallControlClient::new(self.0.channel.clone())
    }

    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        self.0.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What to say of a process that has died, if that is why the status came. A broken connection is waited
    /// for; a status that the provider sent shows that it lived.
    pub(crate) async fn death(&self, status: Option<&Status>) -> Option<CallError> {
        let broken = status.is_some_and(|status| std::error::Error::source(status).is_some());
        let limit = if broken { DEATH_LIMIT } else { Duration::ZERO };
        let exited = self.running().as_ref().map(Running::exited);
        let name = &self.0.identity.name;
        let Some(exited) = exited else {
            return Some(CallError::new(Category::ProcessCrashed, format!("{name} has been stopped")));
        };
        let exit = timeout(limit, exited).await.ok()?;
        let tail = self.running().as_ref().map(Running::stderr_tail).unwrap_or_default();
        let mut error = CallError::new(Category::ProcessCrashed, format!("the process of {name} {exit}"));
        if !tail.trim().is_empty() {
            error = error.with("stderr", tail.trim_end());
        }
        Some(error)
    }

    async fn unary(&self, status: &Status) -> CallError {
        self.death(Some(status)).await.unwrap_or_else(|| unary_error(status))
    }
}

fn tool_client(channel: Channel) -> ToolServiceClient<Channel> {
    ToolServiceClient::new(channel).max_decoding_message_size(usize::MAX)
}

async fn answer<T>(rpc: impl Future<Output = Result<tonic::Response<T>, Status>>) -> Result<T, String> {
    match timeout(BRING_UP_LIMIT, rpc).await {
        Ok(Ok(response)) => Ok(response.into_inner()),
        Ok(Err(status)) => Err(format!("{:?}: {}", status.code(), status.message())),
        Err(_) => Err(format!("no answer within {BRING_UP_LIMIT:?}")),
    }
}

fn too_slow(rpc: &str, limit: Duration) -> CallError {
    CallError::new(Category::Timeout, format!("{rpc} did not answer within {limit:?}"))
}
