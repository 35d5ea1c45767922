//! The tool `diff` finds a shortest edit script between two texts.

use proptest::prelude::*;
use tools_tests::{Block, Op, Running, Script, Tool, fewest_edits, lines};

/// The blocks of a diff, after a look at what every script has to be.
fn diff(running: &mut Running, a: &[u8], b: &[u8]) -> Script {
    let (returned, bytes) = running.diff(a, b);
    assert!(returned > 0, "returned {returned}");
    let script = Script::decode(&bytes);
    assert_eq!(script.apply(&lines(a), &lines(b)).as_deref(), Ok(&*lines(b)));
    // What the script calls equal has to be equal, which the result alone does not show for every script.
    for block in script.blocks.iter().filter(|block| block.op == Op::Equal) {
        let old = &lines(a)[block.a_line..block.a_line + block.a_count];
        assert_eq!(old, &lines(b)[block.b_line..block.b_line + block.b_count]);
    }
    script
}

fn blocks(a: &str, b: &str) -> Vec<Block> {
    diff(&mut Tool::shipped("diff").start(), a.as_bytes(), b.as_bytes()).blocks
}

#[test]
fn an_inserted_line_is_an_insert_between_equals() {
    let (a, b) = ("alpha\nbeta\n", "alpha\ngamma\nbeta\n");
    assert_eq!(Tool::shipped("diff").diff(a.as_bytes(), b.as_bytes()).0, 52);
    assert_eq!(blocks(a, b), [Block::equal(0, 0, 1), Block::insert(1, 1), Block::equal(1, 2, 1)]);
}

#[test]
fn a_removed_line_is_a_delete_between_equals() {
    let expected = [Block::equal(0, 0, 1), Block::delete(1, 1), Block::equal(2, 1, 1)];
    assert_eq!(blocks("alpha\ngamma\nbeta\n", "alpha\nbeta\n"), expected);
}

#[test]
fn a_changed_line_is_deleted_before_it_is_inserted() {
    let expected = [Block::equal(0, 0, 1), Block::delete(1, 1), Block::insert(1, 2), Block::equal(2, 3, 1)];
    assert_eq!(blocks("one\ntwo\nthree\n", "one\n2\n2.5\nthree\n"), expected);
}

#[test]
fn equal_texts_are_one_block_and_no_texts_are_none() {
    let diff = Tool::shipped("diff");
    assert_eq!(diff.diff(b"", b""), (1, vec![255]));
    assert_eq!(diff.diff(b"same", b"same").0, 18);
    assert_eq!(blocks("a\nb\n", "a\nb\n"), [Block::equal(0, 0, 2)]);
    assert_eq!(blocks("", "a\nb\n"), [Block::insert(0, 2)]);
    assert_eq!(blocks("a\nb\n", ""), [Block::delete(0, 2)]);
}

#[test]
fn a_line_ends_with_its_line_feed() {
    // The last line lacks one in one of the texts, so it is another line.
    assert_eq!(blocks("a\nb", "a\nb\n"), [Block::equal(0, 0, 1), Block::delete(1, 1), Block::insert(1, 1)]);
    // A line feed at the end does not begin another line, but a second one does.
    assert_eq!(blocks("a\n", "a\n\n"), [Block::equal(0, 0, 1), Block::insert(1, 1)]);
    assert_eq!(blocks("a\r\n", "a\n"), [Block::delete(0, 1), Block::insert(0, 1)]);
    // A carriage return alone ends nothing.
    assert_eq!(blocks("a\rb", "a\rb"), [Block::equal(0, 0, 1)]);
}

#[test]
fn edits_that_can_be_one_are_one() {
    // A function is inserted before a like one: its lines stay together, and so do those of the other.
    let a = "fn b() {\n    2\n}\n";
    let b = "fn a() {\n    1\n}\n\nfn b() {\n    2\n}\n";
    assert_eq!(blocks(a, b), [Block::insert(0, 4), Block::equal(0, 4, 3)]);
    // Repeated lines: what is new comes last, in one piece.
    assert_eq!(blocks("a\na\n", "a\na\na\na\n"), [Block::equal(0, 0, 2), Block::insert(2, 2)]);
}

#[test]
fn lengths_out_of_range_are_refused() {
    let diff = Tool::shipped("diff");
    for lengths in [(65_537, 0), (0, 65_537), (-1, 0), (0, -1), (i32::MAX, i32::MAX), (i32::MIN, 0)] {
        assert_eq!(diff.start().call("diff", lengths), -1, "{lengths:?}");
    }
}

/// Texts of up to so many lines, of few kinds: empty ones, CRLF, bytes that are no text, a last line without its end.
fn text(most: usize) -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        4 => prop::sample::select(vec!["a\n", "b\n", "c\n", "a\r\n", "\n", "a b\n", "ab\n"])
            .prop_map(|line| line.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..3).prop_map(|mut line| { line.push(b'\n'); line }),
    ];
    let last = prop::sample::select(vec![&b""[..], b"a", b"\r", b"\xff\x00"]);
    (prop::collection::vec(line, 0..most), last)
        .prop_map(|(lines, last)| [lines.concat(), last.to_vec()].concat())
}

/// A text and what a few edits have made of it.
fn edited(most: usize) -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let edits = prop::collection::vec((any::<prop::sample::Index>(), 0..3_u8), 0..8);
    (text(most), edits).prop_map(|(a, edits)| {
        let mut b: Vec<Vec<u8>> = lines(&a).iter().map(|line| line.to_vec()).collect();
        for (at, kind) in edits {
            let at = at.index(b.len() + 1);
            match kind {
                0 if at < b.len() => drop(b.remove(at)),
                1 if at < b.len() => b[at].insert(0, b'x'),
                _ => b.insert(at, b"a\n".to_vec()),
            }
        }
        let b = b.concat();
        (a, b)
    })
}

fn check_shortest(pairs: impl Strategy<Value = (Vec<u8>, Vec<u8>)>, cases: u32) {
    let tool = Tool::shipped("diff");
    // One instance serves them all, so that no call may leave anything behind for the next.
    let running = std::cell::RefCell::new(tool.start());
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let result = runner.run(&pairs, |(a, b)| {
        let script = diff(&mut running.borrow_mut(), &a, &b);
        prop_assert_eq!(script.edits(), fewest_edits(&lines(&a), &lines(&b)));
        Ok(())
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
}

#[test]
fn scripts_of_small_texts_are_shortest() {
    check_shortest((text(12), text(12)), 4000);
}

#[test]
fn scripts_of_texts_longer_than_a_word_are_shortest() {
    check_shortest((text(300), text(300)), 400);
}

#[test]
fn scripts_of_long_texts_are_shortest() {
    check_shortest((text(2000), text(2000)), 12);
}

#[test]
fn scripts_of_edited_texts_are_shortest() {
    check_shortest(edited(150), 1500);
}
