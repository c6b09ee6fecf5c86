//! The plugin's own socket.

use std::ffi::OsStr;
use std::fs::Permissions;
use std::io;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempPath;
use tokio::net::{TcpListener, UnixListener};

use super::environment::Request;
use super::{StartError, Transport};
use crate::Address;
use crate::socket::Listener;

/// Systems allow 104 to 108 bytes for a socket's path.
const LONGEST_PATH: usize = 100;

/// A separator, the prefix and tempfile's six random characters.
const LONGEST_NAME: usize = 1 + PREFIX.len() + 6;

const PREFIX: &str = "plugin-";

/// Where sockets go when nobody names a usable place.
const LAST_RESORT: &str = "/tmp";

/// A listening socket, with its file if it has one.
#[derive(Debug)]
pub(super) struct Bound {
    pub(super) listener: Listener,
    pub(super) address: Address,
    /// Removes the file when dropped.
    pub(super) file: Option<TempPath>,
}

impl Bound {
    pub(super) fn new(request: &Request, transport: Transport) -> Result<Self, StartError> {
        match transport {
            Transport::Unix => {
                let bound = bind_unix(request.socket_dir.as_deref(), std::env::var_os("TMPDIR").as_deref())?;
                bound.restrict(request.socket_group.as_deref())?;
                Ok(bound)
            }
            Transport::Tcp => bind_tcp(&request.ports),
        }
    }

    /// Lets only this user connect, or the group as well if the host names one.
    fn restrict(&self, group: Option<&str>) -> Result<(), StartError> {
        let Address::Unix(path) = &self.address else { return Ok(()) };
        let given = match group {
            None => std::fs::set_permissions(path, Permissions::from_mode(0o600)),
            Some(group) => group_id(group)
                .and_then(|id| std::os::unix::fs::chown(path, None, Some(id)))
                .and_then(|()| std::fs::set_permissions(path, Permissions::from_mode(0o660))),
        };
        given.map_err(|source| StartError::Restrict {
            path: path.clone(),
            whom: group.map_or_else(|| "its user".to_owned(), |group| format!("group {group}")),
            source,
        })
    }
}

/// Binds in the folder the host names, which must work unless its path is too long; else in the temporary
/// folder, else in `/tmp`.
fn bind_unix(asked: Option<&Path>, temporary: Option<&OsStr>) -> Result<Bound, StartError> {
    let fits = |dir: &Path| dir.as_os_str().len() + LONGEST_NAME <= LONGEST_PATH;
    let absolute = |dir: &Path| std::path::absolute(dir).ok().filter(|dir| fits(dir));
    let failed = |dir: &Path, source| StartError::Listen { place: dir.display().to_string(), source };
    if let Some(dir) = asked.and_then(absolute) {
        return bind_in(&dir).map_err(|source| failed(&dir, source));
    }
    let temporary = temporary.filter(|dir| !dir.is_empty()).map(Path::new).and_then(absolute);
    if let Some(bound) = temporary.and_then(|dir| bind_in(&dir).ok()) {
        return Ok(bound);
    }
    let dir = Path::new(LAST_RESORT);
    bind_in(dir).map_err(|source| failed(dir, source))
}

/// Binds under a name that nothing has, so whatever a killed predecessor left behind is in nobody's way.
fn bind_in(dir: &Path) -> io::Result<Bound> {
    let made = tempfile::Builder::new().prefix(PREFIX).make_in(dir, |path| UnixListener::bind(path))?;
    let (listener, file) = made.into_parts();
    let address = Address::Unix(PathBuf::from(&file));
    Ok(Bound { listener: Listener::Unix(listener), address, file: Some(file) })
}

/// Binds the first free port of the range on the loopback interface.
fn bind_tcp(ports: &RangeInclusive<u16>) -> Result<Bound, StartError> {
    let failed = |source| StartError::Listen {
        place: format!("ports {} to {} of the loopback interface", ports.start(), ports.end()),
        source,
    };
    let mut last = io::ErrorKind::AddrInUse.into();
    for port in ports.clone() {
        match std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Ok(listener) => return tcp(listener).map_err(failed),
            Err(error) => last = error,
        }
    }
    Err(failed(last))
}

fn tcp(listener: std::net::TcpListener) -> io::Result<Bound> {
    listener.set_nonblocking(true)?;
    let address = Address::Tcp(listener.local_addr()?);
    Ok(Bound { listener: Listener::Tcp(TcpListener::from_std(listener)?), address, file: None })
}

/// The id of a group given by name or number.
fn group_id(group: &str) -> io::Result<u32> {
    if let Ok(id) = group.parse() {
        return Ok(id);
    }
    let found = nix::unistd::Group::from_name(group)?;
    found
        .map(|found| found.gid.as_raw())
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such group"))
}
