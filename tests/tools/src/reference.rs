//! The slow and obvious way to the length of a shortest edit script.

/// How many deleted and inserted lines it takes at least, by the textbook table of longest common subsequences.
#[must_use]
pub fn fewest_edits<T: PartialEq>(a: &[T], b: &[T]) -> usize {
    let mut row = vec![0_usize; b.len() + 1];
    for old in a {
        let mut diagonal = 0;
        for (j, new) in b.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = if old == new { diagonal + 1 } else { above.max(row[j]) };
            diagonal = above;
        }
    }
    a.len() + b.len() - 2 * row[b.len()]
}
