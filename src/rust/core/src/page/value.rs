//! How a value of a run is shown: text as text, anything else as indented JSON; long
//! ones folded, very long ones cut, with their size stated.

use super::html::Html;
use super::words::{counted, grouped};
use super::Content;
use crate::canon;
use crate::digest::Digest;
use serde_json::Value;

/// What to make of members that stand for secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Secrets {
    /// Arguments: a digest in place of a secret is shown as `<redacted>`.
    Redact,
    /// Anything else is shown as it is.
    Show,
}

/// Looks values up and shows them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Values<'a> {
    pub(super) content: &'a Content,
    pub(super) max_bytes: usize,
    pub(super) folds: Folds,
}

/// From which size on values are folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Folds {
    /// What a reader comes for: only what fills a screen.
    Long,
    /// Values among others.
    Short,
}

impl Folds {
    /// Most lines and bytes that stay open.
    fn open(self) -> (usize, usize) {
        match self {
            Folds::Long => (60, 6000),
            Folds::Short => (14, 1200),
        }
    }
}

impl Values<'_> {
    /// The value itself, where it is kept.
    pub(super) fn get(&self, address: &Digest) -> Option<Value> {
        canon::parse(self.content.get(address)?).ok()
    }

    /// A text on its line: of a question, a reason, a warning.
    pub(super) fn line(&self, html: &mut Html, address: &Digest) {
        let text = match self.get(address) {
            None => return gone(html, address),
            Some(Value::String(text)) => text,
            Some(other) => canon::to_string(&other),
        };
        let shown = cut(&text, self.max_bytes);
        html.raw("<bdi>").text(shown).raw("</bdi>");
        if shown.len() < text.len() {
            html.raw(" <span class=\"cut\">(")
                .text(&grouped(shown.len() as u64))
                .raw(" of ");
            html.text(&counted(text.len() as u64, "byte", "bytes"))
                .raw(")</span>");
        }
    }

    /// A value as a block.
    pub(super) fn block(&self, html: &mut Html, address: &Digest, secrets: Secrets) {
        let Some(bytes) = self.content.get(address) else {
            return gone(html, address);
        };
        match canon::parse(bytes) {
            Ok(value) => self.show(html, &value, secrets),
            // A store that somebody else wrote may hold anything.
            Err(_) => self.show_text(html, &String::from_utf8_lossy(bytes)),
        }
    }

    /// A value that is at hand.
    pub(super) fn show(&self, html: &mut Html, value: &Value, secrets: Secrets) {
        match value {
            Value::String(text) => self.show_text(html, text),
            _ => self.show_json(html, value, secrets),
        }
    }

    fn show_text(&self, html: &mut Html, text: &str) {
        if text.is_empty() {
            html.raw("<span class=\"gone\">an empty text</span>");
            return;
        }
        let shown = cut(text, self.max_bytes);
        let lines = shown.split('\n').count();
        fold(html, self.folds, (text.len(), lines), shown, |html| {
            html.raw("<pre class=\"v\" dir=\"auto\">")
                .text(shown)
                .raw("</pre>");
        });
        if shown.len() < text.len() {
            cut_note(html, shown.len(), text.len());
        }
    }

    fn show_json(&self, html: &mut Html, value: &Value, secrets: Secrets) {
        let mut pretty = Pretty::new(self.max_bytes, secrets);
        pretty.write(value, 0);
        let plain = canon::to_string(value);
        let whole = plain.len();
        // What stands for a secret is not shown at a glance either.
        let preview = match secrets {
            Secrets::Redact => "",
            Secrets::Show => plain.as_str(),
        };
        let written = self.max_bytes.saturating_sub(pretty.left);
        let Pretty {
            html: json,
            lines,
            cut,
            ..
        } = pretty;
        fold(html, self.folds, (written, lines), preview, |html| {
            html.raw("<pre class=\"v\">").append(json).raw("</pre>");
        });
        if cut {
            cut_note(html, written, whole.max(written));
        }
    }
}

fn gone(html: &mut Html, address: &Digest) {
    html.raw("<span class=\"gone\">not kept with this record; its address is <code>")
        .text(&address.to_hex()[..12])
        .raw("…</code></span>");
}

