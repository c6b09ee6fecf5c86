//! The providers whose tools programs may call, launched and configured.

use std::path::PathBuf;
use std::sync::Arc;

use codemode::providers::{Offer, Providers};
use provider_core::Provider as _;
use provider_core::prelude::*;
use provider_core::supervisor::find_program;
use tool_host::config::Settings;
use tool_host::people::{ApproveAll, NoAnswers};
use tool_host::{EMBEDDED_ARGUMENT, Host, LaunchOptions, Object, Provider, ProviderSource};

use crate::config::CodeConfig;
use crate::provider::Code;

/// Launches and configures all providers that are named.
///
/// # Errors
/// `invalid_arguments` naming every entry that cannot be used.
pub(crate) async fn open(config: &CodeConfig, setup: &Setup) -> Result<Providers, ToolError> {
    let mut wrong: Vec<String> = config
        .provider_config
        .keys()
        .filter(|name| !config.providers.contains(name))
        .map(|name| format!("provider_config.{name}: {name} is not in providers"))
        .collect();
    let mut running: Vec<Provider> = Vec::new();
    for entry in &config.providers {
        match open_one(entry, config, setup).await {
            Ok(provider) => match running.iter().find(|known| same_name(known, &provider)) {
                Some(_) => wrong.push(format!("providers: {entry} is named twice")),
                None => running.push(provider),
            },
            Err(reason) => wrong.push(format!("providers: {entry}: {reason}")),
        }
    }
    if !wrong.is_empty() {
        for provider in running {
            provider.stop().await;
        }
        return Err(ToolError::invalid_arguments(wrong.join("\n")));
    }
    // Over the kernel nobody can be asked here: what changes things is only offered where the operator said so.
    let offer = if config.allow_resources { Offer::Everything } else { Offer::DataSources };
    let nobody = NoAnswers { hint: "a program that a kernel runs can ask nobody" };
    Ok(Providers::new(Host::new(Arc::new(ApproveAll), Arc::new(nobody)), running, offer))
}

fn same_name(one: &Provider, other: &Provider) -> bool {
    one.identity().name == other.identity().name
}

async fn open_one(entry: &str, config: &CodeConfig, setup: &Setup) -> Result<Provider, String> {
    let source = source(entry, setup)?;
    let json = match config.provider_config.get(entry) {
        Some(text) => serde_json::from_str::<Object>(text)
            .map_err(|error| format!("its entry in provider_config is no JSON object: {error}"))?,
        None => Object::new(),
    };
    let provider =
        Provider::launch(&source, LaunchOptions::default()).await.map_err(|error| error.to_string())?;
    match configure(&provider, json, config, setup).await {
        Ok(()) => Ok(provider),
        Err(reason) => {
            provider.stop().await;
            Err(reason)
        }
    }
}

async fn configure(
    provider: &Provider,
    json: Object,
    config: &CodeConfig,
    setup: &Setup,
) -> Result<(), String> {
    if provider.identity().name == Code::NAME {
        return Err("it runs programs itself, and a program cannot run programs".to_owned());
    }
    let roots = config.allowed_roots.iter().map(|root| setup.path(root)).collect();
    let settings = Settings { roots, json, ..Settings::default() };
    let config = settings.resolve(&provider.catalogue().config).map_err(|error| error.to_string())?;
    provider.configure(config).await.map_err(|error| error.message)
}

/// The program that an entry means.
fn source(entry: &str, setup: &Setup) -> Result<ProviderSource, String> {
    if entry.contains('/') {
        return Ok(ProviderSource::Path(setup.path(entry)));
    }
    if entry == Code::NAME {
        return Err("a program cannot run programs".to_owned());
    }
    let program = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    // A program that holds this provider among others holds the others, too.
    if std::env::args_os().nth(1).is_some_and(|first| first == EMBEDDED_ARGUMENT) {
        return Ok(ProviderSource::Embedded { program, name: entry.to_owned() });
    }
    let file = format!("provider-{entry}");
    let beside = program.with_file_name(&file);
    let found: Option<PathBuf> = match beside.is_file() {
        true => Some(beside),
        false => find_program(&file, std::env::var_os("PATH").as_deref()),
    };
    found.map(ProviderSource::Path).ok_or_else(|| {
        format!("there is no program {file} beside {} or on PATH; give its path", program.display())
    })
}
