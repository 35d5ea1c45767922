//! A diff script as people read it: lines with a mark in front, and long runs of equal lines left out.

use std::fmt::Write as _;

use toolshelf_core::diff::{CONTEXT, Lines};
use toolshelf_core::script::{Block, Op};

use super::show::{Style, printable};

/// The script over its two texts. Blocks that speak of lines that are not there show fewer.
pub(crate) fn shown(blocks: &[Block], a: &[u8], b: &[u8], style: Style) -> String {
    let (a, b) = (Lines::new(a.into()), Lines::new(b.into()));
    let mut text = String::new();
    for (index, block) in blocks.iter().enumerate() {
        match block.op {
            Op::Equal => {
                let (first, last) = (index == 0, index + 1 == blocks.len());
                let equal_lines: Vec<_> = a.part(block.a_line, block.a_count).collect();
                equal(&mut text, &equal_lines, first, last, style);
            }
            Op::Delete => {
                for line in a.part(block.a_line, block.a_count) {
                    let _ = writeln!(text, "{}", style.bad(&format!("-{}", one(line))));
                }
            }
            Op::Insert => {
                for line in b.part(block.b_line, block.b_count) {
                    let _ = writeln!(text, "{}", style.good(&format!("+{}", one(line))));
                }
            }
            Op::Unknown(op) => {
                let _ = writeln!(text, "? a block of the unknown kind {op}");
            }
        }
    }
    text
}

fn equal(text: &mut String, lines: &[&[u8]], first: bool, last: bool, style: Style) {
    let (before, after) = (if first { 0 } else { CONTEXT }, if last { 0 } else { CONTEXT });
    let hidden = lines.len().saturating_sub(before + after);
    for (index, line) in lines.iter().enumerate() {
        // One line is not worth a note that it is left out.
        if hidden > 1 && (before..before + hidden).contains(&index) {
            if index == before {
                let _ = writeln!(text, "{}", style.dim(&format!("@ {hidden} equal lines")));
            }
            continue;
        }
        let _ = writeln!(text, " {}", one(line));
    }
}

fn one(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    printable(&String::from_utf8_lossy(line))
}
