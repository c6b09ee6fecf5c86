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
    /// What each of them begins with.
    pub(super) prefix: &'static str,
}

/// An argument that is not allowed.
pub(super) struct Unlisted {
    /// What it is called in the message.
    pub(super) argument: String,
    /// It stands where a value is expected and looks like an option, which some programs take it for.
    is_value: bool,
}

impl Unlisted {
    fn option(argument: String) -> Self {
        Self { argument, is_value: false }
    }

    /// Why it is not, for an option that is not among those that are allowed.
    pub(super) fn why(&self, option: impl FnOnce() -> String) -> String {
        if self.is_value {
            "a value that begins with a dash must be written right behind its option, as in --name=-x"
                .to_owned()
        } else {
            option()
        }
    }
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
        Options::Only(listed) => {
            let operands = listed.operands(arguments).map_err(|unlisted| {
                let why = unlisted.why(|| format!("only {} are", listed.words()));
                refused(&unlisted.argument, why)
            })?;
            if let Some(one) = operands.get(listed.operands) {
                let why = format!("there may be no more than {} arguments besides options", listed.operands);
                return Err(refused(one, why));
            }
            match operands.iter().find(|operand| !operand.starts_with(listed.prefix)) {
                Some(operand) => Err(refused(operand, format!("it must begin with {}", listed.prefix))),
                None => Ok(()),
            }
        }
    }
}

impl Listed {
    /// The arguments that are no options, or the first one that is not allowed.
    pub(super) fn operands<'a>(&self, arguments: &'a [String]) -> Result<Vec<&'a str>, Unlisted> {
        let mut operands = Vec::new();
        let mut arguments = arguments.iter().map(String::as_str);
        while let Some(argument) = arguments.next() {
            if argument == "--" {
                operands.extend(arguments);
                return Ok(operands);
            }
            let has_value = if let Some(long) = argument.strip_prefix("--") {
                self.long(long).map_err(Unlisted::option)?
            } else if let Some(letters) = argument.strip_prefix('-').filter(|letters| !letters.is_empty()) {
                self.cluster(letters).map_err(Unlisted::option)?
            } else {
                operands.push(argument);
                continue;
            };
            // Where the value may also be left out, the program takes this for the next option.
            let looks_like_option = |value: &&str| value.len() > 1 && value.starts_with('-');
            if has_value && let Some(value) = arguments.next().filter(looks_like_option) {
                return Err(Unlisted { argument: value.to_owned(), is_value: true });
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

    /// The letters that are options. A percent sign only ends values that stand right behind their letter.
    fn letters(&self) -> impl Iterator<Item = char> {
        self.short.chars().filter(|letter| !matches!(letter, ':' | '%'))
    }

    fn words(&self) -> String {
        let short = self.letters().map(|letter| format!("-{letter}"));
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
        let short = self.letters().map(|letter| format!("`-{letter}`"));
        let long = self.long.iter().map(|name| format!("`--{}`", name.trim_end_matches('=')));
        let options: Vec<String> = short.chain(long).collect();
        let operands = match (self.operands, self.prefix) {
            (MANY, _) => String::new(),
            (0, _) => "; no other arguments".to_owned(),
            (most, "") => format!("; at most {most} other argument"),
            (most, prefix) => format!("; at most {most} other argument, which begins with `{prefix}`"),
        };
        format!("{}{operands}", options.join(" "))
    }
}
