//! The web provider against servers in this process.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod cached;
mod configured;
mod fetched;
mod pages;
mod process;
mod reach;
mod requests;
mod searches;

use http_guard::testing::NameServer;
use provider_core::testing::Harness;
use provider_web::Web;
use serde_json::{Value, json};

/// A provider that may reach the servers of the tests, keeps nothing and asks for no robots.txt, with this laid over it.
async fn web(over: Value) -> Harness {
    let mut config = json!({
        "allow_private_hosts": ["127.0.0.1", "::1"],
        "robots": "ignore",
        "cache_bytes": 0,
        "user_agent": "tests/1.0",
    });
    let (Value::Object(config), Value::Object(over)) = (&mut config, over) else { panic!("no objects") };
    config.extend(over);
    Harness::start::<Web>(json!(config)).await.unwrap_or_else(|status| panic!("{status}"))
}

/// The same, for names that all lead to the servers of the tests.
async fn named(names: &NameServer, hosts: &[&str], over: Value) -> Harness {
    let mut config = json!({"allow_private_hosts": hosts, "dns": names.address().to_string()});
    let (Value::Object(all), Value::Object(over)) = (&mut config, over) else { panic!("no objects") };
    all.extend(over);
    web(config).await
}

async fn fetch(harness: &Harness, arguments: Value) -> Value {
    harness.call("web_fetch", arguments).await.payload().clone()
}

fn notes(payload: &Value) -> String {
    payload["notes"].to_string()
}
