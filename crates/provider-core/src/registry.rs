//! The list of a provider's tools, with the types erased once.

use std::collections::BTreeSet;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use harness_proto::common::v1 as common;
use harness_proto::tool::v1 as pb;
use serde_json::Value;

use crate::arguments::{first_violation, repair, strip_nulls};
use crate::call::{Call, Cx, PreviewCx, Stream, locked};
use crate::config;
use crate::error::ToolError;
use crate::hooks::Hooks;
use crate::render::Node;
use crate::schema::{Kind as SchemaKind, Schema, SchemaError};
use crate::tool::{
    Args, Concurrency, DataSource, Interactive, Preview, Provider, Resource, Risk, ToolOutput,
};

/// What kind of tool an operation is, with what only that kind declares.
///
/// ```
/// use provider_core::{Declaration, Risk, ToolKind};
///
/// /// Tools that an operator should think about before allowing them.
/// fn is_dangerous(tool: &Declaration) -> bool {
///     matches!(tool.kind, ToolKind::Resource { risk: Risk::High | Risk::Critical, .. })
/// }
/// # let _ = is_dangerous;
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ToolKind {
    /// Reads only.
    DataSource,
    /// Changes something.
    Resource {
        /// How much harm a call can do.
        risk: Risk,
        /// Whether repeating a call changes nothing more.
        idempotent: bool,
        /// Whether a successful call ends the turn.
        terminates_turn: bool,
    },
    /// Asks a person.
    Interactive,
}

/// All that is declared about one tool.
///
/// ```
/// use provider_core::Catalogue;
/// use provider_core::prelude::*;
///
/// /// One line per tool, for a page about the provider.
/// fn lines<P: Provider>() -> Vec<String> {
///     let catalogue = Catalogue::<P>::of().unwrap_or_else(|error| panic!("{error}"));
///     catalogue.declarations().map(|tool| format!("{}: {}", tool.name, tool.description())).collect()
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Declaration {
    /// The tool's name.
    pub name: &'static str,
    /// Its kind.
    pub kind: ToolKind,
    /// Its arguments; the description of the tool is theirs.
    pub input: Schema,
    /// Its result.
    pub output: Schema,
    /// Whether events come before the terminal one.
    pub streaming: bool,
    /// Whether it runs a process and reports its exit.
    pub process: bool,
    /// Which calls may run at the same time. `None` for interactive tools.
    pub concurrency: Option<Concurrency>,
    /// How long a call may take by default. `None` for interactive tools: people take their time.
    pub timeout: Option<Duration>,
    /// Whether a call can be previewed.
    pub previews: bool,
}

impl Declaration {
    /// What the tool does, as the model reads it.
    pub fn description(&self) -> &str {
        &self.input.description
    }

    /// The wire form.
    pub fn to_wire(&self) -> pb::ToolSchema {
        let (kind, risk, idempotent, terminates_turn) = match self.kind {
            ToolKind::DataSource => (pb::ToolKind::DataSource, pb::RiskClass::ReadOnly, true, false),
            ToolKind::Interactive => (pb::ToolKind::Interactive, pb::RiskClass::ReadOnly, false, false),
            ToolKind::Resource { risk, idempotent, terminates_turn } => {
                (pb::ToolKind::Resource, risk_to_wire(risk), idempotent, terminates_turn)
            }
        };
        pb::ToolSchema {
            name: self.name.to_owned(),
            kind: kind.into(),
            risk: risk.into(),
            description: self.description().to_owned(),
            input_schema: Some(self.input.to_wire()),
            output_schema: Some(self.output.to_wire()),
            streaming: self.streaming,
            concurrency: self.concurrency.map(concurrency_to_wire),
            default_timeout: self.timeout.and_then(|timeout| timeout.try_into().ok()),
            idempotent,
            terminates_turn,
        }
    }

