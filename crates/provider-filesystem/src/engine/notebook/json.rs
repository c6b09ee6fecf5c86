//! Where the parts of a JSON text stand. Of a text that is known to be valid only the outline is taken down.

use std::ops::Range;

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) span: Range<usize>,
    pub(super) parts: Parts,
}

/// What a value consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Parts {
    /// Its members in order: the name, decoded, where that stands, and the value.
    Object(Vec<(String, Range<usize>, Node)>),
    Array(Vec<Node>),
    /// A string, a number, true, false or null.
    Scalar,
}

/// Deeper nesting than this is not followed. `serde_json` refuses it too.
const DEEPEST: usize = 127;

impl Node {
    /// The outline of `text`; `None` when it is no JSON.
    pub(super) fn outline(text: &str) -> Option<Self> {
        serde_json::from_str::<serde::de::IgnoredAny>(text).ok()?;
        Scanner { text, at: 0 }.value(0)
    }

    /// The member `name` of an object.
    pub(super) fn get(&self, name: &str) -> Option<&Self> {
        match &self.parts {
            Parts::Object(members) => members.iter().find(|(key, ..)| key == name).map(|(_, _, value)| value),
            _ => None,
        }
    }

    /// The elements of an array.
    pub(super) fn elements(&self) -> Option<&[Self]> {
        match &self.parts {
            Parts::Array(elements) => Some(elements),
            _ => None,
        }
    }

    /// The value itself.
    pub(super) fn value(&self, text: &str) -> Option<serde_json::Value> {
        serde_json::from_str(text.get(self.span.clone())?).ok()
    }
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl Scanner<'_> {
    fn peek(&mut self) -> Option<u8> {
        let rest = self.text.as_bytes().get(self.at..)?;
        let blanks = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.at += blanks;
        rest.get(blanks).copied()
    }

    fn value(&mut self, depth: usize) -> Option<Node> {
        let first = self.peek()?;
        let start = self.at;
        let parts = match first {
            _ if depth > DEEPEST => return None,
            b'{' => Parts::Object(self.members(depth)?),
            b'[' => Parts::Array(self.items(depth)?),
            b'"' => {
                self.string()?;
                Parts::Scalar
            }
            _ => {
                let rest = self.text.as_bytes().get(start..)?;
                let length = rest
                    .iter()
                    .take_while(|byte| !byte.is_ascii_whitespace() && !b",]}".contains(byte))
                    .count();
                self.at += length.max(1);
                Parts::Scalar
            }
        };
        Some(Node { span: start..self.at, parts })
    }

    fn members(&mut self, depth: usize) -> Option<Vec<(String, Range<usize>, Node)>> {
        let mut members = Vec::new();
        self.at += 1;
        loop {
            match self.peek()? {
                b'}' => break,
                b',' => self.at += 1,
                _ => {
                    let key = self.string()?;
                    let name = serde_json::from_str(self.text.get(key.clone())?).ok()?;
                    self.peek().filter(|&byte| byte == b':')?;
                    self.at += 1;
                    members.push((name, key, self.value(depth + 1)?));
                }
            }
        }
        self.at += 1;
        Some(members)
    }

    fn items(&mut self, depth: usize) -> Option<Vec<Node>> {
        let mut items = Vec::new();
        self.at += 1;
        loop {
            match self.peek()? {
                b']' => break,
                b',' => self.at += 1,
                _ => items.push(self.value(depth + 1)?),
            }
        }
        self.at += 1;
        Some(items)
    }

    fn string(&mut self) -> Option<Range<usize>> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut at = start + 1;
        loop {
            match bytes.get(at)? {
                b'"' => break,
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
        self.at = at + 1;
        Some(start..self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_where_they_stand() {
        let text = r#" {"a\n": [1, "x\"]", {}], "b": null} "#;
        let root = Node::outline(text).unwrap();
        let shown = |node: &Node| text[node.span.clone()].to_owned();
        let items: Vec<_> = root.get("a\n").unwrap().elements().unwrap().iter().map(shown).collect();
        assert_eq!(items, ["1", r#""x\"]""#, "{}"]);
        assert_eq!(shown(root.get("b").unwrap()), "null");
        assert_eq!(root.get("c"), None);
    }

    #[test]
    fn what_is_no_json_has_no_outline() {
        for text in ["", "{", "[1,]", "{\"a\" 1}", &"[".repeat(10_000)] {
            assert_eq!(Node::outline(text), None);
        }
    }
}
