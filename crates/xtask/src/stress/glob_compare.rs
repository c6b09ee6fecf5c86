//! What glob finds, beside what fd finds, for patterns made of paths that are in the tree: from a walk the first time,
//! from memory later.
//!
//! Both read the same grammar and the same ignore files. Where glob finds more on purpose, each path that it finds more
//! must be one that it may: see [`explained`].

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};
use provider_core::testing::Harness;
use provider_search::Search;
use serde_json::{Value, json};

use super::search_tree::SearchTree;
use super::{Random, Run, Stress};

/// The run.
pub const STRESS: Stress = Stress {
    name: "glob-compare",
    about: "glob beside fd: the same paths, from a walk and from memory",
    short_rounds: 60,
    run,
};

/// What one page of an answer holds at most.
const PAGE: u64 = 100_000;

/// One comparison: how both are asked.
struct Question {
    pattern: String,
    hidden: bool,
    ignored: bool,
}

fn run(run: &Run) -> anyhow::Result<String> {
    // Of `.rgignore`, which glob reads like ripgrep, fd knows nothing; of `.fdignore` glob does not.
    let tree = SearchTree::of(run, ".ignore")?;
    let fd = fd()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let config = json!({"allowed_roots": [&tree.path], "deadline_ms": 600_000});
        let provider = Harness::start::<Search>(config).await.context("the provider does not start")?;
        let provider = provider.in_directory(&tree.path);
        let (mut found, mut with_paths, mut more) = (0, 0, 0);
        while let Some(mut random) = run.next_round() {
            let question = question(&tree, &mut random);
            let ours = ours(&provider, &question).await?;
            let theirs = question.ask(fd, &tree.path)?;
            let missing: Vec<_> = theirs.difference(&ours).take(5).collect();
            let surplus: BTreeSet<_> = ours.difference(&theirs).cloned().collect();
            let unexplained = explained(&question, fd, &tree.path, &surplus)?;
            ensure!(
                missing.is_empty() && unexplained.is_empty(),
                "{}: missing {missing:?}, surplus {:?}",
                question.command(fd, &tree.path).join(" "),
                unexplained.iter().take(5).collect::<Vec<_>>()
            );
            found += theirs.len();
            with_paths += u64::from(!theirs.is_empty());
            more += surplus.len();
        }
        Ok(format!(
            "{with_paths} of the patterns match {found} paths, each in both; {more} more were found as explicit \
             segments promise"
        ))
    })
}

/// fd, under either of its names.
fn fd() -> anyhow::Result<&'static str> {
    let found =
        ["fd", "fdfind"].into_iter().find(|name| Command::new(name).arg("--version").output().is_ok());
    found.context("fd is needed to compare with (a package called fd-find has it)")
}

/// All pages of the answer: files and links, or directories with their slash if the pattern asks for them.
async fn ours(provider: &Harness, question: &Question) -> anyhow::Result<BTreeSet<String>> {
    let (mut all, mut offset) = (BTreeSet::new(), Some(0));
    while let Some(from) = offset {
        let arguments = json!({
            "pattern": question.pattern,
            "hidden": question.hidden,
            "ignored": question.ignored,
            "limit": PAGE,
            "offset": from,
        });
        let outcome = provider.call("glob", arguments).await;
        let payload = outcome.payload();
        ensure!(
            payload["timed_out"] == false && payload["errors"] == json!([]),
            "{}: {payload}",
            question.pattern
        );
        let paths = payload["paths"].as_array().into_iter().flatten().filter_map(Value::as_str);
        // Where nothing else matches, directories are answered: more than was asked of fd.
        let asked = |path: &&str| path.ends_with('/') == question.directories();
        all.extend(paths.filter(asked).map(str::to_owned));
        offset = payload["next_offset"].as_u64();
    }
    Ok(all)
}

impl Question {
    fn directories(&self) -> bool {
        self.pattern.ends_with('/')
    }

    fn command(&self, fd: &str, tree: &Path) -> Vec<String> {
        let mut command =
            vec![fd.to_owned(), "--color=never".to_owned(), "--no-global-ignore-file".to_owned()];
        let types: &[&str] =
            if self.directories() { &["directory"] } else { &["file", "symlink", "socket", "pipe"] };
        command.extend(types.iter().map(|kind| format!("--type={kind}")));
        if self.hidden {
            command.push("--hidden".to_owned());
        }
        match self.ignored {
            true => command.push("--no-ignore".to_owned()),
            // The inside of a repository is as good as ignored.
            false => command.push("--exclude=.git".to_owned()),
        }
        let pattern = self.pattern.trim_end_matches('/');
        let root = glob_escaped(&tree.to_string_lossy());
        let tree = tree.to_string_lossy().into_owned();
        command.extend(["--full-path".to_owned(), "--glob".to_owned(), format!("{root}/{pattern}"), tree]);
        command
    }

