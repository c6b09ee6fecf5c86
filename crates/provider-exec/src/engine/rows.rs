//! What a program's output looks like on a page without end: lines that can still be overwritten.

use std::collections::VecDeque;

use unicode_width::UnicodeWidthChar as _;

use super::escapes::Token;
use super::sheet::{Position, Sheet};

/// So many of the last lines can be reached by moving the cursor up.
const REACH: usize = 50;
/// A line longer than this is final in its first part. Bytes, or columns once the cursor has moved in it.
///
/// With [`REACH`], this bounds the memory: a cell takes 16 bytes.
const LONGEST: usize = 4 * 1024;
/// Moves beyond this column are moves to this column.
const WIDEST: usize = 1024;
/// Combining characters beyond this many on one cell are dropped.
const MOST_MARKS: usize = 8;
const TAB: usize = 8;

/// One column of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Cell {
    character: char,
    /// Combining characters. Boxed, because nearly no cell has any.
    #[expect(clippy::box_collection, reason = "a cell is held for every column")]
    marks: Option<Box<String>>,
}

impl Cell {
    fn new(character: char) -> Self {
        Self { character, marks: None }
    }

    fn mark(&mut self, mark: char) {
        let marks = self.marks.get_or_insert_default();
        if marks.chars().count() < MOST_MARKS {
            marks.push(mark);
        }
    }
}

/// The further columns of a wide character or a tab.
const CONTINUED: char = '\0';
const BLANK: Cell = Cell { character: ' ', marks: None };

#[derive(Clone, Debug)]
struct Row {
    /// The line while it was only ever appended to: it is kept as it came.
    text: String,
    /// The line as columns, since the cursor was moved in it.
    cells: Option<Vec<Cell>>,
    start: Position,
}

impl Row {
    fn new(start: Position) -> Self {
        Self { text: String::new(), cells: None, start }
    }

    fn size(&self) -> usize {
        self.cells.as_ref().map_or(self.text.len(), Vec::len)
    }

    fn into_text(self) -> String {
        if self.cells.is_some() { self.text() } else { self.text }
    }

    fn text(&self) -> String {
        let Some(cells) = &self.cells else { return self.text.clone() };
        let mut text = String::with_capacity(cells.len());
        for cell in cells.iter().filter(|cell| cell.character != CONTINUED) {
            text.push(cell.character);
            text.push_str(cell.marks.as_deref().map_or("", String::as_str));
        }
        text.truncate(text.trim_end_matches(' ').len());
        text
    }

    /// The columns of the line.
    fn cells(&mut self) -> &mut Vec<Cell> {
        let text = std::mem::take(&mut self.text);
        self.cells.get_or_insert_with(|| {
            let mut cells = Vec::with_capacity(text.len());
            text.chars().for_each(|character| append(&mut cells, character));
            cells
        })
    }
}

/// Puts a character behind the last column.
fn append(cells: &mut Vec<Cell>, character: char) {
    let column = cells.len();
    match columns(character, column) {
        0 => {
            if let Some(cell) = cells.iter_mut().rev().find(|cell| cell.character != CONTINUED) {
                cell.mark(character);
            }
        }
        width => {
            cells.push(Cell::new(character));
            cells.resize(column + width, Cell::new(CONTINUED));
        }
    }
}

/// How many columns a character takes at a column.
fn columns(character: char, column: usize) -> usize {
    if character == '\t' { TAB - column % TAB } else { character.width().unwrap_or(0) }
}

/// The lines that can still change. Lines that no longer can go to a [`Sheet`].
///
/// There is no width and no height: nothing wraps, and nothing is lost by scrolling. A program that addresses
/// lines from the top of a screen gets a fresh page each time it clears the screen.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    /// Never empty.
    rows: VecDeque<Row>,
    /// The row of the cursor, an index of `rows`.
    row: usize,
    /// The column of the cursor; none at the end of a plain line.
    column: Option<usize>,
    /// The row, an index of `rows`, that absolute addresses count from; none before a screen was cleared.
    page: Option<usize>,
    saved: Option<(usize, usize)>,
    /// Line-drawing characters are on.
    drawing: bool,
}

