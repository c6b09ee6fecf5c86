//! A page of an ordered result, kept while the result is still being found.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Compares paths name by name, as a listing of a tree has them: what is in a directory follows it at once.
pub fn by_path(one: &[u8], other: &[u8]) -> Ordering {
    let differ = one.iter().zip(other).position(|(one, other)| one != other);
    match differ {
        None => one.len().cmp(&other.len()),
        Some(at) => rank(one[at]).cmp(&rank(other[at])),
    }
}

/// A slash ends a name, so it goes before every byte that continues one.
fn rank(byte: u8) -> u16 {
    if byte == b'/' { 0 } else { u16::from(byte) + 1 }
}

/// Something found, with what it is ordered by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranked {
    /// The greater, the earlier. Zero throughout if the path alone decides.
    pub weight: i128,
    /// Where it is, from the start.
    pub path: Box<[u8]>,
}

impl Ranked {
    fn order(&self, weight: i128, path: &[u8]) -> Ordering {
        weight.cmp(&self.weight).then_with(|| by_path(&self.path, path))
    }
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order(other.weight, &other.path)
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The first `most` of everything that was added, and a count of all. Its memory grows with `most`, not with the count.
#[derive(Debug)]
pub struct First {
    most: usize,
    /// The last of those kept is on top.
    kept: BinaryHeap<Ranked>,
    total: u64,
}

impl First {
    /// Keeps `most`.
    pub fn new(most: usize) -> Self {
        Self { most, kept: BinaryHeap::new(), total: 0 }
    }

    /// Adds one.
    pub fn add(&mut self, weight: i128, path: &[u8]) {
        self.total += 1;
        if self.kept.len() < self.most {
            self.kept.push(Ranked { weight, path: path.into() });
        } else if let Some(mut last) = self.kept.peek_mut()
            && last.order(weight, path) == Ordering::Greater
        {
            *last = Ranked { weight, path: path.into() };
        }
    }

    /// Adds all that another has.
    pub fn merge(&mut self, other: Self) {
        self.total += other.total;
        for ranked in other.kept {
            if self.kept.len() < self.most {
                self.kept.push(ranked);
            } else if let Some(mut last) = self.kept.peek_mut()
                && *last > ranked
            {
                *last = ranked;
            }
        }
    }

    /// How many were added.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Those kept, in order.
    pub fn into_sorted(self) -> Vec<Ranked> {
        self.kept.into_sorted_vec()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_in_a_directory_follows_it_at_once() {
        let mut paths = ["a-b", "a/b/c", "a", "a.rs", "a/b", "a/b-c", "B", "a/b/a"];
        paths.sort_by(|one, other| by_path(one.as_bytes(), other.as_bytes()));
        assert_eq!(paths, ["B", "a", "a/b", "a/b/a", "a/b/c", "a/b-c", "a-b", "a.rs"]);
    }

    proptest! {
        #[test]
        fn the_first_of_all_are_kept_however_they_come(
            all in proptest::collection::vec((0..4_i128, "[a-c/]{1,4}"), 0..40),
            most in 0_usize..12,
            split in 0_usize..40,
        ) {
            let (mut one, mut other) = (First::new(most), First::new(most));
            for (index, (weight, path)) in all.iter().enumerate() {
                let part = if index < split { &mut one } else { &mut other };
                part.add(*weight, path.as_bytes());
            }
            one.merge(other);
            prop_assert_eq!(one.total(), all.len() as u64);
            let mut sorted: Vec<_> =
                all.into_iter().map(|(weight, path)| Ranked { weight, path: path.into_bytes().into() }).collect();
            sorted.sort();
            sorted.truncate(most);
            prop_assert_eq!(one.into_sorted(), sorted);
        }
    }
}
