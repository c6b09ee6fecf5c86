//! What goes wrong around the calls.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde_json::json;
use tool_host::{Call, Provider, ProviderSource};

use super::super::Random;
use super::super::process::object;
use super::LIMIT;
use super::crew::{Crew, MORTAL, NAMES, Place, STEADY};

/// One trouble of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    Nothing,
    /// SIGKILL in the middle.
    Kill(Place),
    /// The host ends it in order.
    Stop(Place),
    /// It does not run for a while: what a suspended machine looks like from inside, clocks and all.
    Freeze(Place),
    /// Bytes on its socket that are no frames, or frames that are none of this protocol.
    BadFrames(Place),
    /// A file system without room.
    FullDisk,
    /// A folder that nobody may enter any more, and then may again.
    LostPermission,
}

impl Trouble {
    pub(super) fn draw(random: &mut Random) -> Self {
        let name = random.pick(&NAMES).copied().unwrap_or("exec");
        let mortal = Place { crew: MORTAL, name };
        match random.below(12) {
            0 => Self::Kill(mortal),
            1 => Self::Stop(mortal),
            2 => Self::Freeze(mortal),
            3 | 4 => Self::BadFrames(Place { crew: if random.once_in(2) { STEADY } else { MORTAL }, name }),
            5 => Self::FullDisk,
            6 => Self::LostPermission,
            _ => Self::Nothing,
        }
    }

    /// The member that is not there afterwards.
    pub(super) fn victim(self) -> Option<Place> {
        match self {
            Self::Kill(place) | Self::Stop(place) => Some(place),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Kill(_) => "killed",
            Self::Stop(_) => "stopped",
            Self::Freeze(_) => "frozen",
            Self::BadFrames(_) => "bad frames",
            Self::FullDisk => "full disk",
            Self::LostPermission => "lost permission",
        }
    }

    /// Makes it, in the middle of the round's calls. Says whether it could be made on this machine.
    pub(super) async fn make(self, crew: &Crew, random: &mut Random) -> anyhow::Result<bool> {
        let moment = Duration::from_millis(random.below(80) as u64);
        tokio::time::sleep(moment).await;
        match self {
            Self::Nothing => {}
            Self::Kill(place) => crew.member(place)?.provider.kill(),
            Self::Stop(place) => drop(crew.member(place)?.provider.stop().await),
            Self::Freeze(place) => {
                let pid = crew.member(place)?.provider.pid().context("no number")?;
                signal(pid, "STOP")?;
                tokio::time::sleep(Duration::from_millis(50 + random.below(400) as u64)).await;
                signal(pid, "CONT")?;
            }
            Self::BadFrames(place) => bad_frames(crew, place, random).await?,
            Self::FullDisk => return full_disk(crew, random).await,
            Self::LostPermission => return lost_permission(crew).await,
        }
        Ok(true)
    }
}

fn signal(pid: u32, name: &str) -> anyhow::Result<()> {
    let sent = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status()?;
    ensure!(sent.success(), "no SIG{name} to {pid}");
    Ok(())
}

/// What is sent: the beginning of HTTP/2, and what does not follow from it.
fn junk(random: &mut Random) -> Vec<u8> {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let mut bytes = match random.below(4) {
        0 => Vec::new(),
        1 => PREFACE.to_vec(),
        2 => [PREFACE, &settings].concat(),
        _ => b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
    };
    bytes.extend((0..random.below(4_000)).map(|_| random.below(256) as u8));
    bytes
}

