//! From the text a caller wrote to a place: the name as written first, then what it was probably meant to be.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use unicode_normalization::UnicodeNormalization;

use crate::follow::Last;
use crate::roots::{Place, Roots};
use crate::rules::Access;
use crate::{JailPath, PathError};

/// As many bytes as Linux takes in one path.
const MAX_BYTES: usize = 4096;
const MAX_COMPONENTS: usize = 256;

/// No caller wraps a path in more than a few layers.
const MAX_FORMS: usize = 12;

/// In a directory with more entries than this, other spellings of a name are not looked for.
const MAX_SIBLINGS: usize = 50_000;

pub(crate) fn resolve(roots: &Roots, path: &str, working_directory: &Path) -> Result<JailPath, PathError> {
    check_text(path)?;
    let here = roots.working_directory(working_directory)?;
    let asked = Resolver { roots, asked: path, base: here.base().clone() };
    let exact = asked.place(Path::new(path))?;
    if asked.exists(&exact)? {
        return Ok(asked.accept(exact, None));
    }
    let forms = forms(path, roots.home());
    for form in &forms {
        if let Ok(place) = asked.place(&form.path)
            && asked.exists(&place)?
        {
            return Ok(asked.accept(place, Some(form.how)));
        }
    }
    if let Some(place) = asked.look_alike(&exact)? {
        return Ok(asked.accept(place, Some("which differs only in spaces or Unicode form")));
    }
    for form in &forms {
        if let Ok(place) = asked.place(&form.path)
            && let Some(place) = asked.look_alike(&place)?
        {
            return Ok(asked.accept(place, Some(form.how)));
        }
    }
    // Nothing of that name: where it would be made. A form that cannot be meant literally is taken at its word.
    if let Some(form) = forms.iter().find(|form| form.certain) {
        return Ok(asked.accept(asked.place(&form.path)?, Some(form.how)));
    }
    if !asked.parent_exists(&exact)? {
        for form in &forms {
            if let Ok(place) = asked.place(&form.path)
                && asked.parent_exists(&place)?
            {
                return Ok(asked.accept(place, Some(form.how)));
            }
        }
    }
    Ok(asked.accept(exact, None))
}

fn check_text(path: &str) -> Result<(), PathError> {
    let invalid = |reason: String| {
        let shown: String = path.chars().take(80).collect();
        let ellipsis = if shown.len() < path.len() { "…" } else { "" };
        Err(PathError::Invalid { path: format!("{}{ellipsis}", shown.escape_debug()), reason })
    };
    let components = path.split('/').filter(|name| !name.is_empty()).count();
    if path.is_empty() {
        invalid("it is empty; give a path relative to the working directory, or an absolute one".to_owned())
    } else if path.contains('\0') {
        invalid("it contains a NUL character".to_owned())
    } else if path.len() > MAX_BYTES {
        invalid(format!("it is {} bytes long, and at most {MAX_BYTES} are possible", path.len()))
    } else if components > MAX_COMPONENTS {
        invalid(format!("it has {components} components, and at most {MAX_COMPONENTS} are possible"))
    } else {
        Ok(())
    }
}

struct Resolver<'a> {
    roots: &'a Roots,
    asked: &'a str,
    base: Arc<Path>,
}

