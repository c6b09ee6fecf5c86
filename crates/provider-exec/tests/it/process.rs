//! The built provider as a process: what it tells nobody, and what outlives it.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use goplugin::host::{Launch, Running};
use harness_proto::common::v1::CallContext;
use harness_proto::tool::v1 as pb;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pb::tool_service_client::ToolServiceClient;
use provider_core::CONTRACT;
use provider_core::testing::{Outcome, event_to_json};
use provider_core::wire::value_to_struct;
use serde_json::{Value, json};
use tonic::Status;
use tonic::transport::Channel;

use crate::support::{mark, until, with_mark, within};

const PROVIDER: &str = env!("CARGO_BIN_EXE_provider-exec");

/// A launched provider with directories of its own.
struct Launched {
    folder: tempfile::TempDir,
    running: Running,
}

impl Launched {
    async fn new(config: Value) -> Self {
        Self::with(Launch::new(PROVIDER, CONTRACT), config).await
    }

    async fn with(launch: Launch, config: Value) -> Self {
        Self::after(launch.basic_env(), config).await
    }

    /// Launched with exactly this environment.
    async fn after(launch: Launch, config: Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut all = json!({ "root": folder.path(), "state_dir": folder.path().join("state") });
        all.as_object_mut().unwrap().extend(config.as_object().unwrap().clone());
        let running = launch.start(None).await.unwrap();
        let config = Some(value_to_struct(all));
        client(&running).configure(pb::ConfigureRequest { config }).await.unwrap();
        Self { folder, running }
    }

    async fn bash(&self, arguments: Value) -> Outcome {
        within(invoke(client(&self.running), call(self.folder.path(), "bash", arguments))).await.unwrap()
    }

    /// Begins a call that is not waited for.
    fn begin(&self, command: &str) {
        let call = call(self.folder.path(), "bash", json!({ "command": command }));
        tokio::spawn(invoke(client(&self.running), call));
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.running.pid()).unwrap())
    }
}

fn client(running: &Running) -> ToolServiceClient<Channel> {
    ToolServiceClient::new(running.channel()).max_decoding_message_size(usize::MAX)
}

fn call(directory: &Path, tool: &str, arguments: Value) -> pb::ToolCall {
    pb::ToolCall {
        id: format!("{tool}-{arguments}"),
        tool_name: tool.to_owned(),
        arguments: Some(value_to_struct(arguments)),
        call_context: Some(CallContext {
            session_id: "session-1".to_owned(),
            turn_id: "turn-1".to_owned(),
            working_directory: directory.canonicalize().unwrap().to_str().unwrap().to_owned(),
        }),
    }
}

async fn invoke(mut client: ToolServiceClient<Channel>, call: pb::ToolCall) -> Result<Outcome, Status> {
    let mut stream = client.invoke(pb::InvokeRequest { call: Some(call) }).await?.into_inner();
    let mut events = Vec::new();
    while let Some(message) = stream.message().await? {
        events.push(event_to_json(message.event.unwrap_or_default()));
    }
    Ok(Outcome { events })
}

/// Trees that try to outlive their provider.
fn nasty(mark: &str) -> Vec<String> {
    vec![
        format!("sleep {mark}"),
        format!("trap '' TERM INT HUP; sleep {mark}; true"),
        format!("setsid sleep {mark} & wait"),
        format!("(setsid sh -c 'trap \"\" TERM; sleep {mark}; true' &) ; sleep 1000"),
        format!("sleep {mark} | cat"),
    ]
}

#[tokio::test]
async fn nothing_survives_a_killed_provider() {
    let mark = mark();
    for command in nasty(&mark) {
        let launched = Launched::new(json!({})).await;
        launched.begin(&command);
        let sleeping = format!("sleep\0{mark}");
        until("the command does not run", || !with_mark(&sleeping).is_empty()).await;
        kill(launched.pid(), Signal::SIGKILL).unwrap();
        until(&format!("{command} goes on"), || with_mark(&mark).is_empty()).await;
    }
}

