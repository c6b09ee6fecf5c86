//! The providers, where they work, and what is known of what they were told.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use tool_host::people::{ApproveAll, PreparedAnswers};
use tool_host::{Host, LaunchOptions, Provider, ProviderSource};

use super::super::process::object;
use super::acts::{Ledger, Slot};
use super::leaks;
use super::server::Server;

/// The catalog.
pub(super) const NAMES: [&str; 8] = ["filesystem", "search", "exec", "web", "user", "task", "agent", "code"];
/// The crew that is left in peace, and the one that is not.
pub(super) const STEADY: usize = 0;
pub(super) const MORTAL: usize = 1;
/// Which files of a crew calls may work on at once.
const SLOTS: usize = 6;
/// Servers of pages: each is asked at a measured pace.
const SERVERS: usize = 4;
/// What the answers of the prepared person are.
pub(super) const ANSWER: &str = "blue";

/// One provider of a crew.
pub(super) struct Member {
    pub(super) provider: Provider,
    pub(super) sockets: PathBuf,
}

/// Which member, of which crew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) crew: usize,
    pub(super) name: &'static str,
}

/// Everything.
pub(super) struct Crew {
    program: PathBuf,
    folder: tempfile::TempDir,
    pub(super) host: Host,
    members: BTreeMap<(usize, &'static str), Member>,
    pub(super) servers: Vec<Server>,
    /// Files that are not being worked on, by crew.
    pub(super) slots: [Vec<Slot>; 2],
    /// Lists of tasks that are not being worked on, by crew.
    pub(super) ledgers: [Vec<Ledger>; 2],
    pub(super) mark: String,
}

/// The variable by which processes of a run are recognised.
pub(super) const MARK: &str = "MIXED_STRESS_RUN";

impl Crew {
    pub(super) async fn start(program: PathBuf) -> anyhow::Result<Self> {
        let answers = PreparedAnswers::from_json(json!({"answer": ANSWER})).context("no answers")?;
        let mut servers = Vec::new();
        for _ in 0..SERVERS {
            servers.push(Server::start().await?);
        }
        let folder = tempfile::Builder::new().prefix("mixed-").tempdir()?;
        let mark = format!("{}-{}", std::process::id(), folder.path().display());
        let mut crew = Self {
            program,
            folder,
            host: Host::new(Arc::new(ApproveAll), Arc::new(answers)),
            members: BTreeMap::new(),
            servers,
            slots: [Vec::new(), Vec::new()],
            ledgers: [Vec::new(), Vec::new()],
            mark,
        };
        crew.lay_out()?;
        for number in [STEADY, MORTAL] {
            for name in NAMES {
                let member = crew.launched(number, name).await?;
                crew.members.insert((number, name), member);
            }
        }
        Ok(crew)
    }

    /// Makes the folders and what is searched.
    fn lay_out(&mut self) -> anyhow::Result<()> {
        for number in [STEADY, MORTAL] {
            for name in ["root", "tmp", "state", "sockets"] {
                fs::create_dir_all(self.below(number, name))?;
            }
            let root = self.below(number, "root");
            for file in 0..60_usize {
                let folder = root.join(format!("tree/{}", file % 7));
                fs::create_dir_all(&folder)?;
                let hits = "a needle here\n".repeat(file % 3);
                fs::write(folder.join(format!("{file}.txt")), format!("hay\n{hits}hay\n"))?;
            }
            let script = self.below(number, "fs.sh");
            fs::write(
                &script,
                format!("#!/bin/sh\nexec '{}' __provider filesystem\n", self.program.display()),
            )?;
            fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
            self.slots[number] =
                (0..SLOTS).map(|slot| Slot::new(root.join(format!("file-{slot}.txt")))).collect();
            self.ledgers[number] = (0..SLOTS).map(|list| Ledger::new(format!("list-{list}"))).collect();
        }
        Ok(())
    }

    /// A folder of a crew.
    pub(super) fn below(&self, number: usize, name: &str) -> PathBuf {
        self.folder.path().join(if number == STEADY { "steady" } else { "mortal" }).join(name)
    }

    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn member(&self, place: Place) -> anyhow::Result<&Member> {
        self.members.get(&(place.crew, place.name)).with_context(|| format!("{place:?} is missing"))
    }

