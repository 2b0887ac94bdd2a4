//! A reading in words: what the text of `stat` and the screens of `top` share.

use std::collections::BTreeMap;
use std::time::Duration;

use nodewise_diagnose::sample::{Denied, Unread};
use nodewise_diagnose::{CpuTime, Window};
use nodewise_machine::check::node_names;
use nodewise_machine::order::Order as _;
use nodewise_machine::printable::visible;
use nodewise_machine::{Bytes, CpuSet, NodeSet};

use super::{DeviceRow, ProcessRow, Running, ServiceRow};
use crate::digest::counts::plural;

/// A share below this is not worth a word: it is left out of a list of nodes, and no filter finds it.
pub const LEAST_SHARE: f64 = 0.005;

/// The window in words: `in 1 s`, `since boot, 3 h 12 min ago`.
pub fn window(running: &Running) -> String {
    match running.window {
        Window::Interval(length) => format!("in {:.1} s", length.as_secs_f64()),
        Window::SinceBoot(Some(length)) => format!("since boot, {} ago", duration(length)),
        Window::SinceBoot(None) => "since boot".to_owned(),
    }
}

/// A time in its two largest units: `3 h 12 min`.
pub fn duration(time: Duration) -> String {
    let minutes = time.as_secs() / 60;
    match (minutes / (24 * 60), minutes / 60 % 24, minutes % 60) {
        (0, 0, 0) => format!("{} s", time.as_secs()),
        (0, 0, minutes) => format!("{minutes} min"),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

/// A share in percent: `74 %`; below ten with one decimal.
pub fn percent(share: f64) -> String {
    format!("{} %", percent_number(share))
}

/// The same without its sign, for columns whose head has it.
pub fn percent_number(share: f64) -> String {
    short(share * 100.0)
}

/// A number, with one decimal below ten.
pub fn short(value: f64) -> String {
    if value > 0.0 && value < 9.95 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// A rate or a count: `81,203`; below ten with one decimal.
pub fn grouped(value: f64) -> String {
    let digits = short(value);
    if digits.contains('.') {
        return digits;
    }
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 && digit.is_ascii_digit() {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The user by name; by number where it has none.
pub fn user(row: &ProcessRow) -> Option<String> {
    let name = row.user_name.as_ref().map(|name| visible(name).into_owned());
    name.or_else(|| row.user.map(|user| user.to_string()))
}

/// The nodes where it ran, by share; where that is not known, those that it may use.
pub fn runs_on(row: &ProcessRow) -> String {
    match (&row.cpu, row.window) {
        (Some(cpu), Window::Interval(_)) if !cpu.used.is_zero() => by_node(cpu),
        _ => match &row.reach {
            Some(reach) if !reach.is_empty() => format!("may use {reach}"),
            _ => String::new(),
        },
    }
}

/// The nodes of CPU time, by share.
pub fn by_node(cpu: &CpuTime) -> String {
    let certain = cpu.certain.iter().filter_map(|(node, time)| Some((cpu.share(*time)?, node.number())));
    let mut parts: Vec<String> =
        largest(certain).map(|(share, node)| format!("{node}: {}", percent(share))).collect();
    if let Some(unsure) = cpu.share(cpu.unsure).filter(|share| *share >= LEAST_SHARE) {
        parts.push(format!("unsure {}", percent(unsure)));
    }
    parts.join(", ")
}

/// The nodes of its memory, by share.
pub fn memory_on(row: &ProcessRow) -> String {
    let Some(shares) = row.memory_shares() else {
        return row.denied.map(denied).unwrap_or_default().to_owned();
    };
    if shares.is_empty() {
        return "none resident".to_owned();
    }
    let mark = if row.is_drawn() { "~" } else { "" };
    let shares = shares.into_iter().map(|(node, share)| (share, node.number()));
    let parts: Vec<String> =
        largest(shares).map(|(share, node)| format!("{node}: {mark}{}", percent(share))).collect();
    parts.join(", ")
}

/// Why it is not known on which nodes the memory of a process is, in a word or two.
pub const fn denied(denied: Denied) -> &'static str {
    match denied {
        Denied::Rights => "denied",
        Denied::NoFile => "no numa_maps",
        Denied::Unreadable => "unreadable",
    }
}

/// The nodes of a service's memory, by share.
pub fn charged_on(row: &ServiceRow) -> String {
    let (Some(memory), Some(size)) = (&row.memory, row.size()) else { return String::new() };
    let share = |size_of: &Bytes| size_of.get() as f64 / size.get() as f64;
    let shares = memory.iter().filter(|_| size.get() > 0).map(|(node, on)| (share(on), node.number()));
    let parts: Vec<String> =
        largest(shares).map(|(share, node)| format!("{node}: {}", percent(share))).collect();
    parts.join(", ")
}

/// Sentences about what no column has: balancing, pools of huge pages, pressure.
pub fn remarks(running: &Running) -> Vec<String> {
    let mut lines = Vec::new();
    let balancing = &running.balancing;
    if let Some(faults) = running.rate(balancing.hint_faults) {
        let share = balancing.local_share.map(|share| format!(", {} of them local", percent(share)));
        let moved = running.rate(balancing.migrated_pages);
        let moved = moved.map(|moved| format!(", {} pages moved per second", grouped(moved)));
        lines.push(match balancing.hint_faults {
            Some(0) => "balancing: no hint faults".to_owned(),
            _ => format!(
                "balancing: {} hint faults per second{}{}",
                grouped(faults),
                share.unwrap_or_default(),
                moved.unwrap_or_default()
            ),
        });
    }
    let mut pools: BTreeMap<(Bytes, u64, Option<u64>, Option<u64>), NodeSet> = BTreeMap::new();
    for row in &running.nodes {
        for pool in row.pools.iter().filter(|pool| pool.total > 0) {
            let key = (pool.page_size, pool.total, pool.free, pool.surplus.filter(|surplus| *surplus > 0));
            pools.entry(key).or_default().insert(row.node);
        }
    }
    for ((page_size, total, free, surplus), nodes) in pools {
        let each = if nodes.len() > 1 { " each" } else { "" };
        let free = free.map(|free| format!(", {free} free")).unwrap_or_default();
        let surplus = surplus.map(|surplus| format!(", {surplus} surplus")).unwrap_or_default();
        lines.push(format!(
            "huge pages of {page_size} on {}: {total}{each}{free}{surplus}",
            node_names(&nodes)
        ));
    }
    let pressure = &running.pressure;
    let waits =
        [("memory", pressure.memory_some), ("a CPU", pressure.cpu_some), ("a disk", pressure.io_some)];
    let waits: Vec<String> = waits
        .into_iter()
        .filter_map(|(thing, share)| Some(format!("for {thing} {} of the time", percent(share?))))
        .collect();
    if !waits.is_empty() {
        lines.push(format!("some task waited {}", waits.join(", ")));
    }
    lines
}

/// The nodes that took the interrupts of a device.
pub fn taken_by(row: &DeviceRow) -> String {
    let taken = row.change.by_node.iter().filter(|(_, count)| **count > 0).map(|(node, count)| {
        format!("node {node} {}", percent(*count as f64 / row.change.count.max(1) as f64))
    });
    taken.collect::<Vec<_>>().join(", ")
}

/// Queues that a cell names.
const NAMED_QUEUES: usize = 4;

/// The way of packets through a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Receive,
    Transmit,
}

/// The CPUs that the queues of a direction name: `off` where none names any, nothing where the kernel does not say it.
pub fn steering(row: &DeviceRow, direction: Direction) -> String {
    let queues = row.queues.iter().map(|steered| &steered.queue);
    let queues = queues.filter(|queue| queue.receives() == (direction == Direction::Receive));
    let known: Vec<&CpuSet> = queues.filter_map(|queue| queue.cpus.as_ref()).collect();
    let named: CpuSet = known.iter().flat_map(|cpus| cpus.iter()).collect();
    match (known.is_empty(), named.is_empty()) {
        (true, _) => String::new(),
        (false, true) => "off".to_owned(),
        (false, false) => named.to_string(),
    }
}

/// The queues that name CPUs of other nodes only.
pub fn remote_queues(row: &DeviceRow) -> String {
    let remote = row.queues.iter().filter(|steered| steered.is_remote == Some(true));
    let names: Vec<&str> = remote.map(|steered| steered.queue.name.as_str()).collect();
    let more = names.len().saturating_sub(NAMED_QUEUES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", names.iter().take(NAMED_QUEUES).copied().collect::<Vec<_>>().join(", "))
}

/// A fact that could not be read, why, and what would give it.
pub fn unread(unread: &Unread) -> String {
    let objects =
        if unread.objects > 1 { format!(" ({})", plural(unread.objects, "object")) } else { String::new() };
    let remedy = unread.remedy.as_ref().map(|remedy| format!("; {remedy}")).unwrap_or_default();
    format!("{}{objects}: {}{remedy}", unread.fact, unread.reason)
}

/// Shares that are worth a word, largest first, each with the number of its node.
fn largest(shares: impl Iterator<Item = (f64, u32)>) -> impl Iterator<Item = (f64, u32)> {
    let mut shares: Vec<(f64, u32)> = shares.filter(|(share, _)| *share >= LEAST_SHARE).collect();
    shares.order_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
    shares.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_thousands_apart() {
        let check = |value: f64, expected: &str| assert_eq!(grouped(value), expected);
        check(0.0, "0");
        check(0.44, "0.4");
        check(9.96, "10");
        check(999.4, "999");
        check(81_203.2, "81,203");
        check(1_234_567.0, "1,234,567");
        assert_eq!(percent(0.071), "7.1 %");
        assert_eq!(percent(6.11), "611 %");
    }
}
