//! The kernel's lock file, changed in place: what is not ours stays byte for byte.

use std::collections::BTreeMap;
use std::ops::Range;

use hcl_edit::Span as _;
use hcl_edit::expr::{Expression, Object, ObjectKey};
use hcl_edit::structure::{Attribute, Block, Body};
use semver::Version;

use crate::hash::Sha256;
use crate::platform::Platform;

/// The version of the lock file's form that is written, and the only one that is read.
const VERSION: u64 = 1;

/// A lock file: text that was read and understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockFile {
    text: String,
}

/// What a lock file records of one provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Local name of the provider, the block's label.
    pub name: String,
    /// Source address.
    pub source: String,
    /// Exact version.
    pub version: Version,
    /// Hash of the program, per platform.
    pub checksums: BTreeMap<Platform, Sha256>,
    /// Category in the kernel, where it is recorded.
    pub category: Option<String>,
}

/// Why a lock file is left as it is.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum LockFileError {
    /// It is no HCL.
    #[error("it is no HCL: {0}")]
    Syntax(String),
    /// It has no version.
    #[error("it has no lock_file_version; wanted `lock_file_version = {VERSION}` at its top")]
    NoVersion,
    /// Something newer wrote it.
    #[error("lock_file_version is {0}, and {VERSION} is the newest this program knows; use a newer toolctl")]
    OtherVersion(String),
    /// A provider has two rows.
    #[error("it has {count} rows for provider {name}; keep one")]
    Repeated {
        /// The provider.
        name: String,
        /// How many rows it has.
        count: usize,
    },
    /// A row does not say what it must.
    #[error("the row of provider {name}: {problem}")]
    Row {
        /// The provider.
        name: String,
        /// What is wrong.
        problem: String,
    },
}

impl LockFile {
    /// The lock file of a project that has none yet.
    #[must_use]
    pub fn new() -> Self {
        Self { text: format!("lock_file_version = {VERSION}\n") }
    }

    /// Reads a lock file.
    ///
    /// # Errors
    /// It is no HCL, or its version is not the one that is known here.
    pub fn parse(text: &str) -> Result<Self, LockFileError> {
        let body = parse(text)?;
        let version = body.get_attribute("lock_file_version").ok_or(LockFileError::NoVersion)?;
        if version.value.as_number().and_then(|number| number.as_u64()) != Some(VERSION) {
            return Err(LockFileError::OtherVersion(version.value.to_string().trim().to_owned()));
        }
        Ok(Self { text: text.to_owned() })
    }

    /// The file's text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The row of a provider, if there is one.
    ///
    /// # Errors
    /// There are several, or it lacks something.
    pub fn row(&self, name: &str) -> Result<Option<Row>, LockFileError> {
        let body = parse(&self.text)?;
        find(&body, name)?.map(|block| read_row(name, block)).transpose()
    }

    /// Records `row` as resolved at `moment` (RFC 3339). A row that says the same already is not touched; of one
    /// that says something else only the values change. Returns whether anything did.
    ///
    /// # Errors
    /// There are several rows for the provider.
    pub fn set(&mut self, row: &Row, moment: &str) -> Result<bool, LockFileError> {
        let body = parse(&self.text)?;
        let Some(block) = find(&body, &row.name)? else {
            self.append(row, moment);
            return Ok(true);
        };
        if read_row(&row.name, block).is_ok_and(|known| known.says(row)) {
            return Ok(false);
        }
        let mut edits = Edits { text: &self.text, list: Vec::new() };
        edits.row(block, row, moment);
        self.text = edits.apply();
        // What was written is read back before anybody else can rely on it.
        match self.row(&row.name)? {
            Some(written) if written.says(row) => Ok(true),
            _ => Err(LockFileError::Row {
                name: row.name.clone(),
                problem:
                    "it is written in a way that cannot be changed in place; remove it and install again"
                        .into(),
            }),
        }
    }

    fn append(&mut self, row: &Row, moment: &str) {
        let line_end = line_end(&self.text);
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push_str(line_end);
        }
        let block = format!(
            "\nprovider {} {{\n  source      = {}\n  version     = {}\n  resolved_at = {}\n{}  checksums = {}\n}}\n",
            hcl_string(&row.name),
            hcl_string(&row.source),
            hcl_string(&row.version.to_string()),
            hcl_string(moment),
            row.category
                .as_deref()
                .map_or_else(String::new, |word| format!("  category    = {}\n", hcl_string(word))),
            checksums(row, "  "),
        );
        self.text.push_str(&block.replace('\n', line_end));
    }
}

impl Default for LockFile {
    fn default() -> Self {
        Self::new()
    }
}

impl Row {
    /// Whether this row, read from a file, says all that `wanted` does. A category that is not recorded says
    /// nothing else: older kernels know none.
    fn says(&self, wanted: &Self) -> bool {
        (&self.source, &self.version, &self.checksums) == (&wanted.source, &wanted.version, &wanted.checksums)
            && (self.category.is_none() || self.category == wanted.category)
    }
}

fn parse(text: &str) -> Result<Body, LockFileError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    hcl_edit::parser::parse_body(text).map_err(|error| LockFileError::Syntax(error.to_string()))
}

fn find<'a>(body: &'a Body, name: &str) -> Result<Option<&'a Block>, LockFileError> {
    let mut rows = body.get_blocks("provider").filter(|block| block.has_exact_labels(&[name]));
    let first = rows.next();
    match rows.count() {
        0 => Ok(first),
        others => Err(LockFileError::Repeated { name: name.to_owned(), count: others + 1 }),
    }
}

