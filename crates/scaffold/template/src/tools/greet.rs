//! `greet`: says hello.

use provider_core::prelude::*;

use crate::Template;

/// Greets a person by name.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct GreetArgs {
    /// Who is greeted.
    name: String,
}

/// A greeting.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Greeting {
    /// The greeting.
    text: String,
}

pub(crate) struct Greet;

impl DataSource for Greet {
    const NAME: &'static str = "greet";
    const CONCURRENCY: Concurrency = Concurrency::Shared;
    type Provider = Template;
    type Args = GreetArgs;
    type Output = Greeting;
    type Stream = Silent;

    async fn invoke(_: Arc<Template>, args: GreetArgs, _: Cx<Silent>) -> Result<Greeting, ToolError> {
        Ok(Greeting { text: format!("Hello, {}!", args.name) })
    }
}
