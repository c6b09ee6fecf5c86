//! Which parts of a command deserve a look, and why.

use super::scan::{Context, Redirection, SHELLS, Simple, Word, base_name};

/// What kind of part deserves a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Runs what comes from the network.
    RunsDownload,
    /// Asks for the rights of another user.
    MoreRights,
    /// Removes or overwrites what may not come back.
    Removes,
    /// Ends processes by a pattern, which may cover more than is meant.
    EndsByPattern,
    /// Starts processes without end.
    NeverEnds,
    /// Changes what git, a shell or the system runs by itself later.
    RunsLater,
    /// Characters that are not seen as what they are.
    Hidden,
    /// Runs text that is only known when it runs.
    RunsText,
    /// Stops or changes the machine.
    Machine,
    /// Writes to a file.
    Writes,
    /// The output of a command becomes part of another.
    Substitutes,
    /// Goes on after the command has ended.
    GoesOn,
    /// Changes which programs or libraries are found.
    Environment,
}

/// A part that deserves a look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// What kind of part it is.
    pub kind: Kind,
    /// The part, as it is written, cut where it is long.
    pub part: String,
    /// Why, as the rest of a sentence that begins with the part.
    pub why: String,
}

/// More marks than this tell nothing more.
const MOST: usize = 40;
/// Longer parts are cut.
const LONGEST: usize = 100;

/// Programs that run another one, which begins at the first argument that is neither an option nor an assignment.
const WRAPPERS: &[&str] = &[
    "sudo", "doas", "env", "nohup", "setsid", "nice", "ionice", "time", "timeout", "command", "builtin",
    "exec", "xargs", "stdbuf", "chroot", "unbuffer", "strace", "watch", "parallel", "chrt", "taskset",
    "flock",
];
/// Options of those that have a value of their own behind them.
const VALUED: &[&str] =
    &["-u", "-g", "-n", "-I", "-P", "-L", "-s", "-k", "-C", "-S", "-h", "-p", "-d", "--user", "--signal"];

const DOWNLOADERS: &[&str] =
    &["curl", "wget", "fetch", "http", "https", "aria2c", "nc", "ncat", "socat", "ftp"];
const INTERPRETERS: &[&str] = &[
    "python",
    "python2",
    "python3",
    "perl",
    "ruby",
    "node",
    "deno",
    "bun",
    "php",
    "lua",
    "osascript",
    "pwsh",
    "tclsh",
];
/// Files that a shell runs when it starts.
const STARTUP: &[&str] = &[
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".inputrc",
    ".xprofile",
    ".config/fish",
    ".config/autostart",
    ".config/systemd",
    "/etc/cron",
    "/etc/profile",
    "/etc/systemd",
    ".ssh/",
    "authorized_keys",
    "/etc/sudoers",
    "LaunchAgents",
    "LaunchDaemons",
];

pub(super) fn marks(text: &str, all: &[Simple], functions: &[String]) -> Vec<Mark> {
    let mut marks = Marks { found: Vec::new() };
    marks.hidden(text);
    for (index, simple) in all.iter().enumerate() {
        marks.redirections(simple);
        marks.substitution(simple);
        marks.environment(simple);
        marks.recursion(simple, functions);
        if simple.background {
            marks.add(Kind::GoesOn, &simple.text, "is not waited for");
        }
        let pipeline = || all[..index].iter().filter(|other| other.pipeline == simple.pipeline);
        let fed_by_network =
            pipeline().any(|other| programs(other).any(|words| is_one_of(words, DOWNLOADERS)));
        let mut words = programs(simple).peekable();
        if words.peek().is_none() && simple.words.first().is_some_and(|word| word.literal.is_none()) {
            marks.add(Kind::RunsText, &simple.text, "runs a program whose name is only known then");
        }
        for words in words {
            marks.program(simple, words, all, fed_by_network);
        }
    }
    marks.found
}

/// The words of a simple command from each program on that it runs: `sudo env rm x` is three.
fn programs(simple: &Simple) -> impl Iterator<Item = &[Word]> {
    let mut rest = Some(simple.words.as_slice())
        .filter(|words| words.first().is_some_and(|word| word.literal.is_some()));
    std::iter::from_fn(move || {
        let words = rest.take()?;
        let name = name(words)?;
        if WRAPPERS.contains(&name) {
            rest = wrapped(name, words);
        } else if name == "find" {
            let execute =
                words.iter().position(|word| matches!(word.shown(), "-exec" | "-execdir" | "-ok" | "-okdir"));
            rest = execute.and_then(|at| words.get(at + 1..)).filter(|words| !words.is_empty());
        }
        Some(words)
    })
}

