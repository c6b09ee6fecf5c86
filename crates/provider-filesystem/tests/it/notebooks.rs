//! Notebooks are read as cells and changed cell by cell; PDF documents are read as pages.

use serde_json::{Value, json};

use crate::sandbox::{Sandbox, contains, refused};

/// Two cells whose ids and order disagree, laid out as nobody's printer would.
const NOTEBOOK: &str = r##"{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "cell-2",
   "metadata": {},
   "source": ["# Title"]
  },
  {
   "cell_type": "code", "execution_count": 1,
   "id": "cell-1",
   "metadata": {"a":   1},
   "outputs": [{"output_type": "stream", "name": "stdout", "text": ["hello\n"]},
     {"output_type": "display_data", "data": {"image/png": "iVBORw0KGgo=", "text/plain": "<Figure>"}, "metadata": {}}],
   "source": [
    "x = 1\n",
    "print(x)"
   ]
  }
 ],
 "metadata": {},   "nbformat": 4,
 "nbformat_minor": 5
}
"##;

async fn notebook() -> Sandbox {
    let sandbox = Sandbox::new().await;
    sandbox.put("n.ipynb", NOTEBOOK);
    sandbox
}

/// Changes a cell; what is not given is empty.
async fn change(sandbox: &Sandbox, extra: Value) -> provider_core::testing::Outcome {
    let mut arguments = json!({"path": "n.ipynb", "old_str": "", "new_str": ""});
    arguments.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    sandbox.change("edit_file", arguments).await
}

fn ids(sandbox: &Sandbox) -> Vec<String> {
    let notebook: Value = serde_json::from_slice(&sandbox.bytes("n.ipynb")).unwrap();
    let id = |cell: &Value| cell["id"].as_str().unwrap().to_owned();
    notebook["cells"].as_array().unwrap().iter().map(id).collect()
}

#[tokio::test]
async fn a_notebook_is_read_as_cells() {
    let sandbox = notebook().await;
    let page = sandbox.read(json!({"path": "n.ipynb"})).await;
    assert_eq!((&page["kind"], &page["total_bytes"]), (&json!("notebook"), &json!(NOTEBOOK.len())));
    let content = page["content"].as_str().unwrap();
    contains(
        content,
        &["cell_id cell-2\n# Title\n", "cell_id cell-1", "x = 1\nprint(x)\n", "hello", "<Figure>"],
    );
    contains(content, &["[image/png, 12 characters, not shown]"]);
    let rest = sandbox.read(json!({"path": "n.ipynb", "offset": 2, "limit": 1})).await;
    assert_eq!((&rest["content"], &rest["next_offset"]), (&json!("# Title\n"), &json!(3)));
    let raw = sandbox.read(json!({"path": "n.ipynb", "byte_offset": 0})).await;
    assert_eq!((&raw["kind"], &raw["content"]), (&json!("text"), &json!(NOTEBOOK)));
}

#[tokio::test]
async fn what_is_only_named_like_a_notebook_is_text() {
    let sandbox = Sandbox::new().await;
    sandbox.put("n.ipynb", "{\"a\": 1}\n");
    assert_eq!(sandbox.read(json!({"path": "n.ipynb"})).await["kind"], "text");
    let outcome = change(&sandbox, json!({"cell_id": "a"})).await;
    contains(&outcome.error().message, &["no notebook"]);
}

#[tokio::test]
async fn a_cell_is_inserted_by_id_not_by_position() {
    let sandbox = notebook().await;
    let insert = json!({"cell_id": "cell-2", "cell_action": "insert_after", "new_str": "y = 2\n"});
    change(&sandbox, insert).await.payload();
    let ids = ids(&sandbox);
    assert_eq!((ids.len(), ids[0].as_str(), ids[2].as_str()), (3, "cell-2", "cell-1"));
}

