//! The three kinds of tools, and the provider that holds them.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::call::{Cx, PreviewCx, Stream, Streaming};
use crate::config::Config;
use crate::error::ToolError;
use crate::hooks::Hooks;
use crate::registry::{Commands, Tools};
use crate::render::Node;

/// The arguments of a tool. The doc comment of the type is the tool's description, those of the fields are the
/// fields'.
///
/// ```
/// use provider_core::prelude::*;
///
/// /// Finds a word.
/// #[derive(Deserialize, JsonSchema)]
/// struct FindArgs {
///     /// The word.
///     #[schemars(extend("x-aliases" = ["term"]))]
///     word: String,
///     /// How many places are listed. Default 10.
///     #[schemars(range(min = 1, max = 100))]
///     limit: Option<u32>,
/// }
/// # fn needs<A: provider_core::Args>() {}
/// # needs::<FindArgs>();
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a tool's arguments",
    note = "derive `serde::Deserialize` and `schemars::JsonSchema` for it"
)]
pub trait Args: DeserializeOwned + JsonSchema + Send + 'static {}
#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema + Send + 'static> Args for T {}

/// The result of a tool. It can be read back, so that stored results can be rendered.
///
/// ```
/// use provider_core::prelude::*;
///
/// /// What was found.
/// #[derive(Serialize, Deserialize, JsonSchema)]
/// struct Found {
///     /// The lines, from 1.
///     lines: Vec<u32>,
///     /// Whether there are more.
///     truncated: bool,
/// }
/// # fn needs<O: provider_core::ToolOutput>() {}
/// # needs::<Found>();
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a tool's result",
    note = "derive `serde::Serialize`, `serde::Deserialize` and `schemars::JsonSchema` for it"
)]
pub trait ToolOutput: Serialize + DeserializeOwned + JsonSchema + Send + 'static {}
#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned + JsonSchema + Send + 'static> ToolOutput for T {}

/// How much harm a resource can do. There is no read-only resource.
///
/// ```
/// use provider_core::Risk;
///
/// const APPEND_TO_A_FILE: Risk = Risk::Low;
/// const REPLACE_A_FILE: Risk = Risk::Moderate;
/// const REMOVE_A_FOLDER: Risk = Risk::High;
/// # assert_ne!(APPEND_TO_A_FILE, REPLACE_A_FILE);
/// # assert_ne!(REPLACE_A_FILE, REMOVE_A_FOLDER);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Risk {
    /// Adds something that is easily removed.
    Low,
    /// Changes things that can be put back.
    Moderate,
    /// Removes things, or runs code.
    High,
    /// Acts beyond what one call shows.
    Critical,
}

/// Which calls of a provider may run at the same time.
///
/// ```
/// use provider_core::Concurrency;
///
/// // Two edits of one file run one after another, edits of two files together.
/// const EDIT: Concurrency = Concurrency::Keyed(&["path"]);
/// # assert_eq!(EDIT, Concurrency::Keyed(&["path"]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concurrency {
    /// No other call of this provider runs meanwhile.
    Exclusive,
    /// Any other call may run meanwhile.
    Shared,
    /// Calls with equal values of these arguments run one after another.
    Keyed(&'static [&'static str]),
}

/// What `configure` is told besides the configuration.
///
/// ```
/// use provider_core::jail::Roots;
/// use provider_core::{Setup, ToolError};
///
/// fn open(folder: String, setup: &Setup) -> Result<Roots, ToolError> {
///     Roots::open(&[folder], setup.directory()).map_err(|error| ToolError::invalid_arguments(error.to_string()))
/// }
/// # let _ = open;
/// ```
#[derive(Debug)]
pub struct Setup {
    pub(crate) directory: PathBuf,
}

impl Setup {
    /// The directory of the process, from which relative paths in the configuration start.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The path that a configured one means, as [`configured_path`] reads it from the process's directory.
    pub fn path(&self, configured: &str) -> PathBuf {
        configured_path(configured, &self.directory)
    }

    /// The folder for what must outlive the process: `configured`, as [`Self::path`] reads it, else
    /// [`default_state_folder`]. Nothing is created; a provider keeps its files in a folder of its own name below.
    pub fn state_folder(&self, configured: Option<&str>) -> Option<PathBuf> {
        configured.map(|configured| self.path(configured)).or_else(default_state_folder)
    }
}