/// The words from the wrapped program on.
fn wrapped<'a>(name: &str, words: &'a [Word]) -> Option<&'a [Word]> {
    let mut at = 1;
    // These have something of their own before the program.
    let mut own = usize::from(matches!(name, "timeout" | "chroot" | "flock" | "taskset" | "chrt"));
    while let Some(word) = words.get(at) {
        let word = word.shown();
        if VALUED.contains(&word) {
            at += 2;
        } else if word.starts_with('-') || (name == "env" && word.contains('=')) {
            at += 1;
        } else if own > 0 {
            own -= 1;
            at += 1;
        } else {
            return words.get(at..);
        }
    }
    None
}

fn name(words: &[Word]) -> Option<&str> {
    words.first()?.literal.as_deref().map(base_name)
}

fn is_one_of(words: &[Word], names: &[&str]) -> bool {
    name(words).is_some_and(|name| names.contains(&name))
}

/// Whether a word is a short option with this letter, also among others, or this long option.
fn has_option(words: &[Word], letter: char, long: &str) -> bool {
    words.iter().skip(1).map(Word::shown).take_while(|word| *word != "--").any(|word| {
        word == long || (word.starts_with('-') && !word.starts_with("--") && word.contains(letter))
    })
}

struct Marks {
    found: Vec<Mark>,
}

impl Marks {
    fn add(&mut self, kind: Kind, part: &str, why: impl Into<String>) {
        let part = part.split_whitespace().collect::<Vec<_>>().join(" ");
        let part = match part.char_indices().nth(LONGEST) {
            Some((end, _)) => format!("{}…", &part[..end]),
            None => part,
        };
        let mark = Mark { kind, part, why: why.into() };
        if self.found.len() < MOST && !self.found.contains(&mark) {
            self.found.push(mark);
        }
    }

