//! Changing one cell of a notebook.

use std::ops::Range;

use serde_json::{Value, json};

use super::json::Node;
use super::{CellType, Notebook};
use crate::engine::edit::{EditError, LineRange, Replacement, Select, plan};
use crate::engine::text::{SpliceError, Text, count_lines};

/// What to do with a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CellAction {
    /// Replace text in its source, or the whole source.
    #[default]
    Replace,
    /// Put a new cell after it; with an empty id before the first.
    InsertAfter,
    /// Take it away.
    Delete,
}

/// A change of one cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellChange<'a> {
    /// The cell's own id, or `#n` for the n-th cell where it has none.
    pub cell_id: &'a str,
    /// What to do.
    pub action: CellAction,
    /// What kind of cell it is to be; `None` leaves it, and means code for a new one.
    pub cell_type: Option<CellType>,
    /// The text to replace in its source; empty for all of it.
    pub old_str: &'a str,
    /// The text to put there.
    pub new_str: &'a str,
    /// Which occurrences of the old text are meant.
    pub select: Select,
}

/// Why a cell cannot be changed. The message says what to do next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CellError {
    /// The file is no notebook.
    #[error("cell_id was given, but the file is no notebook (JSON with cells and nbformat)")]
    NoNotebook,
    /// There is no such cell.
    #[error("the notebook has no cell with the id {id:?}; nothing was changed. {}", known_ids(.known))]
    NoCell {
        /// The id that was asked for.
        id: String,
        /// The ids there are.
        known: Vec<String>,
    },
    /// Several cells have the id.
    #[error(
        "{count} cells of the notebook have the id {id:?}, so it names none; nothing was changed. Edit the JSON \
             itself, without cell_id"
    )]
    Ambiguous {
        /// The id that was asked for.
        id: String,
        /// How many cells have it.
        count: usize,
    },
    /// The text cannot be replaced in the cell's source.
    #[error("cell {id}: {error}")]
    Edit {
        /// The cell.
        id: String,
        /// What is wrong, said of the cell's source.
        error: EditError,
    },
    /// The file's encoding does not allow it.
    #[error(transparent)]
    Encoding(#[from] SpliceError),
}

fn known_ids(known: &[String]) -> String {
    const MOST: usize = 50;
    if known.is_empty() {
        return "It has no cells: insert one with cell_action: insert_after and an empty cell_id".to_owned();
    }
    let more = if known.len() > MOST { ", …" } else { "" };
    let shown: Vec<&str> = known.iter().take(MOST).map(String::as_str).collect();
    format!("Its cells, in order: {}{more}", shown.join(", "))
}

/// The whole new file, and which lines of the cell's source are new.
///
/// # Errors
/// [`CellError`] when it is not certain what is to be changed.
pub fn change(text: &Text<'_>, change: &CellChange<'_>) -> Result<(Vec<u8>, Vec<LineRange>), CellError> {
    let notebook = Notebook::parse(text.body()).ok_or(CellError::NoNotebook)?;
    let index = notebook.locate(change)?;
    let style = Style::of(&notebook);
    let (span, new, lines) = match (change.action, index) {
        (CellAction::InsertAfter, at) => notebook.insertion(change, at, &style),
        (CellAction::Delete, Some(at)) => (notebook.whole_element(at), String::new(), Vec::new()),
        (CellAction::Replace, Some(at)) => notebook.replacement(change, at, &style)?,
        (_, None) => return Err(notebook.no_cell(change)),
    };
    Ok((text.splice(&[(span, new)])?, lines))
}

