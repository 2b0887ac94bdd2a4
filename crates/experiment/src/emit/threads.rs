//! How a program gets its number of threads: by the variables that libraries look at, or in its own
//! words.

use crate::command::environment::THREAD_VARIABLES;
use crate::executor::Arm;

/// How the number of threads goes with a placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Threads {
    Untold,
    Variables(u32),
    /// In the words of the program, which hold the number.
    Words(u32),
}

impl Threads {
    /// The number of threads that an arm of a study passes to its program.
    pub(super) fn from_arm(arm: &Arm) -> Self {
        let told = THREAD_VARIABLES.iter().any(|name| arm.environment.contains_key(*name));
        match arm.threads {
            None => Self::Untold,
            Some(count) if told => Self::Variables(count),
            Some(count) => Self::Words(count),
        }
    }

    /// The number.
    pub(super) const fn count(self) -> Option<u32> {
        match self {
            Self::Untold => None,
            Self::Variables(count) | Self::Words(count) => Some(count),
        }
    }

    /// The number where the words of the program hold it.
    pub(super) const fn in_words(self) -> Option<u32> {
        match self {
            Self::Words(count) => Some(count),
            Self::Untold | Self::Variables(_) => None,
        }
    }

    /// The variables with the number.
    pub(super) fn variables(self) -> impl Iterator<Item = (&'static str, u32)> {
        let count = match self {
            Self::Variables(count) => Some(count),
            Self::Untold | Self::Words(_) => None,
        };
        THREAD_VARIABLES.into_iter().filter_map(move |name| Some((name, count?)))
    }

    /// The variables as a shell, systemd, `env`, container engines and launchers write them: `NAME=4`.
    pub(super) fn assignments(self) -> Vec<String> {
        self.variables().map(|(name, count)| format!("{name}={count}")).collect()
    }
}
