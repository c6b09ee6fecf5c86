//! The requirements, topic by topic, and how evidence is held against them.

pub(crate) mod callback;
pub(crate) mod cancel;
pub(crate) mod configure;
pub(crate) mod describe;
pub(crate) mod handshake;
pub(crate) mod invoke;
pub(crate) mod preview;
pub(crate) mod render;
pub(crate) mod schema;
pub(crate) mod secret;
pub(crate) mod shutdown;
pub(crate) mod stream;

use crate::requirement::Requirement;

/// Every topic, in the order of reports: its word, what it is about, its requirements.
pub(crate) const TOPICS: &[(&str, &str, &[&Requirement])] = &[
    ("HANDSHAKE", "the process and its first line", handshake::ALL),
    ("DESCRIBE", "who the provider is", describe::ALL),
    ("SCHEMA", "what it declares", schema::ALL),
    ("CONFIGURE", "what it can be configured with", configure::ALL),
    ("INVOKE", "what calls do", invoke::ALL),
    ("STREAM", "the events of a call", stream::ALL),
    ("PREVIEW", "what calls would do", preview::ALL),
    ("RENDER", "pictures of results", render::ALL),
    ("CANCEL", "calls that are ended", cancel::ALL),
    ("CALLBACK", "what it asks of its host", callback::ALL),
    ("SECRET", "where secrets must not appear", secret::ALL),
    ("SHUTDOWN", "the end of the process", shutdown::ALL),
];

/// Every requirement, in the order of reports.
pub(crate) fn all() -> impl Iterator<Item = &'static &'static Requirement> {
    TOPICS.iter().flat_map(|(_, _, requirements)| requirements.iter())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_numbered_and_of_their_topic() {
        for (word, _, requirements) in TOPICS {
            for (index, requirement) in requirements.iter().enumerate() {
                assert_eq!(requirement.id, format!("{word}-{:02}", index + 1));
                assert_eq!(requirement.topic(), *word);
            }
        }
    }
}
