//! Text that was copied with the line numbers that stood beside it.

/// The text without its line numbers, if every line that is not empty begins with one and they count up by one.
pub(super) fn without_line_numbers(text: &str) -> Option<String> {
    let mut expected = None;
    let mut cleaned = String::new();
    let mut numbered = 0;
    for line in text.split_inclusive('\n') {
        let Some((number, rest)) = split_number(line) else {
            // The last line may be an empty rest.
            if line.trim().is_empty() {
                cleaned.push_str(line);
                expected = expected.map(|number: u64| number + 1);
                continue;
            }
            return None;
        };
        if expected.is_some_and(|expected| expected != number) {
            return None;
        }
        expected = number.checked_add(1);
        numbered += 1;
        cleaned.push_str(rest);
    }
    (numbered > 0).then_some(cleaned)
}

/// Splits `    12\ttext` into the number and the text; also with `|`, `→` or `: ` in place of the tab.
fn split_number(line: &str) -> Option<(u64, &str)> {
    const SEPARATORS: [&str; 5] = ["\t", "→", "| ", "|", ": "];
    let trimmed = line.trim_start_matches(' ');
    let digits = trimmed.len() - trimmed.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, rest) = trimmed.split_at(digits);
    let number = number.parse().ok()?;
    let text = SEPARATORS.iter().find_map(|separator| rest.strip_prefix(separator))?;
    Some((number, text))
}
