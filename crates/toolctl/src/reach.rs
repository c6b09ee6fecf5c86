//! Programs over the providers of this session.
//!
//! The code provider is a process of its own and sees no other provider. So this program runs `execute` itself, over its
//! own providers: every call of a program is gated, previewed, ordered and cancelled as a direct call is.

use std::sync::Arc;

use codemode::providers::{Offer, Providers};
use codemode::{Program, Progress, Reason};
use provider_code::{Code, CodeConfig};
use provider_core::Provider as _;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tool_host::catalogue::Attribute;
use tool_host::{Call, CallError, Category, Event, Host, Invocation, Object, Outcome, Provider, Reporter};

/// The tool of the code provider.
const EXECUTE: &str = "execute";
/// What happened, but was not told yet, is kept up to so many events.
const PROGRESS_AHEAD: usize = 256;

/// Whether PROVIDER on the command line means the code provider of the catalog.
pub(crate) fn is_code(provider: &str) -> bool {
    provider == Code::NAME
}

fn only_code(arguments: &Object) -> bool {
    arguments.iter().all(|(name, value)| name == "code" || value.is_null())
}

/// What programs of this session may call.
#[derive(Clone, Debug)]
pub(crate) struct Reach {
    providers: Providers,
    config: CodeConfig,
}

impl Reach {
    /// Programs that may call tools of `providers`, through `host`, under what the code provider is configured with.
    ///
    /// # Errors
    /// The configuration is none of the code provider.
    pub(crate) fn new(host: &Host, providers: Vec<Provider>, config: Object) -> Result<Self, CallError> {
        let config = serde_json::from_value(Value::Object(config)).map_err(|error| {
            CallError::new(Category::InvalidArguments, format!("configuration of code: {error}"))
        })?;
        Ok(Self { providers: Providers::new(host.clone(), providers, Offer::Everything), config })
    }

    /// What the providers that programs can call are configured with.
    pub(crate) fn attributes(&self) -> Vec<Attribute> {
        self.providers.all().iter().flat_map(|provider| provider.catalogue().config.clone()).collect()
    }

    /// Stops the providers that programs could call.
    pub(crate) async fn stop(&self) {
        for provider in self.providers.all() {
            provider.stop().await;
        }
    }

    /// Makes a call of the code provider: a program runs here, everything else in the provider.
    pub(crate) fn call(&self, host: &Host, provider: &Provider, call: Call) -> Invocation {
        match call.arguments.get("code") {
            // What the provider would refuse or repair, it does itself. Null means absent.
            Some(Value::String(code)) if call.tool == EXECUTE && only_code(&call.arguments) => {
                let (code, reach) = (code.clone(), self.clone());
                host.call_with(provider, call, move |call, reporter| reach.run(code, call, reporter))
            }
            _ => host.call(provider, call),
        }
    }

    async fn run(self, code: String, call: Call, reporter: Reporter) -> Outcome {
        let mut limits = self.config.limits();
        if let Some(timeout) = call.timeout {
            limits.total = limits.total.min(timeout);
        }
        let cancel = CancellationToken::new();
        let (sender, mut happened) = mpsc::channel(PROGRESS_AHEAD);
        let host = self.providers.for_session(&call.session, &call.working_directory);
        let running = Program::new(Arc::new(host), code, &call.id)
            .within(limits)
            .in_sandbox(self.config.sandboxing())
            .until(cancel.clone())
            .telling(move |progress| {
                let message = match progress {
                    Progress::Console(line) => line,
                    Progress::Started { tool } => format!("calling {tool}"),
                    Progress::Ended { .. } => return,
                };
                // Those who watch may be slow, or gone; the program does not wait for them.
                let _ = sender.try_send(Event::Progress { message, fraction_complete: None });
            })
            .run();
        tokio::pin!(running);
        // An arm of its own: while somebody slow is told, the program goes on and its limits hold.
        let telling = async {
            while let Some(event) = happened.recv().await {
                reporter.send(event).await;
            }
        };
        tokio::pin!(telling);
        let mut told = false;
        let report = loop {
            tokio::select! {
                biased;
                report = &mut running => break report,
                () = reporter.cancelled(), if !cancel.is_cancelled() => cancel.cancel(),
                () = &mut telling, if !told => told = true,
            }
        };
        if !told {
            telling.await;
        }
        match provider_code::outcome(report) {
            Ok(output) => match serde_json::to_value(output) {
                Ok(Value::Object(payload)) => Ok(payload),
                _ => Err(CallError::new(Category::Unknown, "the result cannot be written as JSON")),
            },
            Err((Reason::Cancelled, text)) => {
                let note = json!({ "note": text });
                if let Value::Object(payload) = note {
                    reporter.send(Event::PartialResult { payload }).await;
                }
                Err(tool_host::call::cancelled())
            }
            Err((Reason::TotalTime, text)) if call.timeout.is_some() => {
                Err(CallError::new(Category::Timeout, text).with("reason", Reason::TotalTime.as_str()))
            }
            Err((reason, text)) => {
                Err(CallError::new(Category::ExecutionFailed, text).with("reason", reason.as_str()))
            }
        }
    }
}
