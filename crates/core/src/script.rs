//! The diff script that a `buffer-abi/diff` module writes: blocks of 17 bytes and a terminator.
//!
//! Source: the reference facts, A3. A block is little-endian `u8 op`, `u32 aLine`, `u32 aCount`, `u32 bLine`,
//! `u32 bCount`; lines count from 0. The terminator is the one byte 255 and counts towards the returned length.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Size of a block, in bytes.
pub const BLOCK_BYTES: usize = 17;
/// The byte that ends a script.
pub const TERMINATOR: u8 = 255;

/// What a block says about its lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// The lines are in both texts.
    Equal,
    /// The lines of A are not in B.
    Delete,
    /// The lines of B are not in A.
    Insert,
    /// A number that the format does not define, passed through.
    Unknown(u8),
}

/// One block of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Block {
    /// What the block says.
    pub op: Op,
    /// First line in A, from 0; 0 in an insert, which has no line there.
    pub a_line: u32,
    /// Lines in A.
    pub a_count: u32,
    /// First line in B, from 0; 0 in a delete, which has no line there.
    pub b_line: u32,
    /// Lines in B.
    pub b_count: u32,
}

impl Serialize for Op {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Equal => serializer.serialize_str("equal"),
            Self::Delete => serializer.serialize_str("delete"),
            Self::Insert => serializer.serialize_str("insert"),
            Self::Unknown(op) => serializer.serialize_u8(*op),
        }
    }
}

impl<'de> Deserialize<'de> for Op {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Wire {
            Name(String),
            Number(u8),
        }
        match Wire::deserialize(deserializer)? {
            Wire::Name(name) => match name.as_str() {
                "equal" => Ok(Self::Equal),
                "delete" => Ok(Self::Delete),
                "insert" => Ok(Self::Insert),
                _ => Err(D::Error::custom("an unknown kind of block")),
            },
            Wire::Number(number) => Ok(Self::Unknown(number)),
        }
    }
}

/// Decodes a script. It stops at the terminator, or where less than a block is left.
#[must_use]
pub fn decode(script: &[u8]) -> Vec<Block> {
    script.chunks_exact(BLOCK_BYTES).take_while(|block| block[0] != TERMINATOR).map(decode_block).collect()
}

fn decode_block(block: &[u8]) -> Block {
    let word = |at: usize| u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]);
    let op = match block[0] {
        0 => Op::Equal,
        1 => Op::Delete,
        2 => Op::Insert,
        other => Op::Unknown(other),
    };
    Block { op, a_line: word(1), a_count: word(5), b_line: word(9), b_count: word(13) }
}

/// Splits a text into the lines that a script counts: a line is its bytes up to and including LF, a carriage return
/// belongs to it, and a last line without LF differs from the same text with one.
pub fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|&byte| byte == b'\n')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encode(blocks: &[Block]) -> Vec<u8> {
        let mut script = Vec::new();
        for block in blocks {
            let op = match block.op {
                Op::Equal => 0,
                Op::Delete => 1,
                Op::Insert => 2,
                Op::Unknown(op) => op,
            };
            script.push(op);
            for word in [block.a_line, block.a_count, block.b_line, block.b_count] {
                script.extend(word.to_le_bytes());
            }
        }
        script.push(TERMINATOR);
        script
    }

    #[test]
    fn blocks_show_their_op_by_name_and_an_unknown_one_by_number() {
        let block = |op| Block { op, a_line: 0, a_count: 1, b_line: 2, b_count: 3 };
        let json = |op| serde_json::to_string(&block(op)).unwrap();
        assert_eq!(json(Op::Insert), r#"{"op":"insert","aLine":0,"aCount":1,"bLine":2,"bCount":3}"#);
        assert!(json(Op::Unknown(9)).contains(r#""op":9"#));
    }

    #[test]
    fn a_script_ends_at_its_terminator_or_before_a_broken_block() {
        let block = Block { op: Op::Equal, a_line: 0, a_count: 1, b_line: 0, b_count: 1 };
        let mut script = encode(&[block]);
        assert_eq!(script.len(), 18);
        script.extend(encode(&[block, block]));
        assert_eq!(decode(&script), [block]);
        assert_eq!(decode(&script[..16]), []);
        assert_eq!(decode(&[]), []);
    }

    #[test]
    fn lines_end_at_lf_and_keep_it() {
        let split = |text: &'static str| lines(text.as_bytes()).map(<[u8]>::to_vec).collect::<Vec<_>>();
        assert_eq!(split("a\r\nb"), [b"a\r\n".to_vec(), b"b".to_vec()]);
        assert_eq!(split("a\n"), [b"a\n".to_vec()]);
        assert!(split("").is_empty());
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_decoder_panic(bytes: Vec<u8>) {
            prop_assert!(decode(&bytes).len() <= bytes.len() / BLOCK_BYTES);
        }

        #[test]
        fn what_is_written_is_read_back(words in prop::collection::vec((0u8..255, any::<[u32; 4]>()), 0..20)) {
            let op = |op| match op { 0 => Op::Equal, 1 => Op::Delete, 2 => Op::Insert, other => Op::Unknown(other) };
            let blocks: Vec<_> = words
                .into_iter()
                .map(|(code, [a_line, a_count, b_line, b_count])| Block { op: op(code), a_line, a_count, b_line, b_count })
                .collect();
            prop_assert_eq!(decode(&encode(&blocks)), blocks);
        }
    }
}
