//! Where the pages of shared memory are, and what policies they have.

use std::io::Write;

use nodewise_machine::{MemPolicy, ModeFlags, NodeId, NodeSet, PolicyMode};
use nodewise_syscall::error::ReadError;
use nodewise_syscall::{Errno, mempolicy, pages};

use super::Region;
use crate::release::{Release, Settings};

impl Region {
    /// Every page: its place in the file or segment and its address, in bytes.
    fn pages(&self) -> Result<impl Iterator<Item = (u64, usize)> + use<>, Errno> {
        let (address, length) = self.range()?;
        let offset = self.offset;
        let pages = pages::addresses(address, length, pages::page_size());
        Ok(pages.map(move |page| (offset + (page - address) as u64, page)))
    }

    fn end(&self) -> u64 {
        self.offset + self.length as u64
    }
}

/// Calls `print` with every run of equal values: start, end, and the value, in order; `next` is the
/// first value of the run behind it.
fn runs<T: PartialEq>(
    values: impl Iterator<Item = Result<(u64, T), Errno>>,
    end: u64,
    mut print: impl FnMut(u64, u64, &T, &T),
) -> Result<(), Errno> {
    let mut run: Option<(u64, T)> = None;
    for value in values {
        let (at, value) = value?;
        match &run {
            Some((_, same)) if *same == value => (),
            Some((start, old)) => {
                print(*start, at, old, &value);
                run = Some((at, value));
            }
            None => run = Some((at, value)),
        }
    }
    if let Some((start, last)) = run {
        print(start, end, &last, &last);
    }
    Ok(())
}

fn policy_at(page: usize) -> Result<MemPolicy, Errno> {
    mempolicy::policy_at(page).map_err(|error| match error {
        ReadError::Call(error) => error.errno,
        _ => Errno::EINVAL,
    })
}

/// `--dump`: the ranges that have a policy of their own.
pub(super) fn policies(region: &Region, settings: Settings, out: &mut dyn Write) -> Result<(), Errno> {
    let values = region.pages()?.map(|(at, page)| Ok((at, policy_at(page)?)));
    // 2.0.16 prints the nodes of the next range where the policy changes.
    let late = settings.strict && settings.release == Release::V2_0_16;
    runs(values, region.end(), |start, end, policy, next| {
        if policy.mode != PolicyMode::Default {
            let nodes = if late { &next.nodes } else { &policy.nodes };
            let nodes: String = nodes.iter().map(|node| format!("{node} ")).collect();
            let _ = writeln!(out, "{start:016x}-{end:016x}: {} : {nodes}", name(policy, settings.strict));
        }
    })
}

/// The name of a policy; the originals know no weights and no flags.
fn name(policy: &MemPolicy, strict: bool) -> String {
    let unknown = policy.flags != ModeFlags::NONE || policy.mode == PolicyMode::WeightedInterleave;
    if strict && unknown {
        return format!("[{}]", policy.mode.number() | policy.flags.bits());
    }
    policy.mode.word().to_owned()
}

/// `--dump-nodes`: the node of every page, which brings the page in.
pub(super) fn nodes(region: &Region, out: &mut dyn Write) -> Result<(), Errno> {
    let values = region.pages()?.map(|(at, page)| Ok((at, node_at(page)?)));
    runs(values, region.end(), |start, end, node, _| {
        let _ = writeln!(out, "{start:016x}-{end:016x}: {node}");
    })
}

fn node_at(page: usize) -> Result<NodeId, Errno> {
    mempolicy::node_at(page).map_err(|error| error.errno)
}

/// `--verify`: whether every page has the policy that was set, and is where it wants it. The status
/// is 1 where one is not; a preferred node may have been full.
pub(super) fn verify(region: &Region, settings: Settings, out: &mut dyn Write) -> Result<u8, Errno> {
    // The originals interleave without weights, and find that wrong.
    if settings.strict && region.asked == PolicyMode::WeightedInterleave {
        let (address, _) = region.range()?;
        // They bring every page in before they look at its policy.
        region.touch()?;
        let (found, expected) = (PolicyMode::Interleave.word(), region.asked.number());
        let _ = writeln!(out, "numactl verify {address:x}(0): wrong policy {found}, expected [{expected}]");
        return Ok(1);
    }
    let (address, _) = region.range()?;
    let mut check = Check { out, status: 0, address, next: None };
    for (_, page) in region.pages()? {
        let policy = policy_at(page)?;
        let expected = region.policy.as_ref().unwrap_or(&policy);
        let node = node_at(page)?;
        if !check.page(page, node, &policy, expected, settings.strict) {
            break;
        }
    }
    Ok(check.status)
}

/// `--verify` on its way through the pages, in the words of the originals.
struct Check<'o> {
    out: &'o mut dyn Write,
    status: u8,
    address: usize,
    /// The node of the next interleaved page.
    next: Option<NodeId>,
}

impl Check<'_> {
    fn wrong(&mut self, page: usize, what: &str) {
        let _ = writeln!(self.out, "numactl verify {page:x}({:x}): {what}", page - self.address);
        self.status = 1;
    }

    fn nodes(&mut self, name: &str, nodes: &NodeSet) {
        let nodes: String = nodes.iter().map(|node| format!("{node} ")).collect();
        let _ = writeln!(self.out, "{name}: {nodes}");
    }

    /// Looks at a page; `false` where the originals look no further.
    fn page(
        &mut self,
        page: usize,
        node: NodeId,
        policy: &MemPolicy,
        expected: &MemPolicy,
        strict: bool,
    ) -> bool {
        if policy.mode != expected.mode || policy.flags != expected.flags {
            let (found, expected) = (name(policy, strict), name(expected, strict));
            self.wrong(page, &format!("wrong policy {found}, expected {expected}"));
            return false;
        }
        if policy.nodes != expected.nodes {
            self.wrong(page, "mismatched node mask");
            self.nodes("expected", &expected.nodes);
            self.nodes("real", &policy.nodes);
        }
        let is_inside = policy.nodes.contains(node);
        match policy.mode {
            PolicyMode::Interleave => {
                if !is_inside {
                    self.wrong(page, &format!("interleave node out of range {node}"));
                }
                let next = self.next.unwrap_or(node);
                if node != next {
                    self.wrong(page, &format!("expected interleave node {next}, got {node}"));
                    return false;
                }
                let behind = policy.nodes.iter().find(|other| *other > node);
                self.next = behind.or_else(|| policy.nodes.first());
            }
            PolicyMode::Bind | PolicyMode::WeightedInterleave if !is_inside => {
                self.wrong(page, &format!("unexpected node {node}"));
                self.nodes("expected", &policy.nodes);
            }
            _ => (),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(values: &[u32], expected: &str) {
        let mut text = String::new();
        let values = (0..).zip(values).map(|(at, value)| Ok((at, *value)));
        let end = values.size_hint().1.unwrap_or(0) as u64;
        runs(values, end, |start, end, value, next| text.push_str(&format!("{start}-{end}:{value}>{next} ")))
            .unwrap();
        assert_eq!(text, expected);
    }

    #[test]
    fn equal_neighbours_are_one_run() {
        check(&[], "");
        check(&[1], "0-1:1>1 ");
        check(&[1, 1, 2, 2, 1], "0-2:1>2 2-4:2>1 4-5:1>1 ");
    }
}
