//! The calls that set and show policies.

use std::ops::Range;

use nodewise_machine::{NodeId, NodeSet, PolicyMode};
use nodewise_model::oracle::calls::{self, ADDR, MEMS_ALLOWED, MOVE, MOVE_ALL, NODE, STRICT};
use nodewise_model::policy::interleave::{Cursor, Turns};
use nodewise_model::policy::set::Policy;

use super::call::{Call, PAGE, Stop, mask_bytes, rounded};
use super::space::{ALL, Backing, Vma};
use super::world::World;

/// The page that has an address.
fn page_at(address: u64) -> Range<u64> {
    let start = address - address % PAGE;
    start..start.saturating_add(PAGE)
}

impl World {
    /// Whether the machine's kernel takes a call of a thread, about these mappings.
    pub fn check(&self, call: &calls::Call, thread: u32, mappings: &[calls::Mapping]) -> Result<(), Stop> {
        let facts = &self.facts;
        let caller = calls::Caller {
            scope: facts.scope(),
            architecture: facts.architecture,
            online: &facts.online,
            with_memory: &facts.with_memory,
            nr_node_ids: facts.nr_node_ids,
            is_privileged: self.may_move_others(thread),
            policy: &self.own(thread).policy,
            mappings,
        };
        Ok(calls::check(call, &caller)?)
    }

    /// `set_mempolicy(2)`.
    pub fn set_policy(&mut self, call: &Call<'_>) -> Result<i64, Stop> {
        let (mode, mask) = (call.argument(0) as u32, call.node_mask(call.argument(1), call.argument(2))?);
        let process = self.process_of(call.thread())?;
        let policy = Policy::set(mode, &mask, self.facts.scope())?;
        self.settle(process, call.thread(), &ALL)?;
        if let Some(thread) = self.threads.get_mut(&call.thread()) {
            thread.own.policy = policy;
        }
        Ok(0)
    }

    /// `get_mempolicy(2)`.
    pub fn get_policy(&mut self, call: &Call<'_>) -> Result<i64, Stop> {
        let [mode_at, mask_at, maxnode, address, flags] = std::array::from_fn(|number| call.argument(number));
        let process = self.process_of(call.thread())?;
        let vmas = if flags & ADDR == 0 {
            Vec::new()
        } else {
            if flags & NODE != 0 {
                // The kernel reads the page, too.
                call.read(address, 1)?;
            }
            self.settle(process, call.thread(), &page_at(address))?
        };
        let checked = calls::Call::GetPolicy { has_mask: mask_at != 0, maxnode, address, flags };
        self.check(&checked, call.thread(), &self.checked_mappings(process, &vmas))?;
        let (mode, nodes) = if flags & MEMS_ALLOWED != 0 {
            (0, self.facts.with_memory.clone())
        } else {
            self.shown(process, call.thread(), vmas.first(), (address, flags))
        };
        if mode_at != 0 {
            call.write(mode_at, &mode.to_ne_bytes())?;
        }
        if mask_at != 0 {
            // As `check` has it: the largest number is rounded up to 0.
            let length = maxnode.wrapping_sub(1).checked_next_multiple_of(64).unwrap_or(0) / 8;
            call.write(mask_at, &mask_bytes(&nodes.to_words(0), length))?;
        }
        Ok(0)
    }

    /// The number and the nodes that the kernel shows of a policy.
    fn shown(
        &self,
        process: u32,
        thread: u32,
        vma: Option<&Vma>,
        (address, flags): (u64, u64),
    ) -> (u32, NodeSet) {
        let own = &self.own(thread).policy;
        let piece = vma.and_then(|vma| {
            self.pieces(process, vma).into_iter().find(|(bytes, _)| bytes.contains(&address))
        });
        let at_address = piece.and_then(|(_, policy)| policy).unwrap_or(Policy::DEFAULT);
        let policy = if flags & ADDR != 0 { &at_address } else { own };
        let reported = policy.reported_in_mask(self.facts.nr_node_ids);
        let number = match (flags & NODE != 0, flags & ADDR != 0) {
            (false, _) => u32::from(reported.mode.number() | reported.flags.bits()),
            (true, true) => {
                let node = vma.and_then(|vma| self.node_at(process, vma, address));
                node.unwrap_or(self.facts.first_node).number()
            }
            (true, false) => {
                let turns = Turns::new(own.mode, &own.nodes, &self.facts.weights);
                Cursor::new().step(&turns).map_or(0, NodeId::number)
            }
        };
        (number, reported.nodes)
    }

