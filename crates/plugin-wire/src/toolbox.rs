//! Providers and other sources of tools, served as one plugin.

use std::any::Any;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;
use tool_host::catalogue::{Identity, Tool};
use tool_host::source::{Annotations, Source, ToolResult};
use tool_host::{Call, CallError, Event, Host, Invocation, Object, names, nearest};

use crate::call::{Context, ToolCall, ToolEntry};
use crate::message::RpcError;
use crate::result::{Reported, failed, failure, structured};
use crate::server::Served;
use crate::subagents::{Ending, Subagents};

/// Makes calls of a member's tools.
pub trait Caller: Send + Sync {
    /// Makes the call; its working directory is where the session works, and empty where that is not known.
    ///
    /// # Errors
    /// The call cannot be made.
    fn call<'a>(&'a self, call: Call) -> BoxFuture<'a, Result<Made, CallError>>;
}

/// A call that has been made.
pub struct Made {
    /// The call.
    pub invocation: Invocation,
    /// What the call needs until it has ended.
    pub held: Arc<dyn Any + Send + Sync>,
}

/// A provider, whatever makes its calls.
#[derive(Clone)]
pub struct Member {
    /// Who it is.
    pub identity: Identity,
    /// Its tools that are served.
    pub tools: Vec<Tool>,
    /// What makes its calls.
    pub caller: Arc<dyn Caller>,
}

/// Tools of several owners as one plugin. What is served can change while it is.
pub struct Toolbox {
    name: String,
    version: String,
    host: Host,
    /// The session of calls that come from no chat.
    session: String,
    contents: RwLock<Arc<Contents>>,
    changes: watch::Sender<u64>,
    /// Ids of calls that run.
    running: Mutex<HashSet<String>>,
    /// What watches the sources that are served now.
    watching: Mutex<Vec<AbortHandle>>,
}

#[derive(Default)]
struct Contents {
    members: Vec<Member>,
    sources: Vec<Source>,
}

/// Where a tool was found.
enum Found {
    Member(Arc<dyn Caller>, String),
    Source(Source, String),
}

impl std::fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Toolbox").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Toolbox {
    /// An empty plugin of that name and version. `host` makes the calls of sources; `session` is what calls belong to
    /// that name no chat.
    pub fn new(name: &str, version: &str, host: Host, session: &str) -> Self {
        Self {
            name: name.to_owned(),
            version: version.to_owned(),
            host,
            session: session.to_owned(),
            contents: RwLock::default(),
            changes: watch::Sender::new(0),
            running: Mutex::default(),
            watching: Mutex::default(),
        }
    }

    /// Serves these from now on. Calls that run come to their end.
    pub fn serve(&self, members: Vec<Member>, sources: Vec<Source>) {
        let watching = sources.iter().map(|source| self.watch(source)).collect();
        let before =
            std::mem::replace(&mut *self.watching.lock().unwrap_or_else(PoisonError::into_inner), watching);
        before.iter().for_each(AbortHandle::abort);
        let was = self.tools();
        *self.contents.write().unwrap_or_else(PoisonError::into_inner) =
            Arc::new(Contents { members, sources });
        if self.tools() != was {
            self.changes.send_modify(|count| *count += 1);
        }
    }

    fn watch(&self, source: &Source) -> AbortHandle {
        let (mut theirs, ours) = (source.changes(), self.changes.clone());
        let watch = async move {
            while theirs.changed().await.is_ok() {
                ours.send_modify(|count| *count += 1);
            }
        };
        tokio::spawn(watch).abort_handle()
    }

    fn contents(&self) -> Arc<Contents> {
        self.contents.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn find(&self, name: &str) -> Result<Found, RpcError> {
        let contents = self.contents();
        let mut listed = contents.list();
        if let Some(at) = listed.iter().position(|(known, ..)| known == name) {
            return Ok(listed.swap_remove(at).1);
        }
        let names = listed.iter().map(|(name, ..)| name.as_str());
        let meant = nearest(name, names).map_or_else(String::new, |near| format!("; did you mean {near}?"));
        Err(RpcError::invalid_params(format!("there is no tool {name}{meant}")))
    }

    /// The call as the host knows calls.
    fn direct(&self, tool: String, input: Object, context: &Context) -> Result<(Call, Taken<'_>), String> {
        let working_directory = match &context.workspace {
            Some(folder) if !folder.is_absolute() => {
                return Err(format!("context.workspace: {} is not absolute", folder.display()));
            }
            Some(folder) => folder.clone(),
            None => PathBuf::new(),
        };
        let session =
            context.chat_id.as_ref().map_or_else(|| self.session.clone(), |chat| format!("chat-{chat}"));
        let mut call = Call::new(tool, input, session);
        call.working_directory = working_directory;
        let taken = self.take(context.call_id.clone(), &mut call);
        Ok((call, taken))
    }

    /// Gives the call the id that its caller has for it, unless a call with that id runs.
    fn take(&self, wanted: Option<String>, call: &mut Call) -> Taken<'_> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(wanted) = wanted.filter(|id| !id.is_empty() && !running.contains(id)) {
            call.id = wanted;
        }
        running.insert(call.id.clone());
        Taken { running: &self.running, id: call.id.clone() }
    }

    async fn make(
        &self,
        found: Found,
        input: Object,
        context: &Context,
        cancel: CancellationToken,
        mut subagents: Subagents,
    ) -> ToolResult {
        let tool = match &found {
            Found::Member(_, tool) | Found::Source(_, tool) => tool.clone(),
        };
        let (call, _taken) = match self.direct(tool, input, context) {
            Ok(direct) => direct,
            Err(why) => return failed(format!("invalid_arguments: {why}")),
        };
        let invocation = match &found {
            Found::Member(caller, _) => tokio::select! {
                biased;
                () = cancel.cancelled() => Err(tool_host::call::cancelled()),
                made = caller.call(call) => made,
            },
            Found::Source(source, _) => {
                Ok(Made { invocation: self.host.call_source(source, call), held: Arc::new(()) })
            }
        };
        let mut reported = Reported::default();
        let outcome = match invocation {
            Ok(Made { invocation, held: _held }) => {
                follow(invocation, cancel, &mut reported, &mut subagents).await
            }
            Err(error) => Err(error),
        };
        subagents.finish(Ending::of(&outcome));
        match (outcome, &found) {
            (Ok(payload), Found::Member(..)) => structured(payload.into()),
            (Ok(payload), Found::Source(..)) => {
                ToolResult::of(Ok(payload)).unwrap_or_else(|error| failure(&error, &reported))
            }
            (Err(error), _) => failure(&error, &reported),
        }
    }
}

