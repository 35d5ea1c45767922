//! How moments are written: ISO 8601 in UTC with milliseconds, as `Date.prototype.toISOString` does. And how they are
//! read: in any form of RFC 3339.

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

/// The moment that a text of RFC 3339 names, in milliseconds since the beginning of 1970; what is finer is cut. `None`
/// for anything else, and for moments before 1970.
#[must_use]
pub fn read_time(text: &str) -> Option<u64> {
    let (date, time) = text.split_at_checked(10)?;
    let [year, month, day] = numbers(date, b'-', [4, 2, 2])?;
    let time = time.strip_prefix(['T', 't', ' '])?;
    let (clock, rest) = time.split_at_checked(8)?;
    let [hour, minute, second] = numbers(clock, b':', [2, 2, 2])?;
    let (ms, zone) = match rest.strip_prefix('.') {
        Some(rest) => {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let ms = rest[..digits].bytes().chain(*b"00").take(3);
            let ms = ms.fold(0, |ms, digit| ms * 10 + u64::from(digit - b'0'));
            (digits > 0).then_some((ms, &rest[digits..]))?
        }
        None => (0, rest),
    };
    let offset_minutes = match zone {
        "Z" | "z" => 0,
        _ => {
            let sign = if zone.starts_with('+') { 1 } else { -1 };
            let [hours, minutes] = numbers(zone.strip_prefix(['+', '-'])?, b':', [2, 2])?;
            (hours < 24 && minutes < 60).then_some(sign * i64::try_from(hours * 60 + minutes).ok()?)?
        }
    };
    // A leap second is the first one of the next minute.
    let in_range = (1..=12).contains(&month) && day >= 1 && hour < 24 && minute < 60 && second <= 60;
    if !in_range || day > days_of_month(year, month) {
        return None;
    }
    let seconds =
        days(year, month, day) * 86_400 + i64::try_from(hour * 3_600 + minute * 60 + second).ok()?;
    u64::try_from((seconds - offset_minutes * 60) * 1_000 + i64::try_from(ms).ok()?).ok()
}

/// The numbers of a text such as `1970-01-01`, each of so many digits.
fn numbers<const N: usize>(text: &str, between: u8, digits: [usize; N]) -> Option<[u64; N]> {
    let mut parts = text.split(char::from(between));
    let mut found = [0; N];
    for (number, digits) in found.iter_mut().zip(digits) {
        let part = parts.next().filter(|part| part.len() == digits)?;
        *number = part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok())??;
    }
    parts.next().is_none().then_some(found)
}

fn days_of_month(year: u64, month: u64) -> u64 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 => 28 + u64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// How many days after 1970-01-01 a date lies; before it, a negative number. The way back from [`date`].
fn days(year: u64, month: u64, day: u64) -> i64 {
    // 1970-01-01 lies 719,468 days after 0000-03-01; an era more keeps January of the year 0 in range.
    const DAYS_OF_400_YEARS: i64 = 146_097;
    let year = year + 400 - u64::from(month <= 2);
    let month_from_march = if month > 2 { month - 3 } else { month + 9 };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (153 * month_from_march + 2) / 5 + day - 1;
    i64::try_from(days).unwrap_or(i64::MAX) - DAYS_OF_400_YEARS - 719_468
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
            assert_eq!(read_time(text), Some(unix_ms.min(LATEST_MS)));
        }
    }

    #[test]
    fn every_form_of_the_standard_is_read_and_nothing_else() {
        for day in (0..200_000_u64).step_by(7) {
            let unix_ms = day * 86_400_000 + day * 431 % 86_400_000;
            assert_eq!(read_time(&iso_time(unix_ms)), Some(unix_ms));
        }
        for (text, unix_ms) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01 00:00:00.5z", 500),
            ("1970-01-01t00:00:00.123456789Z", 123),
            ("1970-01-01T01:30:00+01:30", 0),
            ("1969-12-31T23:00:00-01:00", 0),
            ("2016-12-31T23:59:60Z", 1_483_228_800_000),
        ] {
            assert_eq!(read_time(text), Some(unix_ms), "{text}");
        }
        for bad in [
            "",
            "1970-01-01",
            "1970-01-01T00:00:00",
            "1970-01-01T00:00:00.Z",
            "1970-01-01T24:00:00Z",
            "1970-02-29T00:00:00Z",
            "1970-13-01T00:00:00Z",
            "1970-00-01T00:00:00Z",
            "1970-01-00T00:00:00Z",
            "1969-12-31T23:59:59Z",
            "0000-01-01T00:00:00Z",
            "1970-01-01T00:00:00+24:00",
            "1970-01-01T00:00:00ZZ",
            "+970-01-01T00:00:00Z",
            "1970-01-01T00:00:é0Z",
            "197é-01-01T00:00:00Z",
        ] {
            assert_eq!(read_time(bad), None, "{bad}");
        }
    }

    #[test]
    fn later_moments_have_later_texts() {
        let texts: Vec<_> = (0..200_000).map(|day: u64| iso_time(day * 86_400_000)).collect();
        assert!(texts.is_sorted_by(|a, b| a < b));
    }
}
