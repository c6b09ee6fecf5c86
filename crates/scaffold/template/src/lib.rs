//! The template provider.

mod tools;

use provider_core::prelude::*;

use crate::tools::greet::Greet;

/// What a configured template provider holds; all calls share it.
pub struct Template;

impl Provider for Template {
    const NAME: &'static str = "template";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Config = NoConfig;

    async fn configure(_: NoConfig, _: Setup) -> Result<Self, ToolError> {
        Ok(Self)
    }

    fn tools(tools: &mut Tools<Self>) {
        tools.data_source::<Greet>();
    }
}
