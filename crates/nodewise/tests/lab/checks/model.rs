//! The model beside the kernel: zones, watermarks, drawn policies and requests.

use std::fs;
use std::thread;

use nodewise_machine::{Bytes, CpuSet, MemPolicy, NodeId, NodeSet, PolicyMode};
use nodewise_model::movable::Movable;
use nodewise_model::policy::interleave::InterleavePosition;
use nodewise_model::policy::weights;
use nodewise_model::ram::{Architecture, Range};
use nodewise_model::walk::{Class, HUGE_ORDER, Request, Stretch};
use nodewise_model::{
    BuiltAt, FallbackOrders, Memory, Placed, Policy, Release, Scope, Watermarks, Weights, ZoneKind,
    ZoneState, zones,
};
use nodewise_syscall::{NodeBuffer, PageKind, PageLocation, Task, affinity, mempolicy, pages};
use serde_json::Value;

use super::counters::Gained;
use super::same;
use crate::drawer::{any_policy, homes};
use crate::kernel;
use crate::nodewise::Context;
use crate::random::Random;

/// Policies that are set and read back, and requests whose pages are looked up, in each guest.
const POLICIES: u64 = 400;
const REQUESTS: u64 = 60;

/// Returns the facts by which the kernel takes policies: the nodes that may be used, and how many it is
/// built for.
pub fn scope<'a>(context: &Context, allowed: &'a NodeSet) -> Scope<'a> {
    let max_nodes = Architecture::from_machine(&context.seen).max_nodes();
    Scope { allowed, max_nodes, release: release(context) }
}

pub fn release(context: &Context) -> Release {
    Release::from_kernel(context.seen.kernel.as_ref())
}

fn number(zone: &Value, field: &str) -> Result<u64, String> {
    zone[field].as_u64().ok_or_else(|| format!("{field} is missing in {zone}"))
}

/// The names by which a zone's figures are compared.
const FIGURES: [&str; 6] =
    ["managed_pages", "min_pages", "low_pages", "high_pages", "promo_pages", "reserve_from_programs_pages"];

pub fn watermarks(context: &Context) -> Result<(), String> {
    let path = "/proc/sys/vm/min_free_kbytes";
    let before = kernel::line(path)?;
    let set = |value: &str| fs::write(path, value).map_err(|error| format!("{path}: {error}"));
    for kib in ["8000", "20001", &before] {
        // Writing it makes the kernel work out all watermarks from the pages it manages now.
        set(kib)?;
        // Reserves are worked out again only when their ratios are written.
        let ratios = "/proc/sys/vm/lowmem_reserve_ratio";
        fs::write(ratios, kernel::line(ratios)?).map_err(|error| format!("{ratios}: {error}"))?;
        let json = context.json(&["zones", "--json"])?;
        let list = |name: &str| json[name].as_array().cloned().unwrap_or_default();
        same("where the zones come from", json["zones_from"].as_str(), Some("kernel"))?;
        for (kernel, model) in list("zones").iter().zip(&list("model")) {
            let what = format!("zone {}:{} with {kib} KiB", kernel["node"], kernel["zone"]);
            for figure in FIGURES {
                same(&format!("{figure} of {what}"), number(model, figure)?, number(kernel, figure)?)?;
            }
        }
        same("number of zones", list("model").len(), list("zones").len())?;
    }
    Ok(())
}

pub fn zones_of_ranges(context: &Context) -> Result<(), String> {
    let ranges = kernel::node_ranges();
    same("the log has ranges", ranges.is_empty(), false)?;
    let ram: Vec<Range> = ranges
        .into_iter()
        .map(|(node, start, last)| Range { start, end: last + 1, node: NodeId::new(node) })
        .collect();
    let ours: Vec<_> = zones::zones(zones::Layout::from_machine(&context.seen), Movable::None, &ram)
        .iter()
        .map(|zone| (zone.node.number(), zone.kind.name(), zone.start_page, zone.spanned, zone.present))
        .map(|(node, kind, start, spanned, present)| {
            (u64::from(node), kind.to_owned(), start, spanned, present)
        })
        .collect();
    let json = context.json(&["zones", "--json"])?;
    let kernels: Result<Vec<_>, String> = json["zones"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|zone| {
            let kind = zone["zone"].as_str().unwrap_or_default().to_owned();
            let figures =
                (number(zone, "first_page")?, number(zone, "spanned_pages")?, number(zone, "present_pages")?);
            Ok((number(zone, "node")?, kind, figures.0, figures.1, figures.2))
        })
        .collect();
    same("zones", ours, kernels?)
}

/// Before anything sets a weight: what was read when the guest started is the kernel's own.
pub fn weights_nobody_set(context: &Context) -> Result<(), String> {
    let mut bare = context.seen.clone();
    let kernels = std::mem::take(&mut bare.settings.interleave_weights);
    let ours = weights::in_force(&bare, release(context));
    for node in &context.seen.nodes_with_memory() {
        let of = |weights: &Weights| weights.get(&node).copied().unwrap_or(1);
        same(&format!("weight of node {node}"), of(&ours), of(&kernels))?;
    }
    Ok(())
}

