//! Runs the folders below `tests/scenarios/search`; the form of them is told at [`Scenarios`].

use provider_core::testing::Scenarios;
use provider_search::Search;
use serde_json::{Value, json};

/// Takes out the hits that come before the result: how many of them do is an accident.
fn steady(value: &mut Value) {
    for events in value.as_array_mut().into_iter().flatten().filter_map(Value::as_array_mut) {
        events.retain(|event| event["event"] != "partial_result");
    }
}

#[tokio::test]
async fn every_scenario_ends_as_written_down() {
    Scenarios::in_folder(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/scenarios/search"))
        .configured(|root, _| json!({"allowed_roots": [root]}))
        .steadied(steady)
        .check::<Search>()
        .await;
}