impl Rows {
    pub(crate) fn new(start: Position) -> Self {
        Self {
            rows: VecDeque::from([Row::new(start)]),
            row: 0,
            column: None,
            page: None,
            saved: None,
            drawing: false,
        }
    }

    /// Does what a token asks for. A line that begins with it begins at `place`.
    pub(crate) fn token(&mut self, token: Token<'_>, place: Position, sheet: &mut Sheet) {
        match token {
            Token::Text(text) if self.drawing => {
                self.text(&text.chars().map(drawn).collect::<String>(), sheet)
            }
            Token::Text(text) => self.text(text, sheet),
            Token::Control('\t') => self.tab(sheet),
            // A separator in the output of -print0 and the like: shown, so that names do not run together.
            Token::Control('\0') => self.text("\u{2400}", sheet),
            Token::Control(control) => self.control(control, place),
            Token::Escape(None, letter) => self.escape(letter, place, sheet),
            Token::Escape(Some('('), set) => self.drawing = set == '0',
            Token::Escape(..) => {}
            Token::Csi(marker, numbers, letter) => self.csi(marker, numbers, letter, place, sheet),
        }
        self.settle(sheet);
    }

    /// Everything that is still here, as if no more came.
    pub(crate) fn flush_into(&self, sheet: &mut Sheet) {
        let last = self.last();
        for (index, row) in self.rows.iter().take(last + 1).enumerate() {
            let mut text = row.text();
            if index < last {
                text.push('\n');
            }
            sheet.add(&text, row.start);
        }
    }

    /// The last row that counts: an empty one below the cursor was only ever moved over.
    fn last(&self) -> usize {
        self.rows.iter().rposition(|row| row.size() > 0).map_or(self.row, |row| row.max(self.row))
    }

    fn current(&mut self) -> &mut Row {
        self.row = self.row.min(self.rows.len() - 1);
        &mut self.rows[self.row]
    }

    /// Writes text at the cursor. What a line is cut into does not depend on what the text came in.
    fn text(&mut self, mut text: &str, sheet: &mut Sheet) {
        while self.column.is_none() && self.current().cells.is_none() {
            let row = self.current();
            let room = LONGEST.saturating_sub(row.text.len());
            let (now, later) = text.split_at(text.floor_char_boundary(room));
            row.text.push_str(now);
            if later.is_empty() {
                return;
            }
            self.commit_beginning(sheet);
            text = later;
        }
        for character in text.chars() {
            if self.current().size() >= LONGEST && self.column.is_some_and(|column| column >= LONGEST) {
                self.commit_beginning(sheet);
            }
            self.put(character);
        }
    }

    /// The column of the cursor. Its line becomes one of columns.
    fn here(&mut self) -> usize {
        let length = self.current().cells().len();
        *self.column.get_or_insert(length)
    }

    /// Writes one character at the cursor.
    fn put(&mut self, character: char) {
        let column = self.here();
        let cells = self.current().cells();
        if column >= cells.len() {
            cells.resize(column, BLANK);
            append(cells, character);
            self.column = Some(cells.len());
            return;
        }
        let width = columns(character, column);
        if width == 0 {
            let mut under = cells.iter_mut().take(column).rev();
            if let Some(cell) = under.find(|cell| cell.character != CONTINUED) {
                cell.mark(character);
            }
            return;
        }
        // A wide character loses its other half.
        uncover(cells, column);
        uncover(cells, column + width);
        if cells.len() < column + width {
            cells.resize(column + width, BLANK);
        }
        let written = std::iter::once(character).chain(std::iter::repeat_n(CONTINUED, width - 1));
        for (cell, character) in cells.iter_mut().skip(column).zip(written) {
            *cell = Cell::new(character);
        }
        self.column = Some(column + width);
    }

    fn control(&mut self, control: char, place: Position) {
        match control {
            '\n' | '\u{b}' | '\u{c}' | '\u{85}' => self.next_line(place),
            '\r' => {
                self.column = Some(0);
                self.at_end_of_fresh_line();
            }
            '\u{8}' => {
                let column = self.here();
                self.column = Some(column.saturating_sub(1));
            }
            '\u{e}' => self.drawing = true,
            '\u{f}' => self.drawing = false,
            '\u{8d}' => self.up(1),
            _ => {}
        }
    }

