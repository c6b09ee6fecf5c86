//! `toolctl list`: what there is.

use serde_json::{Value, json};
use tool_host::catalogue::FORMAT_VERSION;
use tool_host::{LaunchOptions, Provider};

use crate::cli::List;
use crate::embedded;
use crate::exit::{Exit, Failure};
use crate::paint::Table;
use crate::shell::Shell;

pub(super) async fn run(args: List, shell: &Shell) -> Result<Exit, Failure> {
    let names = match args.providers.as_slice() {
        [] => embedded::names().map(str::to_owned).collect(),
        given => given.to_vec(),
    };
    let mut providers = Vec::with_capacity(names.len());
    for name in &names {
        let options = LaunchOptions { notices: shell.notices(), ..LaunchOptions::default() };
        providers.push(Provider::launch(&embedded::source(name)?, options).await?);
    }
    if shell.json() {
        let providers: Vec<Value> = providers.iter().map(to_json).collect();
        shell.json_document(&json!({"format_version": FORMAT_VERSION, "providers": providers}));
    } else {
        shell.data(&to_text(&providers, shell));
    }
    for provider in providers {
        provider.stop().await;
    }
    Ok(Exit::Done)
}

fn to_json(provider: &Provider) -> Value {
    let tools: Vec<Value> = (provider.catalogue().tools.iter())
        .map(|tool| json!({"name": tool.name, "kind": tool.kind, "risk": tool.risk, "summary": tool.summary()}))
        .collect();
    let identity = provider.identity();
    json!({"name": identity.name, "version": identity.version, "source": identity.source, "tools": tools})
}

fn to_text(providers: &[Provider], shell: &Shell) -> String {
    let mut table = Table::new(&["provider", "tool", "kind", "risk", "about"]);
    for provider in providers {
        for tool in &provider.catalogue().tools {
            let (kind, risk) = (tool.kind.to_string(), tool.risk.to_string());
            table.row(&[provider.identity().name.as_str(), &tool.name, &kind, &risk, tool.summary()]);
        }
    }
    table.lines(shell.out()).into_iter().map(|line| line + "\n").collect()
}
