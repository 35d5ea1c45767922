//! Edit scripts: their wire form, and what makes one valid.

/// Bytes of a block on the wire.
const BLOCK: usize = 17;

/// The byte after the last block.
const END: u8 = 255;

/// What a block does with its lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Both texts have them.
    Equal,
    /// Only the old text has them.
    Delete,
    /// Only the new text has them.
    Insert,
}

/// Neighbouring lines with one fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Their fate.
    pub op: Op,
    /// The first of them in the old text, or 0.
    pub a_line: usize,
    /// How many lines of the old text they are.
    pub a_count: usize,
    /// The first of them in the new text, or 0.
    pub b_line: usize,
    /// How many lines of the new text they are.
    pub b_count: usize,
}

impl Block {
    /// Lines of both texts.
    #[must_use]
    pub fn equal(a_line: usize, b_line: usize, count: usize) -> Self {
        Self { op: Op::Equal, a_line, a_count: count, b_line, b_count: count }
    }

    /// Lines of the old text.
    #[must_use]
    pub fn delete(a_line: usize, count: usize) -> Self {
        Self { op: Op::Delete, a_line, a_count: count, b_line: 0, b_count: 0 }
    }

    /// Lines of the new text.
    #[must_use]
    pub fn insert(b_line: usize, count: usize) -> Self {
        Self { op: Op::Insert, a_line: 0, a_count: 0, b_line, b_count: count }
    }
}

/// A whole edit script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// Its blocks, in the order of both texts.
    pub blocks: Vec<Block>,
}

impl Script {
    /// Reads a script off the wire.
    ///
    /// # Panics
    ///
    /// When the bytes are not blocks of known ops followed by a single terminator.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Self {
        let (&end, blocks) = bytes.split_last().expect("at least the terminator");
        assert_eq!(end, END, "the terminator comes last");
        assert_eq!(blocks.len() % BLOCK, 0, "whole blocks");
        Self { blocks: blocks.chunks_exact(BLOCK).map(decode_block).collect() }
    }

    /// How many lines it deletes and inserts.
    #[must_use]
    pub fn edits(&self) -> usize {
        let edits = self.blocks.iter().filter(|block| block.op != Op::Equal);
        edits.map(|block| block.a_count + block.b_count).sum()
    }

    /// Applies the script to the old text, taking from the new one only what is inserted.
    ///
    /// # Errors
    ///
    /// When a block has no lines, does not begin where the one before it ended, has the op of the one before it,
    /// inserts before it deletes, reaches past a text, or leaves lines of the old text over.
    pub fn apply<'t>(&self, a: &[&'t [u8]], b: &[&'t [u8]]) -> Result<Vec<&'t [u8]>, String> {
        let mut at = 0;
        let mut out: Vec<&[u8]> = Vec::new();
        let mut before = None;
        for block in &self.blocks {
            let fail = |what: &str| Err(format!("{what}: {block:?}"));
            if before == Some(block.op) || before == Some(Op::Insert) && block.op == Op::Delete {
                return fail("out of order");
            }
            before = Some(block.op);
            let (a_line, b_line) = (at, out.len());
            let expected = match block.op {
                Op::Equal => Block::equal(a_line, b_line, block.a_count),
                Op::Delete => Block::delete(a_line, block.a_count),
                Op::Insert => Block::insert(b_line, block.b_count),
            };
            if *block != expected {
                return fail("does not join on");
            }
            if block.a_count + block.b_count == 0 {
                return fail("empty");
            }
            let (Some(old), Some(new)) =
                (a.get(at..at + block.a_count), b.get(b_line..b_line + block.b_count))
            else {
                return fail("past the end");
            };
            out.extend(if block.op == Op::Equal { old } else { new });
            at += block.a_count;
        }
        if at == a.len() { Ok(out) } else { Err(format!("stops at line {at} of {}", a.len())) }
    }
}

fn decode_block(bytes: &[u8]) -> Block {
    let op = match bytes[0] {
        0 => Op::Equal,
        1 => Op::Delete,
        2 => Op::Insert,
        other => panic!("unknown op {other}"),
    };
    let field = |at: usize| {
        let bytes = bytes[at..at + 4].try_into().expect("four bytes");
        usize::try_from(u32::from_le_bytes(bytes)).expect("a line number")
    };
    Block { op, a_line: field(1), a_count: field(5), b_line: field(9), b_count: field(13) }
}

/// The lines of a text, each with its line feed.
#[must_use]
pub fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|&byte| byte == b'\n').collect()
}
