//! `toolctl install` from an address.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use http_guard::testing::{Authority, Received, Reply, Server};
use tokio::runtime::Runtime;

use crate::install::{check_whole, release};
use crate::support::{Bench, until};

/// What the server answers for a path below a folder.
fn file(folder: &Path, target: &str) -> Reply {
    match fs::read(folder.join(target.trim_start_matches('/'))) {
        Ok(content) => Reply::new(200, &[("content-type", "application/octet-stream")], content),
        Err(_) => Reply::new(404, &[("content-type", "text/html")], "<p>nothing here"),
    }
}

/// A place with a release that a server offers, twisted by `twist`.
struct Offer {
    bench: Bench,
    server: Server,
    _runtime: Runtime,
    _served: tempfile::TempDir,
}

impl Offer {
    fn new(below: &str, twist: impl Fn(&Received, Reply) -> Reply + Send + Sync + 'static) -> Self {
        let bench = Bench::new(&[]);
        // Not where the program runs, so that what is left there is its own.
        let served = tempfile::tempdir().unwrap();
        release(served.path(), "0.1.0");
        let folder: PathBuf = served.path().join(below);
        std::os::unix::fs::symlink(".", folder.join("moved")).unwrap();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let server =
            runtime.block_on(Server::start(move |request| twist(request, file(&folder, &request.target))));
        Self { bench, server, _runtime: runtime, _served: served }
    }

    fn install(&self, more: &[&str]) -> crate::support::Ran {
        let address = self.server.url("");
        self.bench.run(&[&["install", "--for", "harness", "--from", &address], more].concat())
    }

    /// What is in the folder that the program ran in.
    fn left(&self) -> BTreeSet<String> {
        let entries = fs::read_dir(self.bench.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
    }
}

fn as_it_is(_: &Received, reply: Reply) -> Reply {
    reply
}

#[test]
fn a_release_and_a_mirror_are_installed_from_an_address() {
    for below in ["", "mirror"] {
        let offer = Offer::new(below, as_it_is);
        let shown = offer.install(&["--dry-run"]);
        assert_eq!((shown.code, offer.left().len()), (0, 0), "{}", shown.stderr);
        let ran = offer.install(&[]);
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (0, include_str!("../golden/agent.hcl")),
            "{}",
            ran.stderr
        );
        check_whole(&offer.bench);
        let again = offer.install(&[]);
        assert!(again.code == 0 && again.stderr.contains("keep "), "{}", again.stderr);
    }
}

