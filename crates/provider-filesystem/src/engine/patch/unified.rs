//! Unified diffs, with or without git's extended headers.

use super::parse::{Line, ParseError};
use super::{FilePatch, Hunk, LineKind, Operation, ParsedPatch};

/// The numbers of a `@@ -1,2 +3,4 @@` line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HunkHeader {
    pub(super) old_start: usize,
    old_lines: usize,
    new_lines: usize,
}

/// `None` for a line that is none.
pub(super) fn hunk_header(line: &str) -> Option<HunkHeader> {
    let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let range = |text: &str| -> Option<(usize, usize)> {
        match text.split_once(',') {
            Some((start, lines)) => Some((start.parse().ok()?, lines.parse().ok()?)),
            None => Some((text.parse().ok()?, 1)),
        }
    };
    let ((old_start, old_lines), (_, new_lines)) = (range(old)?, range(new)?);
    Some(HunkHeader { old_start, old_lines, new_lines })
}

pub(super) fn parse(lines: &[Line<'_>]) -> Result<ParsedPatch, ParseError> {
    let mut reader = Reader { lines, at: 0, patch: ParsedPatch::default() };
    while let Some(line) = reader.peek() {
        if line.text.starts_with("diff --git ") || reader.is_names() {
            let file = reader.file()?;
            reader.patch.files.push(file);
        } else if hunk_header(line.text).is_some() {
            return Err(ParseError::at(
                line,
                "no file is named before it: write `--- a/path` and `+++ b/path`",
            ));
        } else if line.text.starts_with("*** ") {
            return Err(ParseError::at(line, "an envelope begins with the line `*** Begin Patch`"));
        } else {
            // Words around the patch, as in a mail.
            reader.at += 1;
        }
    }
    match reader.patch.files.is_empty() {
        true => Err(ParseError::NoPatch),
        false => Ok(reader.patch),
    }
}

/// What the headers of one file say.
#[derive(Default)]
struct Headers {
    old: Option<String>,
    new: Option<String>,
    is_new: bool,
    is_deleted: bool,
    rename: Option<(String, String)>,
    executable: Option<bool>,
    /// Whether the times of the two sides are those that `diff -N` gives to a file that is not there.
    at_epoch: (bool, bool),
}

struct Reader<'l, 'a> {
    lines: &'l [Line<'a>],
    at: usize,
    patch: ParsedPatch,
}

impl<'l, 'a> Reader<'l, 'a> {
    fn peek(&self) -> Option<&'l Line<'a>> {
        self.lines.get(self.at)
    }

    /// Whether `---` and `+++` lines stand here.
    fn is_names(&self) -> bool {
        let starts = |offset: usize, prefix: &str| {
            self.lines.get(self.at + offset).is_some_and(|line| line.text.starts_with(prefix))
        };
        starts(0, "--- ") && starts(1, "+++ ")
    }

    fn file(&mut self) -> Result<FilePatch, ParseError> {
        let first = self.lines.get(self.at).copied().ok_or(ParseError::NoPatch)?;
        let mut headers = Headers::default();
        let git = first.text.strip_prefix("diff --git ");
        if let Some(names) = git {
            self.at += 1;
            self.git_headers(&mut headers)?;
            if headers.rename.is_none() {
                (headers.old, headers.new) = same_names(names);
            }
        }
        if self.is_names() {
            let names = (self.lines.get(self.at), self.lines.get(self.at + 1));
            if let (Some(old), Some(new)) = names {
                headers.old = file_name(old.text.get(4..).unwrap_or_default());
                headers.new = file_name(new.text.get(4..).unwrap_or_default());
                headers.is_new |= headers.old.is_none();
                headers.is_deleted |= headers.new.is_none();
                headers.at_epoch = (is_epoch(old.text), is_epoch(new.text));
            }
            self.at += 2;
            if let (Some(old), Some(new)) = (&headers.old, &headers.new) {
                (headers.old, headers.new) = without_prefixes(old, new, git.is_some());
            } else {
                let plain = |name: Option<String>, prefix: &str| {
                    name.map(|name| name.strip_prefix(prefix).unwrap_or(&name).to_owned())
                };
                headers.old = plain(headers.old, "a/");
                headers.new = plain(headers.new, "b/");
            }
        }
        let mut hunks = Vec::new();
        while self.peek().is_some_and(|line| hunk_header(line.text).is_some()) {
            hunks.push(self.hunk()?);
        }
        if let Some(line) = self.peek()
            && line.text.starts_with("@@")
        {
            return Err(ParseError::at(
                line,
                "a change of a unified diff begins with `@@ -line,count +line,count @@`",
            ));
        }
        file_patch(&first, headers, hunks)
    }