    fn problem(&self) -> Option<String> {
        let name_fits = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'_';
        if self.name.is_empty() || !self.name.bytes().all(name_fits) {
            return Some("a tool's name consists of a-z, 0-9 and _".to_owned());
        }
        let SchemaKind::Object { properties, .. } = &self.input.kind else {
            return Some("the arguments must be a struct with named fields".to_owned());
        };
        if !matches!(self.output.kind, SchemaKind::Object { .. }) {
            return Some("the result must be a struct with named fields".to_owned());
        }
        match self.concurrency {
            Some(Concurrency::Keyed(keys)) => keys
                .iter()
                .find(|key| !properties.contains_key(**key))
                .map(|key| format!("the concurrency key {key} is not an argument")),
            _ => None,
        }
    }
}

fn risk_to_wire(risk: Risk) -> pb::RiskClass {
    match risk {
        Risk::Low => pb::RiskClass::Low,
        Risk::Moderate => pb::RiskClass::Moderate,
        Risk::High => pb::RiskClass::High,
        Risk::Critical => pb::RiskClass::Critical,
    }
}

fn concurrency_to_wire(concurrency: Concurrency) -> pb::ConcurrencySpec {
    let (safe, keys): (_, &[&str]) = match concurrency {
        Concurrency::Exclusive => (false, &[]),
        Concurrency::Shared => (true, &[]),
        Concurrency::Keyed(keys) => (true, keys),
    };
    pb::ConcurrencySpec { safe, key_fields: keys.iter().map(|key| (*key).to_owned()).collect() }
}

type InvokeFn<P> =
    Box<dyn Fn(Arc<P>, Value, Arc<Call>) -> BoxFuture<'static, Result<Value, ToolError>> + Send + Sync>;
type PreviewFn<P> =
    Box<dyn Fn(Arc<P>, Value, Arc<PreviewCx>) -> BoxFuture<'static, Result<Node, ToolError>> + Send + Sync>;
type RenderFn = Box<dyn Fn(Value) -> Option<Node> + Send + Sync>;

/// One tool, its types erased.
pub(crate) struct Tool<P> {
    pub(crate) declaration: Declaration,
    invoke: InvokeFn<P>,
    preview: Option<PreviewFn<P>>,
    render: RenderFn,
}

impl<P> Tool<P> {
    /// Runs the tool. The result has the shape that the output schema declares.
    pub(crate) async fn invoke(
        &self,
        provider: Arc<P>,
        arguments: Value,
        call: Arc<Call>,
    ) -> Result<Value, ToolError> {
        let repaired = repair(self.declaration.name, &self.declaration.input, arguments)?;
        locked(&call.notes).extend(repaired.notes);
        let mut payload = (self.invoke)(provider, repaired.value, call.clone()).await?;
        strip_nulls(&mut payload);
        add_notes(&mut payload, std::mem::take(&mut *locked(&call.notes)));
        if let Some(violation) = first_violation(&self.declaration.output, &payload) {
            return Err(broken_result(self.declaration.name, &violation));
        }
        Ok(payload)
    }

    /// The preview of a call, if this tool has previews.
    pub(crate) fn preview(
        &self,
        provider: Arc<P>,
        arguments: Value,
        cx: Arc<PreviewCx>,
    ) -> Option<BoxFuture<'static, Result<Node, ToolError>>> {
        let preview = self.preview.as_ref()?;
        let repaired = match repair(self.declaration.name, &self.declaration.input, arguments) {
            Ok(repaired) => repaired,
            Err(error) => return Some(Box::pin(async { Err(error) })),
        };
        Some(preview(provider, repaired.value, cx))
    }

    /// Shows a payload that this tool emitted. `None` if the payload is not this tool's.
    pub(crate) fn render(&self, payload: &Value) -> Option<Node> {
        if !self.recognises(payload) {
            return None;
        }
        let shown = (self.render)(payload.clone());
        Some(
            shown.unwrap_or_else(|| Node::Code {
                language: "json".to_owned(),
                content: format!("{payload:#}"),
            }),
        )
    }

    /// Whether the payload has all properties that this tool's results have, and no others.
    pub(crate) fn recognises(&self, payload: &Value) -> bool {
        let (SchemaKind::Object { properties, .. }, Value::Object(map)) =
            (&self.declaration.output.kind, payload)
        else {
            return false;
        };
        map.keys().all(|key| properties.contains_key(key))
            && first_violation(&self.declaration.output, payload).is_none()
    }
}