/// Talks nonsense on a provider's socket; whoever asks properly is still answered.
async fn bad_frames(crew: &Crew, place: Place, random: &mut Random) -> anyhow::Result<()> {
    let sockets: Vec<PathBuf> = fs::read_dir(&crew.member(place)?.sockets)?
        .filter_map(Result::ok)
        .flat_map(|entry| match entry.path() {
            path if path.is_dir() => fs::read_dir(path)
                .into_iter()
                .flatten()
                .filter_map(Result::ok)
                .map(|file| file.path())
                .collect(),
            path => vec![path],
        })
        .collect();
    let streams: Vec<UnixStream> = sockets.iter().filter_map(|path| UnixStream::connect(path).ok()).collect();
    ensure!(!streams.is_empty(), "no socket of {place:?} answers among {sockets:?}");
    let messages: Vec<Vec<u8>> = (0..5).map(|_| junk(random)).collect();
    let told = tokio::task::spawn_blocking(move || {
        for mut stream in streams {
            stream.set_read_timeout(Some(Duration::from_millis(20)))?;
            for message in &messages {
                // It may have hung up, which is right.
                let _ = stream.write_all(message);
                let _ = stream.read(&mut [0; 1024]);
            }
        }
        anyhow::Ok(())
    });
    told.await??;
    let provider = &crew.member(place)?.provider;
    let (tool, arguments) = match place.name {
        "filesystem" => ("file_info", json!({"path": "."})),
        "search" => ("glob", json!({"pattern": "*.none"})),
        "exec" => ("job_list", json!({})),
        "task" => ("task_list", json!({})),
        "agent" => ("subagent_list", json!({})),
        // Nothing is asked for so cheaply of the others; that they still answer shows in a refusal.
        "user" => return Ok(()),
        _ => {
            let refused = provider.configure(object(json!({"nonsense": 1}))?).await;
            return refused.err().map(drop).context("it takes any configuration");
        }
    };
    let mut call = Call::new(tool, object(arguments)?, "s");
    call.working_directory = crew.below(place.crew, "root");
    let outcome = tokio::time::timeout(LIMIT, crew.host.call(provider, call).outcome()).await?;
    outcome.map(drop).map_err(|error| anyhow::anyhow!("after bad frames {tool} fails: {error}"))
}

/// A provider of files behind a script that prepares where it runs.
async fn prepared(crew: &Crew, name: &str, before: &str, root: &Path) -> anyhow::Result<Provider> {
    let folder = crew.folder().join(name);
    fs::create_dir_all(folder.join("sockets"))?;
    fs::create_dir_all(root)?;
    let script = folder.join("provider.sh");
    fs::write(
        &script,
        format!("#!/bin/sh\n{before} '{}' __provider filesystem\n", crew.program().display()),
    )?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    let options = crew.options(MORTAL, &folder.join("sockets"));
    let provider = Provider::launch(&ProviderSource::Path(script), options).await?;
    let config = json!({"allowed_roots": [root], "state_dir": folder.join("state")});
    provider.configure(object(config)?).await?;
    Ok(provider)
}

async fn written(
    crew: &Crew,
    provider: &Provider,
    path: &Path,
    content: &str,
) -> anyhow::Result<Option<String>> {
    let mut call =
        Call::new("write_file", object(json!({"path": path, "content": content, "force": true}))?, "s");
    call.working_directory = path.parent().unwrap_or(path).to_owned();
    match tokio::time::timeout(LIMIT, crew.host.call(provider, call).outcome()).await? {
        Ok(_) => Ok(None),
        Err(error) => Ok(Some(format!("{} {error}", error.category))),
    }
}

/// Whether a command runs here: what needs a privilege may not be there.
fn can(command: &str) -> bool {
    Command::new("sh").args(["-c", command]).output().is_ok_and(|output| output.status.success())
}

