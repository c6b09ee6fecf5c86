//! `toolctl plugin`: the tools on the plugin wire.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::join_all;
use plugin_wire::server::{Output, Written, output};
use plugin_wire::{Member, Toolbox, serve};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tool_host::people::{ApproveAll, NoAnswers};
use tool_host::{Answerer, Host, Source};

use crate::cli::{PluginArgs, Shape};
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::open::{Setup, prepared_answers, under_policy};
use crate::reach::is_code;
use crate::registry::{Registry, settings_file};
use crate::shell::Shell;
use crate::sources;
use crate::workspaces::{Opener, Rooms};

/// The provider that asks people, who are not here.
const ASKS: &str = "user";
/// How often the settings are looked at.
const LOOK: Duration = Duration::from_millis(500);
/// Pieces of input that are read ahead.
const PIECES_AHEAD: usize = 16;

pub(super) async fn run(
    args: PluginArgs,
    shell: &Shell,
    interrupts: &mut Interrupts,
) -> Result<Exit, Failure> {
    super::verbosity(args.shared.verbose, shell);
    let setup = Setup::new(&args.shared)?;
    let host = host(&args)?;
    let opener = Arc::new(Opener::new(setup, host.clone(), &args, shell.clone()));
    let toolbox = Arc::new(Toolbox::new("toolctl", env!("CARGO_PKG_VERSION"), host, opener.session()));
    let mut served = Serving { args, opener, toolbox, rooms: BTreeMap::new(), sources: Vec::new() };
    interrupts.guard(served.refresh(true)).await?;
    let exit = served.until_the_end(shell, interrupts).await;
    served.stop().await;
    Ok(exit)
}

/// The host is the gate: what it sends may be done, unless the policy denies it.
fn host(args: &PluginArgs) -> Result<Host, Failure> {
    let answerer: Arc<dyn Answerer> = match &args.shared.answers {
        Some(path) => Arc::new(prepared_answers(path)?),
        None => Arc::new(NoAnswers { hint: "start toolctl plugin with --answers FILE" }),
    };
    under_policy(Host::new(Arc::new(ApproveAll), answerer), &args.shared)
}

struct Serving {
    args: PluginArgs,
    opener: Arc<Opener>,
    toolbox: Arc<Toolbox>,
    /// What runs, by what it was called.
    rooms: BTreeMap<String, Arc<Rooms>>,
    sources: Vec<Source>,
}

impl Serving {
    async fn until_the_end(&mut self, shell: &Shell, interrupts: &mut Interrupts) -> Exit {
        let stop = CancellationToken::new();
        let (out, written) = output();
        let writing = write(written, shell.clone(), stop.clone());
        let serving = serve(self.toolbox.clone(), pieces(), Output::clone(&out), stop.clone());
        // The writer ends with the last output.
        drop(out);
        tokio::pin!(serving);
        let mut stamp = stamp();
        let mut look = tokio::time::interval(LOOK);
        let mut exit = Exit::Done;
        loop {
            tokio::select! {
                biased;
                () = &mut serving => break,
                () = interrupts.next(), if exit == Exit::Done => {
                    exit = Exit::Interrupted;
                    stop.cancel();
                }
                _ = look.tick(), if self.args.providers.is_empty() => {
                    let now = self::stamp();
                    if now != stamp {
                        stamp = now;
                        if let Err(failure) = self.refresh(false).await {
                            shell.warning(&failure.error.message);
                        }
                    }
                }
            }
        }
        // Whoever does not read is not waited for.
        let _ = tokio::time::timeout(LOOK, writing).await;
        exit
    }

