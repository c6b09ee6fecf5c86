//! The built provider as a process: its contract with a host, and what a kill leaves behind.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use goplugin::host::{Exit, Launch, Running};
use goplugin::{Address, Handshake};
use harness_proto::common::v1::CallContext;
use harness_proto::tool::v1 as pb;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pb::tool_service_client::ToolServiceClient;
use provider_core::CONTRACT;
use provider_core::jail::is_temp_name;
use provider_core::testing::{Outcome, event_to_json};
use provider_core::wire::value_to_struct;
use serde_json::{Value, json};
use tonic::transport::Channel;
use tonic::{Code, Status};

const PROVIDER: &str = env!("CARGO_BIN_EXE_provider-filesystem");

/// Not the state folder of whoever runs the tests.
pub(crate) const STATE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/state");

/// How long anything may take that should happen at all.
const PATIENCE: Duration = Duration::from_secs(120);

type Client = ToolServiceClient<Channel>;

/// A launched provider with a root of its own.
struct Launched {
    root: tempfile::TempDir,
    running: Running,
}

impl Launched {
    async fn new() -> Self {
        Self::with(Launch::new(PROVIDER, CONTRACT), tempfile::tempdir().unwrap()).await
    }

    async fn with(launch: Launch, root: tempfile::TempDir) -> Self {
        let running = launch.basic_env().start(None).await.unwrap();
        let launched = Self { root, running };
        configure(&launched.client(), launched.root.path()).await.unwrap();
        launched
    }

    fn client(&self) -> Client {
        client(&self.running)
    }

    fn put(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.root.path().join(name), bytes).unwrap();
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.root.path().join(name)).unwrap()
    }

    async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        let call = invoke(self.client(), call(self.root.path(), tool, arguments));
        tokio::time::timeout(PATIENCE, call).await.expect("the call hangs").unwrap()
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.root.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

fn client(running: &Running) -> Client {
    ToolServiceClient::new(running.channel())
        .max_decoding_message_size(usize::MAX)
        .max_encoding_message_size(usize::MAX)
}

async fn configure(client: &Client, root: &Path) -> Result<(), Status> {
    let config = Some(value_to_struct(json!({"allowed_roots": [root], "state_dir": STATE})));
    client.clone().configure(pb::ConfigureRequest { config }).await.map(drop)
}

fn call(directory: &Path, tool: &str, arguments: Value) -> pb::ToolCall {
    pb::ToolCall {
        id: format!("{tool}-{arguments}"),
        tool_name: tool.to_owned(),
        arguments: Some(value_to_struct(arguments)),
        call_context: Some(CallContext {
            session_id: "session-1".to_owned(),
            turn_id: "turn-1".to_owned(),
            working_directory: directory.to_str().unwrap().to_owned(),
        }),
    }
}

/// Makes a call and collects what it says, as far as it comes.
async fn invoke(mut client: Client, call: pb::ToolCall) -> Result<Outcome, Status> {
    let mut stream = client.invoke(pb::InvokeRequest { call: Some(call) }).await?.into_inner();
    let mut events = Vec::new();
    while let Some(message) = stream.message().await? {
        events.push(event_to_json(message.event.unwrap_or_default()));
    }
    Ok(Outcome { events })
}

/// The provider's command with an environment of nothing but `variables`.
fn provider(variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(PROVIDER);
    command.env_clear().envs(variables.iter().copied()).stdin(Stdio::null());
    command
}

#[tokio::test]
async fn a_directory_that_was_made_through_a_link_stays_when_the_next_provider_starts() {
    let provider = Launched::new().await;
    std::fs::create_dir(provider.root.path().join("target")).unwrap();
    std::os::unix::fs::symlink("target", provider.root.path().join("link")).unwrap();
    let created = provider.call("create_directory", json!({"path": "link/new"})).await;
    assert_eq!(created.payload()["created"], true);
    // What a process has noted of what it makes is looked at when it is gone.
    let Launched { root, running } = provider;
    running.stop().await;
    let next = Launched::with(Launch::new(PROVIDER, CONTRACT), root).await;
    assert!(next.root.path().join("target/new").is_dir());
}

