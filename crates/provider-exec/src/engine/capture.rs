//! All output of one program, as it is told to the caller.

use super::decode::Decoder;
use super::sheet::{Position, Sheet, View};
use super::tail::Tail;
use super::transcript::{Channel, Transcript};

/// Takes the output of a program as it is read, and shows its beginning and its end. Memory is bounded whatever
/// comes, and what is neither beginning nor end costs no more than a copy.
#[derive(Clone, Debug)]
pub struct Capture {
    transcript: Transcript,
    stdout: Ends,
    stderr: Ends,
    finished: bool,
}

/// What a program has printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// Both streams in the order they were read, rendered.
    pub output: View,
    /// The streams apart, as the program wrote them; only when both have content.
    pub apart: Option<Apart>,
}

/// Standard output and standard error, each as it was written: decoded, but not rendered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Apart {
    /// Standard output.
    pub stdout: View,
    /// Standard error.
    pub stderr: View,
}

impl Capture {
    /// Shows at most `limit` bytes of both streams together, and half as many of each one apart.
    pub fn new(limit: usize) -> Self {
        let ends = || Ends::new(limit / 2);
        Self { transcript: Transcript::new(limit), stdout: ends(), stderr: ends(), finished: false }
    }

    /// Adds what was read.
    pub fn push(&mut self, channel: Channel, bytes: &[u8]) {
        self.transcript.push(channel, bytes);
        match channel {
            Channel::Stdout => self.stdout.push(bytes),
            Channel::Stderr => self.stderr.push(bytes),
        }
    }

    /// No more will come: an incomplete character at the end is shown as U+FFFD from now on.
    pub fn finish(&mut self) {
        self.finished = true;
    }

    /// How many bytes were read from a stream.
    pub fn total(&self, channel: Channel) -> u64 {
        match channel {
            Channel::Stdout => self.stdout.total,
            Channel::Stderr => self.stderr.total,
        }
    }

    /// What has been printed so far.
    pub fn view(&self) -> Captured {
        let both = self.stdout.total > 0 && self.stderr.total > 0;
        let apart = both.then(|| Apart {
            stdout: self.stdout.view(self.finished),
            stderr: self.stderr.view(self.finished),
        });
        Captured { output: self.transcript.view(self.finished), apart }
    }
}

/// The first and the last bytes of one stream, decoded but not rendered.
#[derive(Clone, Debug)]
pub struct Ends {
    limit: usize,
    head: Vec<u8>,
    tail: Tail,
    total: u64,
    lines: u64,
}

impl Ends {
    /// Shows at most `limit` bytes, half of them from the beginning.
    pub fn new(limit: usize) -> Self {
        Self { limit, head: Vec::new(), tail: Tail::new(limit.max(1)), total: 0, lines: 0 }
    }

    /// Adds what was read.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        self.lines += memchr::memchr_iter(b'\n', bytes).count() as u64;
        let room = self.limit - self.head.len();
        let (now, later) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(now);
        self.tail.push(later);
    }

    /// What has come so far. An incomplete character at the end is shown as U+FFFD when `finished`.
    pub fn view(&self, finished: bool) -> View {
        let mut page = Page::new(Sheet::new(self.limit));
        page.push(&self.head);
        let tail = self.tail.to_vec();
        if self.tail.dropped() > 0 {
            let continued = tail.iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count();
            let tail = tail.get(continued..).unwrap_or_default();
            let lines = memchr::memchr_iter(b'\n', tail).count() as u64;
            let start = Position { byte: self.total - tail.len() as u64, line: self.lines - lines };
            page.skip_to(start, self.tail.last_dropped() != Some(b'\n') || continued > 0);
            page.push(tail);
        } else {
            page.push(&tail);
        }
        if finished {
            page.finish();
        }
        page.sheet.view(page.at)
    }
}

/// A sheet that is filled with bytes.
struct Page {
    decoder: Decoder,
    sheet: Sheet,
    at: Position,
}

impl Page {
    fn new(sheet: Sheet) -> Self {
        Self { decoder: Decoder::default(), sheet, at: Position::default() }
    }

