//! The thread that starts the processes of programs.
//!
//! The kernel ends such a process together with the thread that started it, so that nothing is left when this process is
//! killed. A thread of a runtime may end long before the runtime does. This one never ends.

use std::io;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, Sender, channel};

use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

struct Request {
    command: Command,
    /// The runtime that watches over the process.
    runtime: Handle,
    reply: oneshot::Sender<io::Result<Child>>,
}

/// Starts a process.
///
/// # Errors
/// What the operating system says.
pub(crate) async fn start(command: Command) -> io::Result<Child> {
    static STARTER: OnceLock<Option<Sender<Request>>> = OnceLock::new();
    let gone = || io::Error::other("there is no thread to start it");
    let starter = STARTER.get_or_init(begin).as_ref().ok_or_else(gone)?;
    let (reply, started) = oneshot::channel();
    starter.send(Request { command, runtime: Handle::current(), reply }).map_err(|_| gone())?;
    started.await.map_err(|_| gone())?
}

fn begin() -> Option<Sender<Request>> {
    let (sender, requests) = channel();
    let thread = std::thread::Builder::new().name("sandbox-starter".to_owned());
    thread.spawn(move || serve(&requests)).ok()?;
    Some(sender)
}

fn serve(requests: &Receiver<Request>) {
    while let Ok(Request { mut command, runtime, reply }) = requests.recv() {
        let _watched = runtime.enter();
        // Whoever asked may have gone; the process is then killed as it is dropped.
        let _ = reply.send(command.spawn());
    }
}
