//! Numbers that look random and are the same again for the same seed.

/// A source of numbers (SplitMix64).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The source of one round of a run.
    #[must_use]
    pub fn new(seed: u64, round: u64) -> Self {
        let mut random = Self(seed);
        let start = random.next();
        Self(start ^ round.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// The next number.
    #[expect(clippy::should_implement_trait, reason = "there is no end to it")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to less than `end`; 0 when `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        match end {
            0 => 0,
            end => (self.next() % end as u64) as usize,
        }
    }

    /// Whether something that happens once in `times` happens now.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of some values; `None` when there are none.
    pub fn pick<'a, T>(&mut self, values: &'a [T]) -> Option<&'a T> {
        let index = self.below(values.len());
        values.get(index)
    }
}
