//! From a diff script and the two texts that it compares to the rows that are drawn.
//!
//! What the script says is clamped to the texts by [`Followed`], so no script leads to more rows than they have lines.

use std::ops::{Deref, Range};
use std::sync::Arc;

use toolshelf_browser::core::diff::{CONTEXT, Followed, Stretch};
use toolshelf_browser::core::script::Block;

use crate::text::visible;

/// How the rows are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// The old text on the left, the new one on the right.
    Split,
    /// Both in one column.
    Unified,
}

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Row {
    /// A line that is in both texts: its numbers in the old and the new one.
    Equal(usize, usize),
    /// Side by side: a line that is gone, one that has come, or both.
    Pair(Option<usize>, Option<usize>),
    /// In one column: a line that is gone, and the one that has come in its place.
    Old(usize, Option<usize>),
    /// In one column: a line that has come, and the one whose place it took.
    New(usize, Option<usize>),
    /// Equal lines that are not shown: the first one's numbers, and how many.
    Fold(usize, usize, usize),
}

/// How many lines are of which kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    /// Lines that have come.
    pub(crate) added: usize,
    /// Lines that are gone.
    pub(crate) removed: usize,
    /// Lines in both texts.
    pub(crate) unchanged: usize,
}

/// A script together with the texts that it compares, as it is drawn.
#[derive(Debug, Clone)]
pub(crate) struct Diff {
    script: Followed,
    hide_cr: bool,
}

impl Deref for Diff {
    type Target = Followed;

    fn deref(&self) -> &Followed {
        &self.script
    }
}

impl Diff {
    /// Reads `blocks` as a script from `old` to `new`.
    pub(crate) fn new(old: Arc<[u8]>, new: Arc<[u8]>, blocks: &[Block]) -> Self {
        let script = Followed::new(old, new, blocks);
        let hide_cr = script.old.all_end_in_crlf() && script.new.all_end_in_crlf();
        Self { script, hide_cr }
    }

    /// How many lines are of which kind.
    pub(crate) fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for stretch in &self.stretches {
            match *stretch {
                Stretch::Equal { count, .. } => counts.unchanged += count,
                Stretch::Change { deleted, inserted, .. } => {
                    counts.removed += deleted;
                    counts.added += inserted;
                }
            }
        }
        counts
    }

    /// Whether the script says that nothing differs, and is right but perhaps for white space.
    pub(crate) fn identical(&self) -> bool {
        self.faithful && !self.stretches.iter().any(|stretch| matches!(stretch, Stretch::Change { .. }))
    }

    /// The rows in the layout `view`.
    pub(crate) fn rows(&self, view: View) -> Vec<Row> {
        let mut rows = Vec::new();
        let last = self.stretches.len().saturating_sub(1);
        for (at, stretch) in self.stretches.iter().enumerate() {
            match *stretch {
                Stretch::Equal { old, new, count } => {
                    let head = if at == 0 { 0 } else { CONTEXT };
                    let tail = if at == last { 0 } else { CONTEXT };
                    push_equal(&mut rows, old, new, count, head, tail);
                }
                Stretch::Change { old, deleted, new, inserted } => {
                    let old_at = |row: usize| (row < deleted).then_some(old + row);
                    let new_at = |row: usize| (row < inserted).then_some(new + row);
                    match view {
                        View::Split => rows.extend(
                            (0..deleted.max(inserted)).map(|row| Row::Pair(old_at(row), new_at(row))),
                        ),
                        View::Unified => {
                            rows.extend((0..deleted).map(|row| Row::Old(old + row, new_at(row))));
                            rows.extend((0..inserted).map(|row| Row::New(new + row, old_at(row))));
                        }
                    }
                }
            }
        }
        rows
    }

    /// A line of the old text as it is shown.
    pub(crate) fn old_text(&self, line: usize) -> String {
        self.shown(self.old.get(line))
    }

    /// A line of the new text as it is shown.
    pub(crate) fn new_text(&self, line: usize) -> String {
        self.shown(self.new.get(line))
    }

    /// A line without its line feed. Its carriage return is shown unless every line of both texts has one.
    fn shown(&self, line: &[u8]) -> String {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        visible(if self.hide_cr { line.strip_suffix(b"\r").unwrap_or(line) } else { line })
    }
}

fn push_equal(rows: &mut Vec<Row>, old: usize, new: usize, count: usize, head: usize, tail: usize) {
    let shown = |range: Range<usize>| range.map(move |row| Row::Equal(old + row, new + row));
    // A fold that hides a single line would save nothing.
    if count <= head + tail + 1 {
        rows.extend(shown(0..count));
        return;
    }
    rows.extend(shown(0..head));
    rows.push(Row::Fold(old + head, new + head, count - head - tail));
    rows.extend(shown(count - tail..count));
}

/// The parts in which two lines differ, as byte ranges: what their common beginning and end leave over.
///
/// `None` where they have too little in common for that to be worth showing, or differ in nothing that is seen.
pub(crate) fn changed_part(old: &str, new: &str) -> Option<(Range<usize>, Range<usize>)> {
    let same = |pair: &(char, char)| pair.0 == pair.1;
    let head: usize = old.chars().zip(new.chars()).take_while(same).map(|pair| pair.0.len_utf8()).sum();
    let (old_rest, new_rest) = (&old[head..], &new[head..]);
    let pairs = old_rest.chars().rev().zip(new_rest.chars().rev());
    let tail: usize = pairs.take_while(same).map(|pair| pair.0.len_utf8()).sum();
    let common = head + tail;
    if old == new || common * 3 < old.len().max(new.len()) {
        return None;
    }
    Some((head..old.len() - tail, head..new.len() - tail))
}

#[cfg(test)]
#[path = "diff_rows_tests.rs"]
mod tests;
