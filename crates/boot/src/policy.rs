//! The value of `numa_policy=`: the policy that Raspberry Pi kernels give to new processes instead of the
//! usual one.
//!
//! # Source
//! The patch that brought the parameter to the Raspberry Pi kernels: it reads what the tmpfs option `mpol=`
//! takes, `MODE[=FLAG][:NODES]` (`Documentation/filesystems/tmpfs.rst`). The modes in two words are left
//! out: a blank ends a word of the command line.

use std::fmt;
use std::str::FromStr;

use nodewise_machine::policy::PolicyError;
use nodewise_machine::{MemPolicy, ModeFlags, NodeSet, PolicyMode};

/// A default policy that such a kernel takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultPolicy(MemPolicy);

/// The forms to choose from.
const FORMS: &str = "default, local, prefer:0, bind:0-3, interleave or interleave:0-3, with static or \
                     relative as in interleave=static:0-3";

impl DefaultPolicy {
    /// Pages of all nodes in turn: what makes use of emulated nodes.
    pub const fn interleave() -> Self {
        Self(MemPolicy::new(PolicyMode::Interleave, NodeSet::new()))
    }

    /// The nodes that it names; none where it names none.
    pub const fn nodes(&self) -> &NodeSet {
        &self.0.nodes
    }
}

impl fmt::Display for DefaultPolicy {
    /// Writes the text behind `numa_policy=`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for DefaultPolicy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let fail = |expected: &str| PolicyError { text: text.to_owned(), expected: expected.to_owned() };
        let policy: MemPolicy = text.parse().map_err(|_| fail(FORMS))?;
        // A list that is there and empty is none of the kernel's.
        if !takes_flags(policy.flags) || text.ends_with(':') {
            return Err(fail(FORMS));
        }
        let refused = match (policy.mode, policy.nodes.len()) {
            (PolicyMode::Default, 1..) => Some("default without nodes"),
            (PolicyMode::Local, 1..) => Some("local without nodes"),
            (PolicyMode::Local, 0) if policy.flags != ModeFlags::NONE => {
                Some("local without static or relative")
            }
            (PolicyMode::Preferred, 0 | 2..) => Some("one node, as in prefer:0"),
            (PolicyMode::Bind, 0) => Some("nodes, as in bind:0-3"),
            (PolicyMode::PreferredMany | PolicyMode::WeightedInterleave, _) => Some(FORMS),
            _ => None,
        };
        refused.map_or(Ok(Self(policy)), |expected| Err(fail(expected)))
    }
}

/// Whether the flags are none, or one of those that a mount option has.
fn takes_flags(flags: ModeFlags) -> bool {
    [ModeFlags::NONE, ModeFlags::STATIC_NODES, ModeFlags::RELATIVE_NODES].contains(&flags)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    fn check(text: &str, expected_nodes: &str) {
        let policy: DefaultPolicy = text.parse().unwrap();
        assert_eq!(
            (policy.to_string().as_str(), policy.nodes().to_string().as_str()),
            (text, expected_nodes)
        );
    }

    fn refuse(text: &str, expected: &str) {
        let error = text.parse::<DefaultPolicy>().unwrap_err().to_string();
        assert_eq!(error, format!("\"{text}\" is not a memory policy: expected {expected}"));
    }

    #[test]
    fn policies_are_read_as_a_mount_option_of_tmpfs() {
        check("interleave", "");
        check("interleave:0-3,6", "0-3,6");
        check("interleave=static:0-3", "0-3");
        check("bind=relative:1", "1");
        check("prefer:2", "2");
        check("local", "");
        check("default", "");
        assert_eq!("interleave".parse(), Ok(DefaultPolicy::interleave()));
    }

    #[test]
    fn what_the_kernel_would_not_take_is_refused() {
        for text in [
            "bogus",
            "",
            "Interleave",
            "weighted interleave:0-1",
            "prefer (many):0",
            "bind=balancing:0",
            "bind=static|relative:0",
            "bind:",
            "bind:a",
            "interleave:",
            "interleave:0:1",
        ] {
            refuse(text, FORMS);
        }
        refuse("local:0", "local without nodes");
        refuse("local=static", "local without static or relative");
        refuse("default:0", "default without nodes");
        refuse("bind", "nodes, as in bind:0-3");
        refuse("prefer", "one node, as in prefer:0");
        refuse("prefer:0-1", "one node, as in prefer:0");
    }

    proptest! {
        #[test]
        fn any_text_is_refused_or_written_so_that_it_is_read_again(text in any::<String>(), near in "(interleave|bind|prefer|local)(=static)?(:[0-9,-]{0,5})?") {
            for text in [text, near] {
                if let Ok(policy) = text.parse::<DefaultPolicy>() {
                    prop_assert_eq!(policy.to_string().parse(), Ok(policy));
                }
            }
        }
    }
}
