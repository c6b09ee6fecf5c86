//! Random trees of links and random paths, against what the operating system resolves.

use std::fs;
use std::path::{Path, PathBuf};

use jail::PathError;

use crate::support::Fixture;

const TREES: u64 = 80;
const PATHS: usize = 150;

/// A small generator (xorshift), so that a failure can be repeated from its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap()
    }

    fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }

    /// Some names below the root, any of which may be a directory, a file, a link or missing.
    fn path(&mut self) -> String {
        let names = ["a", "b", "c", "file", "link-1", "link-2", "link-3", "out-1", "out-2", "..", "."];
        let length = 1 + self.below(5);
        (0..length).map(|_| self.pick(&names)).collect::<Vec<_>>().join("/")
    }
}

/// Directories a, b, c in each other, a file in each, links to random places among them.
fn plant(fixture: &Fixture, random: &mut Random) {
    let mut directories = vec![PathBuf::new()];
    for one in ["a", "b", "c"] {
        directories.push(PathBuf::from(one));
        directories.push(Path::new(one).join(random.pick(&["a", "b", "c"])));
    }
    for directory in &directories {
        let path = directory.join("file");
        fixture.write(path.to_str().unwrap(), &format!("inside {}", path.display()));
    }
    fs::create_dir_all(fixture.outside("a/b")).unwrap();
    fs::write(fixture.outside("a/file"), "outside").unwrap();
    fs::write(fixture.outside("file"), "outside").unwrap();
    for (index, directory) in directories.iter().enumerate() {
        for name in ["link-1", "link-2", "link-3"] {
            let target = match random.below(3) {
                0 => fixture.repo(&random.path()),
                _ => PathBuf::from(random.path()),
            };
            fixture.link(target, directory.join(name).to_str().unwrap());
        }
        let up = "../".repeat(directory.components().count() + 1);
        fixture.link(format!("{up}outside"), directory.join("out-1").to_str().unwrap());
        let target = if index % 2 == 0 { fixture.outside("a") } else { fixture.outside("file") };
        fixture.link(target, directory.join("out-2").to_str().unwrap());
    }
}

#[test]
fn what_is_read_is_what_the_system_finds_if_that_is_inside() {
    let (mut inside, mut outside, mut other) = (0, 0, 0);
    for seed in 1..=TREES {
        let fixture = Fixture::new();
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        plant(&fixture, &mut random);
        let root = fixture.folder().join("repo").canonicalize().unwrap();
        for _ in 0..PATHS {
            let asked = random.path();
            let context = format!("seed {seed}, path {asked}");
            let ours = fixture.read(&asked);
            if let Ok(text) = &ours {
                assert!(text.starts_with("inside"), "{context}");
            }
            match fixture.repo(&asked).canonicalize() {
                Ok(real) if !real.starts_with(&root) => {
                    let error = ours.expect_err(&context);
                    assert_eq!(error.code(), Some("outside_root"), "{context}: {error}");
                    outside += 1;
                }
                Ok(real) if real.is_file() => {
                    match ours {
                        Ok(text) => assert_eq!(text, fs::read_to_string(&real).unwrap(), "{context}"),
                        // Out and back in again: the way outside is not looked at.
                        Err(PathError::OutsideRoot { .. }) => assert!(leaves(&fixture, &asked), "{context}"),
                        Err(error) => panic!("{context}: {error}"),
                    }
                    inside += 1;
                }
                Ok(_) => {
                    let code = ours.expect_err(&context).code();
                    let left = code == Some("outside_root") && leaves(&fixture, &asked);
                    assert!(left || code == Some("is_directory"), "{context}: {code:?}");
                }
                Err(_) => other += 1,
            }
        }
    }
    // Each case was met often enough to mean something.
    assert!(inside > 300 && outside > 300 && other > 300, "{inside} {outside} {other}");
}

/// Whether some beginning of the path is outside the root.
fn leaves(fixture: &Fixture, asked: &str) -> bool {
    let root = fixture.folder().join("repo").canonicalize().unwrap();
    let mut beginning = root.clone();
    asked.split('/').any(|name| {
        beginning.push(name);
        beginning.canonicalize().is_ok_and(|real| !real.starts_with(&root))
    })
}