    fn git_headers(&mut self, headers: &mut Headers) -> Result<(), ParseError> {
        let (mut from, mut to) = (None, None);
        while let Some(line) = self.peek() {
            let text = line.text;
            if let Some(mode) = text.strip_prefix("new file mode ") {
                headers.is_new = true;
                headers.executable = executable(line, mode)?.filter(|executable| *executable);
            } else if text.strip_prefix("deleted file mode ").is_some() {
                headers.is_deleted = true;
            } else if let Some(mode) = text.strip_prefix("new mode ") {
                headers.executable = executable(line, mode)?;
            } else if let Some(name) = text.strip_prefix("rename from ") {
                from = Some(unquoted(name));
            } else if let Some(name) = text.strip_prefix("rename to ") {
                to = Some(unquoted(name));
            } else if text.starts_with("copy from ") || text.starts_with("copy to ") {
                return Err(ParseError::at(line, "copies are not made by patches; use copy_path"));
            } else if text.starts_with("GIT binary patch") || text.starts_with("Binary files ") {
                return Err(ParseError::at(line, "binary changes cannot be applied as a patch"));
            } else if !["old mode ", "similarity index ", "dissimilarity index ", "index "]
                .iter()
                .any(|known| text.starts_with(known))
            {
                break;
            }
            self.at += 1;
        }
        headers.rename = from.zip(to);
        Ok(())
    }

    fn hunk(&mut self) -> Result<Hunk, ParseError> {
        let line = self.lines.get(self.at).copied().ok_or(ParseError::NoPatch)?;
        let header = hunk_header(line.text).ok_or(ParseError::NoPatch)?;
        self.at += 1;
        let mut hunk = Hunk { patch_line: line.number, old_start: Some(header.old_start), ..Hunk::default() };
        let mut left = (header.old_lines, header.new_lines);
        while let Some(line) = self.peek() {
            if line.text.starts_with("\\ ") {
                if let Some(last) = hunk.lines.last_mut() {
                    last.no_newline = true;
                }
                self.at += 1;
                continue;
            }
            let counted_out = left == (0, 0);
            // Counts are often wrong; then a line belongs to the hunk as long as it looks like one of it.
            if counted_out && (line.text.is_empty() || self.is_next_file()) {
                break;
            }
            if self.is_next_file()
                && self.lines.get(self.at + 2).is_some_and(|line| line.text.starts_with("@@"))
            {
                break;
            }
            let Some(changed) = line.of_hunk() else { break };
            if counted_out && is_signature(line.text) {
                break;
            }
            let counted = match changed.kind {
                LineKind::Context => (1, 1),
                LineKind::Delete => (1, 0),
                LineKind::Insert => (0, 1),
            };
            left = (left.0.saturating_sub(counted.0), left.1.saturating_sub(counted.1));
            hunk.lines.push(changed);
            self.at += 1;
        }
        self.check(&line, &header, hunk)
    }

    fn is_next_file(&self) -> bool {
        self.is_names() || self.peek().is_some_and(|line| line.text.starts_with("diff --git "))
    }

    fn check(&mut self, line: &Line<'_>, header: &HunkHeader, mut hunk: Hunk) -> Result<Hunk, ParseError> {
        let counts = |hunk: &Hunk| (hunk.before().count(), hunk.after().count());
        let claimed = (header.old_lines, header.new_lines);
        // An empty line between two files was taken for one that stays.
        while counts(&hunk) != claimed
            && hunk.lines.last().is_some_and(|last| last.kind == LineKind::Context && last.text.is_empty())
            && counts(&hunk).0 > claimed.0
        {
            hunk.lines.pop();
        }
        if counts(&hunk) != claimed {
            let note = format!(
                "line {} of the patch counts {} and {} lines, but {} and {} follow; what follows was taken",
                line.number,
                claimed.0,
                claimed.1,
                counts(&hunk).0,
                counts(&hunk).1
            );
            self.patch.notes.push(note);
        }
        match hunk.is_change() {
            true => Ok(hunk),
            false => Err(ParseError::at(line, "no line that begins with - or + follows")),
        }
    }
}

/// The two dashes that mail programs put below a patch.
fn is_signature(line: &str) -> bool {
    line == "-- " || line == "--"
}

