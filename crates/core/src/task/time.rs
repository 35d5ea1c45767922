//! How moments are written and read: ISO 8601 in UTC with milliseconds, as `Date.prototype.toISOString` does.

/// The latest moment that has four digits for its year: the last millisecond of 9999.
const LATEST_MS: u64 = 253_402_300_799_999;

/// The text of the moment that lies `unix_ms` milliseconds after the beginning of 1970.
#[must_use]
pub fn iso_time(unix_ms: u64) -> String {
    let unix_ms = unix_ms.min(LATEST_MS);
    let (seconds, ms) = (unix_ms / 1_000, unix_ms % 1_000);
    let (days, second_of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second_of_day / 3_600, second_of_day / 60 % 60, second_of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// The date that lies `days` days after 1970-01-01. Years are counted from March, so that the leap day is the last.
fn date(days: u64) -> (u64, u64, u64) {
    const DAYS_OF_400_YEARS: u64 = 146_097;
    // 0000-03-01 lies 719,468 days before 1970-01-01.
    let days = days + 719_468;
    let (era, day_of_era) = (days / DAYS_OF_400_YEARS, days % DAYS_OF_400_YEARS);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

/// The moment that [`iso_time`] has written as `text`; `None` for any other text.
#[must_use]
pub fn unix_ms(text: &str) -> Option<u64> {
    const FORM: &[u8; 24] = b"0000-00-00T00:00:00.000Z";
    let text: &[u8; 24] = text.as_bytes().try_into().ok()?;
    let fits = |(byte, form): (&u8, &u8)| if *form == b'0' { byte.is_ascii_digit() } else { byte == form };
    if !text.iter().zip(FORM).all(fits) {
        return None;
    }
    let number = |from: usize, to: usize| {
        text[from..to].iter().fold(0_u64, |number, digit| 10 * number + u64::from(digit - b'0'))
    };
    let (year, month, day) = (number(0, 4), number(5, 7), number(8, 10));
    let (hour, minute, second) = (number(11, 13), number(14, 16), number(17, 19));
    if year < 1970 || !(1..=12).contains(&month) || day == 0 || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    // As in `date`: years from March.
    let (years, months) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days =
        365 * years + years / 4 - years / 100 + years / 400 + (153 * months + 2) / 5 + day - 1 - 719_468;
    // The 31st of a shorter month is no day.
    if date(days) != (year, month, day) {
        return None;
    }
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000 + number(20, 23))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_moments_are_written_as_every_calendar_does() {
        let known = [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_709_164_800_000, "2024-02-29T00:00:00.000Z"),
            (1_735_689_599_001, "2024-12-31T23:59:59.001Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (LATEST_MS, "9999-12-31T23:59:59.999Z"),
            (u64::MAX, "9999-12-31T23:59:59.999Z"),
        ];
        for (unix_ms, text) in known {
            assert_eq!(iso_time(unix_ms), text);
            assert_eq!(super::unix_ms(text), Some(unix_ms.min(LATEST_MS)));
        }
    }

    #[test]
    fn every_moment_is_read_back_and_no_other_text_is_one() {
        for day in 0..200_000 {
            let moment = day * 86_400_000 + day * 431 % 86_400_000;
            assert_eq!(unix_ms(&iso_time(moment)), Some(moment));
        }
        for text in [
            "",
            "2026-01-01",
            "2026-01-01T00:00:00.000z",
            "2026-01-01T00:00:00.00é",
            "2026-13-01T00:00:00.000Z",
            "2026-00-01T00:00:00.000Z",
            "2026-02-29T00:00:00.000Z",
            "2026-01-00T00:00:00.000Z",
            "2026-01-32T00:00:00.000Z",
            "2026-01-01T24:00:00.000Z",
            "2026-01-01T00:60:00.000Z",
            "2026-01-01T00:00:60.000Z",
            "1969-12-31T23:59:59.999Z",
            "0000-03-01T00:00:00.000Z",
        ] {
            assert_eq!(unix_ms(text), None, "{text:?}");
        }
    }

    #[test]
    fn later_moments_have_later_texts() {
        let texts: Vec<_> = (0..200_000).map(|day: u64| iso_time(day * 86_400_000)).collect();
        assert!(texts.is_sorted_by(|a, b| a < b));
    }
}