    pub(super) fn steady(&self) -> impl Iterator<Item = (&'static str, &Member)> {
        self.members
            .iter()
            .filter(|((number, _), _)| *number == STEADY)
            .map(|((_, name), member)| (*name, member))
    }

    pub(super) fn options(&self, number: usize, sockets: &Path) -> LaunchOptions {
        let env = [
            ("TMPDIR", self.below(number, "tmp")),
            ("PLUGIN_UNIX_SOCKET_DIR", sockets.to_owned()),
            (MARK, PathBuf::from(&self.mark)),
        ];
        let env = env.into_iter().map(|(name, value)| (name.to_owned(), value.display().to_string()));
        LaunchOptions { env: env.collect(), ..LaunchOptions::default() }
    }

    async fn launched(&self, number: usize, name: &'static str) -> anyhow::Result<Member> {
        let sockets = self.below(number, "sockets").join(name);
        fs::create_dir_all(&sockets)?;
        let source = ProviderSource::Embedded { program: self.program.clone(), name: name.to_owned() };
        let provider = Provider::launch(&source, self.options(number, &sockets)).await?;
        let config = self.configuration(number, name);
        provider.configure(object(config)?).await.with_context(|| format!("{name} is not configured"))?;
        Ok(Member { provider, sockets })
    }

    fn configuration(&self, number: usize, name: &str) -> Value {
        let (root, state) = (self.below(number, "root"), self.below(number, "state"));
        match name {
            "filesystem" => json!({"allowed_roots": [root], "state_dir": state}),
            "search" => json!({"allowed_roots": [root]}),
            "exec" => json!({"root": root, "state_dir": state, "grace_ms": 60, "env": {MARK: self.mark}}),
            "web" => json!({
                "allow_private_hosts": ["127.0.0.1"], "state_dir": state, "cache_bytes": 2_000_000,
                "search_backend": "searxng", "search_url": self.servers[0].url("/"), "timeout_ms": 20_000,
            }),
            "task" => json!({"state_dir": state}),
            "agent" => json!({
                "runners": {"shell": json!(["sh", "-c", "echo \"told $0\"", "{prompt}"]).to_string()},
                "state_dir": state, "env_pass": [MARK],
            }),
            "code" => {
                let script = self.below(number, "fs.sh").display().to_string();
                let config = json!({"allowed_roots": [root], "state_dir": state}).to_string();
                json!({"providers": [script], "provider_config": {script: config}, "slice_ms": 2_000})
            }
            _ => json!({}),
        }
    }

    /// Starts a member again that a trouble has ended.
    pub(super) async fn relaunch(&mut self, victim: Option<Place>) -> anyhow::Result<()> {
        let Some(place) = victim else { return Ok(()) };
        let member = self.launched(place.crew, place.name).await?;
        self.members.insert((place.crew, place.name), member);
        Ok(())
    }

    /// Ends everything and looks at what is left.
    pub(super) async fn end(mut self) -> anyhow::Result<()> {
        let members = std::mem::take(&mut self.members);
        for (_, member) in members {
            member.provider.stop().await;
        }
        leaks::no_process_left(&self.mark).await?;
        for number in [STEADY, MORTAL] {
            let root = self.below(number, "root");
            let odd: Vec<String> =
                names_below(&root)?.into_iter().filter(|name| name.contains(".ph-")).collect();
            ensure!(odd.is_empty(), "files of writes that ended are left: {odd:?}");
        }
        let left = names_below(&self.below(STEADY, "sockets"))?;
        ensure!(left.iter().all(|name| NAMES.contains(&name.as_str())), "sockets are left: {left:?}");
        let left = names_below(&self.below(STEADY, "tmp"))?;
        ensure!(left.is_empty(), "temporary files are left: {left:?}");
        Ok(())
    }
}

/// All names below a folder.
pub(super) fn names_below(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).with_context(|| next.display().to_string())? {
            let path = entry?.path();
            names.push(path.file_name().unwrap_or_default().to_string_lossy().into_owned());
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            }
        }
    }
    Ok(names)
}