    /// Serves what the command line names, or what the settings enable now.
    async fn refresh(&mut self, first: bool) -> Result<(), Failure> {
        let registry = Registry::load()?;
        if self.args.providers.is_empty() {
            registry.warnings().iter().for_each(|warning| self.opener.shell().warning(warning));
        }
        let names = self.names(&registry);
        for name in &names {
            if self.rooms.contains_key(name) {
                continue;
            }
            match Rooms::open(name, self.opener.clone()).await {
                Ok(rooms) => {
                    self.rooms.insert(name.clone(), Arc::new(rooms));
                }
                Err(failure) if self.is_named(name) => return Err(failure),
                Err(failure) => {
                    self.opener.shell().warning(&format!("{name} is not served: {}", failure.error.message));
                }
            }
        }
        if first {
            self.opener.check_settings(self.rooms.values().map(AsRef::as_ref))?;
        }
        let members: Vec<Member> =
            names.iter().filter_map(|name| self.rooms.get(name)).map(Rooms::member).collect();
        let sources = self.refresh_sources(&registry).await;
        self.toolbox.serve(members, sources);
        Ok(())
    }

    /// The sources that are enabled now: those that run go on, those that are not enabled any more are stopped.
    async fn refresh_sources(&mut self, registry: &Registry) -> Vec<Source> {
        if !self.args.providers.is_empty() || self.args.tools == Shape::Code {
            return Vec::new();
        }
        let origins: Vec<(String, String)> = registry
            .folders()
            .map(|plugin| (plugin.manifest.name.to_string(), plugin.folder().display().to_string()))
            .collect();
        let is_origin = |source: &Source| {
            let identity = source.identity();
            origins.iter().any(|(name, folder)| *name == identity.name && *folder == identity.source)
        };
        let (kept, gone): (Vec<Source>, Vec<Source>) =
            std::mem::take(&mut self.sources).into_iter().partition(is_origin);
        join_all(gone.iter().map(Source::stop)).await;
        self.sources = kept;
        for plugin in registry.folders() {
            let runs = |source: &Source| source.identity().name == plugin.manifest.name.as_str();
            if !self.sources.iter().any(runs) {
                let workspace = Some(self.opener.working_directory());
                self.sources.extend(sources::open(plugin, workspace, self.opener.shell()).await);
            }
        }
        self.sources.clone()
    }

    fn is_named(&self, name: &str) -> bool {
        self.args.tools == Shape::Code || self.args.providers.iter().any(|given| given == name)
    }

    fn names(&self, registry: &Registry) -> Vec<String> {
        if self.args.tools == Shape::Code {
            return vec![provider_code_name()];
        }
        if !self.args.providers.is_empty() {
            return self.args.providers.clone();
        }
        let answered = self.args.shared.answers.is_some();
        // Programs are the affair of the host, which has a runtime of its own.
        let served = |name: &&str| !is_code(name) && (answered || *name != ASKS);
        registry.catalog().filter(served).map(str::to_owned).collect()
    }

    async fn stop(&self) {
        let rooms = join_all(self.rooms.values().map(|rooms| rooms.stop()));
        tokio::join!(rooms, join_all(self.sources.iter().map(Source::stop)));
    }
}

fn provider_code_name() -> String {
    <provider_code::Code as provider_core::Provider>::NAME.to_owned()
}

/// What changes when the settings do.
fn stamp() -> Option<(SystemTime, u64)> {
    let file = settings_file().ok()?;
    let metadata = std::fs::metadata(file.path()).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

/// What comes on stdin. It is read on a thread of its own, because a read from a pipe cannot be called off.
fn pieces() -> mpsc::Receiver<Vec<u8>> {
    use std::io::Read as _;
    let (sender, receiver) = mpsc::channel(PIECES_AHEAD);
    std::thread::spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        let mut stdin = std::io::stdin().lock();
        loop {
            match stdin.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) if sender.blocking_send(buffer[..count].to_vec()).is_err() => break,
                Err(error) if error.kind() != std::io::ErrorKind::Interrupted => break,
                _ => {}
            }
        }
    });
    receiver
}

/// Writes to stdout on a thread of its own; when nobody reads any more, it is the end.
fn write(mut written: Written, shell: Shell, stop: CancellationToken) -> tokio::task::JoinHandle<()> {
    let (done, over) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        while let Some(bytes) = written.blocking_recv() {
            shell.data(&String::from_utf8_lossy(&bytes));
            if shell.reader_gone() {
                stop.cancel();
                break;
            }
        }
        // Nobody may wait any more.
        let _ = done.send(());
    });
    tokio::spawn(async move {
        let _ = over.await;
    })
}
