//! Calls with any arguments: whether the kernel takes them, and with which error it refuses others.

use std::collections::{BTreeMap, BTreeSet};

use nodewise_machine::{Bytes, NodeId, NodeSet};
use nodewise_model::oracle::calls::{Call, Caller, Mapping, Process, check};
use nodewise_model::policy::mask::Bits;
use nodewise_model::ram::Architecture;
use nodewise_model::{Mask, Policy};
use nodewise_syscall::numbers::{self, Pointer};
use nodewise_syscall::{Errno, NodeBuffer, PageKind, PageLocation, Task, pages};
use rustix::process::Uid;
use rustix::thread::set_thread_res_uid;

use super::model::scope;
use crate::nodewise::Context;
use crate::random::Random;

/// Calls of each user in each guest.
const CALLS: u64 = 400;
const PAGE: u64 = 4096;
/// Those that are reported in full when many differ.
const MOST_TOLD: usize = 6;
/// Errors of different kinds that are drawn at least.
const FEWEST: usize = 4;
/// Pages of a mapping.
const PAGES: u64 = 4;
/// Mappings that are made until three are side by side.
const MOST_MAPPINGS: usize = 64;
/// An ordinary user: `nobody`.
const USER: u32 = 65534;
/// The first process, which belongs to root, and a number that none has.
const FIRST: i32 = 1;
const NONE: i32 = i32::MAX;

/// As root and as an ordinary user.
pub fn numbers(context: &Context) -> Result<(), String> {
    for (purpose, is_privileged) in [(6, true), (7, false)] {
        let mut random = context.random(purpose);
        let mut play = || -> Result<(), String> {
            if !is_privileged {
                let user = Uid::from_raw(USER);
                set_thread_res_uid(user, user, user).map_err(|error| format!("setresuid: {error}"))?;
            }
            let (mut answers, mut wrong) = (BTreeSet::new(), Vec::new());
            for _ in 0..CALLS {
                match Ground::new()?.play(&mut random, context, is_privileged)? {
                    Ok(answer) => answers.extend(answer.err()),
                    Err(why) => wrong.push(why),
                }
            }
            let count = wrong.len();
            wrong.truncate(MOST_TOLD);
            if !wrong.is_empty() {
                return Err(format!("{count} of {CALLS} differ:\n{}", wrong.join("\n")));
            }
            // What is always refused for the same reason would show little.
            let seen = answers.len();
            if seen < FEWEST { Err(format!("only {answers:?} were drawn")) } else { Ok(()) }
        };
        // A thread takes its policy and its user with it when it ends.
        let done = std::thread::scope(|scope| scope.spawn(&mut play).join());
        let user = if is_privileged { "root" } else { "an ordinary user" };
        done.map_err(|_| "the thread of the calls panicked".to_owned())?
            .map_err(|why| format!("as {user}: {why}"))?;
    }
    Ok(())
}

/// Nothing, or the name of an error.
type Answer = Result<(), &'static str>;

/// Two mappings, and nothing where a third was between them: pages are in the first alone.
struct Ground {
    there: NodeBuffer,
    bare: NodeBuffer,
    pages: BTreeMap<u64, NodeId>,
}

impl Ground {
    fn new() -> Result<Self, String> {
        let (mut there, bare) = around_a_hole()?;
        there.prefault().map_err(|error| error.to_string())?;
        let mut found = BTreeMap::new();
        let addresses = pages::addresses(there.address(), (PAGES * PAGE) as usize, PAGE as usize);
        let mut address = there.address() as u64;
        pages::locate(Task::CURRENT, addresses, |_, location| {
            if let PageLocation::Node(node) = location {
                found.insert(address, node);
            }
            address += PAGE;
        })
        .map_err(|error| error.to_string())?;
        Ok(Self { there, bare, pages: found })
    }

    fn mappings(&self) -> Vec<Mapping> {
        let of = |buffer: &NodeBuffer, pages: BTreeMap<u64, NodeId>| {
            let start = buffer.address() as u64;
            Mapping { bytes: start..start + PAGES * PAGE, policy: None, pages }
        };
        let mut mappings = vec![of(&self.there, self.pages.clone()), of(&self.bare, BTreeMap::new())];
        mappings.sort_by_key(|mapping| mapping.bytes.start);
        mappings
    }

