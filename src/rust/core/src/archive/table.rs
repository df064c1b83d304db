//! Rows of the tables of an archive, as lines of CSV (RFC 4180, UTF-8, `\n`).
//!
//! A row is one line: control characters in a text are written as escapes. A text
//! that a spreadsheet would take for a formula has an apostrophe before it, and so
//! has one that begins with an apostrophe; a reader takes one off.

use super::account::{Account, Approval, Call};
use super::{Content, Values};
use crate::canon;
use crate::digest::Digest;
use std::fmt::Write;

/// Names of the columns of `runs.csv`.
pub const RUNS: &str = "run_id,case_id,status,stop_reason,steps,tool_calls,tokens,cost,seconds,\
    started_at,last_at,models_served,records,head,goal_address,answer_address,goal,answer,error";

/// Names of the columns of `tool_calls.csv`.
pub const TOOL_CALLS: &str =
    "run_id,step,action,tool,status,attempts,at,duration_s,bytes,truncated,\
    edited_by,guardrails,arguments_address,result_address,arguments,result,error";

/// Names of the columns of `approvals.csv`.
pub const APPROVALS: &str =
    "run_id,step,action,tool,reason,requested_at,expires_at,decision,approver,\
    decided_at,request,arguments_address,edited_address,arguments,edited";

/// How many columns at the end of the three tables hold values.
pub const VALUE_COLUMNS: [usize; 3] = [3, 3, 2];

/// The cells of one row.
#[derive(Debug, Default)]
pub struct Cells(String);

impl Cells {
    /// A cell as it is: a number, a word, a digest, a time.
    pub fn plain(&mut self, text: &str) -> &mut Self {
        self.0.push_str(text);
        self.0.push(',');
        self
    }

    /// A text from anywhere.
    pub fn text(&mut self, text: &str) -> &mut Self {
        let cell = cell(text);
        self.plain(&cell)
    }

    /// The row with its newline.
    pub fn end(mut self) -> String {
        self.0.pop();
        self.0.push('\n');
        self.0
    }

    fn count(&mut self, n: u64) -> &mut Self {
        let _ = write!(self.0, "{n},");
        self
    }

    fn time(&mut self, ms: Option<u64>) -> &mut Self {
        let text = ms.map(time).unwrap_or_default();
        self.plain(&text)
    }

    fn digest(&mut self, digest: Option<&Digest>) -> &mut Self {
        let text = digest.map(Digest::to_hex).unwrap_or_default();
        self.plain(&text)
    }

    /// A value as its canonical JSON, which begins with no sign of a formula but the
    /// minus of a number.
    fn value(&mut self, source: &Source<'_>, address: Option<&Digest>) -> &mut Self {
        let bytes = match source.values {
            Values::Shown => address.and_then(|a| source.content.get(a)),
            Values::Withheld => None,
        };
        let text = bytes.map(|b| String::from_utf8_lossy(b));
        let quoted = text.map(|t| quote(&t)).unwrap_or_default();
        self.plain(&quoted)
    }
}

/// Where the values of rows come from.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// Values by address.
    pub content: &'a Content,
    /// Whether they are shown.
    pub values: Values,
}

/// A text as a cell.
pub fn cell(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    if text.starts_with(['=', '+', '-', '@', '\t', '\r', '\'']) {
        plain.push('\'');
    }
    for c in text.chars() {
        match c {
            '\n' => plain.push_str("\\n"),
            '\r' => plain.push_str("\\r"),
            '\t' => plain.push_str("\\t"),
            c if c.is_control() || c == '\u{2028}' || c == '\u{2029}' => {
                let _ = write!(plain, "\\u{:04x}", u32::from(c));
            }
            c => plain.push(c),
        }
    }
    quote(&plain)
}