    fn push(&mut self, bytes: &[u8]) {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            // A held beginning of a character is part of what comes now.
            let start = Position { byte: self.at.byte - self.decoder.held() as u64, line: self.at.line };
            let mut text = String::new();
            self.decoder.push(line, |part| text.push_str(part));
            self.sheet.add(&text, start);
            self.at.byte += line.len() as u64;
            self.at.line += u64::from(line.ends_with(b"\n"));
        }
    }

    fn skip_to(&mut self, start: Position, within_line: bool) {
        self.decoder = Decoder::default();
        self.sheet.skip(self.at, within_line);
        self.at = start;
    }

    fn finish(&mut self) {
        let start = Position { byte: self.at.byte - self.decoder.held() as u64, line: self.at.line };
        let Self { decoder, sheet, .. } = self;
        decoder.finish(|text| sheet.add(text, start));
    }
}

#[cfg(test)]
mod tests {
    use super::{Capture, Channel};

    fn captured(limit: usize, pieces: &[(Channel, &[u8])]) -> super::Captured {
        let mut capture = Capture::new(limit);
        pieces.iter().for_each(|(channel, bytes)| capture.push(*channel, bytes));
        capture.finish();
        capture.view()
    }

    #[test]
    fn both_streams_are_shown_in_order_and_apart() {
        let shown = captured(
            1024,
            &[(Channel::Stdout, b"a\n"), (Channel::Stderr, b"b\n"), (Channel::Stdout, b"c\n")],
        );
        assert_eq!(shown.output.head, "a\nb\nc\n");
        let apart = shown.apart.unwrap();
        assert_eq!((apart.stdout.head.as_str(), apart.stderr.head.as_str()), ("a\nc\n", "b\n"));
    }

    #[test]
    fn one_stream_alone_is_not_sent_twice() {
        assert_eq!(captured(1024, &[(Channel::Stderr, b"only\n")]).apart, None);
    }

    #[test]
    fn a_stream_apart_keeps_its_escape_sequences() {
        let shown = captured(1024, &[(Channel::Stdout, b"\x1b[31mred\x1b[0m\r\n"), (Channel::Stderr, b"e")]);
        assert_eq!(shown.output.head, "red\ne");
        assert_eq!(shown.apart.unwrap().stdout.head, "\u{1b}[31mred\u{1b}[0m\r\n");
    }

    #[test]
    fn a_stream_apart_is_cut_between_lines_and_counted() {
        for piece in [3, 1000, 1 << 20] {
            let input: String = (0..20_000).map(|number| format!("line {number}\n")).collect();
            let mut capture = Capture::new(4096);
            capture.push(Channel::Stderr, b"e");
            input.as_bytes().chunks(piece).for_each(|piece| capture.push(Channel::Stdout, piece));
            let stdout = capture.view().apart.unwrap().stdout;
            let omitted = stdout.omitted.unwrap();
            let (from, bytes) = (omitted.from.byte as usize, omitted.bytes as usize);
            assert_eq!(
                (stdout.head.as_str(), stdout.tail.as_str()),
                (&input[..from], &input[from + bytes..])
            );
            assert!(stdout.head.len() + stdout.tail.len() <= 2048 && stdout.tail.len() > 1000);
            assert_eq!(omitted.lines as usize, input[from..from + bytes].matches('\n').count());
        }
    }

    #[test]
    fn what_was_left_out_is_said_where_it_is_missing() {
        let shown = captured(64, &[(Channel::Stdout, "0123456789\n".repeat(100).as_bytes())]);
        let text = shown.output.text("all of it is in /log");
        let expected = "0123456789\n0123456789\n[... 1056 bytes (96 line ends) left out here; all of it is in /log ...]\n\
                        0123456789\n0123456789\n";
        let expected = expected.replace("[... 1056", &format!("[... {}", shown.output.omitted_bytes()));
        let lines = shown.output.omitted.unwrap().lines;
        let expected = expected.replace("(96 ", &format!("({lines} "));
        assert!(text.starts_with("0123456789\n0123456789\n[... "), "{text}");
        assert!(text.ends_with(" ...]\n0123456789\n0123456789\n0123456789\n"), "{text}");
        assert_eq!(lines * 11, shown.output.omitted_bytes(), "{expected}");
    }
}
