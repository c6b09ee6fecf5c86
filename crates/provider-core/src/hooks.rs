//! Hook subscriptions: a provider may watch the agent loop, veto calls and add to what the model is sent.

use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use harness_proto::common::v1::HookPoint as WirePoint;
use harness_proto::content::v1 as content;
use harness_proto::hook::v1 as pb;
use harness_proto::tool::v1 as tool;
use pb::hook_payload::Payload;
use serde_json::Value;

use crate::tool::Provider;
use crate::wire::struct_to_value;

/// A point of the agent loop that can be observed.
///
/// ```
/// use provider_core::prelude::*;
/// use provider_core::{HookPoint, Hooks};
///
/// fn hooks<P: Provider>(hooks: &mut Hooks<P>) {
///     hooks.observe(HookPoint::PostApply, |_, event| async move { tracing::info!("{event:?}") });
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookPoint {
    /// A session begins.
    SessionStart,
    /// The model is about to be asked.
    PreModelCall,
    /// The model has answered.
    PostModelResponse,
    /// A tool is about to be called.
    PreToolCall,
    /// A plan of mutating calls is ready.
    PlanReady,
    /// A tool has been called.
    PostToolCall,
    /// A plan has been carried out.
    PostApply,
    /// A session ends.
    SessionEnd,
}

/// A point at which a subscriber may refuse what is about to happen.
///
/// ```
/// use provider_core::prelude::*;
/// use provider_core::{Hooks, Verdict, VetoPoint};
///
/// /// Lets no plan pass, for a provider that is to watch an agent plan and nothing else.
/// fn hooks<P: Provider>(hooks: &mut Hooks<P>) {
///     hooks.veto(VetoPoint::PlanReady, |_, _| async { Verdict::Deny });
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VetoPoint {
    /// A tool is about to be called.
    PreToolCall,
    /// A plan of mutating calls is ready.
    PlanReady,
}

/// What a subscriber decides.
///
/// ```
/// use provider_core::{HookedCall, Verdict};
///
/// fn judge(call: &HookedCall) -> Verdict {
///     if call.arguments["path"] == "/etc/passwd" { Verdict::Deny } else { Verdict::Allow }
/// }
/// # let _ = judge;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Go on.
    Allow,
    /// Refuse.
    Deny,
}

/// A call that a hook is told about.
///
/// ```
/// use provider_core::HookedCall;
/// use serde_json::json;
///
/// let call = HookedCall {
///     id: "call-1".to_owned(),
///     tool: "bash".to_owned(),
///     arguments: json!({"command": "rm -rf build"}),
///     session_id: "session-1".to_owned(),
/// };
/// // The arguments are as the model sent them, so nothing in them has a sure type.
/// assert!(call.arguments["command"].as_str().is_some_and(|command| command.starts_with("rm ")));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct HookedCall {
    /// The call's id.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// The arguments as the model sent them.
    pub arguments: Value,
    /// The session. Empty when the kernel named none.
    pub session_id: String,
}

/// What a hook is told.
///
/// ```
/// use provider_core::HookEvent;
///
/// fn line(event: &HookEvent) -> Option<String> {
///     match event {
///         HookEvent::PostToolCall(call, Ok(_)) => Some(format!("{} worked", call.tool)),
///         HookEvent::PostToolCall(call, Err(message)) => Some(format!("{} failed: {message}", call.tool)),
///         _ => None,
///     }
/// }
/// # let _ = line;
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum HookEvent {
    /// A session begins.
    SessionStart {
        /// The session.
        session_id: String,
        /// The agent profile's name.
        profile: String,
        /// Where the session works.
        working_directory: String,
    },
    /// The model is about to be asked; the texts of the messages.
    PreModelCall(Vec<String>),
    /// The model has answered; the text.
    PostModelResponse(String),
    /// A tool is about to be called.
    PreToolCall(HookedCall),
    /// A plan is ready; its calls.
    PlanReady(Vec<HookedCall>),
    /// A tool has been called; its result, or the message of its error.
    PostToolCall(HookedCall, Result<Value, String>),
    /// A plan has been carried out; the ids of its calls.
    PostApply(Vec<String>),
    /// A session ends.
    SessionEnd {
        /// The session.
        session_id: String,
    },
}

