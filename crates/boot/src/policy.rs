//! The value of `numa_policy=`: the policy that Raspberry Pi kernels give to new processes instead of the
//! usual one.
//!
//! # Source
//! The patch that brought the parameter to the Raspberry Pi kernels: it reads what the tmpfs option `mpol=`
//! takes, `MODE[=FLAG][:NODES]` (`Documentation/filesystems/tmpfs.rst`). The modes in two words are left
//! out: a blank ends a word of the command line.

use std::fmt;
use std::str::FromStr;

use nodewise_machine::NodeSet;
use nodewise_machine::printable::quote;

/// A default policy that such a kernel takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultPolicy {
    text: String,
    nodes: Option<NodeSet>,
}

/// Why a text is no default policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// A mode that there is not.
    #[error("{} is no policy: expected default, local, prefer, bind or interleave, as interleave or interleave:0-3", quote(.0))]
    Mode(String),
    /// A flag that there is not.
    #[error("{} is no flag of a policy: expected static or relative, as interleave=static:0-3", quote(.0))]
    Flag(String),
    /// A list that is none.
    #[error("{} is no list of nodes: expected as 0-3,6", quote(.0))]
    Nodes(String),
    /// Nodes where none are taken.
    #[error("{0} takes no nodes")]
    NoNodes(&'static str),
    /// A mode that works on nodes, without any.
    #[error("{mode} needs {what}, as {mode}:{example}")]
    NeedsNodes {
        /// The mode.
        mode: &'static str,
        /// What it needs.
        what: &'static str,
        /// Nodes that it would take.
        example: &'static str,
    },
}

/// How many nodes a mode takes.
#[derive(Clone, Copy)]
enum Takes {
    None,
    One,
    Some,
    /// All of them where it names none.
    AnyOrAll,
}

/// The modes.
const MODES: [(&str, Takes); 5] = [
    ("default", Takes::None),
    ("local", Takes::None),
    ("prefer", Takes::One),
    ("bind", Takes::Some),
    ("interleave", Takes::AnyOrAll),
];

impl DefaultPolicy {
    /// Pages of all nodes in turn: what makes use of emulated nodes.
    pub fn interleave() -> Self {
        Self { text: "interleave".to_owned(), nodes: None }
    }

    /// The nodes that it names; `None` where it names none.
    pub const fn nodes(&self) -> Option<&NodeSet> {
        self.nodes.as_ref()
    }

    /// The text behind `numa_policy=`.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for DefaultPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for DefaultPolicy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let (words, list) = match text.split_once(':') {
            Some((words, list)) => (words, Some(list)),
            None => (text, None),
        };
        let (word, flag) = words.split_once('=').map_or((words, None), |(word, flag)| (word, Some(flag)));
        let known = MODES.into_iter().find(|(mode, _)| *mode == word);
        let (mode, takes) = known.ok_or_else(|| PolicyError::Mode(word.to_owned()))?;
        if let Some(flag) = flag.filter(|flag| !["static", "relative"].contains(flag)) {
            return Err(PolicyError::Flag(flag.to_owned()));
        }
        let wrong = |list: &str| PolicyError::Nodes(list.to_owned());
        let nodes = list.map(|list| list.parse::<NodeSet>().map_err(|_| wrong(list))).transpose()?;
        if let (Some(list), true) = (list, nodes.as_ref().is_some_and(NodeSet::is_empty)) {
            return Err(wrong(list));
        }
        match (takes, nodes.as_ref().map(NodeSet::len)) {
            (Takes::None, Some(_)) => Err(PolicyError::NoNodes(mode)),
            (Takes::One, None | Some(2..)) => {
                Err(PolicyError::NeedsNodes { mode, what: "one node", example: "0" })
            }
            (Takes::Some, None) => Err(PolicyError::NeedsNodes { mode, what: "nodes", example: "0-3" }),
            _ => Ok(Self { text: text.to_owned(), nodes }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    fn check(text: &str, expected: Result<Option<&str>, &str>) {
        let read = text.parse::<DefaultPolicy>().map_err(|error| error.to_string());
        let nodes = read.map(|policy| policy.nodes().map(ToString::to_string));
        assert_eq!(nodes, expected.map(|nodes| nodes.map(str::to_owned)).map_err(str::to_owned), "{text}");
    }

    #[test]
    fn policies_are_read_as_a_mount_option_of_tmpfs() {
        check("interleave", Ok(None));
        check("interleave:0-3,6", Ok(Some("0-3,6")));
        check("interleave=static:0-3", Ok(Some("0-3")));
        check("bind=relative:1", Ok(Some("1")));
        check("prefer:2", Ok(Some("2")));
        check("local", Ok(None));
        check("default", Ok(None));
    }

    #[test]
    fn what_the_kernel_would_not_take_is_refused() {
        let modes = "expected default, local, prefer, bind or interleave, as interleave or interleave:0-3";
        check("bogus", Err(&format!("\"bogus\" is no policy: {modes}")));
        check("", Err(&format!("\"\" is no policy: {modes}")));
        check("Interleave", Err(&format!("\"Interleave\" is no policy: {modes}")));
        check("weighted interleave", Err(&format!("\"weighted interleave\" is no policy: {modes}")));
        let flags = "expected static or relative, as interleave=static:0-3";
        check("bind=balancing:0", Err(&format!("\"balancing\" is no flag of a policy: {flags}")));
        check("bind:", Err("\"\" is no list of nodes: expected as 0-3,6"));
        check("bind:a", Err("\"a\" is no list of nodes: expected as 0-3,6"));
        check("interleave:0:1", Err("\"0:1\" is no list of nodes: expected as 0-3,6"));
        check("local:0", Err("local takes no nodes"));
        check("bind", Err("bind needs nodes, as bind:0-3"));
        check("prefer", Err("prefer needs one node, as prefer:0"));
        check("prefer:0-1", Err("prefer needs one node, as prefer:0"));
    }

    proptest! {
        #[test]
        fn any_text_is_kept_as_it_is_or_refused(text in any::<String>(), near in "(interleave|bind|prefer)(=static)?(:[0-9,-]{0,5})?") {
            for text in [text, near] {
                if let Ok(policy) = text.parse::<DefaultPolicy>() {
                    prop_assert_eq!(policy.to_string(), text);
                }
            }
        }
    }
}