#[test]
fn started_by_hand_it_says_so_in_one_line() {
    for variables in [&[][..], &[(CONTRACT.cookie_key, "wrong")]] {
        let output = provider(variables).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(output.stdout, b"");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
}

#[tokio::test]
async fn standard_output_carries_the_handshake_line_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let stdout = folder.path().join("stdout");
    let variables = [
        (CONTRACT.cookie_key, CONTRACT.cookie_value),
        ("PLUGIN_PROTOCOL_VERSIONS", "1"),
        ("PLUGIN_UNIX_SOCKET_DIR", folder.path().to_str().unwrap()),
    ];
    let mut child = provider(&variables)
        .stdout(std::fs::File::create(&stdout).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let started = Instant::now();
    while !std::fs::read_to_string(&stdout).unwrap().ends_with('\n') {
        assert!(started.elapsed() < PATIENCE, "no handshake");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let line = std::fs::read_to_string(&stdout).unwrap();
    assert!(line.starts_with("1|1|unix|/"), "{line}");
    assert!(line.contains("|grpc|"), "{line}");
    let handshake = Handshake::parse(line.trim_end()).unwrap();
    assert_eq!(handshake.app_version, 1);
    let Address::Unix(socket) = handshake.address else { panic!("{line}") };

    let endpoint = tonic::transport::Endpoint::from_shared(format!("unix://{}", socket.display())).unwrap();
    let client = ToolServiceClient::new(endpoint.connect().await.unwrap());
    configure(&client, folder.path()).await.unwrap();
    for tool in ["list_directory", "read_file", "unknown"] {
        invoke(client.clone(), call(folder.path(), tool, json!({"path": "."}))).await.unwrap();
    }
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGTERM).unwrap();
    let status = tokio::task::spawn_blocking(move || child.wait()).await.unwrap().unwrap();
    assert_eq!(status.code(), Some(0));
    assert_eq!(std::fs::read_to_string(&stdout).unwrap(), line);
    assert!(!socket.exists());
}

#[tokio::test]
async fn the_kernels_probes_are_answered() {
    let running = Launch::new(PROVIDER, CONTRACT).basic_env().start(None).await.unwrap();
    let mut client = client(&running);
    let producer = client.describe(pb::DescribeRequest {}).await.unwrap().into_inner().producer.unwrap();
    assert_eq!(
        (producer.name.as_str(), producer.version.as_str()),
        ("filesystem", env!("CARGO_PKG_VERSION"))
    );

    let before = client.get_schema(pb::GetSchemaRequest {}).await.unwrap().into_inner();
    let unconfigured = call(Path::new("/"), "read_file", json!({"path": "f"}));
    let outcome = invoke(client.clone(), unconfigured).await.unwrap();
    assert_eq!(outcome.events.len(), 1);
    assert_eq!(outcome.terminal()["event"], "error");

    let root = tempfile::tempdir().unwrap();
    configure(&client, root.path()).await.unwrap();
    assert_eq!(client.get_schema(pb::GetSchemaRequest {}).await.unwrap().into_inner(), before);

    let mut probe = async |tool: &str| {
        let call = pb::ToolCall { id: String::new(), tool_name: tool.to_owned(), ..Default::default() };
        client
            .preview(pb::PreviewRequest { call: Some(call) })
            .await
            .map(drop)
            .map_err(|status| status.code())
    };
    for tool in ["read_file", "list_directory", "file_info", "", "unknown"] {
        assert_eq!(probe(tool).await, Err(Code::Unimplemented), "{tool}");
    }
    for tool in ["write_file", "edit_file"] {
        assert_eq!(probe(tool).await, Err(Code::InvalidArgument), "{tool}");
    }
    assert_eq!(running.stop().await, Exit::Orderly);
}

#[tokio::test]
async fn a_service_that_it_does_not_have_is_unimplemented() {
    use harness_proto::slashcommand::v1 as slash;
    let launched = Launched::new().await;
    let mut foreign =
        slash::slash_command_service_client::SlashCommandServiceClient::new(launched.running.channel());
    let status = foreign.get_capabilities(slash::GetCapabilitiesRequest {}).await.unwrap_err();
    assert_eq!(status.code(), Code::Unimplemented);
    launched.put("f", "alive");
    assert_eq!(launched.call("read_file", json!({"path": "f"})).await.payload()["content"], "alive");
}

#[tokio::test]
async fn it_leaves_in_order_while_calls_are_running() {
    let launched = Launched::new().await;
    let content = "0123456789abcde\n".repeat(1 << 18);
    let calls = (0..20).map(|n| {
        let arguments = json!({"path": format!("f{n}"), "content": content});
        tokio::spawn(invoke(launched.client(), call(launched.root.path(), "write_file", arguments)))
    });
    let calls: Vec<_> = calls.collect();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let Launched { root, running } = launched;
    let started = Instant::now();
    assert_eq!(running.stop().await, Exit::Orderly);
    // The limit is two seconds; five times that is allowed on a machine that is busy with other tests.
    assert!(started.elapsed() < Duration::from_secs(10));
    join_all(calls).await;
    for entry in std::fs::read_dir(root.path()).unwrap() {
        let path = entry.unwrap().path();
        assert!(!is_temp_name(path.file_name().unwrap()), "{path:?}");
        assert!(std::fs::read(&path).unwrap() == content.as_bytes(), "{path:?} is cut");
    }
}

#[tokio::test]
async fn a_killed_provider_leaves_the_old_content_or_the_new() {
    let versions = ["old\n".repeat(1 << 20), "new version\n".repeat(1 << 20)];
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("f"), &versions[0]).unwrap();
    for delay in [2, 5, 10, 15, 20, 30, 45, 60, 90] {
        let running = Launch::new(PROVIDER, CONTRACT).basic_env().start(None).await.unwrap();
        let client = client(&running);
        configure(&client, root.path()).await.unwrap();
        let arguments = json!({"path": "f", "content": versions[1]});
        let writing = tokio::spawn(invoke(client, call(root.path(), "write_file", arguments)));
        tokio::time::sleep(Duration::from_millis(delay)).await;
        kill(Pid::from_raw(running.pid().try_into().unwrap()), Signal::SIGKILL).unwrap();
        let _ = writing.await.unwrap();
        running.exited().await;
        let found = std::fs::read(root.path().join("f")).unwrap();
        assert!(versions.iter().any(|version| version.as_bytes() == found), "{} bytes", found.len());
        let stray = |name: &std::ffi::OsStr| name != "f" && !is_temp_name(name);
        let mut entries = std::fs::read_dir(root.path()).unwrap();
        assert!(!entries.any(|entry| stray(&entry.unwrap().file_name())));
    }
    // What a killed writer left is removed by the next change in the same directory.
    let launched = Launched::with(Launch::new(PROVIDER, CONTRACT), root).await;
    launched.call("write_file", json!({"path": "f", "content": "after", "force": true})).await.payload();
    assert_eq!((launched.names(), launched.bytes("f")), (vec!["f".to_owned()], b"after".to_vec()));
}

