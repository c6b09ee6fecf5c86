//! Releases that are read over HTTP: from one release's folder, or from a mirror with its list.
//!
//! Nothing is written down before it was verified, so whoever is killed in the middle leaves nothing.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http_guard::{
    BodyEnd, CheckedUrl, FetchError, Guard, Limits, Policy, Proxy, Request, Response, Settings,
    root_certificates,
};
use release::{Files, Index, archive::LARGEST_PROGRAM};
use tokio::runtime::Handle;

use crate::exit::Failure;

/// A release's list of what is in it.
const MANIFEST: &str = "manifest.json";
/// A mirror's list of its folders.
const INDEX: &str = "index.json";
/// The largest list.
const LARGEST_LIST: u64 = 16 << 20;
/// One file may take this long, and be silent for so long.
const LONGEST: Duration = Duration::from_secs(1_800);
const LONGEST_SILENCE: Duration = Duration::from_secs(30);
/// How often a file may be on yet another site, as those of large releases are.
const MOST_SITES: usize = 3;

/// The files below an address.
#[derive(Debug)]
pub(super) struct Mirror {
    base: CheckedUrl,
    guard: Guard,
    runtime: Handle,
}

/// Whether a text is an address and not a folder.
pub(super) fn is_address(from: &str) -> bool {
    let is_scheme = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    from.split_once("://").is_some_and(|(scheme, _)| is_scheme(scheme))
}

impl Mirror {
    /// The files below `from`. Its host may be inside a private network: whoever runs the command names it.
    ///
    /// # Errors
    /// It is no address, or one that nobody should trust programs from.
    pub(super) fn open(
        from: &str,
        ca_file: Option<&Path>,
        proxy: Option<&str>,
    ) -> Result<Arc<dyn Files>, Failure> {
        let wrong = |problem: &dyn std::fmt::Display| {
            Failure::wrong_usage(format!("--from {}: {problem}", http_guard::redact_text(from)))
        };
        let with_slash = if from.ends_with('/') { from.to_owned() } else { format!("{from}/") };
        let base =
            with_slash.parse::<CheckedUrl>().map_err(|error| wrong(&format!("the address {error}")))?;
        if base.as_url().query().is_some() {
            return Err(wrong(&"an address with a ? has no files below it"));
        }
        if !base.is_https() && !is_this_machine(&base) {
            return Err(wrong(&"whoever is on the way can change what comes over http; use https")
                .hint("download the release in a way you trust, and give its folder"));
        }
        let policy = Policy::default()
            .with_private([format!("{}:{}", base.host(), base.port())])
            .map_err(|error| wrong(&error))?;
        let guard = Guard::new(Settings {
            policy,
            proxy: proxy.map(parsed_proxy).transpose()?,
            extra_roots: ca_file.map(certificates).transpose()?.unwrap_or_default(),
            ..Settings::default()
        });
        Ok(Arc::new(Self { base, guard, runtime: Handle::current() }))
    }

    /// A file, whole.
    async fn fetched(&self, name: &str) -> io::Result<Vec<u8>> {
        let is_list = name.ends_with(".json") || name.ends_with("SHA256SUMS");
        let most = if is_list { LARGEST_LIST } else { LARGEST_PROGRAM };
        let limits = Limits {
            max_body: most,
            max_wire: most,
            total: LONGEST,
            idle: LONGEST_SILENCE,
            ..Limits::default()
        };
        let mut url = self.base.join(name).map_err(|error| invalid(format!("its address {error}")))?;
        for _ in 0..=MOST_SITES {
            let request = Request::get(url.clone()).within(limits);
            let response = self.guard.send(request).await.map_err(|error| unreached(&error))?;
            let Some(to) = &response.redirect_to else { return whole(response).await };
            // Any site may hold a file, since its hash is known; but no weaker connection.
            let next = to.parse::<CheckedUrl>().map_err(|_| elsewhere(to))?;
            if !next.is_https() {
                return Err(elsewhere(to));
            }
            url = next;
        }
        Err(io::Error::other(format!("it is sent from site to site, {MOST_SITES} times and more")))
    }
}

impl Files for Mirror {
    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        self.runtime.block_on(self.fetched(name))
    }

    fn releases(&self) -> io::Result<Vec<String>> {
        let is_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        match self.read(MANIFEST) {
            Ok(_) => return Ok(vec![String::new()]),
            Err(error) if is_missing(&error) => {}
            Err(error) => return Err(error),
        }
        match self.read(INDEX) {
            Ok(text) => Ok(Index::parse(&text)?.releases),
            Err(error) if is_missing(&error) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

fn is_this_machine(url: &CheckedUrl) -> bool {
    match url.host() {
        http_guard::Host::Address(address) => address.is_loopback(),
        http_guard::Host::Name(name) => name == "localhost",
    }
}

fn parsed_proxy(text: &str) -> Result<Proxy, Failure> {
    text.parse::<Proxy>().map_err(|error| Failure::wrong_usage(format!("--proxy {error}")))
}

fn certificates(file: &Path) -> Result<Vec<http_guard::Certificate>, Failure> {
    let read = std::fs::read(file).map_err(|error| error.to_string());
    read.and_then(|pem| root_certificates(&pem))
        .map_err(|error| Failure::wrong_usage(format!("--ca-file {}: {error}", file.display())))
}

/// The body of an answer that is a file, if all of it came.
async fn whole(response: Response) -> io::Result<Vec<u8>> {
    match response.status {
        200 => {}
        404 | 410 => return Err(io::Error::new(io::ErrorKind::NotFound, "the server has no such file")),
        status => return Err(io::Error::other(format!("the server answers with status {status}"))),
    }
    let body = response.body.collect().await;
    let problem = match body.end {
        BodyEnd::Complete => return Ok(body.bytes),
        BodyEnd::Capped | BodyEnd::Swollen => "it is larger than such a file may be".to_owned(),
        BodyEnd::TimedOut => "the server did not send all of it in time".to_owned(),
        BodyEnd::BrokenOff(reason) => {
            format!("the connection broke off after {} bytes ({reason})", body.bytes.len())
        }
        BodyEnd::Damaged(reason) => format!("it cannot be decoded ({reason})"),
        _ => "it did not come whole".to_owned(),
    };
    Err(io::Error::new(io::ErrorKind::UnexpectedEof, problem))
}

fn unreached(error: &FetchError) -> io::Error {
    io::Error::other(error.to_string())
}

fn invalid(problem: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

fn elsewhere(to: &str) -> io::Error {
    io::Error::other(format!(
        "the server leads to {}, which is not followed: it is no https address",
        http_guard::redact_text(to)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_no_addresses() {
        for folder in ["dist", "./dist", "/srv/mirror", "a:b", "C:\\dist", "..", "://x"] {
            assert!(!is_address(folder), "{folder}");
        }
        assert!(is_address("https://mirror.example/x") && is_address("ftp://mirror.example"));
    }
}
