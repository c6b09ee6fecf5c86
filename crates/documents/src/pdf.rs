//! The text of a PDF document, page by page, in bounded memory and time.
//!
//! A PDF says where glyphs are painted, not what the text is; what comes out is what the fonts say the glyphs mean, in
//! the order they are painted. Whoever calls [`read`] contains what a hostile file does beyond that: see there.

use std::fmt::Write as _;

use lopdf::{Document, LoadOptions};

/// More bytes of one stream are not decompressed.
const LARGEST_STREAM: usize = 16 << 20;
/// More pages are not looked at.
const MOST_PAGES: usize = 5_000;

/// What was read of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PdfText {
    /// The text of the pages that were read, each under a line that names it.
    pub text: String,
    /// How many pages were read.
    pub read: usize,
    /// How many there are to read; where there are more, the text says so at its end.
    pub pages: usize,
}

/// Why a document has no text to read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PdfError {
    /// It needs a password.
    #[error("it is encrypted and needs a password")]
    Encrypted,
    /// It is broken, or larger unpacked than is sensible.
    #[error("{0}")]
    Broken(String),
}

/// Reads pages for as long as `wants_more` says of the text so far.
///
/// The parser is not ours: call this on a thread with a large stack, and expect it to panic. Between two pages
/// `wants_more` is asked, so that a time limit can be kept there.
///
/// # Errors
/// [`PdfError`] when there is no document. A page that cannot be read says so in the text.
pub fn read(bytes: &[u8], mut wants_more: impl FnMut(&str) -> bool) -> Result<PdfText, PdfError> {
    let options = LoadOptions::with_max_decompressed_size(LARGEST_STREAM);
    let document = Document::load_mem_with_options(bytes, options).map_err(|error| match error {
        lopdf::Error::InvalidPassword | lopdf::Error::Decryption(_) => PdfError::Encrypted,
        other => PdfError::Broken(other.to_string()),
    })?;
    if document.is_encrypted() {
        return Err(PdfError::Encrypted);
    }
    let all = document.page_iter().count();
    let pages = all.min(MOST_PAGES);
    let mut found = PdfText { text: String::new(), read: 0, pages };
    while found.read < pages && wants_more(&found.text) {
        found.read += 1;
        let number = u32::try_from(found.read).unwrap_or(u32::MAX);
        // Writing to a String cannot fail.
        let _ = writeln!(found.text, "=== page {number} of {all}");
        push_page(&mut found.text, &document, number);
    }
    if found.read == pages && pages < all {
        let _ = writeln!(found.text, "[{} more pages are not looked at]", all - pages);
    }
    Ok(found)
}

fn push_page(text: &mut String, document: &Document, number: u32) {
    let start = text.len();
    for chunk in document.extract_text_chunks_with_limit(&[number], LARGEST_STREAM) {
        match chunk {
            Ok(chunk) => text.push_str(&chunk),
            Err(error) => {
                let _ = writeln!(text, "[a part of this page cannot be read: {error}]");
            }
        }
    }
    let page = text.split_off(start);
    // Blanks at the ends of lines are an accident of how the page is laid out.
    let lines = page.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    match lines.trim_matches('\n') {
        "" => text.push_str("[no text on this page]\n"),
        lines => {
            text.push_str(lines);
            text.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A document with one page for each text, in Helvetica.
    fn document(pages: &[&str]) -> Vec<u8> {
        use std::fmt::Write as _;
        let kids: String = (0..pages.len()).map(|page| format!("{} 0 R ", 4 + 2 * page)).collect();
        let mut objects = vec![
            "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
            format!("<< /Type /Pages /Kids [{kids}] /Count {} >>", pages.len()),
            "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
        ];
        for (index, page) in pages.iter().enumerate() {
            let stream = format!("BT /F1 12 Tf 72 720 Td ({page}) Tj ET");
            objects.push(format!(
                "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {} 0 R /Resources << /Font << /F1 3 0 R >> >> >>",
                5 + 2 * index
            ));
            objects.push(format!("<< /Length {} >>\nstream\n{stream}\nendstream", stream.len()));
        }
        let mut pdf = "%PDF-1.4\n".to_owned();
        let mut table = format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
        for (index, object) in objects.iter().enumerate() {
            writeln!(table, "{:010} 00000 n ", pdf.len()).unwrap();
            write!(pdf, "{} 0 obj\n{object}\nendobj\n", index + 1).unwrap();
        }
        let start = pdf.len();
        write!(
            pdf,
            "{table}trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n",
            objects.len() + 1
        )
        .unwrap();
        pdf.into_bytes()
    }

    #[test]
    fn pages_are_read_one_by_one() {
        let pdf = document(&["Hello page", "", "Third page"]);
        let found = read(&pdf, |_| true).unwrap();
        assert_eq!(
            found.text,
            "=== page 1 of 3\nHello page\n=== page 2 of 3\n[no text on this page]\n=== page 3 of 3\nThird page\n"
        );
        let found = read(&pdf, |text| !text.contains("page 2")).unwrap();
        assert_eq!((found.read, found.pages), (2, 3));
    }

    #[test]
    fn broken_documents_are_errors() {
        let pdf = document(&["Hello page"]);
        for cut in [9, 40, pdf.len() / 2] {
            // What is left may still be understood; it must come to an end, and not by a panic.
            let _ = read(&pdf[..cut], |_| true);
        }
        assert!(matches!(read(b"%PDF-1.7\n\xff\xfe\0", |_| true), Err(PdfError::Broken(_))));
    }
}
