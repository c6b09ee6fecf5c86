//! Whatever is done to a tree, what is answered from memory is what a walk finds.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use provider_core::jail::{FileKind, Roots};

use super::Warm;
use crate::engine::glob::Pattern;
use crate::engine::glob::judge::Judge;
use crate::engine::glob::start::Start;
use crate::engine::glob::walk::{Hit, Query, Sink, Tally, walk};
use crate::engine::stop::Stop;

#[derive(Default)]
struct All(Vec<(Vec<u8>, FileKind, i128)>);

impl Sink for All {
    fn hit(&mut self, hit: &Hit<'_>) {
        self.0.push((hit.path.to_vec(), hit.kind, hit.modified));
    }
}

type Found = (Vec<(Vec<u8>, FileKind, i128)>, Tally);

/// A root in a folder of its own, with what is kept of it.
struct Place {
    _folder: tempfile::TempDir,
    root: PathBuf,
    roots: Roots,
    warm: Warm,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("around/root");
        fs::create_dir_all(&root).unwrap();
        let roots = Roots::open(&[root.to_str().unwrap().to_owned()], Path::new("/")).unwrap();
        Self { _folder: folder, root, roots, warm: Warm::default() }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// What a walk finds, and what is answered from memory if anything is.
    fn both(&self, from: &str, pattern: &str, hidden: bool) -> Option<(Found, Option<Found>)> {
        let from = if from.is_empty() { "." } else { from };
        let start = self.roots.resolve(from, &self.root).ok()?;
        let start = Start::open(&start).ok()?;
        let pattern = Pattern::new(pattern).unwrap();
        let judge = Judge { pattern: &pattern, hidden, ignored: false };
        let query = Query { judge, times: true, threads: 2 };
        let stop = Stop::at(Instant::now() + Duration::from_secs(60));
        let (sinks, tally) = walk(&start, query, &stop, All::default);
        let cold = sorted(sinks.into_iter().flat_map(|sink| sink.0).collect(), tally);
        let warm = self.warm.answer(&start, query, &stop, All::default);
        let warm = warm.map(|(sink, tally)| sorted(sink.0, tally));
        if warm.is_none() {
            self.warm.keep(&start, hidden);
            self.warm.settle();
        }
        Some((cold, warm))
    }

    /// Checks that both agree, and answers whether there was anything in memory.
    #[track_caller]
    fn agree(&self, from: &str, pattern: &str, hidden: bool, after: &str) -> bool {
        let Some((cold, warm)) = self.both(from, pattern, hidden) else { return false };
        if let Some(warm) = &warm {
            assert_eq!(readable(warm), readable(&cold), "{from} {pattern} {hidden} after {after}");
        }
        warm.is_some()
    }
}

fn sorted(mut found: Vec<(Vec<u8>, FileKind, i128)>, tally: Tally) -> Found {
    found.sort_by(|one, other| one.0.cmp(&other.0));
    (found, tally)
}

fn readable((found, tally): &Found) -> (Vec<String>, &Tally) {
    let show = |(path, kind, modified): &(Vec<u8>, FileKind, i128)| {
        format!("{} {kind} {modified}", String::from_utf8_lossy(path))
    };
    (found.iter().map(show).collect(), tally)
}

#[test]
fn the_second_answer_comes_from_memory() {
    let place = Place::new();
    for n in 0..200 {
        place.put(&format!("d{}/e{}/f{n}.rs", n % 10, n % 7), "");
    }
    assert!(!place.agree("", "**/*.rs", false, "nothing"));
    assert!(place.warm.settle() > 70);
    assert!(place.agree("", "**/*.rs", false, "nothing"));
    assert!(place.agree("d3", "**", false, "nothing"));
    assert!(place.agree("d3/e2", "*", false, "nothing"));
    assert!(place.agree("", "**/", true, "nothing"));
}

