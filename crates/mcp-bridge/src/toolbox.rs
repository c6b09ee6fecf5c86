//! All tools of a session, whoever has them, and the calls of them.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use codemode::catalogue::{self, Catalogue, Plugin};
use futures_util::future::{BoxFuture, select_all};
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tool_host::catalogue::{Kind, Tool};
use tool_host::source::{Annotations, ToolResult};
use tool_host::{Call, CallError, Category, Host, Invocation, Object, Outcome, Provider, Source, names};

/// The tools of providers and of other sources, as one. Clones share them.
#[derive(Clone)]
pub struct Toolbox(Arc<Inner>);

struct Inner {
    host: Host,
    providers: Vec<Provider>,
    sources: Vec<Source>,
    setting: Setting,
    /// What was last put together, with the state of the sources then.
    shelf: Mutex<Option<(Vec<u64>, Arc<Shelf>)>>,
}

/// What calls have in common.
#[derive(Clone, Debug, Default)]
pub struct Setting {
    /// The session they belong to.
    pub session: String,
    /// Where relative paths start.
    pub working_directory: PathBuf,
    /// How long each may run; `None` takes what the tool declares.
    pub timeout: Option<Duration>,
    /// Kinds of tools that are not offered, and refused when they are called.
    pub refused: Vec<Kind>,
}

/// Two owners of tools go by one name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "two of the providers and servers are called {0}, so their tools cannot be told apart: leave one out"
)]
pub struct SameName(pub String);

/// All tools there are at one time.
pub(crate) struct Shelf {
    /// In the order of providers, then sources.
    pub(crate) entries: Vec<Entry>,
    /// Their names in a flat list.
    pub(crate) names: Vec<String>,
    /// Those that are not offered, by name, and what a call of them gets.
    pub(crate) refused: HashMap<String, CallError>,
    /// Those that a program may call.
    pub(crate) catalogue: Arc<Catalogue>,
}

/// One tool.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) owner: Owner,
    /// How the host sees it.
    pub(crate) tool: Tool,
    pub(crate) title: Option<String>,
    pub(crate) input_schema: Value,
    pub(crate) output_schema: Option<Value>,
    pub(crate) annotations: Annotations,
}

/// Who has a tool.
#[derive(Clone)]
pub(crate) enum Owner {
    Provider(Provider),
    Source(Source),
}

impl fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Toolbox")
            .field("providers", &self.0.providers)
            .field("sources", &self.0.sources)
            .finish_non_exhaustive()
    }
}

impl Toolbox {
    /// The tools of these, called through `host`.
    ///
    /// # Errors
    /// Two of them have one name.
    pub fn new(
        host: Host,
        providers: Vec<Provider>,
        sources: Vec<Source>,
        setting: Setting,
    ) -> Result<Self, SameName> {
        let mut known: Vec<&str> = Vec::new();
        let all = providers.iter().map(Provider::identity).chain(sources.iter().map(Source::identity));
        for identity in all {
            if known.contains(&identity.name.as_str()) {
                return Err(SameName(identity.name.clone()));
            }
            known.push(&identity.name);
        }
        Ok(Self(Arc::new(Inner { host, providers, sources, setting, shelf: Mutex::default() })))
    }

    /// Ends all providers and sources.
    pub async fn stop(&self) {
        let providers = self.0.providers.iter().map(|provider| -> BoxFuture<'_, ()> {
            Box::pin(async move {
                provider.stop().await;
            })
        });
        let sources = self.0.sources.iter().map(|source| -> BoxFuture<'_, ()> { Box::pin(source.stop()) });
        futures_util::future::join_all(providers.chain(sources)).await;
    }

    pub(crate) fn host(&self) -> &Host {
        &self.0.host
    }

    pub(crate) fn setting(&self) -> &Setting {
        &self.0.setting
    }

    /// Resolves, again and again, when tools have changed.
    pub(crate) fn changes(&self) -> Changes {
        Changes(self.0.sources.iter().map(Source::changes).collect())
    }

    /// The tools there are now.
    pub(crate) fn shelf(&self) -> Arc<Shelf> {
        let state: Vec<u64> = self.0.sources.iter().map(|source| *source.changes().borrow()).collect();
        let mut kept = self.0.shelf.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some((of, shelf)) if *of == state => shelf.clone(),
            _ => {
                let shelf = Arc::new(self.gather());
                *kept = Some((state, shelf.clone()));
                shelf
            }
        }
    }

    fn gather(&self) -> Shelf {
        let of_providers = self.0.providers.iter().flat_map(|provider| {
            provider.catalogue().tools.iter().map(move |tool| Entry::of_provider(provider, tool))
        });
        let of_sources = self.0.sources.iter().flat_map(|source| {
            let tools = source.tools();
            tools.iter().map(|tool| Entry::of_source(source, tool)).collect::<Vec<_>>()
        });
        let all: Vec<Entry> = of_providers.chain(of_sources).collect();
        // Names are given to all, so that they do not depend on what is refused.
        let names = names::separate(all.iter().map(|entry| (entry.owner.name(), entry.tool.name.as_str())));
        let (refused, offered): (Vec<_>, Vec<_>) =
            all.into_iter().zip(names).partition(|(entry, _)| self.refuses(entry));
        let refused = refused.into_iter().map(|(entry, name)| (name, refusal(&entry))).collect();
        let (entries, names): (Vec<Entry>, Vec<String>) = offered.into_iter().unzip();
        let catalogue = Arc::new(Catalogue::new(plugins(&entries)));
        Shelf { entries, names, refused, catalogue }
    }

    fn refuses(&self, entry: &Entry) -> bool {
        entry.tool.kind == Kind::Unspecified || self.0.setting.refused.contains(&entry.tool.kind)
    }

    /// A call of the tool for `host`, which decides about it. `id` names it; otherwise it has a name of its own.
    pub(crate) fn call(
        &self,
        host: &Host,
        entry: &Entry,
        arguments: Object,
        id: Option<String>,
    ) -> Invocation {
        let setting = &self.0.setting;
        let mut call = Call::new(entry.tool.name.clone(), arguments, setting.session.clone());
        call.working_directory.clone_from(&setting.working_directory);
        call.timeout = setting.timeout;
        if let Some(id) = id {
            call.id = id;
        }
        match &entry.owner {
            Owner::Provider(provider) => host.call(provider, call),
            Owner::Source(source) => host.call_source(source, call),
        }
    }
}