pub fn answers(context: &Context) -> Result<(), String> {
    let allowed = context.seen.nodes_with_memory();
    let scope = scope(context, &allowed);
    let nr_node_ids = context.nr_node_ids();
    let mut random = context.random(1);
    for _ in 0..POLICIES {
        let asked = any_policy(&mut random, &context.seen);
        let answer = mempolicy::set_thread_policy(&asked);
        let kernels = match answer {
            Ok(()) => Ok(mempolicy::thread_policy().map_err(|error| error.to_string())?.to_string()),
            Err(error) => Err(error.errno.name().unwrap_or("?")),
        };
        let ours = Policy::from_mem_policy(&asked, scope)
            .map(|policy| policy.reported_in_mask(nr_node_ids).to_string());
        let ours = ours.map_err(|errno| errno.name());
        if ours != kernels {
            mempolicy::set_thread_policy(&MemPolicy::DEFAULT).map_err(|error| error.to_string())?;
            return Err(format!("{asked}: the model says {ours:?}, the kernel {kernels:?}"));
        }
    }
    mempolicy::set_thread_policy(&MemPolicy::DEFAULT).map_err(|error| error.to_string())
}

/// Memory that a thread touches, and what it then says.
pub struct Touched {
    pub address: u64,
    /// The node of every page of 4 KiB, as the kernel numbers them.
    pub nodes: Vec<u32>,
    /// The counts of the nodes meanwhile.
    pub gained: Gained,
}

/// A request as it is drawn.
#[derive(Clone, Debug)]
pub struct Drawn {
    pub policy: MemPolicy,
    /// Whether the policy is set on the memory, not on the thread.
    pub on_memory: bool,
    pub cpu_node: NodeId,
    pub kib: u64,
    pub huge: bool,
}

impl Drawn {
    /// Plays it in a thread of its own, which takes its policy and its CPU with it when it ends.
    pub fn touch(&self, context: &Context) -> Result<Touched, String> {
        Ok(self.touch_after(context, || Ok(()))?.1)
    }

    /// The same, with something that the thread looks at before the first page.
    pub fn touch_after<T: Send>(
        &self,
        context: &Context,
        look: impl FnOnce() -> Result<T, String> + Send,
    ) -> Result<(T, Touched), String> {
        let cpu = context.seen.cpus_of(self.cpu_node).first().ok_or("the node has a CPU")?;
        let play = || -> Result<(T, Touched), String> {
            let say = |error: &dyn std::fmt::Display| format!("{self:?}: {error}");
            affinity::set_cpus(Task::CURRENT, &CpuSet::from_iter([cpu])).map_err(|error| say(&error))?;
            if !self.on_memory {
                mempolicy::set_thread_policy(&self.policy).map_err(|error| say(&error))?;
            }
            let own = Some(&self.policy).filter(|_| self.on_memory);
            let kind = if self.huge { PageKind::TransparentHuge } else { PageKind::Small };
            let mut buffer =
                NodeBuffer::reserve(Bytes::from_kib(self.kib), kind, own).map_err(|error| say(&error))?;
            let looked = look()?;
            let (done, gained) = Gained::while_doing(|| buffer.prefault());
            done.map_err(|error| say(&error))?;
            let mut nodes = Vec::new();
            let addresses = pages::addresses(buffer.address(), buffer.length().get() as usize, 4096);
            pages::locate(Task::CURRENT, addresses, |_, location| match location {
                PageLocation::Node(node) => nodes.push(node.number()),
                _ => nodes.push(u32::MAX),
            })
            .map_err(|error| say(&error))?;
            let touched = Touched { address: buffer.address() as u64, nodes, gained };
            Ok((looked, touched))
        };
        thread::scope(|scope| {
            scope.spawn(play).join().map_err(|_| "the thread of a request panicked".to_owned())?
        })
    }

    /// The node of every page of 4 KiB, as the model places it.
    pub fn nodes_of_pages(&self, context: &Context, now: &Memory, address: u64) -> Result<Vec<u32>, String> {
        let runs = self.played(context, &mut now.clone(), address, true)?;
        Ok(runs.iter().flat_map(|(node, pages)| std::iter::repeat_n(*node, *pages as usize)).collect())
    }

