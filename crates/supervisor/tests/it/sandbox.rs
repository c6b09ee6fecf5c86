//! Every level that this machine reports is shown to hold, from inside bash; and what should work works.

use std::fs::{self, File};
use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use supervisor::sandbox::{Finding, Level, Mode, Request, Sandbox, Wanted, survey};
use supervisor::{Event, Status, Supervisor};

use crate::support::{events, files, job, status, supervisor, text};

/// A workspace, a temporary directory, and a neighbour that must stay as it is.
struct Place {
    _scratch: tempfile::TempDir,
    root: PathBuf,
    temporary: PathBuf,
    outside: PathBuf,
}

impl Place {
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().canonicalize().unwrap();
        let at = |name: &str| {
            fs::create_dir(path.join(name)).unwrap();
            path.join(name)
        };
        let (root, temporary, outside) = (at("root"), at("temporary"), at("outside"));
        fs::write(outside.join("file"), "kept").unwrap();
        fs::create_dir(outside.join("directory")).unwrap();
        fs::write(root.join("file"), "workspace").unwrap();
        Self { _scratch: scratch, root, temporary, outside }
    }

    /// What may be written at a level.
    fn write(&self, level: Option<Level>) -> Vec<PathBuf> {
        match level.map(|level| level.mode) {
            Some(Mode::ReadOnly) => vec![self.temporary.clone()],
            _ => vec![self.root.clone(), self.temporary.clone()],
        }
    }

    /// Runs a script in the workspace; answers how it ended and what it printed.
    async fn run(&self, supervisor: &Supervisor, sandbox: &Sandbox, script: &str) -> (Status, String) {
        self.run_protected(supervisor, sandbox, script, &[]).await
    }

    async fn run_protected(
        &self,
        supervisor: &Supervisor,
        sandbox: &Sandbox,
        script: &str,
        protect: &[PathBuf],
    ) -> (Status, String) {
        let (mut files, output) = files();
        files.directory = OwnedFd::from(File::open(&self.root).unwrap());
        let mut job = job(script);
        job.environment.push(("TMPDIR".into(), self.temporary.clone().into()));
        job.environment.push(("OUTSIDE".into(), self.outside.clone().into()));
        job.sandbox = sandbox.policy(&self.write(sandbox.level()), protect);
        let mut running = supervisor.start(&job, files).await.unwrap();
        let ended = status(&events(&mut running).await).unwrap();
        (ended, text(output).await)
    }

    /// The neighbour as text, with modes and times.
    fn outside_now(&self) -> String {
        let facts = |path: &Path| {
            let metadata = path.symlink_metadata().unwrap();
            format!("{} {:o} {} {}\n", path.display(), metadata.mode(), metadata.mtime(), metadata.uid())
        };
        let entries = fs::read_dir(&self.outside).unwrap().map(|entry| entry.unwrap().path());
        let mut entries: Vec<PathBuf> = entries.collect();
        entries.sort();
        let content = fs::read_to_string(self.outside.join("file")).unwrap();
        entries.iter().map(|path| facts(path)).collect::<String>() + &content
    }
}

/// Everything that changes files, each printing its number if it worked.
const ATTEMPTS: &str = r#"
cd "$OUTSIDE"
try() { local number=$1; shift; ( eval "$@" ) 2>/dev/null && echo "worked: $number"; }
try 1 'echo x > new'
try 2 'echo x >> file'
try 3 ': > file'
try 4 'rm -f file && [ ! -e file ]'
try 5 'mv file moved'
try 6 'mkdir made'
try 7 'rmdir directory'
try 8 'ln -s file link'
try 9 'ln file hard'
try 10 'mkfifo pipe'
try 11 'cp "$OLDPWD/file" copied'
try 12 'mv "$OLDPWD/file" moved_here'
try 13 'truncate -s 0 file'
try 14 'bash -c "echo x > new2"'
try 15 'setsid -w bash -c "echo x > new3"'
try 16 '(cd /; echo x > "$OUTSIDE/new4")'
try 17 'echo x > "/proc/self/cwd/new5"'
try 18 'echo x > "/proc/$PPID/root/$OUTSIDE/new6"'
try 19 'mount -o remount,rw /'
try 20 'umount "$OUTSIDE"'
try 21 'mount --bind "$TMPDIR" "$OUTSIDE"'
try 22 'nsenter -t 1 -m touch "$OUTSIDE/new7"'
try 23 'unshare -Urm sh -c "mount -o remount,rw,bind / ; echo x > new8"'
try 24 'chroot / touch "$OUTSIDE/new9"'
"#;
/// Attempts that change attributes only.
const ATTRIBUTE_ATTEMPTS: &str = r#"
try 30 'chmod 777 file'
try 31 'touch -d 2001-01-01 file'
try 32 'chown 12345 file'
"#;

