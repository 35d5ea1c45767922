//! A diff as a unified patch, which other programs read.

use std::fmt::Write as _;

use crate::diff::{CONTEXT, Followed, Lines, Stretch};

/// One hunk while it is put together.
#[derive(Debug, Default)]
struct Hunk {
    old_start: usize,
    old_count: usize,
    new_start: usize,
    new_count: usize,
    body: String,
}

/// The patch that turns the old text into the new one; empty when they are identical.
#[must_use]
pub fn unified(diff: &Followed) -> String {
    let mut patch = String::new();
    let mut open: Option<Hunk> = None;
    let mut before = 0;
    for (at, stretch) in diff.stretches.iter().enumerate() {
        match *stretch {
            Stretch::Equal { old, count, .. } => {
                before = count.min(CONTEXT);
                let Some(mut hunk) = open.take() else { continue };
                let is_last = at + 1 == diff.stretches.len();
                // Two changes that are near each other share a hunk.
                if !is_last && count <= 2 * CONTEXT {
                    hunk.equal(diff, old, count);
                    open = Some(hunk);
                } else {
                    hunk.equal(diff, old, before);
                    hunk.write(&mut patch);
                }
            }
            Stretch::Change { old, deleted, new, inserted } => {
                let hunk = open.get_or_insert_with(|| {
                    let (old, new) = (old - before, new - before);
                    let mut hunk = Hunk { old_start: old, new_start: new, ..Hunk::default() };
                    hunk.equal(diff, old, before);
                    hunk
                });
                hunk.old_count += deleted;
                hunk.new_count += inserted;
                (old..old + deleted).for_each(|line| push(&mut hunk.body, '-', &diff.old, line));
                (new..new + inserted).for_each(|line| push(&mut hunk.body, '+', &diff.new, line));
            }
        }
    }
    if let Some(hunk) = open {
        hunk.write(&mut patch);
    }
    patch
}

impl Hunk {
    fn equal(&mut self, diff: &Followed, old: usize, count: usize) {
        self.old_count += count;
        self.new_count += count;
        (old..old + count).for_each(|line| push(&mut self.body, ' ', &diff.old, line));
    }

    fn write(self, patch: &mut String) {
        if patch.is_empty() {
            patch.push_str("--- old\n+++ new\n");
        }
        // A range without lines is given by the line before it.
        let start = |first: usize, count: usize| if count == 0 { first } else { first + 1 };
        let _ = writeln!(
            patch,
            "@@ -{},{} +{},{} @@",
            start(self.old_start, self.old_count),
            self.old_count,
            start(self.new_start, self.new_count),
            self.new_count
        );
        patch.push_str(&self.body);
    }
}

fn push(body: &mut String, sign: char, lines: &Lines, line: usize) {
    body.push(sign);
    body.push_str(&String::from_utf8_lossy(lines.get(line)));
    if lines.is_open_end(line) {
        body.push_str("\n\\ No newline at end of file\n");
    }
}

#[cfg(test)]
mod tests {
    use crate::script::{Block, Op};

    use super::*;

    fn block(op: Op, a_line: u32, a_count: u32, b_line: u32, b_count: u32) -> Block {
        Block { op, a_line, a_count, b_line, b_count }
    }

    fn patch(old: &str, new: &str, blocks: &[Block]) -> String {
        let diff = Followed::new(old.as_bytes().into(), new.as_bytes().into(), blocks);
        assert!(diff.faithful, "the test's script is honest");
        unified(&diff)
    }

    /// Checked against GNU `diff -u`, whose file headers are left out.
    #[test]
    fn a_patch_has_three_lines_of_context_and_hunks_that_are_apart() {
        let old: String = (1..=20).map(|line| format!("{line}\n")).collect();
        let new = old.replace("\n4\n", "\nfour\n").replace("\n18\n", "\n");
        let blocks = [
            block(Op::Equal, 0, 3, 0, 3),
            block(Op::Delete, 3, 1, 0, 0),
            block(Op::Insert, 0, 0, 3, 1),
            block(Op::Equal, 4, 13, 4, 13),
            block(Op::Delete, 17, 1, 0, 0),
            block(Op::Equal, 18, 2, 17, 2),
        ];
        let expected = "--- old\n+++ new\n@@ -1,7 +1,7 @@\n 1\n 2\n 3\n-4\n+four\n 5\n 6\n 7\n\
                        @@ -15,6 +15,5 @@\n 15\n 16\n 17\n-18\n 19\n 20\n";
        assert_eq!(patch(&old, &new, &blocks), expected);
    }

    #[test]
    fn near_changes_share_a_hunk() {
        let blocks =
            [block(Op::Delete, 0, 1, 0, 0), block(Op::Equal, 1, 6, 0, 6), block(Op::Insert, 0, 0, 6, 1)];
        let patch = patch("x\n1\n2\n3\n4\n5\n6\n", "1\n2\n3\n4\n5\n6\ny\n", &blocks);
        assert_eq!(patch, "--- old\n+++ new\n@@ -1,7 +1,7 @@\n-x\n 1\n 2\n 3\n 4\n 5\n 6\n+y\n");
    }

    #[test]
    fn ends_without_line_feed_and_empty_texts_are_said_as_other_programs_say_them() {
        let swap = [block(Op::Delete, 0, 1, 0, 0), block(Op::Insert, 0, 0, 0, 1)];
        assert_eq!(
            patch("a", "a\n", &swap),
            "--- old\n+++ new\n@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+a\n"
        );
        let insert = [block(Op::Insert, 0, 0, 0, 2)];
        assert_eq!(patch("", "a\nb\n", &insert), "--- old\n+++ new\n@@ -0,0 +1,2 @@\n+a\n+b\n");
        assert_eq!(patch("a\n", "a\n", &[block(Op::Equal, 0, 1, 0, 1)]), "");
    }
}
