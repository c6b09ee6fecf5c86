//! A provider that breaks the rules, one tool for each, and keeps those that the tests of a host need kept.
//!
//! `AWKWARD_CONTROL=1` adds the service that cancels calls; `AWKWARD_CATEGORY=model` lies about what it is.

mod schema;
mod tools;

use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;

use goplugin::plugin::Listening;
use harness_proto::common::v1::{Category, ProducerRef};
use harness_proto::control::v1::call_control_server::{CallControl, CallControlServer};
use harness_proto::control::v1::{CancelRequest, CancelResponse};
use harness_proto::render::v1 as render;
use harness_proto::tool::v1 as pb;
use pb::tool_service_server::{ToolService, ToolServiceServer};
use tokio_stream::Stream;
use tonic::service::Routes;
use tonic::{Request, Response, Status};

use crate::tools::State;

#[derive(Clone)]
struct Awkward(Arc<State>);

type Events = Pin<Box<dyn Stream<Item = Result<pb::InvokeResponse, Status>> + Send>>;

#[tonic::async_trait]
impl ToolService for Awkward {
    type InvokeStream = Events;

    async fn describe(
        &self,
        _: Request<pb::DescribeRequest>,
    ) -> Result<Response<pb::DescribeResponse>, Status> {
        let model = std::env::var("AWKWARD_CATEGORY").is_ok_and(|category| category == "model");
        let producer = ProducerRef {
            name: "awkward".into(),
            version: "0.1.0".into(),
            source: "github.com/pluggable-harness/awkward".into(),
            category: if model { Category::Model } else { Category::Tool }.into(),
            protocol_version: 1,
        };
        Ok(Response::new(pb::DescribeResponse { producer: Some(producer) }))
    }

    async fn get_schema(
        &self,
        _: Request<pb::GetSchemaRequest>,
    ) -> Result<Response<pb::GetSchemaResponse>, Status> {
        Ok(Response::new(schema::all()))
    }

    async fn configure(
        &self,
        request: Request<pb::ConfigureRequest>,
    ) -> Result<Response<pb::ConfigureResponse>, Status> {
        let config = request.into_inner().config.unwrap_or_default();
        if config.fields.contains_key("refuse") {
            return Err(Status::invalid_argument("this configuration is refused"));
        }
        Ok(Response::new(pb::ConfigureResponse {}))
    }

    async fn invoke(&self, request: Request<pb::InvokeRequest>) -> Result<Response<Events>, Status> {
        let call = request.into_inner().call.ok_or_else(|| Status::invalid_argument("no call"))?;
        tools::invoke(self.0.clone(), call).map(Response::new)
    }

    async fn render(
        &self,
        request: Request<pb::RenderRequest>,
    ) -> Result<Response<pb::RenderResponse>, Status> {
        let request = request.into_inner();
        let text = String::from_utf8_lossy(&request.payload);
        match text.contains("picture") {
            true => Ok(Response::new(pb::RenderResponse { tree: Some(tree("a picture\x1b[2J")) })),
            false => Err(Status::unimplemented("no picture")),
        }
    }

    async fn preview(
        &self,
        request: Request<pb::PreviewRequest>,
    ) -> Result<Response<pb::PreviewResponse>, Status> {
        let call = request.into_inner().call.unwrap_or_default();
        match call.tool_name.as_str() {
            "change" => {
                Ok(Response::new(pb::PreviewResponse { preview: Some(tree("would change the world")) }))
            }
            "fail_preview" => Err(Status::invalid_argument("there is nothing to preview")),
            _ => Err(Status::unimplemented("no preview")),
        }
    }
}

fn tree(text: &str) -> render::RenderTree {
    let text = render::TextNode { content: text.into(), style: None };
    let node = render::RenderNode { node: Some(render::render_node::Node::Text(text)) };
    render::RenderTree { root: Some(node) }
}

#[tonic::async_trait]
impl CallControl for Awkward {
    async fn cancel(&self, request: Request<CancelRequest>) -> Result<Response<CancelResponse>, Status> {
        let found = self.0.cancel(&request.into_inner().call_id);
        Ok(Response::new(CancelResponse { found }))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let listening = match Listening::bind(&provider_core::CONTRACT).await {
        Ok(listening) => listening,
        Err(error) => return error.report(),
    };
    let awkward = Awkward(Arc::new(State::new(listening.broker())));
    let mut routes = Routes::new(ToolServiceServer::new(awkward.clone()));
    if std::env::var_os("AWKWARD_CONTROL").is_some() {
        routes = routes.add_service(CallControlServer::new(awkward));
    }
    match listening.serve(routes, |_| async {}).await {
        Ok(_) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
