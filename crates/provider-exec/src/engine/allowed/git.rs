//! Git, which runs programs in many places: those that its configuration names.

use std::fmt::Write as _;

use super::NotAllowed;
use super::options::{Listed, MANY};

/// A command of git that reads.
struct Command {
    name: &'static str,
    listed: Listed,
    /// Put before its arguments.
    first: &'static [&'static str],
    /// What its first argument must be, where it has commands of its own; `None` allows none to be given.
    below: Option<&'static [&'static str]>,
}

/// Options of everything that lists commits or changes.
const LISTING: &[&str] = &[
    "oneline",
    "stat",
    "shortstat",
    "numstat",
    "dirstat",
    "summary",
    "name-only",
    "name-status",
    "patch",
    "no-patch",
    "raw",
    "patch-with-stat",
    "all",
    "branches",
    "tags",
    "remotes",
    "graph",
    "decorate",
    "no-decorate",
    "abbrev-commit",
    "no-abbrev-commit",
    "abbrev",
    "no-abbrev",
    "reverse",
    "first-parent",
    "merges",
    "no-merges",
    "follow",
    "date-order",
    "topo-order",
    "author-date-order",
    "full-history",
    "simplify-merges",
    "left-right",
    "cherry",
    "cherry-pick",
    "cherry-mark",
    "boundary",
    "source",
    "format=",
    "pretty",
    "date=",
    "author=",
    "committer=",
    "grep=",
    "all-match",
    "invert-grep",
    "since=",
    "after=",
    "until=",
    "before=",
    "max-count=",
    "skip=",
    "diff-filter=",
    "relative-date",
    "parents",
    "children",
    "walk-reflogs",
    "reflog",
    "no-walk",
    "count",
    "unified",
    "word-diff",
    "word-diff-regex=",
    "color",
    "no-color",
    "color-words",
    "ignore-all-space",
    "ignore-space-change",
    "ignore-space-at-eol",
    "ignore-blank-lines",
    "ignore-cr-at-eol",
    "function-context",
    "find-renames",
    "find-copies",
    "find-copies-harder",
    "no-renames",
    "minimal",
    "patience",
    "histogram",
    "diff-algorithm=",
    "text",
    "binary",
    "full-index",
    "check",
    "exit-code",
    "quiet",
    "cached",
    "staged",
    "merge-base",
    "no-index",
    "relative",
    "inter-hunk-context=",
    "no-prefix",
    "src-prefix=",
    "dst-prefix=",
    "pickaxe-all",
    "pickaxe-regex",
    "compact-summary",
    "no-notes",
    "notes",
    "use-mailmap",
    "no-mailmap",
    "not",
    "encoding=",
    "ignore-missing",
    "objects",
    "objects-edge",
    "disk-usage",
    "cc",
    "combined-all-paths",
    "root",
    "always",
    "no-ext-diff",
    "no-textconv",
    "ignore-submodules",
];
/// Letters of the same. `-N` for a number is one of them, and so are the values of M, C and U, which stand right behind.
const LETTERS: &str = "0123456789%pusrwbBaRiEFPzcmtgUMCn:L:S:G:l:O:D";

const DIFFS: &[&str] = &["--no-ext-diff", "--no-textconv", "--ignore-submodules=all"];

const fn listing(name: &'static str, first: &'static [&'static str]) -> Command {
    Command {
        name,
        listed: Listed { short: LETTERS, long: LISTING, operands: MANY, prefix: "" },
        first,
        below: None,
    }
}

const fn only(name: &'static str, short: &'static str, long: &'static [&'static str]) -> Command {
    Command { name, listed: Listed { short, long, operands: MANY, prefix: "" }, first: &[], below: None }
}

