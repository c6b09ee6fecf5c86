//! Where commands run.

use serde_json::{Value, json};

use crate::support::{notes, place};

#[tokio::test]
async fn the_directory_carries_over_within_a_session_and_not_beyond() {
    let place = place(json!({})).await;
    std::fs::create_dir_all(place.root.join("a/b")).unwrap();
    let root = place.root.display().to_string();
    let first = place.run("cd a").await;
    assert_eq!(first["cwd"], format!("{root}/a"));
    assert_eq!(place.run("pwd; cd b; (cd /)").await["output"], format!("{root}/a\n"));
    assert_eq!(place.run("pwd").await["output"], format!("{root}/a/b\n"));
    let other = place.harness.clone().in_session("other");
    assert_eq!(
        other.call("bash", json!({ "command": "pwd" })).await.payload()["output"],
        format!("{root}\n")
    );
    let explicit = place.bash(json!({ "command": "pwd", "cwd": ".." })).await.payload().clone();
    assert_eq!(explicit["output"], format!("{root}/a\n"));
    let absolute = place.bash(json!({ "command": "pwd", "cwd": root })).await.payload().clone();
    assert_eq!(absolute["output"], format!("{root}\n"));
}

#[tokio::test]
async fn leaving_the_root_is_told_and_does_not_carry_over() {
    let place = place(json!({})).await;
    let root = place.root.display().to_string();
    let left = place.run("cd /usr; pwd").await;
    assert_eq!((&left["output"], &left["cwd"]), (&json!("/usr\n"), &json!(root)));
    let told = format!("the command ended in /usr, which is outside the root; the next one starts in {root}");
    assert!(notes(&left).contains(&told), "{left}");
    assert_eq!(place.run("pwd").await["output"], format!("{root}\n"));
    let refused = place.bash(json!({ "command": "pwd", "cwd": "/usr" })).await;
    assert_eq!(
        (refused.error().category.as_str(), refused.error().code.as_str()),
        ("permission_denied", "outside_root")
    );
    let missing = place.bash(json!({ "command": "pwd", "cwd": "nowhere" })).await;
    assert_eq!(missing.error().category, "not_found");
}

#[tokio::test]
async fn a_deleted_directory_is_replaced_by_the_nearest_one_left() {
    let place = place(json!({})).await;
    let root = place.root.display().to_string();
    place.run("mkdir -p t/u; cd t/u").await;
    let deleting = place.run(&format!("rm -rf {root}/t")).await;
    assert!(notes(&deleting).iter().any(|note| note.contains("was removed by the command")), "{deleting}");
    let third = place.run("echo ok; pwd").await;
    assert_eq!(third["output"], format!("ok\n{root}\n"));
    let about: Vec<String> =
        notes(&third).into_iter().filter(|note| note.contains("does not exist any more")).collect();
    assert_eq!(
        about,
        [format!("the working directory {root}/t/u does not exist any more; this command ran in {root}")]
    );
    assert_eq!(place.run(&format!("cd {root}; pwd")).await["output"], format!("{root}\n"));
    assert!(!notes(&place.run("true").await).iter().any(|note| note.contains("exist")));
}

#[tokio::test]
async fn a_link_that_leads_out_of_the_root_is_no_working_directory() {
    let place = place(json!({})).await;
    std::os::unix::fs::symlink("/usr", place.root.join("out")).unwrap();
    std::fs::create_dir(place.root.join("real")).unwrap();
    std::os::unix::fs::symlink("real", place.root.join("in")).unwrap();
    let outcome = place.bash(json!({ "command": "pwd", "cwd": "out" })).await;
    assert_eq!(outcome.error().code, "outside_root");
    let inside = place.bash(json!({ "command": "pwd -P", "cwd": "in" })).await.payload().clone();
    assert_eq!(inside["output"], format!("{}/real\n", place.root.display()));
}

#[tokio::test]
async fn a_host_that_names_another_directory_is_followed() {
    let place = place(json!({})).await;
    std::fs::create_dir_all(place.root.join("one")).unwrap();
    std::fs::create_dir_all(place.root.join("two")).unwrap();
    place.run("cd one").await;
    let moved = place.harness.clone().in_directory(place.root.join("two"));
    let output: Value = moved.call("bash", json!({ "command": "pwd" })).await.payload()["output"].clone();
    assert_eq!(output, format!("{}/two\n", place.root.display()));
}
