//! JSON with a line for each member, and every number and text as it was written.

use serde::de::IgnoredAny;

/// Deeper levels are not indented further.
const DEEPEST: usize = 16;
/// Objects and arrays of plain values that fit are kept on one line, in bytes.
const SHORT: usize = 80;

/// Whether a text is one JSON value.
pub(super) fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// JSON that [`is_json`] says is such, laid out; as it is where that would make it many times as long.
pub(super) fn pretty(json: &str) -> String {
    let limit = json.len().saturating_mul(4).saturating_add(64 << 10);
    let mut layout = Layout { out: String::with_capacity(json.len() * 2), depth: 0 };
    let bytes = json.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        if layout.out.len() > limit {
            return json.to_owned();
        }
        at += match byte {
            b'"' => layout.raw(&json[at..string_end(bytes, at)]),
            b'{' | b'[' => layout.open(&json[at..]),
            b'}' | b']' => layout.close(*byte),
            b',' => layout.comma(),
            b':' => {
                layout.out.push_str(": ");
                1
            }
            byte if byte.is_ascii_whitespace() => 1,
            _ => layout.raw(&json[at..scalar_end(bytes, at)]),
        };
    }
    layout.out
}

struct Layout {
    out: String,
    depth: usize,
}

impl Layout {
    fn raw(&mut self, text: &str) -> usize {
        self.out.push_str(text);
        text.len()
    }

    fn line(&mut self) {
        self.out.push('\n');
        self.out.extend(std::iter::repeat_n("  ", self.depth.min(DEEPEST)));
    }

    /// Opens an object or array, or writes a short one whole.
    fn open(&mut self, rest: &str) -> usize {
        if let Some((line, length)) = on_one_line(rest) {
            self.out.push_str(&line);
            return length;
        }
        self.raw(&rest[..1]);
        self.depth += 1;
        self.line();
        1
    }

    fn close(&mut self, byte: u8) -> usize {
        self.depth = self.depth.saturating_sub(1);
        self.line();
        self.out.push(char::from(byte));
        1
    }

    fn comma(&mut self) -> usize {
        self.out.push(',');
        self.line();
        1
    }
}

/// A short object or array of plain values on one line, and how many bytes it takes as it is written.
fn on_one_line(rest: &str) -> Option<(String, usize)> {
    let bytes = rest.as_bytes();
    let mut line = rest[..1].to_owned();
    let mut at = 1;
    while line.len() <= SHORT && at <= 8 * SHORT {
        let (text, length) = match *bytes.get(at)? {
            b'{' | b'[' => return None,
            byte @ (b'}' | b']') => {
                line.push(char::from(byte));
                return Some((line, at + 1));
            }
            b',' => (", ", 1),
            b':' => (": ", 1),
            b'"' => whole(&rest[at..string_end(bytes, at)]),
            byte if byte.is_ascii_whitespace() => ("", 1),
            _ => whole(&rest[at..scalar_end(bytes, at)]),
        };
        line.push_str(text);
        at += length;
    }
    None
}

fn whole(text: &str) -> (&str, usize) {
    (text, text.len())
}

/// Where the string that begins at `at` has ended.
fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while let Some(found) = memchr::memchr2(b'"', b'\\', bytes.get(end..).unwrap_or_default()) {
        end += found;
        match bytes.get(end) {
            Some(b'"') => return end + 1,
            _ => end += 2,
        }
    }
    bytes.len()
}

/// Where the number or word that begins at `at` has ended.
fn scalar_end(bytes: &[u8], at: usize) -> usize {
    let ends = |byte: &u8| {
        byte.is_ascii_whitespace() || matches!(byte, b',' | b':' | b'}' | b']' | b'{' | b'[' | b'"')
    };
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().position(ends).unwrap_or(rest.len()).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expected: &str) {
        assert!(is_json(json));
        assert_eq!(pretty(json), expected);
        let value = |text| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(json), value(expected));
    }

    #[test]
    fn members_have_lines_and_values_stay_as_written() {
        check(
            r#"{"a":1.50,"big":12345678901234567890123,"t":"x\"}{","list":[1, 2,3],"o":{},"e":[ ],"deep":{"x":[{"y":null}]}}"#,
            "{\n  \"a\": 1.50,\n  \"big\": 12345678901234567890123,\n  \"t\": \"x\\\"}{\",\n  \"list\": [1, 2, 3],\n  \"o\": {},\n  \"e\": [],\n  \"deep\": {\n    \"x\": [\n      {\"y\": null}\n    ]\n  }\n}",
        );
        check(" true ", "true");
        check(r#"{"b": 2, "a": "é"}"#, r#"{"b": 2, "a": "é"}"#);
    }

    #[test]
    fn what_would_grow_without_measure_stays_as_it_is() {
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(is_json(&deep) && pretty(&deep) == deep);
        assert!(!is_json("{\"a\": 1,}") && !is_json(""));
    }
}
