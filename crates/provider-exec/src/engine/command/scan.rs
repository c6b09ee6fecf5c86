//! Reading the language of bash, forgivingly: what is not understood is skipped, never an error.

/// Commands within commands are followed this far.
const DEEPEST: usize = 24;
/// More simple commands than this are not looked at.
const MOST: usize = 400;

/// Where a simple command stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Context {
    /// In the command itself, also within its loops and conditions.
    Plain,
    /// In `$(…)` or back quotes: its output becomes part of a word.
    Substitution,
    /// In `<(…)` or `>(…)`.
    Process,
    /// In `(…)`.
    Subshell,
    /// In the text that another shell is given to run.
    Text,
    /// In the body of the function of this name.
    Function(String),
}

/// One program with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Simple {
    /// Where it stands.
    pub context: Context,
    /// How many commands it is within.
    pub depth: usize,
    /// Commands with equal numbers are joined by pipes.
    pub pipeline: usize,
    /// The names and values of `NAME=value` before the program.
    pub assignments: Vec<(String, Word)>,
    /// The program and its arguments.
    pub words: Vec<Word>,
    /// `>`, `<` and the like.
    pub redirections: Vec<Redirection>,
    /// It is not waited for.
    pub background: bool,
    /// As it is written, with here-documents left out.
    pub text: String,
}

impl Simple {
    /// The program's name without its directory, if that can be read.
    pub fn name(&self) -> Option<&str> {
        self.words.first()?.literal.as_deref().map(base_name)
    }
}

/// The last part of a path.
pub(super) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// One word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word {
    /// As it is written.
    pub raw: String,
    /// What it means, where that does not depend on variables or on the output of commands.
    pub literal: Option<String>,
    /// The positions in [`Command::simple`](super::Command::simple) of the commands within it.
    pub commands: Vec<usize>,
}

impl Word {
    /// What it means, else as it is written.
    pub fn shown(&self) -> &str {
        self.literal.as_deref().unwrap_or(&self.raw)
    }
}

/// A redirection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirection {
    /// Such as `>` or `2>>`.
    pub operator: String,
    /// What follows it.
    pub target: Word,
}

/// What reading comes to.
pub(super) struct Scanned {
    pub(super) simple: Vec<Simple>,
    pub(super) functions: Vec<String>,
    pub(super) unclear: Option<&'static str>,
}

pub(super) fn scan(text: &str) -> Scanned {
    let mut found = Scanned { simple: Vec::new(), functions: Vec::new(), unclear: None };
    let mut pipelines = 0;
    Scanner::new(text, &mut found, &mut pipelines, 0).list(&Context::Plain, End::Text);
    found
}

/// What ends a list of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Text,
    Parenthesis,
}

/// A here-document whose text has not come yet.
struct Pending {
    delimiter: String,
    quoted: bool,
    strip_tabs: bool,
    /// The command that reads it.
    reader: usize,
}

pub(super) struct Scanner<'a, 'b> {
    pub(super) rest: &'a str,
    found: &'b mut Scanned,
    pipelines: &'b mut usize,
    pub(super) depth: usize,
    pending: Vec<Pending>,
}

/// Words that are grammar where a command may begin. What follows is again the beginning of a command.
const GRAMMAR: &[&str] = &[
    "if", "then", "elif", "else", "fi", "while", "until", "do", "done", "!", "time", "{", "}", "esac",
    "coproc",
];
/// Programs that run the text that they are given.
pub(super) const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "fish", "ash", "busybox"];

impl<'a, 'b> Scanner<'a, 'b> {
    fn new(text: &'a str, found: &'b mut Scanned, pipelines: &'b mut usize, depth: usize) -> Self {
        Self { rest: text, found, pipelines, depth, pending: Vec::new() }
    }

    pub(super) fn next_is(&self, prefix: &str) -> bool {
        self.rest.starts_with(prefix)
    }

