//! `toolctl mcp`: the tools of the session for any agent that speaks the Model Context Protocol.

use std::net::SocketAddr;
use std::sync::Arc;

use mcp_bridge::{Access, Bridge, McpServer, Setting, Toolbox, View, serve_http, serve_stdio};
use provider_code::Code;
use provider_core::Provider as _;
use serde_json::json;
use tool_host::catalogue::Kind;
use tool_host::people::{ApproveAll, NoAnswers};
use tool_host::{Host, Provider, Source};

use crate::cli::{Mcp, RefusedKind, ToolsView};
use crate::embedded;
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::open::{Setup, policy};
use crate::shell::Shell;

/// The variable that sets the token of the HTTP server; otherwise it is a random one.
const TOKEN_VARIABLE: &str = "TOOLCTL_MCP_TOKEN";

pub(super) async fn run(args: Mcp, shell: &Shell, interrupts: &mut Interrupts) -> Result<Exit, Failure> {
    super::verbosity(args.shared.verbose, shell);
    if args.shared.answers.is_some() {
        return Err(Failure::wrong_usage("--answers: here the client is asked, in a form that it shows"));
    }
    let toolbox = interrupts.guard(open(&args, shell)).await?;
    let served = match bridge(&args, &toolbox) {
        Ok(bridge) => serve(&args, &bridge, shell, interrupts).await,
        Err(failure) => Err(failure),
    };
    toolbox.stop().await;
    served
}

/// Starts whatever has tools.
async fn open(args: &Mcp, shell: &Shell) -> Result<Toolbox, Failure> {
    let setup = Setup::new(&args.shared)?;
    let mut host = Host::new(Arc::new(ApproveAll), Arc::new(NoAnswers { hint: "ask through the client" }));
    if let Some(path) = &args.shared.policy {
        host = host.under(policy(path)?);
    }
    let providers = providers(args, &setup, shell).await?;
    let sources = match servers(args, &setup).await {
        Ok(sources) => sources,
        Err(failure) => {
            stop(&providers).await;
            return Err(failure);
        }
    };
    let setting = Setting {
        session: setup.session.clone(),
        working_directory: setup.working_directory.clone(),
        timeout: args.shared.timeout,
        refused: args.refused().map(Kind::from).collect(),
    };
    match Toolbox::new(host, providers.clone(), sources, setting) {
        Ok(toolbox) => Ok(toolbox),
        Err(error) => {
            stop(&providers).await;
            Err(Failure::wrong_usage(error.to_string()))
        }
    }
}

async fn stop(providers: &[Provider]) {
    for provider in providers {
        provider.stop().await;
    }
}

/// The providers that were named, or those of the catalog; of these, the ones that cannot be used are left out, with a
/// warning. The code provider is this command itself.
async fn providers(args: &Mcp, setup: &Setup, shell: &Shell) -> Result<Vec<Provider>, Failure> {
    if args.providers.iter().any(|name| name == Code::NAME) {
        return Err(Failure::wrong_usage(
            "--provider code: programs are what --tools code serves; name the providers that they may call",
        ));
    }
    if !args.providers.is_empty() {
        return setup.open_all(&args.providers, shell).await;
    }
    if args.servers_only {
        return Ok(Vec::new());
    }
    let names = embedded::names().filter(|name| *name != Code::NAME);
    setup.open_usable(names, shell).await
}

async fn servers(args: &Mcp, setup: &Setup) -> Result<Vec<Source>, Failure> {
    let mut sources: Vec<Source> = Vec::new();
    for given in &args.servers {
        let server = McpServer::new(given.name.clone(), given.command.iter().map(String::as_str))
            .in_directory(&setup.working_directory);
        match server.start().await {
            Ok(source) => sources.push(source),
            Err(error) => {
                for source in &sources {
                    source.stop().await;
                }
                return Err(Failure::provider(error.to_string()));
            }
        }
    }
    Ok(sources)
}

fn bridge(args: &Mcp, toolbox: &Toolbox) -> Result<Bridge, Failure> {
    let view = match args.tools {
        ToolsView::Code => {
            View::Code { limits: codemode::Limits::default(), sandboxing: codemode::Sandboxing::default() }
        }
        ToolsView::Separate => View::Separate { structured: args.structured },
    };
    Bridge::new(toolbox.clone(), view, "toolctl", env!("CARGO_PKG_VERSION"))
        .map_err(|error| Failure::provider(format!("there are no random numbers: {error}")))
}

async fn serve(
    args: &Mcp,
    bridge: &Bridge,
    shell: &Shell,
    interrupts: &mut Interrupts,
) -> Result<Exit, Failure> {
    match args.http {
        Some(address) => over_http(address, bridge, shell, interrupts).await,
        None => over_stdio(bridge, interrupts).await,
    }
}

async fn over_stdio(bridge: &Bridge, interrupts: &mut Interrupts) -> Result<Exit, Failure> {
    let serving = serve_stdio(bridge);
    tokio::pin!(serving);
    let served = tokio::select! {
        served = &mut serving => served,
        () = interrupts.next() => {
            bridge.close();
            serving.await
        }
    };
    served.map(|()| Exit::Done).map_err(|error| Failure::provider(error.to_string()))
}

async fn over_http(
    address: SocketAddr,
    bridge: &Bridge,
    shell: &Shell,
    interrupts: &mut Interrupts,
) -> Result<Exit, Failure> {
    let access = match std::env::var(TOKEN_VARIABLE) {
        Ok(token) if !token.trim().is_empty() => Access::Token(token.trim().to_owned()),
        _ => Access::random()
            .map_err(|error| Failure::provider(format!("there are no random numbers: {error}")))?,
    };
    let mut serving = serve_http(bridge, address, access.clone())
        .await
        .map_err(|error| Failure::wrong_usage(format!("--http: {error}")))?;
    let mut ready = json!({ "url": serving.url() });
    if let Access::Token(token) = access {
        ready["token"] = token.into();
    }
    shell.json_line(&ready);
    tokio::select! {
        ended = serving.ended() => ended.map(|()| Exit::Done).map_err(|error| Failure::provider(error.to_string())),
        () = interrupts.next() => {
            serving.stop().await;
            Ok(Exit::Done)
        }
    }
}

impl From<RefusedKind> for Kind {
    fn from(kind: RefusedKind) -> Self {
        match kind {
            RefusedKind::Resource => Self::Resource,
            RefusedKind::DataSource => Self::DataSource,
            RefusedKind::Interactive => Self::Interactive,
        }
    }
}