fn broken_result(tool: &str, violation: &str) -> ToolError {
    #[derive(Debug, thiserror::Error)]
    #[error(
        "{tool} produced a result that breaks its own schema ({violation}); this is a defect of the provider"
    )]
    struct Broken {
        tool: String,
        violation: String,
    }
    ToolError::unknown(&Broken { tool: tool.to_owned(), violation: violation.to_owned() })
}

fn add_notes(payload: &mut Value, notes: Vec<String>) {
    if notes.is_empty() {
        return;
    }
    if let Value::Object(map) = payload {
        let entry = map.entry("notes").or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(list) = entry {
            list.extend(notes.into_iter().map(Value::String));
        }
    }
}

fn typed<A: Args>(value: Value) -> Result<A, ToolError> {
    serde_json::from_value(value).map_err(|error| ToolError::invalid_arguments(error.to_string()))
}

fn erased<O: ToolOutput>(output: &O) -> Result<Value, ToolError> {
    serde_json::to_value(output).map_err(|error| ToolError::unknown(&error))
}

/// Erases an `invoke`: typed arguments in, JSON out.
fn erase_invoke<P, A, O, S, F>(invoke: fn(Arc<P>, A, Cx<S>) -> F) -> InvokeFn<P>
where
    P: Provider,
    A: Args,
    O: ToolOutput,
    S: Stream,
    F: Future<Output = Result<O, ToolError>> + Send + 'static,
{
    Box::new(move |provider, value, call| {
        let arguments = match typed::<A>(value) {
            Ok(arguments) => arguments,
            Err(error) => return Box::pin(async { Err(error) }),
        };
        let work = invoke(provider, arguments, Cx::new(call));
        Box::pin(async move { erased(&work.await?) })
    })
}

fn erase_render<O: ToolOutput>(render: fn(&O) -> Option<Node>) -> RenderFn {
    Box::new(move |value| serde_json::from_value(value).ok().and_then(|output: O| render(&output)))
}

/// Collects the tools of a provider; see [`Provider::tools`].
///
/// ```
/// use provider_core::prelude::*;
///
/// /// The body of [`Provider::tools`]: every tool once, and whether a resource has a preview.
/// fn tools<P, Read, Write>(tools: &mut Tools<P>)
/// where
///     P: Provider,
///     Read: DataSource<Provider = P>,
///     Write: Preview<Provider = P>,
/// {
///     tools.data_source::<Read>();
///     tools.resource::<Write>().with_preview();
/// }
/// ```
pub struct Tools<P> {
    tools: Vec<Tool<P>>,
    errors: Vec<SchemaError>,
}

impl<P: Provider> Tools<P> {
    /// Adds a data source.
    pub fn data_source<T: DataSource<Provider = P>>(&mut self) {
        let parts = Parts {
            name: T::NAME,
            kind: ToolKind::DataSource,
            concurrency: Some(T::CONCURRENCY),
            timeout: Some(T::TIMEOUT),
            invoke: erase_invoke(T::invoke),
            render: erase_render(T::render),
        };
        self.add::<T::Args, T::Output, T::Stream>(parts);
    }

    /// Adds a resource.
    pub fn resource<T: Resource<Provider = P>>(&mut self) -> AddedResource<'_, P, T> {
        let kind = ToolKind::Resource {
            risk: T::RISK,
            idempotent: T::IDEMPOTENT,
            terminates_turn: T::TERMINATES_TURN,
        };
        let parts = Parts {
            name: T::NAME,
            kind,
            concurrency: Some(T::CONCURRENCY),
            timeout: Some(T::TIMEOUT),
            invoke: erase_invoke(T::invoke),
            render: erase_render(T::render),
        };
        let added = self.add::<T::Args, T::Output, T::Stream>(parts);
        AddedResource { tool: added.then(|| self.tools.last_mut()).flatten(), resource: PhantomData }
    }

    /// Adds an interactive tool.
    pub fn interactive<T: Interactive<Provider = P>>(&mut self) {
        let parts = Parts {
            name: T::NAME,
            kind: ToolKind::Interactive,
            concurrency: None,
            timeout: None,
            invoke: erase_invoke(T::invoke),
            render: erase_render(T::render),
        };
        self.add::<T::Args, T::Output, crate::Silent>(parts);
    }

    fn add<A: Args, O: ToolOutput, S: Stream>(&mut self, parts: Parts<P>) -> bool {
        let (input, output) = match (Schema::of::<A>(), Schema::of::<O>()) {
            (Ok(input), Ok(output)) => (input, output.with_notes()),
            (input, output) => {
                self.errors.extend(input.err().into_iter().chain(output.err()));
                return false;
            }
        };
        let declaration = Declaration {
            name: parts.name,
            kind: parts.kind,
            input,
            output,
            streaming: S::STREAMING,
            process: S::PROCESS,
            concurrency: parts.concurrency,
            timeout: parts.timeout,
            previews: false,
        };
        self.tools.push(Tool { declaration, invoke: parts.invoke, preview: None, render: parts.render });
        true
    }
}

