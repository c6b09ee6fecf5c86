//! The host's side of the callbacks: one that serves and writes down, one that refuses, one that never answers.
//!
//! A provider's callback requests are only observed here; what they must be is for the topics to say.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use http::{HeaderValue, Request, Response};
use prost::Message;
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::service::Routes;
use tower::Service;

/// How the host treats callbacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conduct {
    /// Answers what every kernel answers.
    Serve,
    /// Answers every RPC that it does not offer it.
    Refuse,
    /// Takes every request and never answers.
    Hang,
}

/// A request a provider made to the host.
#[derive(Clone, Debug)]
pub(crate) struct Callback {
    /// The RPC's bare name.
    pub(crate) rpc: String,
    /// The request's message, encoded.
    pub(crate) message: Bytes,
}

/// What a provider has asked its host for. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record(Arc<Mutex<Vec<Callback>>>);

impl Record {
    fn lock(&self) -> MutexGuard<'_, Vec<Callback>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything so far.
    pub(crate) fn callbacks(&self) -> Vec<Callback> {
        self.lock().clone()
    }
}

/// The services of a host with that conduct.
pub(crate) fn routes(conduct: Conduct, record: Record) -> Routes {
    Routes::new(Kernel { conduct, record })
}

/// `KernelCallbackService` without its types: requests are kept as they come, whatever their size.
#[derive(Clone)]
struct Kernel {
    conduct: Conduct,
    record: Record,
}

impl NamedService for Kernel {
    const NAME: &'static str = "pluggableharness.kernel.v1.KernelCallbackService";
}

impl Service<Request<Body>> for Kernel {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let kernel = self.clone();
        Box::pin(async move { Ok(kernel.answer(request).await) })
    }
}

/// Length of what precedes each message: a flag and the length.
const PREFIX: usize = 5;

impl Kernel {
    async fn answer(self, request: Request<Body>) -> Response<Body> {
        let rpc = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
        let body = read(request.into_body()).await;
        let message = body.slice(PREFIX.min(body.len())..);
        self.record.lock().push(Callback { rpc: rpc.clone(), message });
        match (self.conduct, rpc.as_str()) {
            (Conduct::Hang, _) => std::future::pending().await,
            (Conduct::Serve, "Log") => success(&harness_proto::kernel::v1::LogResult {}),
            (Conduct::Serve, "Emit") => {
                success(&harness_proto::kernel::v1::EmitResult { id: "event".to_owned(), sequence: 1 })
            }
            (Conduct::Serve, "GetTelemetryConfig") => {
                success(&harness_proto::kernel::v1::GetTelemetryConfigResult {
                    logs_enabled: true,
                    log_level: harness_proto::log::v1::LogLevel::Trace.into(),
                    ..Default::default()
                })
            }
            (Conduct::Serve, "GetConfig") => success(&harness_proto::kernel::v1::GetConfigResult::default()),
            (Conduct::Serve, "Publish") => {
                success(&harness_proto::kernel::v1::PublishResult { topic: "plugin.tool".to_owned() })
            }
            _ => tonic::Status::unimplemented("this host does not offer it").into_http(),
        }
    }
}

/// The whole body, as far as it comes.
async fn read(body: Body) -> Bytes {
    let mut pieces = http_body_util::BodyExt::into_data_stream(body);
    let mut out = BytesMut::new();
    while let Some(Ok(piece)) = pieces.next().await {
        out.extend_from_slice(&piece);
    }
    out.freeze()
}

fn success(message: &impl Message) -> Response<Body> {
    let encoded = message.encode_to_vec();
    let mut framed = BytesMut::with_capacity(PREFIX + encoded.len());
    framed.extend_from_slice(&[0]);
    framed.extend_from_slice(&u32::try_from(encoded.len()).unwrap_or_default().to_be_bytes());
    framed.extend_from_slice(&encoded);
    let mut trailers = http::HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    let frames = futures_util::stream::iter([
        Ok::<_, Infallible>(http_body::Frame::data(framed.freeze())),
        Ok(http_body::Frame::trailers(trailers)),
    ]);
    let mut response = Response::new(Body::new(http_body_util::StreamBody::new(frames)));
    response.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
    response
}
