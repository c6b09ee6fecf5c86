//! Whether a text repeats the key, in whatever way it is written.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use provider_core::Secret;

/// Shorter keys occur in ordinary words.
const SHORTEST: usize = 4;

/// A key that must not be seen.
pub(super) struct Leak(Vec<u8>);

impl Leak {
    /// `None` for a key that is too short to be told from words.
    pub(super) fn of(key: &Secret) -> Option<Self> {
        let key = key.reveal().as_bytes();
        (key.len() >= SHORTEST).then(|| Self(key.to_vec()))
    }

    /// Whether `text` holds the key: as it is, percent-encoded, with the escapes of JSON, in Base64 or in hexadecimal,
    /// also when it is a part of what is encoded.
    pub(super) fn is_in(&self, text: &str) -> bool {
        let mut seen = text.as_bytes().to_vec();
        // Encodings on top of each other are taken off one by one.
        for _ in 0..3 {
            if self.is_shown(&seen) {
                return true;
            }
            let plain = without_escapes(&without_percent(&seen));
            if plain == seen {
                return false;
            }
            seen = plain;
        }
        self.is_shown(&seen)
    }

    fn is_shown(&self, bytes: &[u8]) -> bool {
        self.is_part_of(bytes) || self.is_in_base64(bytes) || self.is_in_hexadecimal(bytes)
    }

    fn is_part_of(&self, bytes: &[u8]) -> bool {
        memchr::memmem::find(bytes, &self.0).is_some()
    }

    fn is_in_base64(&self, bytes: &[u8]) -> bool {
        let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_');
        bytes.split(|byte| !is_digit(byte)).filter(|run| run.len() >= self.0.len()).any(|run| {
            let plain: Vec<u8> = run
                .iter()
                .map(|byte| match byte {
                    b'-' => b'+',
                    b'_' => b'/',
                    byte => *byte,
                })
                .collect();
            // What is encoded may have begun before the run that is seen.
            (0..4).any(|start| {
                let digits = plain.get(start..).unwrap_or_default();
                let whole = digits.len() / 4 * 4;
                let rest = digits.len() - whole;
                // The last two or three digits hold the end of the text, and bits that may be anything.
                let mut decoded = STANDARD_NO_PAD.decode(&digits[..whole]).unwrap_or_default();
                if rest >= 2 {
                    let mut last = digits[whole..].to_vec();
                    last.resize(4, b'A');
                    decoded.extend(STANDARD_NO_PAD.decode(&last).unwrap_or_default().iter().take(rest - 1));
                }
                self.is_part_of(&decoded)
            })
        })
    }

    fn is_in_hexadecimal(&self, bytes: &[u8]) -> bool {
        bytes.split(|byte| !byte.is_ascii_hexdigit()).filter(|run| run.len() >= 2 * self.0.len()).any(|run| {
            (0..2).any(|start| {
                let pairs = run.get(start..).unwrap_or_default().chunks_exact(2);
                let decoded: Vec<u8> =
                    pairs.filter_map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect();
                self.is_part_of(&decoded)
            })
        })
    }
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

/// The bytes with `%41` taken for `A`.
fn without_percent(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, after)) = rest.split_first() {
        let escaped = match (first, after) {
            (b'%', [high, low, ..]) => digit(*high).zip(digit(*low)).map(|(high, low)| high << 4 | low),
            _ => None,
        };
        plain.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    plain
}

/// The bytes with `\u0041` taken for `A`, and `\/` for `/`.
fn without_escapes(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, after)) = rest.split_first() {
        let (byte, used) = match (first, after) {
            (b'\\', [b'u' | b'U', a, b, c, d, ..]) => {
                let digits = [*a, *b, *c, *d].map(digit);
                match digits {
                    [Some(0), Some(0), Some(high), Some(low)] => (high << 4 | low, 5),
                    _ => (*first, 0),
                }
            }
            (b'\\', [escaped @ (b'"' | b'\\' | b'/'), ..]) => (*escaped, 1),
            _ => (*first, 0),
        };
        plain.push(byte);
        rest = &after[used..];
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leak(key: &str) -> Leak {
        Leak(key.as_bytes().to_vec())
    }

    #[test]
    fn a_key_is_seen_in_every_writing() {
        let key = "sk/Canary+\"7=\\x";
        let leak = leak(key);
        let percent: String = key.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let twice = percent.replace('%', "%25");
        let json = serde_json::to_string(key).unwrap();
        let unicode: String = key.bytes().map(|byte| format!("\\u{byte:04X}")).collect();
        let hex: String = key.bytes().map(|byte| format!("{byte:02X}")).collect();
        for text in [key, &percent, &twice, &json, &unicode, &hex, "sk%2FCanary%2B%227%3D%5Cx"] {
            assert!(leak.is_in(&format!("before {text} after")), "{text}");
            assert!(leak.is_in(&format!("x{text}")), "{text}");
        }
        for before in ["", "u", "us", "user:", "Bearer "] {
            for after in ["", "1", "12", "123"] {
                let inside = format!("{before}{key}{after}");
                for engine in
                    [base64::engine::general_purpose::STANDARD, base64::engine::general_purpose::URL_SAFE]
                {
                    let text = format!("token={}&", engine.encode(&inside));
                    assert!(leak.is_in(&text), "{inside}: {text}");
                    assert!(leak.is_in(&text.replace('=', "%3D")), "{inside}: {text}");
                }
            }
        }
    }

    #[test]
    fn other_texts_are_no_leaks() {
        let leak = leak("sk-canary-77");
        for text in [
            "",
            "words and more",
            "sk-canary-7",
            "c2stY2FuYXJ5LTc=",
            "%",
            "%2",
            "\\u00",
            "\\",
            "https://a.example/?q=%C3%A9",
        ] {
            assert!(!leak.is_in(text), "{text}");
        }
    }
}
