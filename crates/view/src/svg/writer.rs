//! Well-formed XML, and numbers as short as they can be.

use std::fmt::Write as _;

/// Writes elements into a text; every value is escaped.
#[derive(Default)]
pub(crate) struct Writer {
    out: String,
    open: Vec<&'static str>,
}

impl Writer {
    /// Opens an element. The elements inside follow, then [`Writer::close`].
    pub(crate) fn open(&mut self, name: &'static str, attributes: &[(&str, &str)]) {
        self.tag(name, attributes);
        self.out.push('>');
        self.open.push(name);
    }

    /// Closes the element that was opened last.
    pub(crate) fn close(&mut self) {
        if let Some(name) = self.open.pop() {
            let _ = write!(self.out, "</{name}>");
        }
    }

    /// Writes an element without content.
    pub(crate) fn empty(&mut self, name: &'static str, attributes: &[(&str, &str)]) {
        self.tag(name, attributes);
        self.out.push_str("/>");
    }

    /// Writes an element with text in it.
    pub(crate) fn text(&mut self, name: &'static str, attributes: &[(&str, &str)], text: &str) {
        self.open(name, attributes);
        escape(text, &mut self.out);
        self.close();
    }

    /// Starts a new line, for who reads the file.
    pub(crate) fn line(&mut self) {
        self.out.push('\n');
    }

    fn tag(&mut self, name: &str, attributes: &[(&str, &str)]) {
        let _ = write!(self.out, "<{name}");
        for (key, value) in attributes.iter().filter(|(_, value)| !value.is_empty()) {
            let _ = write!(self.out, " {key}=\"");
            escape(value, &mut self.out);
            self.out.push('"');
        }
    }

    /// The text; elements that are still open are closed.
    pub(crate) fn finish(mut self) -> String {
        while !self.open.is_empty() {
            self.close();
        }
        self.out
    }
}

/// Escapes text for an element or a quoted attribute. What XML 1.0 cannot hold at all (most
/// control characters, U+FFFE, U+FFFF) becomes U+FFFD.
pub(crate) fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
}

/// A length in px, to a tenth: `12`, `12.5`.
pub(crate) fn px(length: f64) -> String {
    let text = format!("{length:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, proptest};

    #[test]
    fn values_are_escaped_and_elements_closed() {
        let mut writer = Writer::default();
        writer.open("g", &[("id", "a\"b"), ("class", "")]);
        writer.text("title", &[], "<x> & \u{1}\u{ffff}");
        writer.empty("rect", &[("x", &px(12.04))]);
        assert_eq!(
            writer.finish(),
            "<g id=\"a&quot;b\"><title>&lt;x&gt; &amp; \u{fffd}\u{fffd}</title><rect x=\"12\"/></g>"
        );
    }

    #[test]
    fn lengths_are_short() {
        for (length, text) in [(12.0, "12"), (12.25, "12.2"), (0.04, "0"), (-0.01, "0"), (99.96, "100")] {
            assert_eq!(px(length), text);
        }
    }

    proptest! {
        #[test]
        fn any_text_becomes_well_formed(text in any::<String>()) {
            let mut writer = Writer::default();
            writer.text("text", &[("id", &text)], &text);
            let written = writer.finish();
            let parsed = roxmltree::Document::parse(&written);
            prop_assert!(parsed.is_ok(), "{written}");
        }
    }
}