impl Resolver<'_> {
    fn place(&self, path: &Path) -> Result<Place, PathError> {
        self.roots.place(&self.base.join(path), self.asked)
    }

    /// Whether there is an entry; a link counts, wherever it leads.
    fn exists(&self, place: &Place) -> Result<bool, PathError> {
        match self.roots.find(place, Last::Keep, Access::Read, self.asked) {
            Ok(found) => Ok(found.metadata.is_some()),
            Err(PathError::NotFound { .. } | PathError::NotADirectory { .. }) => Ok(false),
            // What cannot be looked at is there, as far as its spelling is concerned.
            Err(PathError::Permission { .. }) => Ok(true),
            Err(PathError::Io { ref source, .. }) if is_name_too_long(source) => Ok(false),
            Err(other) => Err(other),
        }
    }

    fn parent_exists(&self, place: &Place) -> Result<bool, PathError> {
        let mut parent = place.clone();
        parent.relative.pop();
        self.exists(&parent)
    }

    fn accept(&self, place: Place, how: Option<&str>) -> JailPath {
        let path = JailPath::new(self.roots.clone(), place, self.base.clone());
        match how {
            None => path,
            // It was written as it is shown, in the only way in which it can be.
            Some(_) if path.to_string() == self.asked => path,
            Some(how) => {
                let note = format!("`{}` does not exist as written; used `{path}`, {how}", self.asked);
                path.with_note(note)
            }
        }
    }

    /// The one existing place whose names differ from `place`'s only in spaces or Unicode form.
    fn look_alike(&self, place: &Place) -> Result<Option<Place>, PathError> {
        let mut found = Place { relative: PathBuf::new(), ..place.clone() };
        for name in &place.relative {
            let exact = Place { relative: found.relative.join(name), ..place.clone() };
            if self.exists(&exact)? {
                found = exact;
                continue;
            }
            let mut names = self.similar_siblings(&found, name);
            match names.len() {
                0 => return Ok(None),
                1 => found.relative.extend(names.pop()),
                _ => return Err(self.ambiguous(&found, names)),
            }
        }
        Ok(Some(found))
    }

    fn similar_siblings(&self, directory: &Place, name: &OsStr) -> Vec<OsString> {
        let Some(wanted) = fold(name) else { return Vec::new() };
        let path = JailPath::new(self.roots.clone(), directory.clone(), self.base.clone());
        let Ok(entries) = path.read_dir() else { return Vec::new() };
        let names = entries.take(MAX_SIBLINGS).filter_map(Result::ok).map(|entry| entry.name);
        let mut names: Vec<OsString> = names
            .filter(|sibling| fold(sibling).is_some_and(|folded| folded == wanted))
            .filter(|sibling| path.join(sibling).is_ok_and(|path| !path.is_denied()))
            .collect();
        names.sort();
        names
    }

    fn ambiguous(&self, directory: &Place, names: Vec<OsString>) -> PathError {
        let candidates = names
            .iter()
            .map(|name| {
                let place = Place { relative: directory.relative.join(name), ..directory.clone() };
                let path = JailPath::new(self.roots.clone(), place, self.base.clone()).to_string();
                show_differences(&path)
            })
            .collect();
        PathError::AmbiguousName { path: self.asked.to_owned(), candidates }
    }
}

fn is_name_too_long(source: &std::io::Error) -> bool {
    source.raw_os_error() == Some(rustix::io::Errno::NAMETOOLONG.raw_os_error())
}

/// Another reading of what was asked.
struct Form {
    path: PathBuf,
    how: &'static str,
    /// Whether it stands for a path even if there is nothing at it.
    certain: bool,
}

/// Every other reading, the likelier first: each way of writing is undone once, and again on what that gives.
fn forms(asked: &str, home: Option<&Path>) -> Vec<Form> {
    let mut forms: Vec<Form> = Vec::new();
    let mut next = 0;
    let mut current = (PathBuf::from(asked), false);
    loop {
        for form in undo_once(&current.0, home) {
            let known = forms.iter().any(|known| known.path == form.path) || form.path == Path::new(asked);
            if !known && !form.path.as_os_str().is_empty() && forms.len() < MAX_FORMS {
                forms.push(Form { certain: form.certain || current.1, ..form });
            }
        }
        let Some(form) = forms.get(next) else { return forms };
        current = (form.path.clone(), form.certain);
        next += 1;
    }
}

fn undo_once(path: &Path, home: Option<&Path>) -> Vec<Form> {
    let Some(text) = path.to_str() else { return Vec::new() };
    // Nobody who writes `'/a'` or `@/a` means a directory of that odd name in the working directory.
    let possible = |how, form: Option<PathBuf>| {
        form.map(|form| Form { certain: form.is_absolute() && path.is_relative(), path: form, how })
    };
    let certain = |how, form: Option<PathBuf>| form.map(|path| Form { path, how, certain: true });
    let tries = [
        possible("with the escaped bytes in it", unescape_bytes(text).map(PathBuf::from)),
        certain("the path of that URL", from_url(text)),
        certain("with `~` as the home directory", from_home(text, home)),
        possible("without the quotes", unquote(text).map(PathBuf::from)),
        possible("without the shell's backslashes", unescape_shell(text).map(PathBuf::from)),
        possible("without the `@`", text.strip_prefix('@').map(PathBuf::from)),
        possible("without the spaces around it", trimmed(text).map(PathBuf::from)),
    ];
    let usable = |form: &Form| !form.path.as_os_str().as_bytes().contains(&0);
    tries.into_iter().flatten().filter(usable).collect()
}