    fn tab(&mut self, sheet: &mut Sheet) {
        let length = self.current().size();
        match self.column {
            None => self.text("\t", sheet),
            Some(column) if column < length => self.column = Some(column + TAB - column % TAB),
            Some(_) => self.put('\t'),
        }
    }

    fn next_line(&mut self, place: Position) {
        self.row += 1;
        self.column = Some(0);
        if self.row >= self.rows.len() {
            self.rows.push_back(Row::new(place));
        }
        self.at_end_of_fresh_line();
    }

    /// An untouched empty line is plain.
    fn at_end_of_fresh_line(&mut self) {
        let row = self.current();
        if row.cells.is_none() && row.text.is_empty() {
            self.column = None;
        }
    }

    fn up(&mut self, by: usize) {
        let column = self.here();
        self.row = self.row.saturating_sub(by);
        self.column = Some(column);
    }

    /// Moves down; lines that do not exist yet are made, as many as a screen may have.
    fn down(&mut self, by: usize, place: Position) {
        let column = self.here();
        self.row += by.min(REACH - 1);
        while self.row >= self.rows.len() {
            self.rows.push_back(Row::new(place));
        }
        self.column = Some(column);
        if column == 0 {
            self.at_end_of_fresh_line();
        }
    }

    fn move_to_column(&mut self, column: usize) {
        self.here();
        self.column = Some(column.min(WIDEST));
    }

    fn escape(&mut self, letter: char, place: Position, sheet: &mut Sheet) {
        match letter {
            '7' => self.saved = Some((self.row, self.here())),
            '8' => self.restore(),
            'D' => self.down(1, place),
            'E' => self.next_line(place),
            'M' => self.up(1),
            'c' => self.fresh_page(place, sheet),
            _ => {}
        }
    }

    fn restore(&mut self) {
        if let Some((row, column)) = self.saved {
            self.row = row.min(self.rows.len() - 1);
            self.here();
            self.column = Some(column);
        }
    }

    fn csi(
        &mut self,
        marker: Option<char>,
        numbers: &[u16],
        letter: char,
        place: Position,
        sheet: &mut Sheet,
    ) {
        let number = |index: usize| numbers.get(index).copied().map(usize::from);
        let count = number(0).unwrap_or(0).max(1);
        match (marker, letter) {
            (None, 'A') => self.up(count),
            (None, 'B' | 'e') => self.down(count, place),
            (None, 'C' | 'a') => {
                let column = self.here();
                self.move_to_column(column + count);
            }
            (None, 'D') => {
                let column = self.here();
                self.move_to_column(column.saturating_sub(count));
            }
            (None, 'E') => {
                self.down(count, place);
                self.column = Some(0);
            }
            (None, 'F') => {
                self.up(count);
                self.column = Some(0);
            }
            (None, 'G' | '`') => self.move_to_column(count - 1),
            (None, 'd') => self.move_to_line(count - 1, place, sheet),
            (None, 'H' | 'f') => {
                self.move_to_line(count - 1, place, sheet);
                self.move_to_column(number(1).unwrap_or(0).max(1) - 1);
            }
            (None, 'J') => self.erase_screen(number(0).unwrap_or(0), place, sheet),
            (None, 'K') => self.erase_line(number(0).unwrap_or(0)),
            (None, 'P') => self.delete(count),
            (None, '@') => self.insert(count),
            (None, 'X') => self.blank(count),
            (None, 's') => self.saved = Some((self.row, self.here())),
            (None, 'u') => self.restore(),
            (Some('?'), 'h' | 'l') if matches!(numbers, [47 | 1047 | 1049, ..]) => {
                self.fresh_page(place, sheet)
            }
            _ => {}
        }
    }

    /// A line counted from the top of the page. Without a page, one begins here: what was printed is not
    /// overwritten by a program that thinks it has a screen.
    fn move_to_line(&mut self, line: usize, place: Position, sheet: &mut Sheet) {
        if self.page.is_none() {
            self.fresh_page(place, sheet);
        }
        let page = self.page.unwrap_or(0);
        let column = self.here();
        self.row = page;
        self.down(line, place);
        self.column = Some(column);
    }

