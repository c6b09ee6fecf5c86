//! Jupyter notebooks: read as cells, changed cell by cell. The JSON outside a changed cell stays byte for byte.

mod change;
mod json;
mod show;

use std::ops::Range;

use serde_json::Value;

pub use change::{CellAction, CellChange, CellError, change};
use json::Node;
pub use show::show;

/// A notebook's text with the places of its cells.
#[derive(Debug, Clone)]
pub struct Notebook<'a> {
    text: &'a str,
    cells: Node,
    /// Whether the format has cell ids (nbformat 4.5 and later).
    has_ids: bool,
}

/// What a cell holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellType {
    /// A program.
    Code,
    /// Prose.
    Markdown,
    /// Anything else, passed through.
    Raw,
}

impl CellType {
    /// The name in the file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Markdown => "markdown",
            Self::Raw => "raw",
        }
    }
}

impl<'a> Notebook<'a> {
    /// A notebook is a JSON object with a list of cells and a format number; anything else is `None`.
    #[must_use]
    pub fn parse(text: &'a str) -> Option<Self> {
        // Cheap to see, and false for nearly all files.
        if !text.trim_start().starts_with('{') || !text.contains("\"nbformat\"") {
            return None;
        }
        let root = Node::outline(text)?;
        let number = |name: &str| root.get(name)?.value(text)?.as_u64();
        let major = number("nbformat")?;
        let has_ids = (major, number("nbformat_minor").unwrap_or(0)) >= (4, 5);
        let cells = root.get("cells")?.clone();
        cells.elements()?;
        Some(Self { text, cells, has_ids })
    }

    fn cells(&self) -> &[Node] {
        self.cells.elements().unwrap_or_default()
    }

    /// The ids by which cells are named, in order: their own, or `#n` for the n-th where a cell has none.
    #[must_use]
    pub fn ids(&self) -> Vec<String> {
        let own = |cell: &Node| Some(cell.get("id")?.value(self.text)?.as_str()?.to_owned());
        (1..)
            .zip(self.cells())
            .map(|(number, cell)| own(cell).unwrap_or_else(|| format!("#{number}")))
            .collect()
    }

    /// The ids of the cells whose source has the text in it.
    pub fn cells_with(&self, text: &str) -> Vec<String> {
        let text = text.replace("\r\n", "\n");
        let has = |cell: &Node| self.source(cell).is_some_and(|(_, source)| source.contains(&text));
        self.ids().into_iter().zip(self.cells()).filter(|(_, cell)| has(cell)).map(|(id, _)| id).collect()
    }

    /// The source of the cell at `index`, as one text.
    fn source(&self, cell: &Node) -> Option<(Range<usize>, String)> {
        let source = cell.get("source")?;
        Some((source.span.clone(), joined(&source.value(self.text)?)))
    }
}

/// A text that is stored as a string or as a list of its lines.
fn joined(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests;
