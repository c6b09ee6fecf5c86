//! How well a path fits what somebody remembers of it.
//!
//! Every word of the query must be in the path, in order but perhaps with gaps, or in the file's name with a few slips
//! of the keys. What fits the name weighs more than what fits the directories.

use nucleo_matcher::pattern::{Atom, AtomKind, CaseMatching, Normalization};
use nucleo_matcher::{Config, Matcher, Utf32Str};

/// What one character of a query is worth in [`nucleo_matcher`]'s scale.
const CHARACTER: u32 = 16;
/// What a slip costs.
const SLIP: u32 = 2 * CHARACTER;
/// What is given for a whole name that is the query.
const WHOLE: u32 = 10 * CHARACTER;

/// What is looked for.
#[derive(Debug, Clone)]
pub struct Query {
    words: Vec<Word>,
}

#[derive(Debug, Clone)]
struct Word {
    atom: Atom,
    lower: String,
    slips: Option<Slips>,
    /// What it is made of; `None` if that says nothing about what it fits.
    letters: Option<Letters>,
}

/// Scores one path after another. One for each thread.
pub struct Scorer<'a> {
    query: &'a Query,
    matcher: Matcher,
    characters: Vec<char>,
    lower: String,
    /// The directory of the last path, which most often is that of the next one.
    directory: (String, Letters),
}

impl Query {
    /// Reads a query: words that all must fit. `None` if there is none.
    pub fn new(text: &str) -> Option<Self> {
        let words: Vec<Word> = text.split_whitespace().map(Word::new).collect();
        (!words.is_empty()).then_some(Self { words })
    }
}

impl Word {
    fn new(text: &str) -> Self {
        let atom = Atom::new(text, CaseMatching::Ignore, Normalization::Smart, AtomKind::Fuzzy, false);
        let lower = text.to_lowercase();
        let letters = lower.is_ascii().then(|| Letters::of(lower.as_bytes()));
        Self { atom, slips: Slips::new(&lower), lower, letters }
    }

    /// Whether it may fit a path of these letters, whose name has those. Costs next to nothing, and most do not.
    fn may_fit(&self, path: Letters, name: Letters) -> bool {
        self.letters.is_none_or(|letters| {
            letters.missing_in(path) == 0
                // Every letter that is not there is a slip of its own.
                || self.slips.as_ref().is_some_and(|slips| letters.missing_in(name) <= slips.most)
        })
    }
}

/// Which ASCII characters there are, in small letters. Some share a bit, so that a missing one may be overlooked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Letters(u64);

impl Letters {
    fn of(lower: &[u8]) -> Self {
        Self(lower.iter().fold(0, |letters, byte| letters | 1 << (byte & 63)))
    }

    fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// How many of these are not among the others, at least.
    fn missing_in(self, others: Self) -> u32 {
        (self.0 & !others.0).count_ones()
    }
}

impl<'a> Scorer<'a> {
    /// A scorer for `query`.
    pub fn new(query: &'a Query) -> Self {
        let matcher = Matcher::new(Config::DEFAULT.match_paths());
        Self { query, matcher, characters: Vec::new(), lower: String::new(), directory: Default::default() }
    }

    /// How well `path` fits, the more the better; `None` if it does not.
    pub fn score(&mut self, path: &str) -> Option<u32> {
        let query = self.query;
        let name = path.rsplit('/').next().unwrap_or(path);
        self.lower.clear();
        if path.is_ascii() {
            self.lower.push_str(path);
            self.lower.make_ascii_lowercase();
            let (in_path, in_name) = self.letters(path.len() - name.len());
            if !query.words.iter().all(|word| word.may_fit(in_path, in_name)) {
                return None;
            }
        } else {
            self.lower.extend(path.chars().flat_map(char::to_lowercase));
        }
        query.words.iter().map(|word| self.word(word, path, name)).sum()
    }

    /// The letters of the path at hand, and of its name, which begins at `name`.
    fn letters(&mut self, name: usize) -> (Letters, Letters) {
        let (directory, name) = self.lower.split_at(name);
        if self.directory.0 != directory {
            self.directory.0.clear();
            self.directory.0.push_str(directory);
            self.directory.1 = Letters::of(directory.as_bytes());
        }
        let in_name = Letters::of(name.as_bytes());
        (in_name.and(self.directory.1), in_name)
    }

