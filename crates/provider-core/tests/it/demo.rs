//! A provider whose tools do one thing each that the SDK must handle.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use provider_core::prelude::*;
use provider_core::{Commands, HookPoint, Hooks, Secret, Verdict, VetoPoint};

/// How the demo is configured.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct DemoConfig {
    /// A secret that tools try to tell.
    key: Option<Secret>,
    /// How far the counter goes.
    #[serde(default = "three")]
    #[schemars(range(min = 1, max = 1000))]
    steps: u32,
}

fn three() -> u32 {
    3
}

pub(crate) struct Demo {
    key: Option<Secret>,
    steps: u32,
    pub(crate) observed: AtomicUsize,
}

impl Provider for Demo {
    const NAME: &'static str = "demo";
    const VERSION: &'static str = "1.2.3";
    type Config = DemoConfig;

    async fn configure(config: DemoConfig, _: Setup) -> Result<Self, ToolError> {
        if config.steps == 13 {
            return Err(ToolError::invalid_arguments("steps: 13 brings bad luck; choose another number"));
        }
        Ok(Self { key: config.key, steps: config.steps, observed: AtomicUsize::new(0) })
    }

    fn tools(tools: &mut Tools<Self>) {
        tools.data_source::<Echo>();
        tools.data_source::<Panics>();
        tools.data_source::<Leaks>();
        tools.data_source::<Lies>();
        tools.data_source::<Observed>();
        tools.data_source::<AsksKernel>();
        tools.resource::<Count>().with_preview();
        tools.resource::<Sleepy>();
        tools.resource::<Runs>();
        tools.interactive::<Ask>();
    }

    fn hooks(hooks: &mut Hooks<Self>) {
        hooks.observe(HookPoint::PostToolCall, |demo: Arc<Self>, _| async move {
            demo.observed.fetch_add(1, Ordering::Relaxed);
        });
        hooks.veto(VetoPoint::PreToolCall, |_, event| async move {
            match event {
                provider_core::HookEvent::PreToolCall(call) if call.tool == "forbidden" => Verdict::Deny,
                _ => Verdict::Allow,
            }
        });
        hooks.transform_model_call(|_, mut call| async move {
            call.push_user_text("be brief");
            call
        });
    }

    fn commands(commands: &mut Commands<Self>) {
        commands.prompt("explain", "Explains a file.", "Explain {file}.");
        commands.run("echo", "Says it back.", "echo");
    }
}

/// Says back what it is told.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct EchoArgs {
    /// The text.
    #[schemars(extend("x-aliases" = ["message"]))]
    text: String,
    /// How often.
    #[schemars(range(min = 1, max = 9))]
    times: Option<u32>,
}

/// What was said.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Echoed {
    /// The text.
    text: String,
    /// Absent unless asked for.
    times: Option<u32>,
}

struct Echo;
impl DataSource for Echo {
    const NAME: &'static str = "echo";
    const CONCURRENCY: Concurrency = Concurrency::Shared;
    type Provider = Demo;
    type Args = EchoArgs;
    type Output = Echoed;
    type Stream = Silent;
    async fn invoke(_: Arc<Demo>, args: EchoArgs, cx: Cx<Silent>) -> Result<Echoed, ToolError> {
        tracing::info!(length = args.text.len(), "echoing in {}", cx.session_id());
        Ok(Echoed { text: args.text, times: args.times })
    }
}

/// No arguments.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct NoArgs {}

/// One text.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Text {
    /// The text.
    said: String,
}

struct Panics;
impl DataSource for Panics {
    const NAME: &'static str = "panics";
    const CONCURRENCY: Concurrency = Concurrency::Shared;
    type Provider = Demo;
    type Args = NoArgs;
    type Output = Text;
    type Stream = Silent;
    async fn invoke(_: Arc<Demo>, _: NoArgs, cx: Cx<Silent>) -> Result<Text, ToolError> {
        cx.blocking(|| panic!("the tool is broken")).await
    }
}

struct Leaks;
impl DataSource for Leaks {
    const NAME: &'static str = "leaks";
    const CONCURRENCY: Concurrency = Concurrency::Shared;
    type Provider = Demo;
    type Args = NoArgs;
    type Output = Text;
    type Stream = Silent;
    async fn invoke(demo: Arc<Demo>, _: NoArgs, _: Cx<Silent>) -> Result<Text, ToolError> {
        let key = demo.key.as_ref().map(|key| key.reveal().to_owned()).unwrap_or_default();
        tracing::warn!(%key, "the key is {key}");
        Err(ToolError::execution_failed(format!("401 for {key}")).with_detail("key", key))
    }
}

/// A number that must be there.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Lie {
    /// A number. JSON has none for what the tool returns.
    number: f64,
}

struct Lies;
impl DataSource for Lies {
    const NAME: &'static str = "lies";
    const CONCURRENCY: Concurrency = Concurrency::Shared;
    type Provider = Demo;
    type Args = NoArgs;
    type Output = Lie;
    type Stream = Silent;
    async fn invoke(_: Arc<Demo>, _: NoArgs, _: Cx<Silent>) -> Result<Lie, ToolError> {
        Ok(Lie { number: f64::NAN })
    }
}

/// How many hooks were observed.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Seen {
    /// The number.
    observed: usize,
}

