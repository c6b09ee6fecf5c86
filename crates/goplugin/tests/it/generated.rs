//! The checked-in wire code is what its `.proto` files generate.

use std::path::Path;

/// Set to any value to write the generated code instead of comparing it.
const WRITE: &str = "GOPLUGIN_WRITE_GENERATED";

fn generate() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto");
    let files = ["broker.proto", "controller.proto", "stdio.proto"].map(|file| root.join(file));
    let descriptors = protox::compile(files, [&root]).unwrap();
    let out = tempfile::tempdir().unwrap();
    tonic_prost_build::configure().out_dir(out.path()).compile_fds(descriptors).unwrap();
    std::fs::read_to_string(out.path().join("plugin.rs")).unwrap()
}

#[test]
fn checked_in_wire_code_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/wire/plugin.rs");
    let fresh = generate();
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, &fresh).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap();
    assert!(stored == fresh, "src/wire/plugin.rs is stale: run this test with {WRITE}=1");
}