#[test]
fn a_checkout_that_changes_ten_thousand_files_is_seen_at_once() {
    let place = Place::new();
    let write = |generation: usize| {
        for n in 0..10_000 {
            place.put(&format!("d{}/{generation}-{n}", n % 100), "");
        }
    };
    write(0);
    place.agree("", "**", false, "the first writing");
    assert!(place.agree("", "**", false, "nothing"));
    fs::remove_dir_all(place.at("d7")).unwrap();
    write(1);
    for n in 0..10_000 {
        let _ = fs::remove_file(place.at(&format!("d{}/0-{n}", n % 100)));
    }
    let ((cold, _), _) = place.both("", "**/1-*", false).unwrap();
    assert_eq!(cold.iter().filter(|(_, kind, _)| *kind == FileKind::File).count(), 10_000);
    for _ in 0..3 {
        place.agree("", "**", false, "the checkout");
    }
    assert!(place.agree("", "**", false, "nothing"));
}

#[test]
fn rules_above_the_root_and_in_a_repository_are_read_again() {
    let place = Place::new();
    let around = place.root.parent().unwrap().to_owned();
    place.put("a.log", "");
    place.put("sub/b.log", "");
    place.put("sub/c.txt", "");
    fs::create_dir_all(around.join(".git/info")).unwrap();
    let known = |after: &str| {
        place.agree("", "**", true, after);
        place.agree("", "**", true, after);
        assert!(place.agree("", "**", true, after), "{after}");
        assert!(place.agree("sub", "**", true, after), "{after}");
    };
    known("nothing");
    fs::write(around.join(".gitignore"), "*.log\n").unwrap();
    known("rules above the root");
    fs::write(around.join(".gitignore"), "*.txt\n").unwrap();
    known("rules above the root of the same length");
    fs::create_dir_all(place.at("sub/.git/info")).unwrap();
    known("a repository");
    fs::write(place.at("sub/.git/info/exclude"), "b*\n").unwrap();
    known("an exclude file");
    fs::write(place.at("sub/.git/info/exclude"), "c*\n").unwrap();
    known("an exclude file of the same length");
    place.put("sub/.ignore", "# nothing\n");
    known("an ignore file without rules");
    fs::write(place.at("sub/.ignore"), "*.log\n").unwrap();
    known("rules in it");
    fs::remove_dir_all(place.at("sub/.git")).unwrap();
    known("no repository");
}

#[test]
fn another_root_of_the_same_name_is_another_root() {
    let place = Place::new();
    place.put("a/old", "");
    place.agree("", "**", false, "nothing");
    assert!(place.agree("", "**", false, "nothing"));
    fs::rename(&place.root, place.root.with_file_name("moved")).unwrap();
    place.put("a/new", "");
    for _ in 0..3 {
        place.agree("", "**", false, "the root was replaced");
    }
    let ((cold, _), _) = place.both("", "**/*", false).unwrap();
    assert!(cold.iter().any(|(path, ..)| path == b"a/new"), "{cold:?}");
}

#[test]
fn memory_holds_what_it_must_and_is_given_back() {
    let place = Place::new();
    for n in 0..500 {
        place.put(&format!("d{n}/f"), "");
    }
    place.agree("", "**", false, "nothing");
    assert_eq!(place.warm.settle(), 501);
    for n in 0..40 {
        fs::remove_dir_all(place.at(&format!("d{n}"))).unwrap();
    }
    assert!(place.agree("", "**", false, "removal"));
    assert_eq!(place.warm.settle(), 461);
    for n in 100..120 {
        fs::rename(place.at(&format!("d{n}")), place.root.with_file_name(format!("out{n}"))).unwrap();
    }
    assert!(place.agree("", "**", false, "moving out"));
    assert_eq!(place.warm.settle(), 441);
}

