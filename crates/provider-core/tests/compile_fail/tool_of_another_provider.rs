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
        tools.data_source::<Wrong>();
    }
}

/// Nothing.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Nothing {}

struct Wrong;

struct Other;

impl Provider for Other {
    const NAME: &'static str = "other";
    const VERSION: &'static str = "0.1.0";
    type Config = NoConfig;
    async fn configure(_: NoConfig, _: Setup) -> Result<Self, ToolError> {
        Ok(Self)
    }
    fn tools(_: &mut Tools<Self>) {}
}

impl DataSource for Wrong {
    const NAME: &'static str = "wrong";
    const CONCURRENCY: Concurrency = Concurrency::Shared;
    type Provider = Other;
    type Args = Nothing;
    type Output = Nothing;
    type Stream = Silent;
    async fn invoke(_: Arc<Other>, _: Nothing, _: Cx<Silent>) -> Result<Nothing, ToolError> {
        Ok(Nothing {})
    }
}

fn main() {}
