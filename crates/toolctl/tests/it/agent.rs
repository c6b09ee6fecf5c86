//! Subagents that are this program again.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::support::Bench;

#[test]
fn a_subagent_that_starts_subagents_meets_the_limit_of_the_first() {
    let bench = Bench::new(&[]);
    let program = env!("CARGO_BIN_EXE_toolctl");
    // What stands in the way is only what the environment carries: every level configures a greater depth for itself.
    let script = format!(
        "#!/bin/sh\necho started >> {dir}/runs\nexec {program} call agent spawn_subagent prompt=again --yes --json --root {dir} \
         --config-json @{dir}/deep.json\n",
        dir = bench.path().display()
    );
    let agent = bench.path().join("agent.sh");
    std::fs::write(&agent, script).unwrap();
    std::fs::set_permissions(&agent, std::fs::Permissions::from_mode(0o755)).unwrap();
    let runners = json!({"script": json!([agent, "{prompt}"]).to_string()});
    let config =
        |depth: u32| json!({"runners": runners, "max_depth": depth, "state_dir": bench.path().join("state")});
    std::fs::write(bench.path().join("deep.json"), config(9).to_string()).unwrap();
    let shallow = config(2).to_string();
    let ran = bench.run(&[
        "call",
        "agent",
        "spawn_subagent",
        "prompt=first",
        "--yes",
        "--json",
        "--config-json",
        &shallow,
    ]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(bench.read("runs"), "started\nstarted\n");
    assert!(ran.stdout.contains("at depth 2 no further subagent may be started"), "{}", ran.stdout);
}
