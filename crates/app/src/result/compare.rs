//! Comparing a digest with one that somebody was given.

/// How the two compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Match {
    /// Nothing was given yet.
    Nothing,
    /// They agree as far as was given: that many digits of all.
    SoFar(usize),
    /// They are the same.
    Yes,
    /// They differ from that digit on, counted from 1.
    DiffersAt(usize),
    /// More was given than a digest has.
    TooLong,
}

/// Compares `digest` with what was pasted: in either case, with or without spaces, `sha256:` before it, or a file's
/// name behind it as `sha256sum` prints it.
pub(crate) fn compare(digest: &str, pasted: &str) -> Match {
    let pasted = pasted.trim().to_ascii_lowercase();
    let pasted = pasted.strip_prefix("sha256:").or_else(|| pasted.strip_prefix("sha256-")).unwrap_or(&pasted);
    let is_digest =
        |word: &&str| word.len() == digest.len() && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let given: String = match pasted.split_whitespace().find(is_digest) {
        Some(word) => word.to_owned(),
        None => pasted.split_whitespace().collect(),
    };
    let same = digest.chars().zip(given.chars()).take_while(|(a, b)| a == b).count();
    let count = given.chars().count();
    match () {
        () if given.is_empty() => Match::Nothing,
        () if same < count.min(digest.len()) => Match::DiffersAt(same + 1),
        () if count > digest.len() => Match::TooLong,
        () if count == digest.len() => Match::Yes,
        () => Match::SoFar(count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn every_usual_spelling_of_the_digest_matches() {
        let spaced =
            ABC.as_bytes().chunks(8).map(|part| String::from_utf8_lossy(part) + " ").collect::<String>();
        let spellings = [
            ABC.to_owned(),
            ABC.to_uppercase(),
            format!("  {ABC}\n"),
            format!("sha256:{ABC}"),
            format!("{ABC}  release-notes.md"),
            format!("SHA256 (notes.md) = {ABC}"),
            spaced,
        ];
        for spelling in spellings {
            assert_eq!(compare(ABC, &spelling), Match::Yes, "{spelling}");
        }
    }

    #[test]
    fn what_differs_is_named_by_its_digit() {
        assert_eq!(compare(ABC, &ABC.replacen("8f", "80", 1)), Match::DiffersAt(10));
        assert_eq!(compare(ABC, "c"), Match::DiffersAt(1));
        assert_eq!(compare(ABC, "é"), Match::DiffersAt(1));
        assert_eq!(compare(ABC, &ABC[..10]), Match::SoFar(10));
        assert_eq!(compare(ABC, &format!("{ABC}0")), Match::TooLong);
        assert_eq!(compare(ABC, "  "), Match::Nothing);
    }
}
