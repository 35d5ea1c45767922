//! How long, as people write it.

use std::str::FromStr;

/// A deadline, in milliseconds: `90` and `90s`, `500ms`, `5m`, `1h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Deadline(pub(crate) u32);

impl FromStr for Deadline {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.len() - text.trim_start_matches(|char: char| char.is_ascii_digit()).len();
        let (number, unit) = text.split_at(digits);
        let unit: u64 = match unit {
            "ms" => 1,
            "" | "s" => 1_000,
            "m" | "min" => 60_000,
            "h" => 3_600_000,
            _ => return Err("a time is a number and ms, s, m or h, such as 90s".to_owned()),
        };
        let ms = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
        let ms = ms.and_then(|ms| u32::try_from(ms).ok()).filter(|&ms| ms > 0);
        ms.map(Self).ok_or_else(|| "a time is a number above zero, and no more than weeks".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        let cases = [("90", 90_000), ("90s", 90_000), ("500ms", 500), ("5m", 300_000), ("1h", 3_600_000)];
        for (text, ms) in cases {
            assert_eq!(text.parse(), Ok(Deadline(ms)), "{text}");
        }
        for bad in ["", "s", "0", "0s", "-1", "1.5s", "1d", "99999999h", "1 s", "é"] {
            assert!(bad.parse::<Deadline>().is_err(), "{bad}");
        }
    }
}
