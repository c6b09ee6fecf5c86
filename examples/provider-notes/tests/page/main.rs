//! What the tutorial promises: the files that `docs/write-a-provider.md` shows are the files of this crate (`BLESS=1`
//! puts them there), and the program they make conforms.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;

use conformance::{Calls, Outcome, Subject};
use tool_host::ProviderSource;

/// The page with every fenced block that names a file (`rust src/lib.rs`) replaced by that file.
fn with_files(page: &str, folder: &Path) -> (String, usize) {
    let mut out = String::new();
    let mut files = 0;
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        out.push_str(line);
        out.push('\n');
        let Some(info) = line.strip_prefix("```").filter(|info| !info.is_empty()) else { continue };
        let block: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
        match info.split_once(' ') {
            Some((_, file)) => {
                files += 1;
                let text = std::fs::read_to_string(folder.join(file));
                out.push_str(&text.unwrap_or_else(|error| panic!("{file}: {error}")));
            }
            None => block.iter().for_each(|line| out.push_str(&format!("{line}\n"))),
        }
        out.push_str("```\n");
    }
    (out, files)
}

#[test]
fn the_page_shows_the_files_as_they_are_compiled() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = folder.join("../../docs/write-a-provider.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (expected, files) = with_files(&page, folder);
    assert_eq!(files, 8, "the page shows every file of the crate that its reader writes");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &expected).unwrap();
    } else if page != expected {
        let differs = page.lines().zip(expected.lines()).find(|(page, file)| page != file);
        panic!("the page is stale (page, file): {differs:?}; run `BLESS=1 cargo test -p provider-notes`");
    }
}

/// What the tutorial speaks of, each by the requirement that shows it.
const SHOWN: [&str; 7] =
    ["INVOKE-01", "PREVIEW-05", "PREVIEW-06", "PREVIEW-07", "RENDER-01", "SECRET-01", "STREAM-09"];

#[tokio::test]
async fn the_program_conforms() {
    let program = ProviderSource::Path(env!("CARGO_BIN_EXE_provider-notes").into());
    let calls = Calls::parse(include_str!("../conformance/notes.json")).unwrap();
    let report = conformance::check(&Subject::new(&program, Vec::new()), Some(&calls)).await;
    let broken: Vec<_> =
        report.findings.iter().filter(|it| matches!(it.outcome, Outcome::Fail { .. })).collect();
    assert!(broken.is_empty(), "{broken:#?}");
    for id in SHOWN {
        let finding = report.finding(id).unwrap();
        assert_eq!(finding.outcome, Outcome::Pass, "{finding:#?}");
    }
}
