//! Random files and random changes: an edit changes only its span, and undoing gives every byte and mode back.
//!
//! Everything is made by the provider or below a temporary folder of its own, and nothing here follows a link.

use std::os::unix::fs::{PermissionsExt, symlink};

use provider_core::testing::tree::{Entry, Tree};
use serde_json::{Value, json};

use crate::sandbox::Sandbox;
use crate::undo::pending;

/// Numbers that are the same again for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// How the characters of a file are stored. Of the older encodings only those bytes are known here that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stored {
    Utf8,
    Utf8Marked,
    Utf16Le,
    Utf16Be,
    Utf16Unmarked,
    Utf32Le,
    Windows1252,
    ShiftJis,
    Gbk,
}

const STORED: [Stored; 9] = [
    Stored::Utf8,
    Stored::Utf8Marked,
    Stored::Utf16Le,
    Stored::Utf16Be,
    Stored::Utf16Unmarked,
    Stored::Utf32Le,
    Stored::Windows1252,
    Stored::ShiftJis,
    Stored::Gbk,
];

impl Stored {
    fn mark(self) -> &'static [u8] {
        match self {
            Self::Utf8Marked => b"\xef\xbb\xbf",
            Self::Utf16Le => b"\xff\xfe",
            Self::Utf16Be => b"\xfe\xff",
            Self::Utf32Le => b"\xff\xfe\0\0",
            _ => b"",
        }
    }

    /// A line that needs the encoding, and is only in the part of a file that is not to change.
    fn foreign(self) -> Vec<u8> {
        match self {
            Self::Utf8 | Self::Utf8Marked | Self::Utf16Le | Self::Utf16Be | Self::Utf32Le => {
                self.text("größe “x” 表 📝 e\u{301}\u{a0}")
            }
            Self::Utf16Unmarked => self.text("plain"),
            Self::Windows1252 => b"caf\xe9 \x93quoted\x94 \xfcber".to_vec(),
            // `これは日本語の文章です。`
            Self::ShiftJis => b"\x82\xb1\x82\xea\x82\xcd\x93\xfa\x96\x7b\x8c\xea\x82\xcc\x95\xb6\x8f\xcd\x82\xc5\x82\xb7\x81\x42".to_vec(),
            // `这是中文的文章`
            Self::Gbk => b"\xd5\xe2\xca\xc7\xd6\xd0\xce\xc4\xb5\xc4\xce\xc4\xd5\xc2".to_vec(),
        }
    }

    /// Text of ASCII in the older encodings, any text in the others.
    fn text(self, text: &str) -> Vec<u8> {
        match self {
            Self::Utf16Le | Self::Utf16Unmarked => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            Self::Utf16Be => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
            Self::Utf32Le => text.chars().flat_map(|char| u32::from(char).to_le_bytes()).collect(),
            _ => text.into(),
        }
    }
}

/// A random file, and the one that an edit of its line `<<here>>` must make of it.
struct File {
    before: Vec<u8>,
    after: Vec<u8>,
    /// The lines that take the place, joined by line feeds.
    new_str: String,
}

fn random_file(random: &mut Random, stored: Stored) -> File {
    let lines = random.one_of(&[1, 2, 5, 40, 4_000]);
    let place = random.below(lines);
    let new_lines = random.one_of(&[&["new"][..], &["new", "", "\tlines  "], &[]]);
    let (mut before, mut after) = (stored.mark().to_vec(), stored.mark().to_vec());
    let ends_open = random.below(3) == 0;
    // Where a file has no other line, it has no ending that new lines could take.
    let endings = random.one_of(&[&["\n"][..], &["\r\n"], &["\n", "\r\n"]]);
    for number in 0..lines {
        let is_open = ends_open && number + 1 == lines;
        let ending = stored.text(if is_open && number != place { "" } else { random.one_of(endings) });
        let line = match random.below(4) {
            0 => stored.foreign(),
            1 => stored.text("  trailing \t "),
            2 => stored.text(""),
            _ => stored.text("\tx = 1;\r"),
        };
        if number != place {
            before.extend([line.as_slice(), &ending].concat());
            after.extend([line.as_slice(), &ending].concat());
            continue;
        }
        before.extend([stored.text("<<here>>").as_slice(), &ending].concat());
        for new in new_lines {
            after.extend([stored.text(new).as_slice(), &ending].concat());
        }
    }
    File { before, after, new_str: new_lines.iter().map(|line| format!("{line}\n")).collect() }
}