fn from_home(text: &str, home: Option<&Path>) -> Option<PathBuf> {
    let rest = text.strip_prefix('~')?;
    (rest.is_empty() || rest.starts_with('/')).then(|| Some(home?.join(rest.trim_start_matches('/'))))?
}

/// `file:///a%20b`, `file://localhost/a`, `file:/a`.
fn from_url(text: &str) -> Option<PathBuf> {
    let rest = text.strip_prefix("file:")?;
    let path = match rest.strip_prefix("//") {
        Some(rest) => rest.strip_prefix("localhost").unwrap_or(rest),
        None => rest,
    };
    if !path.starts_with('/') {
        return None;
    }
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = (byte == b'%').then(|| after.get(..2).and_then(hex_byte)).flatten();
        bytes.push(escaped.unwrap_or(byte));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    Some(PathBuf::from(OsString::from_vec(bytes)))
}

fn unquote(text: &str) -> Option<String> {
    let inner = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    match (inner('\''), inner('"'), inner('`')) {
        (Some(inside), _, _) => Some(inside.replace("'\\''", "'")),
        (_, Some(inside), _) => {
            Some(inside.replace("\\\"", "\"").replace("\\$", "$").replace("\\`", "`").replace("\\\\", "\\"))
        }
        (_, _, Some(inside)) => Some(inside.to_owned()),
        _ => None,
    }
}

fn unescape_shell(text: &str) -> Option<String> {
    if !text.contains('\\') {
        return None;
    }
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => plain.extend(characters.next()),
            other => plain.push(other),
        }
    }
    Some(plain)
}

fn trimmed(text: &str) -> Option<&str> {
    let trimmed = text.trim();
    (trimmed.len() < text.len()).then_some(trimmed)
}

/// A name with the differences taken out that cannot be seen on a screen; `None` for bytes that are no text.
fn fold(name: &OsStr) -> Option<String> {
    let plain = |character| if matches!(character, '\u{a0}' | '\u{202f}') { ' ' } else { character };
    Some(name.to_str()?.nfc().map(plain).collect())
}

/// Escapes what two look-alikes could differ in.
fn show_differences(path: &str) -> String {
    let show = |character: char| match character {
        ' '..='~' => Cow::Owned(character.to_string()),
        other => Cow::Owned(other.escape_unicode().to_string()),
    };
    path.chars().map(show).collect()
}

/// A path as text: bytes that are not UTF-8 as `\xNN`. In a name that has such bytes, `\x` itself is `\x5cx`.
///
/// ```
/// use std::os::unix::ffi::OsStrExt;
/// let name = std::ffi::OsStr::from_bytes(b"caf\xe9");
/// assert_eq!(jail::escape_bytes(name), r"caf\xe9");
/// assert_eq!(jail::unescape_bytes(r"caf\xe9").as_deref(), Some(name));
/// ```
pub fn escape_bytes(name: &OsStr) -> String {
    if let Some(text) = name.to_str() {
        return text.to_owned();
    }
    let mut shown = String::new();
    for chunk in name.as_bytes().utf8_chunks() {
        shown.push_str(&chunk.valid().replace("\\x", "\\x5cx"));
        for byte in chunk.invalid() {
            shown.push_str(&format!("\\x{byte:02x}"));
        }
    }
    shown
}

/// Undoes [`escape_bytes`]; `None` if there is no `\xNN` in the text.
pub fn unescape_bytes(text: &str) -> Option<OsString> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    let mut any = false;
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = rest.strip_prefix(b"\\x").and_then(|digits| digits.get(..2)).and_then(hex_byte);
        any |= escaped.is_some();
        bytes.push(escaped.unwrap_or(byte));
        rest = if escaped.is_some() { &rest[4..] } else { after };
    }
    any.then(|| OsString::from_vec(bytes))
}

fn hex_byte(digits: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    match digits {
        [high, low] => u8::try_from(digit(*high)? * 16 + digit(*low)?).ok(),
        _ => None,
    }
}
