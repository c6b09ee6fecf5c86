//! A content as the difference to another one, small where little was changed.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::engine::diff::{common_prefix, common_suffix};

/// What makes an old content of a new one: how much of its beginning and its end they share, and the old bytes
/// between.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Delta {
    /// Bytes that both begin with.
    prefix: usize,
    /// Bytes that both end with.
    suffix: usize,
    /// Where the old bytes between are among the change's bytes.
    middle: Range<usize>,
}

impl Delta {
    /// What makes `old` of `new`; the bytes go to the end of `bytes`.
    pub(crate) fn between(old: &[u8], new: &[u8], bytes: &mut Vec<u8>) -> Self {
        let prefix = common_prefix(old, new);
        let suffix =
            common_suffix(old.get(prefix..).unwrap_or_default(), new.get(prefix..).unwrap_or_default());
        Self::of_span(prefix, suffix, old.get(prefix..old.len() - suffix).unwrap_or_default(), bytes)
    }

    /// The whole of `old`, whatever comes after it.
    pub(crate) fn whole(old: &[u8], bytes: &mut Vec<u8>) -> Self {
        Self::of_span(0, 0, old, bytes)
    }

    /// What makes the old content of a new one with the same first `prefix` and last `suffix` bytes.
    pub(crate) fn of_span(prefix: usize, suffix: usize, old: &[u8], bytes: &mut Vec<u8>) -> Self {
        let start = bytes.len();
        bytes.extend_from_slice(old);
        Self { prefix, suffix, middle: start..bytes.len() }
    }

    /// The old content. `None` if the new one is too short to be what it was made from.
    pub(crate) fn apply(&self, new: &[u8], bytes: &[u8]) -> Option<Vec<u8>> {
        let tail = new.len().checked_sub(self.suffix)?;
        let (head, tail) = (new.get(..self.prefix)?, new.get(tail..)?);
        Some([head, bytes.get(self.middle.clone())?, tail].concat())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(old: &[u8], new: &[u8], kept: &[u8]) {
        let mut bytes = b"before".to_vec();
        let delta = Delta::between(old, new, &mut bytes);
        assert_eq!(&bytes[6..], kept);
        assert_eq!(delta.apply(new, &bytes).unwrap(), old);
    }

    #[test]
    fn only_what_was_replaced_is_kept() {
        check(b"", b"", b"");
        check(b"abc", b"abc", b"");
        check(b"a old z", b"a new z", b"old");
        check(b"aaa", b"aa", b"a");
        check(b"aa", b"aaa", b"");
        check(b"whole", b"", b"whole");
    }

    #[test]
    fn a_content_that_is_too_short_is_noticed() {
        let mut bytes = Vec::new();
        let delta =
            Delta::between(b"long beginning, old, long end", b"long beginning, new, long end", &mut bytes);
        assert_eq!(delta.apply(b"short", &bytes), None);
    }

    proptest! {
        #[test]
        fn the_old_content_comes_back(old in "[ab]{0,20}", new in "[ab]{0,20}") {
            let mut bytes = Vec::new();
            let delta = Delta::between(old.as_bytes(), new.as_bytes(), &mut bytes);
            prop_assert_eq!(delta.apply(new.as_bytes(), &bytes).unwrap(), old.as_bytes());
            let whole = Delta::whole(old.as_bytes(), &mut bytes);
            prop_assert_eq!(whole.apply(new.as_bytes(), &bytes).unwrap(), old.as_bytes());
        }
    }
}
