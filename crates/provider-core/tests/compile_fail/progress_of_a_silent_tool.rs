use provider_core::prelude::*;

struct Demo;

impl Provider for Demo {
    const NAME: &'static str = "demo";
    const VERSION: &'static str = "0.1.0";
    type Config = NoConfig;
    async fn configure(_: NoConfig, _: Setup) -> Result<Self, ToolError> {
        Ok(Self)
    }
    fn tools(_: &mut Tools<Self>) {}
}

/// Nothing.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Nothing {}

struct Wrong;

impl DataSource for Wrong {
    const NAME: &'static str = "wrong";
    const CONCURRENCY: Concurrency = Concurrency::Shared;
    type Provider = Demo;
    type Args = Nothing;
    type Output = Nothing;
    type Stream = Silent;
    async fn invoke(_: Arc<Demo>, _: Nothing, cx: Cx<Silent>) -> Result<Nothing, ToolError> {
        cx.progress("half", Some(0.5)).await;
        Ok(Nothing {})
    }
}

fn main() {}
