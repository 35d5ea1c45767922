//! A line diff that ignores changes of white space, as a shelf tool of the ABI `buffer-abi/diff`.
//!
//! Two lines are equal when they have the same words: white space before, after and between them may differ, line
//! endings included. A space where there was none still counts, for it makes two words of one.
//!
//! The diff itself is the histogram algorithm of `imara-diff`. Its scripts are short, but not always the shortest: the
//! tool `diff` is the one to ask for those.

#![forbid(unsafe_code)]

use std::hash::{Hash, Hasher};

use imara_diff::{Algorithm, Diff, InternedInput};
use toolshelf_guest::{Script, ScriptFull, lines};

toolshelf_guest::buffer_abi_diff!(diff_loose);

fn diff_loose(a: &[u8], b: &[u8], script: &mut Script<'_>) -> Result<(), ScriptFull> {
    let mut input = InternedInput::default();
    input.update_before(lines(a).map(Loose));
    input.update_after(lines(b).map(Loose));
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);

    // Too many edits to list are listed together with the lines between them, closer ones first.
    let total = input.before.len();
    (0..=total)
        .find_map(|closest| {
            script.clear();
            write(&diff, total, closest, script).ok()
        })
        .ok_or(ScriptFull)
}

/// Writes a diff of an old text of `total` lines, taking edits for one that have no more than `closest` lines between.
fn write(diff: &Diff, total: usize, closest: usize, script: &mut Script<'_>) -> Result<(), ScriptFull> {
    let mut done = 0;
    for hunk in diff.hunks() {
        let kept = hunk.before.start as usize - done;
        if done > 0 && kept <= closest {
            script.delete(kept)?;
            script.insert(kept)?;
        } else {
            script.equal(kept)?;
        }
        script.delete(hunk.before.len())?;
        script.insert(hunk.after.len())?;
        done = hunk.before.end as usize;
    }
    script.equal(total - done)
}

/// A line that equals another one with the same words.
#[derive(Default)]
struct Loose<'a>(&'a [u8]);

impl Loose<'_> {
    fn words(&self) -> impl Iterator<Item = &[u8]> {
        self.0.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
    }
}

impl PartialEq for Loose<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.words().eq(other.words())
    }
}

impl Eq for Loose<'_> {}

impl Hash for Loose<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.words().for_each(|word| word.hash(state));
    }
}

/// The line as it is, indentation and all: `imara-diff` looks at it to place an edit where a reader would.
impl AsRef<[u8]> for Loose<'_> {
    fn as_ref(&self) -> &[u8] {
        self.0
    }
}
