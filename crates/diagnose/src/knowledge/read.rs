//! Reads the file of programs: every key is checked, and a fault is named by its entry and key.

use std::collections::BTreeSet;

use nodewise_machine::Bytes;
use nodewise_machine::printable::{printable, quote};
use toml::{Table, Value};

use super::{Application, MemoryWord, OptionFor, OwnOption, ProgramKind, Sign};

/// The largest file that is read, in bytes.
const MOST_BYTES: usize = 1 << 20;
/// The longest text.
const LONGEST: usize = 400;
/// The most elements of a list, and the most entries.
const MOST: usize = 1000;

/// A fault in the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KnowledgeError {
    #[error("the file of programs is not TOML: {0}")]
    Syntax(String),
    #[error("the file of programs has {0} bytes, at most {MOST_BYTES} are read")]
    TooLarge(usize),
    #[error("the file of programs: expected {expected}")]
    Layout { expected: &'static str },
    #[error("entry {entry}, key {key}: expected {expected}")]
    Entry { entry: String, key: String, expected: String },
}

/// Reads a file of programs.
///
/// # Errors
/// The first fault.
pub fn read(text: &str) -> Result<Vec<Application>, KnowledgeError> {
    if text.len() > MOST_BYTES {
        return Err(KnowledgeError::TooLarge(text.len()));
    }
    let syntax = |error: toml::de::Error| KnowledgeError::Syntax(printable(error.message()).into_owned());
    let mut file: Table = toml::from_str(text).map_err(syntax)?;
    let layout = |expected| KnowledgeError::Layout { expected };
    let entries = match file.remove("program") {
        Some(Value::Array(entries)) if entries.len() <= MOST => entries,
        Some(Value::Array(_)) => return Err(layout("at most 1000 entries")),
        _ => return Err(layout("entries that begin with [[program]]")),
    };
    if !file.is_empty() {
        return Err(layout("nothing but entries that begin with [[program]]"));
    }
    let mut ids = BTreeSet::new();
    let mut programs = Vec::new();
    for (number, entry) in (1..).zip(entries) {
        let Value::Table(keys) = entry else { return Err(layout("entries that begin with [[program]]")) };
        let program = Keys::new(number, keys).application()?;
        if !ids.insert(program.id.clone()) {
            let expected = "an id that no other entry has".to_owned();
            return Err(KnowledgeError::Entry { entry: quote(&program.id), key: "id".to_owned(), expected });
        }
        programs.push(program);
    }
    Ok(programs)
}

/// The keys of an entry, or of a table in it.
struct Keys {
    /// The entry as errors name it.
    entry: String,
    /// The key that holds this table.
    within: Option<&'static str>,
    keys: Table,
}

type Read<T> = Result<T, KnowledgeError>;

impl Keys {
    fn new(number: usize, keys: Table) -> Self {
        let id = keys.get("id").and_then(Value::as_str);
        let entry = id.map_or_else(|| number.to_string(), quote);
        Self { entry, within: None, keys }
    }

    fn fault<T>(&self, key: &str, expected: impl Into<String>) -> Read<T> {
        let key = match self.within {
            Some(outer) => format!("{outer}: {}", printable(key)),
            None => printable(key).into_owned(),
        };
        Err(KnowledgeError::Entry { entry: self.entry.clone(), key, expected: expected.into() })
    }

    fn application(mut self) -> Read<Application> {
        let id = self.text("id")?;
        let is_id = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if !id.chars().all(is_id) {
            return self.fault("id", "small letters, digits and \"-\"");
        }
        let kinds = self.list("kinds")?.iter().map(|word| self.kind(word)).collect::<Read<Vec<_>>>()?;
        let emit = self.text_if_any("emit")?;
        let is_tool = |tool: &str| tool.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        if emit.as_deref().is_some_and(|tool| !is_tool(tool)) {
            return self.fault("emit", "a tool of nodewise run --emit");
        }
        let checked = self.text("checked")?;
        if !is_day(&checked) {
            return self.fault("checked", "a day, such as 2026-11-23");
        }
        let program = Application {
            id,
            name: self.text("name")?,
            kinds,
            signs: self.tables("recognise", true)?.into_iter().map(Self::sign).collect::<Read<_>>()?,
            memory: self.tables("memory", false)?.into_iter().map(Self::memory).collect::<Read<_>>()?,
            rule: self.text("rule")?,
            reason: self.text("reason")?,
            options: self.tables("option", false)?.into_iter().map(Self::option).collect::<Read<_>>()?,
            emit,
            obsolete: self.text_if_any("obsolete")?,
            sources: self.list("sources")?,
            checked,
        };
        self.finish()?;
        Ok(program)
    }

    fn sign(mut self) -> Read<Sign> {
        let sign = Sign {
            exe: self.list_if_any("exe")?,
            script: self.list_if_any("script")?,
            word: self.list_if_any("word")?,
            library: self.list_if_any("library")?,
            without: self.list_if_any("without")?,
        };
        // A library that is missing, or words that anyone can type, recognise nothing alone.
        if sign.exe.is_empty() && sign.library.is_empty() {
            return self.fault("exe", "file names of the program, or of a library that it has loaded");
        }
        if sign.exe.iter().chain(&sign.library).any(|pattern| pattern.trim_matches('*').is_empty()) {
            return self.fault("exe", "a name, not \"*\" alone");
        }
        self.finish()?;
        Ok(sign)
    }

