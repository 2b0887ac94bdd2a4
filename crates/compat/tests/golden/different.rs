//! Where we answer otherwise than the original: `docs/compat.md` has a chapter on each. The names of
//! the functions are those of the chapters.

mod cases;
mod shown;

use nodewise_compat::Release;

use crate::answer::Answer;
use crate::record::Record;

/// A record in its file.
pub struct Context<'r> {
    pub file: &'r str,
    pub record: &'r Record,
    pub release: Release,
    /// The answer of `numactl -H` of the same release on the same machine, masked.
    pub hardware: Option<Answer>,
}

impl Context<'_> {
    /// Returns the expected answer where the settings are strict, given the recorded one, masked.
    pub fn expected_strictly(&self, recorded: &Answer) -> Answer {
        cases::even_strictly(self).unwrap_or_else(|| recorded.clone())
    }

    /// Returns the expected answer where the settings are not strict, given the recorded one, masked.
    pub fn expected(&self, recorded: &Answer) -> Answer {
        cases::different_answer(self).unwrap_or_else(|| shown::plain(self, recorded))
    }
}

/// Says how an answer is not the expected one.
pub fn difference(record: &Record, strict: bool, answer: &Answer, expected: &Answer) -> Option<String> {
    if answer == expected {
        return None;
    }
    let settings = if strict { "strict" } else { "plain" };
    Some(format!("{} ({settings}):\n  {answer:?}\nexpected\n  {expected:?}\n", record.cmd))
}
