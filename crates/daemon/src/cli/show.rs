//! How things look on a terminal, and that nothing that is shown can steer it.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};

use toolshelf_core::refusal::Refusal;

/// Colours, or none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    /// Whether a person reads.
    pub(crate) terminal: bool,
    colours: bool,
}

impl Style {
    /// Colours on a terminal, unless `NO_COLOR` is set or the terminal is a dumb one.
    pub(crate) fn of_terminal() -> Self {
        let terminal = io::stdout().is_terminal();
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self { terminal, colours: terminal && !unwanted && !dumb }
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colours { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    pub(crate) fn good(self, text: &str) -> String {
        self.paint("32", text)
    }

    pub(crate) fn bad(self, text: &str) -> String {
        self.paint("31", text)
    }

    /// A refusal with what can be done about it.
    pub(crate) fn refusal(self, refusal: &Refusal) -> String {
        let code = self.bad(refusal.code.as_str());
        format!("{code}: {}\n{}", printable(&refusal.why), self.dim(refusal.code.remedy()))
    }
}

/// A text whose control characters are made visible: a description or a line of a file must not steer the terminal.
pub(crate) fn printable(text: &str) -> String {
    let steers = |char: char| {
        (char.is_control() && char != '\t')
            // Marks that turn the direction of writing make a line look like another one.
            || matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|char| if steers(char) { '\u{fffd}' } else { char }).collect()
}

/// A table of plain cells: columns as wide as their widest cell, the last one as it is.
pub(crate) fn table(rows: &[Vec<String>], style: Style) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        let mut line = String::from(" ");
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(line, " {cell:<width$} ");
        }
        let line = line.trim_end();
        text.push_str(&if index == 0 { style.dim(line) } else { line.to_owned() });
        text.push('\n');
    }
    text
}

/// A number of bytes for people.
pub(crate) fn bytes(count: u64) -> String {
    match count {
        0..=9_999 => format!("{count} B"),
        10_000..=9_999_999 => format!("{} KB", count / 1_000),
        _ => format!("{} MB", count / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_cannot_steer_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb\tc\r\u{202e}d"), "a\u{fffd}[2Jb\tc\u{fffd}\u{fffd}d");
    }

    #[test]
    fn columns_line_up() {
        let style = Style { terminal: false, colours: false };
        let rows = [vec!["A".to_owned(), "B".to_owned()], vec!["long".to_owned(), "x".to_owned()]];
        assert_eq!(table(&rows, style), "  A     B\n  long  x\n");
    }
}