/// The levels that hold. A machine where none does is no machine to run these tests on.
fn held() -> Vec<(Finding, Sandbox)> {
    let _ = supervisor();
    static FINDINGS: OnceLock<Vec<Finding>> = OnceLock::new();
    let findings = FINDINGS.get_or_init(survey);
    let held: Vec<_> =
        findings.iter().filter_map(|finding| Some((finding.clone(), finding.sandbox()?))).collect();
    assert!(!held.is_empty(), "no sandbox holds here: {findings:#?}");
    held
}

#[tokio::test]
async fn no_level_that_is_reported_lets_a_write_out() {
    let supervisor = supervisor();
    for (finding, sandbox) in held() {
        let place = Place::new();
        let before = place.outside_now();
        let attributes = if finding.level.mounts { ATTRIBUTE_ATTEMPTS } else { "" };
        let script = format!("{ATTEMPTS}{attributes}echo end");
        let (_, output) = place.run(&supervisor, &sandbox, &script).await;
        assert_eq!(output, "end\n", "{}", sandbox.name());
        assert_eq!(place.outside_now(), before, "{}", sandbox.name());
        assert_eq!(fs::read_to_string(place.root.join("file")).unwrap(), "workspace", "{}", sandbox.name());
    }
}

#[tokio::test]
async fn the_same_attempts_work_without_a_sandbox() {
    let supervisor = supervisor();
    let place = Place::new();
    let off = Request { wanted: Wanted::Off, required: false, network: true, protect: false };
    let off = Sandbox::choose(&off).unwrap();
    let script = "cd \"$OUTSIDE\"; echo x > new && chmod 777 file && echo worked";
    let (_, output) = place.run(&supervisor, &off, script).await;
    assert_eq!(output, "worked\n");
    assert!(place.outside.join("new").exists());
}

#[tokio::test]
async fn what_may_be_written_can_be() {
    let supervisor = supervisor();
    let script = r#"set -e
        echo t > "$TMPDIR/t"; mkdir -p "$TMPDIR/a"; mv "$TMPDIR/t" "$TMPDIR/a/t"; rm -r "$TMPDIR/a"
        f=$(mktemp); rm "$f"
        echo x > /dev/null; : < /dev/urandom; : < /dev/zero
        cat <<END
heredoc
END
        "#;
    let workspace = r#"echo x > new; mkdir -p a/b; mv new a/b/new; ln a/b/new hard; ln -s a link
        chmod 755 a/b/new; rm -r a; echo y >> file; truncate -s 1 file; mkfifo fifo; echo workspace"#;
    for (finding, sandbox) in held() {
        let place = Place::new();
        let writes = finding.level.mode == Mode::WorkspaceWrite;
        let script = if writes { format!("{script}{workspace}") } else { script.to_owned() };
        let (ended, output) = place.run(&supervisor, &sandbox, &script).await;
        let expected = if writes { "heredoc\nworkspace\n" } else { "heredoc\n" };
        assert_eq!((ended, output.as_str()), (Status::Exited(0), expected), "{}", sandbox.name());
    }
}

