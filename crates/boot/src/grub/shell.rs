//! A file of shell assignments, taken apart far enough to change some of them.

use std::ops::Range;

use crate::error::Refusal;

/// An assignment that is alone on its line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Assignment<'a> {
    pub(super) name: &'a str,
    /// The line on which it begins, from 1.
    pub(super) line: usize,
    pub(super) value: Value,
}

/// A value, and where it is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// No quotes: `quiet`, or nothing.
    Bare(Range<usize>),
    /// Inside of one pair of quotes, with nothing that the shell would change.
    Quoted(Range<usize>),
    Other(Range<usize>),
}

impl Value {
    /// The place of its words.
    pub(super) fn content(&self) -> Range<usize> {
        match self {
            Self::Bare(range) | Self::Quoted(range) | Self::Other(range) => range.clone(),
        }
    }
}

/// Every assignment of a file.
///
/// # Errors
/// A line that is not an assignment, comment or blank: what it does to the variables is not known.
pub(super) fn assignments(text: &str) -> Result<Vec<Assignment<'_>>, Refusal> {
    let mut reader = Reader { text, at: 0 };
    let mut found = Vec::new();
    while reader.at < text.len() {
        let line = text[..reader.at].matches('\n').count() + 1;
        let assignment = reader.line(line).ok_or(Refusal::Shell { line })?;
        found.extend(assignment);
    }
    Ok(found)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t')) {
            self.at += 1;
        }
    }

    /// Reads a line; outside `None` where it is not understood, inside where it assigns nothing.
    fn line(&mut self, number: usize) -> Option<Option<Assignment<'a>>> {
        self.blanks();
        if self.rest().starts_with("export ") {
            self.at += "export ".len();
            self.blanks();
        }
        let mut found = None;
        if !matches!(self.peek(), None | Some('\n' | '#')) {
            let name = self.name()?;
            if self.take()? != '=' {
                return None;
            }
            found = Some(Assignment { name, line: number, value: self.value()? });
            let blank = matches!(self.peek(), Some(' ' | '\t'));
            self.blanks();
            if self.peek() == Some('#') && !blank {
                return None;
            }
        }
        if self.peek() == Some('#') {
            let rest = self.rest();
            self.at += rest.find('\n').unwrap_or(rest.len());
        }
        matches!(self.take(), None | Some('\n')).then_some(found)
    }

    fn name(&mut self) -> Option<&'a str> {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let name = &rest[..end];
        self.at += end;
        (!name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit())).then_some(name)
    }

    /// Reads a value up to the blank or the line's end behind it.
    fn value(&mut self) -> Option<Value> {
        let start = self.at;
        let mut parts = Vec::new();
        loop {
            match self.peek() {
                None | Some(' ' | '\t' | '\n') => break,
                Some(';' | '&' | '|' | '<' | '>' | '(' | ')' | '\r') => return None,
                Some(_) => parts.push(self.part()?),
            }
        }
        Some(match parts.pop() {
            None => Value::Bare(start..start),
            Some(part) if parts.is_empty() => part,
            Some(_) => Value::Other(start..self.at),
        })
    }

    /// Reads a piece of a value: what one pair of quotes holds, or a run of plain characters.
    fn part(&mut self) -> Option<Value> {
        let start = self.at;
        match self.take()? {
            '\'' => {
                let end = self.at + self.rest().find('\'')?;
                self.at = end + 1;
                let inside = &self.text[start + 1..end];
                Some(if inside.contains('\n') {
                    Value::Other(start..self.at)
                } else {
                    Value::Quoted(start + 1..end)
                })
            }
            '"' => self.double(start),
            '`' => self.backquotes().map(|()| Value::Other(start..self.at)),
            '$' if self.peek() == Some('(') => self.command().map(|()| Value::Other(start..self.at)),
            '\\' => {
                let escaped = self.take()?;
                // A line that goes on where the file ends: whatever is put there belongs to its value.
                let is_open = escaped == '\n' && self.rest().is_empty();
                (!is_open).then_some(Value::Other(start..self.at))
            }
            c => {
                let special = |c: char| " \t\r\n'\"`$\\;&|<>()".contains(c);
                let rest = self.rest();
                self.at += rest.find(special).unwrap_or(rest.len());
                // A pattern, a home or a variable is not what it says.
                let word = &self.text[start..self.at];
                let plain = !c.is_whitespace() && !word.contains(['$', '*', '?', '[', '~', '{', '#', '!']);
                Some(if plain { Value::Bare(start..self.at) } else { Value::Other(start..self.at) })
            }
        }
    }

    /// Inside double quotes, whose opening one is read.
    fn double(&mut self, start: usize) -> Option<Value> {
        let mut plain = true;
        loop {
            match self.take()? {
                '"' => break,
                '\\' => {
                    plain = false;
                    self.take()?;
                }
                '`' => {
                    plain = false;
                    self.backquotes()?;
                }
                '$' => {
                    plain = false;
                    if self.peek() == Some('(') {
                        self.command()?;
                    }
                }
                '\n' => plain = false,
                _ => {}
            }
        }
        let inside = start + 1..self.at - 1;
        Some(if plain { Value::Quoted(inside) } else { Value::Other(inside) })
    }

    /// Up to the closing backquote.
    fn backquotes(&mut self) -> Option<()> {
        loop {
            match self.take()? {
                '`' => return Some(()),
                '\\' => drop(self.take()?),
                _ => {}
            }
        }
    }

    /// From the parenthesis of `$(` to the one that closes it. Quotes inside protect parentheses; what
    /// is nested deeper in quotes is not looked into.
    fn command(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.take()? {
                '(' => depth += 1,
                ')' => {
                    depth -= 1;
                    if depth == 0 {
                        return Some(());
                    }
                }
                '\\' => drop(self.take()?),
                quote @ ('\'' | '"') => while self.take()? != quote {},
                _ => {}
            }
        }
    }
}
