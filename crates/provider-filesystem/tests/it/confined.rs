//! The built provider as a process that is short of room.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use goplugin::host::{Launch, Running};
use harness_proto::common::v1::CallContext;
use harness_proto::tool::v1 as pb;
use pb::tool_service_client::ToolServiceClient;
use provider_core::CONTRACT;
use provider_core::testing::tree::{Tree, snapshot};
use provider_core::testing::{Outcome, event_to_json};
use provider_core::wire::value_to_struct;
use serde_json::{Value, json};

const PROVIDER: &str = env!("CARGO_BIN_EXE_provider-filesystem");

/// How long anything may take that should happen at all.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a provider is short of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortage {
    /// Its small folder is a file system of this many KiB, which nobody else sees.
    FileSystem(u32),
    /// It may make no file longer than about this many KiB (at most twice as many), on no file system.
    FileSize(u32),
}

/// The shortages that can be brought about here. A limit on files needs no right at all; a file system of one's own
/// needs a namespace, and where there is none that is said.
pub fn shortages(file_system: u32, file_size: u32) -> Vec<Shortage> {
    let mut all = vec![Shortage::FileSize(file_size)];
    match namespace() {
        Some(_) => all.push(Shortage::FileSystem(file_system)),
        None => {
            let _ = writeln!(
                std::io::stderr(),
                "no namespace can be made here: only limits on the size of files are tried"
            );
        }
    }
    all
}

/// The arguments with which `unshare` makes a namespace to mount in: as root, or as anybody where that is allowed.
fn namespace() -> Option<&'static [&'static str]> {
    let ways: [&'static [&'static str]; 2] = [&["--mount"], &["--user", "--map-root-user", "--mount"]];
    let folder = tempfile::tempdir().unwrap();
    ways.into_iter().find(|way| {
        let mut command = Command::new("unshare");
        command.args(*way).args(["sh", "-c", "mount -t tmpfs none \"$0\""]).arg(folder.path());
        command.output().is_ok_and(|output| output.status.success())
    })
}

/// A launched provider, a folder that has little room, and one that has enough.
pub struct Confined {
    running: Running,
    /// Both folders, as everybody but the small file system has them.
    folder: tempfile::TempDir,
    /// The small folder, seen from here.
    small: PathBuf,
}

impl Confined {
    /// Starts one that uses the roots `small` and `large` as named, and keeps its state in `state`.
    pub async fn new(shortage: Shortage, roots: &[&str], state: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["small", "large"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let at = folder.path().join("small");
        let launch = match shortage {
            Shortage::FileSystem(size) => {
                let script =
                    format!("mount -t tmpfs -o size={size}k none \"$0\" && mkdir \"$0/root\" && exec \"$1\"");
                let way = namespace().unwrap().iter().map(|word| (*word).to_owned());
                let rest = ["sh", "-c", &script, at.to_str().unwrap(), PROVIDER].map(str::to_owned);
                Launch::new("unshare", CONTRACT).args(way.chain(rest))
            }
            // The unit is 512 bytes in some shells and 1024 in others.
            Shortage::FileSize(size) => {
                std::fs::create_dir(at.join("root")).unwrap();
                let script = format!("trap '' XFSZ; ulimit -f {size}; exec \"$0\"");
                Launch::new("/bin/sh", CONTRACT).args(["-c", &script, PROVIDER])
            }
        };
        let running = launch.basic_env().start(None).await.unwrap();
        let small = match shortage {
            Shortage::FileSystem(_) => {
                let own = format!("/proc/{}/root{}", running.pid(), at.display());
                PathBuf::from(own)
            }
            Shortage::FileSize(_) => at,
        };
        let confined = Self { running, folder, small };
        let place = |name: &&str| confined.folder.path().join(name);
        let config = json!({
            "allowed_roots": roots.iter().map(place).collect::<Vec<_>>(),
            "state_dir": confined.folder.path().join(state),
        });
        let request = pb::ConfigureRequest { config: Some(value_to_struct(config)) };
        confined.client().configure(request).await.unwrap();
        confined
    }

    fn client(&self) -> ToolServiceClient<tonic::transport::Channel> {
        ToolServiceClient::new(self.running.channel())
            .max_decoding_message_size(usize::MAX)
            .max_encoding_message_size(usize::MAX)
    }

    /// A path below `small` or `large`, as this process reaches it.
    pub fn at(&self, name: &str) -> PathBuf {
        match Path::new(name).strip_prefix("small") {
            Ok(below) => self.small.join(below),
            Err(_) => self.folder.path().join(name),
        }
    }

    /// The same, as the provider knows it.
    pub fn named(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    pub fn put(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.at(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    pub fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.at(name)).unwrap()
    }

    /// Everything below a folder.
    pub fn tree(&self, name: &str) -> Tree {
        snapshot(&self.at(name))
    }

    /// A call from the directory `from`.
    pub async fn call(&self, from: &str, tool: &str, arguments: Value) -> Outcome {
        let context = CallContext {
            session_id: "s".to_owned(),
            turn_id: String::new(),
            working_directory: self.named(from),
        };
        let call = pb::ToolCall {
            id: format!("{tool}-{}", arguments.to_string().len()),
            tool_name: tool.to_owned(),
            arguments: Some(value_to_struct(arguments)),
            call_context: Some(context),
        };
        let invoked = async {
            let mut client = self.client();
            let mut stream =
                client.invoke(pb::InvokeRequest { call: Some(call) }).await.unwrap().into_inner();
            let mut events = Vec::new();
            while let Some(message) = stream.message().await.unwrap() {
                events.push(event_to_json(message.event.unwrap_or_default()));
            }
            Outcome { events }
        };
        tokio::time::timeout(PATIENCE, invoked).await.expect("the call hangs")
    }
}
