//! The user provider: asks a person.
//!
//! A provider has no way to a person. The agent's frontend, or the host, shows the question and fills the result;
//! this provider declares what a question is and refuses one that reaches it, because then nobody is there.

mod tools;

use provider_core::prelude::*;

use crate::tools::ask_user::AskUser;

/// The person at the agent.
#[derive(Debug)]
pub struct User;

impl Provider for User {
    const NAME: &'static str = "user";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Config = NoConfig;

    async fn configure(_: NoConfig, _: Setup) -> Result<Self, ToolError> {
        Ok(Self)
    }

    fn tools(tools: &mut Tools<Self>) {
        tools.interactive::<AskUser>();
    }
}
