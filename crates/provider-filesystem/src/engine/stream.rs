//! One replacement in a file of any size, in bounded memory.
//!
//! [`locate`] goes over the file once: it hashes it, makes sure that it is UTF-8 and finds the text. If that occurs
//! once, an [`Excerpt`] of some lines around the place is all that has to be in memory: what an edit makes of the excerpt
//! is what it makes of the file. Anything that needs more (several places, another encoding, an explanation) is for the
//! functions that hold the whole file.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;

use memchr::{memchr, memchr_iter, memmem, memrchr_iter};
use sha2::{Digest as _, Sha256};

use super::encoding::has_jis_escape;
use super::find::{MatchKind, find, longest_match};
use super::window::{Utf8Check, is_continuation};

/// Bytes that are looked at together; few in tests, so that small files have many borders.
const PIECE: usize = if cfg!(test) { 4 << 10 } else { 1 << 20 };
/// Lines of an excerpt before and after the place: enough for the context of a diff and to see the line endings.
const AROUND: usize = 16;
/// More bytes before and after the place are not taken into an excerpt.
const MOST_AROUND: usize = if cfg!(test) { 1 << 10 } else { 256 << 10 };

/// What is known of a file after going over it once.
pub struct Located {
    /// SHA-256 of the file.
    pub sha256: [u8; 32],
    /// How many lines it has.
    pub lines: u64,
    /// Where the text is.
    pub place: Place,
    /// The state of the hash at the beginning of every piece.
    states: Vec<Sha256>,
}

/// Where a text is in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Nowhere.
    Nowhere,
    /// In one place.
    Once(Excerpt),
    /// In several, beginning in these lines, and maybe more.
    Several([u64; 2]),
    /// The file is not plain UTF-8.
    NotUtf8,
}

/// Whole lines of a file, where they are not too long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// Where the excerpt stands in the file, in bytes.
    pub range: Range<u64>,
    /// Lines before it.
    pub lines_before: u64,
    /// Its text.
    pub text: String,
    /// How the text was found.
    pub matched: MatchKind,
}

/// Goes over the `len` bytes of `source` in search of `needle`, which is not empty.
///
/// # Errors
/// Whatever reading fails with, and a file that is shorter than `len`.
pub fn locate<R: Read + Seek>(source: &mut R, len: u64, needle: &str) -> io::Result<Located> {
    let exact = Pass::over(source, len, needle, MatchKind::Exact)?;
    let found = match (exact.starts.as_slice(), exact.is_utf8) {
        ([], true) if needle.contains('\n') => {
            let loose = Pass::over(source, len, needle, MatchKind::LineEndings)?;
            (loose.starts, MatchKind::LineEndings)
        }
        _ => (exact.starts, MatchKind::Exact),
    };
    let place = match (exact.is_utf8, found.0.as_slice(), found.1) {
        (false, ..) => Place::NotUtf8,
        (true, [], _) => Place::Nowhere,
        (true, [only], matched) => Place::Once(excerpt(source, len, *only, longest_match(needle), matched)?),
        (true, [first, second, ..], _) => Place::Several([first.line, second.line]),
    };
    Ok(Located { sha256: exact.hash.finalize().into(), lines: exact.lines, place, states: exact.states })
}

/// Where an occurrence begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Start {
    at: u64,
    line: u64,
}

/// One pass over a file. The second, for the looser match, needs the starts only.
struct Pass {
    hash: Sha256,
    states: Vec<Sha256>,
    lines: u64,
    is_utf8: bool,
    /// The first two.
    starts: Vec<Start>,
}

impl Pass {
    fn over<R: Read + Seek>(source: &mut R, len: u64, needle: &str, kind: MatchKind) -> io::Result<Self> {
        source.seek(SeekFrom::Start(0))?;
        // An occurrence that ends in the next piece is found there: the end of each piece is looked at again.
        let overlap = longest_match(needle);
        let finder = memmem::Finder::new(needle);
        let mut pass =
            Self { hash: Sha256::new(), states: Vec::new(), lines: 0, is_utf8: true, starts: Vec::new() };
        let mut utf8 = Utf8Check::default();
        let mut piece = Vec::with_capacity(PIECE + overlap);
        let mut base = 0;
        let mut is_open = false;
        while pass.starts.len() < 2 && pass.is_utf8 {
            let known = piece.len();
            let want = (len - base - known as u64).min(PIECE as u64);
            if want == 0 {
                break;
            }
            fill(source, want, &mut piece)?;
            if kind == MatchKind::Exact {
                let new = piece.get(known..).unwrap_or_default();
                pass.states.push(pass.hash.clone());
                pass.hash.update(new);
                utf8.feed(new);
                pass.is_utf8 = !utf8.is_invalid() && memchr(0, new).is_none() && !has_jis_escape(new);
                is_open = new.last() != Some(&b'\n');
            }
            let found = match kind {
                MatchKind::Exact => exact_starts(&piece, &finder),
                MatchKind::LineEndings => loose_starts(&piece, needle),
            };
            found.into_iter().for_each(|at| pass.note(&piece, base, at));
            base += pass.leave(&mut piece, overlap);
        }
        pass.lines += count_breaks(&piece) + u64::from(is_open);
        pass.is_utf8 &= !utf8.is_inside_a_character();
        Ok(pass)
    }

    fn note(&mut self, piece: &[u8], base: u64, at: usize) {
        let found = base + at as u64;
        if self.starts.len() < 2 && self.starts.iter().all(|start| start.at != found) {
            let before = count_breaks(piece.get(..at).unwrap_or_default());
            self.starts.push(Start { at: found, line: self.lines + before + 1 });
        }
    }

