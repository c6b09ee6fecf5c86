//! What Configure refuses, and the process itself.

use provider_core::testing::Harness;
use provider_web::Web;
use serde_json::{Value, json};

async fn refused(config: Value) -> String {
    let answer = Harness::start::<Web>(config).await;
    answer.err().map(|status| status.message().to_owned()).unwrap_or_default()
}

#[tokio::test]
async fn wrong_attributes_are_named_and_secrets_are_not_told() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("file");
    std::fs::write(&file, "no certificate").unwrap();
    for (config, name) in [
        (json!({"allowed_domains": ["http://a.example"]}), "allowed_domains"),
        (json!({"allowed_domains": []}), "allowed_domains"),
        (json!({"blocked_domains": ["a/b"]}), "blocked_domains"),
        (json!({"allow_private_hosts": ["10.0.0.0/8"]}), "allow_private_hosts"),
        (json!({"dns": "nowhere"}), "dns"),
        (json!({"proxy": "https://me:hunter2@proxy.example"}), "proxy"),
        (json!({"ca_file": file}), "ca_file"),
        (json!({"ca_file": "missing.pem"}), "ca_file"),
        (json!({"user_agent": "a\nb"}), "user_agent"),
        (json!({"state_dir": file}), "state_dir"),
        (json!({"robots": "perhaps"}), "robots"),
        (json!({"max_bytes": 99_999_999_999_u64}), "max_bytes"),
    ] {
        let message = refused(config.clone()).await;
        assert!(message.contains(name), "{config}: {message:?}");
        assert!(!message.contains("hunter2"), "{message}");
    }
}

#[tokio::test]
async fn everything_may_be_left_out() {
    assert_eq!(refused(json!({"state_dir": tempfile::tempdir().unwrap().path()})).await, "");
}
