//! The same paths as fd, for patterns out of a seed, from a walk and from memory.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::sandbox::{Sandbox, paths};

/// fd, under either of its names. Without it there is nothing to compare with, which CI does not accept.
fn fd() -> Option<&'static str> {
    let found =
        ["fd", "fdfind"].into_iter().find(|name| Command::new(name).arg("--version").output().is_ok());
    assert!(found.is_some() || std::env::var_os("CI").is_none(), "fd is not installed");
    found
}

fn by_fd(fd: &str, root: &Path, pattern: &str) -> BTreeSet<String> {
    let mut command = Command::new(fd);
    command.args(["--color=never", "--full-path", "-t", "f", "-t", "l", "--glob"]);
    command.arg(format!("{}/{pattern}", root.display())).arg(root);
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let root = format!("{}/", root.display());
    text.lines().map(|line| line.strip_prefix(&root).unwrap().to_owned()).collect()
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

    /// A pattern in which nothing hidden or ignored is spelled out: there we find more than fd, on purpose.
    fn pattern(&mut self) -> String {
        let segments = ["**", "*", "s*", "?rc", "{lib,doc}*", "[a-d]*", "**", "*r*"];
        let last = ["*.rs", "*", "m*", "*.{rs,md}", "?.txt", "[!a-m]*", "*o*.*", "**"];
        let depth = self.below(3);
        let mut parts: Vec<_> = (0..depth).map(|_| self.pick(&segments)).collect();
        parts.push(self.pick(&last));
        parts.join("/")
    }
}

#[tokio::test]
async fn generated_patterns_give_the_paths_that_fd_gives() {
    let Some(fd) = fd() else { return };
    let sandbox = Sandbox::new().await;
    let mut random = Random(7);
    sandbox.repository("");
    for _ in 0..400 {
        let depth = random.below(4);
        let directories = ["src", "lib", "docs", "arc", "build", ".hidden", "core"];
        let mut path: Vec<_> = (0..depth).map(|_| random.pick(&directories)).collect();
        path.push(
            random.pick(&["main.rs", "mod.rs", "a.txt", "notes.md", "x.o", "log.md", ".env", "Makefile"]),
        );
        sandbox.put(&path.join("/"), "");
    }
    sandbox.put(".gitignore", "build/\n*.o\n/docs/*.md\n");
    sandbox.put("src/.gitignore", "!x.o\n");
    sandbox.put("lib/.ignore", "a.txt\n!.env\n");
    let mut compared = 0;
    for _ in 0..60 {
        let pattern = random.pattern();
        let ours = sandbox.payload("glob", json!({"pattern": pattern, "limit": 100_000})).await;
        let ours: BTreeSet<String> = paths(&ours["paths"])
            .into_iter()
            .filter(|path| !path.ends_with('/'))
            .map(str::to_owned)
            .collect();
        let theirs = by_fd(fd, &sandbox.root(), &pattern);
        assert_eq!(ours, theirs, "{pattern}");
        compared += theirs.len();
    }
    assert!(compared > 500, "{compared} paths say little");
}