/// The path that a configured one means: absolute as it is, in the home directory where it begins with `~`, else below
/// `base`. Nothing is looked up.
///
/// ```
/// use std::path::Path;
///
/// use provider_core::configured_path;
///
/// assert_eq!(configured_path("notes", Path::new("/srv")), Path::new("/srv/notes"));
/// assert_eq!(configured_path("/var/notes", Path::new("/srv")), Path::new("/var/notes"));
/// ```
pub fn configured_path(configured: &str, base: &Path) -> PathBuf {
    let in_home = configured.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
    match (in_home, std::env::home_dir()) {
        (Some(below), Some(home)) => home.join(below.trim_start_matches('/')),
        _ => base.join(configured),
    }
}

/// Where all providers of a user keep state when nothing else is configured: `pluggable-harness` below
/// `$XDG_STATE_HOME` or `~/.local/state`. `None` where there is neither.
///
/// ```
/// let folder = provider_core::default_state_folder();
/// assert!(folder.is_none_or(|folder| folder.ends_with("pluggable-harness")));
/// ```
pub fn default_state_folder() -> Option<PathBuf> {
    let below_home = || Some(std::env::home_dir().filter(|home| home.is_absolute())?.join(".local/state"));
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    Some(state.or_else(below_home)?.join("pluggable-harness"))
}

/// A provider: what it is configured with, and its tools.
///
/// The value itself is what a configured provider holds; it is shared by all calls.
///
/// ```
/// use provider_core::prelude::*;
///
/// struct Hello;
///
/// impl Provider for Hello {
///     const NAME: &'static str = "hello";
///     const VERSION: &'static str = "0.1.0";
///     type Config = NoConfig;
///
///     async fn configure(_: NoConfig, _: Setup) -> Result<Self, ToolError> {
///         Ok(Self)
///     }
///
///     fn tools(tools: &mut Tools<Self>) {
///         tools.data_source::<Greet>();
///     }
/// }
///
/// /// Greets a person by name.
/// #[derive(Deserialize, JsonSchema)]
/// struct GreetArgs {
///     /// Who is greeted.
///     name: String,
/// }
///
/// /// A greeting.
/// #[derive(Serialize, Deserialize, JsonSchema)]
/// struct Greeting {
///     /// The greeting.
///     text: String,
/// }
///
/// struct Greet;
///
/// impl DataSource for Greet {
///     const NAME: &'static str = "greet";
///     const CONCURRENCY: Concurrency = Concurrency::Shared;
///     type Provider = Hello;
///     type Args = GreetArgs;
///     type Output = Greeting;
///     type Stream = Silent;
///
///     async fn invoke(_: Arc<Hello>, args: GreetArgs, _: Cx<Silent>) -> Result<Greeting, ToolError> {
///         Ok(Greeting { text: format!("Hello, {}!", args.name) })
///     }
/// }
///
/// # let _ = provider_core::Catalogue::<Hello>::of().unwrap();
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no provider",
    note = "implement `provider_core::Provider` for it: its name, its configuration, and the list of its tools"
)]
pub trait Provider: Sized + Send + Sync + 'static {
    /// The catalog name, also the identity the kernel knows.
    const NAME: &'static str;
    /// The version, for example `env!("CARGO_PKG_VERSION")`; no leading v.
    const VERSION: &'static str;
    /// The configuration.
    type Config: Config;

    /// Where the provider comes from, as it stands in `required_providers`.
    fn source() -> String {
        format!("github.com/pluggable-harness/provider-{}", Self::NAME)
    }

    /// Checks the configuration and builds the provider. Everything that can be wrong is refused here, not at
    /// the first call. Must not need the network.
    ///
    /// # Errors
    /// What is wrong, naming the attribute.
    fn configure(config: Self::Config, setup: Setup) -> impl Future<Output = Result<Self, ToolError>> + Send;

    /// The only list of the provider's tools.
    fn tools(tools: &mut Tools<Self>);

    /// The hook points the provider subscribes to.
    fn hooks(_hooks: &mut Hooks<Self>) {}

    /// The slash commands that run one of the provider's tools, and prompt templates.
    fn commands(_commands: &mut Commands<Self>) {}

    /// Called once when the process is about to end, with all calls already ended. Bounded to one second.
    fn close(&self) -> impl Future<Output = ()> + Send {
        async {}
    }
}

