//! Which release of the originals is imitated, and how faithfully.
//!
//! | variable | value | effect |
//! |---|---|---|
//! | `NODEWISE_NUMACTL_COMPAT` | `2.0.16` | the texts and options of 2.0.16, as Debian 12 has it |
//! | | unset, `2.0.19` | those of 2.0.19, as Debian 13 has it |
//! | `NODEWISE_STRICT_COMPAT` | `1` | also what the originals plainly do wrong |
//!
//! They are variables and not options, because the options are the originals' own: a script's
//! command line stays as it is.

use std::ffi::OsStr;

use nodewise_notation::number::Base;

use crate::numastat::line;

/// A release of the numactl package.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Release {
    /// 2.0.16, of 2022.
    V2_0_16,
    /// 2.0.19, of 2024.
    #[default]
    V2_0_19,
}

impl Release {
    /// The number as `--version` prints it.
    pub const fn number(self) -> &'static str {
        match self {
            Self::V2_0_16 => "2.0.16",
            Self::V2_0_19 => "2.0.19",
        }
    }

    /// The digits of numbers that name nodes, CPUs, processes and segments: 2.0.19 of Debian 13 is built with a
    /// C library that knows binary ones.
    pub(crate) const fn base(self) -> Base {
        match self {
            Self::V2_0_16 => Base::Prefixed,
            Self::V2_0_19 => Base::PrefixedOrBinary,
        }
    }

    /// The release that a variable's value names: every one up to 2.0.16 answers as 2.0.16 does, and
    /// what is not understood is the default.
    fn from_value(value: &OsStr) -> Self {
        let patch = value.to_str().and_then(|text| text.strip_prefix("2.0."));
        match patch.and_then(|patch| patch.parse::<u32>().ok()) {
            Some(patch) if patch <= 16 => Self::V2_0_16,
            _ => Self::V2_0_19,
        }
    }
}

/// The environment's settings for the imitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Settings {
    /// Whose texts and options hold.
    pub release: Release,
    /// Whether the originals' plain errors hold too (`docs/compat.md` lists them).
    pub strict: bool,
    /// `POSIXLY_CORRECT`: options end at the first operand also for the tools that permute.
    pub posixly_correct: bool,
    /// `NUMASTAT_WIDTH`: the most bytes on a line of numastat's tables.
    pub numastat_width: Option<usize>,
}

impl Settings {
    /// Reads the variables through `variable`, which is `std::env::var_os` in a program.
    pub fn from_variables(variable: impl Fn(&str) -> Option<std::ffi::OsString>) -> Self {
        let release = variable("NODEWISE_NUMACTL_COMPAT");
        let strict = variable("NODEWISE_STRICT_COMPAT");
        Self {
            release: release.map_or_else(Release::default, |value| Release::from_value(&value)),
            strict: strict.is_some_and(|value| !value.is_empty() && value != "0"),
            posixly_correct: variable("POSIXLY_CORRECT").is_some(),
            numastat_width: variable("NUMASTAT_WIDTH").map(|width| line::from_variable(&width)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(variables: &[(&str, &str)], release: Release, strict: bool) {
        let settings = Settings::from_variables(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
        });
        assert_eq!((settings.release, settings.strict), (release, strict), "{variables:?}");
    }

    #[test]
    fn the_newer_release_holds_until_the_older_is_asked_for() {
        check(&[], Release::V2_0_19, false);
        check(&[("NODEWISE_NUMACTL_COMPAT", "2.0.16")], Release::V2_0_16, false);
        check(&[("NODEWISE_NUMACTL_COMPAT", "2.0.14")], Release::V2_0_16, false);
        check(&[("NODEWISE_NUMACTL_COMPAT", "2.0.19")], Release::V2_0_19, false);
        check(&[("NODEWISE_NUMACTL_COMPAT", "latest")], Release::V2_0_19, false);
        check(&[("NODEWISE_NUMACTL_COMPAT", "")], Release::V2_0_19, false);
    }

    #[test]
    fn strictness_is_a_switch_of_its_own() {
        check(&[("NODEWISE_STRICT_COMPAT", "1")], Release::V2_0_19, true);
        check(&[("NODEWISE_STRICT_COMPAT", "0")], Release::V2_0_19, false);
        check(&[("NODEWISE_STRICT_COMPAT", "")], Release::V2_0_19, false);
    }
}
