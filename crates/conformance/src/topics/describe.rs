//! Who the provider is.

use harness_proto::common::v1::{Category, ProducerRef};

use crate::judge::Judge;
use crate::requirement::requirements;

requirements! {
    ANSWERED = "DESCRIBE-01" Must
        "Describe is answered before anything else, with a producer",
        "a ProducerRef";
    NAME = "DESCRIBE-02" Must
        "It has a name",
        "a name that is not empty";
    CATEGORY = "DESCRIBE-03" Must
        "It is a tool provider",
        "category TOOL";
    VERSION = "DESCRIBE-04" Must
        "Its version is a semantic version without a leading v",
        "major.minor.patch, as the lock file records it";
    SOURCE = "DESCRIBE-05" Must
        "Its source is the address of its repository",
        "host/owner/repository, for example github.com/org/repo";
    PROTOCOL = "DESCRIBE-06" Must
        "It states the version of the tool protocol",
        "protocol_version 1";
    STABLE = "DESCRIBE-07" Must
        "Describe is always answered the same",
        "equal answers before and after Configure, and from another process";
}

/// Holds an identity against the rules.
pub(crate) fn judge(judge: &Judge, producer: &ProducerRef) {
    judge.demand(NAME, !producer.name.is_empty(), || "the name is empty".to_owned());
    let category = producer.category().as_str_name();
    judge.demand(CATEGORY, producer.category() == Category::Tool, || category.to_owned());
    judge.demand(VERSION, is_version(&producer.version), || format!("{:?}", producer.version));
    judge.demand(SOURCE, is_address(&producer.source), || format!("{:?}", producer.source));
    let version = producer.protocol_version;
    judge.demand(PROTOCOL, version == 1, || format!("protocol_version {version}"));
}

fn is_version(text: &str) -> bool {
    let core = text.split(['-', '+']).next().unwrap_or_default();
    let numbers: Vec<&str> = core.split('.').collect();
    numbers.len() == 3
        && numbers.iter().all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_address(text: &str) -> bool {
    let parts: Vec<&str> = text.split('/').collect();
    parts.len() >= 3 && parts[0].contains('.') && parts.iter().all(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_addresses_have_a_form() {
        for good in ["1.2.3", "0.1.0-rc.1", "1.0.0+build"] {
            assert!(is_version(good), "{good}");
        }
        for bad in ["", "v1.2.3", "1.2", "1.2.x", "1..3"] {
            assert!(!is_version(bad), "{bad}");
        }
        assert!(is_address("github.com/org/repo"));
        for bad in ["", "repo", "https://github.com/org/repo", "github.com//repo", "org/repo/x"] {
            assert!(!is_address(bad), "{bad}");
        }
    }
}
