use super::*;
use crate::engine::edit::Select;
use crate::engine::text::Text;

/// A notebook as Jupyter writes it, whose ids and order disagree.
const NOTEBOOK: &str = r##"{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "cell-2",
   "metadata": {},
   "source": [
    "# Title\n",
    "text"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 3,
   "id": "cell-1",
   "metadata": {"scrolled":   true},
   "outputs": [
    {
     "name": "stdout",
     "output_type": "stream",
     "text": [
      "hello\n"
     ]
    }
   ],
   "source": [
    "print('hello')"
   ]
  }
 ],
 "metadata": {"kernelspec":{"name":"python3"}},
 "nbformat": 4,
 "nbformat_minor": 5
}
"##;

fn of(cell_id: &str, action: CellAction) -> CellChange<'_> {
    CellChange { cell_id, action, cell_type: None, old_str: "", new_str: "", select: Select::Unique }
}

#[track_caller]
fn changed(notebook: &str, change: &CellChange<'_>) -> String {
    let (bytes, _) = super::change(&Text::parse(notebook.as_bytes()).unwrap(), change).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    assert!(Notebook::parse(&text).is_some(), "it is no notebook any more: {text}");
    text
}

/// Checks that a change replaces `old` by `new` in the JSON and leaves every other byte.
#[track_caller]
fn check(notebook: &str, change: &CellChange<'_>, old: &str, new: &str) {
    assert_eq!(notebook.matches(old).count(), 1, "{old}");
    assert_eq!(changed(notebook, change), notebook.replace(old, new));
}

#[test]
fn a_cell_is_shown_with_its_id_and_its_outputs() {
    let shown = show(&Notebook::parse(NOTEBOOK).unwrap());
    assert_eq!(
        shown,
        "=== cell 1 of 2: markdown, cell_id cell-2\n# Title\ntext\n\
         === cell 2 of 2: code, cell_id cell-1, run as [3]\nprint('hello')\n--- stdout\nhello\n"
    );
}

#[test]
fn the_source_of_a_cell_is_replaced_and_nothing_else() {
    let change = CellChange { new_str: "a = \"é\"\nb\n", ..of("cell-1", CellAction::Replace) };
    let (old, new) = ("    \"print('hello')\"\n", "    \"a = \\\"é\\\"\\n\",\n    \"b\\n\"\n");
    check(NOTEBOOK, &change, old, new);
    let change = CellChange { old_str: "hello", new_str: "world", ..of("cell-1", CellAction::Replace) };
    check(NOTEBOOK, &change, "print('hello')", "print('world')");
    let empty = of("cell-1", CellAction::Replace);
    check(NOTEBOOK, &empty, "\"source\": [\n    \"print('hello')\"\n   ]", "\"source\": []");
}

#[test]
fn a_cell_is_put_after_the_one_with_the_id() {
    let change = CellChange { new_str: "x = 1", ..of("cell-2", CellAction::InsertAfter) };
    let text = changed(NOTEBOOK, &change);
    let ids = Notebook::parse(&text).unwrap().ids();
    assert_eq!((ids[0].as_str(), ids[2].as_str(), ids[1].len()), ("cell-2", "cell-1", 8));
    let cell = format!(
        ",\n  {{\n   \"cell_type\": \"code\",\n   \"execution_count\": null,\n   \"id\": \"{}\",\n   \
         \"metadata\": {{}},\n   \"outputs\": [],\n   \"source\": [\n    \"x = 1\"\n   ]\n  }}",
        ids[1]
    );
    assert_eq!(text.replacen(&cell, "", 1), NOTEBOOK);
}

#[test]
fn a_cell_is_put_before_the_first_and_into_none() {
    let change = CellChange {
        new_str: "# New",
        cell_type: Some(CellType::Markdown),
        ..of("", CellAction::InsertAfter)
    };
    let text = changed(NOTEBOOK, &change);
    assert_eq!(Notebook::parse(&text).unwrap().ids()[1..], ["cell-2", "cell-1"]);
    assert!(!text.get(..text.find("cell-2").unwrap()).unwrap().contains("outputs"));
    let empty = "{\n \"cells\": [],\n \"metadata\": {},\n \"nbformat\": 4,\n \"nbformat_minor\": 2\n}\n";
    let text = changed(empty, &change);
    assert_eq!(
        text,
        "{\n \"cells\": [\n  {\n   \"cell_type\": \"markdown\",\n   \"metadata\": {},\n   \"source\": [\n    \
         \"# New\"\n   ]\n  }\n ],\n \"metadata\": {},\n \"nbformat\": 4,\n \"nbformat_minor\": 2\n}\n"
    );
}

#[test]
fn a_cell_is_taken_away() {
    let first = changed(NOTEBOOK, &of("cell-2", CellAction::Delete));
    assert_eq!(Notebook::parse(&first).unwrap().ids(), ["cell-1"]);
    assert!(first.starts_with("{\n \"cells\": [\n  {\n   \"cell_type\": \"code\""));
    let last = changed(NOTEBOOK, &of("cell-1", CellAction::Delete));
    assert!(last.contains("    \"text\"\n   ]\n  }\n ],\n \"metadata\""), "{last}");
    let none = changed(&last, &of("cell-2", CellAction::Delete));
    assert!(none.contains("\"cells\": [],"), "{none}");
}

#[test]
fn a_cell_of_another_type_has_no_outputs() {
    let change = CellChange {
        cell_type: Some(CellType::Markdown),
        new_str: "now prose",
        ..of("cell-1", CellAction::Replace)
    };
    let text = changed(NOTEBOOK, &change);
    assert!(!text.contains("outputs") && !text.contains("execution_count"), "{text}");
    assert!(text.contains("\"scrolled\": true"), "{text}");
}

#[test]
fn a_notebook_on_one_line_with_escapes_stays_so() {
    let line =
        r#"{"cells": [{"cell_type": "code", "source": "x = '\u00e9'"}], "nbformat": 4, "nbformat_minor": 2}"#;
    let change = CellChange { old_str: "x", new_str: "ü📝", ..of("#1", CellAction::Replace) };
    check(line, &change, r"x = '\u00e9'", r"\u00fc\ud83d\udcdd = '\u00e9'");
}

#[test]
fn what_is_not_there_is_said() {
    let text = Text::parse(NOTEBOOK.as_bytes()).unwrap();
    let said = |change: &CellChange<'_>| super::change(&text, change).unwrap_err().to_string();
    let missing = said(&of("cell-3", CellAction::Delete));
    assert!(missing.contains("cell-2, cell-1"), "{missing}");
    let change = CellChange { old_str: "goodbye", ..of("cell-1", CellAction::Replace) };
    assert!(said(&change).starts_with("cell cell-1: old_str does not occur"), "{}", said(&change));
    let twice = NOTEBOOK.replace("cell-1", "cell-2");
    let error = super::change(&Text::parse(twice.as_bytes()).unwrap(), &of("cell-2", CellAction::Delete));
    assert!(matches!(error, Err(CellError::Ambiguous { count: 2, .. })));
    let plain = super::change(&Text::parse(b"{}").unwrap(), &of("a", CellAction::Delete));
    assert_eq!(plain, Err(CellError::NoNotebook));
}
