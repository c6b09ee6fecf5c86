//! A provider that has been launched for one scene.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use goplugin::host::{Launch, LaunchError, Running};
use harness_proto::common::v1::CallContext;
use harness_proto::tool::v1 as pb;
use pb::tool_service_client::ToolServiceClient;
use prost::Message;
use prost_types::Struct;
use provider_core::CONTRACT;
use tonic::transport::Channel;
use tonic::{Code, Response, Status};

use crate::judge::Judge;
use crate::kernel::{self, Conduct, Record};
use crate::processes::Processes;
use crate::secret::Canaries;
use crate::subject::Subject;
use crate::topics::invoke::SURVIVES;
use crate::transcript::{End, Transcript, shortened};
use crate::world::{MARK, World};

/// How long an RPC that must be quick may take on a busy machine. The kernel itself sets no limit.
pub(crate) const RPC_LIMIT: Duration = Duration::from_secs(20);

/// How long after a broken stream the end of the process may become known.
const DEATH_LIMIT: Duration = Duration::from_millis(500);

/// What the host of a scene is like.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stage {
    /// How it treats callbacks; `None` never tells the provider where they are.
    pub(crate) callbacks: Option<Conduct>,
    /// Whether the provider has no network.
    pub(crate) offline: bool,
    /// The protocol versions offered in place of the right ones.
    pub(crate) versions: Option<&'static [u32]>,
}

/// A launched provider and what it has shown.
pub(crate) struct Session {
    // Dropped before its world.
    pub(crate) running: Running,
    pub(crate) world: World,
    pub(crate) callbacks: Record,
    canaries: Canaries,
    seen: Arc<Mutex<Seen>>,
}

/// What the provider wrote.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// On its standard output after the handshake.
    pub(crate) stdout: Vec<u8>,
    /// On its standard error, line by line.
    pub(crate) stderr: Vec<String>,
}

/// An answer that is a status, or none at all.
#[derive(Clone, Debug)]
pub(crate) enum Refusal {
    /// The status.
    Status(Status),
    /// Nothing came in this time.
    Silence(Duration),
}

impl Refusal {
    /// The status' code, if there is one.
    pub(crate) fn code(&self) -> Option<Code> {
        match self {
            Self::Status(status) => Some(status.code()),
            Self::Silence(_) => None,
        }
    }

    /// The status' message; empty if nothing came.
    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Status(status) => status.message(),
            Self::Silence(_) => "",
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Status(status) => write!(f, "{:?}: {}", status.code(), shortened(status.message())),
            Self::Silence(limit) => write!(f, "no answer within {limit:?}"),
        }
    }
}

impl Session {
    /// Starts the provider in a world of its own.
    ///
    /// # Errors
    /// Why it does not start; `Err(None)` where the machine, not the provider, is the reason.
    pub(crate) async fn start(
        subject: &Subject,
        world: World,
        stage: &Stage,
        canaries: &Canaries,
    ) -> Result<Self, LaunchError> {
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let callbacks = Record::default();
        let routes = stage.callbacks.map(|conduct| kernel::routes(conduct, callbacks.clone()));
        let launch = launch(subject, &world, stage, &seen);
        let running = launch.start(routes).await?;
        Ok(Self { running, world, callbacks, canaries: canaries.clone(), seen })
    }

    /// The provider's service.
    pub(crate) fn client(&self) -> ToolServiceClient<Channel> {
        ToolServiceClient::new(self.running.channel())
            .max_decoding_message_size(usize::MAX)
            .max_encoding_message_size(usize::MAX)
    }

