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

#[derive(Deserialize)]
struct Plain {}

impl DataSource for Wrong {
    const NAME: &'static str = "wrong";
    const CONCURRENCY: Concurrency = Concurrency::Shared;
    type Provider = Demo;
    type Args = Plain;
    type Output = Nothing;
    type Stream = Silent;
    async fn invoke(_: Arc<Demo>, _: Plain, _: Cx<Silent>) -> Result<Nothing, ToolError> {
        Ok(Nothing {})
    }
}

fn main() {}