    fn memory(mut self) -> Read<MemoryWord> {
        let word = self.text("word")?;
        let unit = match self.text("unit")?.as_str() {
            "B" => Bytes::new(1),
            "8KiB" => Bytes::from_kib(8),
            "KiB" => Bytes::from_kib(1),
            "MiB" => Bytes::from_mib(1),
            "GiB" => Bytes::from_gib(1),
            _ => return self.fault("unit", "B, KiB, 8KiB, MiB or GiB"),
        };
        let Some(before) = word.strip_suffix('*').filter(|text| !text.is_empty() && !text.contains('*'))
        else {
            return self.fault("word", "a text that ends in \"*\", which is the size");
        };
        let (before, next_before) = match before.split_once(' ') {
            Some((before, next)) => (before, Some(next)),
            None => (before, None),
        };
        let memory = MemoryWord {
            before: before.to_owned(),
            is_next: next_before.is_some(),
            next_before: next_before.unwrap_or_default().to_owned(),
            unit,
        };
        self.finish()?;
        Ok(memory)
    }

    fn option(mut self) -> Read<OwnOption> {
        let when = match self.text_if_any("when")?.as_deref() {
            None => OptionFor::Any,
            Some("node") => OptionFor::Node,
            Some("spread") => OptionFor::Spread,
            Some(_) => return self.fault("when", "node or spread"),
        };
        let option = OwnOption { file: self.text("file")?, text: self.text("text")?, when };
        self.finish()?;
        Ok(option)
    }

    fn kind(&self, word: &str) -> Read<ProgramKind> {
        match ProgramKind::ALL.into_iter().find(|kind| kind.word() == word) {
            Some(kind) => Ok(kind),
            None => {
                let words = ProgramKind::ALL.map(ProgramKind::word).join(", ");
                self.fault("kinds", format!("some of {words}; found {}", quote(word)))
            }
        }
    }

    /// A text that must be there.
    fn text(&mut self, key: &str) -> Read<String> {
        match self.text_if_any(key)? {
            Some(text) => Ok(text),
            None => self.fault(key, "a text; this key is missing"),
        }
    }

    fn text_if_any(&mut self, key: &str) -> Read<Option<String>> {
        match self.keys.remove(key) {
            None => Ok(None),
            Some(Value::String(text)) if is_text(&text) => Ok(Some(text)),
            Some(_) => self.fault(key, TEXT),
        }
    }

    /// A list that must be there, with an element at least.
    fn list(&mut self, key: &str) -> Read<Vec<String>> {
        let list = self.list_if_any(key)?;
        if list.is_empty() { self.fault(key, "a list of texts, at least one") } else { Ok(list) }
    }

    fn list_if_any(&mut self, key: &str) -> Read<Vec<String>> {
        let values = match self.keys.remove(key) {
            None => return Ok(Vec::new()),
            Some(Value::Array(values)) if !values.is_empty() && values.len() <= MOST => values,
            Some(_) => return self.fault(key, "a list of texts, such as [\"a\", \"b\"]"),
        };
        let texts = values.into_iter().map(|value| match value {
            Value::String(text) if is_text(&text) => Ok(text),
            _ => self.fault(key, TEXT),
        });
        texts.collect()
    }

    /// A list of tables: `[{ exe = ["x"] }]`.
    fn tables(&mut self, key: &'static str, must_be: bool) -> Read<Vec<Self>> {
        let values = match self.keys.remove(key) {
            None if must_be => return self.fault(key, "a list such as [{ ... }]; this key is missing"),
            None => return Ok(Vec::new()),
            Some(Value::Array(values)) if !values.is_empty() && values.len() <= MOST => values,
            Some(_) => return self.fault(key, "a list such as [{ ... }]"),
        };
        let tables = values.into_iter().map(|value| match value {
            Value::Table(keys) => Ok(Self { entry: self.entry.clone(), within: Some(key), keys }),
            _ => self.fault(key, "a list such as [{ ... }]"),
        });
        tables.collect()
    }

    /// Refuses keys that were not asked for.
    fn finish(&self) -> Read<()> {
        match self.keys.keys().next() {
            Some(key) => self.fault(key, "no such key: its name is not known"),
            None => Ok(()),
        }
    }
}

const TEXT: &str = "a text of 1 to 400 letters on one line";

fn is_text(text: &str) -> bool {
    !text.trim().is_empty() && text.len() <= LONGEST && printable(text) == text
}

fn is_day(text: &str) -> bool {
    let parts: Vec<Option<u32>> = text.split('-').map(|part| part.parse().ok()).collect();
    let [Some(year), Some(month), Some(day)] = parts[..] else { return false };
    text.len() == 10 && (2000..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day)
}