    /// Characters that make a command look like another one.
    fn hidden(&mut self, text: &str) {
        let is_hidden = |character: &char| {
            matches!(character, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
                || (character.is_control() && !matches!(character, '\n' | '\t'))
        };
        for character in text.chars().filter(is_hidden).take(3) {
            let code = u32::from(character);
            self.add(
                Kind::Hidden,
                &format!("U+{code:04X}"),
                "is a character that is not seen, and may make the command look like another one",
            );
        }
    }

    fn redirections(&mut self, simple: &Simple) {
        for Redirection { operator, target } in &simple.redirections {
            let place = target.shown();
            let plain = operator.trim_start_matches(|character: char| character.is_ascii_digit());
            let duplicates = plain.ends_with('&')
                && (place == "-" || place.chars().all(|character| character.is_ascii_digit()));
            if !plain.contains('>')
                || duplicates
                || matches!(place, "/dev/null" | "/dev/stdout" | "/dev/stderr" | "/dev/tty")
            {
                continue;
            }
            let part = format!("{operator}{}", target.raw);
            if place.starts_with("/dev/tcp/") || place.starts_with("/dev/udp/") {
                self.add(Kind::Writes, &part, "sends over the network");
            } else if place.starts_with("/dev/") {
                self.add(Kind::Machine, &part, "writes to a device");
            } else if plain.contains(">>") {
                self.add(Kind::Writes, &part, "appends to a file");
            } else {
                self.add(Kind::Writes, &part, "overwrites a file");
            }
            self.runs_later(&part, place);
        }
    }

    /// A place from which something is run later without being asked for.
    fn runs_later(&mut self, part: &str, place: &str) {
        if place.contains(".git/hooks") || place.contains(".git/config") || place.contains(".gitconfig") {
            self.add(Kind::RunsLater, part, "changes what git runs by itself");
        } else if STARTUP.iter().any(|startup| place.contains(startup)) {
            self.add(Kind::RunsLater, part, "changes what is run by itself later");
        }
    }

    fn substitution(&mut self, simple: &Simple) {
        match simple.context {
            Context::Substitution => self.add(
                Kind::Substitutes,
                &simple.text,
                "is run for its output, which becomes part of the command",
            ),
            Context::Process => self.add(Kind::Substitutes, &simple.text, "is run as if it were a file"),
            Context::Plain | Context::Subshell | Context::Text | Context::Function(_) => {}
        }
    }

    fn environment(&mut self, simple: &Simple) {
        let exported = simple
            .words
            .iter()
            .filter(|_| matches!(simple.name(), Some("export" | "declare" | "typeset" | "readonly")));
        let exported = exported.filter_map(|word| word.raw.split_once('=').map(|(name, _)| name));
        let names = simple.assignments.iter().map(|(name, _)| name.as_str()).chain(exported);
        for name in names {
            let why = match name {
                "PATH" | "CDPATH" => "changes which programs are found",
                "BASH_ENV" | "ENV" | "PROMPT_COMMAND" | "PYTHONSTARTUP" | "NODE_OPTIONS" | "PERL5OPT"
                | "RUBYOPT" => "makes programs run more than is asked for",
                "GIT_SSH" | "GIT_SSH_COMMAND" | "GIT_EXTERNAL_DIFF" | "GIT_PAGER" | "PAGER" | "EDITOR"
                | "VISUAL" => "changes which programs are run",
                name if name.starts_with("LD_") || name.starts_with("DYLD_") => {
                    "changes which libraries programs load"
                }
                _ => continue,
            };
            self.add(Kind::Environment, name, why);
        }
    }

    /// A function that calls itself and does not wait.
    fn recursion(&mut self, simple: &Simple, functions: &[String]) {
        if let Context::Function(function) = &simple.context
            && functions.contains(function)
            && simple.words.first().is_some_and(|word| word.raw == *function)
        {
            self.add(Kind::NeverEnds, &simple.text, "calls itself, perhaps without end");
        }
    }

    fn program(&mut self, simple: &Simple, words: &[Word], all: &[Simple], fed_by_network: bool) {
        let Some(name) = name(words) else { return };
        let part = simple.text.as_str();
        match name {
            "sudo" | "doas" | "su" | "pkexec" | "run0" => {
                self.add(Kind::MoreRights, part, "asks for the rights of another user")
            }
            "chmod" | "chown" | "chgrp" | "setfacl" | "chattr" => {
                if has_option(words, 'R', "--recursive") {
                    self.add(Kind::Removes, part, "changes the rights of everything below");
                }
                self.arguments_run_later(part, words);
            }
            "kill"
                if words
                    .iter()
                    .skip(1)
                    .any(|word| matches!(word.shown(), "-1" | "0") || word.shown().starts_with("--")) =>
            {
                self.add(Kind::EndsByPattern, part, "may end every process of the user, or the agent itself");
            }
            "pkill" | "killall" | "skill" | "fuser" | "xkill" => self.add(
                Kind::EndsByPattern,
                part,
                "ends every process that matches, perhaps the agent itself",
            ),
            "crontab" | "at" | "batch" | "systemd-run" | "launchctl" => {
                self.add(Kind::RunsLater, part, "makes something run later")
            }
            "reboot" | "shutdown" | "halt" | "poweroff" | "mount" | "umount" | "insmod" | "modprobe"
            | "iptables" | "nft" | "sysctl" | "systemctl" | "service" => {
                self.add(Kind::Machine, part, "changes the machine, not only files");
            }
            "nohup" | "setsid" | "disown" | "daemonize" | "tmux" | "screen" => {
                self.add(Kind::GoesOn, part, "goes on after the command")
            }
            "eval" | "source" | "." => self.add(Kind::RunsText, part, "runs text or a file as a command"),
            "git" => self.git(part, words),
            "tee" | "cp" | "mv" | "ln" | "install" | "rsync" | "touch" | "mkdir" | "sed" | "dd" => {
                self.writer(name, part, words);
                self.arguments_run_later(part, words);
            }
            _ => {}
        }
        self.remover(name, part, words);
        self.interpreter(name, part, words, all, fed_by_network);
    }

    fn arguments_run_later(&mut self, part: &str, words: &[Word]) {
        words.iter().skip(1).for_each(|word| self.runs_later(part, word.shown()));
    }

    fn writer(&mut self, name: &str, part: &str, words: &[Word]) {
        let in_place = name == "sed" && has_option(words, 'i', "--in-place");
        let device = name == "dd" && words.iter().any(|word| word.shown().starts_with("of=/dev/"));
        if device {
            self.add(Kind::Machine, part, "writes to a device");
        } else if in_place || matches!(name, "tee" | "dd") {
            self.add(Kind::Writes, part, "writes files");
        } else if name == "rsync" && words.iter().any(|word| word.shown().starts_with("--delete")) {
            self.add(Kind::Removes, part, "removes what is not in the source");
        }
    }

    fn remover(&mut self, name: &str, part: &str, words: &[Word]) {
        let removes = match name {
            "rm" | "rmdir" | "unlink" | "shred" | "wipe" | "srm" | "truncate" => true,
            "find" => words.iter().any(|word| word.shown() == "-delete"),
            "mkfs" | "fdisk" | "parted" | "wipefs" | "blkdiscard" => true,
            name => name.starts_with("mkfs."),
        };
        if !removes {
            return;
        }
        self.add(Kind::Removes, part, "removes files");
        if name != "rm" {
            return;
        }
        for word in words.iter().skip(1).filter(|word| !word.shown().starts_with('-')) {
            let shown = word.shown().trim_end_matches(['/', '*', '.']);
            if shown.is_empty() || matches!(shown, "~" | "$HOME" | "\"$HOME\"" | "${HOME}") {
                self.add(
                    Kind::Removes,
                    &word.raw,
                    "is a whole directory tree: everything here, the home directory or the whole system",
                );
            } else if word.literal.is_none()
                && word.raw.trim_start_matches('"').starts_with('$')
                && word.raw.contains('/')
            {
                self.add(Kind::Removes, &word.raw, "begins at / should the variable be empty");
            }
        }
    }

    fn git(&mut self, part: &str, words: &[Word]) {
        let arguments: Vec<&str> = words.iter().skip(1).map(Word::shown).collect();
        let has = |wanted: &str| arguments.contains(&wanted);
        let command =
            arguments.iter().find(|argument| !argument.starts_with('-')).copied().unwrap_or_default();
        let forced = has("--force")
            || has("-f")
            || has("--force-with-lease")
            || arguments.iter().any(|argument| argument.starts_with('+'));
        let discards = match command {
            "push" => forced || has("--delete") || has("--mirror"),
            "reset" => has("--hard"),
            "clean" => arguments.iter().any(|argument| argument.starts_with('-') && argument.contains('f')),
            "checkout" | "restore" | "switch" => has("--") || has(".") || forced || has("--discard-changes"),
            "stash" => has("drop") || has("clear"),
            "branch" => has("-D"),
            "reflog" | "filter-branch" | "filter-repo" | "gc" | "update-ref" => true,
            _ => false,
        };
        if discards {
            self.add(Kind::Removes, part, "may discard work that git does not keep elsewhere");
        }
        let runs = [
            "hookspath",
            "fsmonitor",
            "alias.",
            "sshcommand",
            "pager",
            "editor",
            "filter.",
            "textconv",
            "credential",
            "gpg",
            "external",
            "include",
        ];
        let sets = |argument: &&str| {
            let argument = argument.to_ascii_lowercase();
            runs.iter().any(|key| argument.contains(key))
        };
        if (command == "config" || has("-c")) && arguments.iter().any(sets) {
            self.add(Kind::RunsLater, part, "changes what git runs by itself");
        }
    }

    fn interpreter(&mut self, name: &str, part: &str, words: &[Word], all: &[Simple], fed_by_network: bool) {
        let shell = SHELLS.contains(&name);
        if !shell
            && !INTERPRETERS.contains(&name)
            && !name.starts_with("python3.")
            && !matches!(name, "eval" | "source" | ".")
        {
            return;
        }
        let downloads = |word: &Word| {
            let commands = word.commands.iter().filter_map(|index| all.get(*index));
            commands.flat_map(programs).any(|words| is_one_of(words, DOWNLOADERS))
        };
        // What a shell reads from its input is a program; so it is for an interpreter without a file.
        let reads_input = words.iter().skip(1).all(|word| word.shown().starts_with('-'))
            || words.iter().skip(1).any(|word| word.shown() == "-");
        if (fed_by_network && (reads_input || shell)) || words.iter().any(downloads) {
            self.add(Kind::RunsDownload, part, "runs what it gets from the network");
        } else if words.iter().skip(1).any(|word| word.literal.is_none() && !word.commands.is_empty()) {
            self.add(Kind::RunsText, part, "runs text that is only known then");
        }
    }
}

#[cfg(test)]
#[path = "marks_tests.rs"]
mod tests;
