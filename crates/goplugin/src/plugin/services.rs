//! The contract's own services.

use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::watch;
use tokio_stream::Stream;
use tonic::service::Routes;
use tonic::{Request, Response, Status, Streaming};
use tonic_health::ServingStatus;

use super::lost::Links;
use super::{Broker, StopReason, Stopper};
use crate::wire::grpc_broker_server::{GrpcBroker, GrpcBrokerServer};
use crate::wire::grpc_controller_server::{GrpcController, GrpcControllerServer};
use crate::wire::grpc_stdio_server::{GrpcStdio, GrpcStdioServer};
use crate::wire::{ConnInfo, Empty, StdioData};

/// Lifts the limits on message sizes, which the Go library does not have either.
macro_rules! raised {
    ($service:expr) => {
        $service.max_decoding_message_size(usize::MAX).max_encoding_message_size(usize::MAX)
    };
}

/// The name under which the Go library asks for the plugin's health.
const HEALTH_NAME: &str = "plugin";

/// Becomes true when the plugin has stopped what it did.
pub(super) type Stopped = watch::Receiver<bool>;

/// Adds health, broker, controller and stdio to the plugin's own services.
pub(super) async fn add(
    services: Routes,
    broker: Broker,
    links: Links,
    stopper: Stopper,
    stopped: Stopped,
) -> Routes {
    // The reporter starts with the empty name, which stands for the whole server, as serving.
    let (reporter, health) = tonic_health::server::health_reporter();
    reporter.set_service_status(HEALTH_NAME, ServingStatus::Serving).await;
    let broker = BrokerService { broker, links, stopped: stopped.clone() };
    services
        .add_service(health)
        .add_service(raised!(GrpcBrokerServer::new(broker)))
        .add_service(raised!(GrpcControllerServer::new(Controller { stopper, stopped: stopped.clone() })))
        .add_service(raised!(GrpcStdioServer::new(Stdio { stopped })))
}

/// A stream without items that stays open until the plugin has stopped.
pub(super) struct HeldOpen<T> {
    stopped: Pin<Box<dyn Future<Output = ()> + Send>>,
    item: PhantomData<fn() -> T>,
}

impl<T> HeldOpen<T> {
    fn until(stopped: &Stopped) -> Response<Self> {
        let mut stopped = stopped.clone();
        let stopped = Box::pin(async move { wait(&mut stopped).await });
        Response::new(Self { stopped, item: PhantomData })
    }
}

impl<T> Stream for HeldOpen<T> {
    type Item = Result<T, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.stopped.as_mut().poll(context).map(|()| None)
    }
}

/// Waits for the plugin to have stopped; a lost sender means that it has.
pub(super) async fn wait(stopped: &mut Stopped) {
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

struct BrokerService {
    broker: Broker,
    links: Links,
    stopped: Stopped,
}

#[tonic::async_trait]
impl GrpcBroker for BrokerService {
    type StartStreamStream = HeldOpen<ConnInfo>;

    async fn start_stream(
        &self,
        request: Request<Streaming<ConnInfo>>,
    ) -> Result<Response<Self::StartStreamStream>, Status> {
        let mut messages = request.into_inner();
        let broker = self.broker.clone();
        let link = self.links.broker_stream();
        tokio::spawn(async move {
            while let Ok(Some(message)) = messages.message().await {
                broker.receive(&message);
            }
            drop(link);
        });
        Ok(HeldOpen::until(&self.stopped))
    }
}

struct Controller {
    stopper: Stopper,
    stopped: Stopped,
}

#[tonic::async_trait]
impl GrpcController for Controller {
    async fn shutdown(&self, _: Request<Empty>) -> Result<Response<Empty>, Status> {
        self.stopper.stop(StopReason::Shutdown);
        wait(&mut self.stopped.clone()).await;
        Ok(Response::new(Empty {}))
    }
}

struct Stdio {
    stopped: Stopped,
}

#[tonic::async_trait]
impl GrpcStdio for Stdio {
    type StreamStdioStream = HeldOpen<StdioData>;

    async fn stream_stdio(&self, _: Request<()>) -> Result<Response<Self::StreamStdioStream>, Status> {
        Ok(HeldOpen::until(&self.stopped))
    }
}