/// An id that a running call has.
struct Taken<'a> {
    running: &'a Mutex<HashSet<String>>,
    id: String,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

/// Reads a call to its end; once `cancel` is cancelled, to the end of what it still reports.
async fn follow(
    mut invocation: Invocation,
    cancel: CancellationToken,
    reported: &mut Reported,
    subagents: &mut Subagents,
) -> Result<Object, CallError> {
    let canceller = invocation.canceller();
    let mut cancelled = false;
    loop {
        tokio::select! {
            event = invocation.next() => match event {
                Some(Event::PartialResult { payload }) if subagents.take(&payload) => {}
                Some(event) => reported.take(&event),
                None => return invocation.outcome().await,
            },
            () = cancel.cancelled(), if !cancelled => {
                cancelled = true;
                canceller.cancel();
            }
        }
    }
}

impl Contents {
    /// Every tool under its name here.
    fn list(&self) -> Vec<(String, Found, ToolEntry)> {
        let members = self.members.iter().flat_map(|member| {
            member.tools.iter().map(move |tool| {
                let found = Found::Member(member.caller.clone(), tool.name.clone());
                (member.identity.name.clone(), found, entry(&member.identity, tool))
            })
        });
        let sources = self.sources.iter().flat_map(|source| {
            let tools = source.tools();
            let owner = source.identity().name.clone();
            tools
                .iter()
                .map(|tool| {
                    let found = Found::Source(source.clone(), tool.name.clone());
                    let entry = ToolEntry {
                        name: tool.name.clone(),
                        title: tool.title.clone(),
                        description: tool.description.clone(),
                        input_schema: tool.input_schema.clone(),
                        output_schema: tool.output_schema.clone(),
                        annotations: serde_json::to_value(tool.annotations).unwrap_or_default(),
                    };
                    (owner.clone(), found, entry)
                })
                .collect::<Vec<_>>()
        });
        let mut all: Vec<(String, Found, ToolEntry)> = members.chain(sources).collect();
        let names =
            names::separate(all.iter().map(|(owner, _, entry)| (owner.as_str(), entry.name.as_str())));
        for ((owner, _, entry), name) in all.iter_mut().zip(names) {
            entry.name.clone_from(&name);
            *owner = name;
        }
        all
    }
}

fn entry(identity: &Identity, tool: &Tool) -> ToolEntry {
    ToolEntry {
        name: tool.name.clone(),
        title: Some(title(&tool.name)),
        description: tool.description.clone(),
        input_schema: tool.input.to_json_schema(),
        output_schema: Some(tool.output.to_json_schema()),
        annotations: serde_json::to_value(Annotations::of(&identity.name, tool)).unwrap_or_default(),
    }
}

/// `read_file` as `Read file`.
fn title(name: &str) -> String {
    let words = name.replace(['_', '-'], " ");
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

impl Served for Toolbox {
    fn identity(&self) -> (String, String) {
        (self.name.clone(), self.version.clone())
    }

    fn tools(&self) -> Vec<ToolEntry> {
        self.contents().list().into_iter().map(|(_, _, entry)| entry).collect()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn call(
        self: Arc<Self>,
        call: ToolCall,
        cancel: CancellationToken,
        subagents: Subagents,
    ) -> BoxFuture<'static, Result<ToolResult, RpcError>> {
        Box::pin(async move {
            let found = self.find(&call.name)?;
            let input = match call.input {
                Ok(input) => input,
                Err(why) => return Ok(failed(format!("invalid_arguments: {why}"))),
            };
            Ok(self.make(found, input, &call.context, cancel, subagents).await)
        })
    }
}
