//! How the provider is configured.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use http_guard::http::HeaderValue;
use http_guard::{Guard, Limits, PatternError, Policy, Resolver, Settings, root_certificates};
use provider_core::Secret;
use provider_core::prelude::*;

use crate::search::{Backend, Mapping, Service};
use crate::searcher::Searcher;

/// Configuration of the web provider.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct WebConfig {
    /// The only domains that may be reached, each with everything below it: docs.example or *.docs.example. Default:
    /// every public host.
    pub allowed_domains: Option<Vec<String>>,
    /// Domains that are never reached, each with everything below it.
    #[serde(default)]
    pub blocked_domains: Vec<String>,
    /// Hosts that may be reached although their address is private: wiki.internal, 10.0.0.7, localhost:3000 for one
    /// port, *.lab.example for everything below a domain. No other host with such an address is.
    #[serde(default)]
    pub allow_private_hosts: Vec<String>,
    /// What servers are told about who asks.
    #[serde(default = "user_agent")]
    #[schemars(length(min = 1))]
    pub user_agent: String,
    /// How many bytes of a body are read, after decompression.
    #[serde(default = "mib_5")]
    #[schemars(range(min = 1_024, max = 33_554_432))]
    pub max_bytes: u64,
    /// How long one fetch may take, with all its redirects, in milliseconds.
    #[serde(default = "half_a_minute")]
    #[schemars(range(min = 100, max = 55_000))]
    pub timeout_ms: u64,
    /// Whether web_fetch keeps to what a site's robots.txt asks of programs.
    #[serde(default)]
    pub robots: RobotsWanted,
    /// How many bytes of pages are kept on disk; 0 keeps none.
    #[serde(default = "mib_64")]
    #[schemars(range(min = 0))]
    pub cache_bytes: u64,
    /// How images are answered.
    #[serde(default)]
    pub media: Media,
    /// The name server that is asked instead of the system, as address and port: 9.9.9.9:53.
    pub dns: Option<String>,
    /// The proxy that every connection goes through: http://host:port or socks5://host:port, perhaps with
    /// user:password@ before the host. It is given addresses that were checked, never names. Proxies of the environment
    /// are not used.
    pub proxy: Option<Secret>,
    /// A PEM file of certificates that are trusted besides those of the web, such as a company's own.
    pub ca_file: Option<String>,
    /// What kind of service answers web_search. Without one there are no searches.
    pub search_backend: Option<Backend>,
    /// Where the search service is: the address of a SearXNG instance, or for generic an address with {query} and perhaps
    /// {limit} and {key} in it. Its host may be private. Default: the home of Brave and Tavily.
    pub search_url: Option<String>,
    /// The key that the search service wants.
    pub search_api_key: Option<Secret>,
    /// What is where in the answer of a generic search service.
    pub search_mapping: Option<Mapping>,
    /// Where state is kept; by default below the user's state folder.
    pub state_dir: Option<String>,
}

fn user_agent() -> String {
    concat!(
        "pluggable-harness-web/",
        env!("CARGO_PKG_VERSION"),
        " (+https://github.com/pluggable-harness/catalog)"
    )
    .to_owned()
}

fn mib_5() -> u64 {
    5 * 1024 * 1024
}

fn mib_64() -> u64 {
    64 * 1024 * 1024
}

fn half_a_minute() -> u64 {
    30_000
}

/// What robots.txt means to web_fetch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RobotsWanted {
    /// Pages that it keeps programs away from are not fetched.
    #[default]
    Respect,
    /// It is not asked for: a person wants the page, whoever fetches it.
    Ignore,
}

/// How images are answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Media {
    /// With their type and size in words.
    #[default]
    Describe,
    /// With their bytes as well.
    Inline,
}

/// Silence that is longer than this ends a fetch.
const LONGEST_SILENCE: Duration = Duration::from_secs(15);

impl WebConfig {
    /// What one fetch may take.
    pub(crate) fn limits(&self) -> Limits {
        let total = Duration::from_millis(self.timeout_ms);
        Limits {
            max_body: self.max_bytes,
            max_wire: self.max_bytes,
            total,
            idle: total.min(LONGEST_SILENCE),
            ..Limits::default()
        }
    }

    /// The client that only goes where this configuration lets it.
    pub(crate) fn guard(&self, setup: &Setup) -> Result<Guard, ToolError> {
        self.guard_with(self.policy()?, setup)
    }

