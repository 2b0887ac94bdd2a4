//! How the scheduler treats a thread, with the state of automatic balancing.
//!
//! # Source
//! `/proc/PID/sched` for the main thread, `/proc/PID/task/TID/sched` for each; the kernel must be built with
//! `SCHED_DEBUG`, and with `NUMA_BALANCING` for the lines of the latter:
//!
//! ```text
//! cat (10668, #threads: 1)
//! -------------------------------------------------------------------
//! se.nr_migrations                             :                    7
//! mm->numa_scan_seq                            :                    2
//! numa_pages_migrated                          :                 5203
//! numa_preferred_nid                           :                   -1
//! current_node=0, numa_group_id=0
//! numa_faults node=0 task_private=5 task_shared=1 group_private=0 group_shared=0
//! ```
//!
//! Writing to the file resets its counters; it is only read.

use nodewise_machine::NodeId;
use nodewise_machine::id::Id as _;

use super::{Parsed, digits, lines};

/// More nodes than a machine can have.
const MOST_NODES: usize = crate::limits::MOST_NODES;

/// The fields that are used here. `None`: the kernel does not say.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Sched {
    /// How often the thread changed CPUs: `se.nr_migrations`.
    pub cpu_changes: Option<u64>,
    /// Passes of balancing over the address space: `mm->numa_scan_seq`.
    pub scans: Option<u64>,
    /// Pages that this thread's faults moved: `numa_pages_migrated`.
    pub migrated_pages: Option<u64>,
    /// The node where it faults most: `numa_preferred_nid`; `None` also before the kernel has chosen one.
    pub preferred: Option<NodeId>,
    /// Faults of balancing by node of the page, decayed, in the kernel's order.
    pub faults: Vec<NodeFaults>,
}

/// Faults of a thread on the pages of one node, decayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeFaults {
    pub node: NodeId,
    /// The same thread touched the page last.
    pub private: u64,
    /// Another thread did.
    pub shared: u64,
}

impl Sched {
    /// Whether the kernel has automatic balancing, on or off.
    pub fn has_balancing(&self) -> bool {
        self.scans.is_some() || self.migrated_pages.is_some() || !self.faults.is_empty()
    }
}

/// Reads the fields above; others are passed over. The name in the first line may hold line feeds and what looks
/// like a field, but is too short for the row of dashes, behind which fields begin.
pub fn parse(text: &str) -> Parsed<Sched> {
    let mut parsed = Parsed::<Sched>::default();
    let mut begun = false;
    for (number, line) in lines(text) {
        if begun {
            if let Err(expected) = parsed.value.take(line) {
                parsed.problems.add(number, expected, line.trim());
            }
        }
        begun |= line.len() >= 20 && line.bytes().all(|byte| byte == b'-');
    }
    if !begun {
        parsed.problems.add(1, "a row of dashes", text.lines().next().unwrap_or_default());
    }
    parsed
}

impl Sched {
    fn take(&mut self, line: &str) -> Result<(), &'static str> {
        if let Some(rest) = line.strip_prefix("numa_faults ") {
            let faults = faults(rest).ok_or("node=, task_private= and task_shared= with numbers")?;
            if self.faults.len() < MOST_NODES {
                self.faults.push(faults);
            }
            return Ok(());
        }
        let Some((name, value)) = line.split_once(':') else { return Ok(()) };
        let count = || digits(value.trim()).map(Some).ok_or("a number");
        match name.trim_end() {
            "se.nr_migrations" => self.cpu_changes = count()?,
            "mm->numa_scan_seq" => self.scans = count()?,
            "numa_pages_migrated" => self.migrated_pages = count()?,
            "numa_preferred_nid" => {
                self.preferred = match value.trim() {
                    "-1" => None,
                    node => Some(node_id(node).ok_or("a node or -1")?),
                }
            }
            _ => (),
        }
        Ok(())
    }
}

fn node_id(text: &str) -> Option<NodeId> {
    digits(text).filter(|node| *node < NodeId::LIMIT).map(NodeId::new)
}

