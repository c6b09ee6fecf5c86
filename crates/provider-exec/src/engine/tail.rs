//! The last bytes of a stream.

/// A ring of the last bytes that were pushed.
#[derive(Clone, Debug)]
pub(crate) struct Tail {
    capacity: usize,
    bytes: Vec<u8>,
    /// Where the oldest byte is once the ring is full.
    oldest: usize,
    dropped: u64,
    last_dropped: Option<u8>,
}

impl Tail {
    /// Keeps the last `capacity` bytes. Memory is taken as bytes come.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, bytes: Vec::new(), oldest: 0, dropped: 0, last_dropped: None }
    }

    /// Adds bytes; the oldest ones give way.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let excess = (self.bytes.len() + bytes.len()).saturating_sub(self.capacity);
        self.dropped += excess as u64;
        if let Some(index) = excess.checked_sub(1) {
            self.last_dropped = Some(self.nth(index, bytes));
        }
        // What would be overwritten by the same push is not written at all.
        let unwritten = bytes.len().saturating_sub(self.capacity);
        let bytes = bytes.get(unwritten..).unwrap_or_default();
        let (appended, wrapped) = bytes.split_at(bytes.len().min(self.capacity - self.bytes.len()));
        self.bytes.extend_from_slice(appended);
        let mut rest = wrapped;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(self.capacity - self.oldest));
            let end = self.oldest + now.len();
            if let Some(place) = self.bytes.get_mut(self.oldest..end) {
                place.copy_from_slice(now);
            }
            self.oldest = end % self.capacity;
            rest = later;
        }
    }

    /// How many bytes are held.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// How many bytes had to give way.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The newest of the bytes that had to give way.
    pub(crate) fn last_dropped(&self) -> Option<u8> {
        self.last_dropped
    }

    /// A byte of what is held and `more` together, oldest first.
    fn nth(&self, index: usize, more: &[u8]) -> u8 {
        let held = self.bytes.len();
        let found =
            if index < held { self.bytes.get((self.oldest + index) % held) } else { more.get(index - held) };
        found.copied().unwrap_or_default()
    }

    /// The bytes, oldest first.
    pub(crate) fn to_vec(&self) -> Vec<u8> {
        let (newer, older) = self.bytes.split_at(self.oldest);
        [older, newer].concat()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Tail;

    proptest! {
        #[test]
        fn the_last_bytes_are_kept(capacity in 1..20_usize, pushes in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..10)) {
            let mut tail = Tail::new(capacity);
            pushes.iter().for_each(|bytes| tail.push(bytes));
            let all = pushes.concat();
            let kept = all.len().min(capacity);
            prop_assert_eq!(tail.to_vec(), all[all.len() - kept..].to_vec());
            prop_assert_eq!(tail.len(), kept);
            prop_assert_eq!(tail.dropped(), (all.len() - kept) as u64);
            prop_assert_eq!(tail.last_dropped(), all[..all.len() - kept].last().copied());
        }
    }
}
