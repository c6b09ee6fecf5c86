//! The programs under test, built once per run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

/// What the Go provider can do wrong. The name it is started under decides.
const CONDUCTS: [&str; 8] = [
    "good",
    "no-terminal",
    "two-terminals",
    "chunk-after-terminal",
    "exit-mid-stream",
    "long-stdout-line",
    "null-field",
    "missing-field",
];

struct GoPrograms {
    host: PathBuf,
    directory: PathBuf,
}

/// The Go host.
pub(crate) fn go_host() -> PathBuf {
    go_programs().host.clone()
}

/// The Go provider with one conduct.
pub(crate) fn go_provider(conduct: &str) -> PathBuf {
    assert!(CONDUCTS.contains(&conduct), "there is no conduct {conduct}");
    go_programs().directory.join(format!("goprovider-{conduct}"))
}

/// The catalog's filesystem provider, a program of its own.
pub(crate) fn filesystem_provider() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| cargo_build("provider-filesystem")).clone()
}

/// The catalog's agent provider, a program of its own.
pub(crate) fn agent_provider() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| cargo_build("provider-agent")).clone()
}

/// The command line.
pub(crate) fn toolctl() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| cargo_build("toolctl")).clone()
}

/// The server that the conformance suite of the Model Context Protocol runs against.
pub(crate) fn mcp_conformance_server() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        build_target(&["--package", "mcp-bridge", "--example", "conformance_server"], "conformance_server")
    };
    BUILT.get_or_init(build).clone()
}

/// The Go module.
pub(crate) fn go_module() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/interop").canonicalize().unwrap()
}

/// A `go` command in the module. Without Go these tests prove nothing, so they fail instead of passing.
pub(crate) fn go() -> Command {
    static FOUND: OnceLock<bool> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let version = Command::new("go").arg("version").stdout(Stdio::null()).status();
        version.is_ok_and(|status| status.success())
    });
    assert!(found, "these tests need Go on the PATH (see .ci/setup)");
    let mut command = Command::new("go");
    command.current_dir(go_module());
    command
}

fn go_programs() -> &'static GoPrograms {
    static BUILT: OnceLock<GoPrograms> = OnceLock::new();
    BUILT.get_or_init(|| {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("interop");
        fs::create_dir_all(&directory).unwrap();
        let build = |package: &str, target: &Path| {
            let status = go().args(["build", "-o"]).arg(target).arg(package).status().unwrap();
            assert!(status.success(), "building {package}: {status}");
        };
        let host = directory.join("gohost");
        build("./gohost", &host);
        let provider = directory.join("goprovider");
        build("./goprovider", &provider);
        for conduct in CONDUCTS {
            let name = directory.join(format!("goprovider-{conduct}"));
            let _ = fs::remove_file(&name);
            fs::hard_link(&provider, &name).unwrap();
        }
        GoPrograms { host, directory }
    })
}

/// Builds the program of a workspace package and says where it is. Nobody else can: cargo tells a test only about
/// the programs of its own package.
fn cargo_build(package: &str) -> PathBuf {
    build_target(&["--package", package], package)
}

fn build_target(selection: &[&str], name: &str) -> PathBuf {
    let output = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--message-format=json-render-diagnostics"])
        .args(selection)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success(), "building {name}: {}", output.status);
    let messages = String::from_utf8(output.stdout).unwrap();
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find(|message| message["target"]["name"] == name && message["executable"].is_string())
        .map(|message| PathBuf::from(message["executable"].as_str().unwrap()))
        .unwrap_or_else(|| panic!("{name} has no program"))
}
