//! `nodewise numactl` and its kin: the tools of the numactl package, as verbs.

use nodewise_compat::Tool;

use crate::cli::Global;
use crate::cli::personality::Words;
use crate::failure::Outcome;
use crate::personality::by_verb;

/// Runs `numactl`.
pub fn numactl(words: &Words, global: &Global) -> Outcome {
    by_verb(Tool::Numactl, &words.words, global)
}

/// Runs `numastat`.
pub fn numastat(words: &Words, global: &Global) -> Outcome {
    by_verb(Tool::Numastat, &words.words, global)
}

/// Runs `migratepages`.
pub fn migratepages(words: &Words, global: &Global) -> Outcome {
    by_verb(Tool::Migratepages, &words.words, global)
}

/// Runs `migspeed`.
pub fn migspeed(words: &Words, global: &Global) -> Outcome {
    by_verb(Tool::Migspeed, &words.words, global)
}

/// Runs `memhog`.
pub fn memhog(words: &Words, global: &Global) -> Outcome {
    by_verb(Tool::Memhog, &words.words, global)
}
