//! The program that a script starts: it takes memory, writes to it, and says where it is.

use std::process::Command;

use nodewise_machine::{Bytes, NodeId};
use nodewise_syscall::{NodeBuffer, PageKind, Task};

use crate::nodes::{Nodes, PAGE};

/// Takes this many small pages, and describes them: the number of the first by address, and the node of each.
///
/// # Errors
/// The kernel gives no memory, or does not say where it is.
pub fn run(count: u64) -> Result<String, String> {
    let say = |error: nodewise_syscall::CallError| error.to_string();
    let buffer = NodeBuffer::new(Bytes::new(count * PAGE), PageKind::Small, None).map_err(say)?;
    let first = buffer.address() as u64 / PAGE;
    let nodes = Nodes::located(Task::CURRENT, first..first + count)?;
    let words = nodes.0.iter().map(|node| node.map_or("-".to_owned(), |node| node.to_string()));
    Ok([first.to_string()].into_iter().chain(words).collect::<Vec<_>>().join(" "))
}

/// Starts a command that ends in [`run`] and prints its text: the number of the first page, and the nodes.
///
/// # Errors
/// It fails.
pub fn started(mut command: Command) -> Result<(u64, Nodes), String> {
    let output = command.output().map_err(|error| format!("the program of a script: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    parse(&text).ok_or_else(|| {
        let complaint = String::from_utf8_lossy(&output.stderr);
        format!("the program of a script: {}: {text}{complaint}", output.status)
    })
}

fn parse(text: &str) -> Option<(u64, Nodes)> {
    let mut words = text.split_ascii_whitespace();
    let first = words.next()?.parse().ok()?;
    let node = |word: &str| match word {
        "-" => Some(None),
        number => Some(Some(NodeId::new(number.parse().ok()?))),
    };
    Some((first, Nodes(words.map(node).collect::<Option<_>>()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_read_back() {
        let (first, nodes) = parse("77 0 0 - 1\n").unwrap();
        assert_eq!((first, nodes.to_string()), (77, "0-1 on node 0, 3 on node 1".to_owned()));
        assert_eq!(parse(""), None);
        assert_eq!(parse("77 x"), None);
    }

    #[test]
    fn a_program_knows_its_pages() {
        // Without nodes the kernel has no call that locates pages.
        let Ok(text) = run(3) else { return };
        assert_eq!(parse(&text).unwrap().1.0.len(), 3);
    }
}