/// The messages of a model call. A subscriber may add to them; what is there stays as it is.
///
/// ```
/// use provider_core::ModelCall;
///
/// /// Reminds the model where it has been asked about tests.
/// fn remind(mut call: ModelCall) -> ModelCall {
///     if call.texts().iter().any(|text| text.contains("test")) {
///         call.push_user_text("Tests are run with `cargo test`.");
///     }
///     call
/// }
/// # let _ = remind;
/// ```
#[derive(Debug)]
pub struct ModelCall {
    messages: Vec<content::Message>,
}

impl ModelCall {
    /// The texts of the messages.
    pub fn texts(&self) -> Vec<String> {
        self.messages.iter().map(message_text).collect()
    }

    /// Adds a message in the user's role.
    pub fn push_user_text(&mut self, text: impl Into<String>) {
        let block = content::content_block::Block::Text(content::TextBlock { text: text.into() });
        self.messages.push(content::Message {
            role: content::Role::User.into(),
            content: vec![content::ContentBlock { block: Some(block) }],
            ..content::Message::default()
        });
    }
}

type Observe<P> = Box<dyn Fn(Arc<P>, HookEvent) -> BoxFuture<'static, ()> + Send + Sync>;
type Veto<P> = Box<dyn Fn(Arc<P>, HookEvent) -> BoxFuture<'static, Verdict> + Send + Sync>;
type Transform<P> = Box<dyn Fn(Arc<P>, ModelCall) -> BoxFuture<'static, ModelCall> + Send + Sync>;

/// Collects the hook subscriptions of a provider; see [`Provider::hooks`].
///
/// ```
/// use provider_core::prelude::*;
/// use provider_core::{HookEvent, HookPoint, Hooks, Verdict, VetoPoint};
///
/// struct Guard;
///
/// impl Provider for Guard {
///     const NAME: &'static str = "guard";
///     const VERSION: &'static str = "0.1.0";
///     type Config = NoConfig;
///
///     async fn configure(_: NoConfig, _: Setup) -> Result<Self, ToolError> {
///         Ok(Self)
///     }
///
///     fn tools(_: &mut Tools<Self>) {}
///
///     fn hooks(hooks: &mut Hooks<Self>) {
///         hooks.observe(HookPoint::SessionEnd, |_, _| async { tracing::info!("a session ended") });
///         hooks.veto(VetoPoint::PreToolCall, |_, event| async move {
///             match event {
///                 HookEvent::PreToolCall(call) if call.tool == "bash" => Verdict::Deny,
///                 _ => Verdict::Allow,
///             }
///         });
///         hooks.transform_model_call(|_, mut call| async move {
///             call.push_user_text("Be brief.");
///             call
///         });
///     }
/// }
/// # let _ = provider_core::Catalogue::<Guard>::of().unwrap();
/// ```
pub struct Hooks<P> {
    observers: Vec<(HookPoint, Observe<P>)>,
    vetoes: Vec<(HookPoint, Veto<P>)>,
    transform: Option<Transform<P>>,
}

/// Why a dispatch was refused: the gRPC reason and a sentence.
pub(crate) struct Refused {
    pub(crate) reason: &'static str,
    pub(crate) unimplemented: bool,
}

impl<P: Provider> Hooks<P> {
    pub(crate) fn new() -> Self {
        Self { observers: Vec::new(), vetoes: Vec::new(), transform: None }
    }