#[tokio::test]
async fn no_level_without_network_lets_a_packet_out() {
    let supervisor = supervisor();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = tcp.local_addr().unwrap();
    let udp = UdpSocket::bind(address).unwrap();
    tcp.set_nonblocking(true).unwrap();
    udp.set_nonblocking(true).unwrap();
    let port = address.port();
    let script = format!(
        "(echo x > /dev/tcp/127.0.0.1/{port}) 2>/dev/null && echo tcp
         (echo x > /dev/udp/127.0.0.1/{port}) 2>/dev/null
         (echo x > /dev/udp/192.0.2.1/9) 2>/dev/null && echo udp
         echo end"
    );
    let mut checked = 0;
    for (finding, sandbox) in held() {
        let (_, output) = Place::new().run(&supervisor, &sandbox, &script).await;
        let reached = (tcp.accept().is_ok(), udp.recv(&mut [0; 8]).is_ok());
        if finding.level.network_off.is_some() {
            assert_eq!((output.as_str(), reached), ("end\n", (false, false)), "{}", sandbox.name());
            checked += 1;
        } else {
            assert!(output.starts_with("tcp\n"), "{}: {output}", sandbox.name());
            assert_eq!(reached, (true, true), "{}", sandbox.name());
        }
    }
    assert!(checked > 0, "the network cannot be kept away here");
}

#[tokio::test]
async fn a_network_of_ones_own_has_a_loopback() {
    let supervisor = supervisor();
    // Without a server, a loopback that is there refuses; one that is not does not answer at all.
    let script = "(echo x > /dev/tcp/127.0.0.1/9) 2>&1 | grep -q 'Connection refused' && echo refused";
    for (_, sandbox) in held().into_iter().filter(|(_, sandbox)| sandbox.name().ends_with("(namespace)")) {
        let (_, output) = Place::new().run(&supervisor, &sandbox, script).await;
        assert_eq!(output, "refused\n", "{}", sandbox.name());
    }
}

#[tokio::test]
async fn protected_paths_in_the_workspace_stay_as_they_are_where_mounts_hold() {
    let supervisor = supervisor();
    let script = "(echo x > .git/hooks/pre-commit) 2>/dev/null && echo hook
        rm -rf .git/hooks 2>/dev/null && echo removed
        mv .git/hooks .git/h 2>/dev/null && echo moved
        mv .git .g 2>/dev/null && echo moved above
        ln -sfn /tmp .git/hooks 2>/dev/null; [ -L .git/hooks ] && echo linked
        echo x > .git/other && echo end";
    for (finding, sandbox) in held() {
        assert_eq!(sandbox.can_protect(), finding.level.mounts);
        if finding.level.mode == Mode::ReadOnly {
            continue;
        }
        let place = Place::new();
        let hooks = place.root.join(".git/hooks");
        fs::create_dir_all(&hooks).unwrap();
        fs::write(hooks.join("old"), "hook").unwrap();
        let protect = std::slice::from_ref(&hooks);
        let (_, output) = place.run_protected(&supervisor, &sandbox, script, protect).await;
        if finding.level.mounts {
            assert_eq!(output, "end\n", "{}", sandbox.name());
            assert_eq!(fs::read_to_string(hooks.join("old")).unwrap(), "hook");
            assert_eq!(fs::read_dir(&hooks).unwrap().count(), 1);
        } else {
            assert!(output.starts_with("hook\n"), "{}: {output}", sandbox.name());
        }
    }
}

#[tokio::test]
async fn the_last_directory_is_known_at_every_level() {
    let supervisor = supervisor();
    for (_, sandbox) in held() {
        let place = Place::new();
        fs::create_dir(place.root.join("below")).unwrap();
        let (mut files, output) = files();
        files.directory = OwnedFd::from(File::open(&place.root).unwrap());
        let mut job = job("pwd; cd below");
        job.sandbox = sandbox.policy(&place.write(sandbox.level()), &[]);
        let mut running = supervisor.start(&job, files).await.unwrap();
        let events = events(&mut running).await;
        let directory = events.iter().find_map(|event| match event {
            Event::Exited { directory, .. } => directory.clone(),
            _ => None,
        });
        assert_eq!(directory.unwrap().path, place.root.join("below"), "{}", sandbox.name());
        assert_eq!(text(output).await, format!("{}\n", place.root.display()));
    }
}

