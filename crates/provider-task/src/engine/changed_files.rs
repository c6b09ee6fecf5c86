//! Which files a call has changed, as far as its result tells.

use serde_json::Value;

/// The paths in the result of a call that changed files, each once. Results of the catalog's filesystem tools say so with
/// a `change_id`; others with `changed` or `applied` beside their paths.
pub fn changed_files(result: &Value) -> Vec<String> {
    let said = |key: &str| result.get(key).is_some_and(|value| value == true);
    let has_changed =
        result.get("change_id").is_some_and(Value::is_string) || said("changed") || said("applied");
    if !has_changed || result.get("changed").is_some_and(|changed| changed == false) {
        return Vec::new();
    }
    let listed = result.get("files").and_then(Value::as_array).into_iter().flatten();
    let entries = std::iter::once(result).chain(listed);
    let paths =
        entries.flat_map(|entry| ["path", "to"].into_iter().filter_map(|key| entry.get(key)?.as_str()));
    let mut changed: Vec<String> = Vec::new();
    for path in paths {
        if !changed.iter().any(|known| known == path) {
            changed.push(path.to_owned());
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(result: Value, expected: &[&str]) {
        assert_eq!(changed_files(&result), expected);
    }

    #[test]
    fn results_of_changes_name_their_files() {
        check(json!({"path": "a", "changed": true, "change_id": "1"}), &["a"]);
        check(json!({"path": "a", "changed": true}), &["a"]);
        check(json!({"from": "a", "to": "b", "change_id": "1"}), &["b"]);
        check(json!({"files": [{"path": "a"}, {"path": "b"}, {"path": "a"}], "change_id": "1"}), &["a", "b"]);
        check(json!({"applied": true, "files": [{"path": "a"}]}), &["a"]);
    }

    #[test]
    fn other_results_name_none() {
        check(json!({"path": "a", "content": "x"}), &[]);
        check(json!({"path": "a", "changed": false, "change_id": "1"}), &[]);
        check(json!({"applied": false, "files": [{"path": "a"}]}), &[]);
        check(json!("text"), &[]);
    }
}
