//! No input that the ABI admits leaves the diffs without an answer.

use std::collections::{BTreeMap, BTreeSet};

use tools_tests::{Case, Op, Script, Tool, hard_cases, lines};

/// What a tool says about a case, which is always a script that leads from A to B.
fn script(tool: &Tool, case: &Case) -> Script {
    let (returned, bytes) = tool.diff(&case.a, &case.b);
    assert!(returned > 0, "{}: returned {returned}", case.name);
    let (a, b) = (lines(&case.a), lines(&case.b));
    let script = Script::decode(&bytes);
    assert_eq!(script.apply(&a, &b).map(|text| text.len()), Ok(b.len()), "{}", case.name);
    for block in script.blocks.iter().filter(|block| block.op == Op::Equal) {
        let old = a[block.a_line..].iter().zip(&b[block.b_line..]).take(block.a_count);
        assert!(old.into_iter().all(|(old, new)| old == new), "{}", case.name);
    }
    script
}

#[test]
fn hard_cases_get_valid_scripts_that_fit() {
    let diff = Tool::shipped("diff");
    for case in &hard_cases() {
        script(&diff, case);
    }
}

#[test]
fn the_hardest_random_case_that_fits_is_shortest() {
    let diff = Tool::shipped("diff");
    let case = &hard_cases()[0];
    assert_eq!(case.name, "two letters");
    let (a, b) = (letters(&case.a), letters(&case.b));
    assert_eq!((a.len(), b.len()), (32_768, 32_768));
    assert_eq!(script(&diff, case).edits(), fewest_edits_of_letters(&a, &b));
}

#[test]
fn a_script_that_does_not_fit_gives_up_no_more_than_it_has_to() {
    let diff = Tool::shipped("diff");
    let cases = hard_cases();
    let case = cases.iter().find(|case| case.name == "more edits than fit").unwrap();
    let script = script(&diff, case);
    // The shortest script has 32,768 blocks: a deletion before every line kept. Each line given up saves two of them,
    // but for the first, which saves one: a deletion, an equal line and a deletion become a deletion and an insertion.
    assert!((15_419..=15_420).contains(&script.blocks.len()), "{} blocks", script.blocks.len());
    let given_up = (32_768 - 15_420 + 1_usize).div_ceil(2);
    assert_eq!(script.edits(), 16_384 + 2 * given_up);
    // From the top: below the first line kept, all are.
    assert_eq!(script.blocks[2].op, Op::Equal);
    assert_eq!(script.blocks[2].b_line, given_up);
}

#[test]
fn the_loose_diff_makes_its_scripts_fit_too() {
    let diff = Tool::shipped("diff-loose");
    for case in hard_cases().iter().filter(|case| case.name.contains("than fit")) {
        script(&diff, case);
    }
}

fn letters(text: &[u8]) -> Vec<u8> {
    text.iter().copied().filter(|&byte| byte != b'\n').collect()
}

/// The reference of the other tests would fill a table of a thousand million cells. This one takes 64 of them at a
/// time, and leaves the carries to the standard library.
fn fewest_edits_of_letters(a: &[u8], b: &[u8]) -> usize {
    let masks = |letter: u8| -> Vec<u64> {
        let mask =
            |letters: &[u8]| letters.iter().rev().fold(0, |mask, &new| mask << 1 | u64::from(new == letter));
        b.chunks(64).map(mask).collect()
    };
    let masks: BTreeMap<u8, Vec<u64>> =
        BTreeSet::from_iter(a).into_iter().map(|&letter| (letter, masks(letter))).collect();
    let mut row = vec![u64::MAX; b.len().div_ceil(64)];
    for letter in a {
        let mut carry = false;
        for (word, mask) in row.iter_mut().zip(&masks[letter]) {
            let (sum, next) = word.carrying_add(*word & mask, carry);
            *word = sum | *word & !mask;
            carry = next;
        }
    }
    let common: u32 = row.iter().map(|word| word.count_zeros()).sum();
    a.len() + b.len() - 2 * usize::try_from(common).expect("fewer than there are lines")
}
