//! The edit engine on files and texts that nobody would think of.

use anyhow::ensure;
use provider_filesystem::engine::edit::{EditError, Replacement, Select, plan};
use provider_filesystem::engine::text::Text;

use super::{Random, Run, Stress};

/// The run.
pub const STRESS: Stress = Stress {
    name: "fuzz-edit",
    about: "the edit engine on mutated files: no panic, no byte changed outside the span",
    short_rounds: 2_000,
    run,
};

/// Files to begin with.
const CORPUS: &[&[u8]] = &[
    b"",
    b"\n",
    b"a\r\nb\nc\rd\r\r\n",
    b"\xef\xbb\xbffn main() {\r\n\tprintln!(\"hi\");\r\n}\r\n",
    b"\tif x {\n\t\treturn 1\n\t}\n\n\n    12\tfoo()\n    13\tbar()",
    "“a” ‘b’ – cafe\u{301} \u{a0}x 👩‍👩‍👧\n".as_bytes(),
    b"aaaaaaaaaaaaaaaa",
];

fn run(run: &Run) -> anyhow::Result<String> {
    let (mut applied, mut refused) = (0_u64, 0_u64);
    while let Some(mut random) = run.next_round() {
        let file = mutated(&mut random);
        let Ok(text) = Text::parse(&file) else { continue };
        let (old_str, new_str) = (piece(text.body(), &mut random), piece(text.body(), &mut random));
        let select = match random.below(4) {
            0 => Select::Unique,
            1 => Select::All,
            2 => Select::Count(1 + random.below(3) as u64),
            _ => Select::Near(1 + random.below(20) as u64),
        };
        match plan(&text, &Replacement { old_str: &old_str, new_str: &new_str, select }) {
            Ok(edit) => {
                ensure!(edit.changed == (edit.bytes != file), "changed is wrong: {old_str:?} to {new_str:?}");
                applied += 1;
            }
            Err(error) => {
                refused += 1;
                ensure!(!error.to_string().is_empty(), "an error says nothing: {error:?}");
                let occurs = !old_str.is_empty() && text.body().contains(&old_str);
                let denied = matches!(error, EditError::NoMatch(_)) && occurs;
                ensure!(!denied, "{old_str:?} is in {file:?}");
            }
        }
    }
    Ok(format!("{applied} edits applied, {refused} refused with a reason"))
}

/// A file of the corpus with some bytes changed, doubled, or taken away.
fn mutated(random: &mut Random) -> Vec<u8> {
    const ODD: &[&[u8]] =
        &[b"\r\n", b"\n", b"\r", b"\t", b" ", b"\xff", b"a", "é".as_bytes(), "\u{feff}".as_bytes()];
    let mut file = random.pick(CORPUS).copied().unwrap_or_default().to_vec();
    for _ in 0..random.below(6) {
        let at = random.below(file.len() + 1);
        let end = (at + random.below(8)).min(file.len());
        match random.below(3) {
            0 => drop(file.drain(at..end)),
            1 => {
                let part = file.get(at..end).unwrap_or_default().to_vec();
                file.splice(at..at, part);
            }
            _ => {
                let odd = random.pick(ODD).copied().unwrap_or_default();
                file.splice(at..at, odd.iter().copied());
            }
        }
    }
    file
}

/// A piece of a text, now and then with something else in it.
fn piece(text: &str, random: &mut Random) -> String {
    const ODD: &[&str] = &["", "\n", "\r\n", "x", "\t", "$&", " \u{a0}", "\\n"];
    let start = text.floor_char_boundary(random.below(text.len() + 1));
    let end = text.ceil_char_boundary((start + random.below(12)).min(text.len()));
    let mut piece = text.get(start..end).unwrap_or_default().to_owned();
    if random.once_in(3) {
        let at = piece.floor_char_boundary(random.below(piece.len() + 1));
        piece.insert_str(at, random.pick(ODD).copied().unwrap_or_default());
    }
    piece
}
