//! Days and seconds since 1970 as ISO 8601 text. Proleptic Gregorian calendar.

/// `2026-01-31`, or nothing where the day is out of any range.
pub(super) fn date(days: f64) -> Option<String> {
    let days = days.floor();
    if days.abs() > 1e8 {
        return None;
    }
    let (y, m, d) = civil(days as i64);
    Some(format!("{}-{m:02}-{d:02}", year(y)))
}

/// RFC 3339 in UTC, with as many decimals of a second as it takes to read the
/// same double back, at most nine.
pub(super) fn instant(seconds: f64) -> Option<String> {
    if seconds.abs() > 8e12 {
        return None;
    }
    let digits = (0..9)
        .find(|d| rounded(seconds, *d) == seconds)
        .unwrap_or(9);
    let x = rounded(seconds, digits);
    let mut whole = x.floor() as i64;
    let scale = 10f64.powi(digits);
    let mut part = ((x - x.floor()) * scale).round();
    if part >= scale {
        part = 0.0;
        whole += 1;
    }
    let (y, m, d) = civil(whole.div_euclid(86_400));
    let s = whole.rem_euclid(86_400);
    let mut text = format!(
        "{}-{m:02}-{d:02}T{:02}:{:02}:{:02}",
        year(y),
        s / 3600,
        s / 60 % 60,
        s % 60
    );
    if part > 0.0 {
        text.push_str(&format!(
            ".{:0width$}",
            part as u64,
            width = digits as usize
        ));
    }
    text.push('Z');
    Some(text)
}

fn rounded(x: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (x * scale).round() / scale
}

fn year(y: i64) -> String {
    if (0..=9999).contains(&y) {
        format!("{y:04}")
    } else {
        format!("{y:+05}")
    }
}

/// Year, month and day of a day number, by counting 400-year eras from March.
fn civil(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1_460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    let year = yoe + era * 400 + i64::from(month <= 2);
    (year, month, doy - (153 * mp + 2) / 5 + 1)
}
