//! Runs the folders below `tests/scenarios/exec`; the form of them is told at [`Scenarios`].

use provider_core::testing::Scenarios;
use provider_exec::Exec;
use serde_json::{Value, json};

/// Names what differs from run to run: times, process numbers, the sandbox of the machine.
fn steady(value: &mut Value) {
    match value {
        Value::Array(items) => {
            // How a program's output is cut into chunks is an accident; that these two notes come depends on the machine.
            items.retain(|item| {
                let note = item.as_str().unwrap_or_default();
                item["event"] != "output_chunk"
                    && !note.starts_with("environment variables that commands do not get")
                    && !note.starts_with("not protected from commands")
            });
            items.iter_mut().for_each(steady);
        }
        Value::Object(map) => {
            for name in ["duration_ms", "pid"] {
                map.entry(name).and_modify(|value| *value = json!(0));
            }
            map.entry("sandbox").and_modify(|value| *value = json!("$SANDBOX"));
            map.values_mut().for_each(steady);
            map.retain(|name, value| name != "notes" || *value != json!([]));
        }
        Value::String(text) => *text = without_times(text),
        _ => {}
    }
}

/// Takes durations out of a summary: ` after 12 ms` becomes ` after $TIME`.
fn without_times(text: &str) -> String {
    let mut words: Vec<&str> = text.split(' ').collect();
    let is_time = |pair: &[&str]| {
        pair[0].parse::<f64>().is_ok() && matches!(pair[1].trim_end_matches([';', ',']), "ms" | "s")
    };
    while let Some(index) = words.windows(2).position(is_time) {
        let end = words[index + 1].trim_start_matches(['m', 's']);
        let replaced = if end.is_empty() { "$TIME" } else { "$TIME;" };
        words.splice(index..index + 2, [replaced]);
    }
    words.join(" ")
}

#[tokio::test]
async fn every_scenario_ends_as_written_down() {
    provider_core::supervisor::set_program(env!("CARGO_BIN_EXE_provider-exec"));
    Scenarios::in_folder(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/scenarios/exec"))
        .configured(|root, state| json!({"root": root, "state_dir": state}))
        .steadied(steady)
        .check::<Exec>()
        .await;
}
