use toolshelf_browser::core::script::Op;

use super::*;

fn block(op: Op, a_line: u32, a_count: u32, b_line: u32, b_count: u32) -> Block {
    Block { op, a_line, a_count, b_line, b_count }
}

fn diff(old: &str, new: &str, blocks: &[Block]) -> Diff {
    Diff::new(old.as_bytes().into(), new.as_bytes().into(), blocks)
}

/// `one\ntwo\n...`: `count` different lines.
fn numbered(count: usize) -> String {
    (0..count).map(|line| format!("line {line}\n")).collect()
}

#[test]
fn an_honest_script_is_drawn_in_both_layouts() {
    let blocks = [
        block(Op::Equal, 0, 1, 0, 1),
        block(Op::Delete, 1, 1, 0, 0),
        block(Op::Insert, 0, 0, 1, 2),
        block(Op::Equal, 2, 1, 3, 1),
    ];
    let diff = diff("a\nb\nc\n", "a\nB\nx\nc\n", &blocks);
    assert!(diff.faithful && !diff.identical());
    assert_eq!(diff.counts(), Counts { added: 2, removed: 1, unchanged: 2 });
    let split = [Row::Equal(0, 0), Row::Pair(Some(1), Some(1)), Row::Pair(None, Some(2)), Row::Equal(2, 3)];
    assert_eq!(diff.rows(View::Split), split);
    let unified =
        [Row::Equal(0, 0), Row::Old(1, Some(1)), Row::New(1, Some(1)), Row::New(2, None), Row::Equal(2, 3)];
    assert_eq!(diff.rows(View::Unified), unified);
}

#[test]
fn long_equal_runs_are_folded_but_for_three_lines_beside_a_change() {
    let old = numbered(30);
    let new = old.replace("line 15\n", "");
    let blocks =
        [block(Op::Equal, 0, 15, 0, 15), block(Op::Delete, 15, 1, 0, 0), block(Op::Equal, 16, 14, 15, 14)];
    let diff = diff(&old, &new, &blocks);
    assert!(diff.faithful);
    let rows = diff.rows(View::Split);
    assert_eq!(rows[0], Row::Fold(0, 0, 12));
    assert_eq!(rows[1..4], [Row::Equal(12, 12), Row::Equal(13, 13), Row::Equal(14, 14)]);
    assert_eq!(rows[4], Row::Pair(Some(15), None));
    assert_eq!(rows.last(), Some(&Row::Fold(19, 18, 11)));
}

#[test]
fn a_single_hidden_line_is_shown_instead_of_folded() {
    let mut rows = Vec::new();
    push_equal(&mut rows, 0, 0, 7, 3, 3);
    assert_eq!(rows.len(), 7);
    rows.clear();
    push_equal(&mut rows, 0, 0, 8, 3, 3);
    assert_eq!(rows[3], Row::Fold(3, 3, 2));
}

#[test]
fn identical_texts_are_said_to_be() {
    assert!(diff("a\nb", "a\nb", &[block(Op::Equal, 0, 2, 0, 2)]).identical());
    assert!(diff("", "", &[]).identical());
    assert!(!diff("a", "b", &[block(Op::Equal, 0, 1, 0, 1)]).identical());
}

#[test]
fn lines_that_differ_in_white_space_alone_may_be_called_equal_and_are_counted() {
    let loose = diff("a b\nc\n", "a  b \nc", &[block(Op::Equal, 0, 2, 0, 2)]);
    assert!(loose.faithful && loose.identical());
    assert_eq!(loose.loose, 2);
}

#[test]
fn a_script_that_does_not_reproduce_the_texts_is_not_faithful() {
    let lies: [&[Block]; 8] = [
        &[],
        &[block(Op::Equal, 0, 2, 0, 2)],
        &[block(Op::Equal, 0, 1, 0, 1)],
        &[block(Op::Delete, 0, 2, 0, 0)],
        &[block(Op::Delete, 0, 9, 0, 0), block(Op::Insert, 0, 0, 0, 2)],
        &[block(Op::Equal, 0, 1, 0, 1), block(Op::Equal, 0, 1, 0, 1)],
        &[block(Op::Unknown(7), 0, 0, 0, 0), block(Op::Delete, 0, 2, 0, 0), block(Op::Insert, 0, 0, 0, 2)],
        &[block(Op::Equal, u32::MAX, u32::MAX, u32::MAX, u32::MAX)],
    ];
    for lie in lies {
        assert!(!diff("a\nb\n", "a\nc\n", lie).faithful, "{lie:?}");
    }
}

