//! The edit engine on files and texts that nobody would think of.

use std::collections::BTreeMap;
use std::io::Cursor;

use anyhow::{Context as _, ensure};
use provider_filesystem::engine::diff::Diff;
use provider_filesystem::engine::edit::{Edit, EditError, Replacement, Select, plan};
use provider_filesystem::engine::encoding::Encoding;
use provider_filesystem::engine::find::find;
use provider_filesystem::engine::notebook::{CellAction, CellChange, Notebook, change, show};
use provider_filesystem::engine::text::{Eol, Text};
use provider_filesystem::engine::window::{Limits, Next, Reading, Request, read_window};

use super::{Random, Run, Stress};

/// The run.
pub const STRESS: Stress = Stress {
    name: "fuzz-edit",
    about: "the edit engine on mutated files: no panic, no byte changed outside the span, pages that rebuild the file",
    short_rounds: 3_000,
    run,
};

/// Files to begin with.
const CORPUS: &[&[u8]] = &[
    b"",
    b"\n",
    b"a\r\nb\nc\rd\r\r\n",
    b"\xef\xbb\xbffn main() {\r\n\tprintln!(\"hi\");\r\n}\r\n",
    b"\tif x {\n\t\treturn 1\n\t}\n\n\n    12\tfoo()\n    13\tbar()",
    "“a” ‘b’ – cafe\u{301} \u{a0}x 👩‍👩‍👧\n".as_bytes(),
    b"aaaaaaaaaaaaaaaa",
    b"caf\xe9 = 1\nx = 2\n",
    b"\xff\xfeh\0e\0l\0l\0o\0\r\0\n\0w\0o\0r\0l\0d\0\r\0\n\0",
    b"\xfe\xff\0a\0\n\xd8\x3d\xdc\xdd\0b\0\n",
    b"// \0\x61\0\n\0",
    b"\xff\xfe\0\0a\0\0\0\n\0\0\0",
    b"// \x82\xb1\x82\xea\x82\xcd\x93\xfa\x96\x7b\x8c\xea\x82\xcc\x95\x5c\x82\xc5\x82\xb7\nprint(1)\n",
    b"// \xd6\xd0\xce\xc4\xb5\xc4\xd7\xa2\xca\xcd\xa3\xac\xd3\xc3\xc0\xb4\r\nint a = 1;\r\n",
    b"a\n\x1b$BI=\x1b(B\nb\n",
    b"gr\xc3\xb6\xc3\x9fe\nbad \xe9 here\nend\n",
    br#"{"cells": [{"cell_type": "code", "id": "a", "source": ["x = 1\n", "y"], "outputs": []}, {"cell_type": "raw", "source": ""}], "nbformat": 4, "nbformat_minor": 5}"#,
    b"{\n \"cells\": [\n  {\n   \"cell_type\": \"markdown\",\n   \"source\": [\"# t\"]\n  }\n ],\n \"nbformat\": 4\n}\n",
];

/// Encodings, each with lines that it can hold and that are not ASCII alone.
const ENCODED: &[(&str, &str)] = &[
    ("utf-8", "größe = 1\nпривет\n日本語 👍\n"),
    ("utf-16le", "größe = 1\nпривет\n日本語 👍\n"),
    ("utf-16be", "größe = 1\nпривет\n日本語 👍\n"),
    ("utf-32le", "größe = 1\n日本語 👍\n"),
    ("utf-32be", "größe = 1\n日本語 👍\n"),
    ("windows-1252", "größe = 1\n“naïve” café – 5 €\n"),
    ("iso-8859-2", "zażółć gęślą\njaźń\n"),
    ("windows-1251", "привет, мир\nэто тест\n"),
    ("koi8-r", "привет, мир\nэто тест\n"),
    ("windows-1253", "καλημέρα κόσμε\n"),
    ("windows-1255", "שלום עולם\n"),
    ("gbk", "中文注释，用来\n表中的文字\n"),
    ("gb18030", "中文注释 👍\n表中的文字\n"),
    ("big5", "繁體中文註解\n功能表\n"),
    ("shift_jis", "これは日本語の表です\nソ能\n"),
    ("euc-jp", "これは日本語の表です\n"),
    ("euc-kr", "한국어 주석입니다\n"),
];

fn run(run: &Run) -> anyhow::Result<String> {
    let mut tally = Tally::default();
    while let Some(mut random) = run.next_round() {
        // Told the encoding, a file is read in it whatever its bytes look like.
        if random.once_in(3) {
            let (encoding, file) = encoded(&mut random)?;
            let file = mutated(file, &mut random);
            check_edit(&file, &Text::parse_as(&file, encoding), &mut random, &mut tally)?;
            continue;
        }
        let file = mutated(random.pick(CORPUS).copied().unwrap_or_default().to_vec(), &mut random);
        let Ok(text) = Text::parse(&file) else {
            tally.binary += 1;
            continue;
        };
        check_edit(&file, &text, &mut random, &mut tally)?;
        check_cell(&text, &mut random)?;
        check_pages(&file, &text, &mut random)?;
    }
    let Tally { applied, refused, binary, encodings } = tally;
    let encodings: Vec<_> = encodings.iter().map(|(name, count)| format!("{name} {count}")).collect();
    Ok(format!(
        "{applied} edits applied ({}), {refused} refused with a reason, {binary} files are binary",
        encodings.join(", ")
    ))
}

