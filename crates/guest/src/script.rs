//! The output of a tool that speaks `buffer-abi/diff`.

use core::fmt;

use crate::layout::diff::{BLOCK_BYTES, TERMINATOR};

/// The edit script does not fit its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptFull;

impl fmt::Display for ScriptFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the edit script does not fit its buffer")
    }
}

impl core::error::Error for ScriptFull {}

/// Writes an edit script, from the top of both texts to their ends.
///
/// The tool says how many lines are next kept, deleted or inserted; the script knows where that is. Neighbours with
/// the same fate become one block, and where lines are replaced the deleted ones come first, in whatever order the tool
/// names them. So whatever is written is well formed. That it covers both texts is up to the tool.
///
/// ```
/// use toolshelf_guest::Script;
///
/// let mut buffer = [0; 64];
/// let mut script = Script::new(&mut buffer);
/// script.equal(1)?;
/// script.insert(2)?;
/// script.delete(1)?;
/// assert_eq!(script.finish()?, 3 * 17 + 1);
/// assert_eq!(buffer[17..34], [1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
/// # Ok::<(), toolshelf_guest::ScriptFull>(())
/// ```
#[derive(Debug)]
pub struct Script<'a> {
    out: &'a mut [u8],
    used: usize,
    a_line: usize,
    b_line: usize,
    // What has been said and not been written yet, because more of the same may follow.
    // Either it is kept lines, or it is edits.
    kept: usize,
    deleted: usize,
    inserted: usize,
}

impl<'a> Script<'a> {
    /// Begins a script in a buffer.
    pub fn new(out: &'a mut [u8]) -> Self {
        Self { out, used: 0, a_line: 0, b_line: 0, kept: 0, deleted: 0, inserted: 0 }
    }

    /// Throws away what there is and begins again, for instance with a coarser script after one did not fit.
    pub fn clear(&mut self) {
        (self.used, self.a_line, self.b_line) = (0, 0, 0);
        (self.kept, self.deleted, self.inserted) = (0, 0, 0);
    }

    /// The next lines are in both texts.
    ///
    /// # Errors
    ///
    /// When they do not fit.
    pub fn equal(&mut self, lines: usize) -> Result<(), ScriptFull> {
        if lines > 0 {
            self.write_edits()?;
        }
        add(&mut self.kept, lines)?;
        self.fits()
    }

    /// The next lines of the old text are not in the new one.
    ///
    /// # Errors
    ///
    /// When they do not fit.
    pub fn delete(&mut self, lines: usize) -> Result<(), ScriptFull> {
        if lines > 0 {
            self.write_kept()?;
        }
        add(&mut self.deleted, lines)?;
        self.fits()
    }

    /// The next lines of the new text are not in the old one.
    ///
    /// # Errors
    ///
    /// When they do not fit.
    pub fn insert(&mut self, lines: usize) -> Result<(), ScriptFull> {
        if lines > 0 {
            self.write_kept()?;
        }
        add(&mut self.inserted, lines)?;
        self.fits()
    }

    /// Ends the script, and tells how many bytes it has.
    ///
    /// # Errors
    ///
    /// When the last lines did not fit, or the buffer has no room even for a script without lines.
    pub fn finish(mut self) -> Result<usize, ScriptFull> {
        self.fits()?;
        self.write_kept()?;
        self.write_edits()?;
        self.out[self.used] = TERMINATOR;
        Ok(self.used + 1)
    }

    /// Whether there is room for what has been said so far and the terminator. It is asked each time something is said,
    /// so that a tool learns of it while it can still begin again.
    fn fits(&self) -> Result<(), ScriptFull> {
        let blocks = [self.kept, self.deleted, self.inserted].iter().filter(|lines| **lines > 0).count();
        if self.used + blocks * BLOCK_BYTES < self.out.len() { Ok(()) } else { Err(ScriptFull) }
    }

    fn write_kept(&mut self) -> Result<(), ScriptFull> {
        let kept = core::mem::take(&mut self.kept);
        self.block(0, [self.a_line, kept, self.b_line, kept])?;
        self.a_line += kept;
        self.b_line += kept;
        Ok(())
    }

    fn write_edits(&mut self) -> Result<(), ScriptFull> {
        let deleted = core::mem::take(&mut self.deleted);
        self.block(1, [self.a_line, deleted, 0, 0])?;
        self.a_line += deleted;
        let inserted = core::mem::take(&mut self.inserted);
        self.block(2, [0, 0, self.b_line, inserted])?;
        self.b_line += inserted;
        Ok(())
    }

    fn block(&mut self, op: u8, fields: [usize; 4]) -> Result<(), ScriptFull> {
        let [_, a_count, _, b_count] = fields;
        if a_count == 0 && b_count == 0 {
            return Ok(());
        }
        let end = self.used + BLOCK_BYTES;
        let (first, rest) = self.out.get_mut(self.used..end).ok_or(ScriptFull)?.split_at_mut(1);
        first[0] = op;
        for (bytes, field) in rest.chunks_exact_mut(4).zip(fields) {
            let field = u32::try_from(field).map_err(|_| ScriptFull)?;
            bytes.copy_from_slice(&field.to_le_bytes());
        }
        self.used = end;
        Ok(())
    }
}

// Line numbers are 32 bits wide on the wire, so more lines than that do not fit either.
fn add(count: &mut usize, lines: usize) -> Result<(), ScriptFull> {
    *count = count.checked_add(lines).ok_or(ScriptFull)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    fn block(op: u8, fields: [u32; 4]) -> Vec<u8> {
        let mut bytes = std::vec![op];
        bytes.extend(fields.iter().flat_map(|field| field.to_le_bytes()));
        bytes
    }

    fn written(room: usize, tool: impl FnOnce(&mut Script<'_>) -> Result<(), ScriptFull>) -> Option<Vec<u8>> {
        let mut buffer = std::vec![0; room];
        let mut script = Script::new(&mut buffer);
        tool(&mut script).ok()?;
        let used = script.finish().ok()?;
        buffer.truncate(used);
        Some(buffer)
    }

    #[test]
    fn a_script_without_lines_is_its_terminator() {
        assert_eq!(written(1, |_| Ok(())), Some(std::vec![255]));
        assert_eq!(written(0, |_| Ok(())), None);
    }

    #[test]
    fn neighbours_are_joined_and_deletions_come_first() {
        let script = written(100, |script| {
            script.equal(1)?;
            script.equal(2)?;
            script.insert(1)?;
            script.delete(0)?;
            script.equal(0)?;
            script.delete(4)?;
            script.insert(1)?;
            script.equal(5)
        });
        let expected = [
            block(0, [0, 3, 0, 3]),
            block(1, [3, 4, 0, 0]),
            block(2, [0, 0, 3, 2]),
            block(0, [7, 5, 5, 5]),
            std::vec![255],
        ];
        assert_eq!(script, Some(expected.concat()));
    }

    #[test]
    fn a_script_that_does_not_fit_is_refused() {
        let two_blocks = |script: &mut Script<'_>| {
            script.equal(1)?;
            script.delete(1)
        };
        assert!(written(35, two_blocks).is_some());
        assert!(written(34, two_blocks).is_none());
        assert!(written(17, |script| script.equal(1)).is_none());
    }

    #[test]
    fn a_cleared_script_begins_again() {
        let script = written(18, |script| {
            script.insert(1)?;
            assert_eq!(script.equal(1), Err(ScriptFull));
            script.clear();
            script.insert(2)
        });
        assert_eq!(script, Some([block(2, [0, 0, 0, 2]), std::vec![255]].concat()));
    }
}
