//! Where one message ends and the next begins.
//!
//! Messages are lines of JSON, or JSON behind `Content-Length` headers. The first byte that is no white space tells which:
//! a header begins with a letter, JSON never does with one that a header could begin with.

use super::LONGEST_MESSAGE;

/// How messages are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// One message a line.
    Lines,
    /// Headers with a `Content-Length`, an empty line, and so many bytes.
    Headers,
}

/// The longest line of a header, and the most lines that one message can have in front of it.
const LONGEST_HEADER: usize = 1024;
const MOST_HEADERS: usize = 32;

impl Framing {
    /// A message as it is sent; `json` has no line breaks outside of texts, which serialized JSON never has.
    pub fn encode(self, json: &str) -> Vec<u8> {
        match self {
            Self::Lines => format!("{json}\n").into_bytes(),
            Self::Headers => format!("Content-Length: {}\r\n\r\n{json}", json.len()).into_bytes(),
        }
    }
}

/// What the bytes hold next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A whole message, not yet looked into.
    Message(Vec<u8>),
    /// A message that was too long, and has been skipped.
    TooLong,
    /// Headers that give no length. What follows is taken for headers again.
    BadHeader(String),
}

/// Takes bytes as they come and gives out messages. What it holds is bounded by the longest message.
#[derive(Debug, Default)]
pub struct Decoder {
    framing: Option<Framing>,
    buffer: Vec<u8>,
    /// Bytes at the front of the buffer that have been looked at in vain.
    seen: usize,
    state: State,
}

#[derive(Debug, Default)]
enum State {
    /// At the beginning of a message.
    #[default]
    Start,
    /// In a line that is too long.
    SkipLine,
    /// In front of a body of that many bytes.
    Body(usize),
    /// In a body that is too long, with that many bytes to go.
    SkipBody(usize),
}

impl Decoder {
    /// The framing, once a first message has shown it.
    pub fn framing(&self) -> Option<Framing> {
        self.framing
    }

    /// Takes bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next message that has come whole; `None` until there are more bytes.
    pub fn next_frame(&mut self) -> Option<Frame> {
        match self.state {
            State::Start => self.start(),
            State::SkipLine => self.skip_line(),
            State::Body(length) => self.body(length),
            State::SkipBody(length) => self.skip_body(length),
        }
    }

    /// What is left at the end of the input: a last line without its end is a message too.
    pub fn finish(mut self) -> Option<Frame> {
        let whole = self.framing == Some(Framing::Lines) && matches!(self.state, State::Start);
        let line = trim(&std::mem::take(&mut self.buffer)).to_vec();
        (whole && !line.is_empty()).then_some(Frame::Message(line))
    }

    fn start(&mut self) -> Option<Frame> {
        let blank = self.buffer.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        if blank > 0 {
            self.drop_front(blank);
        }
        let first = *self.buffer.first()?;
        match *self.framing.get_or_insert(detect(first)) {
            Framing::Lines => self.line(),
            Framing::Headers => self.headers(),
        }
    }

    fn line(&mut self) -> Option<Frame> {
        match self.buffer[self.seen..].iter().position(|byte| *byte == b'\n') {
            Some(at) => {
                let end = self.seen + at;
                let line = trim(&self.buffer[..end]).to_vec();
                self.drop_front(end + 1);
                Some(if line.len() > LONGEST_MESSAGE { Frame::TooLong } else { Frame::Message(line) })
            }
            None if self.buffer.len() > LONGEST_MESSAGE => {
                self.state = State::SkipLine;
                self.skip_line()
            }
            None => {
                self.seen = self.buffer.len();
                None
            }
        }
    }

    fn skip_line(&mut self) -> Option<Frame> {
        match self.buffer.iter().position(|byte| *byte == b'\n') {
            Some(end) => {
                self.drop_front(end + 1);
                self.state = State::Start;
                Some(Frame::TooLong)
            }
            None => {
                self.drop_front(self.buffer.len());
                None
            }
        }
    }

    fn headers(&mut self) -> Option<Frame> {
        let mut length = None;
        let mut rest = 0;
        for count in 0.. {
            let Some(end) = self.buffer[rest..].iter().position(|byte| *byte == b'\n') else {
                if count > MOST_HEADERS || self.buffer.len() - rest > LONGEST_HEADER {
                    return Some(self.bad_header(self.buffer.len(), "headers without an end"));
                }
                return None;
            };
            let line = trim(&self.buffer[rest..rest + end]).to_vec();
            rest += end + 1;
            if line.is_empty() {
                break;
            }
            match header(&line) {
                Ok(found) => length = found.or(length),
                Err(why) => return Some(self.bad_header(rest, &why)),
            }
        }
        let Some(length) = length else { return Some(self.bad_header(rest, "no Content-Length")) };
        self.drop_front(rest);
        self.state = if length > LONGEST_MESSAGE { State::SkipBody(length) } else { State::Body(length) };
        self.next_frame()
    }

    fn bad_header(&mut self, used: usize, why: &str) -> Frame {
        self.drop_front(used);
        Frame::BadHeader(why.to_owned())
    }

    fn body(&mut self, length: usize) -> Option<Frame> {
        if self.buffer.len() < length {
            return None;
        }
        let body = self.buffer[..length].to_vec();
        self.drop_front(length);
        self.state = State::Start;
        Some(Frame::Message(body))
    }

    fn skip_body(&mut self, length: usize) -> Option<Frame> {
        let here = length.min(self.buffer.len());
        self.drop_front(here);
        if here < length {
            self.state = State::SkipBody(length - here);
            return None;
        }
        self.state = State::Start;
        Some(Frame::TooLong)
    }

