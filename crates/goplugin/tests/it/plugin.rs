//! What a plugin does, seen by a host that is not ours.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use goplugin::Address;
use goplugin::wire::grpc_broker_client::GrpcBrokerClient;
use goplugin::wire::grpc_controller_client::GrpcControllerClient;
use goplugin::wire::grpc_stdio_client::GrpcStdioClient;
use goplugin::wire::{ConnInfo, Empty};
use rustix::process::Signal;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic_health::ServingStatus;

use crate::support::{Bare, connect, demo, health, is_alive, until, until_dead};

fn path(dir: &tempfile::TempDir) -> &str {
    dir.path().to_str().unwrap()
}

fn is_empty(dir: &Path) -> bool {
    std::fs::read_dir(dir).unwrap().next().is_none()
}

#[test]
fn handshake_line_has_six_fields_and_names_the_socket() {
    let dir = tempfile::tempdir().unwrap();
    let plugin = Bare::start(&[("PLUGIN_UNIX_SOCKET_DIR", path(&dir)), ("PLUGIN_PROTOCOL_VERSIONS", "1")]);
    let socket = std::fs::read_dir(dir.path()).unwrap().next().unwrap().unwrap().path();
    assert_eq!(plugin.line, format!("1|1|unix|{}|grpc|\n", socket.display()));
    assert_eq!(socket.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn multiplexing_is_declined_only_when_asked_for() {
    let plugin = Bare::start(&[("PLUGIN_MULTIPLEX_GRPC", "true")]);
    assert!(plugin.line.ends_with("|grpc||false\n"), "{}", plugin.line);
}

#[track_caller]
fn check_refused(command: &mut Command, expected: &str) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    assert_eq!(String::from_utf8_lossy(&output.stderr), expected);
}

#[test]
fn a_person_gets_one_line_and_code_one() {
    let by_hand = "this program is a plugin: it is started by its host and does nothing when run by hand \
                   (the host's DEMO_COOKIE is not set)\n";
    check_refused(demo(&[]).env_remove("DEMO_COOKIE"), by_hand);
    check_refused(demo(&[]).env("DEMO_COOKIE", "crumb"), by_hand);
}

#[test]
fn a_host_that_wants_tls_is_refused() {
    check_refused(
        &mut demo(&[("PLUGIN_CLIENT_CERT", "-----BEGIN CERTIFICATE-----")]),
        "the host asks for automatic mTLS (PLUGIN_CLIENT_CERT), which this plugin does not offer\n",
    );
}

#[test]
fn a_socket_folder_that_does_not_exist_is_an_error() {
    check_refused(
        &mut demo(&[("PLUGIN_UNIX_SOCKET_DIR", "/nonexistent/dir")]),
        "cannot listen in /nonexistent/dir: No such file or directory (os error 2)\n",
    );
}

#[test]
fn versions_are_negotiated() {
    let version = |variables: &[_]| Bare::start(variables).handshake().app_version;
    assert_eq!(version(&[("PLUGIN_PROTOCOL_VERSIONS", "1")]), 1);
    assert_eq!(version(&[("PLUGIN_PROTOCOL_VERSIONS", "1,2,3")]), 2);
    assert_eq!(version(&[("PLUGIN_PROTOCOL_VERSIONS", "9")]), 1);
    assert_eq!(version(&[]), 1);
}

#[tokio::test]
async fn nothing_but_the_handshake_reaches_stdout() {
    let mut plugin = Bare::start(&[("DEMO", "chatty"), ("PATH", "/usr/bin:/bin")]);
    // Ends while the plugin runs: nobody holds the pipe any more, the plugin's child included.
    assert_eq!(plugin.rest_of_stdout(), "");
    assert!(is_alive(plugin.child.id()));
    let stderr = until("the child has spoken", || {
        Some(plugin.stderr()).filter(|text| text.contains("SigIgn") && text.ends_with('\n'))
    });
    let stderr = stderr.await;
    assert!(stderr.contains("careless print\n") && stderr.contains("child\n"), "{stderr}");
    let ignored = stderr.split("SigIgn:").nth(1).unwrap().trim();
    let sigint = 1 << (Signal::INT.as_raw() - 1);
    assert_eq!(u64::from_str_radix(ignored, 16).unwrap() & sigint, 0, "the child can be interrupted");
}

#[test]
fn stdin_is_empty() {
    let plugin = Bare::start(&[]);
    let stdin = std::fs::read_link(format!("/proc/{}/fd/0", plugin.child.id())).unwrap();
    assert_eq!(stdin, Path::new("/dev/null"));
}

#[test]
fn the_temporary_folder_is_used_when_no_other_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let plugin = Bare::start(&[("TMPDIR", path(&dir))]);
    assert_eq!(plugin.socket().parent(), Some(dir.path()));
}

