//! A small set of numbers.

/// How many positions a pattern can have.
pub(super) const MOST: usize = WORDS * 64;
const WORDS: usize = 4;

/// Where in a pattern the matching may stand: a set of positions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Positions([u64; WORDS]);

impl Positions {
    /// Adds a position below [`MOST`].
    pub(super) fn insert(&mut self, position: usize) {
        debug_assert!(position < MOST);
        if let Some(word) = self.0.get_mut(position / 64) {
            *word |= 1 << (position % 64);
        }
    }

    /// Whether matching has ended.
    pub(crate) fn is_empty(self) -> bool {
        self.0 == [0; WORDS]
    }

    /// Those in either.
    pub(crate) fn union(self, other: Self) -> Self {
        Self(std::array::from_fn(|index| self.0[index] | other.0[index]))
    }

    /// The positions in ascending order.
    pub(super) fn iter(self) -> impl Iterator<Item = usize> {
        self.0.into_iter().enumerate().flat_map(|(index, word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros() as usize)?;
                rest &= rest - 1;
                Some(index * 64 + bit)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_comes_out_in_order() {
        let mut positions = Positions::default();
        assert!(positions.is_empty());
        for position in [255, 0, 63, 64, 130] {
            positions.insert(position);
        }
        assert_eq!(positions.iter().collect::<Vec<_>>(), [0, 63, 64, 130, 255]);
        assert!(!positions.union(Positions::default()).is_empty());
    }
}
