//! What a host makes of plugins, good and bad.

use std::path::{Path, PathBuf};
use std::time::Duration;

use goplugin::Address;
use goplugin::host::{Death, Exit, Launch, LaunchError, Running};
use rustix::process::{Pid, Signal};
use tonic_health::ServingStatus;

use crate::support::{CONTRACT, DEMO, health, is_alive, launch, until, until_dead};

/// The private folder of a plugin's sockets.
fn socket_dir(running: &Running) -> PathBuf {
    match &running.handshake().address {
        Address::Unix(path) => path.parent().unwrap().to_owned(),
        Address::Tcp(address) => panic!("no unix socket but {address}"),
    }
}

async fn check_serves(running: &Running) {
    assert_eq!(health(running.channel(), "plugin").await.unwrap(), ServingStatus::Serving as i32);
}

fn kill(running: &Running, signal: Signal) {
    let pid = Pid::from_raw(running.pid().try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

#[tokio::test]
async fn a_stopped_plugin_leaves_in_order_and_nothing_behind() {
    let (launch, mut stderr) = launch("");
    let running = launch.start(None).await.unwrap();
    let (pid, dir) = (running.pid(), socket_dir(&running));
    assert_eq!(mode(&dir), 0o700);
    assert_eq!(running.handshake().app_version, 2);
    check_serves(&running).await;
    assert_eq!(running.exit(), None);
    assert_eq!(running.stop().await, Exit::Orderly);
    assert_eq!(stderr.after("stopping: ").await, "Shutdown");
    assert!(!is_alive(pid) && !dir.exists());
}

fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn a_plugin_that_never_finishes_stopping_still_leaves_by_itself() {
    let running = launch("slow stop").0.start(None).await.unwrap();
    assert_eq!(running.stop().await, Exit::Orderly);
}

#[tokio::test]
async fn a_plugin_that_does_not_stop_is_killed() {
    let running = launch("stubborn").0.stop_timeout(Duration::from_millis(200)).start(None).await.unwrap();
    let (pid, dir) = (running.pid(), socket_dir(&running));
    assert_eq!(running.stop().await, Exit::Killed);
    assert!(!is_alive(pid) && !dir.exists());
}

#[tokio::test]
async fn the_environment_is_exactly_what_was_named() {
    let (launch, mut stderr) = launch("environment");
    let running =
        launch.env("GREETING", "hello").inherit(["PATH", "NO_SUCH_VARIABLE"]).start(None).await.unwrap();
    let expected = format!(
        "DEMO=environment DEMO_COOKIE=crumbs GREETING=hello PATH={} PLUGIN_MAX_PORT=25000 PLUGIN_MIN_PORT=10000 \
         PLUGIN_PROTOCOL_VERSIONS=1,2 PLUGIN_UNIX_SOCKET_DIR={}",
        std::env::var("PATH").unwrap(),
        socket_dir(&running).display(),
    );
    assert_eq!(stderr.after("environment: ").await, expected);
    running.stop().await;
}

#[tokio::test]
async fn a_killed_plugin_shows_its_signal() {
    let running = launch("").0.start(None).await.unwrap();
    let dir = socket_dir(&running);
    kill(&running, Signal::KILL);
    let crashed = Exit::Crashed(Death::Signal(9));
    assert_eq!(running.exited().await, crashed);
    assert_eq!(running.exit(), Some(crashed));
    assert!(health(running.channel(), "plugin").await.is_err());
    assert_eq!(running.stop().await, crashed);
    assert!(!dir.exists());
}

#[tokio::test]
async fn a_crashed_plugin_shows_its_code_and_last_words() {
    let running = launch("crash").0.start(None).await;
    // It may be gone before the connection is made.
    let (exit, words) = match running {
        Ok(running) => (running.exited().await, running.stderr_tail()),
        Err(LaunchError::Exited { exit, last_words, .. }) => (exit, last_words.0),
        Err(other) => panic!("{other}"),
    };
    assert_eq!((exit, words.as_str()), (Exit::Crashed(Death::Code(3)), "about to crash\n"));
}

#[tokio::test]
async fn leaving_unasked_is_a_crash_even_in_order() {
    let running = launch("").0.start(None).await.unwrap();
    kill(&running, Signal::TERM);
    assert_eq!(running.exited().await, Exit::Crashed(Death::Code(0)));
}

#[tokio::test]
async fn a_dropped_plugin_is_killed_with_its_group() {
    let (launch, mut stderr) = launch("child");
    let running = launch.start(None).await.unwrap();
    let child = stderr.after("child: ").await.parse().unwrap();
    let (pid, dir) = (running.pid(), socket_dir(&running));
    assert!(is_alive(child));
    drop(running);
    assert!(!is_alive(pid) && !dir.exists());
    until_dead(child).await;
}

#[tokio::test]
async fn a_crash_takes_the_group_with_it() {
    let (launch, mut stderr) = launch("child");
    let running = launch.start(None).await.unwrap();
    let child = stderr.after("child: ").await.parse().unwrap();
    kill(&running, Signal::KILL);
    running.exited().await;
    until_dead(child).await;
}

#[tokio::test]
async fn two_launches_in_quick_succession_both_serve() {
    let (one, two) = (launch("").0, launch("").0);
    let (one, two) = tokio::join!(one.start(None), two.start(None));
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_ne!(one.pid(), two.pid());
    assert_ne!(socket_dir(&one), socket_dir(&two));
    check_serves(&one).await;
    check_serves(&two).await;
    assert_eq!(tokio::join!(one.stop(), two.stop()), (Exit::Orderly, Exit::Orderly));
}

#[tokio::test]
async fn a_line_of_1_mib_on_stdout_does_not_block_the_plugin() {
    let (launch, mut stderr) = launch("spill");
    let running = launch.start(None).await.unwrap();
    stderr.after("spilled").await;
    check_serves(&running).await;
    assert_eq!(running.stop().await, Exit::Orderly);
}

/// A launch of a shell script in the place of a plugin.
fn script(text: &str) -> Launch {
    Launch::new("/bin/sh", CONTRACT).args(["-c", text]).basic_env()
}

/// Starts a script that is no plugin, and returns the error's text.
async fn refused(launch: Launch) -> String {
    launch.start(None).await.unwrap_err().to_string()
}

#[tokio::test]
async fn garbage_is_shown() {
    assert_eq!(
        refused(script("echo oh no >&2; echo hello; sleep 1000")).await,
        "/bin/sh printed \"hello\" instead of a handshake: it has 1 of at least 4 fields separated by '|'\n\
         its standard error ends with:\noh no"
    );
    let endless = refused(script("exec tr '\\0' x < /dev/zero")).await;
    assert!(endless.starts_with("/bin/sh printed \"xxxxx") && endless.len() < 1000, "{endless}");
}

#[tokio::test]
async fn an_exit_without_handshake_is_told_with_its_last_words() {
    assert_eq!(
        refused(script("echo no licence >&2; exit 7")).await,
        "/bin/sh exited with code 7 before it was ready\n\
         its standard error ends with:\nno licence"
    );
    assert_eq!(refused(script("kill -9 $$")).await, "/bin/sh was ended by SIGKILL before it was ready");
}

#[tokio::test]
async fn an_exit_is_noticed_while_a_child_holds_the_output() {
    let text = refused(script("sleep 1000 & exit 7")).await;
    assert_eq!(text, "/bin/sh exited with code 7 before it was ready");
}

#[tokio::test]
async fn a_closed_output_is_no_handshake() {
    let text = refused(script("exec >&-; sleep 1000")).await;
    assert_eq!(text, "/bin/sh closed its standard output without a handshake");
}

#[tokio::test]
async fn silence_is_given_up_on() {
    let launch = script("sleep 1000").handshake_timeout(Duration::from_millis(100));
    assert_eq!(refused(launch).await, "/bin/sh was not ready within 100ms");
}

#[tokio::test]
async fn a_handshake_that_leads_nowhere_is_an_error() {
    let text = refused(script("echo '1|1|unix|/nonexistent/socket|grpc|'; sleep 1000")).await;
    assert!(text.starts_with("cannot connect to /bin/sh at /nonexistent/socket: "), "{text}");
    let text = refused(script("echo '1|7|unix|/nonexistent/socket|grpc|'; sleep 1000")).await;
    assert_eq!(text, "/bin/sh speaks protocol version 7, the host [1, 2]");
}

#[tokio::test]
async fn a_program_that_does_not_exist_is_an_error() {
    let text = refused(Launch::new("/nonexistent/plugin", CONTRACT)).await;
    assert_eq!(text, "cannot start /nonexistent/plugin: No such file or directory (os error 2)");
}

#[tokio::test]
async fn a_start_that_is_given_up_leaves_no_process() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pid");
    let launch = script(&format!("echo $$ > {}; sleep 1000", file.display()));
    let started = tokio::spawn(launch.start(None));
    let pid = until("the script runs", || std::fs::read_to_string(&file).ok()?.trim().parse().ok()).await;
    assert!(is_alive(pid));
    started.abort();
    assert!(started.await.unwrap_err().is_cancelled());
    assert!(!is_alive(pid));
}

#[tokio::test]
async fn a_socket_outside_the_hosts_folder_is_removed_too() {
    let dir = tempfile::tempdir().unwrap();
    let script = format!("PLUGIN_UNIX_SOCKET_DIR={} exec {DEMO}", dir.path().display());
    let running = self::script(&script).start(None).await.unwrap();
    assert_eq!(socket_dir(&running), dir.path());
    kill(&running, Signal::KILL);
    running.exited().await;
    running.stop().await;
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_socket_of_somebody_elses_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("other");
    let _other = std::os::unix::net::UnixListener::bind(&path).unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let line = format!("1|1|unix|{}|grpc|", path.display());
    script(&format!("echo '{line}'; sleep 1000")).start(None).await.unwrap().stop().await;
    assert!(path.exists());
}

#[tokio::test]
async fn the_plugin_runs_where_it_is_told_to() {
    let dir = tempfile::tempdir().unwrap();
    let text = refused(script("pwd -P >&2; exit 1").current_dir(dir.path())).await;
    assert!(text.ends_with(&format!("\n{}", dir.path().canonicalize().unwrap().display())), "{text}");
}
