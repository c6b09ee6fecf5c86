//! Calls made the way the kernel makes them: gated, answered, in order.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::call::{Call, Invocation, Line, Reporter};
use crate::catalogue::{Identity, Kind, Tool};
use crate::event::{CallError, Category, Object, Outcome};
use crate::invoke::{CANCEL_GRACE, invoke};
use crate::notice::What;
use crate::people::{Answerer, Approver, Decision, Preview, Proposal, Question, Scope, denied_by_policy};
use crate::policy::{Policy, Ruling};
use crate::provider::Provider;
use crate::schedule::{Claim, Permit, Scheduler};
use crate::source::Source;

/// How long a call of a source may run unless the operator says otherwise: as long as a program may.
const SOURCE_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// Makes calls on behalf of one group of people, whatever the provider. Clones share the people.
///
/// Nothing is ever retried: a call that failed has been made, and only its caller knows whether making it
/// again is right.
#[derive(Clone)]
pub struct Host {
    policy: Arc<Policy>,
    approver: Arc<dyn Approver>,
    answerer: Arc<dyn Answerer>,
    /// What was decided for a whole session, by session, provider and tool.
    decided: Arc<Decided>,
    /// People are asked one thing at a time.
    attention: Arc<Mutex<()>>,
}

type Decided = std::sync::Mutex<HashMap<[String; 3], Result<(), CallError>>>;

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Host")
    }
}

impl Host {
    /// A host whose calls are approved by one and answered by the other.
    pub fn new(approver: Arc<dyn Approver>, answerer: Arc<dyn Answerer>) -> Self {
        Self {
            policy: Arc::default(),
            approver,
            answerer,
            decided: Arc::default(),
            attention: Arc::new(Mutex::new(())),
        }
    }

    /// The same people under a policy, which rules before anybody is asked.
    #[must_use]
    pub fn under(self, policy: Policy) -> Self {
        Self { policy: Arc::new(policy), ..self }
    }

    /// The same, except that somebody else answers: for a call whose caller is the one to ask. Their questions wait for
    /// each other, and not for those of anybody else.
    #[must_use]
    pub fn answered_by(self, answerer: Arc<dyn Answerer>) -> Self {
        Self { answerer, attention: Arc::new(Mutex::new(())), ..self }
    }

    /// Makes the call.
    ///
    /// * What the policy refuses is not made, whoever would approve it.
    /// * A data source runs as soon as the provider's concurrency rules let it.
    /// * A resource is approved first, with its preview, unless the policy allows it or somebody has decided for
    ///   the whole session.
    /// * An interactive tool is never invoked: the answerer fills its result.
    ///
    /// Waiting, for people or for other calls, does not count against the call's time.
    pub fn call(&self, provider: &Provider, call: Call) -> Invocation {
        let (host, provider) = (self.clone(), provider.clone());
        Invocation::spawn(|line| async move {
            let tool = provider.tool(&call.tool)?;
            match host.admit(Callee::Provider(&provider), tool, &call, &line).await? {
                Admitted::Answered(payload) => Ok(payload),
                Admitted::Runs(_permit) => invoke(&provider, tool, &call, &line).await,
            }
        })
    }