    /// `mbind(2)`.
    pub fn bind(&mut self, call: &Call<'_>) -> Result<i64, Stop> {
        let [address, length, mode, mask_at, maxnode, flags] =
            std::array::from_fn(|number| call.argument(number));
        let (mode, flags, mask) = (mode as u32, flags as u32, call.node_mask(mask_at, maxnode)?);
        let process = self.process_of(call.thread())?;
        let bytes = rounded(address, length);
        let vmas = self.settle(process, call.thread(), &bytes)?;
        let mut mappings = self.checked_mappings(process, &vmas);
        if flags & STRICT != 0 {
            self.add_pages(process, &vmas, &bytes, &mut mappings);
        }
        let checked = calls::Call::Bind { address, length, mode, mask: mask.clone(), flags };
        self.check(&checked, call.thread(), &mappings)?;
        let policy = Policy::set(mode, &mask, self.facts.scope())?;
        let asked = mask.read(self.facts.architecture.max_nodes())?;
        for vma in vmas.iter().filter(|vma| vma.backing != Backing::Kernel) {
            let keys = vma.keys(&vma.clip(&bytes));
            let moves = flags & (MOVE | MOVE_ALL) != 0 && !matches!(vma.backing, Backing::File(..));
            let source = vma.source().when_moved(self.facts.release);
            self.with_giver(process, call.thread(), vma.file(), |pages, giver| {
                if moves {
                    let target = policy.or(giver.policy).clone();
                    for keys in vma.resident_keys(&bytes) {
                        pages.move_where(&keys, |node| !asked.contains(node), &target, &source, giver);
                    }
                }
                pages.set_policy(keys, &policy);
            });
        }
        Ok(0)
    }

    /// The nodes of pages among these bytes, which a strict call looks at.
    fn add_pages(&self, process: u32, vmas: &[Vma], bytes: &Range<u64>, mappings: &mut [calls::Mapping]) {
        for mapping in mappings {
            let vma = vmas
                .iter()
                .find(|vma| vma.mapping.start <= mapping.bytes.start && mapping.bytes.end <= vma.mapping.end);
            let Some((vma, pages)) = vma.and_then(|vma| Some((vma, self.pages_of(process, vma)?))) else {
                continue;
            };
            let (start, end) = (mapping.bytes.start.max(bytes.start), mapping.bytes.end.min(bytes.end));
            if start >= end {
                continue;
            }
            let all = vma.keys(&(start..end));
            for keys in vma.resident_keys(&(start..end)) {
                for (range, home) in pages.homes.overlapping(&keys) {
                    // One page of a run stands for all where all of the run is among the bytes: its ends.
                    let (first, last) = (range.start.max(keys.start), range.end.min(keys.end) - 1);
                    for key in [first, last - last % PAGE] {
                        mapping.pages.insert(key - all.start + start, home.node);
                    }
                }
            }
        }
    }

    /// `set_mempolicy_home_node(2)`.
    pub fn set_home(&mut self, call: &Call<'_>) -> Result<i64, Stop> {
        let [address, length, node, flags, ..] =
            std::array::from_fn::<u64, 6, _>(|number| call.argument(number));
        let process = self.process_of(call.thread())?;
        let bytes = rounded(address, length);
        let vmas = self.settle(process, call.thread(), &bytes)?;
        let checked = calls::Call::SetHome { address, length, node, flags };
        self.check(&checked, call.thread(), &self.checked_mappings(process, &vmas))?;
        for vma in &vmas {
            let keys = vma.keys(&vma.clip(&bytes));
            self.with_giver(process, call.thread(), vma.file(), |pages, _| {
                for (range, policy) in pages.pieces(&keys) {
                    if let Some(mut policy) = policy.filter(|policy| policy.mode != PolicyMode::Default) {
                        // Checked above: the mode has a home.
                        let _ = policy.set_home(NodeId::new(node as u32));
                        pages.set_policy(range, &policy);
                    }
                }
            });
        }
        Ok(0)
    }
}