const COMMANDS: &[Command] = &[
    Command {
        first: &["--ignore-submodules=all"],
        ..only(
            "status",
            "sbuvz",
            &[
                "short",
                "branch",
                "no-branch",
                "porcelain",
                "long",
                "verbose",
                "untracked-files",
                "ignored",
                "show-stash",
                "ahead-behind",
                "no-ahead-behind",
                "renames",
                "no-renames",
                "column",
                "no-column",
            ],
        )
    },
    listing("log", DIFFS),
    listing("diff", DIFFS),
    listing("show", DIFFS),
    listing("whatchanged", DIFFS),
    listing("diff-tree", DIFFS),
    listing("diff-index", DIFFS),
    listing("diff-files", DIFFS),
    listing("rev-list", &[]),
    listing("shortlog", &[]),
    listing("reflog", &[]),
    Command { below: Some(&["list", "show"]), ..listing("stash", &[]) },
    Command {
        first: &["--no-textconv"],
        ..only(
            "blame",
            "L:lfswtenbCMcp",
            &[
                "show-name",
                "show-number",
                "show-email",
                "porcelain",
                "line-porcelain",
                "root",
                "date=",
                "since=",
                "ignore-rev=",
                "no-textconv",
                "abbrev",
                "reverse",
                "first-parent",
            ],
        )
    },
    only(
        "grep",
        "niIwvhHEGPFlLcopA:B:C:e:f:m:azq",
        &[
            "line-number",
            "ignore-case",
            "word-regexp",
            "invert-match",
            "extended-regexp",
            "basic-regexp",
            "perl-regexp",
            "fixed-strings",
            "files-with-matches",
            "name-only",
            "files-without-match",
            "count",
            "only-matching",
            "show-function",
            "function-context",
            "after-context=",
            "before-context=",
            "context=",
            "and",
            "or",
            "not",
            "all-match",
            "cached",
            "untracked",
            "no-index",
            "no-textconv",
            "heading",
            "break",
            "column",
            "max-depth=",
            "color",
            "no-color",
            "full-name",
            "quiet",
            "null",
        ],
    ),
    only(
        "ls-files",
        "cdmoiskuztvfx:X:",
        &[
            "cached",
            "deleted",
            "modified",
            "others",
            "ignored",
            "stage",
            "unmerged",
            "killed",
            "exclude=",
            "exclude-from=",
            "exclude-standard",
            "error-unmatch",
            "full-name",
            "eol",
            "directory",
            "no-empty-directory",
            "deduplicate",
            "abbrev",
            "with-tree=",
        ],
    ),
    only(
        "ls-tree",
        "drtlz",
        &["long", "name-only", "name-status", "object-only", "full-name", "full-tree", "abbrev", "format="],
    ),
    only("cat-file", "tpse", &["batch-all-objects", "batch-check", "allow-unknown-type"]),
    only(
        "rev-parse",
        "q",
        &[
            "verify",
            "quiet",
            "short",
            "abbrev-ref",
            "symbolic",
            "symbolic-full-name",
            "show-toplevel",
            "show-prefix",
            "show-cdup",
            "show-superproject-working-tree",
            "git-dir",
            "git-common-dir",
            "absolute-git-dir",
            "is-inside-work-tree",
            "is-inside-git-dir",
            "is-bare-repository",
            "is-shallow-repository",
            "all",
            "branches",
            "tags",
            "remotes",
            "git-path=",
            "show-object-format",
            "path-format=",
            "revs-only",
            "no-revs",
            "default=",
        ],
    ),
    only(
        "describe",
        "",
        &[
            "all",
            "tags",
            "contains",
            "abbrev",
            "candidates=",
            "exact-match",
            "debug",
            "long",
            "match=",
            "exclude=",
            "always",
            "first-parent",
            "dirty",
            "broken",
        ],
    ),
    Command { listed: Listed { operands: 0, ..LIST_REFS }, ..only("branch", "", &[]) },
    Command { listed: Listed { operands: 0, ..LIST_REFS }, ..only("tag", "", &[]) },
    only("remote", "v", &["verbose"]),
    only(
        "config",
        "lz",
        &[
            "get",
            "get-all",
            "get-regexp",
            "get-urlmatch",
            "list",
            "show-origin",
            "show-scope",
            "name-only",
            "null",
            "local",
            "global",
            "system",
            "worktree",
            "type=",
            "bool",
            "int",
            "path",
            "default=",
            "includes",
            "no-includes",
        ],
    ),
    only(
        "for-each-ref",
        "",
        &[
            "count=",
            "sort=",
            "format=",
            "points-at=",
            "merged",
            "no-merged",
            "contains",
            "no-contains",
            "ignore-case",
            "omit-empty",
            "exclude=",
        ],
    ),
    only(
        "show-ref",
        "dhqs",
        &["head", "dereference", "hash", "verify", "quiet", "tags", "heads", "branches", "abbrev", "exists"],
    ),
    only("name-rev", "", &["tags", "refs=", "exclude=", "all", "name-only", "no-undefined", "always"]),
    only("merge-base", "a", &["all", "octopus", "is-ancestor", "independent", "fork-point"]),
    Command {
        listed: Listed { short: "q", long: &["quiet", "short"], operands: 1, prefix: "" },
        ..only("symbolic-ref", "", &[])
    },
    Command { below: Some(&["list"]), ..only("worktree", "vz", &["porcelain", "verbose"]) },
    only("count-objects", "vH", &["verbose", "human-readable"]),
    only("check-ignore", "qvnz", &["quiet", "verbose", "non-matching", "no-index"]),
    only("check-attr", "az", &["all", "cached"]),
    only("cherry", "v", &["abbrev"]),
    only("version", "", &["build-options"]),
];