impl Notebook<'_> {
    /// The index of the cell that is meant; `None` for the place before the first.
    fn locate(&self, change: &CellChange<'_>) -> Result<Option<usize>, CellError> {
        if change.cell_id.is_empty() && change.action == CellAction::InsertAfter {
            return Ok(None);
        }
        let ids = self.ids();
        let mut found =
            ids.iter().enumerate().filter(|(_, id)| *id == change.cell_id).map(|(index, _)| index);
        match (found.next(), found.count()) {
            (Some(index), 0) => Ok(Some(index)),
            (Some(_), more) => Err(CellError::Ambiguous { id: change.cell_id.to_owned(), count: more + 1 }),
            (None, _) => Err(self.no_cell(change)),
        }
    }

    fn no_cell(&self, change: &CellChange<'_>) -> CellError {
        CellError::NoCell { id: change.cell_id.to_owned(), known: self.ids() }
    }

    /// The new text of a part of the cell at `at`.
    fn replacement(
        &self,
        change: &CellChange<'_>,
        at: usize,
        style: &Style,
    ) -> Result<(Range<usize>, String, Vec<LineRange>), CellError> {
        let Some(cell) = self.cells().get(at) else { return Err(self.no_cell(change)) };
        let (source_span, old) = self.source(cell).unwrap_or((cell.span.end..cell.span.end, String::new()));
        let (source, lines) = match change.old_str {
            "" => (change.new_str.to_owned(), whole(change.new_str)),
            _ => edited(&old, change)?,
        };
        let value = cell.value(self.text).unwrap_or_default();
        let is_other = |wanted: &CellType| value["cell_type"] != wanted.name();
        if let Some(kind) = change.cell_type.filter(is_other) {
            return Ok((cell.span.clone(), style.print(&retyped(value, kind, &source), 2), lines));
        }
        if source_span.is_empty() {
            let mut value = value;
            value["source"] = lines_of(&source);
            return Ok((cell.span.clone(), style.print(&value, 2), lines));
        }
        let stored_as_text = cell.get("source").is_some_and(|source| source.elements().is_none());
        let stored = if stored_as_text { Value::from(source) } else { lines_of(&source) };
        Ok((source_span, style.print(&stored, 3), lines))
    }

    /// A new cell and where it goes.
    fn insertion(
        &self,
        change: &CellChange<'_>,
        after: Option<usize>,
        style: &Style,
    ) -> (Range<usize>, String, Vec<LineRange>) {
        let mut cell = json!({"metadata": {}, "source": lines_of(change.new_str)});
        if self.has_ids {
            cell["id"] = Value::from(self.fresh_id(change));
        }
        let cell = style.print(&retyped(cell, change.cell_type.unwrap_or(CellType::Code), change.new_str), 2);
        let lines = whole(change.new_str);
        let (between, close) = (style.line(2), style.line(1));
        if let Some(before) = after.and_then(|index| self.cells().get(index)) {
            return (before.span.end..before.span.end, format!(",{between}{cell}"), lines);
        }
        match self.cells().first() {
            Some(first) => (first.span.start..first.span.start, format!("{cell},{between}"), lines),
            None => (self.cells.span.clone(), format!("[{between}{cell}{close}]"), lines),
        }
    }

    /// An id that no cell has. It depends on nothing but the notebook and the change, so that a preview and the call
    /// agree on it.
    fn fresh_id(&self, change: &CellChange<'_>) -> String {
        use sha2::{Digest as _, Sha256};
        let known = self.ids();
        let id = |salt: u32| {
            let hash = Sha256::new()
                .chain_update(self.text)
                .chain_update(change.new_str)
                .chain_update(salt.to_le_bytes())
                .finalize();
            hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect::<String>()
        };
        (0..).map(id).find(|id| !known.contains(id)).unwrap_or_default()
    }

    /// The cell at `at` with the comma and the blanks that part it from its neighbour.
    fn whole_element(&self, at: usize) -> Range<usize> {
        let end_of = |index: usize| self.cells().get(index).map(|cell| cell.span.end);
        let start_of = |index: usize| self.cells().get(index).map(|cell| cell.span.start);
        let (start, end) = (start_of(at).unwrap_or(0), end_of(at).unwrap_or(0));
        match (at.checked_sub(1).and_then(end_of), start_of(at + 1)) {
            (_, Some(next)) => start..next,
            (Some(previous), None) => previous..end,
            // The only one: an empty list is left.
            (None, None) => self.cells.span.start + 1..self.cells.span.end - 1,
        }
    }
}

