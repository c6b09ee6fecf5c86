//! `toolctl instructions`: what an agent is told about the tools, and the rules.

use codemode::catalogue::Catalogue;
use serde_json::json;
use tool_host::catalogue::FORMAT_VERSION;
use tool_host::{LaunchOptions, Provider};

use crate::cli::{Carrier, InstructionsArgs, Shape};
use crate::embedded;
use crate::exit::{Exit, Failure};
use crate::reach::is_code;
use crate::registry::{Known, Origin, Registry};
use crate::shell::Shell;
use crate::sources;

use super::rules::{chosen, compose, deliver};

/// What stands in front of the tools in code mode.
const PROGRAMS: &str = "\
You call the tools below from a program: the tool `execute` takes `code`, the body of an async JavaScript function or one
expression. A call is `await tools.<plugin>.<tool>(input)`. It resolves to the result object, or to text for a tool that
returns text, and rejects with an Error whose message says why. Calls made together with Promise.all run together. A program
has the language and nothing else: no files, network, timers or modules but through the tools. You read what it returns, as
JSON (a string as it is), then what it wrote with console.log. Chain, filter and count inside of the program, and return
only what you need.";
/// What stands in front of the tools when each is a tool of its own.
const SEPARATE: &str = "Each tool below is a tool of its own; its schema comes with it.";

pub(super) async fn run(args: InstructionsArgs, shell: &Shell) -> Result<Exit, Failure> {
    let plugins = chosen(&args.rendering, shell)?;
    let shape = match args.tools {
        Some(shape) => shape,
        None => match Registry::load()?.settings.mode {
            plugins::Mode::Code => Shape::Code,
            plugins::Mode::Separate => Shape::Separate,
        },
    };
    let catalogue = catalogue(&plugins, shell).await?;
    let rules = compose(&plugins);
    let limit = args.limit.or(args.rendering.carrier.limit());
    let (tools, complete) = tools(&catalogue, shape, limit.map(|limit| limit.saturating_sub(rules.len())));
    let text = put_together(&rules, &tools);
    if limit.is_some_and(|limit| text.len() > limit) {
        shell.warning(&format!("the text has {} bytes: more than the carrier takes", text.len()));
    } else if !complete {
        shell.note("some tools are named only, because the carrier takes no more\n");
    }
    if args.rendering.carrier == Carrier::Json {
        shell.json_document(&json!({
            "format_version": FORMAT_VERSION, "complete": complete, "rules": rules, "tools": tools, "text": text,
        }));
        return Ok(Exit::Done);
    }
    deliver(&args.rendering, &text, shell)
}

fn put_together(rules: &str, tools: &str) -> String {
    let parts = [("# Rules\n\n", rules), ("# Tools\n\n", tools)];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(heading, text)| format!("{heading}{}\n", text.trim_end()))
        .collect();
    parts.join("\n")
}

/// The tools as text, as far as `room` allows, and whether all are described in it.
fn tools(catalogue: &Catalogue, shape: Shape, room: Option<usize>) -> (String, bool) {
    if catalogue.plugins().is_empty() {
        return (String::new(), true);
    }
    match shape {
        Shape::Code => {
            let room = room.map_or(usize::MAX, |room| room.saturating_sub(PROGRAMS.len() + 200) / 4);
            let text = catalogue.text(room);
            (format!("{PROGRAMS}\n\n{}\n", text.text), text.complete)
        }
        Shape::Separate => {
            let lines = |described: bool| {
                let mut out = format!("{SEPARATE}\n");
                for plugin in catalogue.plugins() {
                    out.push_str(&format!("\n{}:\n", plugin.name));
                    for tool in &plugin.tools {
                        let about = if described {
                            format!(": {}", summary(&tool.description))
                        } else {
                            String::new()
                        };
                        out.push_str(&format!("- {}{about}\n", tool.name));
                    }
                }
                out
            };
            let full = lines(true);
            match room {
                Some(room) if full.len() > room => (lines(false), false),
                _ => (full, true),
            }
        }
    }
}

/// The first sentence.
fn summary(description: &str) -> String {
    let text = description.split_whitespace().collect::<Vec<_>>().join(" ");
    text.split_once(". ").map_or(text.as_str(), |(first, _)| first).trim_end_matches('.').to_owned()
}

/// Every tool of these plugins. A provider says what it has without being configured.
async fn catalogue(plugins: &[Known], shell: &Shell) -> Result<Catalogue, Failure> {
    let mut all = Vec::new();
    for known in plugins.iter().filter(|known| known.enabled) {
        match &known.origin {
            Origin::Catalog if !is_code(&known.name) => {
                let options = LaunchOptions { notices: shell.notices(), ..LaunchOptions::default() };
                let provider = Provider::launch(&embedded::source(&known.name)?, options).await?;
                all.push(of_provider(&provider));
                provider.stop().await;
            }
            Origin::Folder(plugin) if known.not_granted.is_empty() => {
                if let Some(source) = sources::open(plugin, None, shell).await {
                    all.push(of_source(&source));
                    source.stop().await;
                }
            }
            _ => {}
        }
    }
    Ok(Catalogue::new(all))
}

fn of_provider(provider: &Provider) -> codemode::catalogue::Plugin {
    let tool = |tool: &tool_host::catalogue::Tool| codemode::catalogue::Tool {
        name: tool.name.clone(),
        description: tool.description.clone(),
        input_schema: tool.input.to_json_schema(),
        output_schema: Some(tool.output.to_json_schema()),
    };
    let tools = provider.catalogue().tools.iter().map(tool).collect();
    codemode::catalogue::Plugin { name: provider.identity().name.clone(), tools }
}

fn of_source(source: &tool_host::Source) -> codemode::catalogue::Plugin {
    let tool = |tool: &tool_host::source::SourceTool| codemode::catalogue::Tool {
        name: tool.name.clone(),
        description: tool.description.clone(),
        input_schema: tool.input_schema.clone(),
        output_schema: tool.output_schema.clone(),
    };
    codemode::catalogue::Plugin {
        name: source.identity().name.clone(),
        tools: source.tools().iter().map(tool).collect(),
    }
}
