//! The security model's claims, each with the test that shows it.

use std::path::Path;

use xtask::workspace_root;

const PAGE: &str = include_str!("../../../../docs/security-model.md");

/// Every `crate: test` of the page.
fn cited(page: &str) -> Vec<(&str, &str)> {
    let quoted = page.split('`').skip(1).step_by(2);
    quoted.filter_map(|text| text.split_once(": ")).filter(|(_, test)| !test.contains(' ')).collect()
}

fn sources(folder: &Path, out: &mut String) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|end| end == "rs") {
            out.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn every_claim_has_its_test() {
    let cited = cited(PAGE);
    assert!(cited.len() > 30, "{cited:?}");
    for (name, test) in cited {
        let mut text = String::new();
        let folder = workspace_root().join("crates").join(name);
        sources(&folder.join("src"), &mut text);
        sources(&folder.join("tests"), &mut text);
        assert!(text.contains(&format!("fn {test}()")), "{name} has no test {test}");
    }
}

#[test]
fn every_promise_cites_one() {
    let rows =
        PAGE.lines().skip_while(|line| !line.starts_with("## Files")).filter(|line| line.starts_with("| "));
    for row in rows.filter(|row| !row.starts_with("| promise")) {
        assert!(!cited(row).is_empty(), "{row}");
    }
}