    /// What fd finds, from the root of the tree.
    fn ask(&self, fd: &str, tree: &Path) -> anyhow::Result<BTreeSet<String>> {
        let command = self.command(fd, tree);
        let output = Command::new(&command[0]).args(&command[1..]).output()?;
        ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        let prefix = [tree.as_os_str().as_bytes(), b"/"].concat();
        let beneath =
            |line: &[u8]| line.strip_prefix(&*prefix).map(|path| String::from_utf8_lossy(path).into_owned());
        Ok(output.stdout.split(|byte| *byte == b'\n').filter_map(beneath).collect())
    }

    fn segments(&self) -> impl Iterator<Item = &str> {
        self.pattern.split('/')
    }
}

/// Takes away of `surplus` what glob is to find and fd is not. Two things make such a path:
///
/// - A segment of the pattern that is spelled out, or begins with a dot, reaches what is hidden or ignored. Such a path fd
///   finds too when it is told to look there.
/// - A segment that looks like a set of characters also matches the name that is spelled just so. Such a path fd finds
///   too when the segment is escaped.
fn explained(
    question: &Question,
    fd: &str,
    tree: &Path,
    surplus: &BTreeSet<String>,
) -> anyhow::Result<BTreeSet<String>> {
    if surplus.is_empty() {
        return Ok(BTreeSet::new());
    }
    let mut may_be = BTreeSet::new();
    let is_explicit =
        |segment: &str| segment.starts_with(['.', '{']) || !segment.contains(['*', '?', '[', '{']);
    let explicit = question.segments().any(is_explicit);
    let spelled = question.segments().any(|segment| segment.starts_with('['));
    let escaped: Vec<_> = question
        .segments()
        .map(|segment| if segment.starts_with('[') { glob_escaped(segment) } else { segment.to_owned() })
        .collect();
    for pattern in [question.pattern.clone(), escaped.join("/")] {
        let (hidden, ignored) = (question.hidden || explicit, question.ignored || explicit);
        if explicit || (spelled && pattern != question.pattern) {
            may_be.append(&mut Question { pattern, hidden, ignored }.ask(fd, tree)?);
        }
    }
    Ok(surplus.difference(&may_be).cloned().collect())
}

/// A name as a pattern that matches just that.
fn glob_escaped(name: &str) -> String {
    let escape = |character: char| match character {
        '*' | '?' | '[' | ']' | '{' | '}' | '!' | '\\' => format!("\\{character}"),
        other => other.to_string(),
    };
    name.chars().map(escape).collect()
}

/// A pattern made of a path of the tree.
fn question(tree: &SearchTree, random: &mut Random) -> Question {
    let path = random.pick(&tree.files).and_then(|path| path.strip_prefix(&tree.path).ok());
    let names: Vec<String> =
        path.into_iter().flat_map(Path::iter).map(|name| name.to_string_lossy().into_owned()).collect();
    let mut segments: Vec<String> = names.iter().map(|name| segment(name, random)).collect();
    // Any number of directories in place of some.
    if segments.len() > 1 && !random.once_in(4) {
        let from = random.below(segments.len() - 1);
        let to = from + 1 + random.below(segments.len() - 1 - from);
        segments.splice(from..to, ["**".to_owned()]);
    }
    match random.below(12) {
        0 => segments.push("**".to_owned()),
        1 => drop(segments.pop()),
        2 => segments.insert(0, "**".to_owned()),
        _ => {}
    }
    if segments.len() > 1 && random.once_in(10) {
        segments.pop();
        segments.push(String::new());
    }
    let mut pattern = segments.join("/");
    if pattern.is_empty() {
        "**/*".clone_into(&mut pattern);
    }
    Question { pattern, hidden: random.once_in(4), ignored: random.once_in(4) }
}

/// A segment that matches `name`, and perhaps others.
fn segment(name: &str, random: &mut Random) -> String {
    let characters: Vec<char> = name.chars().collect();
    let (before, after) = characters.split_at(random.below(characters.len()));
    let escaped = |characters: &[char]| glob_escaped(&characters.iter().collect::<String>());
    let extension = name.rsplit_once('.').map(|(_, extension)| glob_escaped(extension));
    match (random.below(11), after, extension) {
        (0..=2, _, Some(extension)) => format!("*.{extension}"),
        (3, _, Some(extension)) => format!("*.{{{extension},md,[ch]}}"),
        (4, ..) => format!("{}*", escaped(before)),
        (5, ..) => format!("*{}", escaped(after)),
        (6, [one, rest @ ..], _) if one.is_ascii_alphanumeric() => {
            format!("{}[{one}-{one}_]{}", escaped(before), escaped(rest))
        }
        (7, [_, rest @ ..], _) => format!("{}?{}", escaped(before), escaped(rest)),
        (8, [one, rest @ ..], _) if one.is_ascii_alphanumeric() => {
            format!("{}[!{one}]{}", escaped(before), escaped(rest))
        }
        (9, ..) => format!("{{{},no-such-name}}", escaped(&characters)),
        (10, ..) => "*".to_owned(),
        _ if random.once_in(2) => name.to_owned(),
        _ => glob_escaped(name),
    }
}
