//! Calls made the way the kernel makes them: gated, answered, in order.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::Mutex;

use crate::call::{Call, Invocation, Line};
use crate::catalogue::{Kind, Tool};
use crate::event::{CallError, Category, Outcome};
use crate::invoke::invoke;
use crate::people::{Answerer, Approver, Preview, Proposal, Question};
use crate::provider::Provider;
use crate::schedule::Claim;

/// Makes calls on behalf of one group of people, whatever the provider. Clones share the people.
///
/// Nothing is ever retried: a call that failed has been made, and only its caller knows whether making it
/// again is right.
#[derive(Clone)]
pub struct Host {
    approver: Arc<dyn Approver>,
    answerer: Arc<dyn Answerer>,
    /// People are asked one thing at a time.
    attention: Arc<Mutex<()>>,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Host")
    }
}

impl Host {
    /// A host whose calls are approved by one and answered by the other.
    pub fn new(approver: Arc<dyn Approver>, answerer: Arc<dyn Answerer>) -> Self {
        Self { approver, answerer, attention: Arc::new(Mutex::new(())) }
    }

    /// Makes the call.
    ///
    /// * A data source runs as soon as the provider's concurrency rules let it.
    /// * A resource is approved first, with its preview.
    /// * An interactive tool is never invoked: the answerer fills its result.
    ///
    /// Waiting, for people or for other calls, does not count against the call's time.
    pub fn call(&self, provider: &Provider, call: Call) -> Invocation {
        let (host, provider) = (self.clone(), provider.clone());
        Invocation::spawn(|line| async move {
            let tool = provider.tool(&call.tool)?;
            provider.open_session(&call);
            match tool.kind {
                Kind::Interactive => return host.answer(&provider, tool, &call, &line).await,
                Kind::Resource => host.approve(&provider, tool, &call, &line).await?,
                Kind::DataSource => {}
                Kind::Unspecified => return Err(no_kind(tool)),
            }
            let claim = Claim::of(tool, &call.arguments);
            let _permit = line.unless_stopped(provider.scheduler().enter(claim)).await?;
            invoke(&provider, tool, &call, &line).await
        })
    }

    async fn approve(
        &self,
        provider: &Provider,
        tool: &Tool,
        call: &Call,
        line: &Line,
    ) -> Result<(), CallError> {
        let ask = async {
            let _attention = self.attention.lock().await;
            let preview = match self.approver.wants_preview() {
                true => match provider.preview(call).await {
                    Ok(Some(tree)) => Preview::Tree(tree),
                    Ok(None) => Preview::Unsupported,
                    Err(error) => Preview::Failed(error),
                },
                false => Preview::Unsupported,
            };
            let proposal =
                Proposal { provider: provider.identity(), tool, arguments: &call.arguments, preview };
            self.approver.approve(&proposal).await
        };
        line.unless_stopped(ask).await?
    }

    async fn answer(&self, provider: &Provider, tool: &Tool, call: &Call, line: &Line) -> Outcome {
        let ask = async {
            let _attention = self.attention.lock().await;
            let question = Question { provider: provider.identity(), tool, arguments: &call.arguments };
            self.answerer.answer(&question).await
        };
        let answer = Value::Object(line.unless_stopped(ask).await??);
        if let Err(violation) = tool.output.check(&answer) {
            let message =
                format!("the answer to {} does not satisfy its output schema: {violation}", tool.name);
            return Err(CallError::new(Category::Unknown, message).with("error", violation.to_string()));
        }
        match answer {
            Value::Object(answer) => Ok(answer),
            _ => Ok(crate::event::Object::new()),
        }
    }
}

fn no_kind(tool: &Tool) -> CallError {
    let message = format!("{} declares no kind, so nobody can say whether it may run", tool.name);
    CallError::new(Category::PermissionDenied, message).with("code", "no_kind")
}