#[tokio::test]
async fn nothing_is_left_when_a_provider_has_shut_down() {
    let mark = mark();
    for command in nasty(&mark) {
        let launched = Launched::new(json!({})).await;
        launched.bash(json!({ "command": command, "background": true })).await.payload();
        let sleeping = format!("sleep\0{mark}");
        until("the command does not run", || !with_mark(&sleeping).is_empty()).await;
        let Launched { running, folder } = launched;
        within(running.stop()).await;
        assert_eq!(with_mark(&mark), Vec::<u32>::new(), "{command}");
        let left = std::fs::read_dir(folder.path().join("state/exec")).unwrap().count();
        assert_eq!(left, 0, "state is left");
    }
}

#[tokio::test]
async fn the_secrets_of_the_environment_are_nowhere() {
    const SECRETS: [(&str, &str); 3] = [
        ("X_API_KEY", "hushhush-one"),
        ("AWS_SECRET_ACCESS_KEY", "hushhush-two"),
        ("GH_TOKEN", "hushhush-three"),
    ];
    let launch =
        SECRETS.iter().fold(Launch::new(PROVIDER, CONTRACT), |launch, (name, value)| launch.env(name, value));
    let launched = Launched::with(launch, json!({})).await;
    let outcome = launched.bash(json!({ "command": "env; false" })).await;
    let all = format!("{:?}", outcome.events);
    assert!(!all.contains("hushhush"), "{all}");
    for (name, _) in SECRETS {
        assert!(all.contains(name), "{name} is not named: {all}");
    }
    launched.bash(json!({ "command": "sleep 1000", "background": true })).await.payload();
    let read = |path: String| String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned();
    for entry in std::fs::read_dir("/proc").unwrap().filter_map(Result::ok) {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        assert!(!read(format!("/proc/{pid}/cmdline")).contains("hushhush"), "{pid}");
        if pid != launched.pid().as_raw() {
            assert!(!read(format!("/proc/{pid}/environ")).contains("hushhush"), "{pid}");
        }
    }
}

#[tokio::test]
async fn memory_stays_small_whatever_is_printed() {
    let launched = Launched::new(json!({})).await;
    for command in ["yes", "cat /dev/zero", "head -c 300000000 /dev/urandom | base64 -w 0"] {
        let outcome = launched.bash(json!({ "command": command, "timeout_ms": 2_000 }));
        // The events are not kept here, so that the memory measured is the provider's own affair.
        outcome.await.payload();
        let status = std::fs::read_to_string(format!("/proc/{}/status", launched.pid())).unwrap();
        let peak = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap().to_owned();
        let kib: u64 = peak.split_whitespace().nth(1).unwrap().parse().unwrap();
        assert!(kib < 64 * 1024, "{command}: {peak}");
    }
}

#[tokio::test]
async fn a_killed_guard_is_told_and_leaves_nothing() {
    let mark = mark();
    let launched = Launched::new(json!({})).await;
    let killing = async {
        let sleeping = format!("sleep\0{mark}");
        until("the command does not run", || !with_mark(&sleeping).is_empty()).await;
        let shell = with_mark(&sleeping)[0];
        let stat = std::fs::read_to_string(format!("/proc/{shell}/stat")).unwrap();
        let guard: i32 = stat.rsplit(')').next().unwrap().split(' ').nth(2).unwrap().parse().unwrap();
        kill(Pid::from_raw(guard), Signal::SIGKILL).unwrap();
    };
    let command = format!("exec sleep {mark}");
    let (outcome, ()) = tokio::join!(launched.bash(json!({ "command": command })), killing);
    let payload = outcome.payload();
    assert_eq!(payload["status"], "killed", "{payload}");
    assert!(
        payload["summary"].as_str().unwrap().contains("the process that guarded it was killed"),
        "{payload}"
    );
    assert_eq!(with_mark(&mark), Vec::<u32>::new());
    assert_eq!(launched.bash(json!({ "command": "echo on" })).await.payload()["output"], "on\n");
}

/// The guard above the process whose command line has this in it.
fn guard_of(mark: &str) -> Option<Pid> {
    let mut pid = with_mark(mark).first().copied()?;
    loop {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        if stat.contains("(job-guard)") {
            return Some(Pid::from_raw(i32::try_from(pid).ok()?));
        }
        pid = stat.rsplit(')').next()?.split(' ').nth(2)?.parse().ok().filter(|parent| *parent > 1)?;
    }
}