    /// Watches a point. A failing observer disturbs nothing.
    pub fn observe<F: Future<Output = ()> + Send + 'static>(
        &mut self,
        point: HookPoint,
        observer: impl Fn(Arc<P>, HookEvent) -> F + Send + Sync + 'static,
    ) {
        self.observers.push((point, Box::new(move |provider, event| Box::pin(observer(provider, event)))));
    }

    /// Decides at a point. An error or a timeout of the subscriber counts as a refusal.
    pub fn veto<F: Future<Output = Verdict> + Send + 'static>(
        &mut self,
        point: VetoPoint,
        judge: impl Fn(Arc<P>, HookEvent) -> F + Send + Sync + 'static,
    ) {
        let point = match point {
            VetoPoint::PreToolCall => HookPoint::PreToolCall,
            VetoPoint::PlanReady => HookPoint::PlanReady,
        };
        self.vetoes.push((point, Box::new(move |provider, event| Box::pin(judge(provider, event)))));
    }

    /// Adds to the messages of every model call; the last one set wins.
    pub fn transform_model_call<F: Future<Output = ModelCall> + Send + 'static>(
        &mut self,
        transform: impl Fn(Arc<P>, ModelCall) -> F + Send + Sync + 'static,
    ) {
        self.transform = Some(Box::new(move |provider, call| Box::pin(transform(provider, call))));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.points().is_empty()
    }

    /// The points subscribed to, as GetSchema advertises them.
    pub(crate) fn points(&self) -> Vec<i32> {
        let watched = self.observers.iter().map(|(point, _)| *point);
        let judged = self.vetoes.iter().map(|(point, _)| *point);
        let transformed = self.transform.as_ref().map(|_| HookPoint::PreModelCall);
        let mut points: Vec<i32> =
            watched.chain(judged).chain(transformed).map(|point| point_to_wire(point).into()).collect();
        points.sort_unstable();
        points.dedup();
        points
    }

    /// Runs the subscribers of a point in the mode asked for.
    pub(crate) async fn dispatch(
        &self,
        provider: Arc<P>,
        payload: Payload,
        mode: pb::HookMode,
    ) -> Result<pb::dispatch_hook_response::Outcome, Refused> {
        use pb::dispatch_hook_response as response;
        let point = point_of(&payload);
        match mode {
            pb::HookMode::Observe => {
                let observers = self.observers.iter().filter(|(at, _)| *at == point);
                let notices: Vec<_> = observers
                    .map(|(_, observe)| observe(provider.clone(), event_of(payload.clone())))
                    .collect();
                for notice in notices {
                    notice.await;
                }
                Ok(response::Outcome::Observe(response::ObserveAck {}))
            }
            pb::HookMode::Veto => {
                let judges = self.vetoes.iter().filter(|(at, _)| *at == point);
                let verdicts: Vec<_> =
                    judges.map(|(_, judge)| judge(provider.clone(), event_of(payload.clone()))).collect();
                if verdicts.is_empty() {
                    return Err(Refused { reason: "mode_not_implemented", unimplemented: true });
                }
                let mut decision = pb::HookDecision::Allow;
                for verdict in verdicts {
                    if verdict.await == Verdict::Deny {
                        decision = pb::HookDecision::Deny;
                    }
                }
                Ok(response::Outcome::Veto(response::VetoResult { decision: decision.into() }))
            }
            pb::HookMode::Transform => {
                let payload = match (payload, &self.transform) {
                    (Payload::PreModelCall(mut call), Some(transform)) => {
                        let messages = std::mem::take(&mut call.messages);
                        call.messages = transform(provider, ModelCall { messages }).await.messages;
                        Payload::PreModelCall(call)
                    }
                    (_, None) => return Err(Refused { reason: "mode_not_implemented", unimplemented: true }),
                    (other, Some(_)) => other,
                };
                let payload = Some(pb::HookPayload { payload: Some(payload) });
                Ok(response::Outcome::Transform(response::TransformResult { payload }))
            }
            pb::HookMode::Unspecified => Err(Refused { reason: "mode_unset", unimplemented: false }),
        }
    }
}

