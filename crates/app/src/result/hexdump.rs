//! Bytes as rows of hexadecimal digits.

/// One row of 16 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HexRow {
    /// Offset of its first byte, in digits.
    pub(crate) at: String,
    /// The bytes, padded so that what follows is aligned.
    pub(crate) hex: String,
    /// The bytes as text, a dot for each that is not printable.
    pub(crate) text: String,
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

fn push_hex(text: &mut String, byte: u8) {
    text.push(char::from(DIGITS[usize::from(byte >> 4)]));
    text.push(char::from(DIGITS[usize::from(byte & 15)]));
}

/// The rows of `bytes`.
pub(crate) fn rows(bytes: &[u8]) -> Vec<HexRow> {
    let row = |(at, bytes): (usize, &[u8])| {
        let mut offset = String::new();
        ((at * 16) as u32).to_be_bytes().into_iter().for_each(|byte| push_hex(&mut offset, byte));
        let mut hex = String::with_capacity(49);
        for place in 0..16 {
            match bytes.get(place) {
                Some(&byte) => push_hex(&mut hex, byte),
                None => hex.push_str("  "),
            }
            if place < 15 {
                hex.push_str(if place == 7 { "  " } else { " " });
            }
        }
        let printable = |&byte: &u8| if (32..127).contains(&byte) { char::from(byte) } else { '.' };
        HexRow { at: offset, hex, text: bytes.iter().map(printable).collect() }
    };
    bytes.chunks(16).enumerate().map(row).collect()
}

/// The bytes that `digits` stand for; it stops at what is no pair of digits.
pub(crate) fn from_hex(digits: &str) -> Vec<u8> {
    let value = |digit: u8| char::from(digit).to_digit(16);
    digits
        .as_bytes()
        .chunks_exact(2)
        .map_while(|pair| Some((value(pair[0])? * 16 + value(pair[1])?) as u8))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_its_offset_its_bytes_and_its_text() {
        let rows = rows(b"0123456789abcdef\x00\xffA");
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].hex, "30 31 32 33 34 35 36 37  38 39 61 62 63 64 65 66");
        assert_eq!((rows[1].at.as_str(), rows[1].text.as_str()), ("00000010", "..A"));
        assert_eq!(rows[1].hex.len(), rows[0].hex.len());
    }

    #[test]
    fn digits_are_read_until_they_end() {
        assert_eq!(from_hex("00ffA0"), [0, 255, 160]);
        assert_eq!(from_hex("00zz11"), [0]);
        assert_eq!(from_hex("é"), [0_u8; 0]);
    }
}