#[tokio::test]
async fn a_change_of_a_cell_leaves_all_other_json_as_it_is() {
    let sandbox = notebook().await;
    let outcome =
        change(&sandbox, json!({"cell_id": "cell-1", "old_str": "x = 1", "new_str": "x = \"é\""})).await;
    assert_eq!(outcome.payload()["replacements"], json!([{"start_line": 1, "end_line": 1}]));
    let expected = NOTEBOOK.replace("x = 1", "x = \\\"é\\\"");
    assert_eq!(String::from_utf8(sandbox.bytes("n.ipynb")).unwrap(), expected);
    change(&sandbox, json!({"cell_id": "cell-2", "cell_action": "delete"})).await.payload();
    assert_eq!(ids(&sandbox), ["cell-1"]);
    let whole = json!({"cell_id": "cell-1", "new_str": "now prose", "cell_type": "markdown"});
    change(&sandbox, whole).await.payload();
    let notebook: Value = serde_json::from_slice(&sandbox.bytes("n.ipynb")).unwrap();
    assert_eq!(notebook["cells"][0]["source"], json!(["now prose"]));
    assert_eq!(notebook["cells"][0].get("outputs"), None);
}

#[tokio::test]
async fn what_is_wrong_with_a_change_of_a_cell_is_said() {
    let sandbox = notebook().await;
    let outcome = change(&sandbox, json!({"cell_id": "cell-9"})).await;
    assert_eq!(outcome.error().category, "not_found");
    contains(&outcome.error().message, &["cell-9", "cell-2, cell-1"]);
    let outcome = change(&sandbox, json!({"cell_id": "cell-1", "old_str": "x = 1\nprint(y)"})).await;
    contains(&refused(&outcome, "execution_failed", "no_match"), &["cell cell-1", "print(x)"]);
    let outcome = change(&sandbox, json!({"cell_action": "delete"})).await;
    contains(&outcome.error().message, &["cell_id"]);
    let outcome = sandbox.edit("n.ipynb", "x = 1\nprint(x)", "y").await;
    contains(
        &refused(&outcome, "execution_failed", "no_match"),
        &["in the source of the cell cell-1", "as cell_id", "nothing was changed"],
    );
    let outcome = sandbox.edit("n.ipynb", "x = 17", "y").await;
    contains(&refused(&outcome, "execution_failed", "no_match"), &["pass cell_id"]);
}

/// A document of one page that says `Hello page`.
fn pdf() -> Vec<u8> {
    let stream = "BT /F1 12 Tf 72 720 Td (Hello page) Tj ET";
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>"
            .to_owned(),
        format!("<< /Length {} >>\nstream\n{stream}\nendstream", stream.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
    ];
    let mut pdf = "%PDF-1.4\n".to_owned();
    let mut table = format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for (number, object) in (1..).zip(&objects) {
        table += &format!("{:010} 00000 n \n", pdf.len());
        pdf += &format!("{number} 0 obj\n{object}\nendobj\n");
    }
    let start = pdf.len();
    pdf += &format!("{table}trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n");
    pdf.into_bytes()
}

#[tokio::test]
async fn a_pdf_is_read_as_the_text_of_its_pages() {
    let sandbox = Sandbox::new().await;
    sandbox.put("paper.txt", pdf());
    let page = sandbox.read(json!({"path": "paper.txt"})).await;
    assert_eq!((&page["kind"], &page["content"]), (&json!("pdf"), &json!("=== page 1 of 1\nHello page\n")));
    let last = sandbox.read(json!({"path": "paper.txt", "offset": -1})).await;
    assert_eq!(last["content"], "Hello page\n");
}

#[tokio::test]
async fn a_broken_pdf_is_said_to_be_one() {
    let sandbox = Sandbox::new().await;
    for length in [9, 60, 300, pdf().len() - 20] {
        sandbox.put("cut.pdf", &pdf()[..length]);
        let page = sandbox.read(json!({"path": "cut.pdf"})).await;
        assert_eq!(page["kind"], "pdf", "cut at {length}");
        if length < 100 {
            contains(page["content"].as_str().unwrap(), &["bytes; its text cannot be read"]);
        }
    }
}
