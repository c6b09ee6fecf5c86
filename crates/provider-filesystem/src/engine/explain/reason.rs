//! The reasons why a text does not occur, and how they are said.

use std::fmt;

use super::visible::{code_point, is_invisible};

/// A reason why a text does not occur, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// Line numbers were copied along with the text.
    LineNumbers,
    /// One indents with tabs, the other with spaces.
    TabsAndSpaces {
        /// The first such line of the file.
        line: usize,
        /// Whether it is the file that has the tabs.
        tabs_in_file: bool,
    },
    /// A line is indented differently.
    Indentation {
        /// The first such line of the file.
        line: usize,
        /// Columns in the file.
        in_file: usize,
        /// Columns in the text that was given.
        given: usize,
    },
    /// A line of the file has blanks at its end that were not given.
    TrailingBlanks {
        /// The line of the file.
        line: usize,
        /// How many.
        count: usize,
        /// What they are: `space`, `tab` or `blank`.
        what: &'static str,
    },
    /// The text that was given has blanks at the end of a line that the file has not.
    ExtraTrailingBlanks {
        /// The line of the file.
        line: usize,
        /// How many.
        count: usize,
    },
    /// The file has a blank line that was not given.
    MissingBlankLine {
        /// The line of the file that is blank.
        line: usize,
    },
    /// The text that was given ends with a newline, and the file does not.
    FinalNewline,
    /// The text that was given has a blank line that the file has not.
    ExtraBlankLine {
        /// The line of the file that follows it.
        line: usize,
    },
    /// Upper and lower case differ.
    Case {
        /// The first such line of the file.
        line: usize,
    },
    /// A character only looks like the one that was given.
    LookAlike {
        /// The first such line of the file.
        line: usize,
        /// The character in the file.
        in_file: char,
        /// The character that was given; `None` when there is none at the place.
        given: Option<char>,
    },
    /// The same characters are composed differently (`é` as one code point or as two).
    Composition {
        /// The first such line of the file.
        line: usize,
    },
    /// Letters differ in their accents.
    Accents {
        /// The first such line of the file.
        line: usize,
    },
    /// The text that was given writes line ends, tabs or quotes as escape sequences.
    Escapes,
    /// White space inside a line differs.
    Spacing {
        /// The first such line of the file.
        line: usize,
    },
    /// The lines are broken at other places.
    LineBreaks {
        /// The line of the file from which on they differ.
        line: usize,
    },
    /// The text begins and ends as given and differs in between.
    Middle {
        /// The first line of the file that differs.
        first: usize,
        /// The last.
        last: usize,
    },
    /// The text itself differs.
    Words {
        /// How many lines differ.
        lines: usize,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LineNumbers => f.write_str(
                "it looks like it includes read_file's line numbers: they are not part of the file",
            ),
            Self::TabsAndSpaces { line, tabs_in_file: true } => {
                write!(f, "line {line} is indented with tabs in the file, with spaces in old_str")
            }
            Self::TabsAndSpaces { line, tabs_in_file: false } => {
                write!(f, "line {line} is indented with spaces in the file, with tabs in old_str")
            }
            Self::Indentation { line, in_file, given } => {
                write!(
                    f,
                    "the indentation differs: line {line} has {in_file} blanks in the file, {given} in old_str"
                )
            }
            Self::TrailingBlanks { line, count, what } => {
                let plural = if *count == 1 { "" } else { "s" };
                write!(f, "line {line} has {count} trailing {what}{plural} in the file, old_str has not")
            }
            Self::ExtraTrailingBlanks { line, count } => {
                let plural = if *count == 1 { "" } else { "s" };
                write!(f, "old_str has {count} trailing blank{plural} where line {line} of the file has none")
            }
            Self::MissingBlankLine { line } => {
                write!(f, "line {line} of the file is blank, old_str lacks a blank line there")
            }
            Self::FinalNewline => f.write_str("old_str ends with a newline, the file does not"),
            Self::ExtraBlankLine { line } => {
                write!(f, "old_str has a blank line before line {line} that the file does not have")
            }
            Self::Case { line } => write!(f, "upper and lower case differ in line {line}"),
            Self::LookAlike { line, in_file, given: Some(given) } => write!(
                f,
                "line {line} has {} ({}) in the file where old_str has {} ({})",
                name(*in_file),
                code_point(*in_file),
                name(*given),
                code_point(*given)
            ),
            Self::LookAlike { line, in_file, given: None } => {
                write!(
                    f,
                    "line {line} has {} ({}) in the file that old_str lacks",
                    name(*in_file),
                    code_point(*in_file)
                )
            }
            Self::Composition { line } => {
                write!(f, "line {line} has accented letters composed of other code points than in old_str")
            }
            Self::Accents { line } => write!(f, "letters of line {line} have other accents in the file"),
            Self::Escapes => f.write_str(
                "old_str has a backslash and a letter (such as \\n) where the file has the character itself",
            ),
            Self::Spacing { line } => write!(f, "the white space inside line {line} differs"),
            Self::LineBreaks { line } => write!(f, "the lines are broken differently from line {line} on"),
            Self::Middle { first, last } if first == last => {
                write!(f, "it begins and ends as in the file, but line {first} in between differs")
            }
            Self::Middle { first, last } => {
                write!(f, "it begins and ends as in the file, but lines {first} to {last} in between differ")
            }
            Self::Words { lines: 1 } => f.write_str("one line differs"),
            Self::Words { lines } => write!(f, "{lines} lines differ"),
        }
    }
}

fn name(c: char) -> String {
    match c {
        '\u{a0}' => "a no-break space".to_owned(),
        ' ' => "a space".to_owned(),
        '‘' | '’' | '“' | '”' => format!("the curly quote {c}"),
        '–' | '—' => format!("the long dash {c}"),
        invisible if is_invisible(invisible) => "an invisible character".to_owned(),
        other => other.to_string(),
    }
}
