//! XML with an element per line, for files that people read and compare.

use std::fmt::Write as _;

use crate::svg::writer::escape;

/// Attributes of an element, in order.
pub(super) type Attributes = Vec<(&'static str, String)>;

/// Writes elements into a text; every value is escaped.
#[derive(Default)]
pub(super) struct Xml {
    out: String,
    open: Vec<&'static str>,
}

impl Xml {
    /// A document whose first lines are these.
    pub fn beginning_with(head: &str) -> Self {
        Self { out: head.to_owned(), open: Vec::new() }
    }

    /// Opens an element. The elements inside follow, then [`Xml::close`].
    pub fn open(&mut self, name: &'static str, attributes: &[(&'static str, String)]) {
        self.tag(name, attributes, ">\n");
        self.open.push(name);
    }

    /// Closes the element that was opened last.
    pub fn close(&mut self) {
        if let Some(name) = self.open.pop() {
            self.indent();
            // Writing to a String cannot fail.
            let _ = writeln!(self.out, "</{name}>");
        }
    }

    /// Writes an element without content.
    pub fn empty(&mut self, name: &'static str, attributes: &[(&'static str, String)]) {
        self.tag(name, attributes, "/>\n");
    }

    /// Writes an element with text in it.
    pub fn text(&mut self, name: &'static str, attributes: &[(&'static str, String)], text: &str) {
        self.tag(name, attributes, ">");
        escape(text, &mut self.out);
        let _ = writeln!(self.out, "</{name}>");
    }

    fn tag(&mut self, name: &str, attributes: &[(&'static str, String)], end: &str) {
        self.indent();
        let _ = write!(self.out, "<{name}");
        for (key, value) in attributes {
            let _ = write!(self.out, " {key}=\"");
            escape(value, &mut self.out);
            self.out.push('"');
        }
        self.out.push_str(end);
    }

    fn indent(&mut self) {
        for _ in &self.open {
            self.out.push_str("  ");
        }
    }

    /// The text; elements that are still open are closed.
    pub fn finish(mut self) -> String {
        while !self.open.is_empty() {
            self.close();
        }
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_lie_in_each_other_and_values_are_escaped() {
        let mut xml = Xml::beginning_with("<?xml version=\"1.0\"?>\n");
        xml.open("a", &[("name", "\"<\u{1}&".to_owned())]);
        xml.empty("b", &[]);
        xml.text("c", &[("length", "2".to_owned())], "1 ");
        assert_eq!(
            xml.finish(),
            "<?xml version=\"1.0\"?>\n<a name=\"&quot;&lt;\u{fffd}&amp;\">\n  <b/>\n  <c length=\"2\">1 </c>\n</a>\n"
        );
    }
}