fn quote(text: &str) -> String {
    if text.contains([',', '"', ';', '\'', ' ']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// The row of a run in `runs.csv`.
pub fn run_row(run: &Account, case: &str, models: &[String], source: Source<'_>) -> String {
    let mut cells = Cells::default();
    cells
        .plain(&run.run)
        .text(case)
        .plain(run.status)
        .plain(run.stop_reason.map_or("", |r| r.word()))
        .count(run.used.steps)
        .count(run.used.tool_calls)
        .count(run.used.tokens)
        .plain(&decimal(run.used.cost_nano, 9))
        .plain(&decimal(run.used.active_ms, 3))
        .time(Some(run.started_ms))
        .time(Some(run.last_ms))
        .text(&models.join("; "))
        .count(run.records)
        .digest(Some(&run.head))
        .digest(run.goal.as_ref())
        .digest(run.answer.as_ref())
        .value(&source, run.goal.as_ref())
        .value(&source, run.answer.as_ref())
        .value(&source, run.error.as_ref());
    cells.end()
}

/// The rows of a run in `tool_calls.csv`.
pub fn call_rows(run: &Account, source: Source<'_>) -> String {
    run.calls.iter().map(|c| call_row(run, c, source)).collect()
}

fn call_row(run: &Account, call: &Call, source: Source<'_>) -> String {
    let mut cells = Cells::default();
    cells
        .plain(&run.run)
        .count(call.step)
        .count(call.action)
        .text(&call.tool)
        .plain(call.outcome.map_or("", |o| o.word()))
        .count(call.attempts)
        .time(Some(call.at_ms))
        .plain(&decimal(call.duration_us, 6))
        .count(call.bytes)
        .plain(if call.truncated { "true" } else { "false" })
        .text(call.edited_by.as_deref().unwrap_or_default())
        .text(&call.guardrails.join("; "))
        .digest(Some(&call.arguments))
        .digest(call.result.as_ref())
        .value(&source, Some(&call.arguments))
        .value(&source, call.result.as_ref())
        .value(&source, call.text.as_ref());
    cells.end()
}

/// The rows of a run in `approvals.csv`.
pub fn approval_rows(run: &Account, source: Source<'_>) -> String {
    let rows = run.approvals.iter();
    rows.map(|a| approval_row(run, a, source)).collect()
}

fn approval_row(run: &Account, asked: &Approval, source: Source<'_>) -> String {
    let mut cells = Cells::default();
    cells
        .plain(&run.run)
        .count(asked.step)
        .count(asked.action)
        .text(&asked.tool)
        .plain(asked.reason)
        .time(Some(asked.requested_ms))
        .time(asked.expires_ms)
        .plain(asked.decision.unwrap_or_default())
        .text(asked.approver.as_deref().unwrap_or_default())
        .time(asked.decided_ms)
        .digest(Some(&asked.request))
        .digest(Some(&asked.arguments))
        .digest(asked.edited.as_ref())
        .value(&source, Some(&asked.arguments))
        .value(&source, asked.edited.as_ref());
    cells.end()
}

/// The cells of a line, without quotes; none when it is no row.
pub fn split(line: &str) -> Option<Vec<String>> {
    let mut cells = Vec::new();
    let mut rest = line;
    loop {
        let cell;
        if let Some(quoted) = rest.strip_prefix('"') {
            let mut text = String::new();
            let mut left = quoted;
            loop {
                let (part, after) = left.split_once('"')?;
                text.push_str(part);
                match after.strip_prefix('"') {
                    Some(more) => {
                        text.push('"');
                        left = more;
                    }
                    None => {
                        left = after;
                        break;
                    }
                }
            }
            cell = text;
            rest = left;
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            cell = rest[..end].to_owned();
            rest = &rest[end..];
        }
        cells.push(cell);
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None if rest.is_empty() => return Some(cells),
            None => return None,
        }
    }
}

/// Rows whose last columns, those of values, are empty.
pub fn without_values(rows: &str, columns: usize) -> Option<String> {
    let mut out = String::new();
    for line in rows.lines() {
        let mut cells = split(line)?;
        let from = cells.len().checked_sub(columns)?;
        cells[from..].iter_mut().for_each(String::clear);
        let quoted: Vec<String> = cells.iter().map(|c| quote(c)).collect();
        out.push_str(&quoted.join(","));
        out.push('\n');
    }
    Some(out)
}

/// A count of units of 10^-`places` as a decimal, without zeros at the end.
pub fn decimal(n: u64, places: u32) -> String {
    let unit = 10u64.pow(places);
    let (whole, part) = (n / unit, n % unit);
    if part == 0 {
        return whole.to_string();
    }
    let digits = format!("{part:0width$}", width = places as usize);
    format!("{whole}.{}", digits.trim_end_matches('0'))
}

/// RFC 3339 in UTC of milliseconds since 1970.
pub fn time(ms: u64) -> String {
    let (days, rest) = (ms / 86_400_000, ms % 86_400_000);
    // Days to a date of the proleptic Gregorian calendar, counted from 0000-03-01, so
    // that the leap day is the last of its year.
    let z = days + 719_468;
    let (era, of_era) = (z / 146_097, z % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march + 2) / 5 + 1;
    let month = if march < 10 { march + 3 } else { march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (h, m, s, milli) = (
        rest / 3_600_000,
        rest / 60_000 % 60,
        rest / 1000 % 60,
        rest % 1000,
    );
    format!("{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}.{milli:03}Z")
}

/// A line of `trajectories.jsonl`, with its newline.
pub fn trajectory_line(case: &str, record: &serde_json::Value) -> String {
    let mut out = b"{\"case_id\":".to_vec();
    canon::write_string(case, &mut out);
    out.extend_from_slice(b",\"trajectory\":");
    canon::write(record, &mut out);
    out.extend_from_slice(b"}\n");
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        assert_eq!(time(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(time(951_782_399_999), "2000-02-28T23:59:59.999Z");
        assert_eq!(time(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(time(4_102_444_800_000), "2100-01-01T00:00:00.000Z");
        assert_eq!(time(1_767_225_600_123), "2026-01-01T00:00:00.123Z");
    }

    #[test]
    fn decimals_are_exact() {
        assert_eq!(decimal(0, 9), "0");
        assert_eq!(decimal(2_500_000, 9), "0.0025");
        assert_eq!(decimal(12_000, 3), "12");
        assert_eq!(decimal(1, 6), "0.000001");
    }

    #[test]
    fn a_formula_is_no_formula_in_a_cell() {
        assert_eq!(cell("=1+1"), "\"'=1+1\"");
        assert_eq!(cell("'quoted"), "\"''quoted\"");
        assert_eq!(cell("@SUM(A1)"), "\"'@SUM(A1)\"");
        assert_eq!(cell("plain"), "plain");
        assert_eq!(cell("a\nb\t\u{1b}"), "a\\nb\\t\\u001b");
    }

    proptest! {
        #[test]
        fn any_text_is_one_cell_of_one_line(text in any::<String>(), next in any::<String>()) {
            let mut cells = Cells::default();
            cells.text(&text).text(&next).plain("7");
            let row = cells.end();
            prop_assert_eq!(row.lines().count(), 1);
            let read = split(row.trim_end_matches('\n')).unwrap();
            prop_assert_eq!(read.len(), 3);
            prop_assert!(!read[0].starts_with(['=', '+', '-', '@', '\t', '\r']));
            let blank = without_values(&row, 1).unwrap();
            let cells = split(blank.trim_end_matches('\n')).unwrap();
            prop_assert_eq!(cells[2].as_str(), "");
        }
    }
}
