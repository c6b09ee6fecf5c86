//! A provider for each folder that sessions work in.
//!
//! A provider is held to the roots it was configured with. A host that serves several workspaces through one process gets
//! a provider of its own for each, which reaches that workspace and nothing else; those that are not in use are stopped
//! when there are many. With roots on the command line there is one provider, and workspaces must lie in its roots.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::{BoxFuture, join_all};
use plugin_wire::{Caller, Made, Member};
use tokio::sync::Mutex;
use tool_host::catalogue::Attribute;
use tool_host::{Call, CallError, Category, Host, Invocation, Provider};

use crate::cli::PluginArgs;
use crate::exit::Failure;
use crate::open::Setup;
use crate::reach::{Reach, is_code};
use crate::shell::Shell;

/// Providers of one kind that are kept for workspaces at a time.
const MOST_ROOMS: usize = 8;

/// Starts providers for workspaces.
pub(crate) struct Opener {
    setup: Setup,
    host: Host,
    shell: Shell,
    timeout: Option<std::time::Duration>,
    /// Whether the roots were given, and hold for every workspace.
    fixed: bool,
    /// Whether a call must say where it works.
    needs_workspace: bool,
}

impl Opener {
    pub(crate) fn new(setup: Setup, host: Host, args: &PluginArgs, shell: Shell) -> Self {
        let (fixed, timeout) = (!args.shared.root.is_empty(), args.shared.timeout);
        Self { setup, host, shell, timeout, fixed, needs_workspace: args.require_workspace }
    }

    pub(crate) fn session(&self) -> &str {
        &self.setup.session
    }

    pub(crate) fn working_directory(&self) -> &Path {
        &self.setup.working_directory
    }

    pub(crate) fn shell(&self) -> &Shell {
        &self.shell
    }

    /// Refuses configuration that nothing of this knows.
    pub(crate) fn check_settings<'a>(&self, rooms: impl Iterator<Item = &'a Rooms>) -> Result<(), Failure> {
        let known: Vec<Attribute> = rooms.flat_map(|rooms| rooms.home.attributes()).collect();
        Ok(self.setup.settings.check_known_to_any(&known)?)
    }

    async fn open(&self, name: &str, setup: &Setup) -> Result<Room, Failure> {
        if is_code(name) {
            let (code, reach) = setup.open_code(&self.host, &self.shell).await?;
            return Ok(Room::Code(code, Box::new(reach)));
        }
        setup.open_among_others(name, &self.shell).await.map(Room::Provider)
    }
}

/// Something that makes calls, in one workspace.
enum Room {
    Provider(Provider),
    /// Programs, over providers of their own.
    Code(Provider, Box<Reach>),
}

impl Room {
    fn provider(&self) -> &Provider {
        match self {
            Self::Provider(provider) | Self::Code(provider, _) => provider,
        }
    }

    fn attributes(&self) -> Vec<Attribute> {
        let mut attributes = self.provider().catalogue().config.clone();
        if let Self::Code(_, reach) = self {
            attributes.extend(reach.attributes());
        }
        attributes
    }

    /// Whether it is held to roots.
    fn is_rooted(&self) -> bool {
        let roots = |attribute: &Attribute| matches!(attribute.name.as_str(), "allowed_roots" | "root");
        self.attributes().iter().any(roots)
    }

    fn call(&self, host: &Host, call: Call) -> Invocation {
        match self {
            Self::Provider(provider) => host.call(provider, call),
            Self::Code(provider, reach) => reach.call(host, provider, call),
        }
    }

    async fn stop(&self) {
        match self {
            Self::Provider(provider) => {
                provider.stop().await;
            }
            Self::Code(provider, reach) => {
                tokio::join!(provider.stop(), reach.stop());
            }
        }
    }
}

/// One provider, in every workspace that calls name.
pub(crate) struct Rooms {
    name: String,
    opener: Arc<Opener>,
    /// In the directory that holds when a call names none.
    home: Arc<Room>,
    /// In other workspaces, the most recently used last.
    others: Mutex<Vec<(PathBuf, Arc<Room>)>>,
}

impl Rooms {
    /// Starts the provider for calls that name no workspace.
    pub(crate) async fn open(name: &str, opener: Arc<Opener>) -> Result<Self, Failure> {
        let home = Arc::new(opener.open(name, &opener.setup).await?);
        Ok(Self { name: name.to_owned(), opener, home, others: Mutex::default() })
    }

    /// The provider as it is served.
    pub(crate) fn member(this: &Arc<Self>) -> Member {
        let provider = this.home.provider();
        Member {
            identity: provider.identity().clone(),
            tools: provider.catalogue().tools.clone(),
            caller: this.clone(),
        }
    }

    async fn room(&self, workspace: &Path) -> Result<Arc<Room>, CallError> {
        if self.opener.fixed || workspace == self.opener.setup.working_directory || !self.home.is_rooted() {
            return Ok(self.home.clone());
        }
        let mut others = self.others.lock().await;
        if let Some(at) = others.iter().position(|(folder, _)| folder == workspace) {
            let found = others.remove(at);
            let room = found.1.clone();
            others.push(found);
            return Ok(room);
        }
        let setup = self.opener.setup.rooted_at(workspace);
        let room = self.opener.open(&self.name, &setup).await.map_err(|failure| failure.error)?;
        let room = Arc::new(room);
        others.push((workspace.to_owned(), room.clone()));
        if others.len() > MOST_ROOMS
            && let Some(at) = others.iter().position(|(_, room)| Arc::strong_count(room) == 1)
        {
            others.remove(at).1.stop().await;
        }
        Ok(room)
    }

    pub(crate) async fn stop(&self) {
        let others = std::mem::take(&mut *self.others.lock().await);
        tokio::join!(self.home.stop(), join_all(others.iter().map(|(_, room)| room.stop())));
    }
}

impl Caller for Rooms {
    fn call<'a>(&'a self, mut call: Call) -> BoxFuture<'a, Result<Made, CallError>> {
        Box::pin(async move {
            if call.working_directory.as_os_str().is_empty() {
                if self.opener.needs_workspace && self.home.is_rooted() {
                    let message =
                        "the call names no workspace: context.workspace is the absolute folder to work in";
                    return Err(CallError::new(Category::InvalidArguments, message));
                }
                call.working_directory.clone_from(&self.opener.setup.working_directory);
            }
            call.timeout = self.opener.timeout;
            let room = self.room(&call.working_directory).await?;
            let invocation = room.call(&self.opener.host, call);
            Ok(Made { invocation, held: room })
        })
    }
}
