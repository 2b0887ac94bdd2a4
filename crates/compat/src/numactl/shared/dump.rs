//! Where the pages of shared memory are, and what policies they have.

use std::io::Write;

use nodewise_machine::{MemPolicy, ModeFlags, NodeId, PolicyMode};
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
        let (found, expected) = (PolicyMode::Interleave.word(), region.asked.number());
        let _ = writeln!(out, "numactl verify {address:x}(0): wrong policy {found}, expected [{expected}]");
        return Ok(1);
    }
    let mut status = 0;
    for (at, page) in region.pages()? {
        let policy = policy_at(page)?;
        let expected = region.policy.as_ref().unwrap_or(&policy);
        if policy != *expected {
            let (found, expected) = (name(&policy, false), name(expected, false));
            let _ = writeln!(
                out,
                "{at:016x}: policy {found} of nodes {}, expected {expected} of nodes {}",
                policy.nodes,
                region.policy.as_ref().map(|policy| policy.nodes.to_string()).unwrap_or_default()
            );
            status = 1;
        }
        let binds =
            matches!(policy.mode, PolicyMode::Bind | PolicyMode::Interleave | PolicyMode::WeightedInterleave);
        let node = node_at(page)?;
        if binds && !policy.nodes.contains(node) {
            let _ = writeln!(out, "{at:016x}: on node {node}, expected one of nodes {}", policy.nodes);
            status = 1;
        }
    }
    Ok(status)
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