#[tokio::test]
async fn auto_takes_the_strongest_level_that_holds() {
    let _ = supervisor();
    let request = Request { wanted: Wanted::Auto, required: true, network: true, protect: false };
    let sandbox = Sandbox::choose(&request).unwrap();
    let level = sandbox.level().unwrap();
    assert_eq!((level.mode, level.network_off), (Mode::WorkspaceWrite, None));
    let count = |level: Level| u8::from(level.landlock) + u8::from(level.mounts);
    let stronger = |finding: &Finding| {
        (finding.level.mode, finding.level.network_off) == (level.mode, None)
            && !finding.user_namespace
            && count(finding.level) > count(level)
    };
    let better = held().into_iter().filter(|(finding, _)| stronger(finding));
    assert_eq!(better.map(|(_, sandbox)| sandbox.name()).collect::<Vec<_>>(), Vec::<String>::new());
}

#[tokio::test]
async fn root_gains_nothing_from_its_abilities() {
    // Without these abilities there is nothing to lose, and the attempts fail all the same.
    let supervisor = supervisor();
    let script = "mknod disk b 8 0 2>/dev/null && echo made; mknod null c 1 3 2>/dev/null && echo made
        (echo 1 > /proc/sys/kernel/sysrq) 2>/dev/null && echo set
        (echo x > /sys/kernel/mm/ksm/run) 2>/dev/null && echo set
        grep CapEff /proc/self/status";
    for (_, sandbox) in held() {
        let (_, output) = Place::new().run(&supervisor, &sandbox, script).await;
        assert!(output.starts_with("CapEff:"), "{}: {output}", sandbox.name());
        let abilities = u64::from_str_radix(output.trim_start_matches("CapEff:").trim(), 16).unwrap();
        assert_eq!(abilities & (1 << 21 | 1 << 27 | 1 << 16), 0, "admin, mknod or module: {output}");
    }
}

#[tokio::test]
async fn reading_can_be_confined_where_landlock_holds() {
    let supervisor = supervisor();
    let system: Vec<PathBuf> =
        ["/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache"].map(PathBuf::from).to_vec();
    let script = "cat file; cat \"$OUTSIDE/file\" 2>/dev/null || echo denied; ls \"$OUTSIDE\" 2>/dev/null || echo denied
        cp /bin/true \"$TMPDIR/true\"; \"$TMPDIR/true\" 2>/dev/null || echo denied
        cat /proc/self/status 2>/dev/null || echo denied";
    for (finding, sandbox) in held() {
        let place = Place::new();
        let (mut files, output) = files();
        files.directory = OwnedFd::from(File::open(&place.root).unwrap());
        let mut job = job(script);
        job.environment.push(("TMPDIR".into(), place.temporary.clone().into()));
        job.environment.push(("OUTSIDE".into(), place.outside.clone().into()));
        job.sandbox = sandbox.policy(std::slice::from_ref(&place.temporary), &[]);
        let confined = job.sandbox.confine_reads(std::slice::from_ref(&place.root), &system);
        assert_eq!(confined, finding.level.landlock);
        let mut running = supervisor.start(&job, files).await.unwrap();
        events(&mut running).await;
        let output = text(output).await;
        if confined {
            assert_eq!(output, "workspacedenied\ndenied\ndenied\ndenied\n", "{}", sandbox.name());
        } else {
            assert!(output.starts_with("workspacekept"), "{}: {output}", sandbox.name());
        }
    }
}

/// What an ordinary user gets is shown by running these tests as one.
#[test]
fn an_ordinary_user_is_confined_and_ended_as_well() {
    if !rustix::process::geteuid().is_root() {
        // Then all tests here are this test.
        return;
    }
    let copies = tempfile::tempdir().unwrap();
    fs::set_permissions(copies.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = |from: &Path, name: &str| {
        let to = copies.path().join(name);
        fs::copy(from, &to).unwrap();
        fs::set_permissions(&to, fs::Permissions::from_mode(0o755)).unwrap();
        to
    };
    let tests = copy(&std::env::current_exe().unwrap(), "tests");
    let guard = copy(Path::new(env!("CARGO_BIN_EXE_guard")), "guard");
    let output = std::process::Command::new(tests)
        // What ends trees without a control group is shown there, too.
        .args(["sandbox::", "ends::", "--skip", "an_ordinary_user"])
        .env_clear()
        .env("TEST_GUARD", guard)
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .current_dir("/")
        .uid(65534)
        .gid(65534)
        .output()
        .unwrap();
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let said = format!("{}{}", said(&output.stdout), said(&output.stderr));
    assert!(output.status.success() && said.contains("17 passed"), "{said}");
}
