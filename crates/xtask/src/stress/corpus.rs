//! Kept inputs: what a fuzzed reader begins with, and what it once failed on.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, ensure};

use super::Random;

/// The most changes made to an input at once.
const MOST_CHANGES: usize = 6;

/// The kept inputs of one reader, in the order of their names.
pub(super) struct Corpus {
    folder: PathBuf,
    inputs: Vec<Vec<u8>>,
    /// Pieces that mean something to the reader.
    pieces: &'static [&'static [u8]],
}

impl Corpus {
    /// Those in `tests/corpus/NAME`, and the files of a further folder that end like this.
    pub(super) fn of(
        name: &str,
        pieces: &'static [&'static [u8]],
        further: Option<(&str, &str)>,
    ) -> anyhow::Result<Self> {
        let root = crate::workspace_root();
        let folder = root.join("tests/corpus").join(name);
        let mut paths: Vec<PathBuf> = Vec::new();
        for (folder, ending) in [
            (folder.clone(), ""),
            further.map(|(at, ending)| (root.join(at), ending)).unwrap_or((folder.clone(), "\0")),
        ] {
            let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
            let found = entries.filter_map(Result::ok).map(|entry| entry.path());
            paths.extend(found.filter(|path| path.to_string_lossy().ends_with(ending)));
        }
        paths.sort();
        let inputs = paths.iter().map(fs::read).collect::<Result<Vec<_>, _>>()?;
        ensure!(!inputs.is_empty(), "{} is empty", folder.display());
        Ok(Self { folder, inputs, pieces })
    }

    /// The input of a round: each kept one as it is first, then changed ones.
    pub(super) fn input(&self, round: u64, random: &mut Random) -> Vec<u8> {
        let kept = usize::try_from(round).ok().and_then(|round| self.inputs.get(round - 1));
        if let Some(kept) = kept {
            return kept.clone();
        }
        let mut input = random.pick(&self.inputs).cloned().unwrap_or_default();
        for _ in 0..=random.below(MOST_CHANGES) {
            self.change(&mut input, random);
        }
        input
    }

    fn change(&self, input: &mut Vec<u8>, random: &mut Random) {
        let at = random.below(input.len() + 1);
        let longest = 1 << random.below(10);
        let end = (at + random.below(longest)).min(input.len());
        match random.below(7) {
            0 => input.insert(at, random.below(256) as u8),
            1 if at < input.len() => input[at] ^= 1 << random.below(8),
            2 => drop(input.drain(at..end)),
            3 => {
                let piece = input[at..end].to_vec();
                let times = 1 + random.below(20);
                input.splice(at..at, piece.repeat(times));
            }
            4 | 5 => {
                let piece = random.pick(self.pieces).copied().unwrap_or_default();
                let times = if random.once_in(8) { random.below(300) } else { 1 };
                input.splice(at..at, piece.repeat(times));
            }
            _ => {
                let other = random.pick(&self.inputs).cloned().unwrap_or_default();
                let from = random.below(other.len() + 1);
                input.splice(at..end, other[from..].iter().copied().take(2_000));
            }
        }
    }

    /// Does `check` with an input; one that fails, or that makes it panic, is kept.
    pub(super) fn hold(
        &self,
        input: &[u8],
        check: impl FnOnce(&[u8]) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(input)));
        let failure = match checked {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error,
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                anyhow::anyhow!("panic: {}", text.unwrap_or_default())
            }
        };
        let sum = input.iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
            (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let path = self.folder.join(format!("found-{sum:016x}"));
        fs::write(&path, input)?;
        Err(failure.context(format!("kept as {}", path.display())))
    }
}