#[test]
fn a_folder_with_a_long_path_is_not_used() {
    let dir = tempfile::tempdir().unwrap();
    let long = dir.path().join("x".repeat(100));
    std::fs::create_dir(&long).unwrap();
    let long = long.to_str().unwrap();
    let plugin = Bare::start(&[("PLUGIN_UNIX_SOCKET_DIR", long), ("TMPDIR", path(&dir))]);
    assert_eq!(plugin.socket().parent(), Some(dir.path()));
    let plugin = Bare::start(&[("PLUGIN_UNIX_SOCKET_DIR", long), ("TMPDIR", long)]);
    let socket = plugin.socket();
    assert_eq!(socket.parent(), Some(Path::new("/tmp")));
    drop(plugin);
    std::fs::remove_file(socket).unwrap();
}

#[test]
fn the_socket_is_given_to_the_group_the_host_names() {
    let dir = tempfile::tempdir().unwrap();
    let group = rustix::process::getegid().as_raw().to_string();
    let variables = [("PLUGIN_UNIX_SOCKET_DIR", path(&dir)), ("PLUGIN_UNIX_SOCKET_GROUP", &group)];
    let plugin = Bare::start(&variables);
    assert_eq!(plugin.socket().metadata().unwrap().permissions().mode() & 0o777, 0o660);
    let mut command =
        demo(&[("PLUGIN_UNIX_SOCKET_DIR", path(&dir)), ("PLUGIN_UNIX_SOCKET_GROUP", "no such")]);
    let refused = command.output().unwrap();
    assert_eq!((refused.status.code(), refused.stdout.as_slice()), (Some(1), b"".as_slice()));
    drop(plugin);
    let left = std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(left, 1, "only the socket of the plugin that was killed is left");
}

#[test]
fn a_tcp_port_is_taken_from_the_hosts_range() {
    let variables = [("DEMO", "tcp"), ("PLUGIN_MIN_PORT", "20000"), ("PLUGIN_MAX_PORT", "25000")];
    let (one, two) = (Bare::start(&variables), Bare::start(&variables));
    let port = |plugin: &Bare| match plugin.handshake().address {
        Address::Tcp(address) if address.ip().is_loopback() => address.port(),
        other => panic!("no loopback address: {other}"),
    };
    assert!((20000..=25000).contains(&port(&one)));
    assert!((20000..=25000).contains(&port(&two)));
    assert_ne!(port(&one), port(&two));
}

#[tokio::test]
async fn health_is_told_for_the_plugin_and_the_whole_server() {
    let plugin = Bare::start(&[]);
    let channel = connect(&plugin.socket()).await;
    let serving = ServingStatus::Serving as i32;
    assert_eq!(health(channel.clone(), "plugin").await.unwrap(), serving);
    assert_eq!(health(channel.clone(), "").await.unwrap(), serving);
    assert_eq!(health(channel, "other").await.unwrap_err().code(), tonic::Code::NotFound);
}

#[tokio::test]
async fn other_services_are_unimplemented() {
    let plugin = Bare::start(&[]);
    let channel = connect(&plugin.socket()).await;
    let mut client = tonic::client::Grpc::new(channel);
    client.ready().await.unwrap();
    let path = http::uri::PathAndQuery::from_static("/other.Service/Call");
    let codec = tonic_prost::ProstCodec::<Empty, Empty>::default();
    let refused = client.unary(tonic::Request::new(Empty {}), path, codec).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::Unimplemented);
}

