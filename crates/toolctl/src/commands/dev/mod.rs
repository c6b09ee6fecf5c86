//! `toolctl dev`: builds a provider at every save and shows what it declares.

mod build;
mod target;
mod watch;

use std::path::{Path, PathBuf};

use schema_diff::{Declaration, compare};
use tool_host::ProviderSource;

use self::build::build;
use self::target::Target;
use self::watch::{Snapshot, settled_change};
use super::diff::{declared, line, summary};
use crate::cli::Dev;
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::paint::{Ink, Table, safe};
use crate::shell::Shell;

pub(super) async fn run(args: Dev, shell: &Shell, interrupts: &mut Interrupts) -> Result<Exit, Failure> {
    super::verbosity(args.verbose, shell);
    let target = Target::find(&args.provider, &args.cargo)?;
    let mut session = Session { target, shell: shell.clone(), last: None, watched: Vec::new() };
    if args.once {
        return interrupts.guard(session.load()).await.map(|()| Exit::Done);
    }
    tokio::select! {
        biased;
        ended = session.watch() => ended,
        // Ctrl-C is how this command is meant to end.
        () = interrupts.next() => Ok(Exit::Done),
    }
}

/// A provider under work.
struct Session {
    target: Target,
    shell: Shell,
    /// The program and its declaration, as last loaded.
    last: Option<(PathBuf, Declaration)>,
    /// Files beyond the target's own that the last build was made from.
    watched: Vec<PathBuf>,
}

impl Session {
    /// Loads now and after every change, until it is dropped.
    async fn watch(&mut self) -> Result<Exit, Failure> {
        loop {
            // From before the build: what is saved while it runs is a change too.
            let before = Snapshot::take(&self.target, &self.watched).await;
            let dependencies = self.watched.len();
            if let Err(failure) = self.load().await {
                self.shell.failure(&failure);
            }
            let before = match dependencies == self.watched.len() {
                true => before,
                // The build has told of more files; their state now is the one to compare with.
                false => before.with(Snapshot::take(&self.target, &self.watched).await),
            };
            self.tell("watching; Ctrl-C ends");
            let changed = settled_change(&self.target, &self.watched, &before).await;
            self.tell(&format!("\n{changed} changed"));
        }
    }

    /// Builds, starts and asks the provider once, and tells what is new.
    async fn load(&mut self) -> Result<(), Failure> {
        let program = match &self.target {
            Target::Program(path) => path.clone(),
            Target::Crate { manifest, arguments } => {
                let built = build(manifest, arguments).await?;
                self.watched = built.sources;
                built.program
            }
        };
        let declaration = declared(&ProviderSource::Path(program.clone()), &self.shell).await?;
        match &self.last {
            Some((last, before)) if *last == program && before.identity.name == declaration.identity.name => {
                self.reloaded(before, &declaration);
            }
            _ => self.shell.data(&overrides(&declaration.identity.name, &program)),
        }
        self.list(&declaration);
        self.last = Some((program, declaration));
        Ok(())
    }

    fn reloaded(&self, before: &Declaration, now: &Declaration) {
        let changes = compare(before, now);
        let lines: String = changes.iter().map(|change| line(change, self.shell.err())).collect();
        self.shell.note(&format!("{lines}reloaded: {}\n", summary(&changes)));
    }

    fn list(&self, declaration: &Declaration) {
        let mut table = Table::new(&["tool", "kind", "risk", "about"]);
        for tool in &declaration.catalogue.tools {
            table.row(&[tool.name.as_str(), &tool.kind.to_string(), &tool.risk.to_string(), tool.summary()]);
        }
        let lines = table.lines(self.shell.err()).into_iter().map(|line| line + "\n");
        self.shell.note(&lines.collect::<String>());
        for warning in &declaration.catalogue.warnings {
            self.shell.warning(warning);
        }
    }

    fn tell(&self, text: &str) {
        self.shell.note(&format!("{}\n", self.shell.err().ink(Ink::Dim, &safe(text))));
    }
}

/// The block that makes the kernel start this program, with where it belongs.
fn overrides(name: &str, program: &Path) -> String {
    let place = config_file().map_or_else(String::new, |path| format!("# {}\n", path.display()));
    let path = release::hcl_string(&program.to_string_lossy());
    format!("{place}dev_overrides {{\n  {name} = {path}\n}}\n")
}

/// The kernel's own file of settings.
fn config_file() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")))?;
    Some(folder.join("agent/config.hcl"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_is_hcl_whatever_the_path_holds() {
        let block = overrides("issue-tracker", Path::new("/a \"b\"/${c}/%{d}"));
        let block = block.split_inclusive('\n').skip_while(|line| line.starts_with('#')).collect::<String>();
        assert_eq!(block, "dev_overrides {\n  issue-tracker = \"/a \\\"b\\\"/$${c}/%%{d}\"\n}\n");
    }
}