    fn drop_front(&mut self, count: usize) {
        self.buffer.drain(..count);
        self.seen = 0;
    }
}

fn detect(first: u8) -> Framing {
    // `true`, `false` and `null` are no messages, so a letter that begins one of them is not missed.
    if first.is_ascii_alphabetic() { Framing::Headers } else { Framing::Lines }
}

/// The length that a header gives, if it is the one that does.
fn header(line: &[u8]) -> Result<Option<usize>, String> {
    let text = String::from_utf8_lossy(line);
    let Some((name, value)) = text.split_once(':') else {
        return Err(format!("no header: {}", text.chars().take(60).collect::<String>()));
    };
    if !name.trim().eq_ignore_ascii_case("content-length") {
        return Ok(None);
    }
    value.trim().parse().map(Some).map_err(|_| format!("Content-Length is no count: {}", value.trim()))
}

fn trim(line: &[u8]) -> &[u8] {
    line.trim_ascii()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The frames of these bytes, fed in pieces of that size.
    fn frames(bytes: &[u8], piece: usize) -> Vec<Frame> {
        let mut decoder = Decoder::default();
        let mut out = Vec::new();
        for piece in bytes.chunks(piece.max(1)) {
            decoder.feed(piece);
            while let Some(frame) = decoder.next_frame() {
                out.push(frame);
            }
        }
        out.extend(decoder.finish());
        out
    }

    #[track_caller]
    fn check(bytes: &[u8], expected: &[&str]) {
        for piece in 1..=bytes.len() {
            let got: Vec<String> = frames(bytes, piece)
                .into_iter()
                .map(|frame| match frame {
                    Frame::Message(bytes) => String::from_utf8(bytes).unwrap(),
                    Frame::TooLong => "too long".to_owned(),
                    Frame::BadHeader(why) => format!("bad header: {why}"),
                })
                .collect();
            assert_eq!(got, expected, "in pieces of {piece}");
        }
    }

    #[test]
    fn lines() {
        check(b"{\"a\":1}\n{\"b\":2}\r\n\n  {}\n", &["{\"a\":1}", "{\"b\":2}", "{}"]);
        check(b"[]\nnonsense\n", &["[]", "nonsense"]);
        check(b"{}\n{\"last\":1}", &["{}", "{\"last\":1}"]);
    }

    #[test]
    fn headers() {
        check(
            b"Content-Length: 2\r\n\r\n{}Content-Length: 9\r\n\r\n{\"a\":\"\n\"}",
            &["{}", "{\"a\":\"\n\"}"],
        );
        check(b"content-type: x/y\ncontent-length:2\n\n{}\r\n", &["{}"]);
        check("Content-Length: 4\r\n\r\n\"\u{e9}\"".as_bytes(), &["\"\u{e9}\""]);
        check(b"Content-Length: 9\r\n\r\n{}", &[]);
    }

    #[test]
    fn bad_headers_are_told_and_passed_over() {
        check(
            b"Content-Type: x\r\n\r\nContent-Length: 2\r\n\r\n{}",
            &["bad header: no Content-Length", "{}"],
        );
        check(
            b"Content-Length: two\r\nContent-Length: 2\r\n\r\n{}",
            &["bad header: Content-Length is no count: two", "{}"],
        );
        check(
            b"Content-Length: 2\r\n\r\n{}{}\nContent-Length: 2\r\n\r\n{}",
            &["{}", "bad header: no header: {}", "{}"],
        );
        let endless = [b"C".repeat(LONGEST_HEADER + 2), b"\n".to_vec()].concat();
        assert!(frames(&endless, 64).iter().any(|frame| matches!(frame, Frame::BadHeader(_))));
    }

    #[test]
    fn what_is_too_long_is_skipped_without_being_held() {
        let long = [b"{\"a\":\"".to_vec(), b"x".repeat(LONGEST_MESSAGE), b"\"}\n{}\n".to_vec()].concat();
        let mut decoder = Decoder::default();
        let mut got = Vec::new();
        for piece in long.chunks(1 << 20) {
            decoder.feed(piece);
            while let Some(frame) = decoder.next_frame() {
                got.push(frame);
            }
            assert!(decoder.buffer.len() <= LONGEST_MESSAGE + (1 << 20));
        }
        assert_eq!(got, [Frame::TooLong, Frame::Message(b"{}".to_vec())]);
        let head = format!("Content-Length: {}\r\n\r\n", LONGEST_MESSAGE + 5);
        let long =
            [head.into_bytes(), vec![b'x'; LONGEST_MESSAGE + 5], b"Content-Length: 2\r\n\r\n{}".to_vec()];
        assert_eq!(frames(&long.concat(), 1 << 20), [Frame::TooLong, Frame::Message(b"{}".to_vec())]);
    }

    proptest! {
        #[test]
        fn whatever_is_sent_arrives(texts in prop::collection::vec(".{0,40}", 0..6), headers: bool, piece in 1_usize..50) {
            let framing = if headers { Framing::Headers } else { Framing::Lines };
            let sent: Vec<String> = texts.iter().map(|text| serde_json::json!({"t": text}).to_string()).collect();
            let bytes: Vec<u8> = sent.iter().flat_map(|json| framing.encode(json)).collect();
            let expected: Vec<Frame> = sent.into_iter().map(|json| Frame::Message(json.into_bytes())).collect();
            prop_assert_eq!(frames(&bytes, piece), expected);
        }

        #[test]
        fn no_bytes_are_too_much(bytes in prop::collection::vec(any::<u8>(), 0..400), piece in 1_usize..50) {
            frames(&bytes, piece);
        }
    }
}
