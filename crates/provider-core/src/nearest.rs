//! The name somebody probably meant.

/// The candidate that is closest to `name`, if one is close enough to be a slip of the fingers.
///
/// ```
/// use provider_core::nearest;
///
/// assert_eq!(nearest("serach", ["search", "exec"]), Some("search"));
/// assert_eq!(nearest("zebra", ["search", "exec"]), None);
/// ```
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = fold(name);
    let limit = (name.chars().count() / 3).max(1) + 1;
    candidates
        .into_iter()
        .map(|candidate| (distance(&name, &fold(candidate)), candidate))
        .filter(|(distance, candidate)| *distance <= limit && *distance < candidate.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// `filePath`, `file-path` and `file_path` differ in nothing a reader cares about. Nobody means a name by more than
/// its first 64 letters.
fn fold(name: &str) -> String {
    name.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).take(64).collect()
}

/// Levenshtein's distance, in characters.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (deleted, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = deleted + 1;
        for (index, other) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[index + 1];
            row[index + 1] = replaced.min(diagonal + 1).min(row[index] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, expected: Option<&str>) {
        assert_eq!(nearest(name, ["path", "old_str", "new_str", "limit", "allowed_roots"]), expected);
    }

    #[test]
    fn a_slip_is_recognised_and_a_stranger_is_not() {
        check("pth", Some("path"));
        check("old_string", Some("old_str"));
        check("allowed_root", Some("allowed_roots"));
        check("oldStr", Some("old_str"));
        check("colour", None);
        check("x", None);
    }
}
