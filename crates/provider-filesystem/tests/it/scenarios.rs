//! Runs the folders below `tests/scenarios/filesystem`; the form of them is told at [`Scenarios`]. `$CHANGE1` is the
//! first change_id that a call answered, `$CHANGE2` the second.

use provider_core::testing::Scenarios;
use provider_filesystem::Filesystem;
use serde_json::{Value, json};

/// Takes out what differs from run to run.
fn steady(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(steady),
        Value::Object(map) => {
            if map.get("type") == Some(&json!("directory")) {
                map.insert("size".to_owned(), json!(0));
            }
            if let Some(modified) = map.get_mut("modified") {
                *modified = json!(0);
            }
            map.values_mut().for_each(steady);
        }
        _ => {}
    }
}

#[tokio::test]
async fn every_scenario_ends_as_written_down() {
    Scenarios::in_folder(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/scenarios/filesystem"))
        .configured(|root, state| json!({"allowed_roots": [root], "state_dir": state}))
        .named("change_id", "$CHANGE")
        .steadied(steady)
        .check::<Filesystem>()
        .await;
}