#[test]
fn no_script_leads_to_more_rows_than_the_texts_have_lines() {
    let text = numbered(500);
    for op in [Op::Equal, Op::Delete, Op::Insert] {
        let blocks = vec![block(op, 0, u32::MAX, 0, u32::MAX); 15_420];
        let diff = diff(&text, &text, &blocks);
        assert!(!diff.faithful);
        for view in [View::Split, View::Unified] {
            assert!(diff.rows(view).len() <= 2_000);
        }
        assert!(diff.stretches.len() <= 1_000);
    }
}

/// A small deterministic generator of numbers, so that the hostile scripts are the same in every run.
fn noise(seed: &mut u32) -> u32 {
    *seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    *seed >> 8
}

#[test]
fn no_noise_makes_the_rows_point_outside_the_texts() {
    let (old, new) = (numbered(40), numbered(25));
    let mut seed = 1;
    for _ in 0..2_000 {
        let mut word = || match noise(&mut seed) % 8 {
            0 => u32::MAX,
            1 => 41,
            small => small * 7,
        };
        let blocks: Vec<_> = (0..6)
            .map(|_| {
                let op = [Op::Equal, Op::Delete, Op::Insert, Op::Unknown(9)][word() as usize % 4];
                block(op, word(), word(), word(), word())
            })
            .collect();
        let diff = diff(&old, &new, &blocks);
        for view in [View::Split, View::Unified] {
            for row in diff.rows(view) {
                let (olds, news) = match row {
                    Row::Equal(old, new) => (old + 1, new + 1),
                    Row::Pair(old, new) => (old.map_or(0, |at| at + 1), new.map_or(0, |at| at + 1)),
                    Row::Old(old, new) => (old + 1, new.map_or(0, |at| at + 1)),
                    Row::New(new, old) => (old.map_or(0, |at| at + 1), new + 1),
                    Row::Fold(old, new, count) => (old + count, new + count),
                };
                assert!(olds <= 40 && news <= 25, "{row:?} of {blocks:?}");
            }
        }
    }
}

#[test]
fn carriage_returns_are_shown_where_the_texts_disagree_about_them() {
    let mixed = diff("a\r\n", "a\n", &[block(Op::Delete, 0, 1, 0, 0), block(Op::Insert, 0, 0, 0, 1)]);
    assert_eq!((mixed.old_text(0), mixed.new_text(0)), ("a␍".to_owned(), "a".to_owned()));
    let same = diff("a\r\n", "b\r\n", &[block(Op::Delete, 0, 1, 0, 0), block(Op::Insert, 0, 0, 0, 1)]);
    assert_eq!(same.old_text(0), "a");
}

#[test]
fn an_open_end_is_a_last_line_without_line_feed() {
    let diff = diff("a\nb", "a\n", &[]);
    assert!(diff.old.is_open_end(1) && !diff.old.is_open_end(0) && !diff.new.is_open_end(0));
    assert_eq!(diff.old.get(7), b"");
    assert_eq!((diff.old.len(), diff.old.bytes(), diff.new.len()), (2, 3, 1));
}

#[test]
fn the_changed_part_of_a_line_is_what_beginning_and_end_leave_over() {
    let parts =
        |old: &str, new: &str| changed_part(old, new).map(|(a, b)| (old[a].to_owned(), new[b].to_owned()));
    assert_eq!(parts("buffer-abi/0", "buffer-abi/1"), Some(("0".into(), "1".into())));
    assert_eq!(parts("aXa", "aXXa"), Some((String::new(), "X".into())));
    assert_eq!(parts("naïve é", "naïve è"), Some(("é".into(), "è".into())));
    assert_eq!(parts("same", "same"), None);
    assert_eq!(parts("nothing", "alike at all"), None);
}