#[tokio::test]
async fn what_outlives_a_provider_and_its_guard_is_ended_by_the_next_where_groups_can_be_made() {
    let can_group = provider_core::supervisor::control_group();
    let mark = mark();
    let launched = Launched::new(json!({})).await;
    launched.begin(&format!("setsid sleep {mark} & wait"));
    let sleeping = format!("sleep\0{mark}");
    until("the command does not run", || !with_mark(&sleeping).is_empty()).await;
    let guard = guard_of(&sleeping).unwrap();
    // A provider that is stopped cannot see to what its guard leaves, as if both had died at once.
    kill(launched.pid(), Signal::SIGSTOP).unwrap();
    kill(guard, Signal::SIGKILL).unwrap();
    kill(launched.pid(), Signal::SIGKILL).unwrap();
    let next = Launched::new(json!({})).await;
    assert_eq!(next.bash(json!({ "command": "echo on" })).await.payload()["output"], "on\n");
    if let Err(error) = can_group {
        // The known limit.
        eprintln!("no control group can be made here: {error}");
        with_mark(&sleeping).into_iter().for_each(|left| {
            kill(Pid::from_raw(i32::try_from(left).unwrap()), Signal::SIGKILL).unwrap();
        });
    }
    until("the process goes on", || with_mark(&sleeping).is_empty()).await;
}

/// A home whose login shell has a profile, and a program that only this profile makes known.
fn home(profile: &str) -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let bin = home.path().join(".local/bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::write(home.path().join(".bash_profile"), profile).unwrap();
    std::fs::write(bin.join("only-by-login"), "#!/bin/sh\necho found\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(bin.join("only-by-login"), mode).unwrap();
    home
}

#[tokio::test]
async fn the_path_of_the_login_shell_is_known_to_commands() {
    let launch = |home: &tempfile::TempDir| {
        let launch = Launch::new(PROVIDER, CONTRACT).basic_env();
        launch.env("SHELL", "/bin/bash").env("HOME", home.path())
    };
    let told = home("echo welcome; PATH=$HOME/.local/bin:$PATH; export PATH");
    let launched = Launched::after(launch(&told), json!({})).await;
    let outcome = launched.bash(json!({ "command": "only-by-login" })).await;
    assert_eq!(outcome.payload()["output"], "found\n", "{}", outcome.payload());
    // A profile that never ends is not waited for, and leaves nothing.
    let mark = mark();
    let stuck = home(&format!("sleep {mark}"));
    let launched = Launched::after(launch(&stuck), json!({})).await;
    let outcome = launched.bash(json!({ "command": "echo on; only-by-login" })).await;
    assert_eq!(outcome.payload()["stdout"], "on\n", "{}", outcome.payload());
    assert_eq!(outcome.payload()["exit_code"], 127);
    until("the profile goes on", || with_mark(&mark).is_empty()).await;
}

#[test]
fn a_guard_by_hand_ends_at_once() {
    let status = Command::new(PROVIDER).arg("__supervise").stdin(Stdio::null()).status().unwrap();
    assert!(status.code().is_some());
}

#[tokio::test]
async fn a_small_crate_builds_inside_the_default_sandbox() {
    let toolchain = ["CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"];
    let launch = Launch::new(PROVIDER, CONTRACT).inherit(toolchain);
    let launched = Launched::with(launch, json!({ "env_pass": toolchain })).await;
    let cargo = env!("CARGO");
    let command = format!(
        "{cargo} init --quiet --vcs none --name small . && {cargo} build --quiet --offline && ./target/debug/small"
    );
    let arguments = json!({ "command": command, "cwd": ".", "timeout_ms": 300_000 });
    let outcome = tokio::time::timeout(
        Duration::from_secs(320),
        invoke(client(&launched.running), call(launched.folder.path(), "bash", arguments)),
    );
    let outcome = outcome.await.unwrap().unwrap();
    let payload = outcome.payload();
    assert!(payload["output"].as_str().unwrap().ends_with("Hello, world!\n"), "{payload}");
    let sandbox = payload["sandbox"].as_str().unwrap();
    assert!(sandbox.starts_with("workspace_write"), "no sandbox holds here: {sandbox}");
    let outside = launched.bash(json!({ "command": "echo x > /var/tmp/outside-$$" })).await;
    assert_ne!(outside.payload()["exit_code"], 0, "{}", outside.payload());
}