#[tokio::test]
async fn two_processes_edit_one_file_and_all_edits_land() {
    let root = tempfile::tempdir().unwrap();
    let one = Launched::with(Launch::new(PROVIDER, CONTRACT), root).await;
    let other = Launch::new(PROVIDER, CONTRACT).basic_env().start(None).await.unwrap();
    let clients = [one.client(), client(&other)];
    configure(&clients[1], one.root.path()).await.unwrap();
    for round in 0..20 {
        one.put("f", (1..=100).map(|n| format!("<{n}>\n")).collect::<String>());
        let edits = (1..=22).map(|n| {
            let arguments =
                json!({"path": "f", "old_str": format!("<{n}>"), "new_str": "x".repeat(n), "force": true});
            invoke(clients[n % 2].clone(), call(one.root.path(), "edit_file", arguments))
        });
        for outcome in join_all(edits).await {
            outcome.unwrap().payload();
        }
        let line = |n| if n <= 22 { format!("{}\n", "x".repeat(n)) } else { format!("<{n}>\n") };
        let expected: String = (1..=100).map(line).collect();
        assert_eq!(String::from_utf8(one.bytes("f")).unwrap(), expected, "round {round}");
    }
    assert_eq!(one.names(), ["f"]);
}

#[tokio::test]
async fn launches_in_quick_succession_do_not_meet() {
    let folder = tempfile::tempdir().unwrap();
    let launch = || Launch::new(PROVIDER, CONTRACT).basic_env().start(None);
    let (one, other) = tokio::join!(launch(), launch());
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_ne!(one.handshake().address, other.handshake().address);
    for running in [&one, &other] {
        configure(&client(running), folder.path()).await.unwrap();
    }
    assert_eq!(one.stop().await, Exit::Orderly);
    let outcome = invoke(client(&other), call(folder.path(), "list_directory", json!({}))).await.unwrap();
    assert_eq!(outcome.payload()["total"], 0);
    assert_eq!(other.stop().await, Exit::Orderly);
}

#[tokio::test]
async fn a_host_without_callbacks_is_served() {
    let launched = Launched::new().await;
    launched.put("f", "a\n");
    launched.call("edit_file", json!({"path": "f", "old_str": "a", "new_str": "b"})).await.payload();
    assert_eq!(launched.bytes("f"), b"b\n");
    assert_eq!(launched.running.stop().await, Exit::Orderly);
}

#[tokio::test]
async fn a_callback_socket_that_is_dead_is_no_harm() {
    let root = tempfile::tempdir().unwrap();
    let callback = tonic::service::Routes::default();
    let running = Launch::new(PROVIDER, CONTRACT).basic_env().start(Some(callback)).await.unwrap();
    let Address::Unix(own) = running.handshake().address.clone() else { panic!("no unix socket") };
    for entry in std::fs::read_dir(own.parent().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        if path != own {
            std::fs::remove_file(path).unwrap();
        }
    }
    configure(&client(&running), root.path()).await.unwrap();
    let write = call(root.path(), "write_file", json!({"path": "f", "content": "x"}));
    tokio::time::timeout(PATIENCE, invoke(client(&running), write)).await.unwrap().unwrap().payload();
    assert_eq!(std::fs::read(root.path().join("f")).unwrap(), b"x");
    assert_eq!(running.stop().await, Exit::Orderly);
}

#[tokio::test]
async fn a_new_file_has_the_mode_that_the_umask_of_the_process_leaves() {
    use std::os::unix::fs::PermissionsExt;
    for (umask, mode) in [("002", 0o664), ("027", 0o640), ("077", 0o600)] {
        let script = format!("umask {umask}; exec \"$0\"");
        let launch = Launch::new("/bin/sh", CONTRACT).args(["-c", &script, PROVIDER]);
        let launched = Launched::with(launch, tempfile::tempdir().unwrap()).await;
        launched.call("write_file", json!({"path": "new", "content": ""})).await.payload();
        let found = launched.root.path().join("new").metadata().unwrap().permissions().mode() & 0o7777;
        assert_eq!(found, mode, "{found:o} under {umask}");
    }
}