/// The source of a cell with a text replaced in it.
fn edited(source: &str, change: &CellChange<'_>) -> Result<(String, Vec<LineRange>), CellError> {
    let refused = |error| CellError::Edit { id: change.cell_id.to_owned(), error };
    let replacement = Replacement { old_str: change.old_str, new_str: change.new_str, select: change.select };
    let edit = plan(&Text::of_str(source), &replacement).map_err(refused)?;
    Ok((String::from_utf8_lossy(&edit.bytes).into_owned(), edit.replacements))
}

fn whole(text: &str) -> Vec<LineRange> {
    vec![LineRange { start_line: 1, end_line: count_lines(text.as_bytes()).max(1) }]
}

/// A text as notebooks store it: a list of lines with their ends.
fn lines_of(text: &str) -> Value {
    text.split_inclusive('\n').collect()
}

/// A cell of another type: only code is run and has outputs.
fn retyped(mut cell: Value, kind: CellType, source: &str) -> Value {
    cell["cell_type"] = Value::from(kind.name());
    cell["source"] = lines_of(source);
    if let Some(members) = cell.as_object_mut() {
        if kind == CellType::Code {
            members.entry("execution_count").or_insert(Value::Null);
            members.entry("outputs").or_insert(json!([]));
        } else {
            members.remove("execution_count");
            members.remove("outputs");
        }
    }
    cell
}

/// How a notebook lays out its JSON.
struct Style {
    /// What ends a line; empty when everything is on one line.
    newline: &'static str,
    /// The indentation of one level.
    indent: String,
    /// Whether characters beyond ASCII are written as escapes.
    ascii: bool,
}

impl Style {
    /// The layout of the list of cells: its elements are two levels deep.
    fn of(notebook: &Notebook<'_>) -> Self {
        let text = notebook.text;
        let first = notebook.cells().first().map_or(notebook.cells.span.start, |cell: &Node| cell.span.start);
        let levels = if notebook.cells().is_empty() { 1 } else { 2 };
        let before = text.get(..first).unwrap_or_default();
        let newline = match before.rfind('\n') {
            None => "",
            Some(at) if before.get(..at).is_some_and(|line| line.ends_with('\r')) => "\r\n",
            Some(_) => "\n",
        };
        let line = before.rsplit('\n').next().unwrap_or_default();
        let blanks = line.len() - line.trim_start_matches([' ', '\t']).len();
        let indent = line.get(..blanks / levels).unwrap_or_default().to_owned();
        Self { newline, indent, ascii: text.is_ascii() && has_wide_escape(text) }
    }

    /// A line break and the indentation of a level.
    fn line(&self, level: usize) -> String {
        if self.newline.is_empty() {
            String::new()
        } else {
            self.newline.to_owned() + &self.indent.repeat(level)
        }
    }

    /// `value`, the first line of which stands on a line of `level`.
    fn print(&self, value: &Value, level: usize) -> String {
        let list = |open: char, parts: Vec<String>, close: char| {
            let (inner, outer) = (self.line(level + 1), self.line(level));
            let separator = if self.newline.is_empty() { ", ".to_owned() } else { format!(",{inner}") };
            format!("{open}{inner}{}{outer}{close}", parts.join(&separator))
        };
        match value {
            Value::Array(items) if !items.is_empty() => {
                list('[', items.iter().map(|item| self.print(item, level + 1)).collect(), ']')
            }
            Value::Object(members) if !members.is_empty() => {
                let member = |(key, value): (&String, &Value)| {
                    format!("{}: {}", self.string(key), self.print(value, level + 1))
                };
                list('{', members.iter().map(member).collect(), '}')
            }
            Value::String(text) => self.string(text),
            other => other.to_string(),
        }
    }

    fn string(&self, text: &str) -> String {
        let plain = Value::from(text).to_string();
        if !self.ascii {
            return plain;
        }
        let escaped = |c: char| match c {
            c if c.is_ascii() => c.to_string(),
            c => c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
        };
        plain.chars().map(escaped).collect()
    }
}

/// Whether a JSON text writes a character beyond ASCII as an escape.
fn has_wide_escape(text: &str) -> bool {
    text.match_indices("\\u").any(|(at, _)| {
        let digits = text.get(at + 2..at + 6).and_then(|digits| u16::from_str_radix(digits, 16).ok());
        digits.is_some_and(|unit| unit > 0x7f)
    })
}