#[derive(Default)]
struct Tally {
    applied: u64,
    refused: u64,
    binary: u64,
    /// How many edits applied to files of each encoding.
    encodings: BTreeMap<String, u64>,
}

fn check_edit(file: &[u8], text: &Text<'_>, random: &mut Random, tally: &mut Tally) -> anyhow::Result<()> {
    let (old_str, new_str) = (piece(text.body(), random), piece(text.body(), random));
    let select = match random.below(4) {
        0 => Select::Unique,
        1 => Select::All,
        2 => Select::Count(1 + random.below(3) as u64),
        _ => Select::Near(1 + random.below(20) as u64),
    };
    match plan(text, &Replacement { old_str: &old_str, new_str: &new_str, select }) {
        Ok(edit) => {
            tally.applied += 1;
            *tally.encodings.entry(text.encoding().to_string()).or_default() += 1;
            let what = || format!("{file:?} with {old_str:?} for {new_str:?}");
            ensure!(edit.changed == (edit.bytes != file), "changed is wrong: {}", what());
            ensure!(stays_outside(file, text, &old_str, &edit), "bytes outside the span changed: {}", what());
            ensure!(keeps_endings(text, &old_str, &new_str, &edit), "other line endings came in: {}", what());
            let diff = Diff::of_files(file, &edit.bytes);
            ensure!(diff.is_empty() != edit.changed, "the diff does not tell of the change: {}", what());
        }
        Err(error) => {
            tally.refused += 1;
            ensure!(!error.to_string().is_empty(), "an error says nothing: {error:?}");
            let occurs = !old_str.is_empty() && text.body().contains(&old_str);
            let is_denied = matches!(error, EditError::NoMatch(_)) && occurs;
            ensure!(!is_denied, "{old_str:?} is in {file:?}");
        }
    }
    Ok(())
}

/// Whether all that stood outside the replaced places stands there still, byte for byte and in its order.
fn stays_outside(file: &[u8], text: &Text<'_>, old_str: &str, edit: &Edit) -> bool {
    let Some(found) = find(text.body(), old_str) else { return false };
    let all = found.disjoint();
    // One of several places, or every one: whichever was meant, the rest of the file is as it was.
    let mut selections: Vec<Vec<_>> = found.spans.iter().map(|span| vec![span.clone()]).collect();
    if edit.replacements.len() > 1 {
        selections = vec![all];
    }
    selections.into_iter().any(|spans| {
        let places: Option<Vec<_>> = spans.into_iter().map(|span| text.original_span(span)).collect();
        let Some(places) = places else { return false };
        let starts = std::iter::once(0).chain(places.iter().map(|place| place.end));
        let ends = places.iter().map(|place| place.start).chain([file.len()]);
        let pieces: Option<Vec<&[u8]>> = starts.zip(ends).map(|(start, end)| file.get(start..end)).collect();
        places.len() == edit.replacements.len()
            && pieces.is_some_and(|pieces| has_pieces(&edit.bytes, &pieces))
    })
}

/// Whether a file with line endings of one kind has no others afterwards. Lone returns are left out: one that comes to
/// stand before a newline makes an ending of it, as anybody would expect.
fn keeps_endings(text: &Text<'_>, old_str: &str, new_str: &str, edit: &Edit) -> bool {
    let plain = |text: &str| text.replace("\r\n", "\n");
    let lone = [text.body(), old_str, new_str].into_iter().any(|text| plain(text).contains('\r'));
    let changes_only_endings = old_str != new_str && plain(old_str) == plain(new_str);
    let before = text.eol();
    if lone || changes_only_endings || !matches!(before, Eol::Lf | Eol::Crlf) {
        return true;
    }
    let after = Text::parse_as(&edit.bytes, text.encoding()).eol();
    after == before || after == Eol::None
}

/// Whether a file begins with the first piece, ends with the last and has the others between, in this order.
fn has_pieces(file: &[u8], pieces: &[&[u8]]) -> bool {
    let [first, between @ .., last] = pieces else { return false };
    let Some(mut rest) = file.strip_prefix(*first).and_then(|rest| rest.strip_suffix(*last)) else {
        return false;
    };
    between.iter().all(|piece| {
        let at = if piece.is_empty() { Some(0) } else { memchr::memmem::find(rest, piece) };
        at.is_some_and(|at| {
            rest = &rest[at + piece.len()..];
            true
        })
    })
}

