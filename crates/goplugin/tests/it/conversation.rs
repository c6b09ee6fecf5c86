//! What our host says to a plugin, and in which order.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use goplugin::host::{Exit, Launch, Running};
use goplugin::wire::conn_info::Knock;
use goplugin::wire::grpc_broker_server::{GrpcBroker, GrpcBrokerServer};
use goplugin::wire::grpc_controller_server::{GrpcController, GrpcControllerServer};
use goplugin::wire::grpc_stdio_server::{GrpcStdio, GrpcStdioServer};
use goplugin::wire::stdio_data::Channel;
use goplugin::wire::{ConnInfo, Empty, StdioData};
use tokio::net::UnixListener;
use tokio_stream::wrappers::{ReceiverStream, UnixListenerStream};
use tonic::service::Routes;
use tonic::transport::Server;
use tonic::{Request, Response, Status, Streaming};
use tonic_health::ServingStatus;

use crate::support::{CONTRACT, callback, until};

/// A plugin whose process is a script and whose services run in the test, which notes what it is told.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    fn add(&self, note: String) {
        self.0.lock().unwrap().push(note);
    }

    async fn until(&self, count: usize) -> Vec<String> {
        let enough = || Some(self.0.lock().unwrap().clone()).filter(|notes| notes.len() >= count);
        until(&format!("{count} notes are taken"), enough).await
    }
}

/// Says `questions` and, as the Go library does, sends no headers before there is something to say.
struct Broker {
    notes: Notes,
    questions: Vec<ConnInfo>,
}

#[tonic::async_trait]
impl GrpcBroker for Broker {
    type StartStreamStream = ReceiverStream<Result<ConnInfo, Status>>;

    async fn start_stream(
        &self,
        request: Request<Streaming<ConnInfo>>,
    ) -> Result<Response<Self::StartStreamStream>, Status> {
        let notes = self.notes.clone();
        let mut messages = request.into_inner();
        let listening = async move {
            while let Ok(Some(ConnInfo { service_id, network, address, knock })) = messages.message().await {
                let name = address.rsplit('/').next().unwrap_or_default();
                let refusal = knock.map(|knock| knock.error).unwrap_or_default();
                notes.add(format!("told {service_id} {network} {name} {refusal}"));
            }
            notes.add("broker stream ended".to_owned());
        };
        if self.questions.is_empty() {
            listening.await;
            return Err(Status::cancelled("the stream has ended"));
        }
        tokio::spawn(listening);
        let (sender, receiver) = tokio::sync::mpsc::channel(8);
        for question in self.questions.clone() {
            sender.send(Ok(question)).await.unwrap();
        }
        tokio::spawn(async move { sender.closed().await });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }
}

struct Controller(Notes);

#[tonic::async_trait]
impl GrpcController for Controller {
    async fn shutdown(&self, _: Request<Empty>) -> Result<Response<Empty>, Status> {
        self.0.add("shutdown".to_owned());
        Err(Status::unavailable("many a plugin dies instead of answering"))
    }
}

struct Stdio;

#[tonic::async_trait]
impl GrpcStdio for Stdio {
    type StreamStdioStream = ReceiverStream<Result<StdioData, Status>>;

    async fn stream_stdio(&self, _: Request<()>) -> Result<Response<Self::StreamStdioStream>, Status> {
        let (sender, receiver) = tokio::sync::mpsc::channel(8);
        for text in ["two pie", "ces\n"] {
            let channel = Channel::Stderr.into();
            sender.send(Ok(StdioData { channel, data: text.into() })).await.unwrap();
        }
        Ok(Response::new(ReceiverStream::new(receiver)))
    }
}

/// Starts a script that points to the given services.
async fn start(services: Routes, dir: &tempfile::TempDir) -> Running {
    let path = dir.path().join("plugin");
    let incoming = UnixListenerStream::new(UnixListener::bind(&path).unwrap());
    tokio::spawn(Server::builder().add_routes(services).serve_with_incoming(incoming));
    let script = format!("echo '1|1|unix|{}|grpc'; exec sleep 1000", path.display());
    Launch::new("/bin/sh", CONTRACT)
        .args(["-c", &script])
        .basic_env()
        .stop_timeout(Duration::from_millis(300))
        .start(Some(callback(ServingStatus::Serving).await))
        .await
        .unwrap()
}

fn services(notes: &Notes, questions: Vec<ConnInfo>) -> Routes {
    Routes::new(GrpcBrokerServer::new(Broker { notes: notes.clone(), questions }))
        .add_service(GrpcControllerServer::new(Controller(notes.clone())))
}

#[tokio::test]
async fn the_callback_is_announced_and_the_stream_ends_before_shutdown() {
    let (dir, notes) = (tempfile::tempdir().unwrap(), Notes::default());
    let running = start(services(&notes, Vec::new()), &dir).await;
    assert_eq!(notes.until(1).await, ["told 1 unix callback "]);
    running.announce_callback();
    notes.until(2).await;
    assert_eq!(running.stop().await, Exit::Killed, "a script does not stop by itself");
    let said = ["told 1 unix callback ", "told 1 unix callback ", "broker stream ended", "shutdown"];
    assert_eq!(notes.until(4).await, said);
}

#[tokio::test]
async fn questions_are_answered() {
    let (dir, notes) = (tempfile::tempdir().unwrap(), Notes::default());
    let knock = Some(Knock { knock: true, ack: false, error: String::new() });
    let questions = vec![
        ConnInfo { service_id: 1, ..ConnInfo::default() },
        ConnInfo { service_id: 2, ..ConnInfo::default() },
        ConnInfo { service_id: 3, knock, ..ConnInfo::default() },
    ];
    let running = start(services(&notes, questions), &dir).await;
    let expected =
        ["told 1 unix callback ", "told 1 unix callback ", "told 3   the host does not multiplex the broker"];
    assert_eq!(notes.until(3).await, expected);
    running.stop().await;
}

#[tokio::test]
async fn what_comes_through_the_stdio_stream_counts_as_stderr() {
    let (dir, notes) = (tempfile::tempdir().unwrap(), Notes::default());
    let running = start(services(&notes, Vec::new()).add_service(GrpcStdioServer::new(Stdio)), &dir).await;
    until("the output has come", || (running.stderr_tail() == "two pieces\n").then_some(())).await;
    running.stop().await;
}
