//! Nodes that are full: where pages come from then.

mod huge;

use std::thread;
use std::time::Duration;

pub use huge::huge_pages;

use nodewise_machine::{Bytes, CpuId, MemPolicy, NodeId, NodeSet, PolicyMode};
use nodewise_model::{BuiltAt, FallbackOrders, Memory, Policy, ZoneState};
use nodewise_syscall::{NodeBuffer, PageKind};

use super::counters::{Background, differs_twice};
use super::model::{Drawn, Touched, release, scope};
use crate::drawer::homes;
use crate::nodewise::Context;
use crate::setting::{self, Setting};
use crate::zoneinfo::{self, Reclaim, Zone};

/// Pages that a node has above its low watermark when a request begins, and what goes beyond its end.
const ROOM: u64 = 3000;
const BEYOND: u64 = 1500;
/// Pages that other tasks may take from a node, or give back to it, while a request runs.
const OTHERS: u64 = 64;
/// How often a node is looked at until its free memory stays as it is, and the time between.
const LOOKS: u32 = 100;
const BETWEEN_LOOKS: Duration = Duration::from_millis(30);
/// The most pages of a request, and the fewest.
const MOST: u64 = 24_000;
const FEWEST: u64 = 100;

/// The settings that are pinned down while nodes are filled. A CPU keeps pages from what was freed before, up
/// to an eighth of a zone, and takes what it needs in refills that grow: now both are as small as can be.
/// And no watermark is raised for a while because the kernel had to break up a block.
const PINNED: [(&str, &str); 3] = [
    ("/proc/sys/vm/percpu_pagelist_high_fraction", "1000000"),
    ("/proc/sys/vm/watermark_boost_factor", "0"),
    ("/proc/sys/kernel/numa_balancing", "0"),
];

/// A node is filled beyond its end under each policy: until then every page is where the model says, then it is
/// where the model says for a node that has none; the node yields at the page that the model says, as
/// far as refills of the CPU's lists and what was reclaimed leave it exact; and all is counted.
pub fn small_pages(context: &Context) -> Result<(), String> {
    let allowed = context.seen.nodes_with_memory();
    let nodes: Vec<NodeId> = allowed.iter().collect();
    if nodes.len() < 2 {
        // What goes beyond the only node ends the guest.
        return Ok(());
    }
    let _pinned: Vec<Setting> =
        PINNED.iter().map(|(path, value)| Setting::with(*path, value)).collect::<Result<_, _>>()?;
    // What kswapd could reclaim while the node fills up would let it give more than it had free.
    setting::write("/proc/sys/vm/drop_caches", "3")?;
    let mut random = context.random(5);
    let full = random.one(&nodes);
    let others: Vec<NodeId> = nodes.into_iter().filter(|node| *node != full).collect();
    let ballast = Ballast::leaving(full, ROOM)?;
    for (mode, both) in WAYS {
        let policy = match mode {
            PolicyMode::Local => MemPolicy::new(mode, NodeSet::new()),
            _ => MemPolicy::new(mode, [full].into_iter().chain(both.then(|| random.one(&others))).collect()),
        };
        if Policy::from_mem_policy(&policy, scope(context, &allowed)).is_err() {
            // A kernel that is too old for it.
            continue;
        }
        let homes = homes(&context.seen);
        let is_home = mode == PolicyMode::Local && homes.contains(&full);
        let cpu_node = if is_home { full } else { random.one(&homes) };
        let drawn = Drawn { policy, on_memory: random.percent(50), cpu_node, kib: 4 * MOST, huge: false };
        differs_twice(|| Filling::new(context, full, drawn.clone())?.play())?;
    }
    drop(ballast);
    Ok(())
}

/// The policies under which a node is filled, with one more node or alone.
const WAYS: [(PolicyMode, bool); 8] = [
    (PolicyMode::Preferred, false),
    (PolicyMode::PreferredMany, false),
    (PolicyMode::PreferredMany, true),
    (PolicyMode::Bind, false),
    (PolicyMode::Bind, true),
    (PolicyMode::Interleave, true),
    (PolicyMode::WeightedInterleave, true),
    (PolicyMode::Local, false),
];

/// The pages that a zone gives to anybody before it is at its low watermark.
fn above_low(zone: &ZoneState) -> u64 {
    zone.free.saturating_sub(zone.marks.low + zone.reserves[0])
}