fn point_to_wire(point: HookPoint) -> WirePoint {
    match point {
        HookPoint::SessionStart => WirePoint::SessionStart,
        HookPoint::PreModelCall => WirePoint::PreModelCall,
        HookPoint::PostModelResponse => WirePoint::PostModelResponse,
        HookPoint::PreToolCall => WirePoint::PreToolCall,
        HookPoint::PlanReady => WirePoint::PlanReady,
        HookPoint::PostToolCall => WirePoint::PostToolCall,
        HookPoint::PostApply => WirePoint::PostApply,
        HookPoint::SessionEnd => WirePoint::SessionEnd,
    }
}

fn point_of(payload: &Payload) -> HookPoint {
    match payload {
        Payload::SessionStart(_) => HookPoint::SessionStart,
        Payload::PreModelCall(_) => HookPoint::PreModelCall,
        Payload::PostModelResponse(_) => HookPoint::PostModelResponse,
        Payload::PreToolCall(_) => HookPoint::PreToolCall,
        Payload::PlanReady(_) => HookPoint::PlanReady,
        Payload::PostToolCall(_) => HookPoint::PostToolCall,
        Payload::PostApply(_) => HookPoint::PostApply,
        Payload::SessionEnd(_) => HookPoint::SessionEnd,
    }
}

fn event_of(payload: Payload) -> HookEvent {
    match payload {
        Payload::SessionStart(start) => HookEvent::SessionStart {
            session_id: start.session_id,
            profile: start.profile,
            working_directory: start.working_directory,
        },
        Payload::PreModelCall(call) => {
            HookEvent::PreModelCall(call.messages.iter().map(message_text).collect())
        }
        Payload::PostModelResponse(response) => {
            HookEvent::PostModelResponse(response.message.as_ref().map(message_text).unwrap_or_default())
        }
        Payload::PreToolCall(hooked) => HookEvent::PreToolCall(hooked_call(hooked.call)),
        Payload::PlanReady(ready) => {
            let items = ready.plan.unwrap_or_default().items;
            HookEvent::PlanReady(items.into_iter().map(planned_call).collect())
        }
        Payload::PostToolCall(hooked) => {
            use pb::post_tool_call_payload::Outcome;
            let outcome = match hooked.outcome {
                Some(Outcome::Result(result)) => Ok(struct_to_value(result.payload.unwrap_or_default())),
                Some(Outcome::Error(error)) => Err(error.message),
                None => Err("no outcome was reported".to_owned()),
            };
            HookEvent::PostToolCall(hooked_call(hooked.call), outcome)
        }
        Payload::PostApply(applied) => {
            let items = applied.apply.unwrap_or_default().items;
            HookEvent::PostApply(items.into_iter().map(|item| item.call_id).collect())
        }
        Payload::SessionEnd(end) => HookEvent::SessionEnd { session_id: end.session_id },
    }
}

fn hooked_call(call: Option<tool::ToolCall>) -> HookedCall {
    let call = call.unwrap_or_default();
    HookedCall {
        id: call.id,
        tool: call.tool_name,
        arguments: struct_to_value(call.arguments.unwrap_or_default()),
        session_id: call.call_context.unwrap_or_default().session_id,
    }
}

fn planned_call(item: harness_proto::plan::v1::PlanItem) -> HookedCall {
    HookedCall {
        id: item.call_id,
        tool: item.operation_name,
        arguments: struct_to_value(item.input.unwrap_or_default()),
        session_id: String::new(),
    }
}

pub(crate) fn message_text(message: &content::Message) -> String {
    let text = |block: &content::ContentBlock| match &block.block {
        Some(content::content_block::Block::Text(text)) => Some(text.text.clone()),
        _ => None,
    };
    message.content.iter().filter_map(text).collect::<Vec<_>>().join("\n")
}
