//! The real program: what it starts, and what is left of that.

use std::fs;
use std::process::Command;

use serde_json::json;
use tool_host::{Call, Category, Invocation, LaunchOptions, Provider, ProviderSource};

use crate::support::{Folder, object, until};

async fn launch(folder: &Folder) -> Provider {
    let source = ProviderSource::Path(env!("CARGO_BIN_EXE_provider-code").into());
    let provider = Provider::launch(&source, LaunchOptions::default()).await.unwrap();
    provider.configure(object(folder.config(json!({})))).await.unwrap();
    provider
}

fn execute(provider: &Provider, code: &str) -> Invocation {
    provider.invoke(Call::new("execute", object(json!({"code": code})), "s"))
}

fn is_alive(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    !status.is_empty() && !status.contains("State:\tZ")
}

/// Processes whose parent is this one.
fn children(parent: u32) -> Vec<u32> {
    let is_child = |pid: &u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status.contains(&format!("PPid:\t{parent}\n")) && !status.contains("State:\tZ")
    };
    let numbers = fs::read_dir("/proc").unwrap().flatten();
    let mut found: Vec<u32> =
        numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_child).collect();
    found.sort_unstable();
    found
}

/// A kernel shows a model what GetSchema said before any provider could be reached.
#[tokio::test]
async fn the_description_carries_the_contract() {
    let folder = Folder::new();
    let provider = launch(&folder).await;
    let description = &provider.tool("execute").unwrap().description;
    for part in [
        "tools.<provider>.<tool>(input)",
        "tools.$list()",
        "tools.$search(",
        "tools.$describe(",
        "Promise.all",
    ] {
        assert!(description.contains(part), "{part}: {description}");
    }
    provider.stop().await;
}

#[tokio::test]
async fn the_real_program_works_and_takes_its_providers_with_it() {
    let folder = Folder::new();
    let provider = launch(&folder).await;
    let payload =
        execute(&provider, "return (await tools.fx.echo({text: 'x'})).text").outcome().await.unwrap();
    assert_eq!(payload["text"], "x");
    let started = children(provider.pid().unwrap());
    assert!(!started.is_empty());
    provider.stop().await;
    until("the providers that it started are gone", || !started.iter().any(|pid| is_alive(*pid))).await;
}

#[tokio::test]
async fn a_provider_that_is_killed_takes_its_programs_and_providers_with_it() {
    let folder = Folder::new();
    let provider = launch(&folder).await;
    let running = execute(&provider, "await tools.fx.echo({text: 'long', ms: 600000})");
    folder.wait_for("begin long").await;
    let pid = provider.pid().unwrap();
    let started = children(pid);
    assert!(started.len() >= 2, "a provider and a sandbox: {started:?}");
    assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
    let error = running.outcome().await.unwrap_err();
    assert_eq!(error.category, Category::ProcessCrashed, "{error:?}");
    until("all that it started is gone", || !started.iter().any(|pid| is_alive(*pid))).await;
}

#[tokio::test]
async fn a_program_that_is_given_up_leaves_no_process() {
    let folder = Folder::new();
    let provider = launch(&folder).await;
    let before = children(provider.pid().unwrap());
    let running = execute(&provider, "await tools.fx.echo({text: 'short'}); for (;;);");
    folder.wait_for("end short").await;
    running.canceller().cancel();
    let error = running.outcome().await.unwrap_err();
    assert_eq!(error.category, Category::Cancelled, "{error:?}");
    until("its process is gone", || children(provider.pid().unwrap()) == before).await;
    let payload = execute(&provider, "return 'next'").outcome().await.unwrap();
    assert_eq!(payload["text"], "next");
    provider.stop().await;
}
