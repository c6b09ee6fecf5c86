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

/// Holds a secret.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Leak {
    /// The key.
    key: provider_core::Secret,
}

fn main() {}