fn refusal(entry: &Entry) -> CallError {
    let message = format!(
        "{}.{} is a {}, and this server was started to refuse those; nothing was done",
        entry.owner.name(),
        entry.tool.name,
        entry.tool.kind
    );
    tool_host::people::denied_by_policy(message)
}

/// What programs may call: the owners are its plugins.
fn plugins(entries: &[Entry]) -> Vec<Plugin> {
    let tool = |entry: &Entry| catalogue::Tool {
        name: entry.tool.name.clone(),
        description: entry.tool.description.clone(),
        input_schema: entry.input_schema.clone(),
        output_schema: entry.output_schema.clone(),
    };
    entries
        .chunk_by(|one, next| one.owner.name() == next.owner.name())
        .filter_map(|group| {
            let first = group.first()?;
            Some(Plugin { name: first.owner.name().to_owned(), tools: group.iter().map(tool).collect() })
        })
        .collect()
}

impl Shelf {
    /// The tool of that name in the flat list.
    pub(crate) fn named(&self, name: &str) -> Option<&Entry> {
        let index = self.names.iter().position(|known| known == name)?;
        self.entries.get(index)
    }

    /// The tool of that name of the plugin.
    pub(crate) fn of_plugin(&self, plugin: &str, tool: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.owner.name() == plugin && entry.tool.name == tool)
    }
}

impl Owner {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Provider(provider) => &provider.identity().name,
            Self::Source(source) => &source.identity().name,
        }
    }
}

impl Entry {
    fn of_provider(provider: &Provider, tool: &Tool) -> Self {
        Self {
            owner: Owner::Provider(provider.clone()),
            title: None,
            input_schema: object_schema(tool.input.to_json_schema()),
            output_schema: Some(object_schema(tool.output.to_json_schema())),
            annotations: Annotations::of(&provider.identity().name, tool),
            tool: tool.clone(),
        }
    }

    fn of_source(source: &Source, tool: &tool_host::source::SourceTool) -> Self {
        Self {
            owner: Owner::Source(source.clone()),
            title: tool.title.clone(),
            input_schema: object_schema(tool.input_schema.clone()),
            output_schema: tool.output_schema.clone(),
            annotations: tool.annotations,
            tool: tool.gate(),
        }
    }

    /// What a call of the tool ended with.
    pub(crate) fn ended(&self, outcome: Outcome) -> Result<Answered, CallError> {
        match &self.owner {
            Owner::Provider(_) => outcome.map(Answered::Payload),
            Owner::Source(_) => ToolResult::of(outcome).map(Answered::Content),
        }
    }
}

/// What a call answered.
pub(crate) enum Answered {
    /// The payload of a provider's result.
    Payload(Object),
    /// The result of another source's tool.
    Content(ToolResult),
}

/// The schema with what clients insist on: that it is of an object, and has properties, if none.
fn object_schema(schema: Value) -> Value {
    let mut schema = match schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    };
    schema.entry("type").or_insert_with(|| "object".into());
    schema.entry("properties").or_insert_with(|| json!({}));
    Value::Object(schema)
}

/// The changes of tools, one after the other.
pub(crate) struct Changes(Vec<watch::Receiver<u64>>);

impl Changes {
    /// Waits for the next change; forever where there can be none.
    pub(crate) async fn next(&mut self) {
        loop {
            if self.0.is_empty() {
                return std::future::pending().await;
            }
            let changed = self.0.iter_mut().map(|receiver| Box::pin(receiver.changed()));
            let (result, index, _) = select_all(changed).await;
            match result {
                Ok(()) => return,
                // The source is gone, and changes no more.
                Err(_) => drop(self.0.swap_remove(index)),
            }
        }
    }
}

/// The error of a call of a tool that does not exist.
pub(crate) fn no_such_tool(name: &str, known: &[String]) -> CallError {
    let meant = tool_host::nearest(name, known.iter().map(String::as_str))
        .map_or_else(String::new, |near| format!("; did you mean {near}?"));
    CallError::new(Category::NotFound, format!("there is no tool {name}{meant}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_always_has_properties() {
        assert_eq!(object_schema(json!({})), json!({"type": "object", "properties": {}}));
        assert_eq!(object_schema(Value::Null), json!({"type": "object", "properties": {}}));
        let own = json!({"type": "object", "properties": {"a": {}}, "additionalProperties": false});
        assert_eq!(object_schema(own.clone()), own);
    }
}
