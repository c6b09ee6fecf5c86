//! The files that `toolctl install` writes, read with the library the kernel reads them with.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::programs::go;

const AGENT: &str = include_str!("../../../toolctl/tests/golden/agent.hcl");
const LOCK: &str = include_str!("../../../toolctl/tests/golden/agent.lock.hcl");

/// What Go understood, or its complaint.
fn read(agent: &str, lock: &str) -> Result<Value, String> {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let (agent, lock) = (write("agent.hcl", agent), write("lock.hcl", lock));
    let output =
        go().args(["run", "./projectfile"]).arg(&agent as &Path).arg(&lock as &Path).output().unwrap();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn the_kernel_understands_both_files() {
    let understood = read(AGENT, LOCK).unwrap();
    assert_eq!(understood["configured"]["filesystem"]["allowed_roots"][0], ".");
    assert_eq!(understood["required"]["user"]["source"], "github.com/pluggable-harness/provider-user");
    assert_eq!(understood["locked"].as_array().unwrap().len(), 2);
    assert_eq!(understood["locked"][0]["category"], "tool");
}

#[test]
fn what_it_would_not_accept_is_seen() {
    #[track_caller]
    fn refused(agent: &str, lock: &str, part: &str) {
        let complaint = read(agent, lock).unwrap_err();
        assert!(complaint.contains(part), "{complaint}");
    }
    refused(AGENT, &LOCK.replace("source ", "sauce "), "\"source\" is required");
    refused(AGENT, &LOCK.replace("sha256:", "md5:"), "checksum");
    refused(AGENT, &LOCK.replace("\"0.1.0\"", "\"0.2.0\""), "nothing that is locked fits");
    refused(&AGENT.replace("[\".\"]", "[path.root]"), LOCK, "ariable");
}
