//! Messages of a starting kernel about its memory, its nodes and its parameters.
//!
//! # Source
//! The kernel log: records of `/dev/kmsg` (`6,100,0,-;text`, Linux 3.5) or the lines of dmesg(1)
//! (`[    0.000000] text`). Worded alike from 4.18 to 6.18; the lines on fallback orders since 5.16.

use nodewise_machine::NodeId;

use super::digits;
use super::number::hex_digits;

/// Ranges of one kind that are kept at most: a kernel has room for 2048 blocks of memory.
const MOST: usize = 4096;

/// A range of addresses and the node it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeRange {
    /// The first byte.
    pub start: u64,
    /// The first byte behind it.
    pub end: u64,
    pub node: NodeId,
}

/// Facts found in the log.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct BootLog {
    /// Whether the beginning is there: what a log without it does not say may have been lost.
    pub whole: bool,
    /// The ranges of the firmware's table (SRAT), in its order.
    pub firmware: Vec<NodeRange>,
    /// The one range of a machine whose firmware names no nodes.
    pub only: Option<NodeRange>,
    /// The emulated nodes, in the order in which they were made.
    pub emulated: Vec<NodeRange>,
    /// RAM, with the nodes it came to.
    pub ram: Vec<NodeRange>,
    /// The fallback order of each node.
    pub fallback: Vec<(NodeId, Vec<NodeId>)>,
    /// Words of the command line that nothing in the kernel knows.
    pub unknown: Vec<String>,
    /// The policy that a Raspberry Pi kernel took in place of the kernel's own.
    pub policy: Option<String>,
    /// Whether a memory card's command queue is used.
    pub card_queue: bool,
}

/// Reads a log. Lines that say nothing of this are passed over.
pub fn parse(text: &str) -> BootLog {
    let mut log = BootLog::default();
    for line in text.lines() {
        if let Some(message) = message(line) {
            read(message, &mut log);
        }
    }
    log
}

impl BootLog {
    /// The log as a kernel writes it, with nothing in it but what is read here: no builder, and of the command
    /// line only what is about nodes.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |message: String| {
            text.push_str("[    0.000000] ");
            text.push_str(&message);
            text.push('\n');
        };
        let mem = |range: &NodeRange| format!("[mem {:#018x}-{:#018x}]", range.start, range.end - 1);
        if self.whole {
            line("Linux version (the rest is left out)".to_owned());
        }
        for range in &self.firmware {
            line(format!("ACPI: SRAT: Node {0} PXM {0} {1}", range.node, mem(range)));
        }
        if let Some(only) = &self.only {
            line(format!("NUMA: Faking a node at {}", mem(only)));
        }
        for range in &self.emulated {
            line(format!("Faking node {} at {}", range.node, mem(range)));
        }
        for range in &self.ram {
            line(format!("  node {:>3}: {}", range.node, mem(range)));
        }
        let unknown: Vec<&str> =
            self.unknown.iter().map(String::as_str).filter(|word| word.starts_with("numa")).collect();
        if !unknown.is_empty() {
            line(format!("Unknown kernel command line parameters \"{}\"", unknown.join(" ")));
        }
        for (node, order) in &self.fallback {
            let order: Vec<String> = order.iter().map(ToString::to_string).collect();
            line(format!("Fallback order for Node {node}: {}", order.join(" ")));
        }
        if let Some(policy) = &self.policy {
            line(format!("mempolicy: NUMA default policy overridden to '{policy}'"));
        }
        if self.card_queue {
            line("mmc0: Command Queue Engine enabled".to_owned());
        }
        text
    }
}

/// The text of a record or a line; `None` for the lines of a record's details.
fn message(line: &str) -> Option<&str> {
    if line.starts_with([' ', '\t']) {
        return None;
    }
    if let Some(rest) = line.strip_prefix('[') {
        return rest.split_once("] ").map(|(_, message)| message);
    }
    match line.split_once(';') {
        Some((head, message))
            if head.bytes().all(|byte| byte.is_ascii_digit() || b",-cC".contains(&byte)) =>
        {
            Some(message)
        }
        _ => Some(line),
    }
}

