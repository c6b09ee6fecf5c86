//! Calling back, with our host and with one that restarts its server.

use std::path::Path;

use goplugin::Address;
use goplugin::plugin::Broker;
use goplugin::wire::ConnInfo;
use goplugin::wire::grpc_broker_client::GrpcBrokerClient;
use tokio::net::UnixListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_stream::wrappers::{UnboundedReceiverStream, UnixListenerStream};
use tonic::transport::Server;
use tonic_health::ServingStatus;

use crate::support::{Bare, PATIENCE, callback, connect, health, launch, until};

#[tokio::test]
async fn the_plugin_calls_back() {
    let (launch, mut stderr) = launch("callback");
    let running = launch.start(Some(callback(ServingStatus::NotServing).await)).await.unwrap();
    assert_eq!(stderr.after("callback: ").await, "2");
    running.stop().await;
}

#[tokio::test]
async fn a_late_dial_is_as_good_as_an_early_one() {
    let (launch, mut stderr) = launch("late callback");
    let running = launch.start(Some(callback(ServingStatus::Serving).await)).await.unwrap();
    assert_eq!(stderr.after("callback").await, ": 1");
    running.stop().await;
}

#[tokio::test]
async fn announcing_again_changes_nothing() {
    let (launch, mut stderr) = launch("callback");
    let running = launch.start(Some(callback(ServingStatus::Serving).await)).await.unwrap();
    running.announce_callback();
    assert_eq!(stderr.after("callback").await, ": 1");
    running.announce_callback();
    assert_eq!(running.exit(), None);
    running.stop().await;
}

#[tokio::test]
async fn without_a_callback_the_dial_says_so() {
    let (launch, mut stderr) = launch("callback");
    let running = launch.start(None).await.unwrap();
    assert_eq!(stderr.after("callback").await, " failed: the host did not announce service 1 within 5s");
    running.stop().await;
}

/// A callback server on a socket of its own. It stops, and closes its connections, when told or when the
/// sender is dropped.
async fn serve(path: &Path, status: ServingStatus) -> (oneshot::Sender<()>, JoinHandle<()>) {
    let _ = std::fs::remove_file(path);
    let incoming = UnixListenerStream::new(UnixListener::bind(path).unwrap());
    let (sender, receiver) = oneshot::channel();
    let server = Server::builder()
        .add_routes(callback(status).await)
        .serve_with_incoming_shutdown(incoming, async move { receiver.await.unwrap_or_default() });
    (sender, tokio::spawn(async move { server.await.unwrap() }))
}

fn announcement(network: &str, address: &Path) -> ConnInfo {
    let address = address.to_str().unwrap().to_owned();
    ConnInfo { service_id: 1, network: network.to_owned(), address, knock: None }
}

#[tokio::test]
async fn a_callback_server_may_restart_and_move() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    let plugin = Bare::start(&[("DEMO", "callback")]);
    let says = |text: &'static str| {
        let plugin = &plugin;
        until(text, move || plugin.stderr().lines().last().filter(|last| last.starts_with(text)).map(|_| ()))
    };
    let (sender, outgoing) = mpsc::unbounded_channel();
    let channel = connect(&plugin.socket()).await;
    let outgoing = UnboundedReceiverStream::new(outgoing);
    let _stream = GrpcBrokerClient::new(channel).start_stream(outgoing).await.unwrap();

    sender.send(announcement("carrier pigeon", &first)).unwrap();
    says("callback failed: the host's announcement of service 1 is of no use").await;

    sender.send(announcement("unix", &first)).unwrap();
    says("callback failed: cannot connect").await;

    let (stop, stopped) = serve(&first, ServingStatus::Serving).await;
    says("callback: 1").await;

    drop(stop);
    stopped.await.unwrap();
    says("callback failed: cannot connect").await;

    let (stop, stopped) = serve(&first, ServingStatus::Serving).await;
    says("callback: 1").await;

    drop(stop);
    stopped.await.unwrap();
    sender.send(announcement("unix", &second)).unwrap();
    says("callback failed: cannot connect").await;

    let _running = serve(&second, ServingStatus::NotServing).await;
    says("callback: 2").await;
}

#[tokio::test]
async fn a_channel_in_hand_follows_the_service() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    let broker = Broker::new();
    broker.announce(7, Address::Unix(first.clone()));
    let (stop, stopped) = serve(&first, ServingStatus::Serving).await;
    let channel = broker.dial(7, PATIENCE).await.unwrap();
    assert_eq!(health(channel.clone(), "callback").await.unwrap(), ServingStatus::Serving as i32);

    drop(stop);
    stopped.await.unwrap();
    std::fs::remove_file(&first).unwrap();
    assert!(health(channel.clone(), "callback").await.is_err(), "nobody serves");

    broker.announce(7, Address::Unix(second.clone()));
    let _running = serve(&second, ServingStatus::NotServing).await;
    assert_eq!(health(channel, "callback").await.unwrap(), ServingStatus::NotServing as i32);
}

#[tokio::test]
async fn a_dial_waits_for_the_announcement() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("service");
    let broker = Broker::new();
    let early = tokio::spawn({
        let broker = broker.clone();
        async move { broker.dial(7, PATIENCE).await }
    });
    tokio::task::yield_now().await;
    let _running = serve(&path, ServingStatus::Serving).await;
    broker.announce(8, Address::Unix(dir.path().join("other")));
    assert!(!early.is_finished());
    broker.announce(7, Address::Unix(path));
    let channel = early.await.unwrap().unwrap();
    assert_eq!(health(channel, "callback").await.unwrap(), ServingStatus::Serving as i32);
}