    /// Plays it in the model, in runs or (`one_by_one`) with the node of every page.
    pub fn played(
        &self,
        context: &Context,
        memory: &mut Memory,
        address: u64,
        one_by_one: bool,
    ) -> Result<Vec<(u32, u64)>, String> {
        let allowed = context.seen.nodes_with_memory();
        let scope = scope(context, &allowed);
        let policy =
            Policy::from_mem_policy(&self.policy, scope).map_err(|errno| format!("{self:?}: {errno}"))?;
        let order = if self.huge { HUGE_ORDER } else { 0 };
        let pages = (self.kib / 4) >> order;
        let step = if one_by_one { 1 } else { pages };
        let weights = weights::in_force(&context.seen, release(context));
        let place = InterleavePosition::Address(address);
        let mut route = memory.route(&Request {
            policy: &policy,
            weights: &weights,
            cpu_node: self.cpu_node,
            allowed: &allowed,
            pages,
            order,
            place,
            class: Class::User,
        });
        let mut runs = Vec::new();
        for first in (0..pages).step_by(step as usize) {
            let outcome = memory.allocate_along(&mut route, step, place.after(first << order));
            let share = |stretch: &Stretch| {
                let order = stretch.order;
                stretch
                    .shares
                    .iter()
                    .map(move |share| (share.node.number(), share.pages << order))
                    .collect::<Vec<_>>()
            };
            runs.extend(outcome.stretches.iter().flat_map(share));
        }
        Ok(runs)
    }
}

/// A policy that the kernel takes, on a CPU of some node.
pub fn any_request(random: &mut Random, context: &Context) -> Drawn {
    let allowed = context.seen.nodes_with_memory();
    let scope = scope(context, &allowed);
    let policy = loop {
        let policy = any_policy(random, &context.seen);
        // A policy of memory cannot be Default, and a drawn one may be refused.
        if policy.mode != PolicyMode::Default && Policy::from_mem_policy(&policy, scope).is_ok() {
            break policy;
        }
    };
    let huge = random.percent(20);
    let kib = if huge { 2048 * (1 + random.below(4)) } else { 4 * (1 + random.below(64)) };
    Drawn { policy, on_memory: random.percent(50), cpu_node: random.one(&homes(&context.seen)), kib, huge }
}

pub fn drawn_requests(context: &Context) -> Result<(), String> {
    let mut random = context.random(2);
    let now = memory(context)?;
    for _ in 0..REQUESTS {
        let drawn = any_request(&mut random, context);
        let in_blocks = if drawn.huge { with_blocks(&now)? } else { now.clone() };
        let touched = drawn.touch(context)?;
        let ours = drawn.nodes_of_pages(context, &now, touched.address)?;
        // Where a node has no free block of 2 MiB the kernel gives small pages, each placed by itself.
        let small = Drawn { huge: false, ..drawn.clone() }.nodes_of_pages(context, &now, touched.address)?;
        // A policy that names no more than where to begin goes on to nodes that have such a block.
        let next = drawn.nodes_of_pages(context, &in_blocks, touched.address)?;
        let block = if drawn.huge { 512 } else { 1 };
        for (at, kernels) in touched.nodes.chunks(block).enumerate() {
            let pages = at * block..at * block + kernels.len();
            if [&ours, &small, &next].iter().all(|model| kernels != &model[pages.clone()]) {
                return Err(format!(
                    "{drawn:?} at {:#x}: pages {pages:?} are on {:?}, the model says {:?}",
                    touched.address,
                    first_seen(kernels.iter().copied()),
                    first_seen(ours[pages.clone()].iter().copied())
                ));
            }
        }
    }
    Ok(())
}

/// Memory in which nodes without a free block of the size of a huge page have nothing free.
fn with_blocks(memory: &Memory) -> Result<Memory, String> {
    let mut free = Placed::new();
    for zone in memory.zones() {
        if kernel::free_blocks(zone.node, HUGE_ORDER)? == 0 {
            free.insert((zone.node, zone.kind), 0);
        }
    }
    Ok(memory.clone().with_free(&free))
}

/// The guest's memory as it is now, read through `nodewise zones`.
pub fn memory(context: &Context) -> Result<Memory, String> {
    let json = context.json(&["zones", "--json"])?;
    let state = |zone: &Value| -> Result<ZoneState, String> {
        let reserve = number(zone, "reserve_from_programs_pages")?;
        Ok(ZoneState {
            node: NodeId::new(number(zone, "node")? as u32),
            kind: ZoneKind::from_name(zone["zone"].as_str().unwrap_or_default()).ok_or("a zone's name")?,
            managed: number(zone, "managed_pages")?,
            free: number(zone, "free_pages")?,
            marks: Watermarks {
                min: number(zone, "min_pages")?,
                low: number(zone, "low_pages")?,
                high: number(zone, "high_pages")?,
                promo: number(zone, "promo_pages")?,
            },
            reserves: [reserve; 4],
        })
    };
    let zones: Result<Vec<ZoneState>, String> =
        json["zones"].as_array().into_iter().flatten().map(state).collect();
    Ok(Memory::new(zones?, FallbackOrders::from_machine(&context.seen, BuiltAt::Boot), release(context)))
}

/// Nodes in the order in which they first gave a page.
pub fn first_seen(nodes: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut seen = Vec::new();
    for node in nodes {
        if !seen.contains(&node) {
            seen.push(node);
        }
    }
    seen
}
