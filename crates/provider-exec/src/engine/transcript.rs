//! The output of a program as a person would have seen it, in bounded room.

use std::collections::VecDeque;

use super::decode::Decoder;
use super::escapes::{Escapes, Token};
use super::rows::Rows;
use super::sheet::{Position, Sheet, View};
use super::tail::Tail;

/// Which of a program's two streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Output up to this many bytes is rendered as it comes. Of more, only the end is rendered, when it is asked for.
const RENDERED: u64 = 1 << 20;
/// How much of the end that is.
const END: usize = 256 * 1024;

/// One stream's way from bytes to what it asks of the terminal.
#[derive(Clone, Debug, Default)]
struct Reader {
    decoder: Decoder,
    escapes: Escapes,
}

#[derive(Clone, Debug)]
struct Page {
    stdout: Reader,
    stderr: Reader,
    rows: Rows,
    sheet: Sheet,
    at: Position,
    /// Behind the last line end.
    line: Position,
}

/// Both streams in the order they were read, rendered: escape sequences are gone, overwritten text shows what it
/// was overwritten with, and of much text only the beginning and the end are kept.
///
/// Positions count the bytes of both streams in the order they were read, before rendering.
#[derive(Clone, Debug)]
pub struct Transcript {
    page: Page,
    /// What came after the part that is rendered as it comes.
    rest: Option<Rest>,
}

#[derive(Clone, Debug)]
struct Rest {
    bytes: Tail,
    /// The lengths of the pieces that `bytes` came in.
    pieces: VecDeque<(Channel, usize)>,
    /// The sum of those lengths.
    held: usize,
    start: Position,
    lines: u64,
}

impl Transcript {
    /// A transcript that shows at most `limit` bytes, half of them from the beginning.
    pub fn new(limit: usize) -> Self {
        Self { page: Page::new(Position::default(), Sheet::new(limit)), rest: None }
    }

    /// Adds what was read from a stream.
    pub fn push(&mut self, channel: Channel, bytes: &[u8]) {
        let room = usize::try_from(RENDERED.saturating_sub(self.page.at.byte)).unwrap_or(usize::MAX);
        let (now, later) = bytes.split_at(room.min(bytes.len()));
        self.page.push(channel, now);
        if !later.is_empty() {
            let start = self.page.at;
            self.rest.get_or_insert_with(|| Rest::new(start)).push(channel, later);
        }
    }

    /// Everything so far. Characters that are not complete are left out unless `finished`.
    pub fn view(&self, finished: bool) -> View {
        let mut page = self.page.clone();
        if let Some(rest) = &self.rest {
            rest.append_to(&mut page);
        }
        if finished {
            page.finish();
        }
        page.rows.flush_into(&mut page.sheet);
        page.sheet.view(page.at)
    }
}

impl Page {
    fn new(at: Position, sheet: Sheet) -> Self {
        Self {
            stdout: Reader::default(),
            stderr: Reader::default(),
            rows: Rows::new(at),
            sheet,
            at,
            line: at,
        }
    }

    fn push(&mut self, channel: Channel, bytes: &[u8]) {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.at.byte += line.len() as u64;
            self.at.line += u64::from(line.ends_with(b"\n"));
            let Self { stdout, stderr, rows, sheet, at, line: line_start } = self;
            let Reader { decoder, escapes } = if channel == Channel::Stdout { stdout } else { stderr };
            decoder.push(line, |text| {
                escapes.push(text, |token| {
                    // Where reads were cut within a line must not matter, so only line ends move the place on.
                    let place = if token == Token::Control('\n') { *at } else { *line_start };
                    rows.token(token, place, sheet);
                });
            });
            if line.ends_with(b"\n") {
                self.line = self.at;
            }
        }
    }

    fn finish(&mut self) {
        let Self { stdout, stderr, rows, sheet, line, .. } = self;
        for Reader { decoder, escapes } in [stdout, stderr] {
            decoder.finish(|text| escapes.push(text, |token| rows.token(token, *line, sheet)));
        }
    }
}

impl Rest {
    fn new(start: Position) -> Self {
        Self { bytes: Tail::new(END), pieces: VecDeque::new(), held: 0, start, lines: 0 }
    }

