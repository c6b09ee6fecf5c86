//! Real pages of documentation, and what they are read as. Where they are from is said beside them.

use std::path::Path;

use provider_web::text::html;
use url::Url;

/// The pages, and where they stand in the web.
const PAGES: [(&str, &str); 7] = [
    ("go", "https://go.dev/ref/mem"),
    ("mdbook-code", "https://doc.rust-lang.org/book/ch03-05-control-flow.html"),
    ("mdbook-tables", "https://doc.rust-lang.org/cargo/reference/build-cache.html"),
    ("node", "https://nodejs.org/api/querystring.html"),
    ("rustdoc", "https://doc.rust-lang.org/std/ops/trait.FnMut.html"),
    ("sphinx", "https://docs.python.org/3/library/tomllib.html"),
    ("texinfo", "https://sourceware.org/libffi/Closure-Example.html"),
];

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pages");

fn path(name: &str, extension: &str) -> std::path::PathBuf {
    Path::new(FOLDER).join(name).with_extension(extension)
}

/// The page and the Markdown that is made of it.
fn converted(name: &str, url: &str) -> (String, String) {
    let page = std::fs::read_to_string(path(name, "html")).unwrap();
    let read = html::read(&page, Some(&Url::parse(url).unwrap()), true);
    (page, read.text)
}

#[test]
fn real_pages_read_as_they_were_approved() {
    for (name, url) in PAGES {
        let (_, text) = converted(name, url);
        let kept = path(name, "md");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&kept, format!("{text}\n")).unwrap();
        }
        let approved = std::fs::read_to_string(&kept).unwrap_or_default();
        let changed = text.lines().zip(approved.lines()).position(|(now, then)| now != then);
        assert!(
            format!("{text}\n") == approved,
            "{name} reads differently from line {:?} on; BLESS=1 writes it anew",
            changed.map(|line| line + 1)
        );
    }
    let kept = std::fs::read_dir(FOLDER).unwrap();
    let files = kept.filter(|entry| entry.as_ref().unwrap().file_name() != "README.md").count();
    assert_eq!(files, 2 * PAGES.len(), "every page here is read");
}

/// The text without what stands between two marks.
fn without(text: &str, from: &str, to: &str) -> String {
    let mut parts = text.split(from);
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |kept, part| kept + part.split_once(to).unwrap().1)
}

/// The words of the page's `<pre>` elements, by a reader that knows nothing but tags and the common entities, the
/// lines that mdBook hides, and the buttons that copy.
fn code_of(page: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut rest = page;
    while let Some(start) = rest.find("<pre") {
        let (inside, after) = rest[start..].split_once('>').unwrap().1.split_once("</pre>").unwrap();
        let inside = without(&without(inside, "<span class=\"boring\">", "</span>"), "<button", "</button>");
        let (mut text, mut in_tag) = (String::new(), false);
        for (at, character) in inside.char_indices() {
            match character {
                '<' if inside[at + 1..]
                    .starts_with(|next: char| next.is_ascii_alphabetic() || next == '/') =>
                {
                    // The one block that rustdoc has within code.
                    if inside[at..].starts_with("<div") && !text.is_empty() && !text.ends_with('\n') {
                        text.push('\n');
                    }
                    in_tag = true;
                }
                '>' if in_tag => in_tag = false,
                other if !in_tag => text.push(other),
                _ => {}
            }
        }
        let entities = [
            ("&lt;", "<"),
            ("&gt;", ">"),
            ("&quot;", "\""),
            ("&#39;", "'"),
            ("&#x27;", "'"),
            ("&#x26;", "&"),
            ("&amp;", "&"),
        ];
        for (entity, character) in entities {
            text = text.replace(entity, character);
        }
        all.push(text.replace('\u{a0}', " ").trim_matches('\n').trim_end().to_owned());
        rest = after;
    }
    all
}

/// The blocks of code in a Markdown text.
fn fenced(text: &str) -> Vec<String> {
    let (mut blocks, mut open) = (Vec::new(), None::<(String, Vec<&str>)>);
    for line in text.lines() {
        let bare = line.trim_start();
        match &mut open {
            Some((fence, _)) if bare == fence => {
                let (_, lines) = open.take().unwrap();
                blocks.push(lines.join("\n"));
            }
            Some((_, lines)) => lines.push(line),
            None if bare.starts_with("```") => {
                open = Some((bare.chars().take_while(|character| *character == '`').collect(), Vec::new()));
            }
            None => {}
        }
    }
    assert!(open.is_none(), "a block has no end");
    blocks
}

#[test]
fn code_of_real_pages_keeps_every_blank() {
    let mut compared = 0;
    for (name, url) in PAGES {
        let (page, text) = converted(name, url);
        let blocks: Vec<String> = fenced(&text).iter().map(|block| block.trim_end().to_owned()).collect();
        for code in code_of(&page) {
            assert!(blocks.contains(&code), "{name} has no block\n{code}\nbut\n{}", blocks.join("\n---\n"));
            compared += code.lines().filter(|line| line.starts_with([' ', '\t'])).count();
        }
    }
    assert!(compared > 100, "{compared} indented lines");
}

#[test]
fn links_of_real_pages_are_absolute() {
    let mut links = 0;
    for (name, url) in PAGES {
        let (_, text) = converted(name, url);
        let outside: String = text.split("```").step_by(2).collect();
        let outside: String = outside.split('`').step_by(2).collect();
        for target in outside.split("](").skip(1) {
            let target = target.split([')', ' ']).next().unwrap();
            assert!(
                ["https://", "http://", "mailto:"].iter().any(|scheme| target.starts_with(scheme)),
                "{name}: {target}"
            );
            links += 1;
        }
    }
    assert!(links > 100, "{links} links");
}
