//! The sandbox that is reported is the one that holds, and ordinary work goes on inside it.

use std::fs;
use std::path::PathBuf;

use provider_core::testing::Harness;
use provider_exec::Exec;
use serde_json::{Value, json};

use crate::support::{Place, notes, place};

fn outside(place: &Place) -> PathBuf {
    let outside = place.root.parent().unwrap().join("outside");
    fs::create_dir_all(&outside).unwrap();
    fs::write(outside.join("file"), "kept").unwrap();
    outside
}

async fn write_outside(place: &Place) -> Value {
    let file = outside(place).join("file");
    place.run(&format!("echo x > '{}'", file.display())).await
}

#[tokio::test]
async fn a_write_outside_fails_in_the_very_run_that_reports_a_sandbox() {
    for (config, expected) in [
        (json!({}), "workspace_write ("),
        (json!({ "sandbox": "workspace_write", "sandbox_required": true }), "workspace_write ("),
        (json!({ "sandbox": "read_only" }), "read_only ("),
        (json!({ "sandbox": "read_only", "network": false }), "no network ("),
        (json!({ "network": false, "protect": [".git/hooks"] }), "no network ("),
    ] {
        let place = place(config).await;
        let payload = write_outside(&place).await;
        assert!(payload["sandbox"].as_str().unwrap().contains(expected), "{payload}");
        assert_ne!(payload["exit_code"], 0, "{payload}");
        assert_eq!(fs::read_to_string(outside(&place).join("file")).unwrap(), "kept");
    }
}

#[tokio::test]
async fn off_is_reported_as_off() {
    let place = place(json!({ "sandbox": "off" })).await;
    let payload = write_outside(&place).await;
    assert_eq!((&payload["sandbox"], &payload["exit_code"]), (&json!("off"), &json!(0)), "{payload}");
}

#[tokio::test]
async fn the_network_is_off_in_the_very_run_that_says_so() {
    let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = std::net::UdpSocket::bind(tcp.local_addr().unwrap()).unwrap();
    tcp.set_nonblocking(true).unwrap();
    udp.set_nonblocking(true).unwrap();
    let port = tcp.local_addr().unwrap().port();
    let command = format!(
        "(echo x > /dev/tcp/127.0.0.1/{port}) && echo tcp; (echo x > /dev/udp/127.0.0.1/{port}); true"
    );
    let place = place(json!({ "network": false })).await;
    let payload = place.run(&command).await;
    assert!(payload["sandbox"].as_str().unwrap().contains("no network"), "{payload}");
    assert!(tcp.accept().is_err() && udp.recv(&mut [0; 4]).is_err(), "{payload}");
}

#[tokio::test]
async fn a_sandbox_that_is_required_and_off_is_refused() {
    for config in
        [json!({ "sandbox": "off", "sandbox_required": true }), json!({ "sandbox": "off", "network": false })]
    {
        let folder = tempfile::tempdir().unwrap();
        let mut all = json!({ "root": folder.path(), "state_dir": folder.path() });
        all.as_object_mut().unwrap().extend(config.as_object().unwrap().clone());
        let status = Harness::start::<Exec>(all).await.err().unwrap();
        assert!(status.message().contains("the sandbox is off"), "{status}");
    }
}

#[tokio::test]
async fn git_hooks_are_protected_or_said_not_to_be() {
    let place = place(json!({})).await;
    let hooks = place.root.join(".git/hooks");
    fs::create_dir_all(&hooks).unwrap();
    let payload = place.run("echo x > .git/hooks/pre-commit").await;
    let written = hooks.join("pre-commit").exists();
    let said =
        notes(&payload).iter().any(|note| note.contains("not protected") && note.contains(".git/hooks"));
    assert_eq!(written, said, "{payload}");
}

#[tokio::test]
async fn ordinary_work_goes_on_in_the_default_sandbox() {
    let place = place(json!({})).await;
    let check = async |command: &str| {
        let payload = place.run(command).await;
        assert_eq!(payload["exit_code"], 0, "{command}: {payload}");
        payload["output"].as_str().unwrap().to_owned()
    };
    check("git init -q . && git config user.name n && git config user.email e@x && echo a > a && git add a && git commit -q -m a && git log --oneline").await;
    check("git checkout -q -b other && git stash list && git branch -m renamed && git gc -q").await;
    check("mktemp && mktemp -d && cat <<END > /dev/null\nx\nEND").await;
    let python = "python3 -c 'import tempfile, os; f = tempfile.NamedTemporaryFile(); f.write(b\"x\"); print(os.path.exists(f.name))'";
    assert_eq!(check(python).await, "True\n");
    let node = "node -e 'const fs=require(\"fs\"),os=require(\"os\"),p=fs.mkdtempSync(os.tmpdir()+\"/n-\");fs.writeFileSync(p+\"/f\",\"x\");console.log(fs.readFileSync(p+\"/f\",\"utf8\"))'";
    assert_eq!(check(node).await, "x\n");
    check("tar cf a.tar a && tar tf a.tar && rm a.tar && chmod 600 a && touch -d 2001-01-01 a && mv a b && ln -s b c").await;
}

#[tokio::test]
async fn a_small_crate_is_built_in_the_default_sandbox() {
    let place = place(json!({ "env_pass": ["CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"] })).await;
    fs::create_dir(place.root.join("src")).unwrap();
    fs::write(place.root.join("src/main.rs"), "fn main() { println!(\"built\"); }\n").unwrap();
    fs::write(
        place.root.join("Cargo.toml"),
        "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
    )
    .unwrap();
    let payload = place.run("unset RUSTC_WRAPPER; cargo build -q --offline && ./target/debug/small").await;
    assert_eq!((&payload["exit_code"], &payload["output"]), (&json!(0), &json!("built\n")), "{payload}");
}