#[test]
fn a_directory_that_cannot_be_read_is_named_and_the_others_are_searched() {
    let place = Place::new();
    place.put("open/a.rs", "");
    place.put("locked/b.rs", "");
    fs::set_permissions(place._folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(place.at("locked"), fs::Permissions::from_mode(0o000)).unwrap();
    // Whoever may read everything would see no error, so a thread becomes somebody else.
    let somebody = std::thread::spawn(move || {
        if rustix::process::geteuid().is_root() {
            let nobody = rustix::process::Uid::from_raw(65_534);
            rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
        }
        for _ in 0..3 {
            let ((found, tally), warm) = place.both("", "**/*.rs", false).unwrap();
            assert_eq!(found.iter().map(|(path, ..)| &path[..]).collect::<Vec<_>>(), [b"open/a.rs"]);
            assert_eq!(tally.errors, [(b"locked".to_vec(), "Permission denied".to_owned())]);
            assert!(warm.is_none_or(|warm| warm == (found, tally)));
        }
        place
    });
    let place = somebody.join().unwrap();
    fs::set_permissions(place.at("locked"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(place.both("", "**/*.rs", false).unwrap().0.0.len(), 2);
}

/// Numbers that are the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    fn directory(&mut self) -> String {
        let depth = self.below(4);
        (0..depth).map(|_| self.pick(&["a", "b", ".h", "skip"])).collect::<Vec<_>>().join("/")
    }
}

/// Whether a symbolic link is on the way to, or at, `path`: what is done there would be done elsewhere.
fn passes_a_link(place: &Place, path: &Path) -> bool {
    assert!(path.is_relative());
    path.ancestors().any(|path| place.root.join(path).is_symlink())
}

/// One random change below a root, and never elsewhere. Answers what it was, for the message of a failure.
fn change(place: &Place, random: &mut Random) -> String {
    let (one, other) = (random.directory(), random.directory());
    let name = random.pick(&["x.rs", "y.log", ".z", "a", "link"]);
    let touched = [Path::new(&one).join(name), PathBuf::from(&other)];
    if touched.iter().any(|path| passes_a_link(place, path)) {
        let _ = fs::remove_file(place.root.join(random.pick(&["a", "b", "link"])));
        return "nothing".to_owned();
    }
    let (from, to) = (place.at(&one), place.at(&other));
    let rules = random.pick(&["*.log\n", "skip\n", "!y.log\n", "/a\n", "*\n", "", "# b\n", "!.h\n"]);
    let outside = place.root.with_file_name(random.pick(&["out1", "out2"]));
    let inside = !one.is_empty();
    let what = random.below(14);
    // Whether it can be done depends on what is there; either way the answers must agree.
    let _ = match what {
        0 | 1 => fs::create_dir_all(&from).and_then(|()| fs::write(from.join(name), "")),
        2 => fs::create_dir_all(&from),
        3 => fs::remove_file(from.join(name)),
        4 if inside => fs::remove_dir_all(&from),
        5 | 6 if inside => fs::rename(&from, to.join(name)),
        7 if inside => fs::rename(&from, &outside),
        8 => fs::rename(&outside, from.join(name)),
        9 => fs::write(from.join(random.pick(&[".gitignore", ".ignore"])), rules),
        10 => fs::create_dir_all(from.join(".git/info"))
            .and_then(|()| fs::write(from.join(".git/info/exclude"), rules)),
        11 => symlink(random.pick(&["a", "..", "/nowhere/at/all", "../../nowhere"]), from.join(name)),
        12 if inside => fs::rename(&from, from.with_extension("was"))
            .and_then(|()| symlink(random.pick(&["b", "a.was", "/nowhere"]), &from)),
        13 => fs::set_permissions(
            &from,
            fs::Permissions::from_mode(0o700 + u32::try_from(random.below(8)).unwrap()),
        ),
        _ => Ok(()),
    };
    format!("{what} {one}/{name} {other} {rules:?}")
}

fn random_changes(seed: u64, rounds: usize) -> (usize, usize) {
    let place = Place::new();
    let mut random = Random(seed);
    let (mut asked, mut remembered) = (0, 0);
    fs::create_dir(place.at(".git")).unwrap();
    let mut history = String::new();
    for _ in 0..rounds {
        history.clear();
        for _ in 0..=random.below(3) {
            history += &change(&place, &mut random);
            history += "; ";
        }
        for _ in 0..2 {
            let from = if random.below(3) == 0 { random.directory() } else { String::new() };
            let pattern =
                random.pick(&["**", "**/*.rs", "**/", "a/**", "**/.z", "*/*", "skip/**", ".h/**/*.log"]);
            let hidden = random.below(2) == 0;
            asked += 1;
            remembered +=
                usize::from(place.agree(&from, pattern, hidden, &format!("{history} (seed {seed})")));
        }
    }
    (asked, remembered)
}

#[test]
fn random_changes_never_make_memory_and_walk_disagree() {
    let (mut asked, mut remembered) = (0, 0);
    for seed in 1..=5 {
        let (more_asked, more_remembered) = random_changes(seed, 100);
        asked += more_asked;
        remembered += more_remembered;
    }
    assert!(remembered * 2 > asked, "only {remembered} of {asked} answers came from memory");
}