/// What differs between the kinds when a tool is added.
struct Parts<P> {
    name: &'static str,
    kind: ToolKind,
    concurrency: Option<Concurrency>,
    timeout: Option<Duration>,
    invoke: InvokeFn<P>,
    render: RenderFn,
}

/// A resource that was just added.
///
/// ```
/// use provider_core::prelude::*;
///
/// fn tools<P: Provider, Shown: Preview<Provider = P>, Bare: Resource<Provider = P>>(tools: &mut Tools<P>) {
///     tools.resource::<Shown>().with_preview();
///     // Without it, who approves a call sees its raw arguments.
///     tools.resource::<Bare>();
/// }
/// ```
pub struct AddedResource<'a, P, T> {
    tool: Option<&'a mut Tool<P>>,
    resource: PhantomData<T>,
}

impl<P: Provider, T: Resource<Provider = P>> AddedResource<'_, P, T> {
    /// Declares that calls of this resource can be previewed.
    pub fn with_preview(self)
    where
        T: Preview<Provider = P>,
    {
        let Some(tool) = self.tool else { return };
        tool.declaration.previews = true;
        tool.preview = Some(Box::new(|provider, value, cx| {
            Box::pin(async move { T::preview(provider, typed(value)?, &cx).await })
        }));
    }
}

/// Collects slash commands; see [`Provider::commands`].
///
/// ```
/// use provider_core::Commands;
/// use provider_core::prelude::*;
/// # struct Demo;
/// # impl Provider for Demo {
/// #     const NAME: &'static str = "demo";
/// #     const VERSION: &'static str = "0.1.0";
/// #     type Config = NoConfig;
/// #     async fn configure(_: NoConfig, _: Setup) -> Result<Self, ToolError> { Ok(Self) }
/// #     fn tools(_: &mut Tools<Self>) {}
/// # }
///
/// fn commands(commands: &mut Commands<Demo>) {
///     commands.prompt("review", "Reviews a file", "Review {file} for mistakes.");
///     commands.run("notes", "Lists the notes", "list_notes");
/// }
/// # let _ = commands;
/// ```
pub struct Commands<P> {
    pub(crate) prompts: Vec<common::PromptExpansionSpec>,
    pub(crate) direct: Vec<DirectCommand>,
    provider: PhantomData<P>,
}

/// A slash command that runs a tool.
pub(crate) struct DirectCommand {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) tool: &'static str,
}

impl<P: Provider> Commands<P> {
    /// Adds `/name`, which the kernel expands from a template with `{argument}` placeholders and sends as an
    /// ordinary message.
    pub fn prompt(&mut self, name: &str, description: &str, template: &str) {
        self.prompts.push(common::PromptExpansionSpec {
            name: name.to_owned(),
            description: description.to_owned(),
            template: template.to_owned(),
        });
    }

    /// Adds `/name`, which runs the tool called `tool` with the arguments given.
    pub fn run(&mut self, name: &str, description: &str, tool: &'static str) {
        self.direct.push(DirectCommand { name: name.to_owned(), description: description.to_owned(), tool });
    }
}

/// Why a provider cannot start: its declarations contradict themselves or the wire.
///
/// ```
/// use provider_core::Catalogue;
/// use provider_core::prelude::*;
///
/// /// A test that every provider should have: it fails before the program does, and lists everything at once.
/// fn the_declarations_can_be_served<P: Provider>() {
///     if let Err(error) = Catalogue::<P>::of() {
///         panic!("{error}");
///     }
/// }
/// ```
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("the declarations of provider {provider} cannot be served:{}", bullets(.problems))]
pub struct CatalogueError {
    provider: &'static str,
    problems: Vec<String>,
}