#[tokio::test]
async fn streams_open_at_once_and_shutdown_is_answered_before_the_exit() {
    let dir = tempfile::tempdir().unwrap();
    let mut plugin = Bare::start(&[("PLUGIN_UNIX_SOCKET_DIR", path(&dir))]);
    let channel = connect(&plugin.socket()).await;
    let stdio = GrpcStdioClient::new(channel.clone()).stream_stdio(()).await.unwrap();
    let (_sender, outgoing) = mpsc::unbounded_channel::<ConnInfo>();
    let outgoing = UnboundedReceiverStream::new(outgoing);
    let broker = GrpcBrokerClient::new(channel.clone()).start_stream(outgoing).await.unwrap();
    GrpcControllerClient::new(channel).shutdown(Empty {}).await.unwrap();
    assert_eq!(stdio.into_inner().message().await.unwrap(), None, "the stream ends in order");
    assert_eq!(broker.into_inner().message().await.unwrap(), None, "the stream ends in order");
    assert_eq!(plugin.exited().await.code(), Some(0));
    assert_eq!(plugin.stderr(), "stopping: Shutdown\n");
    assert!(is_empty(dir.path()));
}

#[tokio::test]
async fn sigterm_ends_the_plugin_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let mut plugin = Bare::start(&[("PLUGIN_UNIX_SOCKET_DIR", path(&dir))]);
    plugin.signal(Signal::TERM);
    assert_eq!(plugin.exited().await.code(), Some(0));
    assert_eq!(plugin.stderr(), "stopping: Terminated\n");
    assert!(is_empty(dir.path()));
}

#[tokio::test]
async fn sigint_is_survived() {
    let plugin = Bare::start(&[]);
    for _ in 0..3 {
        plugin.signal(Signal::INT);
        let channel = connect(&plugin.socket()).await;
        assert_eq!(health(channel, "plugin").await.unwrap(), ServingStatus::Serving as i32);
    }
}

#[tokio::test]
async fn a_host_that_closes_the_connection_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let mut plugin = Bare::start(&[("PLUGIN_UNIX_SOCKET_DIR", path(&dir))]);
    let channel = connect(&plugin.socket()).await;
    let (sender, outgoing) = mpsc::unbounded_channel::<ConnInfo>();
    let outgoing = UnboundedReceiverStream::new(outgoing);
    let stream = GrpcBrokerClient::new(channel.clone()).start_stream(outgoing).await.unwrap();
    drop((stream, sender, channel));
    assert_eq!(plugin.exited().await.code(), Some(0));
    assert_eq!(plugin.stderr(), "stopping: HostLost\n");
    assert!(is_empty(dir.path()));
}

#[tokio::test]
async fn a_host_that_closes_only_the_broker_stream_is_noticed() {
    let mut plugin = Bare::start(&[]);
    let channel = connect(&plugin.socket()).await;
    let stream = GrpcBrokerClient::new(channel.clone()).start_stream(tokio_stream::empty()).await.unwrap();
    assert_eq!(plugin.exited().await.code(), Some(0));
    assert_eq!(plugin.stderr(), "stopping: HostLost\n");
    drop((stream, channel));
}

#[tokio::test]
async fn a_host_that_is_killed_is_noticed_without_any_connection() {
    let dir = tempfile::tempdir().unwrap();
    let mut host = Command::new("/bin/sh");
    // The second command keeps the shell from becoming the plugin.
    host.args(["-c", "echo $$; \"$0\"; true", crate::support::DEMO])
        .env("DEMO_COOKIE", "crumbs")
        .env("PLUGIN_UNIX_SOCKET_DIR", dir.path());
    let mut host = Bare::spawn(&mut host);
    let mut line = String::new();
    std::io::BufRead::read_line(&mut host.stdout, &mut line).unwrap();
    let plugin = child_of(host.child.id());
    assert!(is_alive(plugin) && !is_empty(dir.path()), "{line}");
    host.signal(Signal::KILL);
    host.exited().await;
    until_dead(plugin).await;
    assert_eq!(host.stderr(), "stopping: HostLost\n");
    assert!(is_empty(dir.path()));
}

fn child_of(pid: u32) -> u32 {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    children.trim().parse().unwrap()
}

#[tokio::test]
async fn what_a_killed_predecessor_left_does_not_disturb() {
    let dir = tempfile::tempdir().unwrap();
    let variables = [("PLUGIN_UNIX_SOCKET_DIR", path(&dir))];
    let mut first = Bare::start(&variables);
    first.signal(Signal::KILL);
    first.exited().await;
    assert!(!is_empty(dir.path()), "the test is about a socket left behind");
    let second = Bare::start(&variables);
    let channel = connect(&second.socket()).await;
    assert_eq!(health(channel, "plugin").await.unwrap(), ServingStatus::Serving as i32);
}
