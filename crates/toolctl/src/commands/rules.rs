//! `toolctl rules`: the rules of plugins, for agents.

use std::path::Path;

use plugins::{FileChange, Plugin, WriteError, change_file};
use serde_json::{Value, json};
use tool_host::catalogue::FORMAT_VERSION;
use tool_host::{CallError, Category};

use crate::carrier::into_markdown;
use crate::cli::{Carrier, Rendering, RulesArgs, RulesCommand};
use crate::exit::{Exit, Failure};
use crate::registry::{Known, Origin, Registry};
use crate::shell::Shell;

pub(super) fn run(args: &RulesArgs, shell: &Shell) -> Result<Exit, Failure> {
    let RulesCommand::Render(args) = &args.command;
    let plugins = chosen(&args.rendering, shell)?;
    let text = compose(&plugins);
    if args.rendering.carrier == Carrier::Json {
        shell.json_document(&json!({
            "format_version": FORMAT_VERSION,
            "plugins": plugins.iter().filter(|known| known.enabled).map(to_json).collect::<Vec<_>>(),
            "text": text,
        }));
        return Ok(Exit::Done);
    }
    deliver(&args.rendering, &text, shell)
}

/// The plugins that were asked for: those that are enabled, or those that were named. What is wrong with them is told.
pub(super) fn chosen(rendering: &Rendering, shell: &Shell) -> Result<Vec<Known>, Failure> {
    let mut registry = Registry::load()?;
    if !rendering.plugins.is_empty() {
        registry.plugins =
            rendering.plugins.iter().map(|given| named(given, &registry)).collect::<Result<_, _>>()?;
    }
    registry.warnings().iter().for_each(|warning| shell.warning(warning));
    Ok(registry.plugins)
}

/// A folder, or a name that is known. Whoever names a plugin wants it.
fn named(given: &str, registry: &Registry) -> Result<Known, Failure> {
    match registry.find(given) {
        Some(known) => match &known.origin {
            Origin::Catalog => {
                let mut about = registry.settings.clone();
                about.plugins.remove(given);
                let all = Registry::of(about).plugins;
                all.into_iter().find(|known| known.name == given).ok_or_else(|| no_plugin(given))
            }
            Origin::Folder(plugin) => Ok(Known::of_plugin((**plugin).clone())),
            Origin::Broken { reason, .. } => Err(Failure::wrong_usage(reason.clone())),
        },
        None if Path::new(given).is_dir() => Plugin::open(Path::new(given))
            .map(Known::of_plugin)
            .map_err(|error| Failure::wrong_usage(error.to_string())),
        None => Err(no_plugin(given)),
    }
}

pub(super) fn no_plugin(given: &str) -> Failure {
    Failure::wrong_usage(format!("{given} is neither a plugin that is known nor a folder"))
        .hint("toolctl plugins list shows the plugins that are known")
}

/// The rules of these plugins as one text.
pub(super) fn compose(plugins: &[Known]) -> String {
    plugins::rules::compose(plugins.iter().map(|known| (known.name.as_str(), known.texts())))
}

fn to_json(known: &Known) -> Value {
    let rules: Vec<Value> = match known.with_rules {
        true => known.rules.files.iter().map(|file| json!({"path": file.path, "text": file.text})).collect(),
        false => Vec::new(),
    };
    json!({"name": known.name, "version": known.version, "rules": rules, "warnings": known.rules.warnings})
}

/// Prints the text as the carrier takes it, or writes it where it belongs.
pub(super) fn deliver(rendering: &Rendering, text: &str, shell: &Shell) -> Result<Exit, Failure> {
    match (&rendering.into, rendering.carrier) {
        (Some(file), Carrier::AgentsMd) => {
            let changed = write_block(file, text)?;
            let what = if changed { "wrote" } else { "kept" };
            shell.note(&format!("{what} {}\n", file.display()));
        }
        (Some(_), _) => {
            return Err(Failure::wrong_usage("--into goes with --for agents-md alone"));
        }
        (None, carrier) => shell.data(&carrier.wrap(text, rendering.session)),
    }
    Ok(Exit::Done)
}

/// Puts the text into its block of a Markdown file; returns whether the file changed.
pub(super) fn write_block(file: &Path, text: &str) -> Result<bool, Failure> {
    change_file::<WriteFailure>(file, |bytes| {
        let before = String::from_utf8(bytes.unwrap_or_default().to_vec())
            .map_err(|_| WriteFailure(format!("{} is not UTF-8", file.display())))?;
        let after = into_markdown(&before, text)
            .map_err(|why| WriteFailure(format!("{}: {why}; correct it by hand", file.display())))?;
        // A file that held nothing but the block goes with it.
        Ok(match after.is_empty() {
            true => FileChange::Remove,
            false => FileChange::Write(after.into_bytes()),
        })
    })
    .map_err(|WriteFailure(message)| CallError::new(Category::ExecutionFailed, message).into())
}

/// Why a file was not written.
pub(in crate::commands) struct WriteFailure(pub(in crate::commands) String);

impl From<WriteError> for WriteFailure {
    fn from(error: WriteError) -> Self {
        Self(format!("cannot write {error}"))
    }
}
