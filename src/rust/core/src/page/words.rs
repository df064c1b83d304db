//! Times, sizes and counts in words.

use crate::outcome::Outcome;

/// Milliseconds since 1970 as `2026-01-31 09:05:00 UTC`.
pub(super) fn time(ms: u64) -> String {
    stamp(ms, " ", " UTC")
}

/// The same for machines: RFC 3339.
pub(super) fn machine_time(ms: u64) -> String {
    stamp(ms, "T", "Z")
}

fn stamp(ms: u64, between: &str, end: &str) -> String {
    let seconds = ms / 1000;
    let (year, month, day) = civil(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}{between}{hour:02}:{minute:02}:{second:02}{end}")
}

/// The date so many days after 1970-01-01: years are counted in cycles of 400 that
/// begin in March, so that the leap day comes last.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (cycle, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let shifted = (5 * day + 2) / 153;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let after_february = u64::from(month <= 2);
    (
        cycle * 400 + year + after_february,
        month,
        day - (153 * shifted + 2) / 5 + 1,
    )
}

/// How long something took, to two or three digits that matter.
pub(super) fn duration_us(us: u64) -> String {
    match us {
        0 => "0 s".to_owned(),
        1..=999 => format!("{us} µs"),
        1_000..=9_999 => format!("{:.1} ms", us as f64 / 1e3),
        10_000..=999_999 => format!("{} ms", us / 1000),
        1_000_000..=59_999_999 => format!("{:.1} s", us as f64 / 1e6),
        _ => {
            let s = us / 1_000_000;
            match s {
                0..=3_599 => two(s / 60, "min", s % 60, "s"),
                3_600..=86_399 => two(s / 3600, "h", s / 60 % 60, "min"),
                _ => two(s / 86_400, "d", s / 3600 % 24, "h"),
            }
        }
    }
}

fn two(large: u64, of: &str, small: u64, and: &str) -> String {
    match small {
        0 => format!("{large} {of}"),
        _ => format!("{large} {of} {small} {and}"),
    }
}

pub(super) fn duration_ms(ms: u64) -> String {
    duration_us(ms.saturating_mul(1000))
}

/// `1,234,567`.
pub(super) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `3 calls`, `1 call`.
pub(super) fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(n), if n == 1 { one } else { many })
}

/// A cost in 1e-9 units, without zeros at its end.
pub(super) fn cost(nano: u64) -> String {
    let whole = grouped(nano / 1_000_000_000);
    let part = format!("{:09}", nano % 1_000_000_000);
    match part.trim_end_matches('0') {
        "" => whole,
        part => format!("{whole}.{part}"),
    }
}

/// What kind of end an outcome is; each has a colour and a sign of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sort {
    Done,
    Failed,
    Open,
    Refused,
    Waiting,
}

pub(super) fn sort(outcome: Option<Outcome>) -> Sort {
    match outcome {
        None => Sort::Open,
        Some(Outcome::Executed) => Sort::Done,
        Some(Outcome::Error | Outcome::Interrupted | Outcome::TimedOut) => Sort::Failed,
        Some(Outcome::ApprovalRequired) => Sort::Waiting,
        Some(
            Outcome::ApprovalDenied
            | Outcome::ApprovalExpired
            | Outcome::ApprovalStale
            | Outcome::EffectDenied
            | Outcome::GuardrailBlocked
            | Outcome::InvalidArguments
            | Outcome::LimitReached
            | Outcome::ScopeDenied
            | Outcome::ToolExhausted
            | Outcome::UnknownTool,
        ) => Sort::Refused,
    }
}

/// The outcome for people.
pub(super) fn outcome(outcome: Option<Outcome>) -> &'static str {
    match outcome {
        None => "under way",
        Some(Outcome::ApprovalDenied) => "approval denied",
        Some(Outcome::ApprovalExpired) => "approval expired",
        Some(Outcome::ApprovalRequired) => "waits for approval",
        Some(Outcome::ApprovalStale) => "approval stale",
        Some(Outcome::EffectDenied) => "effect denied",
        Some(Outcome::Error) => "error",
        Some(Outcome::Executed) => "executed",
        Some(Outcome::GuardrailBlocked) => "blocked by a guardrail",
        Some(Outcome::Interrupted) => "interrupted",
        Some(Outcome::InvalidArguments) => "invalid arguments",
        Some(Outcome::LimitReached) => "limit reached",
        Some(Outcome::ScopeDenied) => "scope denied",
        Some(Outcome::TimedOut) => "timed out",
        Some(Outcome::ToolExhausted) => "tool exhausted",
        Some(Outcome::UnknownTool) => "unknown tool",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(time(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(time(951_782_399_999), "2000-02-28 23:59:59 UTC");
        assert_eq!(time(951_782_400_000), "2000-02-29 00:00:00 UTC");
        assert_eq!(machine_time(1_709_251_200_000), "2024-03-01T00:00:00Z");
        assert_eq!(time(4_102_444_799_000), "2099-12-31 23:59:59 UTC");
        assert!(time(crate::journal::format::MAX_COUNT).ends_with(" UTC"));
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(12), "12");
        assert_eq!(cost(0), "0");
        assert_eq!(cost(1_250_000_000), "1.25");
        assert_eq!(cost(1), "0.000000001");
        assert_eq!(counted(1, "call", "calls"), "1 call");
        assert_eq!(duration_us(15), "15 µs");
        assert_eq!(duration_us(1_500), "1.5 ms");
        assert_eq!(duration_ms(2_500), "2.5 s");
        assert_eq!(duration_ms(11_000_000), "3 h 3 min");
        assert_eq!(duration_ms(60_000), "1 min");
        assert_eq!(duration_ms(0), "0 s");
        assert!(duration_ms(u64::MAX).contains(" d "));
    }
}