/// Branches and tags are listed, not made: so everything but a pattern behind `--list` is an option.
const LIST_REFS: Listed = Listed {
    short: "arvlin",
    long: &[
        "all",
        "remotes",
        "verbose",
        "list",
        "ignore-case",
        "show-current",
        "merged=",
        "no-merged=",
        "contains=",
        "no-contains=",
        "points-at=",
        "sort=",
        "format=",
        "column",
        "no-column",
        "color",
        "no-color",
        "abbrev",
        "no-abbrev",
    ],
    operands: 0,
    prefix: "",
};

/// The arguments that git is run with in place of the given ones.
pub(super) fn check(arguments: &[String]) -> Result<Vec<String>, NotAllowed> {
    let refused = |argument: &str, why: &str| NotAllowed::Argument {
        name: "git",
        argument: argument.to_owned(),
        why: why.to_owned(),
    };
    let mut run = vec!["--no-pager".to_owned(), "--no-optional-locks".to_owned()];
    let mut arguments = arguments;
    let command = loop {
        match arguments {
            [option, directory, rest @ ..] if option == "-C" => {
                run.extend([option.clone(), directory.clone()]);
                arguments = rest;
            }
            [option, rest @ ..] if option == "--no-pager" || option == "--no-optional-locks" => {
                arguments = rest
            }
            [option, ..] if option.starts_with('-') => {
                return Err(refused(option, "of the options before the command, only -C and --no-pager are"));
            }
            [name, rest @ ..] => {
                arguments = rest;
                let found = COMMANDS.iter().find(|command| command.name == name);
                break found.ok_or_else(|| refused(name, &format!("only {} are", names())))?;
            }
            [] => return Err(refused("nothing", &format!("it needs a command; {} are allowed", names()))),
        }
    };
    command.check(arguments)?;
    run.push(command.name.to_owned());
    let below = command.below.map_or(0, |_| 1);
    let (own, rest) = arguments.split_at(below.min(arguments.len()));
    run.extend(own.iter().cloned());
    run.extend(command.first.iter().map(|first| (*first).to_owned()));
    run.extend(rest.iter().cloned());
    Ok(run)
}

fn names() -> String {
    COMMANDS.iter().map(|command| command.name).collect::<Vec<_>>().join(", ")
}

impl Command {
    fn check(&self, arguments: &[String]) -> Result<(), NotAllowed> {
        let refused = |argument: &str, why: String| NotAllowed::Argument {
            name: "git",
            argument: format!("{} {argument}", self.name),
            why,
        };
        if let Some(below) = self.below
            && !arguments.first().is_some_and(|first| below.contains(&first.as_str()))
        {
            return Err(refused("", format!("only with {} behind it", below.join(" or "))));
        }
        let operands = self
            .listed
            .operands(arguments)
            .map_err(|unlisted| {
                let why = unlisted.why(|| "it is not one of the options that only read".to_owned());
                refused(&unlisted.argument, why)
            })?
            .len();
        if let Some(argument) = arguments.iter().find(|argument| asks_for_signature(argument)) {
            return Err(refused(argument, "checking a signature runs a program".to_owned()));
        }
        // Behind `--` a word is no option, whatever it looks like.
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let options = || words.iter().take_while(|word| **word != "--");
        let allowed = match (self.name, words.as_slice()) {
            ("branch" | "tag", _) => operands == 0 || options().any(|word| matches!(*word, "-l" | "--list")),
            ("remote", words) => operands == 0 || words.first() == Some(&"get-url"),
            ("config", words) => {
                matches!(words.first(), Some(&"list" | &"get"))
                    || options().any(|word| matches!(*word, "-l" | "--list") || word.starts_with("--get"))
            }
            ("reflog", words) => {
                words.first().is_none_or(|first| !matches!(*first, "expire" | "delete" | "drop" | "write"))
            }
            ("shortlog" | "rev-list", _) => true,
            _ => operands <= self.listed.operands,
        };
        if allowed {
            Ok(())
        } else {
            Err(refused(
                arguments.first().map_or("", String::as_str),
                "so it would change something".to_owned(),
            ))
        }
    }
}

