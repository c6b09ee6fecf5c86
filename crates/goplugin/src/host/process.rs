//! The plugin's process: watched, reaped, and killed with its group.

use std::process::Child;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use tokio::sync::watch;

use super::exit::{Exit, Intent};
use crate::os;

/// How long a dropped plugin is waited for: SIGKILL takes effect within moments.
const LONGEST_REAP: Duration = Duration::from_millis(100);

/// A child process that leads its own group. Dropping it kills the group.
#[derive(Debug)]
pub(super) struct Process(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    pid: Pid,
    state: Mutex<State>,
    exit: watch::Sender<Option<Exit>>,
}

#[derive(Debug)]
struct State {
    /// `None` once reaped: from then on its id may be somebody else's.
    child: Option<Child>,
    intent: Intent,
}

impl Process {
    /// Takes charge of a child that was started as the leader of a new group.
    pub(super) fn new(child: Child) -> Self {
        let pid = Pid::from_child(&child);
        let state = Mutex::new(State { child: Some(child), intent: Intent::Run });
        let shared = Arc::new(Shared { pid, state, exit: watch::Sender::new(None) });
        // Not tied to this handle's life: somebody has to reap the child after a drop.
        tokio::spawn({
            let shared = Arc::clone(&shared);
            async move {
                os::child_ended(shared.pid).await;
                shared.reap();
            }
        });
        Self(shared)
    }

    pub(super) fn pid(&self) -> u32 {
        self.0.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// How the process ended, if it has.
    pub(super) fn exit(&self) -> Option<Exit> {
        *self.0.exit.borrow()
    }

    /// Resolves when the process has ended.
    pub(super) fn exited(&self) -> impl Future<Output = Exit> + Send + use<> {
        // Keeps the sender alive along with the receiver.
        let shared = Arc::clone(&self.0);
        async move {
            let mut exit = shared.exit.subscribe();
            loop {
                if let Some(exit) = *exit.borrow_and_update() {
                    return exit;
                }
                let _ = exit.changed().await;
            }
        }
    }

    /// Notes that the process is about to be asked to stop, so that leaving is no crash.
    pub(super) fn expect_stop(&self) {
        self.0.lock().intent = Intent::Stop;
    }

    /// Kills the process and its group, unless it has ended already.
    pub(super) fn kill(&self) {
        let mut state = self.0.lock();
        if state.child.is_some() {
            state.intent = Intent::Kill;
            self.0.kill_group();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Only to be called while the child is not reaped, or the group may be somebody else's.
    fn kill_group(&self) {
        // An error means that nobody is left in the group.
        let _ = rustix::process::kill_process_group(self.pid, Signal::KILL);
    }

    /// Reaps the child if it has ended, and kills what it leaves behind in its group.
    fn reap(&self) {
        let mut state = self.lock();
        let Some(child) = &mut state.child else { return };
        if !os::child_has_ended(self.pid) {
            return;
        }
        self.kill_group();
        if let Ok(status) = child.wait() {
            let exit = Exit::new(status, state.intent);
            state.child = None;
            self.exit.send_replace(Some(exit));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        // The task that reaps may never run again if the runtime is on its way out.
        let deadline = Instant::now() + LONGEST_REAP;
        while self.exit().is_none() && Instant::now() < deadline {
            self.0.reap();
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}