/// A tool that reads and changes nothing. It runs without approval, so it has no risk to declare.
///
/// ```
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
/// /// Says what time it is.
/// #[derive(Deserialize, JsonSchema)]
/// struct Args {}
///
/// /// The time.
/// #[derive(Serialize, Deserialize, JsonSchema)]
/// struct Time {
///     /// Seconds since 1970.
///     seconds: u64,
/// }
///
/// struct Clock;
///
/// impl DataSource for Clock {
///     const NAME: &'static str = "clock";
///     const CONCURRENCY: Concurrency = Concurrency::Shared;
///     type Provider = Demo;
///     type Args = Args;
///     type Output = Time;
///     type Stream = Silent;
///
///     async fn invoke(_: Arc<Demo>, _: Args, _: Cx<Silent>) -> Result<Time, ToolError> {
///         let now = std::time::UNIX_EPOCH.elapsed().map_err(|error| ToolError::unknown(&error))?;
///         Ok(Time { seconds: now.as_secs() })
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no data source",
    note = "implement `DataSource` for a tool that only reads; one that changes something is added with \
            `tools.resource::<{Self}>()`, one that asks a person with `tools.interactive::<{Self}>()`"
)]
pub trait DataSource: Send + Sync + 'static {
    /// The tool's name: `[a-z0-9_]+`.
    const NAME: &'static str;
    /// Which calls may run at the same time.
    const CONCURRENCY: Concurrency;
    /// How long a call may take when the operator says nothing else.
    const TIMEOUT: Duration = Duration::from_secs(60);
    /// The provider this tool belongs to.
    type Provider: Provider;
    /// What the tool is called with.
    type Args: Args;
    /// What it answers.
    type Output: ToolOutput;
    /// Which events come before the answer.
    type Stream: Stream;

    /// Does the work. The returned value is the one terminal event of the call; dropping the future cancels it.
    ///
    /// # Errors
    /// What the caller is told instead of a result.
    fn invoke(
        provider: Arc<Self::Provider>,
        args: Self::Args,
        cx: Cx<Self::Stream>,
    ) -> impl Future<Output = Result<Self::Output, ToolError>> + Send;

    /// Shows a stored result. `None` shows it as JSON.
    fn render(_output: &Self::Output) -> Option<Node> {
        None
    }
}

/// A tool that changes something. It runs after approval, which rests on its kind, risk and preview.
///
/// ```
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
/// /// Writes a line.
/// #[derive(Deserialize, JsonSchema)]
/// struct Args {
///     /// The line.
///     line: String,
/// }
///
/// /// What was written.
/// #[derive(Serialize, Deserialize, JsonSchema)]
/// struct Written {
///     /// Its length in bytes.
///     bytes: usize,
/// }
///
/// struct Write;
///
/// impl Resource for Write {
///     const NAME: &'static str = "write";
///     const RISK: Risk = Risk::Low;
///     const IDEMPOTENT: bool = false;
///     const CONCURRENCY: Concurrency = Concurrency::Exclusive;
///     type Provider = Demo;
///     type Args = Args;
///     type Output = Written;
///     type Stream = Events;
///
///     async fn invoke(_: Arc<Demo>, args: Args, cx: Cx<Events>) -> Result<Written, ToolError> {
///         // … the line is written here …
///         cx.effects().record("wrote a line");
///         Ok(Written { bytes: args.line.len() })
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no resource",
    note = "implement `Resource` for a tool that changes something; one that only reads is added with \
            `tools.data_source::<{Self}>()`, one that asks a person with `tools.interactive::<{Self}>()`"
)]
pub trait Resource: Send + Sync + 'static {
    /// The tool's name: `[a-z0-9_]+`.
    const NAME: &'static str;
    /// How much harm a call can do.
    const RISK: Risk;
    /// Whether a repeated call with equal arguments leaves the same state as one call; it permits retries.
    const IDEMPOTENT: bool;
    /// Which calls may run at the same time.
    const CONCURRENCY: Concurrency;
    /// How long a call may take when the operator says nothing else.
    const TIMEOUT: Duration = Duration::from_secs(120);
    /// Whether a successful call ends the agent's turn. Only a resource can declare this.
    const TERMINATES_TURN: bool = false;
    /// The provider this tool belongs to.
    type Provider: Provider;
    /// What the tool is called with.
    type Args: Args;
    /// What it answers.
    type Output: ToolOutput;
    /// Which events come before the answer. A resource always streams: its report on cancellation is an event.
    type Stream: Streaming;

    /// Does the work. The returned value is the one terminal event of the call; dropping the future cancels it.
    /// What has been changed is recorded in [`Cx::effects`] as it happens.
    ///
    /// # Errors
    /// What the caller is told instead of a result.
    fn invoke(
        provider: Arc<Self::Provider>,
        args: Self::Args,
        cx: Cx<Self::Stream>,
    ) -> impl Future<Output = Result<Self::Output, ToolError>> + Send;

    /// Shows a stored result. `None` shows it as JSON.
    fn render(_output: &Self::Output) -> Option<Node> {
        None
    }
}

