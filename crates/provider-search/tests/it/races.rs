//! Whatever is swapped while a search walks, nothing outside the root is ever shown.

use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use crate::sandbox::Sandbox;

/// Runs until told to stop: exchanges the directory and the link that lie at the two names.
fn swap(first: &std::path::Path, second: &std::path::Path, stop: &AtomicBool) -> u64 {
    let mut swaps = 0;
    while !stop.load(Ordering::Relaxed) {
        let flags = rustix::fs::RenameFlags::EXCHANGE;
        rustix::fs::renameat_with(rustix::fs::CWD, first, rustix::fs::CWD, second, flags).unwrap();
        swaps += 1;
    }
    swaps
}

/// A sandbox in which a directory and a file change places all the time with links that lead out of the root. What lies
/// outside has `outside` in its name or in its content.
struct Swapped {
    sandbox: Sandbox,
    stop: Arc<AtomicBool>,
    swapping: [std::thread::JoinHandle<u64>; 2],
}

impl Swapped {
    async fn new() -> Self {
        let sandbox = Sandbox::new().await;
        std::fs::create_dir_all(sandbox.outside().join("beside/deep")).unwrap();
        for name in ["a.txt", "deep/a.txt", "only-outside.txt", "deep/only-outside.txt"] {
            std::fs::write(sandbox.outside().join("beside").join(name), "needle outside\n").unwrap();
        }
        sandbox.put("sub/a.txt", "needle inside\n");
        sandbox.put("sub/deep/a.txt", "needle inside\n");
        sandbox.put("file.txt", "needle inside\n");
        symlink(sandbox.outside().join("beside"), sandbox.at("link")).unwrap();
        symlink(sandbox.outside().join("beside/a.txt"), sandbox.at("file-link")).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let swapping = [("sub", "link"), ("file.txt", "file-link")].map(|(one, other)| {
            let (one, other, stop) = (sandbox.at(one), sandbox.at(other), stop.clone());
            std::thread::spawn(move || swap(&one, &other, &stop))
        });
        Self { sandbox, stop, swapping }
    }

    /// Stops; answers how often the rarer of the two pairs was exchanged.
    fn end(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.swapping.map(|thread| thread.join().unwrap()).into_iter().min().unwrap()
    }
}

#[tokio::test]
async fn directories_and_files_that_become_links_lead_nowhere() {
    let swapped = Swapped::new().await;
    // Rules from outside are none.
    std::fs::write(swapped.sandbox.outside().join("beside/.ignore"), "*\n").unwrap();
    let (mut found, searches) = (0, 300);
    for _ in 0..searches {
        let payload = swapped.sandbox.payload("grep", json!({"pattern": "needle", "limit": 1000})).await;
        let text = payload["matches"].to_string();
        assert!(!text.contains("outside"), "{text}");
        found += payload["total_matches"].as_u64().unwrap();
    }
    let swaps = swapped.end();
    assert!(swaps > 300 && found > 100, "{swaps} swaps, {found} hits in {searches} searches");
}

#[tokio::test]
async fn no_name_from_outside_is_listed_or_found() {
    let swapped = Swapped::new().await;
    let (mut found, rounds) = (0, 150);
    for round in 0..rounds {
        for (tool, arguments) in [
            ("glob", json!({"pattern": "**"})),
            ("glob", json!({"pattern": "**/*.txt", "sort": "modified"})),
            ("glob", json!({"pattern": "sub/**"})),
            ("glob", json!({"pattern": "*", "path": "link"})),
            ("find_file", json!({"query": "only-outside"})),
            ("find_file", json!({"query": "a.txt"})),
        ] {
            let said = swapped.sandbox.call(tool, arguments.clone()).await;
            let said = said.terminal();
            if said["event"] == "error" {
                // Where the search was to begin was a link that leads out, or was being exchanged.
                assert!(
                    arguments.to_string().contains("sub/**") || arguments.get("path").is_some(),
                    "{said}"
                );
                continue;
            }
            let listed =
                [&said["payload"]["paths"], &said["payload"]["matches"]].map(ToString::to_string).concat();
            assert!(!listed.contains("outside"), "{round} {tool} {arguments}: {listed}");
            found += listed.matches("a.txt").count();
        }
    }
    let swaps = swapped.end();
    assert!(swaps > 300 && found > 300, "{swaps} swaps, {found} names in {rounds} rounds");
}
