//! The part of a line that is worth showing.

use std::ops::Range;

use encoding_rs::Encoding;

use crate::engine::encoding;

/// Bytes of text in one excerpt, marks of omission included.
pub const LONGEST: usize = 500;

/// Stands where something was left out.
pub const OMISSION: char = '…';

/// A hit as it is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Excerpt {
    /// The line, or as much around the hit as fits; `…` where something was left out. Without its line end.
    pub text: String,
    /// Where the hit begins in the line, in bytes of UTF-8 from 1.
    pub column: u64,
    /// Bytes of the hit.
    pub hit_length: u64,
    /// Where the hit begins in the text, in bytes from 0.
    pub hit_start: usize,
    /// Bytes of the line, if it is not shown whole.
    pub line_length: Option<u64>,
    /// Whether the line is not UTF-8, so that the text is a reading of it.
    pub lossy: bool,
}

/// A line without the line end.
pub fn trimmed(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// The part of `line` around `hit`. Bytes that are not UTF-8 are read in `guess`.
pub fn around(line: &[u8], hit: Range<usize>, guess: Option<&'static Encoding>) -> Excerpt {
    let hit = hit.start.min(line.len())..hit.end.min(line.len());
    if line.len() <= LONGEST && std::str::from_utf8(line).is_ok() {
        return Excerpt {
            text: String::from_utf8_lossy(line).into_owned(),
            column: hit.start as u64 + 1,
            hit_length: hit.len() as u64,
            hit_start: hit.start,
            line_length: None,
            lossy: false,
        };
    }
    let window = window(line, &hit);
    let shown = &line[window.clone()];
    // A window of valid text in a line that is not all valid is read as what it is.
    let lossy = std::str::from_utf8(shown).is_err();
    let decoded = encoding::decode(shown, guess);
    let before = encoding::decode(&line[window.start..hit.start.max(window.start)], guess).len();
    let (text, hit_start) = fit(&decoded, window.start > 0, window.end < line.len(), before);
    let cut = window.start > 0 || text.ends_with(OMISSION) || window.end < line.len();
    let prefix = if lossy { encoding::decode(&line[..hit.start], guess).len() } else { hit.start };
    Excerpt {
        text,
        column: prefix as u64 + 1,
        hit_length: encoding::decode(&line[hit.clone()], guess).len() as u64,
        hit_start,
        line_length: cut.then_some(line.len() as u64),
        lossy,
    }
}

/// The beginning of a line that is shown for what surrounds it.
pub fn beginning(line: &[u8], longest: usize, guess: Option<&'static Encoding>) -> String {
    let line = trimmed(line);
    let end =
        if line.len() <= longest { line.len() } else { boundary_before(line, longest - OMISSION.len_utf8()) };
    let mut text = encoding::decode(&line[..end], guess).into_owned();
    if text.len() > longest {
        cut_to(&mut text, longest - OMISSION.len_utf8());
        text.push(OMISSION);
    } else if end < line.len() {
        text.push(OMISSION);
    }
    text
}

/// What part of a line is shown: the hit in the middle, as much as fits.
fn window(line: &[u8], hit: &Range<usize>) -> Range<usize> {
    let room = LONGEST - 2 * OMISSION.len_utf8();
    if line.len() <= LONGEST {
        return 0..line.len();
    }
    let spare = room.saturating_sub(hit.len());
    let mut start = hit.start.saturating_sub(spare / 2);
    let end = (start + room).min(line.len());
    start = start.min(end.saturating_sub(room));
    boundary_after(line, start)..boundary_before(line, end).max(hit.start)
}

/// The first beginning of a character at or after `at`.
fn boundary_after(bytes: &[u8], at: usize) -> usize {
    (at..bytes.len().min(at + 4)).find(|at| !is_continuation(bytes[*at])).unwrap_or(at)
}

/// The last end of a character at or before `at`.
fn boundary_before(bytes: &[u8], at: usize) -> usize {
    if at >= bytes.len() {
        return bytes.len();
    }
    (at.saturating_sub(3)..=at).rev().find(|at| !is_continuation(bytes[*at])).unwrap_or(at)
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// Marks what was left out, and leaves out more where decoding made the text longer than it may be. What begins at
/// `keep_from` stays; where that is then comes with the text.
fn fit(text: &str, left_out_before: bool, left_out_after: bool, keep_from: usize) -> (String, usize) {
    let room = LONGEST - 2 * OMISSION.len_utf8();
    let boundary =
        |at: usize| (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let from = if text.len() <= room { 0 } else { boundary(keep_from.saturating_sub(room / 2)) };
    let to = boundary(from + room);
    let mut fitted = String::with_capacity(to - from + 2 * OMISSION.len_utf8());
    if left_out_before || from > 0 {
        fitted.push(OMISSION);
    }
    let kept_at = fitted.len() + keep_from.saturating_sub(from);
    fitted.push_str(&text[from..to]);
    if left_out_after || to < text.len() {
        fitted.push(OMISSION);
    }
    (fitted, kept_at)
}

fn cut_to(text: &mut String, longest: usize) {
    let end = (0..=longest.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text.truncate(end);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_line_is_shown_whole() {
        let line = b"let x = needle;";
        let excerpt = around(line, 8..14, None);
        assert_eq!(excerpt.text, "let x = needle;");
        assert_eq!((excerpt.column, excerpt.hit_length, excerpt.line_length), (9, 6, None));
    }

    /// The hit is in the excerpt, which fits and says how long the line is.
    #[track_caller]
    fn check_long(line: &[u8], at: usize) {
        let hit = at..at + 6;
        let excerpt = around(line, hit, Some(encoding::guess(line)));
        assert_eq!(excerpt.text.get(excerpt.hit_start..excerpt.hit_start + 6), Some("needle"), "{excerpt:?}");
        assert!(excerpt.text.len() <= LONGEST, "{} bytes", excerpt.text.len());
        assert!(excerpt.text.len() > LONGEST / 2, "{} bytes", excerpt.text.len());
        assert_eq!(excerpt.line_length, Some(line.len() as u64));
        assert_eq!(excerpt.text.starts_with(OMISSION), at >= LONGEST / 2);
    }

    #[test]
    fn an_excerpt_is_around_the_hit() {
        for (length, at) in [(5000, 4199), (5000, 0), (5000, 4994), (501, 250), (5_000_000, 2_500_000)] {
            let mut line = vec![b'x'; length];
            line[at..at + 6].copy_from_slice(b"needle");
            check_long(&line, at);
        }
        let text = format!("{}needle{}", "é漢".repeat(400), "😀".repeat(400));
        check_long(text.as_bytes(), 2000);
        let mut latin = vec![0xe9; 3000];
        latin[1500..1506].copy_from_slice(b"needle");
        check_long(&latin, 1500);
    }

    #[test]
    fn what_is_not_utf_8_is_read_and_said() {
        let line = b"d\xe9j\xe0 vu: needle, caf\xe9";
        let excerpt = around(line, 9..15, Some(encoding::guess(line)));
        assert_eq!(excerpt.text, "déjà vu: needle, café");
        assert!(excerpt.lossy);
        assert_eq!(&excerpt.text[excerpt.column as usize - 1..][..excerpt.hit_length as usize], "needle");
    }

    #[test]
    fn a_hit_longer_than_an_excerpt_is_shown_from_its_beginning() {
        let line = vec![b'a'; 3000];
        let excerpt = around(&line, 100..2900, None);
        assert!(excerpt.text.len() <= LONGEST);
        assert_eq!((excerpt.column, excerpt.hit_length), (101, 2800));
    }

    #[test]
    fn surroundings_are_cut_at_the_end() {
        assert_eq!(beginning(b"short\r\n", 20, None), "short");
        assert_eq!(beginning(&[b'x'; 30], 20, None), format!("{}…", "x".repeat(17)));
        assert_eq!(beginning("ééééééééééééé".as_bytes(), 11, None), "éééé…");
    }
}
