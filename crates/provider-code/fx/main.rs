//! A provider with small tools, for the tests of code mode to call.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs::OpenOptions;
use std::io::Write as _;
use std::time::Duration;

use provider_core::prelude::*;

fn main() -> std::process::ExitCode {
    provider_core::run::<Fx>()
}

/// Where calls are written down.
#[derive(Deserialize, JsonSchema)]
struct FxConfig {
    /// The file that every call writes a line to when it begins and when it ends.
    log: String,
}

struct Fx {
    log: String,
}

impl Fx {
    fn write(&self, line: &str) {
        let mut log = OpenOptions::new().create(true).append(true).open(&self.log).unwrap();
        writeln!(log, "{line}").unwrap();
    }

    async fn during(&self, what: &str, ms: u64) {
        self.write(&format!("begin {what}"));
        tokio::time::sleep(Duration::from_millis(ms)).await;
        self.write(&format!("end {what}"));
    }
}

impl Provider for Fx {
    const NAME: &'static str = "fx";
    const VERSION: &'static str = "0.1.0";
    type Config = FxConfig;

    async fn configure(config: FxConfig, _: Setup) -> Result<Self, ToolError> {
        Ok(Self { log: config.log })
    }

    fn tools(tools: &mut Tools<Self>) {
        tools.data_source::<Echo>();
        tools.data_source::<Keyed>();
        tools.data_source::<Exclusive>();
        tools.resource::<Change>().with_preview();
        tools.interactive::<Ask>();
    }
}

/// A text, and how long to take.
#[derive(Deserialize, JsonSchema)]
struct Args {
    /// The text.
    text: String,
    /// Milliseconds.
    #[serde(default)]
    ms: u64,
}

/// The text again.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Said {
    /// The text.
    text: String,
}

struct Echo;

impl DataSource for Echo {
    const NAME: &'static str = "echo";
    const CONCURRENCY: Concurrency = Concurrency::Shared;
    type Provider = Fx;
    type Args = Args;
    type Output = Said;
    type Stream = Silent;

    async fn invoke(fx: Arc<Fx>, args: Args, cx: Cx<Silent>) -> Result<Said, ToolError> {
        match args.text.as_str() {
            "boom" => Err(ToolError::execution_failed("boom!")),
            "where" => Ok(Said { text: format!("{} {}", cx.session_id(), cx.working_directory().display()) }),
            "id" => Ok(Said { text: cx.call_id().to_owned() }),
            _ => {
                fx.during(&args.text, args.ms).await;
                Ok(Said { text: args.text })
            }
        }
    }
}

struct Keyed;

impl DataSource for Keyed {
    const NAME: &'static str = "keyed";
    const CONCURRENCY: Concurrency = Concurrency::Keyed(&["text"]);
    type Provider = Fx;
    type Args = Args;
    type Output = Said;
    type Stream = Silent;

    async fn invoke(fx: Arc<Fx>, args: Args, _: Cx<Silent>) -> Result<Said, ToolError> {
        fx.during(&args.text, args.ms).await;
        Ok(Said { text: args.text })
    }
}

struct Exclusive;

impl DataSource for Exclusive {
    const NAME: &'static str = "exclusive";
    const CONCURRENCY: Concurrency = Concurrency::Exclusive;
    type Provider = Fx;
    type Args = Args;
    type Output = Said;
    type Stream = Silent;

    async fn invoke(fx: Arc<Fx>, args: Args, _: Cx<Silent>) -> Result<Said, ToolError> {
        fx.during(&args.text, args.ms).await;
        Ok(Said { text: args.text })
    }
}

struct Change;

impl Resource for Change {
    const NAME: &'static str = "change";
    const RISK: Risk = Risk::Low;
    const IDEMPOTENT: bool = false;
    const CONCURRENCY: Concurrency = Concurrency::Shared;
    type Provider = Fx;
    type Args = Args;
    type Output = Said;
    type Stream = Events;

    async fn invoke(fx: Arc<Fx>, args: Args, cx: Cx<Events>) -> Result<Said, ToolError> {
        if args.ms == 0 {
            fx.write(&format!("change {}", args.text));
            return Ok(Said { text: args.text });
        }
        fx.write(&format!("begin {}", args.text));
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(args.ms)) => fx.write(&format!("end {}", args.text)),
            () = cx.cancelled() => {
                fx.write(&format!("cancelled {}", args.text));
                return Err(ToolError::cancelled());
            }
        }
        Ok(Said { text: args.text })
    }
}

impl Preview for Change {
    async fn preview(fx: Arc<Fx>, args: Args, _: &PreviewCx) -> Result<Node, ToolError> {
        fx.write(&format!("preview {}", args.text));
        Ok(Node::text(format!("would change {}", args.text)))
    }
}

/// A question.
#[derive(Deserialize, JsonSchema)]
struct Question {
    /// What is asked.
    question: String,
}

/// The answer.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Answered {
    /// The answer.
    answer: String,
}

struct Ask;

impl Interactive for Ask {
    const NAME: &'static str = "ask";
    type Provider = Fx;
    type Args = Question;
    type Output = Answered;

    async fn invoke(_: Arc<Fx>, args: Question, _: Cx<Silent>) -> Result<Answered, ToolError> {
        Err(ToolError::new(Code::NoHuman, format!("nobody is there to answer: {}", args.question)))
    }
}
