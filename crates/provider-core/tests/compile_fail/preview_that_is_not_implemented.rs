use provider_core::prelude::*;

struct Demo;

impl Provider for Demo {
    const NAME: &'static str = "demo";
    const VERSION: &'static str = "0.1.0";
    type Config = NoConfig;
    async fn configure(_: NoConfig, _: Setup) -> Result<Self, ToolError> {
        Ok(Self)
    }
    fn tools(tools: &mut Tools<Self>) {
        tools.resource::<Wrong>().with_preview();
    }
}

/// Nothing.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Nothing {}

struct Wrong;

impl Resource for Wrong {
    const NAME: &'static str = "wrong";
    const RISK: Risk = Risk::Low;
    const IDEMPOTENT: bool = true;
    const CONCURRENCY: Concurrency = Concurrency::Shared;
    type Provider = Demo;
    type Args = Nothing;
    type Output = Nothing;
    type Stream = Events;
    async fn invoke(_: Arc<Demo>, _: Nothing, _: Cx<Events>) -> Result<Nothing, ToolError> {
        Ok(Nothing {})
    }
}

fn main() {}