/// A file system of its own, of 256 KiB, that only the provider sees and that is gone with it.
async fn full_disk(crew: &Crew, random: &mut Random) -> anyhow::Result<bool> {
    let root = crew.folder().join("full/root");
    fs::create_dir_all(&root)?;
    let mount = format!("mount -t tmpfs -o size=256k tmpfs '{}'", root.display());
    let unshare = if can(&format!("unshare --mount sh -c \"{mount}\"")) {
        "unshare --mount"
    } else if can(&format!("unshare --map-root-user --mount sh -c \"{mount}\"")) {
        "unshare --map-root-user --mount"
    } else {
        return Ok(false);
    };
    let before = format!("exec {unshare} sh -c \"{mount} && exec \\\"\\$0\\\" \\\"\\$@\\\"\"");
    let provider = prepared(crew, "full", &before, &root).await?;
    let inside = Path::new("/proc").join(provider.pid().context("no number")?.to_string()).join("root");
    let seen = |name: &str| fs::read(inside.join(root.strip_prefix("/").unwrap_or(&root)).join(name));
    let small = format!("small {}\n", random.next());
    ensure!(
        written(crew, &provider, &root.join("a.txt"), &small).await?.is_none(),
        "there is room for a small file"
    );
    for size in [300_000, 1_000_000] {
        let error = written(crew, &provider, &root.join("a.txt"), &"x".repeat(size)).await?;
        let error = error.context("a file is written where there is no room for it")?;
        ensure!(error.contains("space") || error.contains("full"), "no room is told as {error}");
        ensure!(seen("a.txt")? == small.as_bytes(), "what was there is lost for lack of room");
    }
    let names: Vec<_> = fs::read_dir(inside.join(root.strip_prefix("/")?))?
        .filter_map(Result::ok)
        .map(|entry| entry.file_name())
        .collect();
    ensure!(names == ["a.txt"], "a write without room leaves {names:?}");
    ensure!(
        written(crew, &provider, &root.join("b.txt"), &small).await?.is_none(),
        "there is still room for a small file"
    );
    provider.stop().await;
    Ok(true)
}

/// A folder loses its permissions, for a provider that root's privileges do not help.
async fn lost_permission(crew: &Crew) -> anyhow::Result<bool> {
    let root = crew.folder().join("locked/root");
    let drop_them = "setpriv --bounding-set=-dac_override,-dac_read_search,-fowner --inh-caps=-all";
    let is_root = can("test \"$(id -u)\" = 0");
    if is_root && !can(&format!("{drop_them} true")) {
        return Ok(false);
    }
    let before = if is_root { format!("exec {drop_them}") } else { "exec".to_owned() };
    let provider = prepared(crew, "locked", &before, &root).await?;
    let folder = root.join("folder");
    fs::create_dir_all(&folder)?;
    let file = folder.join("a.txt");
    ensure!(written(crew, &provider, &file, "first\n").await?.is_none(), "the file cannot be written");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o000))?;
    let refused = written(crew, &provider, &file, "second\n").await;
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755))?;
    match refused? {
        Some(error) if error.starts_with("permission_denied") => {}
        other => bail!("a folder that may not be entered: {other:?}"),
    }
    ensure!(fs::read(&file)? == b"first\n", "a refused write has changed the file");
    ensure!(written(crew, &provider, &file, "third\n").await?.is_none(), "the file cannot be written again");
    ensure!(fs::read(&file)? == b"third\n", "what was written is not there");
    let names: Vec<_> =
        fs::read_dir(&folder)?.filter_map(Result::ok).map(|entry| entry.file_name()).collect();
    ensure!(names == ["a.txt"], "a refused write leaves {names:?}");
    provider.stop().await;
    Ok(true)
}

/// How often what was met.
#[derive(Default)]
pub(super) struct Counts(BTreeMap<&'static str, u64>, BTreeMap<&'static str, u64>);

impl Counts {
    pub(super) fn count(&mut self, trouble: Trouble, could_be_made: bool) {
        let counts = if could_be_made { &mut self.0 } else { &mut self.1 };
        *counts.entry(trouble.name()).or_default() += 1;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |counts: &BTreeMap<&'static str, u64>| {
            let troubles = counts.iter().filter(|(name, _)| **name != "nothing");
            troubles.map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
        };
        write!(f, "{}", list(&self.0))?;
        if self.1.is_empty() {
            Ok(())
        } else {
            write!(f, "; not possible on this machine: {}", list(&self.1))
        }
    }
}
