//! Tables: those that hold data as Markdown's, those that only arrange a page as the blocks they arrange.
//!
//! Columns are not padded: one long cell would make every line as long.

use super::lines::Gap;
use super::markdown::Writer;
use super::tag::Tag;
use super::tree::{Id, Name};

/// Cells that a cell may stand for.
const MOST_SPANNED: usize = 50;
/// In wider rows cells no longer span: what one cell stands for must not be out of proportion.
const WIDEST: usize = 1_000;
/// Longer cells are not repeated in the lines that they span.
const LONGEST_REPEATED: usize = 80;

struct Row {
    cells: Vec<Id>,
    is_head: bool,
}

/// Writes a table.
pub(super) fn write(writer: &mut Writer<'_>, table: Id) {
    let rows = rows(writer, table);
    let columns = rows.iter().map(|row| row.cells.len()).max().unwrap_or_default();
    let is_layout = columns < 2
        || matches!(writer.tree.attribute(table, Name::Role), Some("presentation" | "none"))
        || rows.iter().flat_map(|row| &row.cells).any(|cell| writer.has_structure(*cell));
    caption(writer, table);
    writer.inline.separate(Gap::Blank);
    if is_layout || writer.inline.one_line {
        arrange(writer, &rows);
    } else {
        tabulate(writer, &rows);
    }
    writer.inline.separate(Gap::Blank);
}

/// The rows of a table, but not of tables in it.
fn rows(writer: &Writer<'_>, table: Id) -> Vec<Row> {
    let tree = writer.tree;
    let mut rows = Vec::new();
    let shown = |id: &Id| !writer.content.is_left_out(*id);
    let mut row = |id: Id, in_head: bool| {
        let is_cell = |id: &Id| matches!(tree.tag(*id), Some(Tag::Td | Tag::Th));
        let cells: Vec<Id> = tree.children(id).filter(is_cell).filter(shown).collect();
        let is_head = in_head || cells.iter().all(|cell| tree.tag(*cell) == Some(Tag::Th));
        if !cells.is_empty() {
            rows.push(Row { cells, is_head });
        }
    };
    for part in tree.children(table).filter(shown) {
        match tree.tag(part) {
            Some(Tag::Tr) => row(part, false),
            Some(tag @ (Tag::Thead | Tag::Tbody | Tag::Tfoot)) => {
                let is_row = |id: &Id| tree.tag(*id) == Some(Tag::Tr);
                tree.children(part).filter(is_row).filter(shown).for_each(|id| row(id, tag == Tag::Thead));
            }
            _ => {}
        }
    }
    rows
}

fn caption(writer: &mut Writer<'_>, table: Id) {
    let tree = writer.tree;
    let is_caption = |id: &Id| tree.tag(*id) == Some(Tag::Caption) && !writer.content.is_left_out(*id);
    if let Some(caption) = tree.children(table).find(is_caption) {
        writer.inline.separate(Gap::Blank);
        writer.children(caption);
    }
}

/// Writes the cells one after the other.
fn arrange(writer: &mut Writer<'_>, rows: &[Row]) {
    for cell in rows.iter().flat_map(|row| &row.cells) {
        if writer.inline.lines.is_full() {
            return;
        }
        writer.inline.separate(Gap::Blank);
        writer.children(*cell);
    }
}

fn tabulate(writer: &mut Writer<'_>, rows: &[Row]) {
    let mut lines = Vec::new();
    let mut above = Vec::new();
    let mut written = 0;
    for row in rows {
        if written >= writer.inline.lines.room() {
            break;
        }
        let line = line(writer, row, &mut above);
        written += line.iter().map(|cell| cell.len() + 3).sum::<usize>();
        lines.push((line, row.is_head));
    }
    let columns = lines.iter().map(|(line, _)| line.len()).max().unwrap_or_default();
    if !writer.is_markdown {
        lines.iter().for_each(|(line, _)| writer.inline.lines.push_lines(line.join("\t").trim_end()));
        return;
    }
    let has_head = lines.first().is_some_and(|(_, is_head)| *is_head);
    if !has_head {
        push_row(writer, &vec![String::new(); columns], columns);
        push_rule(writer, columns);
    }
    for (at, (line, _)) in lines.iter().enumerate() {
        push_row(writer, line, if at == 0 { columns } else { line.len() });
        if at == 0 && has_head {
            push_rule(writer, columns);
        }
    }
}

/// The texts of a row's cells: those that span columns are followed by empty ones, those that reach down from rows
/// above stand here too.
fn line(writer: &mut Writer<'_>, row: &Row, above: &mut Vec<Option<(usize, String)>>) -> Vec<String> {
    let mut line = Vec::with_capacity(row.cells.len());
    for cell in &row.cells {
        take_from_above(&mut line, above);
        let most = if line.len() < WIDEST { MOST_SPANNED } else { 1 };
        let span = |name| {
            let said = writer.tree.attribute(*cell, name).and_then(|span| span.trim().parse::<usize>().ok());
            said.unwrap_or(1).clamp(1, most)
        };
        let (columns, down) = (span(Name::Colspan), span(Name::Rowspan));
        let text = writer.cell(*cell);
        for column in 0..columns {
            let text = if column == 0 { text.clone() } else { String::new() };
            if down > 1 {
                let repeated = if text.len() <= LONGEST_REPEATED { text.clone() } else { String::new() };
                if above.len() <= line.len() {
                    above.resize(line.len() + 1, None);
                }
                above[line.len()] = Some((down - 1, repeated));
            }
            line.push(text);
        }
    }
    take_from_above(&mut line, above);
    line
}

/// Adds the cells that reach down to this place.
fn take_from_above(line: &mut Vec<String>, above: &mut [Option<(usize, String)>]) {
    while let Some(slot) = above.get_mut(line.len())
        && let Some((rows, text)) = slot
    {
        line.push(text.clone());
        *rows -= 1;
        if *rows == 0 {
            *slot = None;
        }
    }
}

fn push_row(writer: &mut Writer<'_>, line: &[String], columns: usize) {
    let mut row = String::from("|");
    for at in 0..columns {
        let cell = line.get(at).map(String::as_str).unwrap_or_default();
        row.push(' ');
        row.push_str(cell);
        if !cell.is_empty() {
            row.push(' ');
        }
        row.push('|');
    }
    writer.inline.lines.push_lines(&row);
}

fn push_rule(writer: &mut Writer<'_>, columns: usize) {
    writer.inline.lines.push_lines(&format!("|{}", " --- |".repeat(columns)));
}
