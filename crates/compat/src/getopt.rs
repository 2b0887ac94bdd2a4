//! Command lines as GNU `getopt_long(3)` reads them.
//!
//! The tools' users write `--hard` for `--hardware`, `-lm0`, `-C0-3` and `--membind 1`; which of
//! these are right, and the line that a wrong one earns, is the C library's business in the
//! originals and this module's here.
//!
//! # Source
//! `getopt(3)`; the lines compared with those of the GNU C library 2.36.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use nodewise_machine::printable::printable;

use crate::release::Settings;

/// Whether an option has an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    None,
    /// Always one: `-mX`, `-m X`, `--membind=X`, `--membind X`.
    Required,
    /// Perhaps one, which then is part of the same word: `-dX`, `--debug=X`.
    Optional,
}

/// A long option.
#[derive(Clone, Copy, Debug)]
pub struct Long {
    /// Its name, without the hyphens.
    pub name: &'static str,
    pub argument: Argument,
    /// The character that it is reported as; long options with the same value are the same option.
    pub value: char,
}

/// A short option.
#[derive(Clone, Copy, Debug)]
pub struct Short {
    /// The letter, which is also what it is reported as.
    pub letter: char,
    pub argument: Argument,
}

/// The text between options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operands {
    /// The first operand ends the options: the rest is another program's command line.
    EndOptions,
    /// Options are taken from everywhere up to `--`.
    AnyPlace,
}

/// The options of a tool.
#[derive(Clone, Copy, Debug)]
pub struct Spec<'s> {
    pub shorts: &'s [Short],
    /// The long ones, in the order in which ambiguous ones are listed.
    pub longs: &'s [Long],
    pub operands: Operands,
}

impl Spec<'_> {
    /// The same where `POSIXLY_CORRECT` keeps options from being taken from behind operands.
    #[must_use]
    pub fn permuting(self, settings: Settings) -> Self {
        let operands = if settings.posixly_correct { Operands::EndOptions } else { self.operands };
        Self { operands, ..self }
    }
}

/// An option that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub value: char,
    pub argument: Option<OsString>,
}

/// The fault in a word of the command line. Displayed as the C library writes it, without the
/// program's name in front and without the line feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// No long option begins like this.
    Unrecognized(OsString),
    Ambiguous(OsString, Vec<&'static str>),
    /// A long option's argument is missing.
    LongNeeds(&'static str),
    /// A long option has none.
    LongHasNone(&'static str),
    Invalid(u8),
    /// A short option's argument is missing.
    ShortNeeds(char),
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unrecognized(word) => write!(f, "unrecognized option '--{}'", shown(word)),
            Self::Ambiguous(word, names) => {
                write!(f, "option '--{}' is ambiguous; possibilities:", shown(word))?;
                names.iter().try_for_each(|name| write!(f, " '--{name}'"))
            }
            Self::LongNeeds(name) => write!(f, "option '--{name}' requires an argument"),
            Self::LongHasNone(name) => write!(f, "option '--{name}' doesn't allow an argument"),
            Self::Invalid(letter) => {
                write!(f, "invalid option -- '{}'", shown(OsStr::from_bytes(&[*letter])))
            }
            Self::ShortNeeds(letter) => write!(f, "option requires an argument -- '{letter}'"),
        }
    }
}

fn shown(word: &OsStr) -> String {
    printable(&word.to_string_lossy()).into_owned()
}

/// A command line being read. After an error reading goes on with the next word or letter, as the C
/// library does: tools decide themselves whether to stop.
#[derive(Debug)]
pub struct Getopt<'a> {
    spec: Spec<'a>,
    words: &'a [OsString],
    at: usize,
    /// Letters of a word that are still to come.
    letters: &'a [u8],
    operands: Vec<&'a OsString>,
}

impl<'a> Getopt<'a> {
    /// Begins with the first word after the program's name.
    pub const fn new(words: &'a [OsString], spec: Spec<'a>) -> Self {
        Self { spec, words, at: 0, letters: &[], operands: Vec::new() }
    }

