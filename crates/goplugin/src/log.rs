//! Log lines as hclog writes them, which hosts read from a plugin's standard error.
//!
//! ```
//! use std::time::SystemTime;
//! use goplugin::log::{Level, Line};
//!
//! let line = Line::new(Level::Warn, "callback unreachable").module("greeter").field("attempts", 3);
//! let text = line.render(SystemTime::UNIX_EPOCH);
//! assert_eq!(
//!     text,
//!     r#"{"@level":"warn","@message":"callback unreachable","@module":"greeter","@timestamp":"1970-01-01T00:00:00.000000Z","attempts":3}"#,
//! );
//! ```

use std::fmt;
use std::time::{Duration, SystemTime};

use serde_json::{Map, Value};

/// Hosts cut lines at 64 KiB, and half an object is no object.
const LONGEST_LINE: usize = 60 << 10;

/// What is kept of the message of a line that is too long, in bytes; each may take six when escaped.
const SHORTENED_MESSAGE: usize = 8 << 10;

/// How grave a line is.
///
/// ```
/// use goplugin::log::Level;
///
/// assert!(Level::Error > Level::Warn);
/// assert_eq!(Level::Warn.to_string(), "warn");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Of use to who wrote the code.
    Trace,
    /// Of use to who looks for a fault.
    Debug,
    /// Of use to who runs the plugin.
    Info,
    /// Something is not as it should be.
    Warn,
    /// Something failed.
    Error,
}

impl Level {
    /// hclog's name of it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One log line.
///
/// ```
/// use goplugin::log::{Level, Line};
/// use std::time::SystemTime;
///
/// let line = Line::new(Level::Error, "the index is damaged").module("store").field("path", "index.db");
/// eprintln!("{}", line.render(SystemTime::now()));
/// ```
#[derive(Clone, Debug)]
pub struct Line {
    level: Level,
    message: String,
    fields: Map<String, Value>,
}

impl Line {
    /// A line without fields.
    pub fn new(level: Level, message: impl Into<String>) -> Self {
        Self { level, message: message.into(), fields: Map::new() }
    }

    /// Names the part of the program that speaks.
    #[must_use]
    pub fn module(mut self, module: impl Into<String>) -> Self {
        self.fields.insert("@module".to_owned(), Value::String(module.into()));
        self
    }

    /// Adds a field. Names that begin with `@` are hclog's own: the sign is left out, since hosts stumble
    /// over values of the wrong type in those.
    #[must_use]
    pub fn field(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(name.trim_start_matches('@').to_owned(), value.into());
        self
    }

    /// The line as text, without its end. If it is longer than a host reads in one piece, the fields are left
    /// out and the message is shortened.
    pub fn render(&self, time: SystemTime) -> String {
        let full = self.object(&self.message, self.fields.clone(), time);
        if full.len() <= LONGEST_LINE {
            return full;
        }
        let end = self.message.floor_char_boundary(SHORTENED_MESSAGE);
        let mut fields = Map::new();
        fields.insert("truncated".to_owned(), Value::Bool(true));
        self.object(&self.message[..end], fields, time)
    }

    fn object(&self, message: &str, mut object: Map<String, Value>, time: SystemTime) -> String {
        object.insert("@level".to_owned(), self.level.as_str().into());
        object.insert("@message".to_owned(), message.into());
        object.insert("@timestamp".to_owned(), timestamp(time).into());
        Value::Object(object).to_string()
    }
}

/// A time in UTC with exactly six fraction digits, the only form hosts accept. Times before 1970 read as its
/// first moment.
///
/// ```
/// use std::time::{Duration, SystemTime};
///
/// let time = SystemTime::UNIX_EPOCH + Duration::from_micros(951_782_400_000_007);
/// assert_eq!(goplugin::log::timestamp(time), "2000-02-29T00:00:00.000007Z");
/// ```
pub fn timestamp(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let (day, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = date(day);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let micros = since.subsec_micros();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
}

/// Year, month and day of the month, of a day counted from 1970.
fn date(mut day: u64) -> (u64, u64, u64) {
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    // Whole cycles of 400 years first, so that the loop below is short for any time at all.
    let mut year = 1970 + day / 146_097 * 400;
    day %= 146_097;
    loop {
        let length = if leap(year) { 366 } else { 365 };
        if day < length {
            break;
        }
        day -= length;
        year += 1;
    }
    let february = if leap(year) { 29 } else { 28 };
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if day < length {
            break;
        }
        day -= length;
        month += 1;
    }
    (year, month, day + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_time(micros: u64, expected: &str) {
        assert_eq!(timestamp(SystemTime::UNIX_EPOCH + Duration::from_micros(micros)), expected);
    }

    #[test]
    fn timestamps_have_six_fraction_digits() {
        check_time(0, "1970-01-01T00:00:00.000000Z");
        check_time(1_709_251_199_999_999, "2024-02-29T23:59:59.999999Z");
        check_time(1_709_251_200_000_000, "2024-03-01T00:00:00.000000Z");
        check_time(1_735_689_599_100_000, "2024-12-31T23:59:59.100000Z");
        check_time(4_107_542_400_000_000, "2100-03-01T00:00:00.000000Z");
        check_time(16_725_225_600_000_000, "2500-01-01T00:00:00.000000Z");
        assert_eq!(timestamp(SystemTime::UNIX_EPOCH - Duration::from_secs(1)), "1970-01-01T00:00:00.000000Z");
    }

    #[test]
    fn hclogs_own_keys_are_always_strings() {
        let line = Line::new(Level::Info, "a\n\"b\"").field("@level", 3).field("@message", true);
        let value: Value = serde_json::from_str(&line.render(SystemTime::now())).unwrap();
        assert_eq!((&value["@level"], &value["@message"]), (&"info".into(), &"a\n\"b\"".into()));
        assert_eq!((&value["level"], &value["message"]), (&3.into(), &true.into()));
        assert!(value["@timestamp"].is_string());
    }

    #[test]
    fn a_line_is_one_line_and_never_longer_than_hosts_read() {
        let line = Line::new(Level::Error, "\u{1}ü\n".repeat(40_000)).field("detail", "x".repeat(100_000));
        let text = line.render(SystemTime::now());
        assert!(text.len() <= LONGEST_LINE, "{}", text.len());
        assert!(!text.contains('\n'));
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["truncated"], true);
        assert!(value["@message"].as_str().unwrap().starts_with("\u{1}ü\n"));
    }
}