    pub(super) fn eat(&mut self, prefix: &str) -> bool {
        let rest = self.rest.strip_prefix(prefix);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    pub(super) fn bump(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let first = characters.next();
        self.rest = characters.as_str();
        first
    }

    /// Whether there is more to follow; says so once when it is given up.
    pub(super) fn too_much(&mut self) -> bool {
        let why = if self.depth >= DEEPEST {
            "commands within commands go deeper than is shown"
        } else if self.found.simple.len() >= MOST {
            "there are more commands than are shown"
        } else {
            return false;
        };
        self.found.unclear = Some(why);
        self.rest = "";
        true
    }

    /// Reads commands up to the end.
    fn list(&mut self, context: &Context, end: End) {
        *self.pipelines += 1;
        let mut pipeline = *self.pipelines;
        let mut cases = 0_usize;
        loop {
            self.blanks();
            if self.rest.is_empty() || self.too_much() {
                return;
            }
            if self.next_is(")") {
                self.bump();
                if cases == 0 && end == End::Parenthesis {
                    return;
                }
            } else if self.eat("\n") {
                self.here_documents();
                *self.pipelines += 1;
                pipeline = *self.pipelines;
            } else if self.next_is("#") {
                self.rest = self.rest.find('\n').map_or("", |end| &self.rest[end..]);
            } else if self.next_is("((") {
                self.arithmetic(2);
            } else if self.eat("(") {
                self.within(&Context::Subshell, End::Parenthesis);
            } else if self.eat("|&") || (self.next_is("|") && !self.next_is("||") && self.eat("|")) {
                // The next command belongs to the same pipeline.
            } else if self.eat("&&")
                || self.eat("||")
                || self.eat(";;&")
                || self.eat(";;")
                || self.eat(";&")
                || self.eat(";")
            {
                *self.pipelines += 1;
                pipeline = *self.pipelines;
            } else if self.next_is("&") && !self.next_is("&>") {
                self.bump();
                self.found
                    .simple
                    .iter_mut()
                    .filter(|simple| simple.pipeline == pipeline)
                    .for_each(|simple| simple.background = true);
                *self.pipelines += 1;
                pipeline = *self.pipelines;
            } else {
                self.simple(context, pipeline, &mut cases);
            }
        }
    }

    /// Reads commands within others.
    pub(super) fn within(&mut self, context: &Context, end: End) -> Vec<usize> {
        let first = self.found.simple.len();
        self.depth += 1;
        self.list(context, end);
        self.depth -= 1;
        (first..self.found.simple.len()).collect()
    }

    /// Reads text that is not part of this one.
    pub(super) fn apart(&mut self, text: &str, context: &Context) -> Vec<usize> {
        let first = self.found.simple.len();
        if !self.too_much() {
            Scanner::new(text, self.found, self.pipelines, self.depth + 1).list(context, End::Text);
        }
        (first..self.found.simple.len()).collect()
    }

    fn blanks(&mut self) {
        loop {
            let trimmed = self.rest.trim_start_matches([' ', '\t', '\r']);
            self.rest = trimmed.strip_prefix("\\\n").unwrap_or(trimmed);
            if self.rest.len() == trimmed.len() {
                return;
            }
        }
    }

    /// Reads one simple command, or the grammar around one.
    fn simple(&mut self, context: &Context, pipeline: usize, cases: &mut usize) {
        let begin = self.rest;
        let place = self.found.simple.len();
        // Its place is kept before those of the commands within it.
        self.found.simple.push(Simple {
            context: context.clone(),
            depth: self.depth,
            pipeline,
            assignments: Vec::new(),
            words: Vec::new(),
            redirections: Vec::new(),
            background: false,
            text: String::new(),
        });
        loop {
            self.blanks();
            if let Some(operator) = self.redirection_operator() {
                self.redirect(operator, place);
                continue;
            }
            if self.rest.is_empty() || self.rest.starts_with(['\n', ';', '&', '|', ')', '#']) {
                break;
            }
            if self.next_is("(") {
                if self.function(place) {
                    return;
                }
                break;
            }
            let first = self.found.simple[place].words.is_empty();
            let before = self.rest;
            let word = self.word();
            if self.rest.len() == before.len() {
                // Whatever this is, it must not stop the reading.
                self.bump();
                continue;
            }
            if first && self.found.simple[place].assignments.is_empty() && self.grammar(&word, place, cases) {
                return;
            }
            match assignment(&word) {
                Some(assignment) if first => self.found.simple[place].assignments.push(assignment),
                _ => self.found.simple[place].words.push(word),
            }
        }
        let length = begin.len() - self.rest.len();
        self.found.simple[place].text = begin[..length].trim().to_owned();
        self.follow_text(place);
    }

    /// Handles a word that is grammar. True when the command that began with it is none.
    fn grammar(&mut self, word: &Word, place: usize, cases: &mut usize) -> bool {
        let skip_line = match word.raw.as_str() {
            raw if GRAMMAR.contains(&raw) => {
                if raw == "esac" {
                    *cases = cases.saturating_sub(1);
                }
                false
            }
            "for" | "select" => true,
            "case" => {
                *cases += 1;
                self.until_word("in");
                self.patterns();
                false
            }
            "function" => {
                self.blanks();
                let name = self.word();
                self.blanks();
                self.eat("()");
                self.found.functions.push(name.raw);
                false
            }
            "[[" => {
                self.until_word("]]");
                false
            }
            _ if *cases > 0 && self.next_is(")") => {
                self.bump();
                false
            }
            _ => return false,
        };
        if skip_line {
            while !self.rest.is_empty() && !self.rest.starts_with([';', '\n']) {
                self.skip_word();
            }
        }
        self.remove(place);
        true
    }

    /// Takes back a command that turned out to be none. Those within it stay.
    fn remove(&mut self, place: usize) {
        self.found.simple.remove(place);
        let moved = |index: &mut usize| {
            if *index > place {
                *index -= 1;
            }
        };
        for simple in &mut self.found.simple {
            let words = simple.words.iter_mut().chain(simple.assignments.iter_mut().map(|(_, value)| value));
            words
                .chain(simple.redirections.iter_mut().map(|redirection| &mut redirection.target))
                .for_each(|word| word.commands.iter_mut().for_each(moved));
        }
        self.pending.iter_mut().for_each(|pending| moved(&mut pending.reader));
    }

    /// Skips words up to and with this one, on one or more lines.
    fn until_word(&mut self, last: &str) {
        while !self.rest.is_empty() {
            self.rest = self.rest.trim_start();
            let before = self.rest;
            self.skip_word();
            if &before[..before.len() - self.rest.len()] == last {
                return;
            }
        }
    }

    /// Reads one word for the commands within it, or one character that is none.
    fn skip_word(&mut self) {
        self.blanks();
        let before = self.rest.len();
        self.word();
        if self.rest.len() == before {
            self.bump();
        }
    }

    /// Skips the patterns of a case up to the parenthesis that ends them.
    fn patterns(&mut self) {
        self.rest = self.rest.trim_start();
        self.eat("(");
        while !self.rest.is_empty() && !self.next_is(")") && !self.next_is("esac") {
            self.skip_word();
            self.rest = self.rest.trim_start();
        }
        self.eat(")");
    }

    /// A name with `()` behind it defines a function; its body is read as what follows.
    fn function(&mut self, place: usize) -> bool {
        let after = self.rest[1..].trim_start_matches([' ', '\t']);
        let (Some(after), Some(name)) = (after.strip_prefix(')'), self.found.simple[place].words.first())
        else {
            // Not bash; what is in the parentheses is read as commands.
            return false;
        };
        let name = name.raw.clone();
        self.rest = after.trim_start();
        self.found.functions.push(name.clone());
        self.remove(place);
        if self.next_is("{") {
            // Only the body knows that it is one.
            let end = self.end_of_braces();
            let (body, rest) = self.rest.split_at(end);
            self.rest = rest;
            let body = body.trim_start_matches('{').trim_end_matches('}').to_owned();
            self.apart(&body, &Context::Function(name));
        }
        true
    }

    /// How far the group in braces goes that begins here; only braces that stand alone count.
    fn end_of_braces(&self) -> usize {
        let mut depth = 0_usize;
        let mut quote = None;
        let mut previous = ' ';
        for (index, character) in self.rest.char_indices() {
            match (quote, character) {
                (Some(open), close) if open == close && previous != '\\' => quote = None,
                (Some(_), _) => {}
                (None, '\'' | '"') if previous != '\\' => quote = Some(character),
                (None, '{') if previous != '$' => depth += 1,
                (None, '}') => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return index + 1;
                    }
                }
                _ => {}
            }
            previous = character;
        }
        self.rest.len()
    }

    /// Reads an operator such as `2>>`, if one begins here.
    fn redirection_operator(&mut self) -> Option<String> {
        let digits = self.rest.len()
            - self.rest.trim_start_matches(|character: char| character.is_ascii_digit()).len();
        let after = &self.rest[digits..];
        if after.starts_with("<(") || after.starts_with(">(") {
            return None;
        }
        let operators = ["&>>", "&>", "<<<", "<<-", "<<", "<>", "<&", ">>", ">|", ">&", "<", ">"];
        let operator = operators.into_iter().find(|operator| after.starts_with(operator))?;
        if operator.starts_with('&') && digits > 0 {
            return None;
        }
        let (read, rest) = self.rest.split_at(digits + operator.len());
        self.rest = rest;
        Some(read.to_owned())
    }

    fn redirect(&mut self, operator: String, reader: usize) {
        self.blanks();
        let target = self.word();
        if matches!(operator.trim_start_matches(|digit: char| digit.is_ascii_digit()), "<<" | "<<-") {
            let quoted = target.raw.contains(['\'', '"', '\\']);
            let delimiter = target.literal.unwrap_or(target.raw);
            self.pending.push(Pending { delimiter, quoted, strip_tabs: operator.ends_with('-'), reader });
            return;
        }
        if let Some(simple) = self.found.simple.get_mut(reader) {
            simple.redirections.push(Redirection { operator, target });
        }
    }

    /// Reads the texts of the here-documents that were announced on the line before.
    fn here_documents(&mut self) {
        for pending in std::mem::take(&mut self.pending) {
            let mut body = String::new();
            while !self.rest.is_empty() {
                let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
                self.rest = rest;
                let line = if pending.strip_tabs { line.trim_start_matches('\t') } else { line };
                if line == pending.delimiter {
                    break;
                }
                body.push_str(line);
                body.push('\n');
            }
            let shell = self
                .found
                .simple
                .get(pending.reader)
                .and_then(Simple::name)
                .is_some_and(|name| SHELLS.contains(&name));
            if shell {
                self.apart(&body, &Context::Text);
            } else if !pending.quoted {
                // Commands within the text are run while it is read.
                let mut inner = Scanner::new(&body, self.found, self.pipelines, self.depth + 1);
                inner.quoted_text(&mut Word::default(), None);
            }
        }
    }

    /// Reads the text that a shell, or `eval`, is given to run.
    fn follow_text(&mut self, place: usize) {
        let Some(simple) = self.found.simple.get(place) else { return };
        let name = simple.name().unwrap_or_default();
        let text = if name == "eval" {
            simple
                .words
                .iter()
                .skip(1)
                .map(|word| word.literal.as_deref())
                .collect::<Option<Vec<_>>>()
                .map(|words| words.join(" "))
        } else if SHELLS.contains(&name) {
            let option = simple.words.iter().position(|word| is_command_option(word.shown()));
            option.and_then(|option| simple.words.get(option + 1)).and_then(|word| word.literal.clone())
        } else {
            None
        };
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            self.apart(&text, &Context::Text);
        }
    }
}

/// Whether an option of a shell makes it run its next argument: `-c`, also among others.
fn is_command_option(option: &str) -> bool {
    option.starts_with('-') && !option.starts_with("--") && option.contains('c')
}

/// `NAME=value` or `NAME+=value`.
fn assignment(word: &Word) -> Option<(String, Word)> {
    let (name, _) = word.raw.split_once('=')?;
    let name = name.strip_suffix('+').unwrap_or(name);
    let plain = name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
    if !plain || name.is_empty() || name.starts_with(|character: char| character.is_ascii_digit()) {
        return None;
    }
    let after = |text: &str| text.split_once('=').map(|(_, value)| value.to_owned());
    let value = Word {
        raw: after(&word.raw).unwrap_or_default(),
        literal: word.literal.as_deref().and_then(after),
        commands: word.commands.clone(),
    };
    Some((name.to_owned(), value))
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