    /// Everything so far is final, and the screen is empty.
    fn fresh_page(&mut self, place: Position, sheet: &mut Sheet) {
        self.rows.truncate(self.last() + 1);
        if self.rows.back().is_some_and(|row| !row.text().is_empty()) {
            self.rows.push_back(Row::new(place));
        }
        while self.rows.len() > 1 {
            self.commit(sheet);
        }
        self.row = 0;
        self.column = None;
        self.page = Some(0);
        self.saved = None;
    }

    fn erase_screen(&mut self, what: usize, place: Position, sheet: &mut Sheet) {
        match what {
            0 => {
                self.erase_line(0);
                self.rows.truncate(self.row + 1);
            }
            2 | 3 => self.fresh_page(place, sheet),
            _ => {}
        }
    }

    fn erase_line(&mut self, what: usize) {
        let column = self.here();
        let cells = self.current().cells();
        match what {
            0 => {
                uncover(cells, column);
                cells.truncate(column);
            }
            1 => {
                uncover(cells, column + 1);
                cells.iter_mut().take(column + 1).for_each(|cell| *cell = BLANK);
            }
            2 => cells.clear(),
            _ => {}
        }
    }

    fn delete(&mut self, count: usize) {
        let column = self.here();
        let cells = self.current().cells();
        let end = (column + count).min(cells.len());
        if column < end {
            uncover(cells, column);
            uncover(cells, end);
            cells.drain(column..end);
        }
    }

    fn insert(&mut self, count: usize) {
        let column = self.here();
        let cells = self.current().cells();
        if column < cells.len() {
            let count = count.min(WIDEST);
            uncover(cells, column);
            cells.splice(column..column, std::iter::repeat_n(BLANK, count));
        }
    }

    fn blank(&mut self, count: usize) {
        let column = self.here();
        let cells = self.current().cells();
        uncover(cells, column);
        uncover(cells, column + count);
        cells.iter_mut().skip(column).take(count).for_each(|cell| *cell = BLANK);
    }

    /// Gives up what has become too much to hold.
    fn settle(&mut self, sheet: &mut Sheet) {
        while self.rows.len() > REACH && self.row > 0 {
            self.commit(sheet);
        }
        // Lines below the cursor that were never reached by text.
        self.rows.truncate(REACH);
        if self.current().size() > LONGEST {
            self.commit_beginning(sheet);
        }
    }

    /// Makes the first line final.
    fn commit(&mut self, sheet: &mut Sheet) {
        let Some(row) = self.rows.pop_front() else { return };
        let start = row.start;
        let mut text = row.into_text();
        text.push('\n');
        sheet.add(&text, start);
        let moved = |row: usize| row.saturating_sub(1);
        self.row = moved(self.row);
        self.page = self.page.map(moved);
        self.saved = self.saved.map(|(row, column)| (moved(row), column));
    }

    /// Makes the lines before the current one, and what the current line has so far, final.
    fn commit_beginning(&mut self, sheet: &mut Sheet) {
        while self.row > 0 {
            self.commit(sheet);
        }
        let row = self.current();
        let text = row.text();
        let start = row.start;
        row.start.byte += text.len() as u64;
        row.text.clear();
        row.cells = None;
        self.column = None;
        sheet.add(&text, start);
    }
}

/// Replaces a character of several columns by blanks where `column` is not its first one.
fn uncover(cells: &mut [Cell], column: usize) {
    if cells.get(column).is_none_or(|cell| cell.character != CONTINUED) {
        return;
    }
    let first = cells.iter().take(column).rposition(|cell| cell.character != CONTINUED).unwrap_or(0);
    let beyond = cells.iter().skip(column).take_while(|cell| cell.character == CONTINUED).count();
    cells.iter_mut().take(column + beyond).skip(first).for_each(|cell| *cell = BLANK);
}

/// The line-drawing character that stands for a letter.
fn drawn(character: char) -> char {
    match character {
        'j' => '┘',
        'k' => '┐',
        'l' => '┌',
        'm' => '└',
        'n' => '┼',
        'q' => '─',
        't' => '├',
        'u' => '┤',
        'v' => '┴',
        'w' => '┬',
        'x' => '│',
        'a' => '▒',
        '`' => '◆',
        other => other,
    }
}
