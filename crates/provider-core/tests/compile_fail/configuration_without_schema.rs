use provider_core::prelude::*;

#[derive(Deserialize)]
struct Config {}

struct Demo;

impl Provider for Demo {
    const NAME: &'static str = "demo";
    const VERSION: &'static str = "0.1.0";
    type Config = Config;
    async fn configure(_: Config, _: Setup) -> Result<Self, ToolError> {
        Ok(Self)
    }
    fn tools(_: &mut Tools<Self>) {}
}

fn main() {}
