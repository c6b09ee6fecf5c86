//! The protocol's requests, answered.

use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientResult, ElicitRequest, ElicitRequestParams,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, Resource, ResourceContents, ServerCapabilities, ServerConfig,
    ServerRequest, SubscriptionFilter,
};
use rmcp::service::{
    NotificationContext, Peer, RequestContext, RoleServer, ServiceError, SubscriptionContext,
};
use rmcp::{ErrorData, ServerHandler};
use serde_json::json;

use super::questions::Reply;
use super::rounds::Resumed;
use super::{Begun, Bridge, View, declare, instructions};
use crate::execute;

/// Where a client that runs programs finds all tools, however many there are.
const TOOLS_URI: &str = "codemode://tools";

/// How often a client that may have gone without a word is looked for.
const LOOK_EVERY: Duration = Duration::from_secs(60);

impl ServerHandler for Bridge {
    fn get_info(&self) -> ServerConfig {
        let tools = ServerCapabilities::builder().enable_tools().enable_tool_list_changed();
        let (capabilities, text) = match self.0.view {
            View::Code { .. } => (tools.enable_resources().build(), instructions::code(&self.0.toolbox)),
            View::Separate { .. } => (tools.build(), instructions::separate(&self.0.toolbox)),
        };
        ServerConfig::new(capabilities).with_server_info(self.0.identity.clone()).with_instructions(text)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = match self.0.view {
            View::Code { .. } => vec![declare::program(&execute::declare(&self.0.toolbox))],
            View::Separate { structured } => declare::separate(&self.0.toolbox.shelf(), structured),
        };
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let work = match request.request_state {
            Some(state) => {
                let responses = request.input_responses.unwrap_or_default();
                match self.0.rounds.resume(&request.name, &state, responses)? {
                    Resumed::Goes(work) => *work,
                    Resumed::Waits(required) => return Ok(required.into()),
                }
            }
            None => {
                let arguments = request.arguments.unwrap_or_default();
                match self.begin(&request.name, arguments, can_ask(&context))? {
                    Begun::Works(work) => *work,
                    Begun::Refused(result) => return Ok(result.into()),
                }
            }
        };
        self.drive(work, &context).await
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let tools = Resource::new(TOOLS_URI, "tools")
            .with_title("Tools that programs can call")
            .with_description("Every tool with its description, the schema of its input and what it returns")
            .with_mime_type("text/plain");
        match self.0.view {
            View::Code { .. } => Ok(ListResourcesResult::with_all_items(vec![tools])),
            View::Separate { .. } => {
                Err(ErrorData::method_not_found::<rmcp::model::ListResourcesRequestMethod>())
            }
        }
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        if !matches!(self.0.view, View::Code { .. }) {
            return Err(ErrorData::method_not_found::<rmcp::model::ReadResourceRequestMethod>());
        }
        if request.uri != TOOLS_URI {
            let message = format!("there is no resource {}; there is {TOOLS_URI}", request.uri);
            return Err(ErrorData::resource_not_found(message, Some(json!({ "uri": request.uri }))));
        }
        let text = self.0.toolbox.shelf().catalogue.text(usize::MAX).text;
        let contents = ResourceContents::text(text, TOOLS_URI).with_mime_type("text/plain");
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let (bridge, peer) = (self.clone(), context.peer);
        tokio::spawn(async move {
            let mut changes = bridge.0.toolbox.changes();
            while !peer.is_transport_closed() {
                tokio::select! {
                    () = changes.next() => {}
                    () = bridge.0.closing.cancelled() => return,
                    // A look whether the client is still there.
                    () = tokio::time::sleep(LOOK_EVERY) => continue,
                }
                if peer.notify_tool_list_changed().await.is_err() {
                    return;
                }
            }
        });
    }

    fn accepted_subscription_filter(&self, _: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(SubscriptionFilter::builder().tools_list_changed().build())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.0.toolbox.changes();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                () = self.0.closing.cancelled() => return Ok(()),
                () = changes.next() => {}
            }
            if context.sink().notify_tool_list_changed().await.is_err() {
                return Ok(());
            }
        }
    }
}

/// Whether the client can be asked only between requests.
pub(super) fn is_stateless(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

/// Whether the client can show a form to a person. One that says nothing of modes shows forms.
fn can_ask(context: &RequestContext<RoleServer>) -> bool {
    let elicitation = context.client_capabilities().and_then(|capabilities| capabilities.elicitation);
    elicitation.is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
}

/// Puts a question to the client. Dropping the future leaves the question to the client.
pub(super) async fn elicit(
    peer: &Peer<RoleServer>,
    params: ElicitRequestParams,
) -> Result<Reply, ServiceError> {
    match peer.send_request(ServerRequest::ElicitRequest(ElicitRequest::new(params))).await? {
        ClientResult::ElicitResult(result) => Ok(result.into()),
        _ => Err(ServiceError::UnexpectedResponse),
    }
}
