//! A difference between the kernel and the model.

use std::fmt;

/// The aspect in which they differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aspect {
    /// The answer to a call.
    Answer,
    /// A policy that the kernel reports.
    Policy,
    /// Nodes of pages.
    Pages,
    /// Nodes that the program may use.
    Allowed,
    /// Counters of a node.
    Counters,
    /// Free pages in a pool of huge pages.
    Pools,
    /// Programs that the kernel kills.
    Kills,
    /// Charges and events of a control group.
    Limits,
    /// Pages that are swapped out.
    Swap,
    /// Page cache of a node.
    Cache,
    /// An interval of the model that is so wide that it says nothing.
    Width,
}

impl Aspect {
    /// Every aspect.
    pub const ALL: [Self; 11] = [
        Self::Answer,
        Self::Policy,
        Self::Pages,
        Self::Allowed,
        Self::Counters,
        Self::Pools,
        Self::Kills,
        Self::Limits,
        Self::Swap,
        Self::Cache,
        Self::Width,
    ];

    /// Its word in reports.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::Policy => "policy",
            Self::Pages => "pages",
            Self::Allowed => "allowed",
            Self::Counters => "counters",
            Self::Pools => "pools",
            Self::Kills => "kills",
            Self::Limits => "limits",
            Self::Swap => "swap",
            Self::Cache => "cache",
            Self::Width => "width",
        }
    }
}

/// Something that the kernel did and the model did not predict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub aspect: Aspect,
    /// Its subject: `the nodes of mapping 0`.
    pub what: String,
    pub kernel: String,
    pub model: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: the kernel has {}, the model {}", self.what, self.kernel, self.model)
    }
}

/// The reason why a script did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    Differs(Difference),
    /// It could not be played.
    Failed(String),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Differs(difference) => difference.fmt(f),
            Self::Failed(why) => f.write_str(why),
        }
    }
}

impl From<String> for Trouble {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

impl From<&str> for Trouble {
    fn from(why: &str) -> Self {
        Self::Failed(why.to_owned())
    }
}

impl From<Trouble> for String {
    fn from(trouble: Trouble) -> Self {
        trouble.to_string()
    }
}

/// Compares an aspect of the two.
///
/// # Errors
/// They differ.
pub fn alike<T: PartialEq + fmt::Display>(
    aspect: Aspect,
    what: &str,
    kernel: &T,
    model: &T,
) -> Result<(), Trouble> {
    if kernel == model {
        return Ok(());
    }
    let (kernel, model) = (kernel.to_string(), model.to_string());
    Err(Trouble::Differs(Difference { aspect, what: what.to_owned(), kernel, model }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_both() {
        assert_eq!(alike(Aspect::Answer, "mbind", &"EIO", &"EIO"), Ok(()));
        let trouble = alike(Aspect::Answer, "the answer to mbind", &"EIO", &"success").unwrap_err();
        assert_eq!(String::from(trouble), "the answer to mbind: the kernel has EIO, the model success");
    }
}
