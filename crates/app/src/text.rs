//! Numbers, times and untrusted bytes as text.
//!
//! Durations go through integers: formatting a float brings tables along that the page has no other use for.

/// A whole number with its thousands set apart: `8,192`.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 tool`, `2 tools`.
pub(crate) fn counted(number: u64, one: &str, many: &str) -> String {
    let mut text = thousands(number);
    text.push(' ');
    text.push_str(if number == 1 { one } else { many });
    text
}

fn fraction(value: f64, digits: u32) -> String {
    let unit = 10_u64.pow(digits);
    let scaled = (value.max(0.0) * unit as f64).round() as u64;
    let mut text = thousands(scaled / unit);
    if digits > 0 {
        let rest = (scaled % unit).to_string();
        text.push('.');
        text.extend(std::iter::repeat_n('0', digits as usize - rest.len()));
        text.push_str(&rest);
    }
    text
}

/// A number with one decimal: `0.4`.
pub(crate) fn tenths(value: f64) -> String {
    fraction(value, 1)
}

/// A duration: `1.2 ms`, `123 ms`, `5.00 s`.
pub(crate) fn millis(ms: f64) -> String {
    let (number, unit) = match ms {
        ms if ms >= 999.5 => (fraction(ms / 1_000.0, 2), " s"),
        ms if ms >= 99.95 => (fraction(ms, 0), " ms"),
        ms => (tenths(ms), " ms"),
    };
    number + unit
}

/// How long ago something was, in whole seconds and at least one: `4s ago`, `2m ago`.
pub(crate) fn age(ms: f64) -> String {
    let seconds = (ms / 1_000.0) as u64;
    let (number, unit) = match seconds {
        0..60 => (seconds.max(1), "s ago"),
        60..3_600 => (seconds / 60, "m ago"),
        3_600..172_800 => (seconds / 3_600, "h ago"),
        _ => (seconds / 86_400, "d ago"),
    };
    number.to_string() + unit
}

/// Makes the first letter large.
pub(crate) fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// A part of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Whether it is to be set as code.
    pub(crate) code: bool,
    /// The text.
    pub(crate) text: String,
}

/// Takes a sentence apart into words and code: what stands between backticks, and runs of 16 or more hex digits.
pub(crate) fn pieces(sentence: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let ticks = sentence.matches('`').count();
    for (at, part) in sentence.split('`').enumerate() {
        // A last backtick that nothing closes opens nothing.
        if at % 2 == 1 && at < ticks {
            push(&mut pieces, true, part);
        } else {
            hex_pieces(&mut pieces, part);
        }
    }
    pieces
}

fn hex_pieces(pieces: &mut Vec<Piece>, text: &str) {
    let mut rest = text;
    while let Some((start, end)) = hex_run(rest) {
        push(pieces, false, &rest[..start]);
        push(pieces, true, &rest[start..end]);
        rest = &rest[end..];
    }
    push(pieces, false, rest);
}

fn push(pieces: &mut Vec<Piece>, code: bool, text: &str) {
    if !text.is_empty() {
        pieces.push(Piece { code, text: text.to_owned() });
    }
}

/// The first run of 16 or more hex digits, with the dots that say there were more.
fn hex_run(text: &str) -> Option<(usize, usize)> {
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let length = bytes[at..].iter().take_while(|byte| is_digit(byte)).count();
        if length >= 16 {
            let end = at + length;
            let dots = if text[end..].starts_with('…') { '…'.len_utf8() } else { 0 };
            return Some((at, end + dots));
        }
        at += length + 1;
    }
    None
}

/// The first run of hex digits that follows `before` in `sentence`, without the dots.
pub(crate) fn hex_after<'a>(sentence: &'a str, before: &str) -> Option<&'a str> {
    let rest = &sentence[sentence.find(before)? + before.len()..];
    let (start, end) = hex_run(rest)?;
    Some(rest[start..end].trim_end_matches('…'))
}

