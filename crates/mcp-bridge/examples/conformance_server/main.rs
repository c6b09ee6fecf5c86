//! A server for the official conformance suite: our bridge over the tools that the suite calls.
//!
//! Serves HTTP on a free port and prints where, or the protocol on stdio with `--stdio`; ends with its standard input.
//! `--structured` and `--code` choose the view. Never installed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod asking;
mod content;

use std::process::ExitCode;
use std::sync::Arc;

use mcp_bridge::{Access, Bridge, Setting, Toolbox, View, serve_http, serve_stdio};
use tokio::io::AsyncReadExt as _;
use tool_host::people::{ApproveAll, NoAnswers};
use tool_host::{EMBEDDED_ARGUMENT, Host, LaunchOptions, Object, Provider, ProviderSource, Source};

fn main() -> ExitCode {
    // The sandbox of a program.
    if let Some(code) = codemode::run_if_asked() {
        return code;
    }
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|first| first == EMBEDDED_ARGUMENT) {
        return provider_core::run::<asking::Asking>();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(serve(&arguments[1..]));
    runtime.shutdown_background();
    ExitCode::SUCCESS
}

async fn serve(flags: &[String]) {
    let has = |flag: &str| flags.iter().any(|given| given == flag);
    let program = std::env::current_exe().unwrap();
    let asking = ProviderSource::Embedded { program, name: "asking".to_owned() };
    let asking = Provider::launch(&asking, LaunchOptions::default()).await.unwrap();
    asking.configure(Object::new()).await.unwrap();
    let content = Source::new("content", "1.0.0", "", content::Content::default());
    let host = Host::new(Arc::new(ApproveAll), Arc::new(NoAnswers { hint: "ask the client" }));
    let toolbox = Toolbox::new(host, vec![asking], vec![content], Setting::default()).unwrap();
    let view = match has("--code") {
        true => {
            View::Code { limits: codemode::Limits::default(), sandboxing: codemode::Sandboxing::default() }
        }
        false => View::Separate { structured: has("--structured") },
    };
    let bridge = Bridge::new(toolbox.clone(), view, "conformance-server", "1.0.0").unwrap();
    if has("--stdio") {
        serve_stdio(&bridge).await.unwrap();
    } else {
        let serving = serve_http(&bridge, "127.0.0.1:0".parse().unwrap(), Access::Open).await.unwrap();
        println!("{}", serving.url());
        let mut rest = Vec::new();
        let _ = tokio::io::stdin().read_to_end(&mut rest).await;
        serving.stop().await;
    }
    toolbox.stop().await;
}
