//! A diff script followed through the two texts that it compares.
//!
//! The script comes from an untrusted module. Each range is clamped to the lines that are really there, and a script that
//! does not reproduce the texts is said not to.

use std::ops::Range;
use std::sync::Arc;

use crate::script::{Block, Op, lines};

/// Equal lines that are shown before and after a change.
pub const CONTEXT: usize = 3;

/// One of the two texts, by lines.
#[derive(Debug, Clone)]
pub struct Lines {
    text: Arc<[u8]>,
    ends: Vec<usize>,
}

impl Lines {
    /// The lines of `text`.
    #[must_use]
    pub fn new(text: Arc<[u8]>) -> Self {
        let ends = lines(&text).scan(0, |end, line| {
            *end += line.len();
            Some(*end)
        });
        Self { ends: ends.collect(), text }
    }

    /// How many lines there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The bytes of a line with its line feed; nothing for a line that is not there.
    #[must_use]
    pub fn get(&self, line: usize) -> &[u8] {
        let start = if line == 0 { Some(0) } else { self.ends.get(line - 1).copied() };
        match (start, self.ends.get(line)) {
            (Some(start), Some(&end)) => &self.text[start..end],
            _ => &[],
        }
    }

    /// Whether the line is the last one and has no line feed.
    #[must_use]
    pub fn is_open_end(&self, line: usize) -> bool {
        line + 1 == self.len() && !self.get(line).ends_with(b"\n")
    }

    /// Bytes of the whole text.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Those of the `count` lines from `start` on that are really there.
    pub fn part(&self, start: u32, count: u32) -> impl Iterator<Item = &[u8]> {
        self.range(start, count).map(|line| self.get(line))
    }

    fn range(&self, start: u32, count: u32) -> Range<usize> {
        let start = (start as usize).min(self.len());
        start..start.saturating_add(count as usize).min(self.len())
    }

    /// Whether every line that ends, ends in CR and LF.
    #[must_use]
    pub fn all_end_in_crlf(&self) -> bool {
        lines(&self.text).all(|line| line.ends_with(b"\r\n") || !line.ends_with(b"\n"))
    }
}

/// A stretch of the script, clamped to the texts. Lines count from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stretch {
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

/// A script together with the texts that it compares.
#[derive(Debug, Clone)]
pub struct Followed {
    /// The old text.
    pub old: Lines,
    /// The new text.
    pub new: Lines,
    /// The script, clamped and joined.
    pub stretches: Vec<Stretch>,
    /// Whether the script turns the old text into the new one, all lines accounted for.
    pub faithful: bool,
    /// Lines that the script calls equal although their white space differs, as a tool may be made to.
    pub loose: usize,
}

impl Followed {
    /// Follows `blocks` from `old` to `new`, and says whether they reproduce both texts.
    #[must_use]
    pub fn new(old: Arc<[u8]>, new: Arc<[u8]>, blocks: &[Block]) -> Self {
        let (old, new) = (Lines::new(old), Lines::new(new));
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
                    faithful &=
                        olds.start == old_at && news.start == new_at && block.a_count == block.b_count;
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
        let faithful = faithful && old_at == old.len() && new_at == new.len();
        Self { old, new, stretches, faithful, loose }
    }
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
