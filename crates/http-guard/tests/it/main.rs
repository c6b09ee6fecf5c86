//! The guarded client against servers in this process.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod bodies;
mod hosts;
mod limits;
mod names;
mod redirects;
mod spellings;
mod tls;
mod wire;

use http_guard::testing::NameServer;
use http_guard::{Collected, FetchError, Guard, Policy, Request, Resolver, Response, Settings};

/// A client that may reach these hosts wherever they are, and asks `names`.
fn guard(private: &[&str], names: Option<&NameServer>) -> Guard {
    let policy = Policy::default().with_private(private).unwrap();
    let resolver = names.map_or(Resolver::System, |names| Resolver::Server(names.address()));
    Guard::new(Settings { policy, resolver, ..Settings::default() })
}

/// A client that may reach servers of the tests by their literal addresses.
fn local() -> Guard {
    guard(&["127.0.0.1", "::1"], None)
}

fn get(url: &str) -> Request {
    Request::get(url.parse().unwrap_or_else(|error| panic!("{url}: {error}")))
}

async fn fetched(guard: &Guard, url: &str) -> Result<Response, FetchError> {
    guard.send(get(url)).await
}

async fn body_of(guard: &Guard, url: &str) -> Collected {
    fetched(guard, url).await.unwrap().body.collect().await
}