fn bullets(problems: &[String]) -> String {
    problems.iter().map(|problem| format!("\n- {problem}")).collect()
}

/// All that a provider declares, checked.
///
/// ```
/// use provider_core::Catalogue;
/// use provider_core::prelude::*;
/// # struct Demo;
/// # impl Provider for Demo {
/// #     const NAME: &'static str = "demo";
/// #     const VERSION: &'static str = "0.1.0";
/// #     type Config = NoConfig;
/// #     async fn configure(_: NoConfig, _: Setup) -> Result<Self, ToolError> { Ok(Self) }
/// #     fn tools(_: &mut Tools<Self>) {}
/// # }
///
/// // In a test: every contradiction of the declarations at once, and what GetSchema will answer.
/// let catalogue = Catalogue::<Demo>::of().unwrap();
/// assert_eq!(catalogue.declarations().count(), 0);
/// assert!(catalogue.to_wire().tools.is_empty());
/// ```
pub struct Catalogue<P> {
    pub(crate) tools: Vec<Tool<P>>,
    pub(crate) hooks: Hooks<P>,
    pub(crate) commands: Commands<P>,
    pub(crate) config: Schema,
    schema: pb::GetSchemaResponse,
}

impl<P: Provider> Catalogue<P> {
    /// Collects and checks the declarations of `P`.
    ///
    /// # Errors
    /// Every contradiction: a type the wire cannot carry, a missing doc comment, a name used twice.
    pub fn of() -> Result<Self, CatalogueError> {
        let mut tools = Tools { tools: Vec::new(), errors: Vec::new() };
        P::tools(&mut tools);
        let mut hooks = Hooks::new();
        P::hooks(&mut hooks);
        let mut commands = Commands { prompts: Vec::new(), direct: Vec::new(), provider: PhantomData };
        P::commands(&mut commands);

        let mut problems: Vec<String> = tools.errors.iter().map(ToString::to_string).collect();
        let mut names = BTreeSet::new();
        for tool in &tools.tools {
            let name = tool.declaration.name;
            if !names.insert(name) {
                problems.push(format!("{name}: the name is used twice"));
            }
            problems.extend(tool.declaration.problem().map(|problem| format!("{name}: {problem}")));
        }
        for command in commands.direct.iter().filter(|command| !names.contains(command.tool)) {
            problems.push(format!("/{}: there is no tool {}", command.name, command.tool));
        }
        let config = match config::schema_of::<P::Config>() {
            Ok(config) if problems.is_empty() => config,
            config => {
                problems.extend(config.err().map(|error| format!("configuration: {error}")));
                return Err(CatalogueError { provider: P::NAME, problems });
            }
        };
        let schema = pb::GetSchemaResponse {
            tools: tools.tools.iter().map(|tool| tool.declaration.to_wire()).collect(),
            slash_commands: commands.prompts.clone(),
            config_schema: Some(config::to_wire(&config)),
            supported_hook_points: hooks.points(),
        };
        Ok(Self { tools: tools.tools, hooks, commands, config, schema })
    }

    /// The declarations of the tools, in the order in which they were added.
    pub fn declarations(&self) -> impl Iterator<Item = &Declaration> {
        self.tools.iter().map(|tool| &tool.declaration)
    }

    /// The configuration's schema.
    pub fn config_schema(&self) -> &Schema {
        &self.config
    }

    /// What GetSchema answers, always the same.
    pub fn to_wire(&self) -> &pb::GetSchemaResponse {
        &self.schema
    }

    pub(crate) fn tool(&self, name: &str) -> Option<&Tool<P>> {
        self.tools.iter().find(|tool| tool.declaration.name == name)
    }

    /// The names of the tools whose results have the shape of `payload`. A provider's test shows that there is
    /// exactly one for each of its results.
    pub fn recognise(&self, payload: &Value) -> Vec<&'static str> {
        self.tools.iter().filter(|tool| tool.recognises(payload)).map(|tool| tool.declaration.name).collect()
    }
}
