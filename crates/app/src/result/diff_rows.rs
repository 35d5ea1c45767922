//! From a diff script and the two texts that it compares to the rows that are drawn.
//!
//! The script comes from an untrusted module. Each range is clamped to the lines that are really there, no script leads
//! to more rows than the texts have lines, and a script that does not reproduce the texts is said not to.

use std::ops::Range;
use std::sync::Arc;

use toolshelf_browser::core::script::{Block, Op, lines};

use crate::text::visible;

/// Equal lines that are shown before and after a change.
pub(crate) const CONTEXT: usize = 3;

/// How the rows are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// The old text on the left, the new one on the right.
    Split,
    /// Both in one column.
    Unified,
}

/// One of the two texts, by lines.
#[derive(Debug, Clone)]
pub(crate) struct Lines {
    text: Arc<[u8]>,
    ends: Vec<usize>,
}

impl Lines {
    fn new(text: Arc<[u8]>) -> Self {
        let ends = lines(&text).scan(0, |end, line| {
            *end += line.len();
            Some(*end)
        });
        Self { ends: ends.collect(), text }
    }

    /// How many lines there are.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The bytes of a line with its line feed; nothing for a line that is not there.
    pub(crate) fn get(&self, line: usize) -> &[u8] {
        let start = if line == 0 { Some(0) } else { self.ends.get(line - 1).copied() };
        match (start, self.ends.get(line)) {
            (Some(start), Some(&end)) => &self.text[start..end],
            _ => &[],
        }
    }

    /// Whether the line is the last one and has no line feed.
    pub(crate) fn is_open_end(&self, line: usize) -> bool {
        line + 1 == self.len() && !self.get(line).ends_with(b"\n")
    }

    /// Bytes of the whole text.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len()
    }

    fn range(&self, start: u32, count: u32) -> Range<usize> {
        let start = (start as usize).min(self.len());
        start..start.saturating_add(count as usize).min(self.len())
    }

    fn all_end_in_crlf(&self) -> bool {
        lines(&self.text).all(|line| line.ends_with(b"\r\n") || !line.ends_with(b"\n"))
    }
}

/// A stretch of the script, clamped to the texts. Lines count from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stretch {
    /// Lines that are in both texts.
    Equal {
        /// First line in the old text.
        old: usize,
        /// First line in the new text.
        new: usize,
        /// How many.
        count: usize,
    },
    /// Lines that make room for others.
    Change {
        /// First line in the old text.
        old: usize,
        /// Lines that are gone.
        deleted: usize,
        /// First line in the new text.
        new: usize,
        /// Lines that have come.
        inserted: usize,
    },
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

/// A script together with the texts that it compares.
#[derive(Debug, Clone)]
pub(crate) struct Diff {
    /// The old text.
    pub(crate) old: Lines,
    /// The new text.
    pub(crate) new: Lines,
    /// The script, clamped and joined.
    pub(crate) stretches: Vec<Stretch>,
    /// Whether the script turns the old text into the new one, all lines accounted for.
    pub(crate) faithful: bool,
    /// Lines that the script calls equal although their white space differs, as a tool may be made to.
    pub(crate) loose: usize,
    hide_cr: bool,
}

impl Diff {
    /// Reads `blocks` as a script from `old` to `new`.
    pub(crate) fn new(old: Arc<[u8]>, new: Arc<[u8]>, blocks: &[Block]) -> Self {
        let (old, new) = (Lines::new(old), Lines::new(new));
        let Walk { stretches, faithful, loose } = walk(&old, &new, blocks);
        let hide_cr = old.all_end_in_crlf() && new.all_end_in_crlf();
        Self { old, new, stretches, faithful, loose, hide_cr }
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

/// What following a script gives.
struct Walk {
    stretches: Vec<Stretch>,
    faithful: bool,
    loose: usize,
}

/// Follows the script, and says whether it reproduces both texts.
fn walk(old: &Lines, new: &Lines, blocks: &[Block]) -> Walk {
    let mut stretches: Vec<Stretch> = Vec::new();
    let (mut old_at, mut new_at) = (0, 0);
    let (mut faithful, mut loose) = (true, 0);
    // No script that reproduces the texts has more lines than both of them together.
    let mut left = old.len() + new.len();
    for block in blocks {
        let mut olds = old.range(block.a_line, block.a_count);
        let mut news = new.range(block.b_line, block.b_count);
        match block.op {
            Op::Equal => {
                let count = olds.len().min(news.len()).min(left);
                faithful &= olds.start == old_at && news.start == new_at && block.a_count == block.b_count;
                faithful &= block.a_count as usize == count;
                for (old_line, new_line) in
                    (0..count).map(|line| (old.get(olds.start + line), new.get(news.start + line)))
                {
                    if old_line != new_line {
                        loose += 1;
                        faithful &= same_but_for_space(old_line, new_line);
                    }
                }
                (old_at, new_at) = (olds.start + count, news.start + count);
                left -= count;
                if count > 0 {
                    stretches.push(Stretch::Equal { old: olds.start, new: news.start, count });
                }
            }
            Op::Delete => {
                olds.end = olds.end.min(olds.start + left);
                faithful &= olds.start == old_at && olds.len() == block.a_count as usize;
                left -= olds.len();
                old_at = olds.end;
                push_change(&mut stretches, olds, new_at..new_at);
            }
            Op::Insert => {
                news.end = news.end.min(news.start + left);
                faithful &= news.start == new_at && news.len() == block.b_count as usize;
                left -= news.len();
                new_at = news.end;
                push_change(&mut stretches, old_at..old_at, news);
            }
            Op::Unknown(_) => faithful = false,
        }
    }
    Walk { stretches, faithful: faithful && old_at == old.len() && new_at == new.len(), loose }
}

fn same_but_for_space(old: &[u8], new: &[u8]) -> bool {
    let ink =
        |line: &[u8]| line.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect::<Vec<_>>();
    ink(old) == ink(new)
}

/// Adds to the last change where the lines follow on, and begins another one where they do not.
fn push_change(stretches: &mut Vec<Stretch>, olds: Range<usize>, news: Range<usize>) {
    if olds.is_empty() && news.is_empty() {
        return;
    }
    if let Some(Stretch::Change { old, deleted, new, inserted }) = stretches.last_mut() {
        let follows = |start: usize, count: usize, range: &Range<usize>| {
            range.is_empty() || start + count == range.start
        };
        if follows(*old, *deleted, &olds) && follows(*new, *inserted, &news) {
            *deleted += olds.len();
            *inserted += news.len();
            return;
        }
    }
    let (deleted, inserted) = (olds.len(), news.len());
    stretches.push(Stretch::Change { old: olds.start, deleted, new: news.start, inserted });
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