    /// One call, by the kernel and by the model: the answer of both, or how they differ.
    fn play(
        &self,
        random: &mut Random,
        context: &Context,
        is_privileged: bool,
    ) -> Result<Result<Answer, String>, String> {
        let with_memory = context.seen.nodes_with_memory();
        let online = context.seen.node_ids();
        let mappings = self.mappings();
        let caller = Caller {
            scope: scope(context, &with_memory),
            architecture: Architecture::from_machine(&context.seen),
            online: &online,
            with_memory: &with_memory,
            nr_node_ids: context.nr_node_ids(),
            is_privileged,
            policy: &Policy::DEFAULT,
            mappings: &mappings,
        };
        let drawn = Draw { random, context, mappings: &mappings, is_privileged }.call();
        let ours = check(&drawn.call, &caller).map_err(|errno| errno.name());
        let kernels = drawn.answer(&mappings).map_err(|errno| errno.name().unwrap_or("?"));
        // The next call is to find the thread as this one did.
        let reset = numbers::set_mempolicy(0, &Pointer::Null, 0);
        reset.map_err(|errno| format!("set_mempolicy: {errno:?}"))?;
        let (call, mappings) = (&drawn.call, &mappings);
        let differ =
            || format!("{call:x?} with {mappings:x?}: the model says {ours:?}, the kernel {kernels:?}");
        Ok(if ours == kernels { Ok(ours) } else { Err(differ()) })
    }
}

/// Two mappings with room for a third between them: of some that the kernel puts one below the other once no room
/// is left elsewhere.
fn around_a_hole() -> Result<(NodeBuffer, NodeBuffer), String> {
    let mut all: Vec<NodeBuffer> = Vec::new();
    while all.len() < MOST_MAPPINGS {
        let size = Bytes::new(PAGES * PAGE);
        all.push(NodeBuffer::reserve(size, PageKind::Small, None).map_err(|error| error.to_string())?);
        if let [.., above, hole, below] = &all[..] {
            let size = size.get() as usize;
            if above.address() - size == hole.address() && hole.address() - size == below.address() {
                let below = all.pop().ok_or("it is the last")?;
                all.pop();
                return Ok((below, all.pop().ok_or("there were three")?));
            }
        }
    }
    Err(format!("of {MOST_MAPPINGS} mappings no three are side by side"))
}

/// A call for the model, and what the kernel needs to know besides.
struct Drawn {
    call: Call,
    process: i32,
}

impl Drawn {
    fn answer(&self, mappings: &[Mapping]) -> Result<(), Errno> {
        match &self.call {
            Call::SetPolicy { mode, mask } => numbers::set_mempolicy(*mode, &pointer(mask), mask.maxnode),
            Call::Bind { address, length, mode, mask, flags } => {
                numbers::mbind((*address, *length), *mode, &pointer(mask), mask.maxnode, *flags)
            }
            Call::GetPolicy { has_mask, maxnode, address, flags } => {
                numbers::get_mempolicy(*has_mask, *maxnode, *address, *flags)
            }
            Call::SetHome { address, length, node, flags } => {
                numbers::set_mempolicy_home_node((*address, *length), *node, *flags)
            }
            Call::Migrate { old, new, .. } => {
                numbers::migrate_pages(self.process, old.maxnode, &pointer(old), &pointer(new))
            }
            Call::Move { nodes, flags, .. } => {
                let start = mappings[0].bytes.start;
                let pages: Vec<u64> = (0..PAGES).map(|page| start + page * PAGE).collect();
                numbers::move_pages(self.process, &pages, nodes.as_deref(), *flags)
            }
        }
    }
}

fn pointer(mask: &Mask) -> Pointer {
    match &mask.bits {
        Bits::Null => Pointer::Null,
        Bits::Unreadable => Pointer::Unreadable,
        Bits::Of(nodes) => Pointer::Bits(nodes.iter().map(NodeId::number).collect()),
    }
}

/// Draws a call.
struct Draw<'a> {
    random: &'a mut Random,
    context: &'a Context,
    mappings: &'a [Mapping],
    is_privileged: bool,
}

