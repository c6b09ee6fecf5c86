//! Our MCP server against the official conformance suite, the Inspector, and the official clients, all of which run on
//! Node or Python. `tests/interop/mcp/run` installs and runs them; it says what is missing, and fails.

use std::path::Path;
use std::process::Command;

use crate::programs::{mcp_conformance_server, toolctl};

#[track_caller]
fn check(what: &str) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/interop/mcp/run");
    let ran = Command::new(script)
        .arg(mcp_conformance_server())
        .arg(toolctl())
        .arg(what)
        .env("MCP_INTEROP_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("mcp-interop"))
        .output()
        .unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{what}: {}\n{stdout}\n{stderr}", ran.status);
}

#[test]
fn the_conformance_suite_passes_in_both_revisions() {
    check("conformance");
}

#[test]
fn the_inspector_lists_and_calls_every_tool() {
    check("inspector");
}

#[test]
fn the_typescript_client_accepts_structured_results() {
    check("typescript");
}

#[test]
fn the_python_client_accepts_structured_results() {
    check("python");
}