fn fold(
    html: &mut Html,
    folds: Folds,
    (bytes, lines): (usize, usize),
    preview: &str,
    body: impl FnOnce(&mut Html),
) {
    let (most_lines, most_bytes) = folds.open();
    if lines <= most_lines && bytes <= most_bytes {
        return body(html);
    }
    html.raw("<details class=\"fold\"><summary>")
        .text(&counted(lines as u64, "line", "lines"))
        .raw(", ")
        .text(&counted(bytes as u64, "byte", "bytes"))
        .raw(" <bdi class=\"glance\">")
        .text(glance(preview))
        .raw("</bdi></summary>");
    body(html);
    html.raw("</details>");
}

/// The beginning of a text, on one line.
fn glance(text: &str) -> &str {
    let line = text.trim_start().split('\n').next().unwrap_or("");
    cut(line, 90)
}

fn cut_note(html: &mut Html, shown: usize, all: usize) {
    html.raw("<p class=\"cut\">Cut on this page: shown are ")
        .text(&grouped(shown as u64))
        .raw(" of ")
        .text(&counted(all as u64, "byte", "bytes"))
        .raw(". The store has the whole.</p>");
}

/// At most so many bytes, whole characters.
fn cut(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    let mut end = most;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Indented JSON as markup, up to a number of bytes.
struct Pretty {
    html: Html,
    left: usize,
    lines: usize,
    cut: bool,
    secrets: Secrets,
}

impl Pretty {
    fn new(max_bytes: usize, secrets: Secrets) -> Self {
        Pretty {
            html: Html::default(),
            left: max_bytes,
            lines: 1,
            cut: false,
            secrets,
        }
    }

    fn write(&mut self, value: &Value, depth: usize) {
        if self.cut {
            return;
        }
        if let Some(secret) = self.secret(value) {
            return self.push(&secret);
        }
        match value {
            Value::Array(items) if !items.is_empty() => {
                let flat = fits(value);
                self.push("[");
                for (i, item) in items.iter().enumerate() {
                    self.separate(i, flat, depth + 1);
                    self.write(item, depth + 1);
                    if self.cut {
                        return;
                    }
                }
                self.close("]", flat, depth);
            }
            Value::Object(map) if !map.is_empty() => {
                let flat = fits(value);
                self.push("{");
                for (i, (key, item)) in map.iter().enumerate() {
                    self.separate(i, flat, depth + 1);
                    self.key(key);
                    self.write(item, depth + 1);
                    if self.cut {
                        return;
                    }
                }
                self.close("}", flat, depth);
            }
            scalar => self.push(&canon::to_string(scalar)),
        }
    }

    fn secret(&self, value: &Value) -> Option<String> {
        if self.secrets == Secrets::Show {
            return None;
        }
        let map = value.as_object().filter(|m| m.len() == 1)?;
        if map.get("secret_hmac").is_some_and(Value::is_string) {
            return Some("<redacted>".to_owned());
        }
        let name = map.get("secret_env")?.as_str()?;
        Some(format!(
            "secret_env({})",
            canon::to_string(&Value::from(name))
        ))
    }

    fn key(&mut self, key: &str) {
        self.html.raw("<span class=\"k\">");
        self.push(&canon::to_string(&Value::from(key)));
        self.html.raw("</span>");
        self.push(": ");
    }

    fn separate(&mut self, place: usize, flat: Layout, depth: usize) {
        if place > 0 {
            self.push(if flat == Layout::Flat { ", " } else { "," });
        }
        if flat == Layout::Tall {
            self.newline(depth);
        }
    }

    fn close(&mut self, bracket: &str, flat: Layout, depth: usize) {
        if flat == Layout::Tall {
            self.newline(depth);
        }
        self.push(bracket);
    }

    fn newline(&mut self, depth: usize) {
        self.lines += 1;
        self.push("\n");
        for _ in 0..depth {
            self.push("  ");
        }
    }

    fn push(&mut self, text: &str) {
        let part = cut(text, self.left);
        self.cut |= part.len() < text.len();
        self.left -= part.len();
        self.html.text(part);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    Flat,
    Tall,
}

/// Whether an array or object stands on one line.
fn fits(value: &Value) -> Layout {
    match room(value, 72) {
        Some(_) => Layout::Flat,
        None => Layout::Tall,
    }
}

/// What is left of so many bytes once the value stands on one line.
fn room(value: &Value, left: usize) -> Option<usize> {
    match value {
        Value::Array(items) => items.iter().try_fold(left.checked_sub(2)?, |left, item| {
            room(item, left.checked_sub(2)?)
        }),
        Value::Object(map) if map.len() == 1 && map.contains_key("secret_hmac") => {
            left.checked_sub("<redacted>".len())
        }
        Value::Object(map) => map
            .iter()
            .try_fold(left.checked_sub(2)?, |left, (key, item)| {
                room(item, left.checked_sub(key.len() + 6)?)
            }),
        Value::String(text) => left.checked_sub(text.len() + 2),
        Value::Number(n) => left.checked_sub(n.as_str().len()),
        Value::Bool(_) | Value::Null => left.checked_sub(5),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(value: &Value, max_bytes: usize, secrets: Secrets) -> String {
        let content = Content::new();
        let values = Values {
            content: &content,
            max_bytes,
            folds: Folds::Short,
        };
        let mut html = Html::default();
        values.show(&mut html, value, secrets);
        html.finish()
    }

    #[test]
    fn short_objects_stand_on_a_line_and_long_ones_are_indented() {
        let short = shown(&json!({"a": [1, 2], "b": "x"}), 1000, Secrets::Show);
        assert_eq!(
            short,
            "<pre class=\"v\">{<span class=\"k\">&quot;a&quot;</span>: [1, 2], \
             <span class=\"k\">&quot;b&quot;</span>: &quot;x&quot;}</pre>"
        );
        let long = shown(&json!({"a": "x".repeat(80), "b": []}), 1000, Secrets::Show);
        assert!(long.contains("{\n  <span") && long.contains(": []\n}"));
    }

    #[test]
    fn secrets_are_redacted_in_arguments_only() {
        let value = json!({"key": {"secret_hmac": "ab"}, "other": {"secret_env": "TOKEN"}});
        let hidden = shown(&value, 1000, Secrets::Redact);
        assert!(hidden.contains("&lt;redacted&gt;") && !hidden.contains("ab&quot;"));
        assert!(hidden.contains("secret_env(&quot;TOKEN&quot;)"));
        assert!(shown(&value, 1000, Secrets::Show).contains("secret_hmac"));
    }

    #[test]
    fn long_values_are_folded_and_longer_ones_cut_with_their_size() {
        let text = shown(&Value::from("é".repeat(5000)), 2001, Secrets::Show);
        assert!(text.contains("<summary>1 line, 10,000 bytes <bdi class=\"glance\">éé"));
        assert!(text.contains("shown are 2,000 of 10,000 bytes"));
        let items: Vec<u64> = (0..10_000).collect();
        let json = shown(&json!(items), 500, Secrets::Show);
        assert!(json.contains("shown are 500 of 48,891 bytes"));
        assert!(json.len() < 1500);
        let deep = (0..120).fold(json!("<b>"), |v, _| json!([v, "x".repeat(80)]));
        assert!(!shown(&deep, 100_000, Secrets::Show).contains("<b>"));
    }

    #[test]
    fn what_is_not_kept_is_said_to_be_missing() {
        let content = Content::new();
        let values = Values {
            content: &content,
            max_bytes: 10,
            folds: Folds::Short,
        };
        let mut html = Html::default();
        values.block(&mut html, &Digest::of_bytes(b"x"), Secrets::Show);
        assert!(html.finish().contains("not kept with this record"));
    }

    #[test]
    fn content_that_is_no_json_is_shown_as_text() {
        let address = Digest::of_bytes(b"y");
        let content = Content::from([(address, b"\xff<b>".to_vec())]);
        let values = Values {
            content: &content,
            max_bytes: 10,
            folds: Folds::Short,
        };
        let mut html = Html::default();
        values.block(&mut html, &address, Secrets::Show);
        assert_eq!(
            html.finish(),
            "<pre class=\"v\" dir=\"auto\">\u{fffd}&lt;b&gt;</pre>"
        );
    }
}