    fn push(&mut self, channel: Channel, bytes: &[u8]) {
        self.lines += line_ends(bytes);
        self.bytes.push(bytes);
        match self.pieces.back_mut() {
            Some((last, length)) if *last == channel => *length += bytes.len(),
            _ => self.pieces.push_back((channel, bytes.len())),
        }
        self.held += bytes.len();
        while let Some((_, length)) = self.pieces.front_mut() {
            let gone = (self.held - self.bytes.len()).min(*length);
            self.held -= gone;
            *length -= gone;
            if *length > 0 {
                break;
            }
            self.pieces.pop_front();
        }
    }

    /// Renders what is held at the end of the page.
    fn append_to(&self, page: &mut Page) {
        let bytes = self.bytes.to_vec();
        if self.bytes.dropped() == 0 {
            self.render(page, &bytes, 0);
            return;
        }
        page.finish();
        page.rows.flush_into(&mut page.sheet);
        // Nothing is known of the state within a line whose beginning is gone, so start at the next one, if any.
        let next_line = memchr::memchr(b'\n', &bytes).map(|end| end + 1).filter(|start| *start < bytes.len());
        let skipped = next_line
            .unwrap_or_else(|| bytes.iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count());
        let shown = bytes.get(skipped..).unwrap_or_default();
        let start = Position {
            byte: self.start.byte + self.bytes.dropped() + skipped as u64,
            line: self.start.line + self.lines - line_ends(shown),
        };
        let mut sheet = page.sheet.clone();
        sheet.skip(page.at, next_line.is_none());
        *page = Page::new(start, sheet);
        self.render(page, &bytes, skipped);
    }

    /// Pushes the bytes from `skipped` on, each to the stream it came from.
    fn render(&self, page: &mut Page, bytes: &[u8], skipped: usize) {
        let mut at = 0;
        for (channel, length) in &self.pieces {
            let end = at + length;
            page.push(*channel, bytes.get(at.max(skipped)..end).unwrap_or_default());
            at = end;
        }
    }
}

