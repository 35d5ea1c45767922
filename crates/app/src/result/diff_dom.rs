//! The table of a diff, built element by element.
//!
//! A diff can have a hundred thousand rows. They are drawn a thousand at a time and without a signal each; texts go
//! into the document as text, never as markup.

use std::ops::Range;
use std::sync::Arc;

use leptos::ev::MouseEvent;
use wasm_bindgen::JsCast as _;
use web_sys::Element;

use super::diff_rows::{Diff, Row, View, changed_part};
use crate::text::counted;
use crate::ui::dom::{child, element, focus, icon, set};

/// Rows that are drawn at a time.
const AT_ONCE: usize = 1_000;

/// A diff and how it is drawn.
#[derive(Debug)]
pub(crate) struct Table {
    diff: Arc<Diff>,
}

/// One side of a row.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Equal,
    Old,
    New,
}

impl Kind {
    fn class(self, base: &str) -> String {
        let more = match self {
            Self::Equal => "",
            Self::Old => " is-del",
            Self::New => " is-add",
        };
        [base, more].concat()
    }
}

impl Table {
    /// The table of `diff`.
    pub(crate) fn new(diff: Arc<Diff>) -> Self {
        Self { diff }
    }

    /// Draws the first rows into `holder`, in place of what was there.
    pub(crate) fn draw(&self, holder: &Element, view: View) {
        holder.set_text_content(None);
        let table = child(holder, "table", "", "");
        let (caption, columns): (_, &[&str]) = match view {
            View::Split => {
                ("Differences between the old and the new text, side by side", &["ln", "", "ln", ""])
            }
            View::Unified => {
                ("Differences between the old and the new text, in one column", &["ln", "ln", ""])
            }
        };
        child(&table, "caption", "vh", caption);
        let group = child(&table, "colgroup", "", "");
        columns.iter().for_each(|class| drop(child(&group, "col", class, "")));
        let head = child(&table, "thead", if view == View::Split { "" } else { "vh" }, "");
        let head = child(&head, "tr", "", "");
        let heads: &[&str] = match view {
            View::Split => &["Old text", "New text"],
            View::Unified => &["Old line", "New line", "Text"],
        };
        for words in heads {
            let cell = child(&head, "th", "", words);
            set(&cell, "scope", "col");
            if view == View::Split {
                set(&cell, "colspan", "2");
            }
        }
        let body = child(&table, "tbody", "", "");
        self.draw_from(&body, view, 0);
    }

    /// Draws rows from `start` on at the end of `body`, and a row that draws more if some are left.
    fn draw_from(&self, body: &Element, view: View, start: usize) {
        let rows = self.diff.rows(view);
        let end = rows.len().min(start.saturating_add(AT_ONCE));
        for row in rows.get(start..end).unwrap_or_default() {
            let drawn = self.row(*row, view);
            let _ = body.append_child(&drawn);
        }
        if end < rows.len() {
            let words =
                ["Show more: ", &counted((rows.len() - end) as u64, "row is", "rows are"), " left"].concat();
            let (row, button) = fold_row(view, &words);
            set(&button, "data-from", &end.to_string());
            let _ = body.append_child(&row);
        }
    }

    /// Opens a fold, or draws more rows, if that is what was clicked.
    pub(crate) fn click(&self, event: &MouseEvent, view: View) {
        let target = event.target().and_then(|target| target.dyn_into::<Element>().ok());
        let button = target.and_then(|target| target.closest(".fold__open").ok().flatten());
        let Some(button) = button else { return };
        let Some(row) = button.closest("tr").ok().flatten() else { return };
        let Some(body) = row.parent_element() else { return };
        let number = |name: &str| button.get_attribute(name).and_then(|text| text.parse::<usize>().ok());
        if let Some(from) = number("data-from") {
            row.remove();
            self.draw_from(&body, view, from);
        } else if let (Some(old), Some(new), Some(count)) =
            (number("data-old"), number("data-new"), number("data-count"))
        {
            let now = count.min(AT_ONCE);
            for line in 0..now {
                let drawn = self.row(Row::Equal(old + line, new + line), view);
                let _ = body.insert_before(&drawn, Some(&row));
            }
            if count > now {
                let rest = self.row(Row::Fold(old + now, new + now, count - now), view);
                let _ = body.insert_before(&rest, Some(&row));
            }
            row.remove();
        }
        // The button is gone; what it was in is the nearest place to go on from.
        if let Some(region) = body.closest(".diff").ok().flatten() {
            focus(&region);
        }
    }