/// A resource that can show what a call would do. Declared with [`Tools::resource`]`::<T>().with_preview()`.
///
/// ```
/// use provider_core::prelude::*;
/// # struct Demo;
/// # impl Provider for Demo {
/// #     const NAME: &'static str = "demo";
/// #     const VERSION: &'static str = "0.1.0";
/// #     type Config = NoConfig;
/// #     async fn configure(_: NoConfig, _: Setup) -> Result<Self, ToolError> { Ok(Self) }
/// #     fn tools(_: &mut Tools<Self>) {}
/// # }
/// # /// Writes a line.
/// # #[derive(Deserialize, JsonSchema)]
/// # struct Args {
/// #     /// The line.
/// #     line: String,
/// # }
/// #
/// # /// What was written.
/// # #[derive(Serialize, Deserialize, JsonSchema)]
/// # struct Written {
/// #     /// Its length in bytes.
/// #     bytes: usize,
/// # }
/// #
/// # struct Write;
/// #
/// # impl Resource for Write {
/// #     const NAME: &'static str = "write";
/// #     const RISK: Risk = Risk::Low;
/// #     const IDEMPOTENT: bool = false;
/// #     const CONCURRENCY: Concurrency = Concurrency::Exclusive;
/// #     type Provider = Demo;
/// #     type Args = Args;
/// #     type Output = Written;
/// #     type Stream = Events;
/// #
/// #     async fn invoke(_: Arc<Demo>, args: Args, cx: Cx<Events>) -> Result<Written, ToolError> {
/// #         // … the line is written here …
/// #         cx.effects().record("wrote a line");
/// #         Ok(Written { bytes: args.line.len() })
/// #     }
/// # }
///
/// impl Preview for Write {
///     async fn preview(_: Arc<Demo>, args: Args, _: &PreviewCx) -> Result<Node, ToolError> {
///         Ok(Node::text(format!("write {}", args.line)))
///     }
/// }
///
/// fn tools(tools: &mut Tools<Demo>) {
///     tools.resource::<Write>().with_preview();
/// }
/// # let _ = tools;
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no preview",
    note = "implement `Preview` for it, to show what a call would do; or leave `.with_preview()` out, and the raw \
            arguments are shown"
)]
pub trait Preview: Resource {
    /// Shows exactly what [`Resource::invoke`] would do, and changes nothing.
    ///
    /// # Errors
    /// Why the call would fail.
    fn preview(
        provider: Arc<Self::Provider>,
        args: Self::Args,
        cx: &PreviewCx,
    ) -> impl Future<Output = Result<Node, ToolError>> + Send;
}

/// A tool that asks a person. It changes nothing, runs strictly one at a time, and is answered by a frontend.
///
/// ```
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
/// /// Asks a person for a name.
/// #[derive(Deserialize, JsonSchema)]
/// struct Args {
///     /// What is asked.
///     question: String,
/// }
///
/// /// What was answered.
/// #[derive(Serialize, Deserialize, JsonSchema)]
/// struct Answer {
///     /// The answer.
///     answer: String,
/// }
///
/// struct AskName;
///
/// impl Interactive for AskName {
///     const NAME: &'static str = "ask_name";
///     type Provider = Demo;
///     type Args = Args;
///     type Output = Answer;
///
///     async fn invoke(_: Arc<Demo>, args: Args, _: Cx<Silent>) -> Result<Answer, ToolError> {
///         Err(ToolError::new(Code::NoHuman, format!("nobody is there to answer: {}", args.question)))
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no interactive tool",
    note = "implement `Interactive` for a tool that asks a person; one that only reads is added with \
            `tools.data_source::<{Self}>()`, one that changes something with `tools.resource::<{Self}>()`"
)]
pub trait Interactive: Send + Sync + 'static {
    /// The tool's name: `[a-z0-9_]+`.
    const NAME: &'static str;
    /// The provider this tool belongs to.
    type Provider: Provider;
    /// What the tool is called with.
    type Args: Args;
    /// What it answers; a frontend fills it.
    type Output: ToolOutput;

    /// Called only by hosts without a frontend.
    ///
    /// # Errors
    /// `no_human`, where nobody can answer.
    fn invoke(
        provider: Arc<Self::Provider>,
        args: Self::Args,
        cx: Cx<crate::Silent>,
    ) -> impl Future<Output = Result<Self::Output, ToolError>> + Send;

    /// Shows a stored result. `None` shows it as JSON.
    fn render(_output: &Self::Output) -> Option<Node> {
        None
    }
}
