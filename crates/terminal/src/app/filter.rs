//! Which processes are listed.

use nodewise_machine::printable::quote;
use nodewise_machine::{Bytes, NodeId};
use nodewise_view::digest::running::ProcessRow;
use nodewise_view::digest::running::words::LEAST_SHARE;

/// The forms of a term, for messages.
pub(crate) const FORMS: &str =
    "a part of a name, pid=N, user=USER, unit=TEXT, node=N, rss>SIZE or cpu>PERCENT";

/// Terms that must all hold.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Filter {
    text: String,
    terms: Vec<Term>,
}

#[derive(Clone, Debug, PartialEq)]
enum Term {
    /// Lower case.
    Name(String),
    Pid(u32),
    /// By name or by number.
    User(String),
    Unit(String),
    Node(NodeId),
    Resident(Bytes),
    /// A share of one CPU.
    Cpu(f64),
}

impl Filter {
    /// Reads a filter as it is typed.
    ///
    /// # Errors
    /// A term with a value that it cannot have.
    pub fn parse(text: &str) -> Result<Self, String> {
        let terms = text.split_whitespace().map(term).collect::<Result<_, _>>()?;
        Ok(Self { text: text.trim().to_owned(), terms })
    }

    /// A filter for the processes of a control group and of those below it.
    pub(crate) fn unit(path: &str) -> Self {
        Self { text: format!("unit={path}"), terms: vec![Term::Unit(path.to_lowercase())] }
    }

    /// The text that was typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn matches(&self, row: &ProcessRow) -> bool {
        self.terms.iter().all(|term| term.matches(row))
    }
}

fn term(word: &str) -> Result<Term, String> {
    let refused = || format!("{} is not a filter: expected {FORMS}", quote(word));
    let number = |text: &str| text.parse::<u32>().map_err(|_| refused());
    if let Some((key, value)) = word.split_once('=') {
        return match key {
            "pid" => number(value).map(Term::Pid),
            "user" if !value.is_empty() => Ok(Term::User(value.to_owned())),
            "node" => number(value).map(|node| Term::Node(NodeId::new(node))),
            "unit" if !value.is_empty() => Ok(Term::Unit(value.to_lowercase())),
            "name" if !value.is_empty() => Ok(Term::Name(value.to_lowercase())),
            _ => Err(refused()),
        };
    }
    if let Some((key, value)) = word.split_once('>') {
        let percent =
            || value.trim_end_matches('%').parse::<f64>().ok().filter(|percent| percent.is_finite());
        return match key {
            "rss" => value.parse().map(Term::Resident).map_err(|_| refused()),
            "cpu" => percent().map(|percent| Term::Cpu(percent / 100.0)).ok_or_else(refused),
            _ => Err(refused()),
        };
    }
    Ok(Term::Name(word.to_lowercase()))
}

impl Term {
    fn matches(&self, row: &ProcessRow) -> bool {
        match self {
            Self::Name(part) => row.name.to_lowercase().contains(part),
            Self::Pid(pid) => row.identity.pid.number() == *pid,
            Self::User(user) => is_user(row, user),
            Self::Unit(part) => row.group.as_ref().is_some_and(|group| group.to_lowercase().contains(part)),
            Self::Node(node) => uses(row, *node),
            Self::Resident(size) => row.resident.is_some_and(|resident| resident > *size),
            Self::Cpu(share) => row.cpu_share.is_some_and(|used| used > *share),
        }
    }
}

/// Whether a process is this user's: a name or a number.
fn is_user(row: &ProcessRow, user: &str) -> bool {
    row.user_name.as_deref() == Some(user) || row.user.is_some_and(|number| user.parse() == Ok(number))
}

/// Whether a process has memory on a node, or ran there.
fn uses(row: &ProcessRow, node: NodeId) -> bool {
    let memory = row.memory_shares().unwrap_or_default();
    let ran = row.cpu.as_ref().and_then(|cpu| cpu.share(*cpu.certain.get(&node)?));
    memory.iter().any(|(on, share)| *on == node && *share >= LEAST_SHARE)
        || ran.is_some_and(|share| share >= LEAST_SHARE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, proptest};

    #[test]
    fn terms_are_read_or_refused_with_what_would_be_right() {
        for text in ["", "postgres", "pid=7 user=0 user=alice node=2 unit=web name=x rss>1G cpu>5 cpu>0.5%"] {
            assert_eq!(Filter::parse(text).unwrap().text(), text);
        }
        for text in
            ["pid=x", "node=-1", "rss>", "cpu>much", "cpu>inf", "colour=red", "size>3", "unit=", "user="]
        {
            let refused = Filter::parse(text).unwrap_err();
            assert!(refused.contains("rss>SIZE"), "{refused}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in any::<String>()) {
            let _ = Filter::parse(&text);
        }
    }
}
