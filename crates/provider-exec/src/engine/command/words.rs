//! Words: quotes, expansions, and the commands within them.

use super::scan::{Context, End, Scanner, Word};

impl Scanner<'_, '_> {
    /// Reads one word; an empty one where none begins here.
    pub(super) fn word(&mut self) -> Word {
        let begin = self.rest;
        let mut word = Word { literal: Some(String::new()), ..Word::default() };
        while let Some(character) = self.rest.chars().next() {
            match character {
                ' ' | '\t' | '\r' | '\n' | ';' | '&' | '|' | '(' | ')' => break,
                '<' | '>' if self.rest[1..].starts_with('(') => {
                    self.rest = &self.rest[2..];
                    word.literal = None;
                    let commands = self.within(&Context::Process, End::Parenthesis);
                    word.commands.extend(commands);
                }
                '<' | '>' => break,
                _ => self.piece(&mut word),
            }
        }
        word.raw = begin[..begin.len() - self.rest.len()].to_owned();
        word
    }

    /// Reads the next piece of a word outside of quotes.
    fn piece(&mut self, word: &mut Word) {
        match self.bump() {
            Some('\\') => match self.bump() {
                Some('\n') | None => {}
                Some(character) => push(word, character),
            },
            Some('\'') => {
                let (text, rest) = self.rest.split_once('\'').unwrap_or((self.rest, ""));
                self.rest = rest;
                text.chars().for_each(|character| push(word, character));
            }
            Some('"') => self.quoted_text(word, Some('"')),
            Some('$') if self.eat("'") => self.escaped_text(word),
            Some('$') if self.eat("\"") => self.quoted_text(word, Some('"')),
            Some('$') => self.expansion(word),
            Some('`') => self.back_quotes(word),
            // What these become depends on the files there are.
            Some(character @ ('*' | '?' | '[')) => push(word, character),
            Some('~') if word.literal.as_deref() == Some("") => push(word, '~'),
            Some(character) => push(word, character),
            None => {}
        }
    }

    /// Reads text in which only expansions are special, up to its end.
    pub(super) fn quoted_text(&mut self, word: &mut Word, end: Option<char>) {
        while let Some(character) = self.bump() {
            match character {
                _ if Some(character) == end => return,
                '\\' => match self.bump() {
                    Some(escaped @ ('$' | '`' | '"' | '\\')) => push(word, escaped),
                    Some('\n') | None => {}
                    Some(other) => {
                        push(word, '\\');
                        push(word, other);
                    }
                },
                '$' => self.expansion(word),
                '`' => self.back_quotes(word),
                _ => push(word, character),
            }
        }
    }

    /// Reads `$'…'`, in which a backslash has many meanings. Only the plain ones are understood.
    fn escaped_text(&mut self, word: &mut Word) {
        while let Some(character) = self.bump() {
            match character {
                '\'' => return,
                '\\' => match self.bump() {
                    Some(same @ ('\'' | '"' | '\\' | '?')) => push(word, same),
                    Some('n') => push(word, '\n'),
                    Some('t') => push(word, '\t'),
                    _ => word.literal = None,
                },
                _ => push(word, character),
            }
        }
    }

    /// Reads what follows a `$`.
    fn expansion(&mut self, word: &mut Word) {
        if self.next_is("((") {
            word.literal = None;
            let commands = self.arithmetic(2);
            word.commands.extend(commands);
        } else if self.eat("(") {
            word.literal = None;
            let commands = self.within(&Context::Substitution, End::Parenthesis);
            word.commands.extend(commands);
        } else if self.eat("{") {
            word.literal = None;
            // What stands in the braces may hold quotes and expansions of its own.
            self.depth += 1;
            while !self.rest.is_empty() && !self.too_much() && !self.eat("}") {
                self.piece(word);
            }
            self.depth -= 1;
        } else {
            let name = self
                .rest
                .trim_start_matches(|character: char| character.is_ascii_alphanumeric() || character == '_');
            let length = self.rest.len() - name.len();
            if length > 0 {
                self.rest = name;
                word.literal = None;
            } else if self.rest.starts_with(['@', '*', '#', '?', '-', '$', '!']) {
                self.bump();
                word.literal = None;
            } else {
                push(word, '$');
            }
        }
    }

    fn back_quotes(&mut self, word: &mut Word) {
        word.literal = None;
        let mut text = String::new();
        while let Some(character) = self.bump() {
            match character {
                '`' => break,
                '\\' => match self.bump() {
                    Some(escaped @ ('`' | '\\' | '$')) => text.push(escaped),
                    Some(other) => text.extend(['\\', other]),
                    None => {}
                },
                _ => text.push(character),
            }
        }
        let commands = self.apart(&text, &Context::Substitution);
        word.commands.extend(commands);
    }

    /// Skips arithmetic that begins with this many parentheses; commands in it are read.
    pub(super) fn arithmetic(&mut self, parentheses: usize) -> Vec<usize> {
        self.rest = &self.rest[parentheses..];
        let mut open = parentheses;
        let mut word = Word::default();
        while open > 0 {
            match self.rest.chars().next() {
                None => break,
                Some('(') => {
                    open += 1;
                    self.bump();
                }
                Some(')') => {
                    open -= 1;
                    self.bump();
                }
                Some('$' | '`') => self.piece(&mut word),
                Some(_) => {
                    self.bump();
                }
            }
        }
        word.commands
    }
}

fn push(word: &mut Word, character: char) {
    if let Some(literal) = &mut word.literal {
        literal.push(character);
    }
}
