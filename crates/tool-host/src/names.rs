//! Names for tools of several owners in one flat list.

use std::collections::HashMap;

use sha2::{Digest as _, Sha256};

/// What agents accept as the name of a tool, in bytes.
pub const LONGEST_NAME: usize = 64;
/// Digits of the hash that a cut name ends with.
const HASH_DIGITS: usize = 6;

/// A name for each `(owner, tool)`, in order: the tool's own where only one owner has it, else `<owner>_<tool>`. What is
/// no letter, digit, `_` or `-` becomes `_`. A name that is too long, or that another one already has, is cut and ends
/// with a hash of what it stands for, so that it is the same whatever else is in the list.
pub fn separate<'a>(tools: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> Vec<String> {
    let mut owners: HashMap<&str, usize> = HashMap::new();
    for (_, tool) in tools.clone() {
        *owners.entry(tool).or_default() += 1;
    }
    let wanted: Vec<String> = tools
        .clone()
        .map(|(owner, tool)| match owners.get(tool) {
            Some(2..) => fit(&format!("{owner}_{tool}"), owner, tool),
            _ => fit(tool, owner, tool),
        })
        .collect();
    let mut uses: HashMap<&str, usize> = HashMap::new();
    for name in &wanted {
        *uses.entry(name).or_default() += 1;
    }
    let name = |((owner, tool), name): ((&str, &str), &String)| match uses.get(name.as_str()) {
        Some(2..) => hashed(name, owner, tool),
        _ => name.clone(),
    };
    tools.zip(&wanted).map(name).collect()
}

fn fit(name: &str, owner: &str, tool: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = name.chars().map(allowed).collect();
    if name.len() > LONGEST_NAME { hashed(&name, owner, tool) } else { name }
}

/// The name, which is ASCII, cut to make room for the hash of the tool.
fn hashed(name: &str, owner: &str, tool: &str) -> String {
    let digest = Sha256::digest(format!("{owner}\0{tool}"));
    let hash: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let head = &name[..name.len().min(LONGEST_NAME - HASH_DIGITS - 1)];
    format!("{head}_{}", &hash[..HASH_DIGITS])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(tools: &[(&str, &str)], expected: &[&str]) {
        assert_eq!(separate(tools.iter().copied()), expected);
    }

    #[test]
    fn a_name_is_the_tools_own_unless_two_have_it() {
        check(&[("a", "read"), ("b", "grep")], &["read", "grep"]);
        check(&[("a", "read"), ("b", "read"), ("b", "grep")], &["a_read", "b_read", "grep"]);
    }

    #[test]
    fn a_long_name_is_cut_with_a_hash_that_stays() {
        let tool = "t".repeat(64);
        check(&[("a", &tool)], &[&tool]);
        let clash = separate([("a", tool.as_str()), ("b", tool.as_str())].into_iter());
        assert!(clash.iter().all(|name| name.len() == LONGEST_NAME), "{clash:?}");
        assert_ne!(clash[0], clash[1]);
        let more = separate([("b", tool.as_str()), ("x", "y"), ("a", tool.as_str())].into_iter());
        assert_eq!([&more[2], &more[0]], [&clash[0], &clash[1]]);
    }

    #[test]
    fn names_that_become_one_are_told_apart() {
        let names = separate([("a", "v.2"), ("a", "v 2")].into_iter());
        assert_ne!(names[0], names[1]);
        assert!(names.iter().all(|name| name.starts_with("v_2_")), "{names:?}");
        // A tool called like another with its owner.
        let names = separate([("a", "t"), ("b", "t"), ("c", "a_t")].into_iter());
        assert_eq!(names.iter().collect::<std::collections::BTreeSet<_>>().len(), 3, "{names:?}");
    }
}