/// Formats with `%G…` or `%(signature…)` have signatures checked.
fn asks_for_signature(argument: &str) -> bool {
    argument.contains("%G") || argument.contains("%(signature")
}

/// The commands, and the settings that git is given, for the documentation.
pub(super) fn documented() -> String {
    let mut text = String::from("| command | options |\n|---|---|\n");
    for command in COMMANDS {
        let options = match command.listed.long {
            LISTING => "those of listing".to_owned(),
            _ => command.listed.documented(),
        };
        let below = match command.below {
            Some(below) => format!("only with `{}` behind it; ", below.join("` or `")),
            None => String::new(),
        };
        let given = match command.first {
            [] => String::new(),
            first => format!("; always given `{}`", first.join("` `")),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| `{}` | {below}{options}{given} |", command.name);
    }
    let listing = Listed { short: LETTERS, long: LISTING, operands: MANY, prefix: "" };
    let _ = writeln!(text, "\nThose of listing: {}\n", listing.documented());
    text.push_str("| setting | value |\n|---|---|\n");
    for (name, value) in SAFE_SETTINGS {
        let value = if value.is_empty() { "empty".to_owned() } else { format!("`{value}`") };
        let _ = writeln!(text, "| `{name}` | {value} |");
    }
    text
}

/// Settings that keep git from running what a repository names, and how. They are given to every run.
pub const SAFE_SETTINGS: &[(&str, &str)] = &[
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.editor", "false"),
    ("core.askPass", "false"),
    ("core.sshCommand", "false"),
    ("core.gitProxy", "none"),
    ("core.alternateRefsCommand", ":"),
    ("diff.external", ""),
    ("diff.ignoreSubmodules", "all"),
    ("diff.submodule", "short"),
    ("status.submoduleSummary", "false"),
    ("submodule.recurse", "false"),
    ("log.showSignature", "false"),
    ("gpg.program", "false"),
    ("gpg.openpgp.program", "false"),
    ("gpg.x509.program", "false"),
    ("gpg.ssh.program", "false"),
    ("gpg.ssh.defaultKeyCommand", "false"),
    ("credential.helper", ""),
    ("protocol.allow", "never"),
    ("interactive.diffFilter", ""),
    ("sequence.editor", "false"),
    ("uploadpack.packObjectsHook", ""),
    ("safe.bareRepository", "explicit"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
];

/// The harmless value for a setting whose name a repository has chosen and that names a program; none for others.
pub fn dangerous_value(key: &str) -> Option<&'static str> {
    let (section, rest) = key.split_once('.')?;
    let name = rest.rsplit_once('.').map_or(rest, |(_, name)| name).to_ascii_lowercase();
    let section = section.to_ascii_lowercase();
    let fixed = SAFE_SETTINGS.iter().any(|(known, _)| known.eq_ignore_ascii_case(key));
    if fixed {
        return None;
    }
    match (section.as_str(), name.as_str()) {
        ("filter", "clean" | "smudge" | "process") => Some(""),
        ("filter", "required") => Some("false"),
        ("diff", "command" | "textconv") => Some(""),
        (
            "merge" | "mergetool" | "difftool" | "trailer" | "tar" | "man" | "browser" | "guitool",
            "driver" | "cmd" | "command" | "path",
        ) => Some(""),
        ("pager" | "alias", _) => Some("cat"),
        ("remote", "uploadpack" | "receivepack" | "vcs") => Some(""),
        ("remote", "promisor") => Some("false"),
        ("credential", "helper") => Some(""),
        ("protocol", "allow") => Some("never"),
        ("submodule", "update") => Some("none"),
        ("gpg", "program" | "defaultkeycommand") => Some("false"),
        _ => None,
    }
}
