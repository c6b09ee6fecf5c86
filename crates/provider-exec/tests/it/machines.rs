//! Machines that can do less: the sandbox that is reported there holds there, and where none does, none is claimed.
//!
//! A filter of system calls belongs to a thread and all it starts, so each machine is a thread here.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use nix::libc;
use provider_core::testing::Harness;
use provider_exec::Exec;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use serde_json::{Value, json};

use crate::support::{Place, notes, place, within};

/// Runs a check where these system calls do not work.
fn without<F: Future<Output = ()>>(calls: &[i64], check: impl FnOnce() -> F + Send) {
    let rules: BTreeMap<i64, Vec<seccompiler::SeccompRule>> =
        calls.iter().map(|call| (*call, Vec::new())).collect();
    let denied = SeccompAction::Errno(u32::try_from(libc::EPERM).unwrap());
    let architecture = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, denied, architecture).unwrap();
    let program: BpfProgram = filter.try_into().unwrap();
    std::thread::scope(|scope| {
        let machine = scope.spawn(move || {
            seccompiler::apply_filter(&program).unwrap();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(check());
        });
        if let Err(panic) = machine.join() {
            std::panic::resume_unwind(panic);
        }
    });
}

const LANDLOCK: i64 = libc::SYS_landlock_create_ruleset;
const NAMESPACES: i64 = libc::SYS_unshare;

/// Writes beside the root and connects to a service of the host. Answers the result, what became of the file, and
/// whether the service was reached.
async fn attempts(place: &Place) -> (Value, String, bool) {
    let outside: PathBuf = place.root.parent().unwrap().join("outside");
    fs::write(&outside, "kept").unwrap();
    let service = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    service.set_nonblocking(true).unwrap();
    let port = service.local_addr().unwrap().port();
    let command =
        format!("echo in > inside; (echo x > /dev/tcp/127.0.0.1/{port}); echo x > '{}'", outside.display());
    let result = place.run(&command).await;
    (result, fs::read_to_string(outside).unwrap(), service.accept().is_ok())
}

/// Checks what a configuration makes of this machine: the sandbox that results report, whether what is outside stays as
/// it is, and whether the network is reached.
async fn check(config: Value, sandbox: &str, kept: bool, reached: bool) {
    let place = place(config.clone()).await;
    let (result, outside, was_reached) = attempts(&place).await;
    let reported = result["sandbox"].as_str().unwrap();
    assert_eq!(reported, sandbox, "{config}: {result}");
    assert_eq!((outside == "kept", was_reached), (kept, reached), "{config}: {result}");
    assert_eq!(place.root.join("inside").exists(), !sandbox.starts_with("read_only"), "{config}");
}

/// What Configure says if it refuses.
async fn refusal(config: Value) -> Option<String> {
    provider_core::supervisor::set_program(env!("CARGO_BIN_EXE_provider-exec"));
    let folder = tempfile::tempdir().unwrap();
    let mut all = json!({ "root": folder.path(), "state_dir": folder.path().join("state") });
    all.as_object_mut().unwrap().extend(config.as_object().unwrap().clone());
    Harness::start::<Exec>(all).await.err().map(|status| status.message().to_owned())
}

#[test]
fn where_nothing_holds_nothing_is_claimed_and_what_is_required_fails() {
    without(&[LANDLOCK, NAMESPACES], async || {
        check(json!({}), "off", false, true).await;
        for config in [
            json!({ "sandbox_required": true }),
            json!({ "sandbox": "workspace_write", "sandbox_required": true }),
            json!({ "sandbox": "read_only", "sandbox_required": true }),
            // Without a sandbox the network would be on.
            json!({ "network": false }),
            json!({ "sandbox": "read_only", "network": false }),
        ] {
            let message = refusal(config.clone()).await.unwrap();
            assert!(message.contains("no sandbox holds on this machine"), "{config}: {message}");
        }
        let place = place(json!({})).await;
        let first = place.run("true").await;
        assert!(
            notes(&first)
                .iter()
                .any(|note| note
                    .contains("no sandbox holds on this machine, so commands may write everywhere")),
            "{first}"
        );
        let reading = within(place.harness.call("shell_read", json!({ "argv": ["ls"] }))).await;
        assert_eq!(reading.error().category, "permission_denied");
        assert!(
            reading.error().message.contains("only in a read-only sandbox"),
            "{}",
            reading.error().message
        );
    });
}

#[test]
fn landlock_alone_holds_where_namespaces_cannot_be_made() {
    without(&[NAMESPACES], async || {
        check(json!({}), "workspace_write (landlock)", true, true).await;
        check(json!({ "sandbox_required": true }), "workspace_write (landlock)", true, true).await;
        check(json!({ "sandbox": "read_only" }), "read_only (landlock)", true, true).await;
        let off = "workspace_write (landlock), no network (filter)";
        check(json!({ "network": false }), off, true, false).await;
        let off = "read_only (landlock), no network (filter)";
        check(json!({ "sandbox": "read_only", "network": false }), off, true, false).await;
        // A hook that git would run later cannot be protected, and that is said.
        let place = place(json!({})).await;
        fs::create_dir_all(place.root.join(".git/hooks")).unwrap();
        let first = place.run("echo x > .git/hooks/pre-commit").await;
        assert_eq!(first["exit_code"], 0, "{first}");
        assert!(
            notes(&first)
                .iter()
                .any(|note| { note.contains(".git/hooks") && note.contains("that needs a mount namespace") }),
            "{first}"
        );
    });
}

#[test]
fn mounts_alone_hold_where_there_is_no_landlock() {
    without(&[LANDLOCK], async || {
        // An ordinary user needs a user namespace, which not every machine grants; then nothing holds.
        let message = refusal(json!({ "sandbox_required": true })).await;
        if let Some(message) = message {
            assert!(!rustix::process::geteuid().is_root(), "{message}");
            eprintln!("no mounts can be made here: {message}");
            return;
        }
        check(json!({}), "workspace_write (mounts)", true, true).await;
        check(json!({ "sandbox": "read_only" }), "read_only (mounts)", true, true).await;
        let off = "workspace_write (mounts), no network (namespace)";
        check(json!({ "network": false }), off, true, false).await;
        let off = "read_only (mounts), no network (namespace)";
        check(json!({ "sandbox": "read_only", "network": false }), off, true, false).await;
    });
}
