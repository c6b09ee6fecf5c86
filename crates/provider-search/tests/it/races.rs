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

#[tokio::test]
async fn directories_and_files_that_become_links_lead_nowhere() {
    let sandbox = Sandbox::new().await;
    std::fs::create_dir_all(sandbox.outside().join("beside/deep")).unwrap();
    for name in ["a.txt", "deep/a.txt", "only-outside.txt"] {
        std::fs::write(sandbox.outside().join("beside").join(name), "needle outside\n").unwrap();
    }
    std::fs::write(sandbox.outside().join("beside/.ignore"), "*\n").unwrap();
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
    let (mut found, searches) = (0, 300);
    for _ in 0..searches {
        let payload = sandbox.payload("grep", json!({"pattern": "needle", "limit": 1000})).await;
        let text = payload["matches"].to_string();
        assert!(!text.contains("outside"), "{text}");
        found += payload["total_matches"].as_u64().unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    let swaps = swapping.map(|thread| thread.join().unwrap()).into_iter().min().unwrap();
    assert!(swaps > 300 && found > 100, "{swaps} swaps, {found} hits in {searches} searches");
}
