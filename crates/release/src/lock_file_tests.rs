use super::*;

const MOMENT: &str = "2026-11-30T12:00:00Z";

fn row(name: &str, version: &str, platforms: &[(&str, &[u8])]) -> Row {
    Row {
        name: name.to_owned(),
        source: format!("github.com/o/provider-{name}"),
        version: version.parse().unwrap(),
        checksums: platforms
            .iter()
            .map(|(platform, program)| (platform.parse().unwrap(), Sha256::of(program)))
            .collect(),
        category: Some("tool".to_owned()),
    }
}

fn hash(program: &[u8]) -> String {
    Sha256::of(program).tagged()
}

#[track_caller]
fn check(before: &str, row: &Row, expected: &str) {
    let mut file = LockFile::parse(before).unwrap();
    let changed = file.set(row, MOMENT).unwrap();
    assert_eq!(file.text(), expected);
    assert_eq!(changed, before != expected);
    assert_eq!(file.row(&row.name).unwrap().unwrap().checksums, row.checksums);
    assert!(!file.set(row, "later").unwrap(), "twice is once");
}

#[test]
fn a_new_row_is_added_at_the_end() {
    let wanted = row("x", "1.2.3", &[("linux_amd64", b"a"), ("darwin_arm64", b"b")]);
    check(
        LockFile::new().text(),
        &wanted,
        &format!(
            r#"lock_file_version = 1

provider "x" {{
  source      = "github.com/o/provider-x"
  version     = "1.2.3"
  resolved_at = "{MOMENT}"
  category    = "tool"
  checksums = {{
    "darwin_arm64" = "{}"
    "linux_amd64" = "{}"
  }}
}}
"#,
            hash(b"b"),
            hash(b"a")
        ),
    );
}

#[test]
fn only_the_values_of_a_row_change() {
    let foreign = "provider   \"other\" {\n source=\"gitlab.com/a/b\"\n version = \"9.9.9\" # pinned\n}\n";
    let before = format!(
        "# kept\nlock_file_version = 1 // one\n\n{foreign}\nprovider \"x\" {{\n\tsource = \"github.com/o/provider-x\" # where\n\
         \tversion=\"1.0.0\"   /* old */\n\tresolved_at = \"then\"\n\tchecksums = {{\n\t\t# ours\n\t\tlinux_amd64 = \"{}\",\n\t}}\n\textra = [1, 2]\n}}\n# end",
        hash(b"old")
    );
    let after = before
        .replace("\"1.0.0\"", "\"2.0.0\"")
        .replace("\"then\"", &format!("\"{MOMENT}\""))
        .replace(&hash(b"old"), &hash(b"new"));
    check(&before, &row("x", "2.0.0", &[("linux_amd64", b"new")]), &after);
}

#[test]
fn other_platforms_take_the_place_of_the_old_ones() {
    let before = format!(
        "lock_file_version = 1\nprovider \"x\" {{\n  source = \"github.com/o/provider-x\"\n  version = \"1.0.0\"\n  resolved_at = \"then\"\n  checksums = {{ \"linux_amd64\" = \"{}\" }} # here\n}}\n",
        hash(b"old")
    );
    let after = format!(
        "lock_file_version = 1\nprovider \"x\" {{\n  source = \"github.com/o/provider-x\"\n  version = \"1.0.0\"\n  resolved_at = \"{MOMENT}\"\n  checksums = {{\n    \"darwin_arm64\" = \"{}\"\n    \"linux_amd64\" = \"{}\"\n  }} # here\n}}\n",
        hash(b"mac"),
        hash(b"old")
    );
    check(&before, &row("x", "1.0.0", &[("linux_amd64", b"old"), ("darwin_arm64", b"mac")]), &after);
}

