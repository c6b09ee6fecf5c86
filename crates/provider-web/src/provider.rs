//! The configured provider.

use provider_core::prelude::*;

/// The web, as far as the configuration lets it be reached.
pub struct Web {}

/// Configuration of the web provider.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct WebConfig {}

impl Provider for Web {
    const NAME: &'static str = "web";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Config = WebConfig;

    async fn configure(_: WebConfig, _: Setup) -> Result<Self, ToolError> {
        Ok(Self {})
    }

    fn tools(_: &mut Tools<Self>) {}
}
