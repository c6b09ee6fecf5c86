//! Text of any length in bounded memory: its beginning and its end.

/// The beginning and the end of a text that grows.
#[derive(Clone, Debug)]
pub struct Kept {
    head: String,
    tail: String,
    /// Most bytes of each.
    limit: usize,
    total: u64,
}

impl Kept {
    /// Keeps at most `limit` bytes of the beginning and as many of the end.
    pub fn new(limit: usize) -> Self {
        Self { head: String::new(), tail: String::new(), limit, total: 0 }
    }

    /// Adds to the end.
    pub fn push(&mut self, text: &str) {
        self.total += text.len() as u64;
        let room = if self.tail.is_empty() { self.limit.saturating_sub(self.head.len()) } else { 0 };
        let (head, rest) = text.split_at(text.floor_char_boundary(room));
        self.head.push_str(head);
        self.tail.push_str(rest);
        // Twice the limit before cutting, so that cutting costs little for each byte.
        if self.tail.len() > 2 * self.limit {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let from = self.tail.len().saturating_sub(self.limit);
        let from = self.tail.ceil_char_boundary(from);
        self.tail.drain(..from);
    }

    /// The text, with a line about what is left out.
    pub fn text(mut self) -> String {
        self.cut();
        let left_out = self.total - (self.head.len() + self.tail.len()) as u64;
        match left_out {
            0 => self.head + &self.tail,
            _ => format!("{}\n[… {left_out} bytes are left out …]\n{}", self.head, self.tail),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pieces: &[&str], expected: &str) {
        let mut kept = Kept::new(4);
        pieces.iter().for_each(|piece| kept.push(piece));
        assert_eq!(kept.text(), expected);
    }

    #[test]
    fn what_fits_is_whole_and_the_rest_is_counted() {
        check(&[], "");
        check(&["ab", "cd", "efgh"], "abcdefgh");
        check(&["abcdefghi"], "abcd\n[… 1 bytes are left out …]\nfghi");
        check(&["ab", "c", "d", "0123456789", "wxyz"], "abcd\n[… 10 bytes are left out …]\nwxyz");
        check(&["abcé", "fghijkl"], "abc\n[… 5 bytes are left out …]\nijkl");
    }
}
