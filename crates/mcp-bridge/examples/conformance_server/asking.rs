//! The tools that ask a person, as a provider.

use std::sync::Arc;

use provider_core::prelude::*;

pub(crate) struct Asking;

/// Nothing to configure.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Config {}

impl Provider for Asking {
    const NAME: &'static str = "asking";
    const VERSION: &'static str = "1.0.0";
    type Config = Config;

    async fn configure(_: Config, _: Setup) -> Result<Self, ToolError> {
        Ok(Self)
    }

    fn tools(tools: &mut Tools<Self>) {
        tools.interactive::<Elicitation>();
        tools.interactive::<Defaults>();
        tools.interactive::<Enums>();
        tools.interactive::<InputRequired>();
        tools.interactive::<RequestState>();
        tools.interactive::<TamperedState>();
        tools.interactive::<Capabilities>();
    }
}

/// Asks what it is told to ask.
#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "the host shows it; the tool is never invoked")]
struct Message {
    /// What is asked.
    message: String,
}

/// Asks the same thing always.
#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// What the person said.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Name {
    /// Who they are.
    user_name: String,
}

/// What the person said.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Confirmed {
    /// Whether they agree.
    confirm: String,
}

/// A tool that is never invoked: the host fills its result.
macro_rules! asks {
    ($tool:ident, $name:literal, $args:ty, $output:ty) => {
        struct $tool;

        impl Interactive for $tool {
            const NAME: &'static str = $name;
            type Provider = Asking;
            type Args = $args;
            type Output = $output;

            async fn invoke(_: Arc<Asking>, _: $args, _: Cx<Silent>) -> Result<$output, ToolError> {
                Err(ToolError::new(Code::NoHuman, "nobody is there to answer"))
            }
        }
    };
}

asks!(Elicitation, "test_elicitation", Message, Name);
asks!(Defaults, "test_elicitation_sep1034_defaults", Nothing, Name);
asks!(Enums, "test_elicitation_sep1330_enums", Nothing, Name);
asks!(InputRequired, "test_input_required_result_elicitation", Nothing, Name);
asks!(RequestState, "test_input_required_result_request_state", Nothing, Confirmed);
asks!(TamperedState, "test_input_required_result_tampered_state", Nothing, Confirmed);
asks!(Capabilities, "test_input_required_result_capabilities", Nothing, Name);