/// Changes a cell, if the file still is a notebook: it is one afterwards.
fn check_cell(text: &Text<'_>, random: &mut Random) -> anyhow::Result<()> {
    let Some(notebook) = Notebook::parse(text.body()) else { return Ok(()) };
    ensure!(
        notebook.ids().is_empty() == show(&notebook).is_empty(),
        "a cell is not shown: {:?}",
        text.body()
    );
    let ids = notebook.ids();
    let actions = [CellAction::Replace, CellAction::InsertAfter, CellAction::Delete];
    let asked = CellChange {
        cell_id: random.pick(&ids).map_or("", String::as_str),
        action: random.pick(&actions).copied().unwrap_or_default(),
        cell_type: None,
        old_str: "",
        new_str: "new \"text\"\nof two lines",
        select: Select::Unique,
    };
    if let Ok((bytes, _)) = change(text, &asked) {
        let after = Text::parse_as(&bytes, text.encoding());
        ensure!(Notebook::parse(after.body()).is_some(), "{asked:?} breaks {:?}", text.body());
    }
    Ok(())
}

/// Reads the file in small pages: together they are the file.
fn check_pages(file: &[u8], text: &Text<'_>, random: &mut Random) -> anyhow::Result<()> {
    let limits = Limits { max_bytes: 16 + random.below(64), ..Limits::default() };
    let mut request =
        Request { byte_offset: Some(0), limit: 1 + random.below(4) as u64, limits, ..Request::default() };
    let mut rebuilt = String::new();
    for _ in 0..=file.len() + 1 {
        let Reading::Text(window) = read_window(&mut Cursor::new(file), file.len() as u64, &request)? else {
            anyhow::bail!("{file:?} is text for an edit and binary for a read");
        };
        ensure!(window.encoding == text.encoding(), "{file:?} is read as {}", window.encoding);
        rebuilt.push_str(&window.content);
        match window.next {
            Some(Next::Byte(byte)) => request.byte_offset = Some(byte),
            Some(Next::Line(line)) => anyhow::bail!("a page by bytes goes on at line {line}"),
            None => break,
        }
    }
    ensure!(rebuilt == text.body(), "the pages of {file:?} give {rebuilt:?}");
    Ok(())
}

/// A file in an encoding of its own, with or without mark, and line endings of one kind, of both, or of none.
fn encoded(random: &mut Random) -> anyhow::Result<(Encoding, Vec<u8>)> {
    let (label, lines) = random.pick(ENCODED).copied().unwrap_or_default();
    let encoding = Encoding::from_label(label).with_context(|| format!("{label} is unknown"))?;
    let mut text = String::new();
    for _ in 0..1 + random.below(3) {
        for line in lines.lines() {
            text.push_str(line);
            text.push_str(random.pick(&["\n", "\n", "\r\n", ""]).copied().unwrap_or_default());
        }
    }
    match random.below(3) {
        0 => text = text.replace("\r\n", "\n"),
        1 => text = text.replace("\r\n", "\n").replace('\n', "\r\n"),
        _ => {}
    }
    let mark = if random.once_in(2) { encoding.bom() } else { b"" };
    Ok((encoding, [mark, &encoding.encode(&text)?].concat()))
}

/// A file with some bytes changed, doubled, or taken away.
fn mutated(mut file: Vec<u8>, random: &mut Random) -> Vec<u8> {
    const ODD: &[&[u8]] = &[
        b"\r\n",
        b"\n",
        b"\r",
        b"\t",
        b" ",
        b"\xff",
        b"a",
        "é".as_bytes(),
        "\u{feff}".as_bytes(),
        b"\0",
        b"\x82",
    ];
    for _ in 0..random.below(6) {
        let at = random.below(file.len() + 1);
        let end = (at + random.below(8)).min(file.len());
        match random.below(3) {
            0 => drop(file.drain(at..end)),
            1 => {
                let part = file.get(at..end).unwrap_or_default().to_vec();
                file.splice(at..at, part);
            }
            _ => {
                let odd = random.pick(ODD).copied().unwrap_or_default();
                file.splice(at..at, odd.iter().copied());
            }
        }
    }
    file
}

/// A piece of a text, now and then with something else in it.
fn piece(text: &str, random: &mut Random) -> String {
    const ODD: &[&str] = &["", "\n", "\r\n", "x", "\t", "$&", " \u{a0}", "\\n"];
    let start = text.floor_char_boundary(random.below(text.len() + 1));
    let end = text.ceil_char_boundary((start + random.below(12)).min(text.len()));
    let mut piece = text.get(start..end).unwrap_or_default().to_owned();
    if random.once_in(3) {
        let at = piece.floor_char_boundary(random.below(piece.len() + 1));
        piece.insert_str(at, random.pick(ODD).copied().unwrap_or_default());
    }
    piece
}