fn faults(text: &str) -> Option<NodeFaults> {
    let mut words = text.split_ascii_whitespace();
    let mut value = |name: &str| words.next()?.strip_prefix(name)?.strip_prefix('=');
    let node = node_id(value("node")?)?;
    Some(NodeFaults {
        node,
        private: digits(value("task_private")?)?,
        shared: digits(value("task_shared")?)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

    const DASHES: &str = "-------------------------------------------------------------------\n";

    #[test]
    fn the_state_of_balancing_is_read() {
        let text = format!(
            "x (7, #threads: 1)\n{DASHES}se.exec_start                                :       2264013.697617\nse.nr_migrations : 7\nmm->numa_scan_seq : 2\nnuma_pages_migrated : 5203\nnuma_preferred_nid : 1\ntotal_numa_faults : 9\ncurrent_node=0, numa_group_id=238\nnuma_faults node=0 task_private=5 task_shared=1 group_private=0 group_shared=0\nnuma_faults node=1 task_private=0 task_shared=3 group_private=0 group_shared=0\n"
        );
        let parsed = parse(&text);
        assert!(parsed.problems.is_empty(), "{:?}", parsed.problems);
        let sched = parsed.value;
        assert_eq!((sched.cpu_changes, sched.scans, sched.migrated_pages), (Some(7), Some(2), Some(5203)));
        assert_eq!(sched.preferred, Some(NodeId::new(1)));
        let faults = |node, private, shared| NodeFaults { node: NodeId::new(node), private, shared };
        assert_eq!(sched.faults, [faults(0, 5, 1), faults(1, 0, 3)]);
    }

    #[test]
    fn a_kernel_without_balancing_says_nothing_of_it() {
        let sched = parse(&format!("x (7, #threads: 1)\n{DASHES}se.nr_migrations : 0\n")).value;
        assert_eq!((sched.cpu_changes, sched.has_balancing()), (Some(0), false));
        assert_eq!(parse(&format!("x\n{DASHES}numa_preferred_nid : -1\n")).value.preferred, None);
    }

    #[test]
    fn a_name_cannot_pass_for_a_field() {
        let text = format!("\nse.nr_migrations:9 (7, #threads: 1)\n-------\n{DASHES}se.nr_migrations : 1\n");
        assert_eq!(parse(&text).value.cpu_changes, Some(1));
        assert_eq!(parse("x (7)\nse.nr_migrations : 1\n").value, Sched::default());
    }

    #[test]
    fn a_bad_line_costs_one_line() {
        let text = format!(
            "{DASHES}se.nr_migrations : -1\nnuma_preferred_nid : 99999999\nnuma_faults node=x\nmm->numa_scan_seq : 4\n"
        );
        let parsed = parse(&text);
        assert_eq!((parsed.problems.count(), parsed.value.scans), (3, Some(4)));
    }

    proptest! {
        #[test]
        fn print_then_parse_is_identity(n in any::<[u64; 3]>(), preferred in prop::option::of(0u32..1024), faults in prop::collection::vec((0u32..1024, any::<u64>(), any::<u64>()), 0..5)) {
            let node = preferred.map_or_else(|| "-1".to_owned(), |node| node.to_string());
            let lines: String = faults.iter().map(|(node, private, shared)| format!("numa_faults node={node} task_private={private} task_shared={shared} group_private=0 group_shared=0\n")).collect();
            let text = format!("x (7, #threads: 1)\n{DASHES}se.nr_migrations   :  {}\nmm->numa_scan_seq : {}\nnuma_pages_migrated : {}\nnuma_preferred_nid : {node}\n{lines}", n[0], n[1], n[2]);
            let parsed = parse(&text);
            prop_assert!(parsed.problems.is_empty());
            let faults = faults.into_iter().map(|(node, private, shared)| NodeFaults { node: NodeId::new(node), private, shared }).collect();
            prop_assert_eq!(parsed.value, Sched { cpu_changes: Some(n[0]), scans: Some(n[1]), migrated_pages: Some(n[2]), preferred: preferred.map(NodeId::new), faults });
        }

        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>(), near in "(-{0,30}\n|numa_faults node=[0-9x]{0,11} task_private=[0-9]{0,3}\n|se.nr_migrations:[0-9 -]{0,4}\n){0,6}") {
            let _ = parse(&text);
            let _ = parse(&near);
        }
    }
}
