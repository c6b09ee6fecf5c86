//! Tables whose columns line up.

use unicode_width::UnicodeWidthStr;

use super::{Ink, Look, cell};

const GAP: usize = 2;
/// A column is not squeezed below this.
const NARROWEST: usize = 8;

/// Columns a text takes on a terminal.
fn display_width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// A table under construction. Cells are made safe as they come in.
pub(crate) struct Table {
    headers: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<S: AsRef<str>>(headers: &[S]) -> Self {
        Self { headers: cells(headers), rows: Vec::new() }
    }

    pub(crate) fn row<S: AsRef<str>>(&mut self, row: &[S]) {
        self.rows.push(cells(row));
    }

    /// The table, line by line, without trailing blanks.
    pub(crate) fn lines(&self, look: Look) -> Vec<String> {
        let widths = self.widths(look.width);
        let numeric: Vec<bool> = (0..widths.len()).map(|column| self.is_numeric(column)).collect();
        let mut out = Vec::new();
        if self.headers.iter().any(|header| !header.is_empty()) {
            out.extend(
                layout(&self.headers, &widths, &numeric).into_iter().map(|line| look.ink(Ink::Bold, &line)),
            );
            let mut rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
            if let (None, Some(last), Some(header)) = (look.width, rule.last_mut(), self.headers.last()) {
                // Without a limit the last column can be very wide; its rule need not be.
                *last = "─".repeat(display_width(header).max(1));
            }
            out.push(look.ink(Ink::Dim, &rule.join(&" ".repeat(GAP))));
        }
        out.extend(self.rows.iter().flat_map(|row| layout(row, &widths, &numeric)));
        out
    }

    fn is_numeric(&self, column: usize) -> bool {
        let mut filled =
            self.rows.iter().filter_map(|row| row.get(column)).filter(|text| !text.is_empty()).peekable();
        filled.peek().is_some() && filled.all(|text| text.replace(',', "").parse::<f64>().is_ok())
    }

    /// The width of every column: what its cells need, the widest squeezed until the table fits.
    fn widths(&self, limit: Option<usize>) -> Vec<usize> {
        let columns = self.rows.iter().map(Vec::len).chain([self.headers.len()]).max().unwrap_or(0);
        let mut widths = vec![0; columns];
        for row in self.rows.iter().chain([&self.headers]) {
            for (width, text) in widths.iter_mut().zip(row) {
                *width = (*width).max(display_width(text));
            }
        }
        let Some(limit) = limit else { return widths };
        let gaps = GAP * columns.saturating_sub(1);
        while widths.iter().sum::<usize>() + gaps > limit {
            match widths.iter_mut().max() {
                Some(widest) if *widest > NARROWEST => *widest -= 1,
                _ => break,
            }
        }
        widths
    }
}

fn cells<S: AsRef<str>>(texts: &[S]) -> Vec<String> {
    texts.iter().map(|text| cell(text.as_ref()).into_owned()).collect()
}

/// One row as one or more lines: a cell that is too wide goes on below itself.
fn layout(row: &[String], widths: &[usize], numeric: &[bool]) -> Vec<String> {
    let empty = String::new();
    let columns: Vec<Vec<String>> = (widths.iter().enumerate())
        .map(|(column, width)| wrap(row.get(column).unwrap_or(&empty), *width))
        .collect();
    let height = columns.iter().map(Vec::len).max().unwrap_or(0);
    (0..height)
        .map(|line| {
            let mut out = String::new();
            for ((cell, width), numeric) in columns.iter().zip(widths).zip(numeric) {
                let text = cell.get(line).map_or("", String::as_str);
                let padding = " ".repeat(width.saturating_sub(display_width(text)));
                let (before, after) = if *numeric { (padding.as_str(), "") } else { ("", padding.as_str()) };
                out.push_str(before);
                out.push_str(text);
                out.push_str(after);
                out.push_str(&" ".repeat(GAP));
            }
            out.truncate(out.trim_end().len());
            out
        })
        .collect()
}

/// The text, cut to `width` columns, with a mark where it was cut.
pub(crate) fn clip(text: &str, width: usize) -> String {
    if display_width(text) <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 1;
    for letter in text.chars() {
        used += unicode_width::UnicodeWidthChar::width(letter).unwrap_or(0);
        if used > width {
            break;
        }
        out.push(letter);
    }
    out.push('…');
    out
}

/// The text in lines of at most `width` columns, broken at blanks where there are any.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_inclusive(' ') {
        let bare = display_width(word.trim_end());
        if used > 0 && used + bare > width {
            lines.push(String::new());
            used = 0;
        }
        for letter in word.chars() {
            let columns = unicode_width::UnicodeWidthChar::width(letter).unwrap_or(0);
            if used + columns > width && letter != ' ' && used > 0 {
                lines.push(String::new());
                used = 0;
            }
            if let Some(line) = lines.last_mut() {
                line.push(letter);
                used += columns;
            }
        }
    }
    lines.iter_mut().for_each(|line| line.truncate(line.trim_end().len()));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(headers: &[&str], rows: &[&[&str]], width: Option<usize>, expected: &[&str]) {
        let mut table = Table::new(headers);
        rows.iter().for_each(|row| table.row(row));
        assert_eq!(table.lines(Look { colour: false, width }), expected);
    }

    #[test]
    fn columns_line_up_and_numbers_stand_right() {
        check(
            &["path", "size"],
            &[&["a.txt", "5"], &["日本.txt", "1,024"]],
            None,
            &["path       size", "────────  ────", "a.txt         5", "日本.txt  1,024"],
        );
    }

    #[test]
    fn a_wide_cell_goes_on_below_itself() {
        check(
            &["name", "about"],
            &[&["x", "reads a file and says so"], &["y", ""]],
            Some(20),
            &["name  about", "────  ──────────────", "x     reads a file", "      and says so", "y"],
        );
    }

    #[test]
    fn a_word_wider_than_its_column_is_broken() {
        check(&[], &[&["abcdefghijkl"]], Some(8), &["abcdefgh", "ijkl"]);
    }

    #[test]
    fn a_newline_in_a_cell_does_not_break_the_table() {
        check(&[], &[&["a\nb", "c"]], None, &["a\\nb  c"]);
    }

    #[test]
    fn rows_may_be_shorter_or_longer_than_the_headers() {
        check(&["a"], &[&["1", "x"], &[]], None, &["a", "─  ─", "1  x", ""]);
    }
}
