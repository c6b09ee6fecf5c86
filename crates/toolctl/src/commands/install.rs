//! `toolctl install`: released providers, or this program's tools, where an agent finds them.

mod agents;
mod folder;
mod json_file;
mod plan;
mod toml_file;

use std::path::{Path, PathBuf};

use release::{
    Change, InstallError, Installation, Platform, PluginCache, Release, ReleaseError, Request, project_file,
};
use serde_json::{Value, json};
use tool_host::catalogue::FORMAT_VERSION;
use tool_host::{CallError, Category};

use super::mirror::{self, Mirror};
use crate::cli::{Agent, Install, Shape};
use crate::exit::{Exit, Failure};
use crate::registry::Registry;
use crate::shell::Shell;

pub(super) async fn run(args: Install, shell: &Shell) -> Result<Exit, Failure> {
    match args.agent {
        Agent::Harness => {
            let shell = shell.clone();
            // An interrupt must not wait for it; whenever it comes, what is installed is whole.
            let work = tokio::task::spawn_blocking(move || harness(&args, &shell));
            work.await.unwrap_or_else(|error| Err(failed(error.to_string())))
        }
        Agent::Plugin => plugin_folder(&args, shell),
        Agent::Claude | Agent::Codex | Agent::Opencode => agent(&args, shell).await,
    }
}

/// An agent's own configuration.
async fn agent(args: &Install, shell: &Shell) -> Result<Exit, Failure> {
    let registry = Registry::load()?;
    registry.warnings().iter().for_each(|warning| shell.warning(warning));
    let rules = super::rules::compose(&registry.plugins);
    let mut arguments = vec!["mcp".to_owned()];
    arguments.extend(flags(args)?);
    let server = agents::Server { command: program(args)?, arguments };
    let places = agents::Places { project: project(&args.project)?, codex_home: codex_home()? };
    let edits = agents::edits(args.agent, &server, &rules, &places);
    let exit = plan::Plan::of(&edits, args.remove)?.carry_out(args.yes, args.dry_run, shell).await?;
    if args.agent != Agent::Claude && !args.remove && exit == Exit::Done {
        shell.note("the rules are written down as they are now: install again when they have changed\n");
    }
    Ok(exit)
}

/// A plugin's folder.
fn plugin_folder(args: &Install, shell: &Shell) -> Result<Exit, Failure> {
    let folder = args.dir.as_deref().ok_or_else(|| {
        Failure::wrong_usage("--for plugin makes a folder: say which, toolctl install --for plugin DIR")
    })?;
    let how = folder::How {
        program: program(args)?,
        arguments: flags(args)?,
        remove: args.remove,
        replace: args.replace,
        dry_run: args.dry_run,
    };
    folder::run(folder, &how, shell)
}

/// What of the command line is for the server.
fn flags(args: &Install) -> Result<Vec<String>, Failure> {
    let mut flags = Vec::new();
    if let Some(shape) = args.tools {
        let shape = match shape {
            Shape::Code => "code",
            Shape::Separate => "separate",
        };
        flags.extend(["--tools".to_owned(), shape.to_owned()]);
    }
    for provider in &args.providers {
        // A program is found from wherever the agent starts the server.
        let provider = match provider.contains(std::path::MAIN_SEPARATOR) {
            true => text(&project(Path::new("."))?.join(provider))?,
            false => provider.clone(),
        };
        flags.extend(["--provider".to_owned(), provider]);
    }
    for root in &args.roots {
        let root = root
            .canonicalize()
            .map_err(|error| Failure::wrong_usage(format!("--root {}: {error}", root.display())))?;
        flags.extend(["--root".to_owned(), text(&root)?]);
    }
    Ok(flags)
}

/// How an agent starts this program: by its name where that finds it, so that a configuration can be shared.
fn program(args: &Install) -> Result<String, Failure> {
    if let Some(command) = &args.command {
        return Ok(command.clone());
    }
    let here = std::env::current_exe()
        .map_err(|error| Failure::provider(format!("cannot find this program: {error}")))?;
    let found = std::env::var_os("PATH").and_then(|path| {
        std::env::split_paths(&path).map(|folder| folder.join("toolctl")).find(|file| file.is_file())
    });
    let is_this = found.and_then(|file| file.canonicalize().ok()) == here.canonicalize().ok();
    if is_this { Ok("toolctl".to_owned()) } else { text(&here) }
}

fn text(path: &Path) -> Result<String, Failure> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| {
        Failure::wrong_usage(format!("{} is not UTF-8, and a configuration is", path.display()))
    })
}

/// Where Codex has its configuration.
fn codex_home() -> Result<PathBuf, Failure> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    variable("CODEX_HOME")
        .or_else(|| variable("HOME").map(|home| home.join(".codex")))
        .ok_or_else(|| Failure::wrong_usage("neither CODEX_HOME nor HOME is an absolute path"))
}

