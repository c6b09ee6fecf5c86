//! What grep finds, beside what ripgrep finds, for patterns made of words that are in the tree.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use provider_core::jail::{JailPath, Roots};
use provider_search::engine::filter;
use provider_search::engine::grep::{Findings, Query, grep};
use provider_search::engine::hits::{FileHits, Unit};
use provider_search::engine::matcher::{Case, Options, Pattern};
use provider_search::engine::stop::Stop;
use provider_search::engine::walk;

use super::search_tree::SearchTree;
use super::{Random, Run, Stress};

/// The run.
pub const STRESS: Stress = Stress {
    name: "search-compare",
    about: "grep beside ripgrep: the same lines of the same files, the same totals",
    short_rounds: 60,
    run,
};

/// One comparison: how both are asked.
struct Question {
    pattern: String,
    options: Options,
    hidden: bool,
    ignored: bool,
    glob: Option<&'static str>,
    file_type: Option<&'static str>,
}

fn run(run: &Run) -> anyhow::Result<String> {
    let SearchTree { path: tree, files, .. } = &SearchTree::of(run, ".rgignore")?;
    let roots = Roots::open(&[tree.to_string_lossy().into_owned()], Path::new("/"))?;
    let start = roots.directory(0)?;
    let (mut hits, mut with_hits) = (0_u64, 0_u64);
    while let Some(mut random) = run.next_round() {
        let question = question(files, &mut random);
        let found = ours(&start, &question)?;
        let expected = theirs(tree, &question)?;
        let lines: BTreeSet<_> = found.files.iter().flat_map(places).collect();
        if lines != expected {
            let missing: Vec<_> = expected.difference(&lines).take(5).map(shown).collect();
            let surplus: Vec<_> = lines.difference(&expected).take(5).map(shown).collect();
            anyhow::bail!("{}: missing {missing:?}, surplus {surplus:?}", question.command().join(" "));
        }
        ensure!(found.totals.lines == expected.len() as u64, "{}: the total is wrong", question.pattern);
        hits += expected.len() as u64;
        with_hits += u64::from(!expected.is_empty());
    }
    Ok(format!("{with_hits} of the patterns hit {hits} lines, each in both"))
}

/// A line of a file.
type Place = (Vec<u8>, u64);

fn places(file: &FileHits) -> impl Iterator<Item = Place> {
    file.hits.iter().map(|hit| (file.path.to_vec(), hit.line))
}

fn shown((path, line): &Place) -> String {
    format!("{}:{line}", OsStr::from_bytes(path).display())
}

fn ours(start: &JailPath, question: &Question) -> anyhow::Result<Findings> {
    let pattern = Pattern::new(&question.pattern, question.options)?;
    let walk = walk::Options {
        hidden: question.hidden,
        ignored: question.ignored,
        globs: filter::globs(question.glob)?,
        types: filter::types(question.file_type)?.0,
        threads: std::thread::available_parallelism().map_or(1, usize::from),
    };
    let query = Query {
        pattern: &pattern,
        walk: &walk,
        unit: Unit::Hit,
        first: usize::MAX,
        before: 0,
        after: 0,
        binary: false,
        found: &|_| {},
    };
    let stop = Stop::at(Instant::now() + Duration::from_secs(600));
    let found = grep(start, &query, &stop)?;
    ensure!(!stop.timed_out(), "{} took ten minutes", question.pattern);
    Ok(found)
}

fn theirs(tree: &Path, question: &Question) -> anyhow::Result<BTreeSet<Place>> {
    let command = question.command();
    let output = Command::new(&command[0])
        .args(&command[1..])
        .current_dir(tree)
        .output()
        .context("ripgrep is needed to compare with (a package of that name has the program rg)")?;
    ensure!(output.status.code() != Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    let place = |line: &[u8]| {
        let (path, rest) = line.split_at_checked(line.iter().position(|byte| *byte == 0)?)?;
        let number: Vec<u8> = rest[1..].iter().copied().take_while(u8::is_ascii_digit).collect();
        let path = path.strip_prefix(b"./").unwrap_or(path);
        Some((path.to_vec(), String::from_utf8(number).ok()?.parse().ok()?))
    };
    Ok(output.stdout.split(|byte| *byte == b'\n').filter_map(place).collect())
}

impl Question {
    fn command(&self) -> Vec<String> {
        let mut command: Vec<String> = [
            "rg",
            "--no-config",
            "--null",
            "--with-filename",
            "--line-number",
            "--no-heading",
            "--color=never",
        ]
        .map(str::to_owned)
        .to_vec();
        let mut add = |on: bool, flag: &str| on.then(|| command.push(flag.to_owned()));
        add(self.options.fixed_strings, "--fixed-strings");
        add(self.options.word, "--word-regexp");
        add(self.options.case == Case::Insensitive, "--ignore-case");
        add(self.options.case == Case::Smart, "--smart-case");
        add(self.hidden, "--hidden");
        add(self.ignored, "--no-ignore");
        command.extend(self.glob.map(|glob| format!("--glob={glob}")));
        command.extend(self.file_type.map(|name| format!("--type={name}")));
        command.extend([format!("--regexp={}", self.pattern), ".".to_owned()]);
        command
    }
}

/// Something to search for, made of words that a file of the tree has.
fn question(files: &[PathBuf], random: &mut Random) -> Question {
    let words = words(files, random);
    let word = |random: &mut Random| random.pick(&words).cloned().unwrap_or_else(|| "the".to_owned());
    let (one, other) = (word(random), word(random));
    let head = &one[..one.len().min(3)];
    let fixed_strings = random.once_in(6);
    let pattern = match random.below(12) {
        _ if fixed_strings => [one.clone(), format!("{other}("), format!("{other}."), format!("*{one}")]
            .get(random.below(4))
            .cloned()
            .unwrap_or_default(),
        0 | 1 => one,
        2 => format!(r"\b{one}\b"),
        3 => format!("{one}|{other}"),
        4 => format!(r"^\s*{one}"),
        5 => format!(r"{one}\s*[;,)]?$"),
        6 => format!("{one}.*{other}"),
        7 => format!(r"\w+{other}\w*\s*\("),
        8 => format!(r"[A-Z]\w*{head}"),
        9 => format!(r"(?i){one}[^a-z]+{other}"),
        10 => format!("{head}[a-z_]{{2,6}}[0-9]"),
        _ => format!(r"(\w+)_{one}|{other}->\w+"),
    };
    let case = *random
        .pick(&[Case::Sensitive, Case::Sensitive, Case::Smart, Case::Insensitive])
        .unwrap_or(&Case::Smart);
    let glob =
        if random.once_in(5) { random.pick(&["*.c", "*.{h,rs}", "!*.c", "*a*"]).copied() } else { None };
    let file_type = if random.once_in(8) { random.pick(&["c", "rust", "make"]).copied() } else { None };
    Question {
        pattern,
        options: Options { fixed_strings, case, word: random.once_in(6), multiline: false },
        hidden: random.once_in(4),
        ignored: random.once_in(4),
        glob,
        file_type,
    }
}

/// The words of some lines of one file.
fn words(files: &[PathBuf], random: &mut Random) -> Vec<String> {
    let mut text = Vec::new();
    let file = random.pick(files).and_then(|path| fs::File::open(path).ok());
    let _ = file.map(|file| file.take(1 << 16).read_to_end(&mut text));
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let all: Vec<_> =
        text.split(|byte| !is_letter(byte)).filter(|word| word.len() > 2 && word.len() < 30).collect();
    let at = random.below(all.len().saturating_sub(20));
    all.iter().skip(at).take(20).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}