fn read_row(name: &str, block: &Block) -> Result<Row, LockFileError> {
    let wrong = |problem: String| LockFileError::Row { name: name.to_owned(), problem };
    let text = |key: &str| {
        block.body.get_attribute(key).and_then(|attribute| attribute.value.as_str()).map(str::to_owned)
    };
    let required = |key: &str| text(key).ok_or_else(|| wrong(format!("wanted {key} as a string")));
    let version = required("version")?;
    let version = version.parse().map_err(|error| wrong(format!("version {version:?} is none: {error}")))?;
    let mut checksums = BTreeMap::new();
    for (key, hash) in object(block).into_iter().flat_map(Object::iter) {
        let platform = key_text(key).and_then(|key| key.parse().ok());
        let hash = hash.expr().as_str().and_then(|hash| hash.strip_prefix("sha256:")?.parse().ok());
        let (Some(platform), Some(hash)) = (platform, hash) else {
            return Err(wrong(
                "wanted checksums as \"<os>_<arch>\" = \"sha256:<64 hexadecimal digits>\"".into(),
            ));
        };
        checksums.insert(platform, hash);
    }
    Ok(Row {
        name: name.to_owned(),
        source: required("source")?,
        version,
        checksums,
        category: text("category"),
    })
}

fn object(block: &Block) -> Option<&Object> {
    block.body.get_attribute("checksums").and_then(|attribute| attribute.value.as_object())
}

fn key_text(key: &ObjectKey) -> Option<&str> {
    match key {
        ObjectKey::Ident(word) => Some(word.as_str()),
        ObjectKey::Expression(expression) => expression.as_str(),
    }
}

/// Changes of a text, as ranges of it and what goes there.
struct Edits<'a> {
    text: &'a str,
    list: Vec<(Range<usize>, String)>,
}

impl Edits<'_> {
    fn row(&mut self, block: &Block, row: &Row, moment: &str) {
        self.value(block, "source", &hcl_string(&row.source));
        self.value(block, "version", &hcl_string(&row.version.to_string()));
        self.value(block, "resolved_at", &hcl_string(moment));
        if let (Some(category), true) = (&row.category, block.body.has_attribute("category")) {
            self.value(block, "category", &hcl_string(category));
        }
        match object(block) {
            Some(object) if entries_can_stay(object, row) => self.entries(object, row),
            _ => {
                let line_end = line_end(self.text);
                self.value(block, "checksums", &checksums(row, "  ").replace('\n', line_end));
            }
        }
    }

    /// Gives an attribute a value, where it stands, or at the block's end.
    fn value(&mut self, block: &Block, key: &str, value: &str) {
        match block.body.get_attribute(key).map(|attribute: &Attribute| self.range(&attribute.value)) {
            Some(Some(range)) => self.list.push((range, value.to_owned())),
            Some(None) => {}
            None => {
                let Some(end) = block.span().map(|span| self.offset() + span.end - 1) else { return };
                // A block in one line has nothing but its brace on the last one.
                let start = self.text[..end].rfind('\n').map_or(end, |newline| newline + 1);
                let start = if self.text[start..end].trim().is_empty() { start } else { end };
                self.list.push((start..start, format!("  {key} = {value}{}", line_end(self.text))));
            }
        }
    }

    /// Gives the entries that are there their new hashes.
    fn entries(&mut self, object: &Object, row: &Row) {
        for (key, hash) in object.iter() {
            let wanted = key_text(key).and_then(|key| row.checksums.get(&key.parse().ok()?));
            if let (Some(wanted), Some(range)) = (wanted, self.range(hash.expr())) {
                self.list.push((range, hcl_string(&wanted.tagged())));
            }
        }
    }

    fn range(&self, expression: &Expression) -> Option<Range<usize>> {
        let span = expression.span()?;
        Some(self.offset() + span.start..self.offset() + span.end)
    }

    /// Spans do not count a byte order mark.
    fn offset(&self) -> usize {
        if self.text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 }
    }

    fn apply(mut self) -> String {
        self.list.sort_by_key(|(range, _)| range.start);
        let (mut out, mut done) = (String::with_capacity(self.text.len() + 256), 0);
        for (range, value) in self.list {
            out.push_str(&self.text[done..range.start]);
            out.push_str(&value);
            done = range.end;
        }
        out + &self.text[done..]
    }
}

/// Whether the platforms stay the same ones, so that comments among them can too.
fn entries_can_stay(object: &Object, row: &Row) -> bool {
    let known: Option<Vec<Platform>> = object.iter().map(|(key, _)| key_text(key)?.parse().ok()).collect();
    known.is_some_and(|mut known| {
        known.sort();
        known.iter().eq(row.checksums.keys())
    })
}

fn checksums(row: &Row, indent: &str) -> String {
    let lines = row.checksums.iter();
    let lines = lines.map(|(platform, hash)| {
        format!("{indent}  {} = {}\n", hcl_string(platform.as_str()), hcl_string(&hash.tagged()))
    });
    format!("{{\n{}{indent}}}", lines.collect::<String>())
}

/// A string of HCL, in which `${` and `%{` mean themselves.
#[must_use]
pub fn hcl_string(text: &str) -> String {
    let json = serde_json::Value::from(text).to_string();
    json.replace("${", "$${").replace("%{", "%%{")
}

fn line_end(text: &str) -> &'static str {
    if text.split_inclusive('\n').next().is_some_and(|line| line.ends_with("\r\n")) { "\r\n" } else { "\n" }
}

#[cfg(test)]
#[path = "lock_file_tests.rs"]
mod tests;