#[test]
fn only_what_is_asked_for_is_fetched() {
    let offer = Offer::new("mirror", as_it_is);
    let ran = offer.install(&["--provider", "user"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let archives: Vec<String> = offer
        .server
        .requests()
        .into_iter()
        .map(|request| request.target)
        .filter(|path| path.ends_with(".gz"))
        .collect();
    assert!(archives.len() == 1 && archives[0].contains("provider-user"), "{archives:?}");
}

#[test]
fn what_does_not_come_as_released_is_refused_and_nothing_is_left() {
    #[track_caller]
    fn check(part: &str, twist: impl Fn(&Received, Reply) -> Reply + Send + Sync + 'static) {
        let offer = Offer::new("", twist);
        let ran = offer.install(&[]);
        assert!(ran.code == 1 && ran.stdout.is_empty(), "{part}: {ran:?}");
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
        assert_eq!(offer.left(), BTreeSet::new(), "{part}");
    }
    let is_archive = |request: &Received| request.target.ends_with(".tar.gz");
    check("is not what was released", move |request, reply| {
        if is_archive(request) { Reply::new(200, &[], "another program") } else { reply }
    });
    check("is not what was released", |request, reply| match request.target.as_str() {
        "/manifest.json" => Reply::new(200, &[], "{}"),
        _ => reply,
    });
    check("broke off after 4 bytes", move |request, reply| match is_archive(request) {
        true => Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\nhalf"),
        false => reply,
    });
    check("the server has no such file", move |request, reply| match is_archive(request) {
        true => Reply::new(404, &[], ""),
        false => reply,
    });
    check("status 500", |request, reply| match request.target.as_str() {
        "/SHA256SUMS" => Reply::new(500, &[], ""),
        _ => reply,
    });
    check("no https address", move |request, reply| match is_archive(request) {
        true => Reply::redirect(302, "http://elsewhere.example/x.tar.gz?token=hunter2"),
        false => reply,
    });
    check("redirects were followed", |_, _| Reply::redirect(302, "/round"));
    // The address itself is wrong, not what came from it.
    let nothing = Offer::new("", |_, _| Reply::new(404, &[], "")).install(&[]);
    assert!(nothing.code == 2 && nothing.stderr.contains("holds no release"), "{nothing:?}");
}

#[test]
fn a_redirect_within_the_site_is_followed() {
    let offer = Offer::new("", |request, reply| match request.target.as_str() {
        target if target.ends_with(".tar.gz") && !target.starts_with("/moved/") => {
            Reply::redirect(302, &format!("/moved{target}"))
        }
        _ => reply,
    });
    let ran = offer.install(&[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    check_whole(&offer.bench);
    assert!(offer.server.requests().iter().any(|request| request.target.starts_with("/moved/")));
}

#[test]
fn addresses_that_programs_are_not_trusted_from_are_usage_errors() {
    let bench = Bench::new(&[]);
    for (from, part) in [
        ("http://mirror.example/x", "use https"),
        ("http://10.0.0.1/x", "use https"),
        ("ftp://mirror.example/x", "must begin with http:// or https://"),
        ("https://me:hunter2@mirror.example/", "user name or password"),
        ("https://mirror.example/?key=hunter2", "no files below it"),
    ] {
        let ran = bench.run(&["install", "--for", "harness", "--from", from]);
        assert!(ran.code == 2 && ran.stderr.contains(part), "{from}: {ran:?}");
        assert!(!ran.stderr.contains("hunter2"), "{}", ran.stderr);
    }
    let ran = bench.run(&["install", "--for", "harness", "--from", "dist", "--ca-file", "x.pem"]);
    assert!(ran.code == 2 && ran.stderr.contains("--ca-file is for"), "{ran:?}");
}

#[test]
fn a_company_s_authority_is_trusted_where_it_is_named() {
    let served = tempfile::tempdir().unwrap();
    release(served.path(), "0.1.0");
    let (authority, folder) = (Authority::new(), served.path().to_owned());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let server =
        runtime.block_on(Server::tls(&authority, "localhost", move |request| file(&folder, &request.target)));
    let bench = Bench::new(&[]);
    fs::write(bench.path().join("ca.pem"), authority.pem()).unwrap();
    let address = server.url_of("localhost", "/");
    let distrusting = bench.run(&["install", "--for", "harness", "--from", &address]);
    assert!(distrusting.code == 1 && distrusting.stderr.contains("no secure connection"), "{distrusting:?}");
    let ran = bench.run(&["install", "--for", "harness", "--from", &address, "--ca-file", "ca.pem"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    check_whole(&bench);
}

#[test]
fn whoever_is_killed_while_fetching_leaves_nothing() {
    // Slow enough that every part of the way is met.
    let offer = Offer::new("", |_, reply| reply.in_pieces(60, Duration::from_millis(1)));
    let address = offer.server.url("");
    let temporary = offer.bench.path().join("tmp");
    for round in 0..25_u64 {
        fs::create_dir(&temporary).unwrap();
        let mut command = offer.bench.command(&["install", "--for", "harness", "--from", &address]);
        command.env("TMPDIR", &temporary).stdout(Stdio::null()).stderr(Stdio::null());
        let before = offer.server.requests().len();
        let mut child = command.spawn().unwrap();
        until("it asks for something", || offer.server.requests().len() > before);
        std::thread::sleep(Duration::from_millis(round));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0, "round {round}");
        fs::remove_dir(&temporary).unwrap();
        assert_eq!(offer.left(), BTreeSet::new(), "round {round}");
    }
}

#[test]
fn an_interrupt_ends_a_fetch_that_hangs() {
    let offer = Offer::new("", |request, reply| match request.target.ends_with(".tar.gz") {
        true => Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\nhalf").and_hangs(),
        false => reply,
    });
    let address = offer.server.url("");
    let mut child = offer
        .bench
        .command(&["install", "--for", "harness", "--from", &address])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("it hangs", || offer.server.requests().iter().any(|request| request.target.ends_with(".tar.gz")));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(offer.left(), BTreeSet::new());
    until("the connection is closed", || offer.server.left() == 1);
}
