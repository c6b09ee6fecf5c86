//! What the host asks of the plugin, read from the environment.

use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use super::StartError;
use crate::{Contract, variable};

/// The host's wishes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// The version both speak; our lowest if there is none, for the host to refuse.
    pub(super) app_version: u32,
    /// Where to put the socket.
    pub(super) socket_dir: Option<PathBuf>,
    /// Whom to give it to.
    pub(super) socket_group: Option<String>,
    /// The ports to listen on when it is no unix socket; `0..=0` lets the system choose.
    pub(super) ports: RangeInclusive<u16>,
    /// Whether the host wants to know about broker multiplexing.
    pub(super) multiplexing_asked: bool,
}

impl Request {
    /// Reads the variables that `lookup` finds, an empty one being as good as none.
    pub(super) fn read(
        contract: &Contract,
        lookup: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, StartError> {
        let lookup = |name: &str| lookup(name).filter(|value| !value.is_empty());
        if lookup(contract.cookie_key).is_none_or(|cookie| cookie != contract.cookie_value) {
            return Err(StartError::NotLaunchedByHost { cookie_key: contract.cookie_key });
        }
        if lookup(variable::CLIENT_CERT).is_some() {
            return Err(StartError::MutualTls);
        }
        let text = |name| lookup(name).map(|value| value.to_string_lossy().into_owned());
        Ok(Self {
            app_version: negotiate(contract.app_versions, text(variable::VERSIONS))?,
            socket_dir: lookup(variable::SOCKET_DIR).map(PathBuf::from),
            socket_group: text(variable::SOCKET_GROUP),
            ports: ports(text(variable::MIN_PORT), text(variable::MAX_PORT))?,
            multiplexing_asked: lookup(variable::MULTIPLEX).is_some(),
        })
    }
}

/// The highest version that is in both lists. A host that offers none we speak, or none at all, gets our
/// lowest: a very old host means that one, and any other refuses it by name.
fn negotiate(own: &[u32], offered: Option<String>) -> Result<u32, StartError> {
    let lowest = *own.iter().min().ok_or(StartError::NoVersion)?;
    let offered = offered.unwrap_or_default();
    let understood = offered.split(',').filter_map(|version| version.trim().parse::<u32>().ok());
    Ok(understood.filter(|version| own.contains(version)).max().unwrap_or(lowest))
}

fn ports(min: Option<String>, max: Option<String>) -> Result<RangeInclusive<u16>, StartError> {
    let port = |name, value: Option<String>| match value {
        None => Ok(None),
        Some(value) => value.parse().map(Some).map_err(|_| StartError::Variable { name, value }),
    };
    let min: u16 = port(variable::MIN_PORT, min)?.unwrap_or(0);
    let max = port(variable::MAX_PORT, max)?.unwrap_or(min);
    Ok(min..=max.max(min))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTRACT: Contract =
        Contract { cookie_key: "COOKIE", cookie_value: "yes", app_versions: &[3, 1, 2] };

    fn read(variables: &[(&str, &str)]) -> Result<Request, StartError> {
        Request::read(&CONTRACT, |name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
        })
    }

    #[track_caller]
    fn check_refused(variables: &[(&str, &str)], expected: &str) {
        assert_eq!(read(variables).unwrap_err().to_string(), expected);
    }

    #[track_caller]
    fn check_version(offered: &str, expected: u32) {
        let request = read(&[("COOKIE", "yes"), ("PLUGIN_PROTOCOL_VERSIONS", offered)]).unwrap();
        assert_eq!(request.app_version, expected);
    }

    #[test]
    fn the_cookie_must_match_exactly() {
        let by_hand = "this program is a plugin: it is started by its host and does nothing when run by hand \
                       (the host's COOKIE is not set)";
        check_refused(&[], by_hand);
        check_refused(&[("COOKIE", "")], by_hand);
        check_refused(&[("COOKIE", "yes ")], by_hand);
        assert!(read(&[("COOKIE", "yes")]).is_ok());
    }

    #[test]
    fn tls_is_refused_and_never_downgraded() {
        check_refused(
            &[("COOKIE", "yes"), ("PLUGIN_CLIENT_CERT", "-----BEGIN CERTIFICATE-----")],
            "the host asks for automatic mTLS (PLUGIN_CLIENT_CERT), which this plugin does not offer",
        );
        assert!(read(&[("COOKIE", "yes"), ("PLUGIN_CLIENT_CERT", "")]).is_ok());
    }

    #[test]
    fn the_highest_common_version_is_chosen() {
        check_version("1", 1);
        check_version("1,2", 2);
        check_version("2, 7, 3", 3);
        check_version("x,2", 2);
    }

    #[test]
    fn without_a_common_version_the_lowest_is_told() {
        check_version("7", 1);
        check_version("", 1);
        let nothing = Contract { app_versions: &[], ..CONTRACT };
        let refused = Request::read(&nothing, |_| Some("yes".into()));
        assert!(matches!(refused, Err(StartError::MutualTls)), "the lookup answers every name");
        assert!(matches!(negotiate(&[], None), Err(StartError::NoVersion)));
    }

    #[test]
    fn ports_and_places_are_read() {
        let request = read(&[
            ("COOKIE", "yes"),
            ("PLUGIN_MIN_PORT", "10000"),
            ("PLUGIN_MAX_PORT", "25000"),
            ("PLUGIN_UNIX_SOCKET_DIR", "/run/host"),
            ("PLUGIN_UNIX_SOCKET_GROUP", "users"),
            ("PLUGIN_MULTIPLEX_GRPC", "true"),
        ]);
        let expected = Request {
            app_version: 1,
            socket_dir: Some("/run/host".into()),
            socket_group: Some("users".into()),
            ports: 10_000..=25_000,
            multiplexing_asked: true,
        };
        assert_eq!(request.unwrap(), expected);
        check_refused(
            &[("COOKIE", "yes"), ("PLUGIN_MAX_PORT", "many")],
            "the host's PLUGIN_MAX_PORT=\"many\" is not understood",
        );
    }
}