impl Draw<'_> {
    fn call(&mut self) -> Drawn {
        let (process, whose) = self.process();
        let call = match self.random.below(100) {
            0..20 => Call::SetPolicy { mode: self.mode(), mask: self.mask() },
            20..50 => {
                let (address, length) = self.bytes();
                let flags = self.flags();
                Call::Bind { address, length, mode: self.mode(), mask: self.mask(), flags }
            }
            50..65 => self.get_policy(),
            65..75 => {
                let (address, length) = self.bytes();
                let nodes = self.context.seen.nodes.len() as u64;
                let node = self.random.below(nodes + 1);
                let node =
                    if self.random.percent(15) { self.random.one(&[1024, 1 << 32, u64::MAX]) } else { node };
                Call::SetHome { address, length, node, flags: u64::from(self.random.percent(10)) }
            }
            75..88 => {
                // Both have the same number beside them.
                let (old, new) = (self.mask(), self.mask());
                Call::Migrate { process: whose, new: Mask { maxnode: old.maxnode, ..new }, old }
            }
            _ => Call::Move { process: whose, nodes: self.targets(), flags: self.flags() },
        };
        Drawn { call, process }
    }

    fn process(&mut self) -> (i32, Process) {
        match self.random.below(100) {
            0..70 => (0, Process::Own),
            70..85 => (NONE, Process::Missing),
            _ => {
                let allowed = self.context.seen.nodes_with_memory();
                (FIRST, Process::Other { allowed, is_open: self.is_privileged })
            }
        }
    }

    /// A mode with flags, known and unknown.
    fn mode(&mut self) -> u32 {
        let mode = if self.random.percent(5) { 99 } else { self.random.below(8) as u32 };
        let flags = if self.random.percent(60) { 0 } else { self.random.below(8) as u32 };
        let unknown = if self.random.percent(5) { self.random.one(&[1 << 12, 1 << 16, 1 << 31]) } else { 0 };
        mode | flags << 13 | unknown
    }

    fn mask(&mut self) -> Mask {
        let most = self.context.seen.nodes.len() as u64 + 1;
        let bits = match self.random.below(100) {
            0..12 => Bits::Null,
            12..20 => Bits::Unreadable,
            _ => {
                let count = self.random.below(4);
                let mut nodes: NodeSet =
                    (0..count).map(|_| NodeId::new(self.random.below(most) as u32)).collect();
                if self.random.percent(10) {
                    nodes.insert(NodeId::new(self.random.one(&[31, 63, 64, 1023, 1024, 4096])));
                }
                Bits::Of(nodes)
            }
        };
        const ODD: [u64; 16] =
            [0, 1, 2, 3, 9, 33, 63, 66, 128, 1025, 1026, 4096, 32768, 32769, 32770, u64::MAX];
        let maxnode =
            if self.random.percent(60) { self.random.one(&[64, 65, 1024]) } else { self.random.one(&ODD) };
        Mask { bits, maxnode }
    }

    fn flags(&mut self) -> u32 {
        if self.random.percent(7) { self.random.one(&[8, 16, 1 << 31]) } else { self.random.below(8) as u32 }
    }

    fn address(&mut self) -> u64 {
        let start = self.mappings[self.random.below(2) as usize].bytes.start;
        match self.random.below(100) {
            0..75 => start + self.random.below(PAGES) * PAGE,
            75..85 => start + 1 + self.random.below(PAGES * PAGE - 1),
            // Nothing is mapped so low.
            85..95 => PAGE * (1 + self.random.below(8)),
            _ => self.random.one(&[0, 1 << 62, u64::MAX, u64::MAX - PAGE + 1]),
        }
    }

    /// An address and a length that stays in the mapping, or goes over a hole, or has no end.
    fn bytes(&mut self) -> (u64, u64) {
        let address = self.address();
        let inside = self.mappings.iter().find(|mapping| mapping.bytes.contains(&address));
        let left = inside.map_or(PAGE, |mapping| mapping.bytes.end - address);
        let length = match self.random.below(100) {
            0..60 => 1 + self.random.below(left),
            60..70 => 0,
            70..85 => self.beyond_the_hole(address).unwrap_or(left),
            _ => self.random.one(&[u64::MAX, u64::MAX - PAGE, u64::MAX - PAGE + 2]),
        };
        (address, length)
    }

    /// How far it is to the end of the other mapping, over the hole.
    fn beyond_the_hole(&self, address: u64) -> Option<u64> {
        let [lower, upper] = self.mappings else { return None };
        lower.bytes.contains(&address).then(|| upper.bytes.end - address)
    }

    fn get_policy(&mut self) -> Call {
        let flags = if self.random.percent(7) { 8 } else { self.random.below(8) };
        let address = if self.random.percent(40) { 0 } else { self.address() };
        let maxnode = self.mask().maxnode;
        Call::GetPolicy { has_mask: self.random.percent(60), maxnode, address, flags }
    }

    fn targets(&mut self) -> Option<Vec<i32>> {
        if self.random.percent(15) {
            return None;
        }
        let nodes = self.context.seen.nodes.len() as u64;
        let node = |random: &mut Random| {
            if random.percent(15) {
                random.one(&[-1, 1024, i32::MAX, i32::MIN])
            } else {
                random.below(nodes + 1) as i32
            }
        };
        Some((0..self.random.below(PAGES + 1)).map(|_| node(self.random)).collect())
    }
}