fn file_patch(first: &Line<'_>, headers: Headers, hunks: Vec<Hunk>) -> Result<FilePatch, ParseError> {
    let Headers { old, new, is_new, is_deleted, rename, executable, at_epoch } = headers;
    let only = <&[Hunk; 1]>::try_from(hunks.as_slice()).ok().map(|[only]| only);
    let is_new = is_new || at_epoch.0 && only.is_some_and(|hunk| hunk.before().next().is_none());
    let is_deleted = is_deleted || at_epoch.1 && only.is_some_and(|hunk| hunk.after().next().is_none());
    let missing = || ParseError::at(first, "the file's name is missing or is /dev/null on both sides");
    let (path, operation) = match rename {
        Some((from, to)) if from != to => (from, Operation::Move(to)),
        _ if is_new => (new.or(old).ok_or_else(missing)?, Operation::Add),
        _ if is_deleted => (old.or(new).ok_or_else(missing)?, Operation::Delete),
        _ => match (old, new) {
            (Some(old), Some(new)) if old != new => (old, Operation::Move(new)),
            (Some(path), _) | (None, Some(path)) => (path, Operation::Update),
            (None, None) => return Err(missing()),
        },
    };
    if path.is_empty() {
        return Err(missing());
    }
    if hunks.is_empty() && operation == Operation::Update && executable.is_none() {
        return Err(ParseError::at(first, "no change of this file follows"));
    }
    Ok(FilePatch { path, operation, hunks, executable })
}

fn executable(line: &Line<'_>, mode: &str) -> Result<Option<bool>, ParseError> {
    match mode.trim() {
        "100755" => Ok(Some(true)),
        "100644" | "100664" | "100600" => Ok(Some(false)),
        _ => Err(ParseError::at(line, "only regular files (100644, 100755) can be patched")),
    }
}

/// Whether the time behind a name is the first there is, in any time zone.
fn is_epoch(line: &str) -> bool {
    let time = line.split_once('\t').map_or("", |(_, time)| time.trim_start());
    time.starts_with("1970-01-01 ") || time.starts_with("1969-12-31 ")
}

/// The name on a `---` or `+++` line; `None` for `/dev/null`.
fn file_name(text: &str) -> Option<String> {
    let name = match text.starts_with('"') {
        true => unquoted(text),
        // A tab ends the name; what follows it is a time.
        false => text.split('\t').next().unwrap_or(text).trim_end().to_owned(),
    };
    (name != "/dev/null").then_some(name)
}

/// Names without what marks the two sides, where both are marked.
fn without_prefixes(old: &str, new: &str, git: bool) -> (Option<String>, Option<String>) {
    match (old.strip_prefix("a/"), new.strip_prefix("b/")) {
        (Some(old), Some(new)) => (Some(old.to_owned()), Some(new.to_owned())),
        _ if git => (Some(old.to_owned()), Some(new.to_owned())),
        // Only the new name is where the file is; the other may be a backup's, such as `f.orig`.
        _ => (Some(new.to_owned()), Some(new.to_owned())),
    }
}

/// The names on a `diff --git` line, which are the same where no rename follows.
fn same_names(text: &str) -> (Option<String>, Option<String>) {
    if text.starts_with('"') {
        let name = unquoted(text);
        let name = name.strip_prefix("a/").unwrap_or(&name).to_owned();
        return (Some(name.clone()), Some(name));
    }
    // `a/x b/x`: as long before the blank as after it.
    let middle = text.len() / 2;
    let halves = text.get(..middle).zip(text.get(middle + 1..));
    let name = halves.and_then(|(old, new)| {
        let (old, new) = (old.strip_prefix("a/")?, new.strip_prefix("b/")?);
        (old == new).then(|| old.to_owned())
    });
    (name.clone(), name)
}

/// A name that git quoted as C does; any other as it is.
fn unquoted(text: &str) -> String {
    let Some(rest) = text.strip_prefix('"') else { return text.trim_end().to_owned() };
    let mut bytes = Vec::new();
    let mut chars = rest.bytes().peekable();
    while let Some(byte) = chars.next() {
        match byte {
            b'"' => break,
            b'\\' => match chars.next() {
                Some(b'n') => bytes.push(b'\n'),
                Some(b't') => bytes.push(b'\t'),
                Some(b'r') => bytes.push(b'\r'),
                Some(digit @ b'0'..=b'7') => {
                    let mut value = u32::from(digit - b'0');
                    for _ in 0..2 {
                        let Some(next) = chars.next_if(|next| (b'0'..=b'7').contains(next)) else { break };
                        value = value * 8 + u32::from(next - b'0');
                    }
                    bytes.push(u8::try_from(value & 0xff).unwrap_or(b'?'));
                }
                Some(other) => bytes.push(other),
                None => break,
            },
            other => bytes.push(other),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