    /// Returns the words that are not options, in order: all operands once the options have come to an end.
    pub fn operands(self) -> Vec<OsString> {
        self.operands.into_iter().chain(&self.words[self.at..]).cloned().collect()
    }

    /// The next word, whatever it looks like: an argument is taken even when it begins with a hyphen.
    fn take_word(&mut self) -> Option<OsString> {
        let word = self.words.get(self.at)?;
        self.at += 1;
        Some(word.clone())
    }

    fn short(&mut self) -> Result<Found, Wrong> {
        let letter = self.letters[0];
        self.letters = &self.letters[1..];
        let known = self.spec.shorts.iter().find(|short| short.letter as u32 == u32::from(letter));
        let Some(Short { letter, argument }) = known.copied() else {
            return Err(Wrong::Invalid(letter));
        };
        if argument == Argument::None {
            return Ok(Found { value: letter, argument: None });
        }
        let joined = std::mem::take(&mut self.letters);
        let argument = match (joined, argument) {
            ([], Argument::Required) => Some(self.take_word().ok_or(Wrong::ShortNeeds(letter))?),
            ([], _) => None,
            (joined, _) => Some(OsStr::from_bytes(joined).to_owned()),
        };
        Ok(Found { value: letter, argument })
    }

    fn long(&mut self, word: &[u8]) -> Result<Found, Wrong> {
        let (name, joined) = match word.iter().position(|byte| *byte == b'=') {
            Some(at) => (&word[..at], Some(OsString::from_vec(word[at + 1..].to_vec()))),
            None => (word, None),
        };
        let long = find_long(self.spec.longs, name, word)?;
        let argument = match (joined, long.argument) {
            (Some(_), Argument::None) => return Err(Wrong::LongHasNone(long.name)),
            (None, Argument::Required) => Some(self.take_word().ok_or(Wrong::LongNeeds(long.name))?),
            (joined, _) => joined,
        };
        Ok(Found { value: long.value, argument })
    }
}

impl Iterator for Getopt<'_> {
    type Item = Result<Found, Wrong>;

    /// The next option, or what is wrong with it; `None` at the end of the options.
    fn next(&mut self) -> Option<Self::Item> {
        if !self.letters.is_empty() {
            return Some(self.short());
        }
        while let Some(word) = self.words.get(self.at) {
            match word.as_bytes() {
                b"--" => {
                    self.at += 1;
                    return None;
                }
                [b'-', b'-', long @ ..] => {
                    self.at += 1;
                    return Some(self.long(long));
                }
                [b'-', letters @ ..] if !letters.is_empty() => {
                    self.at += 1;
                    self.letters = letters;
                    return Some(self.short());
                }
                _ if self.spec.operands == Operands::EndOptions => return None,
                _ => {
                    self.at += 1;
                    self.operands.push(word);
                }
            }
        }
        None
    }
}

/// The option of this name, or the only one that begins like this. Several that mean the same are
/// one; of several that do not, those are listed that differ from the first.
fn find_long<'s>(longs: &'s [Long], name: &[u8], word: &[u8]) -> Result<&'s Long, Wrong> {
    if let Some(exact) = longs.iter().find(|long| long.name.as_bytes() == name) {
        return Ok(exact);
    }
    let mut fitting = longs.iter().filter(|long| long.name.as_bytes().starts_with(name));
    let word = || OsStr::from_bytes(word).to_owned();
    let first = fitting.next().ok_or_else(|| Wrong::Unrecognized(word()))?;
    let others: Vec<_> =
        fitting.filter(|other| (other.argument, other.value) != (first.argument, first.value)).collect();
    if others.is_empty() {
        return Ok(first);
    }
    Err(Wrong::Ambiguous(word(), std::iter::once(first).chain(others).map(|long| long.name).collect()))
}

#[cfg(test)]
mod tests;