    fn guard_with(&self, policy: Policy, setup: &Setup) -> Result<Guard, ToolError> {
        let agent = HeaderValue::from_str(&self.user_agent)
            .map_err(|_| wrong("user_agent", "has characters that cannot stand in a header"))?;
        Ok(Guard::new(Settings {
            policy,
            resolver: self.resolver()?,
            proxy: self
                .proxy
                .as_ref()
                .map(|proxy| proxy.reveal().parse())
                .transpose()
                .map_err(|error| wrong("proxy", error))?,
            extra_roots: self.roots(setup)?,
            user_agent: Some(agent),
        }))
    }

    /// The search service, if there is one. Its client reaches the service's host, private or not, and no other site.
    pub(crate) fn searcher(&self, setup: &Setup) -> Result<Option<Searcher>, ToolError> {
        let Some(backend) = self.search_backend else {
            let unused = [
                ("search_url", self.search_url.is_some()),
                ("search_api_key", self.search_api_key.is_some()),
                ("search_mapping", self.search_mapping.is_some()),
            ];
            return match unused.into_iter().find(|(_, is_set)| *is_set) {
                Some((attribute, _)) => {
                    Err(wrong(attribute, "is of no use without search_backend; set that too"))
                }
                None => Ok(None),
            };
        };
        let mapping = self.search_mapping.clone().unwrap_or_default();
        let service = Service::new(backend, self.search_url.as_deref(), self.search_api_key.clone(), mapping)
            .map_err(|error| wrong(error.attribute, error.problem))?;
        let policy = Policy::default()
            .with_private([service.host()])
            .map_err(|_| wrong("search_url", "has a host that cannot be reached"))?;
        Ok(Some(Searcher::new(service, self.guard_with(policy, setup)?)))
    }

    fn policy(&self) -> Result<Policy, ToolError> {
        let named = |attribute: &'static str| move |error: PatternError| wrong(attribute, error);
        let policy = Policy::default()
            .blocking(&self.blocked_domains)
            .map_err(named("blocked_domains"))?
            .with_private(&self.allow_private_hosts)
            .map_err(named("allow_private_hosts"))?;
        match &self.allowed_domains {
            None => Ok(policy),
            Some(allowed) if allowed.is_empty() => Err(wrong(
                "allowed_domains",
                "is empty, which would allow nothing; leave it out to allow every public host",
            )),
            Some(allowed) => policy.allowing(allowed).map_err(named("allowed_domains")),
        }
    }

    fn resolver(&self) -> Result<Resolver, ToolError> {
        let Some(dns) = &self.dns else { return Ok(Resolver::System) };
        let with_port = dns.parse::<SocketAddr>();
        let server = with_port.or_else(|_| dns.parse::<IpAddr>().map(|address| SocketAddr::new(address, 53)));
        server.map(Resolver::Server).map_err(|_| {
            wrong(
                "dns",
                format!("{dns:?} is no name server; wanted an address and a port, such as 9.9.9.9:53"),
            )
        })
    }

    fn roots(&self, setup: &Setup) -> Result<Vec<http_guard::Certificate>, ToolError> {
        let Some(file) = &self.ca_file else { return Ok(Vec::new()) };
        let path = setup.path(file);
        let read = std::fs::read(&path).map_err(|error| error.to_string());
        read.and_then(|pem| root_certificates(&pem))
            .map_err(|error| wrong("ca_file", format!("{} cannot be used: {error}", path.display())))
    }
}

pub(crate) fn wrong(attribute: &str, what: impl std::fmt::Display) -> ToolError {
    ToolError::invalid_arguments(format!("{attribute}: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(config: serde_json::Value, attribute: &str) {
        let config: WebConfig = serde_json::from_value(config).unwrap();
        let checked = config.policy().map(drop).and_then(|()| config.resolver().map(drop));
        let message = checked.unwrap_err().to_string();
        assert!(message.starts_with(&format!("{attribute}: ")), "{message}");
    }

    #[test]
    fn what_cannot_be_meant_is_refused_by_attribute() {
        use serde_json::json;
        refused(json!({"allowed_domains": []}), "allowed_domains");
        refused(json!({"allowed_domains": ["https://docs.example/"]}), "allowed_domains");
        refused(json!({"blocked_domains": ["a b"]}), "blocked_domains");
        refused(json!({"allow_private_hosts": ["10.0.0.0/8"]}), "allow_private_hosts");
        refused(json!({"dns": "dns.example"}), "dns");
    }

    #[test]
    fn a_name_server_may_leave_out_its_port() {
        let config: WebConfig = serde_json::from_value(serde_json::json!({"dns": "::1"})).unwrap();
        assert_eq!(config.resolver().unwrap(), Resolver::Server("[::1]:53".parse().unwrap()));
    }
}
