//! Bytes that arrive in pieces, as text and as lines.

/// Decodes UTF-8 that may be split anywhere. What is no UTF-8 becomes U+FFFD.
#[derive(Debug, Default)]
pub struct Decoder {
    held: Vec<u8>,
}

impl Decoder {
    /// The text that is complete with these bytes.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.held.extend_from_slice(bytes);
        let whole = match self.held.utf8_chunks().last() {
            // A beginning of a character at the very end may still be completed; it is at most three bytes.
            Some(chunk) if is_beginning(chunk.invalid()) => self.held.len() - chunk.invalid().len(),
            _ => self.held.len(),
        };
        let text = String::from_utf8_lossy(&self.held[..whole]).into_owned();
        self.held.drain(..whole);
        text
    }

    /// What is left at the end.
    pub fn finish(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.held)).into_owned()
    }
}

/// Whether bytes are the beginning of a character.
fn is_beginning(bytes: &[u8]) -> bool {
    let error = std::str::from_utf8(bytes).err();
    !bytes.is_empty() && error.is_some_and(|error| error.error_len().is_none())
}

/// Splits text into lines. A line longer than `longest` bytes is cut.
#[derive(Debug)]
pub struct Lines {
    open: String,
    longest: usize,
}

impl Lines {
    /// Lines of at most `longest` bytes.
    pub fn new(longest: usize) -> Self {
        Self { open: String::new(), longest }
    }

    /// The lines that are complete with this text, without those that are blank.
    pub fn push(&mut self, text: &str) -> Vec<String> {
        let mut lines = Vec::new();
        let mut parts = text.split('\n').peekable();
        while let Some(part) = parts.next() {
            let room = self.longest.saturating_sub(self.open.len());
            self.open.push_str(&part[..part.floor_char_boundary(room)]);
            if parts.peek().is_some() {
                lines.extend(self.finish());
            }
        }
        lines
    }

    /// The last line, if it was not ended.
    pub fn finish(&mut self) -> Option<String> {
        let line = questions::clean(&std::mem::take(&mut self.open)).replace('\n', " ");
        Some(line).filter(|line| !line.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_may_be_split_between_pieces() {
        let bytes = "größe €\u{1f980}".as_bytes();
        for size in 1..=bytes.len() {
            let mut decoder = Decoder::default();
            let text: String = bytes.chunks(size).map(|piece| decoder.push(piece)).collect();
            assert_eq!(text + &decoder.finish(), "größe €\u{1f980}", "{size}");
        }
        let mut decoder = Decoder::default();
        assert_eq!(
            (decoder.push(b"a\xffb\xe2\x82").as_str(), decoder.finish().as_str()),
            ("a\u{fffd}b", "\u{fffd}")
        );
    }

    #[test]
    fn lines_are_cleaned_and_cut() {
        let mut lines = Lines::new(6);
        assert_eq!(lines.push("on"), Vec::<String>::new());
        assert_eq!(lines.push("e\n\n\x1b[1mtwo\x1b[0m\nvery long\nend"), ["one", "tw", "very l"]);
        assert_eq!(lines.finish().as_deref(), Some("end"));
    }
}