    fn word(&mut self, word: &Word, path: &str, name: &str) -> Option<u32> {
        let in_path = self.fuzzy(word, path);
        let in_name = in_path.and_then(|_| self.fuzzy(word, name)).map(|score| score + score / 2);
        let lower_name = self.lower.rsplit('/').next().unwrap_or(&self.lower);
        let slipped = word.slips.as_ref().and_then(|slips| slips.score(lower_name));
        let best = in_path.max(in_name).max(slipped)?;
        Some(best + whole(&word.lower, &self.lower, lower_name))
    }

    fn fuzzy(&mut self, word: &Word, text: &str) -> Option<u32> {
        let text = Utf32Str::new(text, &mut self.characters);
        word.atom.score(text, &mut self.matcher).map(u32::from)
    }
}

/// What is given for a query that is the name, the name without its extension, or the last names of the path.
fn whole(word: &str, path: &str, name: &str) -> u32 {
    let ends = path.strip_suffix(word).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'));
    let stem = name.strip_prefix(word).is_some_and(|rest| rest.starts_with('.'));
    match (ends, stem) {
        (true, _) => 2 * WHOLE,
        (false, true) => WHOLE,
        (false, false) => 0,
    }
}

/// A word as bits, to count the slips (a wrong, missing, additional or swapped character) with which it is in a text.
#[derive(Debug, Clone)]
struct Slips {
    ascii: Box<[u64; 128]>,
    others: Vec<(char, u64)>,
    length: u32,
    most: u32,
}

impl Slips {
    /// `None` for a word that is too short to have slips, or too long to be counted.
    fn new(lower: &str) -> Option<Self> {
        let length = u32::try_from(lower.chars().count()).ok()?;
        let most = match length {
            0..=3 => return None,
            4..=6 => 1,
            7..=11 => 2,
            12..=64 => 3,
            _ => return None,
        };
        // Names are compared, and a slash is in none.
        if lower.contains('/') {
            return None;
        }
        let mut slips = Self { ascii: Box::new([0; 128]), others: Vec::new(), length, most };
        for (at, character) in lower.chars().enumerate() {
            match slips.ascii.get_mut(character as usize) {
                Some(bits) => *bits |= 1 << at,
                None => match slips.others.iter_mut().find(|(known, _)| *known == character) {
                    Some((_, bits)) => *bits |= 1 << at,
                    None => slips.others.push((character, 1 << at)),
                },
            }
        }
        Some(slips)
    }

    fn bits(&self, character: char) -> u64 {
        let other = || self.others.iter().find(|(known, _)| *known == character).map_or(0, |(_, bits)| *bits);
        self.ascii.get(character as usize).copied().unwrap_or_else(other)
    }

    /// The fewest slips with which the word is anywhere in `text`: the bit-parallel form of the table in which
    /// neighbours may also be swapped (Hyyrö's), where a match may begin at any character.
    fn count(&self, text: &str) -> u32 {
        if text.is_ascii() {
            self.count_of(text.bytes().map(|byte| self.ascii.get(usize::from(byte)).copied().unwrap_or(0)))
        } else {
            self.count_of(text.chars().map(|character| self.bits(character)))
        }
    }

    fn count_of(&self, text: impl Iterator<Item = u64>) -> u32 {
        let last = 1_u64 << (self.length - 1);
        let (mut more, mut less) = (u64::MAX, 0_u64);
        let (mut matching_before, mut straight) = (0_u64, 0_u64);
        let mut slips = self.length;
        let mut fewest = slips;
        for matching in text {
            let swapped = ((!straight & matching) << 1) & matching_before;
            straight = (((matching & more).wrapping_add(more)) ^ more) | matching | less | swapped;
            let up = less | !(straight | more);
            let down = straight & more;
            slips = slips + u32::from(up & last != 0) - u32::from(down & last != 0);
            fewest = fewest.min(slips);
            let (up, down) = (up << 1, down << 1);
            more = down | !(straight | up);
            less = up & straight;
            matching_before = matching;
        }
        fewest
    }

