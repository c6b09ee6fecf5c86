//! Options, as the usual parsers of programs read them.

use super::NotAllowed;

/// What a program may be given.
#[derive(Clone, Copy, Debug)]
pub(super) enum Options {
    /// Anything: none of its options writes, runs a program or connects.
    Anything,
    /// Only these options, and so many other arguments.
    Only(Listed),
    /// Words that begin with one dash, such as those of `find`: all but these.
    AllWordsBut(&'static [&'static str]),
}

/// Options that are allowed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listed {
    /// Letters, those with a value followed by a colon.
    pub(super) short: &'static str,
    /// Names without dashes, those with a value of their own followed by `=`. A name is not cut short: what programs
    /// take for an abbreviation is refused.
    pub(super) long: &'static [&'static str],
    /// How many arguments that are no options there may be.
    pub(super) operands: usize,
}

pub(super) const MANY: usize = usize::MAX;

/// Checks arguments against what is allowed.
pub(super) fn check(name: &'static str, allowed: &Options, arguments: &[String]) -> Result<(), NotAllowed> {
    let refused =
        |argument: &str, why: String| NotAllowed::Argument { name, argument: argument.to_owned(), why };
    match allowed {
        Options::Anything => Ok(()),
        Options::AllWordsBut(denied) => {
            match arguments.iter().find(|argument| denied.contains(&argument.as_str())) {
                Some(argument) => Err(refused(argument, "it writes or runs something".to_owned())),
                None => Ok(()),
            }
        }
        Options::Only(listed) => match listed.operands(arguments) {
            Ok(operands) if operands > listed.operands => {
                let last = arguments.last().map_or("", String::as_str);
                Err(refused(
                    last,
                    format!("there may be no more than {} arguments besides options", listed.operands),
                ))
            }
            Ok(_) => Ok(()),
            Err(argument) => Err(refused(&argument, format!("only {} are", listed.words()))),
        },
    }
}

impl Listed {
    /// The number of arguments that are no options, or the first option that is not listed.
    pub(super) fn operands(&self, arguments: &[String]) -> Result<usize, String> {
        let mut operands = 0;
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            if argument == "--" {
                return Ok(operands + arguments.count());
            }
            if let Some(long) = argument.strip_prefix("--") {
                if self.long(long)? {
                    arguments.next();
                }
            } else if let Some(letters) = argument.strip_prefix('-').filter(|letters| !letters.is_empty()) {
                if self.cluster(letters)? {
                    arguments.next();
                }
            } else {
                operands += 1;
            }
        }
        Ok(operands)
    }

    /// Whether the next argument is the value of this option.
    fn long(&self, option: &str) -> Result<bool, String> {
        let (name, value) =
            option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        let found = self.long.iter().find(|listed| listed.trim_end_matches('=') == name);
        let listed = found.ok_or_else(|| format!("--{name}"))?;
        Ok(listed.ends_with('=') && value.is_none())
    }

    /// Whether the next argument is the value of the last letter.
    fn cluster(&self, letters: &str) -> Result<bool, String> {
        for (index, letter) in letters.char_indices() {
            let at = self.short.find(letter).filter(|_| letter != ':').ok_or_else(|| format!("-{letter}"))?;
            if self.short[at + letter.len_utf8()..].starts_with(':') {
                return Ok(index + letter.len_utf8() == letters.len());
            }
        }
        Ok(false)
    }

    fn words(&self) -> String {
        let short = self.short.chars().filter(|letter| *letter != ':').map(|letter| format!("-{letter}"));
        let long: Vec<String> =
            self.long.iter().map(|name| format!("--{}", name.trim_end_matches('='))).collect();
        let short: Vec<String> = short.collect();
        match (short.is_empty(), long.is_empty()) {
            (true, _) => long.join(", "),
            (_, true) => short.join(" "),
            _ => format!("{} and {}", short.join(" "), long.join(", ")),
        }
    }

    /// The options for the documentation.
    pub(super) fn documented(&self) -> String {
        self.words()
    }
}
