//! Enabled plugin folders as sources of tools.

use std::path::Path;

use plugin_wire::client::{PluginProcess, Start};
use plugins::{Main, Plugin};
use tool_host::Source;

use crate::shell::Shell;

/// Starts the program of a plugin, if it has one; one that does not start is left out, with a warning. `workspace` is where
/// the session works.
pub(crate) async fn open(plugin: &Plugin, workspace: Option<&Path>, shell: &Shell) -> Option<Source> {
    let Some(Main::Program(path)) = &plugin.manifest.main else { return None };
    let name = plugin.manifest.name.as_str();
    let started = match plugin.locate(path) {
        Ok(program) => {
            let start = Start::new(name, program, plugin.folder())
                .telling(shell.notices())
                .in_plugins_workspace(workspace.is_some_and(is_plugins_workspace));
            PluginProcess::start(start).await.map_err(|error| error.to_string())
        }
        Err(error) => Err(error.to_string()),
    };
    match started {
        Ok(process) => {
            let origin = plugin.folder().display().to_string();
            Some(Source::new(name, plugin.manifest.version.to_string(), origin, process))
        }
        Err(why) => {
            shell.warning(&format!("the tools of the plugin {name} are not there: {why}"));
            None
        }
    }
}

/// Whether a session there is one for working on plugins: in the user's folder of plugins, or in a plugin.
fn is_plugins_workspace(workspace: &Path) -> bool {
    let is_plugin = |folder: &Path| plugins::MANIFEST_NAMES.iter().any(|name| folder.join(name).is_file());
    let of_user = crate::registry::settings_file().ok();
    let of_user = of_user.as_ref().and_then(|file| file.path().parent()).map(|folder| folder.join("plugins"));
    is_plugin(workspace) || of_user.is_some_and(|folder| workspace.starts_with(folder))
}