    /// What it wrote so far.
    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for an answer, and looks for secrets in it.
    pub(crate) async fn answer<T: Message>(
        &self,
        rpc: &str,
        answer: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, Refusal> {
        match tokio::time::timeout(RPC_LIMIT, answer).await {
            Ok(Ok(response)) => {
                let message = response.into_inner();
                self.canaries.look(&format!("the answer to {rpc}"), &message.encode_to_vec());
                Ok(message)
            }
            Ok(Err(status)) => {
                self.canaries.look(&format!("the refusal of {rpc}"), status.message().as_bytes());
                self.canaries.look(&format!("the details of the refusal of {rpc}"), status.details());
                Err(Refusal::Status(status))
            }
            Err(_) => Err(Refusal::Silence(RPC_LIMIT)),
        }
    }

    pub(crate) async fn describe(&self) -> Result<pb::DescribeResponse, Refusal> {
        self.answer("Describe", self.client().describe(pb::DescribeRequest {})).await
    }

    pub(crate) async fn schema(&self) -> Result<pb::GetSchemaResponse, Refusal> {
        self.answer("GetSchema", self.client().get_schema(pb::GetSchemaRequest {})).await
    }

    pub(crate) async fn configure(&self, config: Struct) -> Result<(), Refusal> {
        let request = pb::ConfigureRequest { config: Some(config) };
        self.answer("Configure", self.client().configure(request)).await.map(|_| ())
    }

    pub(crate) async fn preview(&self, call: pb::ToolCall) -> Result<pb::PreviewResponse, Refusal> {
        let rpc = format!("Preview of {}", call.tool_name);
        self.answer(&rpc, self.client().preview(pb::PreviewRequest { call: Some(call) })).await
    }

    pub(crate) async fn render(
        &self,
        payload: Vec<u8>,
        version: &str,
    ) -> Result<pb::RenderResponse, Refusal> {
        let request = pb::RenderRequest { payload: payload.into(), schema_version: version.to_owned() };
        self.answer("Render", self.client().render(request)).await
    }

    /// Makes a call and reads it to its end.
    pub(crate) async fn invoke(&self, call: pb::ToolCall, limit: Duration) -> Transcript {
        let name = call.tool_name.clone();
        let transcript = Transcript::of(self.client(), call, limit).await;
        self.look_through(&name, &transcript);
        if matches!(transcript.end, End::Status(_)) && transcript.first_terminal().is_none() {
            // A crash shows as a status first, and as an exit within moments.
            let _ = tokio::time::timeout(DEATH_LIMIT, self.running.exited()).await;
        }
        transcript
    }

    /// Looks for secrets in what a call sent.
    pub(crate) fn look_through(&self, tool: &str, transcript: &Transcript) {
        self.canaries.look(&format!("what {tool} sent"), &transcript.bytes());
    }

    /// Looks for secrets in what it wrote beside its answers.
    pub(crate) fn look_aside(&self) {
        let seen = self.seen();
        self.canaries.look_in_logs("its standard output", &seen.stdout);
        for line in &seen.stderr {
            self.canaries.look_in_logs("its standard error", line.as_bytes());
        }
        for callback in self.callbacks.callbacks() {
            self.canaries.look_in_logs(&format!("a request for {}", callback.rpc), &callback.message);
        }
    }

    /// The processes that there are because of it, none of them with a secret on its command line or with an
    /// environment that is not for it.
    pub(crate) fn processes(&self) -> std::io::Result<Processes> {
        let processes = Processes::of(self.running.pid(), self.world.path())?;
        for process in processes.iter() {
            self.canaries.look_in_command(&process.command);
        }
        for (program, marked) in processes.foreign() {
            self.canaries.look_in_environment(&program, marked);
        }
        Ok(processes)
    }

    /// Whether there is a secret to look for.
    pub(crate) fn has_secrets(&self) -> bool {
        !self.canaries.are_none()
    }

    /// Notes that a call has ended the process, and how.
    pub(crate) fn is_ended(&self, judge: &Judge, what: &str) {
        let exit = self.running.exit().map_or_else(String::new, |exit| format!(": it {exit}"));
        judge.fail(SURVIVES, format!("{what} ended it{exit}"));
    }

    /// Whether the process is there.
    pub(crate) fn is_alive(&self) -> bool {
        self.running.exit().is_none()
    }

    /// A call as the kernel makes it.
    pub(crate) fn call(&self, tool: &str, arguments: Option<Struct>, cwd: Option<&str>) -> pb::ToolCall {
        let root = self.world.root();
        let directory = cwd.map_or_else(|| root.clone(), |cwd| root.join(cwd));
        pb::ToolCall {
            id: ulid::Ulid::new().to_string(),
            tool_name: tool.to_owned(),
            arguments,
            call_context: Some(CallContext {
                session_id: SESSION.to_owned(),
                turn_id: "turn-1".to_owned(),
                working_directory: directory.to_string_lossy().into_owned(),
            }),
        }
    }
}

/// The session that every call belongs to.
pub(crate) const SESSION: &str = "01JCONFORMANCE000000000000";

fn launch(subject: &Subject, world: &World, stage: &Stage, seen: &Arc<Mutex<Seen>>) -> Launch {
    let mut contract = CONTRACT;
    if let Some(versions) = stage.versions {
        contract.app_versions = versions;
    }
    let (program, args) = match stage.offline {
        false => (subject.program.clone(), subject.args.clone()),
        true => offline(subject),
    };
    let (out, err) = (Arc::clone(seen), Arc::clone(seen));
    let mut launch = Launch::new(program, contract)
        .args(args)
        .inherit(["PATH"])
        .env("HOME", world.home())
        .env("TMPDIR", world.temporary())
        .env(MARK, world.mark())
        .current_dir(world.root())
        .handshake_timeout(RPC_LIMIT)
        .on_stdout(move |bytes| lock(&out).stdout.extend_from_slice(bytes))
        .on_stderr(move |line| lock(&err).stderr.push(line.to_owned()));
    for (name, value) in &subject.env {
        launch = launch.env(name, value);
    }
    launch
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The command that starts the provider in a network namespace of its own, where nothing can be reached. Sockets
/// in the file system work across it.
fn offline(subject: &Subject) -> (PathBuf, Vec<std::ffi::OsString>) {
    let mut args: Vec<std::ffi::OsString> = Vec::new();
    if !rustix::process::geteuid().is_root() {
        args.push("--map-root-user".into());
    }
    args.extend(["--net".into(), "--".into(), subject.program.clone().into()]);
    args.extend(subject.args.iter().cloned());
    (PathBuf::from("unshare"), args)
}