    /// Makes the call as [`Self::call`] does, gated and in its turn, except that `work` does it in place of the
    /// provider: for a host that can do more in a tool than its provider, which sees no other provider. `work` watches
    /// for the cancellation itself, and reports through the [`Reporter`].
    pub fn call_with<F>(
        &self,
        provider: &Provider,
        call: Call,
        work: impl FnOnce(Call, Reporter) -> F + Send + 'static,
    ) -> Invocation
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        let (host, provider) = (self.clone(), provider.clone());
        Invocation::spawn(|line| async move {
            let tool = provider.tool(&call.tool)?;
            match host.admit(Callee::Provider(&provider), tool, &call, &line).await? {
                Admitted::Answered(payload) => Ok(payload),
                Admitted::Runs(_permit) => work(call, Reporter::new(line)).await,
            }
        })
    }

    /// Makes a call of a source's tool, gated and in its turn as [`Self::call`] does. The outcome's payload is a
    /// [`ToolResult`](crate::source::ToolResult), also where the tool failed.
    pub fn call_source(&self, source: &Source, call: Call) -> Invocation {
        let (host, source) = (self.clone(), source.clone());
        Invocation::spawn(|line| async move {
            let tool = source.tool(&call.tool)?.gate();
            match host.admit(Callee::Source(&source), &tool, &call, &line).await? {
                Admitted::Answered(payload) => Ok(payload),
                Admitted::Runs(_permit) => follow(&source, &call, Reporter::new(line)).await,
            }
        })
    }

    /// Brings a call to where it may run, or to its answer.
    async fn admit(
        &self,
        callee: Callee<'_>,
        tool: &Tool,
        call: &Call,
        line: &Line,
    ) -> Result<Admitted, CallError> {
        let ruling = self.precheck(callee, tool)?;
        if let Callee::Provider(provider) = callee {
            provider.open_session(call);
        }
        match tool.kind {
            Kind::Interactive => {
                return self.answer(callee, tool, call, line).await.map(Admitted::Answered);
            }
            Kind::Resource if ruling == Ruling::Ask => self.approve(callee, tool, call, line).await?,
            Kind::Resource | Kind::DataSource => {}
            Kind::Unspecified => return Err(no_kind(tool)),
        }
        let claim = Claim::of(tool, &call.arguments);
        line.unless_stopped(callee.scheduler().enter(claim)).await.map(Admitted::Runs)
    }

    /// Refuses what the policy refuses.
    fn precheck(&self, callee: Callee<'_>, tool: &Tool) -> Result<Ruling<'_>, CallError> {
        let name = &callee.identity().name;
        let refused = |rule: &str, why: &str| {
            let message =
                format!("{name}.{} is denied by the policy {rule:?}{why}; nothing was done", tool.name);
            Err(denied_by_policy(message).with("rule", rule))
        };
        match self.policy.ruling(name, tool) {
            Ruling::Deny(rule) => refused(rule, ""),
            Ruling::CannotAsk(rule) => {
                if let Callee::Provider(provider) = callee {
                    provider.notice(What::Warning(format!(
                        "the policy {rule:?} asks about {}, a {} call, which cannot be asked about: it is denied",
                        tool.name, tool.kind
                    )));
                }
                refused(rule, ", which asks, and this kind of call cannot be asked about")
            }
            ruling => Ok(ruling),
        }
    }

    async fn approve(
        &self,
        callee: Callee<'_>,
        tool: &Tool,
        call: &Call,
        line: &Line,
    ) -> Result<(), CallError> {
        let key = [call.session.clone(), callee.identity().name.clone(), tool.name.clone()];
        let ask = async {
            let _attention = self.attention.lock().await;
            // Looked up with everybody's attention, so that a decision for the session answers those who wait.
            if let Some(verdict) = self.decided().get(&key) {
                return verdict.clone();
            }
            let preview = match callee {
                Callee::Provider(provider) if self.approver.wants_preview() => {
                    match provider.preview(call).await {
                        Ok(Some(tree)) => Preview::Tree(tree),
                        Ok(None) => Preview::Unsupported,
                        Err(error) => Preview::Failed(error),
                    }
                }
                _ => Preview::Unsupported,
            };
            let proposal =
                Proposal { provider: callee.identity(), tool, arguments: &call.arguments, preview };
            let Decision { verdict, scope } = self.approver.approve(&proposal).await;
            if scope == Scope::Session {
                self.decided().insert(key, verdict.clone());
            }
            verdict
        };
        line.unless_stopped(ask).await?
    }

    fn decided(&self) -> MutexGuard<'_, HashMap<[String; 3], Result<(), CallError>>> {
        self.decided.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer(&self, callee: Callee<'_>, tool: &Tool, call: &Call, line: &Line) -> Outcome {
        let question = Question::new(callee.identity(), tool, &call.arguments)?;
        let ask = async {
            let _attention = self.attention.lock().await;
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

/// What has the tool that is called.
#[derive(Clone, Copy)]
enum Callee<'a> {
    Provider(&'a Provider),
    Source(&'a Source),
}

impl<'a> Callee<'a> {
    fn identity(self) -> &'a Identity {
        match self {
            Self::Provider(provider) => provider.identity(),
            Self::Source(source) => source.identity(),
        }
    }

    fn scheduler(self) -> &'a Scheduler {
        match self {
            Self::Provider(provider) => provider.scheduler(),
            Self::Source(source) => source.scheduler(),
        }
    }
}

/// Makes the call of a source and sees to it that it ends: at its time, or soon after it was given up.
async fn follow(source: &Source, call: &Call, reporter: Reporter) -> Outcome {
    let allowed = call.timeout.unwrap_or(SOURCE_TIMEOUT);
    let work = source.make(call, &reporter);
    let given_up = async {
        reporter.cancelled().await;
        tokio::time::sleep(CANCEL_GRACE).await;
    };
    tokio::select! {
        biased;
        done = timeout(allowed, work) => match done {
            Ok(result) => result.map(crate::source::ToolResult::into_payload),
            Err(_) => {
                let message = format!("{} did not finish within {allowed:?}", call.tool);
                Err(CallError::new(Category::Timeout, message))
            }
        },
        () = given_up => Err(crate::call::cancelled()),
    }
}

/// A call that nothing stands in the way of any more.
enum Admitted {
    /// It runs, for as long as this is held.
    Runs(Permit),
    /// It was answered.
    Answered(Object),
}

fn no_kind(tool: &Tool) -> CallError {
    let message = format!("{} declares no kind, so nobody can say whether it may run", tool.name);
    CallError::new(Category::PermissionDenied, message).with("code", "no_kind")
}