fn read(message: &str, log: &mut BootLog) {
    let add = |to: &mut Vec<NodeRange>, found: Option<NodeRange>| {
        to.extend(found.filter(|_| to.len() < MOST));
    };
    if message.starts_with("Linux version ") {
        // The log of another start before this one is not this one's.
        *log = BootLog { whole: true, ..BootLog::default() };
    } else if let Some(rest) = message.strip_prefix("ACPI: SRAT: Node ") {
        if !rest.contains("hotplug") && !rest.contains("non-volatile") {
            add(&mut log.firmware, node_and_range(rest));
        }
    } else if let Some((_, rest)) = message.split_once("Faking a node at ") {
        log.only = range(rest).map(|(start, end)| NodeRange { start, end, node: NodeId::new(0) });
    } else if let Some(rest) = message.strip_prefix("Faking node ") {
        add(&mut log.emulated, node_and_range(rest));
    } else if let Some(rest) = message.strip_prefix("  node ") {
        add(&mut log.ram, node_and_range(rest.trim_start()));
    } else if let Some(rest) = message.strip_prefix("Fallback order for Node ") {
        log.fallback.extend(fallback(rest).filter(|_| log.fallback.len() < MOST));
    } else if let Some(rest) = message.strip_prefix("Unknown kernel command line parameters \"") {
        let words = rest.split('"').next().unwrap_or_default();
        log.unknown = words.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect();
    } else if let Some((_, rest)) = message.split_once("NUMA default policy overridden to '") {
        log.policy = rest.split('\'').next().map(str::to_owned);
    } else if message.starts_with("mmc") && message.contains("Command Queue Engine enabled") {
        log.card_queue = true;
    }
}

/// A number, and further on a range: `0 PXM 0 [mem 0x00000000-0x0009ffff]`.
fn node_and_range(text: &str) -> Option<NodeRange> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let node = NodeId::new(text[..digits].parse().ok()?);
    let (start, end) = range(text)?;
    Some(NodeRange { start, end, node })
}

/// `[mem 0x00000000-0x0009ffff]`, whose last byte belongs to it.
fn range(text: &str) -> Option<(u64, u64)> {
    let (start, rest) = text.split_once("[mem 0x")?.1.split_once("-0x")?;
    let last = rest.split(']').next()?;
    let (start, last) = (hex_digits(start)?, hex_digits(last)?);
    let end = last.checked_add(1)?;
    (start < end).then_some((start, end))
}