/// Untrusted bytes as text in which nothing hides: bytes that are no UTF-8 become replacement characters, control
/// characters their pictures, and characters that steer the writing direction or have no width their numbers.
pub(crate) fn visible(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for letter in String::from_utf8_lossy(bytes).chars() {
        match letter {
            '\t' => text.push('\t'),
            '\0'..'\u{20}' => text.push(char::from_u32(0x2400 + u32::from(letter)).unwrap_or('␀')),
            '\u{7f}' => text.push('␡'),
            '\u{80}'..'\u{a0}'
            | '\u{ad}'
            | '\u{61c}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}' => {
                text.push_str("‹U+");
                let digits: String = letter.escape_unicode().filter(char::is_ascii_hexdigit).collect();
                // `escape_unicode` writes `\u{..}`; the letter u is no hex digit.
                text.extend(std::iter::repeat_n('0', 4_usize.saturating_sub(digits.len())));
                text.push_str(&digits.to_uppercase());
                text.push('›');
            }
            letter => text.push(letter),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_thousands_apart() {
        let shown = [0, 7, 999, 1_000, 65_536, 16_777_216].map(thousands);
        assert_eq!(shown, ["0", "7", "999", "1,000", "65,536", "16,777,216"]);
        assert_eq!(
            (counted(1, "tool", "tools"), counted(0, "tool", "tools")),
            ("1 tool".into(), "0 tools".into())
        );
    }

    #[test]
    fn durations_are_as_precise_as_they_deserve() {
        let shown = [0.0, 1.24, 99.94, 99.96, 123.4, 999.6, 5_003.0, -1.0, f64::NAN].map(millis);
        assert_eq!(
            shown,
            ["0.0 ms", "1.2 ms", "99.9 ms", "100 ms", "123 ms", "1.00 s", "5.00 s", "0.0 ms", "0.0 ms"]
        );
    }

    #[test]
    fn an_age_is_never_less_than_a_second() {
        let shown = [-5.0, 0.0, 999.0, 4_200.0, 59_999.0, 125_000.0, 7_300_000.0, 200_000_000.0].map(age);
        assert_eq!(shown, ["1s ago", "1s ago", "1s ago", "4s ago", "59s ago", "2m ago", "2h ago", "2d ago"]);
    }

    fn shown(sentence: &str) -> String {
        let show = |piece: Piece| if piece.code { format!("<{}>", piece.text) } else { piece.text };
        pieces(sentence).into_iter().map(show).collect()
    }

    #[test]
    fn backticks_and_digests_are_code() {
        assert_eq!(shown("no `a.json`, no `b`"), "no <a.json>, no <b>");
        assert_eq!(shown("hashes 9f86d081884c7d65… but"), "hashes <9f86d081884c7d65…> but");
        assert_eq!(shown("deadbeef is short"), "deadbeef is short");
        assert_eq!(shown(""), "");
        assert_eq!(shown("`a` and `b"), "<a> and b");
        assert_eq!(shown("é9f86d081884c7d65é"), "é<9f86d081884c7d65>é");
    }

    #[test]
    fn a_digest_is_found_behind_its_word() {
        let why = "\"a.wasm\" hashes 9f86d081884c7d65… but the manifest pins 93a44bbb96c75121…";
        assert_eq!(hex_after(why, "hashes "), Some("9f86d081884c7d65"));
        assert_eq!(hex_after(why, "pins "), Some("93a44bbb96c75121"));
        assert_eq!(hex_after(why, "nowhere "), None);
    }

    #[test]
    fn nothing_hides_in_untrusted_text() {
        assert_eq!(visible(b"a\tb\0\x1b\x7f"), "a\tb␀␛␡");
        assert_eq!(visible("x\u{202e}y\u{ad}\u{feff}".as_bytes()), "x‹U+202E›y‹U+00AD›‹U+FEFF›");
        assert_eq!(visible(b"\xff\xfe"), "\u{fffd}\u{fffd}");
        assert_eq!(visible("é – 漢".as_bytes()), "é – 漢");
    }

    #[test]
    fn the_first_letter_is_made_large() {
        assert_eq!(
            (capitalised("old text"), capitalised("éa"), capitalised("")),
            ("Old text".into(), "Éa".into(), String::new())
        );
    }
}