fn harness(args: &Install, shell: &Shell) -> Result<Exit, Failure> {
    let releases = releases(args)?;
    let request = Request {
        providers: args.providers.clone(),
        platforms: args.platforms.clone(),
        project: project(&args.project)?,
        cache: cache(args.cache.as_deref())?,
        replace: args.replace,
    };
    let plan = Installation::plan(&releases, &request)?;
    if !args.dry_run {
        plan.apply()?;
    }
    let agent_file = project_file::agent_hcl(plan.entries());
    if shell.json() {
        shell.json_document(&json!({
            "format_version": FORMAT_VERSION,
            "applied": !args.dry_run,
            "changes": plan.changes().iter().map(to_json).collect::<Vec<_>>(),
            "agent_hcl": agent_file,
        }));
        return Ok(Exit::Done);
    }
    for change in plan.changes() {
        shell.note(&format!("{}\n", to_text(change, args.dry_run)));
    }
    shell.note("\nIn agent.hcl:\n\n");
    shell.data(&agent_file);
    Ok(Exit::Done)
}

/// The releases in a folder, or below an address.
fn releases(args: &Install) -> Result<Vec<Release>, Failure> {
    let from = args.from.as_deref();
    let from = from.ok_or_else(|| Failure::wrong_usage("--for harness needs --from DIR|URL"))?;
    let folder = Path::new(from);
    if !mirror::is_address(from) {
        if let Some(flag) = [("--ca-file", args.ca_file.is_some()), ("--proxy", args.proxy.is_some())]
            .iter()
            .find(|flag| flag.1)
        {
            return Err(Failure::wrong_usage(format!("{} is for a --from that is an address", flag.0)));
        }
        return Ok(Release::open_all(folder, &args.release)?);
    }
    let files = Mirror::open(from, args.ca_file.as_deref(), args.proxy.as_deref())?;
    Ok(Release::open_all_of(&files, folder, &args.release)?)
}

fn project(given: &Path) -> Result<PathBuf, Failure> {
    let wrong = |problem: String| Failure::wrong_usage(format!("--project {}: {problem}", given.display()));
    let folder = given.canonicalize().map_err(|error| wrong(error.to_string()))?;
    if folder.is_dir() { Ok(folder) } else { Err(wrong("it is no folder".to_owned())) }
}

fn cache(given: Option<&Path>) -> Result<PluginCache, Failure> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    match given {
        Some(folder) => std::path::absolute(folder)
            .map(PluginCache::new)
            .map_err(|error| Failure::wrong_usage(format!("--cache {}: {error}", folder.display()))),
        None => PluginCache::of_user(variable("XDG_CACHE_HOME"), variable("HOME")).ok_or_else(|| {
            Failure::wrong_usage("neither XDG_CACHE_HOME nor HOME is an absolute path")
                .hint("say where the kernel's cache is with --cache DIR")
        }),
    }
}

fn to_text(change: &Change, dry_run: bool) -> String {
    let would = if dry_run { "would " } else { "" };
    match change {
        Change::Add(path) => format!("{would}install {}", path.display()),
        Change::Replace(path) => format!("{would}replace {}", path.display()),
        Change::Keep(path) => format!("keep {}", path.display()),
        Change::Record { file, name, from, to, platforms } => {
            let from = from.as_ref().filter(|from| *from != to);
            let from = from.map_or_else(String::new, |from| format!(" in place of {from}"));
            let platforms = platforms.iter().map(Platform::as_str).collect::<Vec<_>>().join(", ");
            format!("{would}record {name} {to}{from} for {platforms} in {}", file.display())
        }
        Change::KeepRow { file, name } => format!("keep what {} has of {name}", file.display()),
    }
}

fn to_json(change: &Change) -> Value {
    match change {
        Change::Add(path) => json!({"action": "install", "path": path}),
        Change::Replace(path) => json!({"action": "replace", "path": path}),
        Change::Keep(path) => json!({"action": "keep", "path": path}),
        Change::Record { file, name, from, to, platforms } => {
            let mut value = json!({
                "action": "record", "path": file, "provider": name, "version": to.to_string(),
                "platforms": platforms.iter().map(Platform::as_str).collect::<Vec<_>>(),
            });
            if let Some(from) = from {
                value["from"] = json!(from.to_string());
            }
            value
        }
        Change::KeepRow { file, name } => json!({"action": "keep", "path": file, "provider": name}),
    }
}

impl From<ReleaseError> for Failure {
    fn from(error: ReleaseError) -> Self {
        match error {
            // The release is wrong, not the command line.
            ReleaseError::Malformed { .. } | ReleaseError::Tampered { .. } => failed(error.to_string()),
            ReleaseError::Read { ref path, .. } if mirror::is_address(&path.to_string_lossy()) => {
                failed(error.to_string())
            }
            _ => Self::wrong_usage(error.to_string()),
        }
    }
}

impl From<InstallError> for Failure {
    fn from(error: InstallError) -> Self {
        match error {
            InstallError::Release(error) => error.into(),
            InstallError::Io { .. } => failed(error.to_string()),
            _ => Self::wrong_usage(error.to_string()),
        }
    }
}

fn failed(message: String) -> Failure {
    CallError::new(Category::ExecutionFailed, message).into()
}