#[test]
fn what_a_row_lacks_is_added() {
    let before = "lock_file_version = 1\nprovider \"x\" {\n  version = \"1.0.0\"\n}\n";
    let after = format!(
        "lock_file_version = 1\nprovider \"x\" {{\n  version = \"1.0.0\"\n  source = \"github.com/o/provider-x\"\n  resolved_at = \"{MOMENT}\"\n  checksums = {{\n    \"linux_amd64\" = \"{}\"\n  }}\n}}\n",
        hash(b"a")
    );
    check(before, &row("x", "1.0.0", &[("linux_amd64", b"a")]), &after);
}

#[test]
fn line_endings_and_a_byte_order_mark_stay() {
    let wanted = row("x", "1.0.0", &[("linux_amd64", b"a")]);
    let mut file = LockFile::parse("\u{feff}lock_file_version = 1\r\n").unwrap();
    file.set(&wanted, MOMENT).unwrap();
    assert!(file.text().starts_with('\u{feff}'));
    assert!(file.text().split_inclusive('\n').all(|line| line.ends_with("\r\n")), "{:?}", file.text());

    let newer = row("x", "1.0.1", &[("linux_amd64", b"b")]);
    let expected = file.text().replace("1.0.0", "1.0.1").replace(&hash(b"a"), &hash(b"b"));
    file.set(&newer, MOMENT).unwrap();
    assert_eq!(file.text(), expected);
}

#[test]
fn a_file_without_a_final_line_end_gets_one_before_the_row() {
    let mut file = LockFile::parse("lock_file_version = 1 # here").unwrap();
    file.set(&row("x", "1.0.0", &[("linux_amd64", b"a")]), MOMENT).unwrap();
    assert!(file.text().starts_with("lock_file_version = 1 # here\n\nprovider \"x\" {\n"), "{}", file.text());
}

#[test]
fn what_is_not_understood_is_refused() {
    #[track_caller]
    fn refused(text: &str, part: &str) {
        let error = LockFile::parse(text).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    refused("", "no lock_file_version");
    refused("lock_file_version = 2\n", "lock_file_version is 2");
    refused("lock_file_version = \"1\"\n", "lock_file_version is \"1\"");
    refused("lock_file_version = 1.5\n", "lock_file_version is 1.5");
    refused("lock_file_version = 1\nprovider {", "no HCL");
}

#[test]
fn two_rows_of_one_provider_are_refused() {
    let text = "lock_file_version = 1\nprovider \"x\" {}\nprovider \"x\" {}\n";
    let mut file = LockFile::parse(text).unwrap();
    let error = file.set(&row("x", "1.0.0", &[]), MOMENT).unwrap_err();
    assert_eq!(error, LockFileError::Repeated { name: "x".into(), count: 2 });
    assert_eq!(file.text(), text);
}

#[test]
fn strings_mean_themselves() {
    for text in ["plain", "a\"b\\c", "${env}", "%{if}", "tab\tand\nline", "käse"] {
        let source = format!("a = {}\n", hcl_string(text));
        let body = hcl_edit::parser::parse_body(&source).unwrap();
        assert_eq!(body.get_attribute("a").unwrap().value.as_str(), Some(text), "{source}");
    }
}

proptest::proptest! {
    #[test]
    fn a_second_provider_never_disturbs_the_first(
        comment in "[ -~]{0,20}",
        version in "[0-9]\\.[0-9]\\.[0-9]",
        blanks in "[ \t\n]{0,5}",
    ) {
        let mut file = LockFile::parse(&format!("lock_file_version = 1 #{comment}\n{blanks}")).unwrap();
        let first = row("one", &version, &[("linux_amd64", b"a")]);
        file.set(&first, MOMENT).unwrap();
        let before = file.text().to_owned();
        file.set(&row("two", "1.0.0", &[("linux_amd64", b"b")]), MOMENT).unwrap();
        proptest::prop_assert!(file.text().starts_with(&before));
        file.set(&row("two", "1.0.1", &[("linux_amd64", b"c"), ("linux_arm64", b"d")]), MOMENT).unwrap();
        proptest::prop_assert!(file.text().starts_with(&before));
        proptest::prop_assert_eq!(file.row("one").unwrap().unwrap(), first);
    }
}
