//! `dev` on a program that something else builds.

use std::os::unix::fs::OpenOptionsExt as _;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Bench, awkward_argument, until};

/// A running `toolctl dev` whose output goes to files.
struct Watching {
    bench: Bench,
    child: Child,
}

impl Watching {
    /// Starts it on a program that runs the given provider.
    fn start(provider: &str) -> Self {
        let bench = Bench::new(&[]);
        become_provider(&bench, provider);
        let file = |name| std::fs::File::create(bench.path().join(name)).unwrap();
        let mut command = bench.command(&["dev", "./program"]);
        let child = command.stdin(Stdio::null()).stdout(file("out")).stderr(file("err")).spawn().unwrap();
        Self { bench, child }
    }

    /// Waits until it has loaded so many times, well or not.
    #[track_caller]
    fn loaded(&self, times: usize) {
        until("it watches again", || self.bench.read("err").matches("watching;").count() == times);
    }

    fn interrupt(mut self) -> (String, String, Option<i32>) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        let code = self.child.wait().unwrap().code();
        let text = |name| self.bench.named(self.bench.read(name).as_bytes());
        (text("out"), text("err"), code)
    }
}

/// Puts a program in place that runs `command`, as a build does: written beside and renamed over.
fn become_provider(bench: &Bench, command: &str) {
    let path = bench.path().join("new");
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o755).open(&path).unwrap();
    std::io::Write::write_all(&mut file, format!("#!/bin/sh\n{command}\n").as_bytes()).unwrap();
    drop(file);
    std::fs::rename(path, bench.path().join("program")).unwrap();
}

fn filesystem() -> String {
    format!("exec {} __provider filesystem", env!("CARGO_BIN_EXE_toolctl"))
}

#[test]
fn a_program_is_loaded_again_when_it_changes_and_ctrl_c_is_a_good_end() {
    let watching = Watching::start(&filesystem());
    watching.loaded(1);
    become_provider(&watching.bench, &format!("# built anew\n{}", filesystem()));
    watching.loaded(2);
    let (out, err, code) = watching.interrupt();
    let block = "# $DIR/.config/agent/config.hcl\ndev_overrides {\n  filesystem = \"$DIR/program\"\n}\n";
    assert_eq!((out.as_str(), code), (block, Some(0)), "{err}");
    assert!(err.contains("program changed\nreloaded: no changes\n"), "{err}");
    assert_eq!(err.matches("edit_file").count(), 2, "{err}");
}

#[test]
fn a_build_that_does_not_start_is_told_and_waited_over() {
    let watching = Watching::start("echo 'provider broken: a field has no doc comment' >&2; exit 1");
    watching.loaded(1);
    become_provider(&watching.bench, &filesystem());
    watching.loaded(2);
    let (out, err, code) = watching.interrupt();
    assert_eq!(code, Some(0));
    assert!(err.contains("provider broken: a field has no doc comment\n"), "{err}");
    assert!(out.contains("filesystem = "), "{out}");
}

#[test]
fn another_provider_at_the_place_gets_a_block_of_its_own() {
    let watching = Watching::start(&filesystem());
    watching.loaded(1);
    become_provider(&watching.bench, &format!("exec {}", awkward_argument()));
    watching.loaded(2);
    let (out, _, _) = watching.interrupt();
    assert_eq!(out.matches("dev_overrides {").count(), 2, "{out}");
}

#[test]
fn once_ends_with_the_result() {
    let bench = Bench::new(&[]);
    become_provider(&bench, &filesystem());
    let ran = bench.run(&["dev", "./program", "--once"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("dev_overrides {"), "{}", ran.stdout);
    become_provider(&bench, "exit 1");
    assert_eq!(bench.run(&["dev", "./program", "--once"]).code, 3);
    assert_eq!(bench.run(&["dev", "nowhere", "--once"]).code, 2);
}