fn line_ends(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Channel, END, RENDERED, Transcript};
    use crate::engine::sheet::View;

    fn view(limit: usize, pieces: &[&[u8]]) -> View {
        let mut transcript = Transcript::new(limit);
        pieces.iter().for_each(|piece| transcript.push(Channel::Stdout, piece));
        transcript.view(true)
    }

    /// What is shown of `input`, also when it comes byte by byte.
    #[track_caller]
    fn check(input: &str, expected: &str) {
        let whole = view(1 << 20, &[input.as_bytes()]);
        assert_eq!(whole, View { head: expected.to_owned(), ..View::default() });
        let bytes: Vec<&[u8]> = input.as_bytes().chunks(1).collect();
        assert_eq!(view(1 << 20, &bytes), whole, "byte by byte");
    }

    #[test]
    fn plain_text_is_kept_as_it_came() {
        check("a\tb  \n\n  ü — 漢字\nno end", "a\tb  \n\n  ü — 漢字\nno end");
        check("one\r\ntwo\r\n", "one\ntwo\n");
        check("e\u{301}\n", "e\u{301}\n");
    }

    #[test]
    fn colours_titles_and_links_leave_only_their_text() {
        check("\u{1b}[1;32mok\u{1b}[0m \u{1b}]8;;http://x\u{1b}\\here\u{1b}]8;;\u{1b}\\\u{7}\n", "ok here\n");
    }

    #[test]
    fn a_progress_bar_collapses_to_its_last_state() {
        check("10 %\r50 %\r100 %\ndone\n", "100 %\ndone\n");
        check("downloading a long name\r\u{1b}[Kdone\n", "done\n");
        check("long text\rab\n", "abng text\n");
        check("working |\u{8}/\u{8}-\u{8}\\\u{8} \u{8}\n", "working\n");
    }

    #[test]
    fn several_bars_are_overwritten_in_place() {
        let frame = |a: u32, b: u32| format!("a {a} %\u{1b}[K\nb {b} %\u{1b}[K\n");
        let input =
            format!("start\n{}\u{1b}[2A{}\u{1b}[2A{}end\n", frame(1, 2), frame(50, 60), frame(100, 100));
        check(&input, "start\na 100 %\nb 100 %\nend\n");
    }

    #[test]
    fn lines_erased_above_are_gone() {
        check("keep\nspinner\n\u{1b}[1A\u{1b}[2K\u{1b}[Gdone\n", "keep\ndone\n");
        check("keep\na\nb\n\u{1b}[2A\u{1b}[Jdone\n", "keep\ndone\n");
    }

    #[test]
    fn a_cleared_screen_loses_nothing_that_was_printed() {
        check("before\n\u{1b}[H\u{1b}[2Jafter\n", "before\nafter\n");
        check("before\n\u{1b}[2J\u{1b}[Hone\u{1b}[3;3Hthree\u{1b}[1;1HONE\n", "before\nONE\n\n  three");
    }

    #[test]
    fn absolute_addresses_do_not_overwrite_what_came_before_them() {
        check("log 1\nlog 2\n\u{1b}[1;1Hstatus\n", "log 1\nlog 2\nstatus\n");
    }

    #[test]
    fn wide_characters_take_two_columns() {
        check("漢字\rab\n", "ab字\n");
        check("漢字\rabc\n", "abc\n");
        check("漢字\u{1b}[3D!\n", " !字\n");
    }

    #[test]
    fn a_tab_is_kept_and_counts_its_columns() {
        check("a\tb\u{1b}[9GX\n", "a\tX\n");
        check("a\tb\u{1b}[3GX\n", "a X     b\n");
    }

    #[test]
    fn separators_of_names_are_visible_and_other_control_characters_are_not() {
        check("a\0b\0\u{1}\u{7f}", "a\u{2400}b\u{2400}");
    }

    #[test]
    fn line_drawing_is_drawn() {
        check("\u{1b}(0lqk\u{1b}(B x\n", "┌─┐ x\n");
    }

    #[test]
    fn hostile_moves_take_no_memory() {
        check("\u{1b}[65535C\u{1b}[65535B\u{1b}[65535Ax\n", &format!("{}x\n", " ".repeat(1024)));
        let flood = "\u{1b}[65535@\u{1b}[65535C\u{1b}[65535B".repeat(10_000);
        let shown = view(32 * 1024, &[flood.as_bytes()]);
        assert!(shown.head.len() + shown.tail.len() <= 32 * 1024);
    }

    #[test]
    fn each_stream_has_a_decoder_and_a_parser_of_its_own() {
        let mut transcript = Transcript::new(1024);
        for (out, err) in "é—\u{1b}[31mo\u{1b}[0m".bytes().zip("ü漢\u{1b}[32me\u{1b}[0m".bytes()) {
            transcript.push(Channel::Stdout, &[out]);
            transcript.push(Channel::Stderr, &[err]);
        }
        assert_eq!(transcript.view(true).head, "éü—漢oe");
    }

    #[test]
    fn an_unfinished_character_is_shown_only_at_the_end() {
        let mut transcript = Transcript::new(1024);
        transcript.push(Channel::Stdout, b"a\xe2\x80");
        assert_eq!(transcript.view(false).head, "a");
        assert_eq!(transcript.view(true).head, "a\u{FFFD}");
    }

    /// What a hostile or careless program may print.
    fn printed() -> impl Strategy<Value = Vec<u8>> {
        let words: &[&[u8]] = &[
            b"a",
            b"word ",
            b"\n",
            b"\n",
            b"\r",
            b"\t",
            b"\x08",
            b"\0",
            b"\xe6\xbc\xa2",
            b"\xff",
            b"e\xcc\x81",
            b"\x1b[A",
            b"\x1b[3A",
            b"\x1b[2B",
            b"\x1b[5C",
            b"\x1b[4D",
            b"\x1b[K",
            b"\x1b[1K",
            b"\x1b[2K",
            b"\x1b[J",
            b"\x1b[2J",
            b"\x1b[2;3H",
            b"\x1b7",
            b"\x1b8",
            b"\x1b[3P",
            b"\x1b[3@",
            b"\x1b[3X",
            b"\x1b[31m",
            b"\x1b]0;t\x07",
            b"\x1b",
            b"\x1b[",
            b"\x1b[7G",
            b"\x1bM",
            b"\x1bc",
            b"\x1b[?1049h",
            b"\x1b(0",
            b"\x1b(B",
            b"\x1bE",
            b"lllllllllllllllllllllllllllllllllllllllllllllllllllllllllllll",
        ];
        prop::collection::vec(prop::sample::select(words.to_vec()), 0..400).prop_map(|words| words.concat())
    }

    proptest! {
        #[test]
        fn how_the_output_was_cut_does_not_matter(input in printed(), piece in 1..50_usize, limit in 16..400_usize) {
            let pieces: Vec<&[u8]> = input.chunks(piece).collect();
            let shown = view(limit, &pieces);
            prop_assert_eq!(&shown, &view(limit, &[&input]));
            prop_assert!(shown.head.len() + shown.tail.len() <= limit);
            let omitted = shown.omitted.unwrap_or_default();
            prop_assert!(omitted.from.byte + omitted.bytes <= input.len() as u64);
        }

        #[test]
        fn plain_text_comes_through_or_is_counted(lines in prop::collection::vec("[a-zé漢 ]{0,40}", 0..60), limit in 1..600_usize) {
            let input = lines.join("\n");
            let shown = view(limit, &[input.as_bytes()]);
            let omitted = shown.omitted.unwrap_or_default();
            let (from, bytes) = (usize::try_from(omitted.from.byte).unwrap(), usize::try_from(omitted.bytes).unwrap());
            let from = if shown.omitted.is_some() { from } else { input.len() };
            prop_assert_eq!(&shown.head, &input[..from]);
            prop_assert_eq!(&shown.tail, &input[from + bytes..]);
        }
    }

    /// Numbered lines, `count` of them.
    fn numbered(count: usize) -> String {
        (1..=count).map(|number| format!("line {number}\n")).collect()
    }

    /// What was left out is exactly what is missing, and both ends are whole lines.
    #[track_caller]
    fn check_ends(input: &str, limit: usize, pieces: usize) {
        let pieces: Vec<&[u8]> = input.as_bytes().chunks(pieces).collect();
        let shown = view(limit, &pieces);
        let omitted = shown.omitted.unwrap();
        let (from, bytes) = (omitted.from.byte as usize, omitted.bytes as usize);
        assert!(shown.head.len() + shown.tail.len() <= limit);
        assert!(shown.head.len() >= limit / 4 && shown.tail.len() >= limit / 4);
        assert_eq!(shown.head, input[..from]);
        assert_eq!(shown.tail, input[from + bytes..]);
        let count = |text: &str| text.matches('\n').count() as u64;
        assert_eq!(omitted.lines, count(input) - count(&shown.head) - count(&shown.tail));
        assert_eq!(omitted.from.line, count(&shown.head));
    }

    #[test]
    fn head_and_tail_are_whole_lines_and_the_rest_is_counted() {
        for pieces in [7, 4096, usize::MAX] {
            check_ends(&numbered(3_000), 1024, pieces);
            check_ends(&numbered(100_000), 32 * 1024, pieces);
        }
    }

    #[test]
    fn one_endless_line_is_cut_between_characters_and_counted() {
        check_ends(&"x".repeat(100_000), 1024, 1000);
        check_ends(&"漢".repeat(100_000), 1024, 1000);
        check_ends(&format!("short\n{}\nend\n", "漢x".repeat(100_000)), 1024, 777);
    }

    #[test]
    fn long_lines_do_not_hide_the_last_ones() {
        let input = format!("{}error: boom\n", format!("{}\n", "x".repeat(5_000)).repeat(300));
        let shown = view(32 * 1024, &[input.as_bytes()]);
        assert!(shown.tail.ends_with("x\nerror: boom\n"));
    }

    #[test]
    fn nothing_is_left_out_up_to_the_limit() {
        let input = numbered(100);
        let shown = view(input.len(), &[input.as_bytes()]);
        assert_eq!(shown, View { head: input, ..View::default() });
    }

    #[test]
    fn counts_are_exact_beyond_what_is_rendered_as_it_comes() {
        let lines = usize::try_from(RENDERED).unwrap() / 8;
        check_ends(&numbered(lines), 32 * 1024, 64 * 1024);
        // The end still follows on the part that was rendered.
        let input = numbered(lines);
        let input = &input[..usize::try_from(RENDERED).unwrap() + END / 2];
        check_ends(input, 32 * 1024, 64 * 1024);
        check_ends(&"x".repeat(usize::try_from(RENDERED).unwrap() + 2 * END), 32 * 1024, 64 * 1024);
    }

    #[test]
    fn an_end_that_is_rendered_late_is_rendered_too() {
        let mut input = numbered(usize::try_from(RENDERED).unwrap() / 8);
        input.push_str("\u{1b}[31m10 %\r100 %\u{1b}[0m\nlast\n");
        assert!(view(32 * 1024, &[input.as_bytes()]).tail.ends_with("\n100 %\nlast\n"));
    }
}
