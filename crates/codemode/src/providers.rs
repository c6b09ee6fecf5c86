//! Tool providers as the host of a program.
//!
//! Every call goes through [`Host::call`]: the same policy, the same approval with the same preview, the same concurrency
//! and the same cancellation as a call that was made directly.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use tool_host::catalogue::Kind;
use tool_host::{Call, CallError, Category, Host, Outcome, Provider};

use crate::catalogue::{Catalogue, Plugin, Tool};
use crate::host::{Answer, Failure, ToolCall, ToolHost};

/// Providers whose tools a program may call. Clones share them.
#[derive(Clone)]
pub struct Providers {
    host: Host,
    providers: Vec<Provider>,
    catalogue: Arc<Catalogue>,
    /// The session that calls belong to.
    session: String,
    working_directory: PathBuf,
}

impl std::fmt::Debug for Providers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Providers").field("providers", &self.providers).finish_non_exhaustive()
    }
}

/// Which tools are offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// All that may be called at all.
    Everything,
    /// Those that only read.
    DataSources,
}

impl Offer {
    fn includes(self, kind: Kind) -> bool {
        match self {
            Self::Everything => kind != Kind::Unspecified,
            Self::DataSources => kind == Kind::DataSource,
        }
    }
}

impl Providers {
    /// The tools of `providers`, each provider a plugin by the name it gives itself. A provider of code mode itself must
    /// not be among them.
    pub fn new(host: Host, providers: Vec<Provider>, offer: Offer) -> Self {
        let catalogue = Catalogue::new(providers.iter().map(|provider| plugin(provider, offer)));
        Self {
            host,
            providers,
            catalogue: Arc::new(catalogue),
            session: String::new(),
            working_directory: PathBuf::new(),
        }
    }

    /// The same tools for calls of this session, from this directory.
    #[must_use]
    pub fn for_session(&self, session: &str, working_directory: &Path) -> Self {
        Self { session: session.to_owned(), working_directory: working_directory.to_owned(), ..self.clone() }
    }

    /// The providers.
    pub fn all(&self) -> &[Provider] {
        &self.providers
    }
}

fn plugin(provider: &Provider, offer: Offer) -> Plugin {
    let offered = provider.catalogue().tools.iter().filter(|tool| offer.includes(tool.kind));
    let tool = |tool: &tool_host::catalogue::Tool| Tool {
        name: tool.name.clone(),
        description: tool.description.clone(),
        input_schema: tool.input.to_json_schema(),
        output_schema: Some(tool.output.to_json_schema()),
    };
    Plugin { name: provider.identity().name.clone(), tools: offered.map(tool).collect() }
}

impl ToolHost for Providers {
    fn tools(&self) -> Arc<Catalogue> {
        self.catalogue.clone()
    }

    fn call<'a>(
        &'a self,
        call: ToolCall,
        cancel: CancellationToken,
    ) -> BoxFuture<'a, Result<Answer, Failure>> {
        Box::pin(async move {
            let provider = self.providers.iter().find(|provider| {
                provider.identity().name == call.plugin && provider.catalogue().tool(&call.tool).is_some()
            });
            let Some(provider) = provider else {
                return Err(Failure::new(format!("there is no tool {}.{}", call.plugin, call.tool)));
            };
            let mut direct = Call::new(call.tool, call.input, self.session.clone());
            direct.id = call.id;
            direct.working_directory.clone_from(&self.working_directory);
            answer(outcome(self.host.call(provider, direct), cancel).await)
        })
    }
}

/// Reads a call to its end; once `cancel` is cancelled, to the end of what it still reports.
async fn outcome(mut invocation: tool_host::Invocation, cancel: CancellationToken) -> Outcome {
    let canceller = invocation.canceller();
    let mut cancelled = false;
    loop {
        tokio::select! {
            event = invocation.next() => {
                if event.is_none() {
                    return invocation.outcome().await;
                }
            }
            () = cancel.cancelled(), if !cancelled => {
                cancelled = true;
                canceller.cancel();
            }
        }
    }
}

fn answer(outcome: Outcome) -> Result<Answer, Failure> {
    match outcome {
        Ok(payload) => Answer::structured(&payload).map_err(|error| Failure::new(error.to_string())),
        Err(error) if is_denial(&error) => Err(Failure::denied(error.message)),
        Err(error) => Err(Failure::new(error.message)),
    }
}

/// Whether the host refused, and not the tool.
fn is_denial(error: &CallError) -> bool {
    let by_host = ["denied_by_user", "denied_by_policy", "no_human", "no_kind"];
    error.category == Category::PermissionDenied && error.code().is_some_and(|code| by_host.contains(&code))
}