/// Memory that takes the most of a node.
pub(super) struct Ballast(#[expect(dead_code, reason = "it is there to be there")] Vec<NodeBuffer>);

impl Ballast {
    /// Takes memory until a node has no more than this many pages above its low watermark: huge pages,
    /// because they are there sooner, and small ones for what is left.
    pub(super) fn leaving(node: NodeId, room: u64) -> Result<Self, String> {
        let mut taken = Vec::new();
        let policy = MemPolicy::new(PolicyMode::Bind, NodeSet::from_iter([node]));
        for (kind, unit) in [(PageKind::TransparentHuge, 2048), (PageKind::Small, 4)] {
            let zones = zoneinfo::zones()?;
            let own = zones.iter().map(|zone| &zone.state).filter(|zone| zone.node == node);
            let spare: u64 = own.map(above_low).sum();
            let kib = spare.saturating_sub(room) * 4 / unit * unit;
            if kib > 0 {
                let buffer = NodeBuffer::new(Bytes::from_kib(kib), kind, Some(&policy));
                taken.push(buffer.map_err(|error| error.to_string())?);
            }
        }
        Ok(Self(taken))
    }
}

/// A request that fills a node.
struct Filling<'a> {
    context: &'a Context,
    full: NodeId,
    drawn: Drawn,
}

/// Pages that a node has to give.
#[derive(Clone, Copy)]
enum Free {
    /// As many as it has, and this many more.
    As(i64),
    None,
    Plenty,
}

impl<'a> Filling<'a> {
    /// With as many pages as go a little beyond the end of the node, or stop short of the end of all that the
    /// policy may use: there the kernel ends programs.
    fn new(context: &'a Context, full: NodeId, drawn: Drawn) -> Result<Self, String> {
        let mut filling = Self { context, full, drawn };
        let zones = zoneinfo::zones()?;
        let given = |free: Free| -> Result<(u64, u64), String> {
            let runs = filling.played(&zones, free, 0, false)?.0;
            let of_full = runs.iter().filter(|(node, _)| *node == full.number());
            Ok((of_full.map(|(_, pages)| *pages).sum(), runs.iter().map(|(_, pages)| *pages).sum()))
        };
        let ((full_gives, all_give), (share, _)) = (given(Free::As(0))?, given(Free::Plenty)?);
        let pages = match full_gives {
            _ if all_give < MOST => all_give.saturating_sub(2 * filling.bound(&zones)).max(FEWEST),
            0 => BEYOND,
            _ => (full_gives * MOST / share + BEYOND).min(MOST),
        };
        filling.drawn.kib = 4 * pages;
        Ok(filling)
    }

    /// Fails where a page is elsewhere; returns what the counters say.
    fn play(&self) -> Result<Result<(), String>, String> {
        let Drawn { policy, cpu_node, .. } = &self.drawn;
        let what = format!("{policy} of a program on node {cpu_node}, while node {} fills up", self.full);
        let named = |why| format!("{what}: {why}");
        self.compare().map(|counted| counted.map_err(named)).map_err(named)
    }

    fn compare(&self) -> Result<Result<(), String>, String> {
        let look = || Ok((self.zones_at_rest()?, Reclaim::on(self.full)?));
        let ((zones, before), touched) = self.drawn.touch_after(self.context, look)?;
        let bound = self.bound(&zones) + Reclaim::on(self.full)?.since(before);
        let (with, without) =
            (self.nodes(&zones, Free::Plenty, &touched)?, self.nodes(&zones, Free::None, &touched)?);
        for (page, kernels) in touched.nodes.iter().enumerate() {
            if *kernels != with[page] && Some(kernels) != without.get(page) {
                let ours = (with[page], without.get(page));
                return Err(format!(
                    "page {page} is on node {kernels}, the model says {ours:?} (while it has room, when full)"
                ));
            }
        }
        let first = (0..with.len()).find(|page| touched.nodes[*page] != with[*page]).unwrap_or(with.len());
        let of_full = |nodes: &[u32]| nodes.iter().filter(|node| **node == self.full.number()).count() as u64;
        let ours = self.pages_of_full(&zones, Free::As(0), &touched)?;
        for (when, kernels) in [
            ("before the next takes over", of_full(&touched.nodes[..first])),
            ("in all", of_full(&touched.nodes)),
        ] {
            if kernels.abs_diff(ours) > bound {
                return Err(format!(
                    "the node gives {kernels} pages {when}, the model says {ours}, bound {bound}"
                ));
            }
        }
        self.compare_counters(&zones, &touched, of_full(&touched.nodes))
    }