    fn row(&self, row: Row, view: View) -> Element {
        let diff = &*self.diff;
        match row {
            Row::Fold(old, new, count) => {
                let (row, button) =
                    fold_row(view, &counted(count as u64, "unchanged line", "unchanged lines"));
                for (name, number) in [("data-old", old), ("data-new", new), ("data-count", count)] {
                    set(&button, name, &number.to_string());
                }
                row
            }
            Row::Equal(old, new) => {
                let row = element("tr", "");
                number(&row, Kind::Equal, Some(old));
                if view == View::Split {
                    code(&row, Kind::Equal, &diff.old_text(old), None);
                }
                number(&row, Kind::Equal, Some(new));
                let cell = code(&row, Kind::Equal, &diff.new_text(new), None);
                open_end(&cell, diff.new.is_open_end(new));
                row
            }
            Row::Pair(old, new) => {
                let row = element("tr", "");
                let (old_text, new_text) =
                    (old.map(|line| diff.old_text(line)), new.map(|line| diff.new_text(line)));
                let parts = old_text.as_deref().zip(new_text.as_deref());
                let (old_part, new_part) = parts.and_then(|(old, new)| changed_part(old, new)).unzip();
                self.side(&row, Kind::Old, old, old_text, old_part);
                self.side(&row, Kind::New, new, new_text, new_part);
                row
            }
            Row::Old(line, partner) => {
                let text = diff.old_text(line);
                let part =
                    partner.and_then(|new| changed_part(&text, &diff.new_text(new))).map(|parts| parts.0);
                let row = element("tr", "");
                number(&row, Kind::Old, Some(line));
                number(&row, Kind::Old, None);
                open_end(&code(&row, Kind::Old, &text, part), diff.old.is_open_end(line));
                row
            }
            Row::New(line, partner) => {
                let text = diff.new_text(line);
                let part =
                    partner.and_then(|old| changed_part(&diff.old_text(old), &text)).map(|parts| parts.1);
                let row = element("tr", "");
                number(&row, Kind::New, None);
                number(&row, Kind::New, Some(line));
                open_end(&code(&row, Kind::New, &text, part), diff.new.is_open_end(line));
                row
            }
        }
    }

    /// One side of a row of two: a line, or the place where none is.
    fn side(
        &self,
        row: &Element,
        kind: Kind,
        line: Option<usize>,
        text: Option<String>,
        part: Option<Range<usize>>,
    ) {
        let (Some(line), Some(text)) = (line, text) else {
            child(row, "td", "ln is-void", "");
            child(row, "td", "code is-void", "");
            return;
        };
        number(row, kind, Some(line));
        let cell = code(row, kind, &text, part);
        let lines = if matches!(kind, Kind::Old) { &self.diff.old } else { &self.diff.new };
        open_end(&cell, lines.is_open_end(line));
    }
}

/// A row with a button across all columns.
fn fold_row(view: View, words: &str) -> (Element, Element) {
    let row = element("tr", "fold");
    let cell = child(&row, "td", "", "");
    set(&cell, "colspan", if view == View::Split { "4" } else { "3" });
    let button = child(&cell, "button", "fold__open", "");
    set(&button, "type", "button");
    set(&button, "aria-expanded", "false");
    icon(&button, "#i-unfold");
    let _ = child(&button, "span", "", words);
    (row, button)
}

/// A cell with the number of a line, counted from 1, or without one.
fn number(row: &Element, kind: Kind, line: Option<usize>) {
    let text = line.map(|line| (line + 1).to_string()).unwrap_or_default();
    child(row, "td", &kind.class("ln"), &text);
}

/// A cell with the text of a line, of which a part may be marked.
fn code(row: &Element, kind: Kind, text: &str, part: Option<Range<usize>>) -> Element {
    let Some(part) = part.filter(|part| !part.is_empty()) else {
        return child(row, "td", &kind.class("code"), text);
    };
    let cell = child(row, "td", &kind.class("code"), &text[..part.start]);
    child(&cell, "mark", "", &text[part.clone()]);
    child(&cell, "span", "", &text[part.end..]);
    cell
}

fn open_end(cell: &Element, is_open: bool) {
    if is_open {
        child(cell, "span", "eof", "No newline at end of file");
    }
}
