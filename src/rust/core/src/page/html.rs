//! The writer of markup: what is not written here is escaped.
//!
//! Markup is `&'static str`, so a text that comes from a model, a tool or a person
//! cannot be taken for it: it can only go through [`Html::text`].

use crate::digest::Digest;

/// Markup that grows at its end.
#[derive(Debug, Default)]
pub(super) struct Html(String);

impl Html {
    /// Markup of our own.
    pub(super) fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// A text of anybody's: escaped, and characters that cannot be seen or that
    /// reorder others are spelled out.
    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        let mut start = 0;
        for (at, c) in text.char_indices() {
            let Some(shown) = shown(c) else { continue };
            self.0.push_str(&text[start..at]);
            start = at + c.len_utf8();
            match shown {
                Shown::Entity(entity) => self.0.push_str(entity),
                Shown::Spelled => {
                    self.0.push_str("<span class=\"c\">");
                    self.0.push_str(&spelled(c));
                    self.0.push_str("</span>");
                }
            }
        }
        self.0.push_str(&text[start..]);
        self
    }

    /// A text where no element may stand: in the title or an attribute.
    pub(super) fn plain(&mut self, text: &str) -> &mut Self {
        for c in text.chars() {
            match shown(c) {
                None => self.0.push(c),
                Some(Shown::Entity(entity)) => self.0.push_str(entity),
                Some(Shown::Spelled) => self.0.push_str(&spelled(c)),
            }
        }
        self
    }

    /// Markup that was written by itself.
    pub(super) fn append(&mut self, other: Html) -> &mut Self {
        self.0.push_str(&other.0);
        self
    }

    /// A whole number.
    pub(super) fn number(&mut self, n: u64) -> &mut Self {
        self.0.push_str(&n.to_string());
        self
    }

    /// What was written.
    pub(super) fn finish(self) -> String {
        self.0
    }
}

enum Shown {
    Entity(&'static str),
    Spelled,
}

/// How a character is written where it does not stand for itself.
fn shown(c: char) -> Option<Shown> {
    match c {
        '&' => Some(Shown::Entity("&amp;")),
        '<' => Some(Shown::Entity("&lt;")),
        '>' => Some(Shown::Entity("&gt;")),
        '"' => Some(Shown::Entity("&quot;")),
        '\'' => Some(Shown::Entity("&#39;")),
        '`' => Some(Shown::Entity("&#96;")),
        '\n' | '\t' | ' '..='~' => None,
        c if hidden(c) => Some(Shown::Spelled),
        _ => None,
    }
}

/// Characters that show nothing or reorder what stands around them: controls,
/// bidirectional formatting, fillers, tags, line separators, non-characters. The
/// joiners that scripts and emoji are written with are left alone.
fn hidden(c: char) -> bool {
    matches!(c,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}'
        | '\u{17b4}' | '\u{17b5}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{fdd0}'..='\u{fdef}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
    ) || u32::from(c) & 0xfffe == 0xfffe
}

fn spelled(c: char) -> String {
    format!("U+{:04X}", u32::from(c))
}

/// The policy that a page states for itself: nothing is fetched, no script runs,
/// and only its own style sheet counts.
pub(super) fn content_policy(style: &str) -> String {
    format!(
        "default-src 'none'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        base64(Digest::of_bytes(style.as_bytes()).as_bytes())
    )
}

/// RFC 4648 section 4.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in bytes.chunks(3) {
        let word = (0..3).fold(0u32, |w, i| {
            w << 8 | u32::from(three.get(i).copied().unwrap_or(0))
        });
        for i in 0..4 {
            if i <= three.len() {
                let letter = word >> (18 - 6 * i) & 63;
                out.push(char::from(LETTERS[letter as usize]));
            } else {
                out.push('=');
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn escaped(text: &str) -> String {
        let mut html = Html::default();
        html.text(text);
        html.finish()
    }

    #[test]
    fn markup_in_a_text_is_text() {
        assert_eq!(
            escaped("<script>a && \"b\" 'c' `d`</script>"),
            "&lt;script&gt;a &amp;&amp; &quot;b&quot; &#39;c&#39; &#96;d&#96;&lt;/script&gt;"
        );
        assert_eq!(escaped("&lt;b&gt;"), "&amp;lt;b&amp;gt;");
        assert_eq!(escaped("a\n\tb é 😀"), "a\n\tb é 😀");
    }

    #[test]
    fn what_cannot_be_seen_is_spelled_out() {
        let span = |code: &str| format!("<span class=\"c\">U+{code}</span>");
        assert_eq!(escaped("\0"), span("0000"));
        assert_eq!(escaped("\u{1b}[31m"), span("001B") + "[31m");
        assert_eq!(escaped("\u{202e}abc"), span("202E") + "abc");
        assert_eq!(escaped("\u{2028}\u{feff}"), span("2028") + &span("FEFF"));
        assert_eq!(escaped("\u{e0041}"), span("E0041"));
        // Family emoji and Persian are written with joiners.
        assert_eq!(escaped("👨\u{200d}👩"), "👨\u{200d}👩");
    }

    #[test]
    fn a_plain_text_has_no_element_in_it() {
        let mut html = Html::default();
        html.plain("<a\u{202e}\">");
        assert_eq!(html.finish(), "&lt;aU+202E&quot;&gt;");
    }

    #[test]
    fn the_vectors_of_rfc_4648() {
        for (plain, coded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
        ] {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }

    proptest! {
        #[test]
        fn no_text_opens_an_element_or_an_entity_of_its_own(text in any::<String>()) {
            let html = escaped(&text);
            let rest = html.replace("<span class=\"c\">", "").replace("</span>", "");
            prop_assert!(!rest.contains(['<', '>', '"', '\'', '`']));
            let entities = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;", "&#96;"];
            let bare = entities.iter().fold(rest, |r, e| r.replace(e, ""));
            prop_assert!(!bare.contains('&'));
        }
    }
}
