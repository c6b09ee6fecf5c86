//! The envelope: `*** Begin Patch`, files, `*** End Patch`.

use super::parse::{Line, ParseError};
use super::unified::hunk_header;
use super::{FilePatch, Hunk, LineKind, Operation, ParsedPatch};

/// The first line.
pub(super) const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File:";
const DELETE: &str = "*** Delete File:";
const UPDATE: &str = "*** Update File:";
const MOVE: &str = "*** Move to:";
const END_OF_FILE: &str = "*** End of File";

/// Reads what follows the first line.
pub(super) fn parse(lines: &[Line<'_>]) -> Result<ParsedPatch, ParseError> {
    let end = lines.iter().position(|line| line.text.trim() == END).ok_or(ParseError::NoEnd)?;
    let after = lines.get(end + 1..).unwrap_or_default();
    if let Some(line) = after.iter().find(|line| line.text.starts_with("*** ")) {
        return Err(ParseError::at(line, "something follows `*** End Patch`; put all files into one patch"));
    }
    let mut rest = lines.get(..end).unwrap_or_default();
    let mut patch = ParsedPatch::default();
    while let Some((line, following)) = rest.split_first() {
        if line.text.trim().is_empty() {
            rest = following;
            continue;
        }
        let body = following.iter().take_while(|line| !is_file(line)).count();
        let (body, others) = following.split_at(body);
        patch.files.push(file(line, body)?);
        rest = others;
    }
    Ok(patch)
}

fn is_file(line: &Line<'_>) -> bool {
    [ADD, DELETE, UPDATE].iter().any(|header| line.text.starts_with(header))
}

fn file(header: &Line<'_>, body: &[Line<'_>]) -> Result<FilePatch, ParseError> {
    let named = |prefix: &str| header.text.strip_prefix(prefix).map(|path| path.trim().to_owned());
    let (path, operation, hunks) = if let Some(path) = named(ADD) {
        (path, Operation::Add, vec![added(header, body)?])
    } else if let Some(path) = named(DELETE) {
        if let Some(line) = body.iter().find(|line| !line.text.trim().is_empty()) {
            return Err(ParseError::at(line, "nothing may follow `*** Delete File:` but the next file"));
        }
        (path, Operation::Delete, Vec::new())
    } else if let Some(path) = named(UPDATE) {
        let (operation, body) = match body.split_first() {
            Some((line, rest)) if line.text.starts_with(MOVE) => {
                let to = line.text.strip_prefix(MOVE).unwrap_or_default().trim();
                if to.is_empty() {
                    return Err(ParseError::at(line, "the path to move to is missing"));
                }
                (Operation::Move(to.to_owned()), rest)
            }
            _ => (Operation::Update, body),
        };
        let hunks = hunks(body)?;
        if hunks.is_empty() && operation == Operation::Update {
            return Err(ParseError::at(header, "no change follows: write lines that begin with - and +"));
        }
        (path, operation, hunks)
    } else {
        return Err(ParseError::at(
            header,
            "expected `*** Add File: path`, `*** Update File: path` or `*** Delete File: path`",
        ));
    };
    match path.is_empty() {
        true => Err(ParseError::at(header, "the path is missing")),
        false => Ok(FilePatch { path, operation, hunks, executable: None }),
    }
}

/// The content of a new file: every line begins with `+`.
fn added(header: &Line<'_>, body: &[Line<'_>]) -> Result<Hunk, ParseError> {
    let blank = body.iter().rev().take_while(|line| line.text.is_empty()).count();
    let body = body.get(..body.len() - blank).unwrap_or_default();
    let mut hunk = Hunk { patch_line: header.number, ..Hunk::default() };
    for line in body {
        if line.text == END_OF_FILE {
            continue;
        }
        match line.of_hunk() {
            Some(inserted) if inserted.kind == LineKind::Insert => hunk.lines.push(inserted),
            _ => return Err(ParseError::at(line, "every line of a new file begins with +")),
        }
    }
    Ok(hunk)
}

fn hunks(body: &[Line<'_>]) -> Result<Vec<Hunk>, ParseError> {
    // Blank lines before the next file belong to nobody.
    let blank = body.iter().rev().take_while(|line| line.text.is_empty()).count();
    let body = body.get(..body.len() - blank).unwrap_or_default();
    let mut hunks: Vec<Hunk> = Vec::new();
    for line in body {
        let open = hunks.last().is_some_and(|hunk| !hunk.at_end);
        if let Some(context) = line.text.strip_prefix("@@") {
            // Several in a row lead from the outside to the inside.
            let nested = hunks.last().is_some_and(|hunk| hunk.lines.is_empty() && !hunk.anchors.is_empty());
            if !nested {
                hunks.push(Hunk { patch_line: line.number, ..Hunk::default() });
            }
            let Some(hunk) = hunks.last_mut() else { continue };
            match hunk_header(line.text) {
                Some(header) => hunk.old_start = Some(header.old_start),
                None if context.trim().is_empty() => {}
                None => hunk.anchors.push(context.trim().trim_end_matches("@@").trim_end().to_owned()),
            }
            continue;
        }
        if line.text.trim_end() == END_OF_FILE {
            match hunks.last_mut() {
                Some(hunk) => hunk.at_end = true,
                None => return Err(ParseError::at(line, "no change stands before it")),
            }
            continue;
        }
        if line.text.starts_with("\\ ") {
            if let Some(last) = hunks.last_mut().and_then(|hunk| hunk.lines.last_mut()) {
                last.no_newline = true;
            }
            continue;
        }
        let reason =
            "in a changed file every line begins with a blank (it stays), - (it goes) or + (it comes)";
        let changed = line.of_hunk().ok_or_else(|| ParseError::at(line, reason))?;
        if !open {
            if hunks.last().is_some_and(|hunk| hunk.at_end) {
                return Err(ParseError::at(line, "a change after `*** End of File` begins with `@@`"));
            }
            hunks.push(Hunk { patch_line: line.number, ..Hunk::default() });
        }
        if let Some(hunk) = hunks.last_mut() {
            hunk.lines.push(changed);
        }
    }
    for hunk in &hunks {
        if !hunk.is_change() {
            let line = body.iter().find(|line| line.number == hunk.patch_line);
            let reason = "this change has no line that begins with - or +";
            return Err(line.map_or(ParseError::Empty, |line| ParseError::at(line, reason)));
        }
    }
    Ok(hunks)
}