/// `0: 0 2 1 3 `.
fn fallback(text: &str) -> Option<(NodeId, Vec<NodeId>)> {
    let (node, order) = text.split_once(':')?;
    let order: Option<Vec<NodeId>> =
        order.split_ascii_whitespace().take(MOST).map(|node| digits(node).map(NodeId::new)).collect();
    Some((NodeId::new(digits(node)?), order?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    /// Linux 6.12 with two nodes and `numa=fake=4 numa_policy=interleave`, shortened.
    const SAMPLE: &str = "\
[    0.000000] Linux version 6.12.107+deb13-amd64 (debian-kernel@lists.debian.org)
[    0.000000] ACPI: SRAT: Node 0 PXM 0 [mem 0x00000000-0x0009ffff]
[    0.000000] ACPI: SRAT: Node 1 PXM 1 [mem 0x30000000-0x5fffffff]
[    0.000000] ACPI: SRAT: Node 1 PXM 1 [mem 0x100000000-0x1ffffffff] hotplug
[    0.000000] Faking node 0 at [mem 0x0000000000001000-0x0000000018000fff] (384MB)
[    0.000000] Faking node 1 at [mem 0x0000000030000000-0x0000000047ffffff] (384MB)
[    0.000000] Early memory node ranges
[    0.000000]   node   0: [mem 0x0000000000001000-0x000000000009efff]
[    0.000000] Unknown kernel command line parameters \"nr_open=1048576 numa_policy=interleave\", will be passed to user space.
[    0.000000] Fallback order for Node 0: 0 2 1 3 
";

    fn range(start: u64, end: u64, node: u32) -> NodeRange {
        NodeRange { start, end, node: NodeId::new(node) }
    }

    #[test]
    fn nodes_ranges_and_words_are_found() {
        let log = parse(SAMPLE);
        assert!(log.whole);
        assert_eq!(log.firmware, [range(0, 0xa0000, 0), range(0x3000_0000, 0x6000_0000, 1)]);
        assert_eq!(log.emulated, [range(0x1000, 0x1800_1000, 0), range(0x3000_0000, 0x4800_0000, 1)]);
        assert_eq!(log.ram, [range(0x1000, 0x9f000, 0)]);
        assert_eq!(log.unknown, ["nr_open=1048576", "numa_policy=interleave"]);
        assert_eq!(log.fallback, [(NodeId::new(0), [0, 2, 1, 3].map(NodeId::new).to_vec())]);
    }

    #[test]
    fn records_say_the_same_as_lines() {
        let records: String = SAMPLE
            .lines()
            .enumerate()
            .map(|(at, line)| format!("5,{at},0,-;{}\n SUBSYSTEM=x\n", &line["[    0.000000] ".len()..]))
            .collect();
        assert_eq!(parse(&records), parse(SAMPLE));
    }

    #[test]
    fn what_is_written_down_is_what_is_read_and_no_more() {
        let log = parse(SAMPLE);
        let text = log.text();
        let kept = BootLog { unknown: vec!["numa_policy=interleave".to_owned()], ..log };
        assert_eq!(parse(&text), kept);
        assert!(!text.contains("debian") && !text.contains("nr_open"), "{text}");
        assert_eq!(BootLog::default().text(), "");
    }

    #[test]
    fn boards_say_more() {
        let log = parse(
            "[    0.000000] NUMA: Faking a node at [mem 0x0000000000000000-0x00000001ffffffff]\n\
             [    0.000000] mempolicy: NUMA default policy overridden to 'interleave:0-7'\n\
             [    2.000000] mmc0: Command Queue Engine enabled, 31 tags\n",
        );
        assert_eq!((log.whole, log.only), (false, Some(range(0, 8 << 30, 0))));
        assert_eq!((log.policy.as_deref(), log.card_queue), (Some("interleave:0-7"), true));
    }

    #[test]
    fn ranges_that_are_none_are_passed_over() {
        for text in [
            "[mem 0x5-0x1]",
            "[mem 0x0-0xffffffffffffffff]",
            "[mem 0x-0x]",
            "[mem 0xg-0x1]",
            "[mem 0x+5-0x+9]",
            "-[mem 0x1",
        ] {
            assert_eq!(parse(&format!("Faking node 0 at {text}\n")).emulated, [], "{text}");
        }
    }

    #[test]
    fn an_order_of_other_things_than_numbers_is_passed_over() {
        for text in ["+0: 0", "0: +0 1", "0: 0 -1", ": 0", "0: a"] {
            assert_eq!(parse(&format!("Fallback order for Node {text}\n")).fallback, [], "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_log_that_is_written_down_is_read_back(near in "(Linux version |ACPI: SRAT: Node [0-9] |NUMA: Faking a node at |Faking node [0-9] at |  node [0-9]: |Fallback order for Node [0-9]: |mmc0: Command Queue Engine enabled|[0-9 ]{0,5}|\\[mem 0x[0-9]{1,3}-0x[0-9]{3,9}\\]|\n){0,30}") {
            let log = parse(&near);
            prop_assert_eq!(parse(&log.text()), log);
        }

        #[test]
        fn any_log_is_survived(text in any::<String>(), near in "(\\[ 0\\] |5,1,0,-;|  node |Faking node |Fallback order for Node |Unknown kernel command line parameters \"|[0-9: ]|\\[mem 0x|-0x|\\]|\n){0,20}") {
            parse(&text);
            parse(&near);
        }

        #[test]
        fn a_range_that_is_printed_is_read_back(start in 0_u64..1 << 60, length in 1_u64..1 << 60, node in 0_u32..1024) {
            let line = format!("Faking node {node} at [mem {start:#018x}-{:#018x}] (1MB)\n", start + length - 1);
            prop_assert_eq!(parse(&line).emulated, [range(start, start + length, node)]);
        }
    }
}