/// The same edit in the words of each tool.
fn edits(path: &str, new_str: &str) -> [(&'static str, Value); 3] {
    let edit = json!({"path": path, "old_str": "<<here>>\n", "new_str": new_str});
    let lines: String = new_str.lines().map(|line| format!("+{line}\n")).collect();
    let patch = format!("*** Begin Patch\n*** Update File: {path}\n@@\n-<<here>>\n{lines}*** End Patch\n");
    [
        ("edit_file", edit.clone()),
        ("multi_edit", json!({"edits": [edit]})),
        ("apply_patch", json!({"patch": patch})),
    ]
}

#[tokio::test]
async fn an_edit_changes_its_lines_only_whatever_the_file_is() {
    let sandbox = Sandbox::new().await;
    let mut random = Random(20_240_229);
    for round in 0..54 {
        let stored = STORED[round % STORED.len()];
        let file = random_file(&mut random, stored);
        let mode = random.one_of(&[0o644, 0o755, 0o600, 0o444, 0o2751]);
        for (tool, arguments) in edits("f", &file.new_str) {
            let _ = std::fs::remove_file(sandbox.at("f"));
            let path = sandbox.put("f", &file.before);
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let before = sandbox.tree();
            let change = sandbox.call(tool, arguments).await;
            let what = format!("round {round}, {stored:?}, {tool}: {}", change.terminal());
            let expected = Entry::File { bytes: file.after.clone(), mode, links: 1 };
            assert!(change.terminal()["event"] == "result", "{what}");
            assert!(sandbox.tree()["root/f"] == expected, "{what}");
            let id = json!({"change_id": change.payload()["change_id"]});
            sandbox.call("undo_change", id).await.payload();
            assert!(sandbox.tree() == before, "{what}: undone");
        }
    }
}

/// A root with files of every encoding, folders and links.
async fn furnished(random: &mut Random) -> Sandbox {
    let sandbox = Sandbox::new().await;
    for name in ["a", "b", "dir/c", "dir/below/d"] {
        let stored = random.one_of(&STORED);
        let path = sandbox.put(name, random_file(random, stored).before);
        let mode = random.one_of(&[0o644, 0o755, 0o600, 0o444]);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    std::fs::create_dir(sandbox.at("dir/empty")).unwrap();
    symlink("below/d", sandbox.at("dir/link")).unwrap();
    symlink("nowhere", sandbox.at("dangling")).unwrap();
    symlink(sandbox.outside(), sandbox.at("out")).unwrap();
    sandbox
}

/// Some change of what is there, which may be refused.
fn random_change(random: &mut Random, tree: &Tree) -> (&'static str, Value) {
    let names: Vec<&str> = tree.keys().filter_map(|name| name.strip_prefix("root/")).collect();
    let old = names.get(random.below(names.len().max(1))).copied().unwrap_or("none").to_owned();
    let new = random.one_of(&["n", "m/n", "dir/n", "n/n", "dir/empty/n"]).to_owned();
    let text = random.one_of(&["", "<<here>>\n", "<<here>>\r\ntwo\r\n", "no end", "ünï\n"]);
    match random.below(9) {
        0 => ("write_file", json!({"path": old, "content": text, "force": true})),
        1 => ("write_file", json!({"path": new, "content": text, "create_parents": true, "force": true})),
        2 => ("edit_file", json!({"path": old, "old_str": "<<here>>", "new_str": text, "force": true})),
        3 => ("move_path", json!({"from": old, "to": new, "overwrite": true})),
        4 => ("copy_path", json!({"from": old, "to": new, "overwrite": true})),
        5 => ("delete_path", json!({"path": old, "recursive": true})),
        6 => ("create_directory", json!({"path": new})),
        7 => (
            "multi_edit",
            json!({"force": true, "edits": [
                {"path": old, "old_str": "<<here>>", "new_str": "1<<2>>"},
                {"path": old, "old_str": "<<2>>", "new_str": text},
            ]}),
        ),
        _ => {
            let patch = format!(
                "*** Begin Patch\n*** Update File: {old}\n*** Move to: {new}\n@@\n-<<here>>\n+1\n*** End Patch"
            );
            ("apply_patch", json!({"patch": patch, "force": true}))
        }
    }
}

#[tokio::test]
async fn random_changes_undone_one_by_one_give_back_every_tree_there_was() {
    let mut made = std::collections::BTreeSet::new();
    for seed in 1..=12 {
        let mut random = Random(seed);
        let sandbox = furnished(&mut random).await;
        let mut trees: Vec<(String, Tree)> = vec![("nothing".to_owned(), sandbox.tree())];
        for _ in 0..16 {
            let before = sandbox.tree();
            let (tool, arguments) = random_change(&mut random, &before);
            let outcome = sandbox.call(tool, arguments.clone()).await;
            let after = sandbox.tree();
            let what = format!("seed {seed}: {tool} {arguments}: {}", outcome.terminal());
            match outcome.terminal()["payload"].get("change_id") {
                Some(_) => {
                    made.insert(tool);
                    trees.push((what, after));
                }
                None => assert!(before == after, "{what}"),
            }
        }
        assert!(trees.len() > 4, "seed {seed} changes too little");
        while let Some((what, _)) = trees.pop() {
            let Some((_, tree)) = trees.last() else { break };
            let undo = sandbox.call("undo_change", json!({})).await;
            assert!(sandbox.tree() == *tree, "undoing {what}: {}", undo.terminal());
        }
        assert_eq!(pending(&sandbox), 0);
    }
    assert_eq!(made.len(), 8, "no seed made a change with every tool: {made:?}");
}
