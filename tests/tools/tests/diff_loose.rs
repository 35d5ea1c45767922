//! The tool `diff-loose` ignores changes of white space, and nothing else.

use std::sync::LazyLock;

use proptest::prelude::*;
use tools_tests::{Block, Op, Script, Tool, lines};

fn blocks(a: &str, b: &str) -> Vec<Block> {
    static DIFF: LazyLock<Tool> = LazyLock::new(|| Tool::shipped("diff-loose"));
    let (returned, bytes) = DIFF.diff(a.as_bytes(), b.as_bytes());
    assert!(returned > 0, "returned {returned}");
    Script::decode(&bytes).blocks
}

#[test]
fn lines_that_differ_in_white_space_are_equal() {
    let same = [Block::equal(0, 0, 1)];
    assert_eq!(blocks("if x {\n", "    if x {\n"), same);
    assert_eq!(blocks("if x {\n", "if x {  \t\n"), same);
    assert_eq!(blocks("if x {\n", "if\t  x {\n"), same);
    assert_eq!(blocks("if x {\n", "if x {\r\n"), same);
    assert_eq!(blocks("if x {\n", "if x {"), same);
    assert_eq!(blocks("\n", " \t\r\n"), same);
}

#[test]
fn lines_that_differ_in_anything_else_are_not() {
    let replaced = [Block::delete(0, 1), Block::insert(0, 1)];
    assert_eq!(blocks("if x {\n", "if x{\n"), replaced);
    assert_eq!(blocks("if x {\n", "If x {\n"), replaced);
    assert_eq!(blocks("a b\n", "ab\n"), replaced);
}

#[test]
fn a_block_that_moved_to_the_right_is_no_edit() {
    let a = "fn f() {\n    g();\n    h();\n}\n";
    let b = "fn f() {\n    if x {\n        g();\n        h();\n    }\n}\n";
    // Either closing brace may be the new one.
    let script = Script { blocks: blocks(a, b) };
    assert_eq!(script.edits(), 2);
    assert_eq!(script.blocks[..2], [Block::equal(0, 0, 1), Block::insert(1, 1)]);
}

#[test]
fn no_lines_make_no_blocks_and_lengths_out_of_range_are_refused() {
    let diff = Tool::shipped("diff-loose");
    assert_eq!(diff.diff(b"", b""), (1, vec![255]));
    for lengths in [(65_537, 0), (0, 65_537), (-1, 0), (0, i32::MIN)] {
        assert_eq!(diff.start().call("diff", lengths), -1, "{lengths:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn scripts_are_valid_up_to_white_space(a in "([ab ]{0,4}\r?\n){0,40}[ab]?", b in "([ab\t]{0,4}\n){0,40}") {
        let (old, new) = (lines(a.as_bytes()), lines(b.as_bytes()));
        let script = Script { blocks: blocks(&a, &b) };
        let result = script.apply(&old, &new);
        prop_assert_eq!(result.map(|text| text.len()), Ok(new.len()));
        for block in script.blocks.iter().filter(|block| block.op == Op::Equal) {
            for line in 0..block.a_count {
                let words = |line: &[u8]| {
                    let text = String::from_utf8_lossy(line).into_owned();
                    text.split_ascii_whitespace().map(str::to_owned).collect::<Vec<_>>()
                };
                prop_assert_eq!(words(old[block.a_line + line]), words(new[block.b_line + line]));
            }
        }
    }
}
