//! Code as it stands in a page: exactly, with its language where the page says it.

use super::tag::Tag;
use super::tree::{Id, Name, Tree};

/// The characters of a block of code, without what is left out.
pub(super) fn block(tree: &Tree, id: Id, is_left_out: impl Fn(Id) -> bool) -> String {
    let mut code = String::new();
    for node in tree.descendants(id, &is_left_out) {
        if is_left_out(node) {
            continue;
        }
        match tree.tag(node) {
            None => push_exactly(&mut code, tree.own_text(node).unwrap_or_default()),
            Some(Tag::Br) => code.push('\n'),
            // Variants of the same code.
            Some(Tag::Code) if tree.parent(node) == id && !code.is_empty() => {
                code.truncate(code.trim_end().len());
                code.push_str("\n\n");
            }
            // Some pages make every line of code an element of its own.
            Some(tag) if tag.is_block() && !matches!(tag, Tag::Td | Tag::Th) => {
                if !code.is_empty() && !code.ends_with('\n') {
                    code.push('\n');
                }
            }
            Some(_) => {}
        }
    }
    code.truncate(code.trim_end().len());
    // Empty lines before the code are no indentation of it.
    let start = code.len() - code.trim_start_matches('\n').len();
    code.split_off(start)
}

/// Text with the blanks that code needs: those that only look like blanks would not compile.
fn push_exactly(code: &mut String, text: &str) {
    for piece in text.split_inclusive('\u{a0}') {
        match piece.strip_suffix('\u{a0}') {
            Some(piece) => {
                code.push_str(piece);
                code.push(' ');
            }
            None => code.push_str(piece),
        }
    }
}

/// The characters of code inside a line, with blanks as one.
pub(super) fn inline(tree: &Tree, id: Id, is_left_out: impl Fn(Id) -> bool) -> String {
    let mut code = String::new();
    for node in tree.descendants(id, &is_left_out) {
        if is_left_out(node) {
            continue;
        }
        let text = match tree.tag(node) {
            None => tree.own_text(node).unwrap_or_default(),
            Some(Tag::Br) => " ",
            Some(_) => continue,
        };
        for piece in text.split_inclusive(|c: char| c.is_whitespace() || c == '\u{200b}') {
            let word = piece.trim_end_matches(|c: char| c.is_whitespace() || c == '\u{200b}');
            code.push_str(word);
            let has_blank = piece.ends_with(char::is_whitespace);
            if has_blank && !code.is_empty() && !code.ends_with(' ') {
                code.push(' ');
            }
        }
    }
    code.truncate(code.trim_end().len());
    code
}

/// The language of a block of code: of the element, of the code in it, of the two around it.
pub(super) fn language(tree: &Tree, id: Id) -> Option<&str> {
    let inner = tree.children(id).find(|child| tree.tag(*child) == Some(Tag::Code));
    let parent = tree.parent(id);
    let around = [Some(id), inner, Some(parent), Some(tree.parent(parent))];
    around.into_iter().flatten().find_map(|id| named_language(tree, id))
}

fn named_language(tree: &Tree, id: Id) -> Option<&str> {
    let said = tree.attribute(id, Name::DataLang).filter(|said| is_language(said));
    if said.is_some() {
        return said;
    }
    const PREFIXES: [&str; 5] = ["language-", "lang-", "highlight-source-", "highlight-text-", "highlight-"];
    // Names that say only that something is code.
    const NO_LANGUAGE: [&str; 8] =
        ["default", "none", "text", "plaintext", "notranslate", "plain", "txt", "console-output"];
    let mut after_marker = false;
    for class in tree.classes(id) {
        let language = PREFIXES.iter().find_map(|prefix| class.strip_prefix(prefix));
        if let Some(language) = language.filter(|language| is_language(language)) {
            return (!NO_LANGUAGE.contains(&language)).then_some(shortened(language));
        }
        if after_marker && is_language(class) && !class.contains("line") {
            return Some(class.trim_end_matches(';'));
        }
        after_marker = matches!(class, "sourceCode" | "brush:" | "hljs" | "prettyprint");
    }
    // What rustdoc writes.
    let is_rust = tree.tag(id) == Some(Tag::Pre) && tree.classes(id).next() == Some("rust");
    is_rust.then_some("rust")
}

/// The name by which a language is known elsewhere.
fn shortened(language: &str) -> &str {
    match language {
        "python3" | "ipython3" => "python",
        "shell-session" => "console",
        language => language,
    }
}

fn is_language(text: &str) -> bool {
    let is_part =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'#' | b'-' | b'.' | b'_' | b';');
    (1..=24).contains(&text.len()) && text.bytes().all(is_part)
}