struct Observed;
impl DataSource for Observed {
    const NAME: &'static str = "observed";
    const CONCURRENCY: Concurrency = Concurrency::Shared;
    type Provider = Demo;
    type Args = NoArgs;
    type Output = Seen;
    type Stream = Silent;
    async fn invoke(demo: Arc<Demo>, _: NoArgs, _: Cx<Silent>) -> Result<Seen, ToolError> {
        Ok(Seen { observed: demo.observed.load(Ordering::Relaxed) })
    }
}

struct AsksKernel;
impl DataSource for AsksKernel {
    const NAME: &'static str = "asks_kernel";
    const CONCURRENCY: Concurrency = Concurrency::Shared;
    type Provider = Demo;
    type Args = NoArgs;
    type Output = Text;
    type Stream = Silent;
    async fn invoke(_: Arc<Demo>, _: NoArgs, cx: Cx<Silent>) -> Result<Text, ToolError> {
        let kernel = cx.kernel();
        let session = kernel.session().await.map(|session| session.profile);
        let config = kernel.config().await.map(|config| config.to_string());
        let child = kernel.run_session(provider_core::SubSession::default()).await.map(|end| end.text);
        let emitted = kernel
            .emit(provider_core::EmittedKind::MemoryWrite, vec![1])
            .await
            .map(|()| "emitted".to_owned());
        let told =
            [session, config, child, emitted].map(|answer| answer.unwrap_or_else(|error| error.to_string()));
        Ok(Text { said: told.join("; ") })
    }
}

/// Counts slowly, and records each step.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct CountArgs {
    /// Milliseconds between steps.
    #[schemars(range(min = 0, max = 60_000))]
    pause_ms: u64,
}

/// Where the count ended.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Counted {
    /// The last number.
    last: u32,
}

struct Count;
impl Resource for Count {
    const NAME: &'static str = "count";
    const RISK: Risk = Risk::Low;
    const IDEMPOTENT: bool = false;
    const CONCURRENCY: Concurrency = Concurrency::Keyed(&["pause_ms"]);
    const TERMINATES_TURN: bool = true;
    type Provider = Demo;
    type Args = CountArgs;
    type Output = Counted;
    type Stream = Events;
    async fn invoke(demo: Arc<Demo>, args: CountArgs, cx: Cx<Events>) -> Result<Counted, ToolError> {
        provider_core::ensure_as_previewed(&cx, &args.pause_ms.to_string())?;
        for step in 1..=demo.steps {
            tokio::time::sleep(Duration::from_millis(args.pause_ms)).await;
            cx.effects().record(format!("counted {step}"));
            cx.progress(format!("step {step}"), Some(f64::from(step) / f64::from(demo.steps))).await;
        }
        Ok(Counted { last: demo.steps })
    }
}

impl Preview for Count {
    async fn preview(demo: Arc<Demo>, args: CountArgs, cx: &PreviewCx) -> Result<Node, ToolError> {
        cx.remember(args.pause_ms.to_string());
        Ok(Node::text(format!("would count to {}", demo.steps)))
    }
}

/// Watches for the stop, and needs a moment to end.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct SleepyArgs {}

struct Sleepy;
impl Resource for Sleepy {
    const NAME: &'static str = "sleepy";
    const RISK: Risk = Risk::Low;
    const IDEMPOTENT: bool = true;
    const CONCURRENCY: Concurrency = Concurrency::Shared;
    type Provider = Demo;
    type Args = SleepyArgs;
    type Output = Counted;
    type Stream = Events;
    async fn invoke(_: Arc<Demo>, _: SleepyArgs, cx: Cx<Events>) -> Result<Counted, ToolError> {
        cx.progress("sleeping", None).await;
        cx.cancelled().await;
        cx.effects().record("woke up");
        cx.progress("tidied up", None).await;
        Err(ToolError::cancelled())
    }
}

/// Pretends to run a program.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct RunsArgs {}

struct Runs;
impl Resource for Runs {
    const NAME: &'static str = "runs";
    const RISK: Risk = Risk::High;
    const IDEMPOTENT: bool = false;
    const CONCURRENCY: Concurrency = Concurrency::Exclusive;
    type Provider = Demo;
    type Args = RunsArgs;
    type Output = Text;
    type Stream = Process;
    async fn invoke(_: Arc<Demo>, _: RunsArgs, cx: Cx<Process>) -> Result<Text, ToolError> {
        cx.chunk(Output::Stdout, "out\n").await;
        cx.chunk(Output::Stderr, "err\n").await;
        cx.exit_status(143, Some("SIGTERM".to_owned())).await;
        cx.exit_status(0, None).await;
        Ok(Text { said: "done".to_owned() })
    }
}

/// Asks a person.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct AskArgs {
    /// The question.
    #[allow(dead_code)]
    question: String,
}

struct Ask;
impl Interactive for Ask {
    const NAME: &'static str = "ask";
    type Provider = Demo;
    type Args = AskArgs;
    type Output = Text;
    async fn invoke(_: Arc<Demo>, _: AskArgs, _: Cx<Silent>) -> Result<Text, ToolError> {
        Err(ToolError::new(Code::NoHuman, "nobody is here to answer; go on without"))
    }
}