    /// What the word in `name` is worth, if it is there with few enough slips.
    fn score(&self, name: &str) -> Option<u32> {
        let slips = self.count(name);
        if slips > self.most {
            return None;
        }
        let stem = name.rfind('.').filter(|at| *at > 0).map_or(name, |at| &name[..at]);
        let near = |text: &str| {
            u32::try_from(text.chars().count()).is_ok_and(|length| length.abs_diff(self.length) <= self.most)
        };
        let whole = if near(name) || near(stem) { WHOLE } else { 0 };
        Some((self.length * CHARACTER + whole).saturating_sub(slips * SLIP).max(1))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TREE: &[&str] = &[
        "Cargo.toml",
        "crates/provider-core/src/call.rs",
        "crates/provider-core/src/config.rs",
        "crates/provider-search/src/config.rs",
        "crates/provider-search/src/engine/glob/mod.rs",
        "crates/provider-search/src/main.rs",
        "docs/benchmarks.md",
        "docs/main/index.md",
        "src/UserController.java",
        "src/user_control/list.rs",
        "tests/scenarios/readme.txt",
        "README.md",
        "\u{fc}bersicht.md",
    ];

    fn ranked(query: &str) -> Vec<&'static str> {
        let query = Query::new(query).unwrap();
        let mut scorer = Scorer::new(&query);
        let mut found: Vec<_> = TREE.iter().filter_map(|path| Some((scorer.score(path)?, *path))).collect();
        found.sort_by_key(|(score, path)| (std::cmp::Reverse(*score), path.len(), *path));
        found.into_iter().map(|(_, path)| path).collect()
    }

    #[track_caller]
    fn first(query: &str, expected: &str) {
        assert_eq!(ranked(query).first(), Some(&expected), "{query}: {:?}", ranked(query));
    }

    #[test]
    fn what_is_meant_comes_first() {
        first("main", "crates/provider-search/src/main.rs");
        first("main.rs", "crates/provider-search/src/main.rs");
        first("README", "README.md");
        first("readme.md", "README.md");
        first("usercontroller", "src/UserController.java");
        first("search config", "crates/provider-search/src/config.rs");
        first("core/src/config.rs", "crates/provider-core/src/config.rs");
        first("globmod", "crates/provider-search/src/engine/glob/mod.rs");
        first("bench", "docs/benchmarks.md");
        first("\u{dc}bersicht", "\u{fc}bersicht.md");
    }

    #[test]
    fn slips_of_the_keys_are_forgiven() {
        first("mian.rs", "crates/provider-search/src/main.rs");
        first("cofnig.rs", "crates/provider-core/src/config.rs");
        first("benchmraks", "docs/benchmarks.md");
        first("UserContoller", "src/UserController.java");
        first("readne", "README.md");
        first("Crago.toml", "Cargo.toml");
    }

    #[test]
    fn what_is_something_else_does_not_fit() {
        assert_eq!(ranked("zzz"), [""; 0]);
        assert_eq!(ranked("kubernetes"), [""; 0]);
        assert!(Query::new("  ").is_none());
    }

    /// The table in full: slips with which `word` ends at each place of `text`.
    fn by_table(word: &[char], text: &[char]) -> u32 {
        let mut rows: Vec<Vec<u32>> = vec![vec![0; text.len() + 1]];
        for at in 1..=word.len() {
            let mut row = vec![at as u32];
            for to in 1..=text.len() {
                let changed = rows[at - 1][to - 1] + u32::from(word[at - 1] != text[to - 1]);
                let mut best = changed.min(rows[at - 1][to] + 1).min(row[to - 1] + 1);
                if at > 1 && to > 1 && word[at - 1] == text[to - 2] && word[at - 2] == text[to - 1] {
                    best = best.min(rows[at - 2][to - 2] + 1);
                }
                row.push(best);
            }
            rows.push(row);
        }
        rows[word.len()].iter().copied().min().unwrap()
    }

    proptest! {
        #[test]
        fn a_path_that_is_passed_over_fits_nothing(query in "[a-cA-C.\u{e9}]{1,6}( [a-c/]{1,5})?", path in "([a-eA-E._\u{e9}]{0,6}/){0,2}[a-eA-E._]{1,9}") {
            let Some(query) = Query::new(&query) else { return Ok(()) };
            let unfiltered = Query {
                words: query.words.iter().cloned().map(|word| Word { letters: None, ..word }).collect(),
            };
            prop_assert_eq!(Scorer::new(&query).score(&path), Scorer::new(&unfiltered).score(&path));
        }

        #[test]
        fn slips_are_counted_as_the_whole_table_does(word in "[abc\u{e9}]{4,12}", text in "[abc\u{e9}x]{0,16}") {
            let (word_characters, characters): (Vec<_>, Vec<_>) = (word.chars().collect(), text.chars().collect());
            prop_assert_eq!(Slips::new(&word).unwrap().count(&text), by_table(&word_characters, &characters));
        }
    }
}
