//! The providers inside this program.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use tool_host::{EMBEDDED_ARGUMENT, ProviderSource, nearest};

use crate::exit::Failure;

/// Runs a provider until its host ends it.
type Run = fn() -> ExitCode;

/// Every provider of the catalog, by name.
const PROVIDERS: &[(&str, Run)] = &[
    ("filesystem", provider_core::run::<provider_filesystem::Filesystem>),
    ("search", provider_core::run::<provider_search::Search>),
    ("exec", provider_core::run::<provider_exec::Exec>),
    ("web", provider_core::run::<provider_web::Web>),
    ("user", provider_core::run::<provider_user::User>),
    ("task", provider_core::run::<provider_task::Tasks>),
    ("agent", provider_core::run::<provider_agent::Agents>),
    ("code", provider_core::run::<provider_code::Code>),
];

/// The names, in the catalog's order.
pub(crate) fn names() -> impl Iterator<Item = &'static str> + Clone {
    PROVIDERS.iter().map(|(name, _)| *name)
}

/// Becomes a provider if a host has started the program as one.
pub(crate) fn run_if_asked(arguments: &[OsString]) -> Option<ExitCode> {
    let [_, first, rest @ ..] = arguments else { return None };
    if first != EMBEDDED_ARGUMENT {
        return None;
    }
    let run = rest.first().and_then(|name| PROVIDERS.iter().find(|(known, _)| name == known));
    Some(run.map_or(ExitCode::FAILURE, |(_, run)| run()))
}

/// What PROVIDER on the command line means: a name of the catalog, or the path of a program.
///
/// # Errors
/// A usage error when it is neither.
pub(crate) fn source(provider: &str) -> Result<ProviderSource, Failure> {
    if provider.contains(std::path::MAIN_SEPARATOR) {
        return Ok(ProviderSource::Path(PathBuf::from(provider)));
    }
    if !names().any(|name| name == provider) {
        let meant =
            nearest(provider, names()).map_or_else(String::new, |name| format!("; did you mean {name}?"));
        return Err(Failure::wrong_usage(format!("there is no provider {provider} in the catalog{meant}"))
            .hint(format!("the catalog has {}; a program is given by its path, ./{provider}", list())));
    }
    let program = std::env::current_exe().map_err(|error| {
        Failure::provider(format!("cannot find this program to start {provider} from: {error}"))
    })?;
    Ok(ProviderSource::Embedded { program, name: provider.to_owned() })
}

fn list() -> String {
    names().collect::<Vec<_>>().join(", ")
}
