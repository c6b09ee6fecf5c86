//! The configured provider.

use codemode::providers::Providers;
use codemode::{Limits, Sandboxing};
use provider_core::prelude::*;

use crate::config::CodeConfig;
use crate::reach;
use crate::tools::execute::Execute;

/// Programs, and the tools they may call.
pub struct Code {
    pub(crate) providers: Providers,
    pub(crate) limits: Limits,
    pub(crate) sandboxing: Sandboxing,
}

impl Provider for Code {
    const NAME: &'static str = "code";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Config = CodeConfig;

    async fn configure(config: CodeConfig, setup: Setup) -> Result<Self, ToolError> {
        let (limits, sandboxing) = (config.limits(), config.sandboxing());
        Ok(Self { providers: reach::open(&config, &setup).await?, limits, sandboxing })
    }

    fn tools(tools: &mut Tools<Self>) {
        tools.resource::<Execute>().with_preview();
    }

    async fn close(&self) {
        for provider in self.providers.all() {
            provider.stop().await;
        }
    }
}