    /// The zones once nothing takes or gives memory of the node: compaction, which the requests before have
    /// woken, takes whole free blocks (512 pages and more) out of their lists and gives them back a little later.
    fn zones_at_rest(&self) -> Result<Vec<Zone>, String> {
        let free = |zones: &[Zone]| -> u64 {
            zones
                .iter()
                .map(|zone| &zone.state)
                .filter(|state| state.node == self.full)
                .map(|own| own.free)
                .sum()
        };
        let mut zones = zoneinfo::zones()?;
        for _ in 0..LOOKS {
            thread::sleep(BETWEEN_LOOKS);
            let before = std::mem::replace(&mut zones, zoneinfo::zones()?);
            if free(&zones).abs_diff(free(&before)) < OTHERS / 4 {
                break;
            }
        }
        Ok(zones)
    }

    /// Checks that the counts follow from where the pages are: with a node that has as many to give
    /// as it gave.
    fn compare_counters(
        &self,
        zones: &[Zone],
        touched: &Touched,
        gave: u64,
    ) -> Result<Result<(), String>, String> {
        let mut more = 0;
        loop {
            let ours = self.pages_of_full(zones, Free::As(more), touched)?;
            if ours == gave {
                break;
            }
            more += gave as i64 - ours as i64;
            if more.unsigned_abs() > 2 * MOST {
                return Err(format!("the model's node never gives {gave} pages"));
            }
        }
        let (_, memory) = self.played(zones, Free::As(more), touched.address, false)?;
        let background = Background::beside_a_full_node(self.drawn.kib / 4);
        Ok(touched.gained.compare(memory.counters(), background).map_err(String::from))
    }

    /// How far the page at which the node yields may be from the model's: by what the lists of the CPUs have
    /// when it begins, and what that of its own may have when it ends, refills among them; by what the CPUs
    /// have counted on their own; and by what others take and give.
    fn bound(&self, zones: &[Zone]) -> u64 {
        let cpu = self.context.seen.cpus_of(self.drawn.cpu_node).first().map_or(0, CpuId::number);
        let own = zones.iter().filter(|zone| zone.state.node == self.full);
        own.map(|zone| zone.kept() + zone.most_kept_for(cpu) + zone.drift()).sum::<u64>() + OTHERS
    }

    fn pages_of_full(&self, zones: &[Zone], free: Free, touched: &Touched) -> Result<u64, String> {
        let (runs, _) = self.played(zones, free, touched.address, false)?;
        Ok(runs.iter().filter(|(node, _)| *node == self.full.number()).map(|(_, pages)| pages).sum())
    }

    /// The node of every page.
    fn nodes(&self, zones: &[Zone], free: Free, touched: &Touched) -> Result<Vec<u32>, String> {
        let (runs, _) = self.played(zones, free, touched.address, true)?;
        Ok(runs.iter().map(|(node, _)| *node).collect())
    }

    /// Plays the request in the model.
    fn played(
        &self,
        zones: &[Zone],
        free: Free,
        address: u64,
        one_by_one: bool,
    ) -> Result<(Vec<(u32, u64)>, Memory), String> {
        let mut states: Vec<_> = zones.iter().map(|zone| zone.state.clone()).collect();
        let mut own: Vec<_> = states.iter_mut().filter(|state| state.node == self.full).collect();
        match free {
            // The zone that has the most to give has this many more.
            Free::As(more) => {
                let richest = own.into_iter().max_by_key(|state| above_low(state));
                let richest = richest.ok_or("the node has a zone")?;
                richest.free = richest.free.saturating_add_signed(more);
            }
            Free::None => own.iter_mut().for_each(|state| state.free = 0),
            Free::Plenty => own.iter_mut().for_each(|state| state.free = 1 << 40),
        }
        let orders = FallbackOrders::from_machine(&self.context.seen, BuiltAt::Boot);
        let mut memory = Memory::new(states, orders, release(self.context));
        let runs = self.drawn.played(self.context, &mut memory, address, one_by_one)?;
        Ok((runs, memory))
    }
}