    /// Drops from `piece` all but its end, which begins with a whole line ending if with one at all.
    fn leave(&mut self, piece: &mut Vec<u8>, overlap: usize) -> u64 {
        let keep = piece.len().saturating_sub(overlap);
        let splits = keep > 0 && piece.get(keep - 1..keep + 1) == Some(b"\r\n");
        let keep = keep - usize::from(splits);
        self.lines += count_breaks(piece.get(..keep).unwrap_or_default());
        piece.drain(..keep);
        keep as u64
    }
}

/// Appends `want` bytes.
fn fill<R: Read>(source: &mut R, want: u64, piece: &mut Vec<u8>) -> io::Result<()> {
    let read = source.by_ref().take(want).read_to_end(piece)?;
    if (read as u64) < want {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it became shorter while it was read"));
    }
    Ok(())
}

fn count_breaks(bytes: &[u8]) -> u64 {
    memchr_iter(b'\n', bytes).count() as u64
}

/// The first three places of a piece where the needle begins, also those that overlap. One of them may be known from
/// the piece before.
fn exact_starts(piece: &[u8], finder: &memmem::Finder<'_>) -> Vec<usize> {
    let next = |from: usize| Some(from + finder.find(piece.get(from..)?)?);
    std::iter::successors(next(0), |&at| next(at + 1)).take(3).collect()
}

/// The same for what equals the needle but for line endings.
fn loose_starts(piece: &[u8], needle: &str) -> Vec<usize> {
    // A character may be split at either end; no match begins or ends inside one.
    let lead = piece.iter().take(3).take_while(|&&byte| is_continuation(byte)).count();
    let text = valid_beginning(piece.get(lead..).unwrap_or_default());
    let spans = find(text, needle).map_or_else(Vec::new, |found| found.spans);
    spans.iter().take(3).map(|span| lead + span.start).collect()
}

/// The text up to the first byte that is not UTF-8.
fn valid_beginning(bytes: &[u8]) -> &str {
    let valid = std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
    bytes.get(..valid).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default()
}

/// Reads the lines around an occurrence.
fn excerpt<R: Read + Seek>(
    source: &mut R,
    len: u64,
    start: Start,
    longest: usize,
    matched: MatchKind,
) -> io::Result<Excerpt> {
    let from = start.at.saturating_sub(MOST_AROUND as u64);
    let to = start.at.saturating_add((longest + MOST_AROUND) as u64).min(len);
    source.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    source.by_ref().take(to - from).read_to_end(&mut bytes)?;
    let at = usize::try_from(start.at - from).unwrap_or(usize::MAX).min(bytes.len());
    let (before, after) = bytes.split_at(at);
    // Whole lines; where they are too long, whole characters.
    let begin = match memrchr_iter(b'\n', before).nth(AROUND) {
        Some(newline) => newline + 1,
        None if from == 0 => 0,
        None => before.iter().take(3).take_while(|&&byte| is_continuation(byte)).count(),
    };
    let reach = after.get(longest.min(after.len())..).unwrap_or_default();
    let end = memchr_iter(b'\n', reach).nth(AROUND).map_or(bytes.len(), |newline| at + longest + newline + 1);
    let text = valid_beginning(bytes.get(begin..end).unwrap_or_default()).to_owned();
    let breaks = count_breaks(bytes.get(begin..at).unwrap_or_default());
    let range = from + begin as u64..from + (begin + text.len()) as u64;
    Ok(Excerpt { range, lines_before: start.line - 1 - breaks, text, matched })
}

impl Located {
    /// Writes the file with an excerpt exchanged for `new`; answers the hash of what was written. `before_excerpt` copies
    /// that many bytes from the beginning of the file, which need not pass through here.
    ///
    /// # Errors
    /// Whatever reading, writing or the copying fails with.
    pub fn write<R: Read + Seek, W: Write>(
        &self,
        source: &mut R,
        len: u64,
        excerpt: &Excerpt,
        new: &[u8],
        to: &mut W,
        before_excerpt: impl FnOnce(&mut R, &mut W, u64) -> io::Result<()>,
    ) -> io::Result<[u8; 32]> {
        before_excerpt(source, to, excerpt.range.start)?;
        let mut hash = self.hash_up_to(source, excerpt.range.start)?;
        hash.update(new);
        to.write_all(new)?;
        source.seek(SeekFrom::Start(excerpt.range.end))?;
        let mut left = len - excerpt.range.end;
        let mut piece = Vec::with_capacity(PIECE);
        while left > 0 {
            piece.clear();
            fill(source, left.min(PIECE as u64), &mut piece)?;
            hash.update(&piece);
            to.write_all(&piece)?;
            left -= piece.len() as u64;
        }
        Ok(hash.finalize().into())
    }

    /// The state of the hash after the first `at` bytes, from the state at the beginning of the piece.
    fn hash_up_to<R: Read + Seek>(&self, source: &mut R, at: u64) -> io::Result<Sha256> {
        let index = usize::try_from(at / PIECE as u64).unwrap_or(usize::MAX).min(self.states.len() - 1);
        let mut hash = self.states.get(index).cloned().unwrap_or_default();
        let from = (index * PIECE) as u64;
        source.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        source.by_ref().take(at - from).read_to_end(&mut bytes)?;
        hash.update(&bytes);
        Ok(hash)
    }
}

#[cfg(test)]
mod tests;
