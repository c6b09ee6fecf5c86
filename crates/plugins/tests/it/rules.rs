//! Reading rules and putting them together.

use std::fs;
use std::os::unix::fs::symlink;

use plugins::rules::{self, LONGEST_FILE};

use crate::support::Folder;

/// The composed text of these plugins.
fn composed(folders: &[&Folder]) -> String {
    let read: Vec<_> = folders.iter().map(|folder| folder.open()).map(|p| (rules::read(&p), p)).collect();
    rules::compose(read.iter().map(|(rules, plugin)| {
        (plugin.manifest.name.as_str(), rules.files.iter().map(|file| file.text.as_str()).collect())
    }))
}

#[test]
fn plugins_are_ordered_by_name_and_files_as_listed_each_once() {
    let second = Folder::new("b", &[("z.md", b"Z\n"), ("a.md", b"A\n\n")]);
    let first = Folder::with_list("a", &["one.md", "./one.md", "one.md"]);
    fs::write(first.path().join("one.md"), "One").unwrap();
    let expected = "## a\n\nOne\n\n## b\n\nZ\n\nA\n";
    assert_eq!(composed(&[&second, &first]), expected);
    assert_eq!(composed(&[&first, &second]), expected, "the same bytes whatever came first");
}

#[test]
fn marks_and_line_ends_become_plain() {
    let folder = Folder::new("a", &[("a.md", b"\xef\xbb\xbfOne\r\nTwo\r\n\r\n")]);
    assert_eq!(composed(&[&folder]), "## a\n\nOne\nTwo\n");
}

#[test]
fn without_text_there_is_no_heading() {
    assert_eq!(composed(&[&Folder::new("a", &[]), &Folder::new("b", &[("b.md", b" \r\n\n")])]), "");
}

#[test]
fn an_edit_is_seen_by_the_next_reading() {
    let folder = Folder::new("a", &[("a.md", b"Old")]);
    let plugin = folder.open();
    let before = rules::read(&plugin);
    fs::write(folder.path().join("a.md"), "New").unwrap();
    assert_eq!(before.files[0].text, "Old");
    assert_eq!(rules::read(&plugin).files[0].text, "New");
}

/// What is read of a file that the manifest lists as `listed`, next to a good one.
#[track_caller]
fn check_left_out(folder: &Folder, listed: &str, why: &str) {
    let read = rules::read(&folder.open());
    let texts: Vec<&str> = read.files.iter().map(|file| file.text.as_str()).collect();
    assert_eq!(texts, ["Good"], "the other file stays");
    assert_eq!(read.warnings, [format!("the rules {listed:?} of a are left out: {why}")]);
}

fn beside_a_good_one(listed: &str) -> Folder {
    let folder = Folder::with_list("a", &[listed, "good.md"]);
    fs::write(folder.path().join("good.md"), "Good").unwrap();
    folder
}

#[test]
fn a_path_that_leads_out_is_left_out() {
    let up = "leads out of its folder with ..: wanted a path inside the plugin's folder";
    let folder = beside_a_good_one("../secret.md");
    folder.beside("secret.md", "Secret");
    check_left_out(&folder, "../secret.md", &format!("`../secret.md` {up}"));
    check_left_out(&beside_a_good_one("x/../good.md"), "x/../good.md", &format!("`x/../good.md` {up}"));
    let absolute = "`/etc/hostname` is absolute: wanted a path relative to the plugin's folder";
    check_left_out(&beside_a_good_one("/etc/hostname"), "/etc/hostname", absolute);
}

#[test]
fn links_are_followed_as_far_as_they_stay_inside() {
    let folder = beside_a_good_one("link.md");
    let outside = folder.beside("secret.md", "Secret");
    symlink(&outside, folder.path().join("link.md")).unwrap();
    let leads_out = "`link.md` is a link that leads out of the plugin's folder";
    check_left_out(&folder, "link.md", leads_out);
    fs::remove_file(folder.path().join("link.md")).unwrap();
    symlink("../secret.md", folder.path().join("link.md")).unwrap();
    check_left_out(&folder, "link.md", leads_out);

    fs::remove_file(folder.path().join("link.md")).unwrap();
    fs::write(folder.path().join("inside.md"), "Inside").unwrap();
    symlink("inside.md", folder.path().join("link.md")).unwrap();
    assert_eq!(rules::read(&folder.open()).files[0].text, "Inside");

    let folder = beside_a_good_one("docs/a.md");
    fs::create_dir(folder.path().parent().unwrap().join("docs")).unwrap();
    fs::write(folder.path().parent().unwrap().join("docs/a.md"), "Secret").unwrap();
    symlink("../docs", folder.path().join("docs")).unwrap();
    check_left_out(&folder, "docs/a.md", "`docs/a.md` is a link that leads out of the plugin's folder");
}

#[test]
fn what_cannot_be_read_is_left_out() {
    check_left_out(&beside_a_good_one("gone.md"), "gone.md", "`gone.md` does not exist");
    let folder = beside_a_good_one("bad.md");
    fs::write(folder.path().join("bad.md"), b"ok\xff").unwrap();
    check_left_out(&folder, "bad.md", "the file is not UTF-8: byte 2 begins no character");
    let folder = beside_a_good_one("folder");
    fs::create_dir(folder.path().join("folder")).unwrap();
    let read = rules::read(&folder.open());
    assert_eq!((read.files.len(), read.warnings.len()), (1, 1), "{read:?}");
    let folder = beside_a_good_one("pipe");
    let made = std::process::Command::new("mkfifo").arg(folder.path().join("pipe")).status().unwrap();
    assert!(made.success());
    let read = rules::read(&folder.open());
    assert_eq!((read.files.len(), read.warnings.len()), (1, 1), "{read:?}");
}

#[test]
fn a_file_has_64_kib_at_most() {
    let most = usize::try_from(LONGEST_FILE).unwrap();
    let folder = Folder::new("a", &[("a.md", "x".repeat(most).as_bytes())]);
    assert_eq!(rules::read(&folder.open()).files[0].text.len(), most);
    let folder = beside_a_good_one("a.md");
    fs::write(folder.path().join("a.md"), "x".repeat(most + 1)).unwrap();
    check_left_out(&folder, "a.md", "the file is longer than 64 KiB");
}

#[test]
fn texts_are_never_expanded() {
    let text = "$HOME ${path.root} {{name}} `id` $(id) <!-- x -->";
    let folder = Folder::new("a", &[("a.md", text.as_bytes())]);
    assert_eq!(composed(&[&folder]), format!("## a\n\n{text}\n"));
}
