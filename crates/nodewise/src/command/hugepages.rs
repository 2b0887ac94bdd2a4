//! `nodewise hugepages`: pools of huge pages, shown, set and restored.

mod persist;
mod set;

use std::collections::{BTreeMap, BTreeSet};

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::printable::io_words;
use nodewise_machine::{Bytes, Machine, NodeId};
use nodewise_source::parse::buddyinfo::FreeBlocks;
use nodewise_source::parse::number;
use nodewise_source::settings::journal::Changed;
use nodewise_source::settings::{Setting, compact};
use nodewise_source::tree::Tree;
use nodewise_source::{Detail, file, paths, system};
use nodewise_syscall::pages::page_size;
use nodewise_view::digest::hugepages::{Pool, Pools, PoolsChange, WholePool, parse_pages};
use nodewise_view::{csv, json, text};

use crate::cli::Global;
use crate::cli::hugepages::{Changing, HugePages, PoolAction, Set, Show, Undo};
use crate::failure::{Failure, Outcome};
use crate::journal::{Kept, refusal};
use crate::{input, output};
use set::Wish;

/// Exit code where fewer pages came than were asked for.
const SHORT: u8 = 1;

/// Runs `hugepages`.
pub fn run(args: &HugePages, global: &Global) -> Outcome {
    match &args.kind {
        None => show(&args.show, global),
        Some(PoolAction::Set(args)) => set_pools(args, global),
        Some(PoolAction::Undo(args)) => undo(args, global),
        Some(PoolAction::Persist(args)) => persist::run(args, global),
    }
}

fn show(args: &Show, global: &Global) -> Outcome {
    let input = input::load(&global.machine, Detail::Full)?;
    let pools = pools(&input.machine, input.tree());
    if args.csv {
        output::print(&csv::hugepages(&pools))?;
    } else {
        let json = || json::hugepages::hugepages(&pools);
        output::show(args.json, global.color, json, |style| text::hugepages::hugepages(&pools, style))?;
    }
    Ok(0)
}

/// The pools of a machine, with what its files say beside them.
fn pools(machine: &Machine, tree: Option<&Tree>) -> Pools {
    let free = tree.and_then(|tree| system::free_blocks(tree).ok().flatten());
    let free = free.map(|parsed| parsed.value).unwrap_or_default();
    let page = machine.page_size.unwrap_or(Bytes::new(page_size() as u64));
    let of_node = |node: &nodewise_machine::Node| {
        let pool = |pool: &nodewise_machine::HugePool| Pool {
            node: node.id,
            page_size: pool.page_size,
            total: pool.total,
            free: pool.free,
            surplus: pool.surplus,
            could_add: could_add(&free, node.id, pool.page_size, page),
        };
        node.huge_pools.iter().map(pool).collect::<Vec<_>>()
    };
    let pools: Vec<Pool> = machine.nodes.values().flat_map(of_node).collect();
    let sizes: BTreeSet<Bytes> = pools.iter().map(|pool| pool.page_size).collect_set();
    let count = |size, name| {
        let path = paths::huge_pool_of_all(size, name);
        file::value(tree?, &path, number::number::<u64>).ok().flatten()
    };
    let whole = |size: &Bytes| WholePool {
        page_size: *size,
        reserved: count(*size, "resv_hugepages"),
        overcommit: count(*size, "nr_overcommit_hugepages"),
    };
    Pools { whole: sizes.iter().map(whole).collect(), pools }
}

/// Huge pages that fit into the free blocks of a node; `None` where blocks of that size are not listed.
fn could_add(blocks: &[FreeBlocks], node: NodeId, size: Bytes, page: Bytes) -> Option<u64> {
    let per_huge = size.get().checked_div(page.get()).filter(|pages| pages.is_power_of_two())?;
    let order = per_huge.trailing_zeros() as usize;
    let mut own = blocks.iter().filter(|zone| zone.node == node).peekable();
    own.peek()?;
    own.map(|zone| {
        // Pages above the largest block that the allocator keeps are put together by other means.
        (order < zone.blocks.len()).then(|| zone.pages_from(order)).flatten().map(|pages| pages / per_huge)
    })
    .sum()
}

/// The pools of the running system.
struct Live<'a> {
    tree: &'a Tree,
    size: Bytes,
}

impl Live<'_> {
    fn setting(&self, node: NodeId) -> Setting {
        Setting::HugePages { node, size: self.size }
    }
}

impl set::Pools for Live<'_> {
    fn read(&mut self, node: NodeId) -> Result<u64, String> {
        present(self.tree, &self.setting(node))?
            .ok_or_else(|| format!("node {node} has no pool of this size now"))
    }

    fn write(&mut self, node: NodeId, pages: u64) -> Result<(), String> {
        let setting = self.setting(node);
        setting.write(pages).map_err(|error| format!("cannot set {setting}: {}", io_words(&error)))
    }

    fn compact(&mut self, node: NodeId) -> Result<(), String> {
        compact(node).map_err(|error| format!("cannot compact node {node}: {}", io_words(&error)))
    }

    fn largest_free(&mut self, node: NodeId) -> Option<Bytes> {
        let blocks = system::free_blocks(self.tree).ok()??.value;
        let own = blocks.iter().filter(|zone| zone.node == node);
        let order = own.filter_map(|zone| zone.blocks.iter().rposition(|count| *count > 0)).max()?;
        Some(Bytes::new((page_size() as u64).checked_shl(u32::try_from(order).ok()?)?))
    }
}

fn present(tree: &Tree, setting: &Setting) -> Result<Option<u64>, String> {
    setting.read(tree).map_err(|error| error.to_string())
}

/// Pools are changed on the running system only.
fn only_here(global: &Global) -> Result<(), Failure> {
    if input::is_live(&global.machine) {
        return Ok(());
    }
    Err(Failure::usage(
        "--machine: pools are set on the running system only; nodewise hugepages shows those of others",
    ))
}

/// The memory of the nodes that have a pool of the size that is meant, and that size.
fn nodes_with_pool(
    machine: &Machine,
    asked: Option<Bytes>,
) -> Result<(Bytes, BTreeMap<NodeId, Bytes>), Failure> {
    let of_all = machine.nodes.values().flat_map(|node| &node.huge_pools);
    let sizes: BTreeSet<Bytes> = of_all.map(|pool| pool.page_size).collect_set();
    if sizes.is_empty() {
        return Err(Failure::cannot("this kernel has no pools of huge pages by node"));
    }
    let names = || sizes.iter().map(|size| size.exact()).collect::<Vec<_>>().join(" or ");
    let only = sizes.first().copied().filter(|_| sizes.len() == 1);
    let size = asked
        .or(machine.settings.default_huge_page_size)
        .or(only)
        .ok_or_else(|| Failure::usage(format_args!("which size? expected --huge-page-size {}", names())))?;
    if !sizes.contains(&size) {
        return Err(Failure::usage(format_args!(
            "--huge-page-size: this kernel has no pools of {size} pages: expected {}",
            names()
        )));
    }
    let has_pool = |node: &&nodewise_machine::Node| node.huge_pools.iter().any(|pool| pool.page_size == size);
    let memory = |node: &nodewise_machine::Node| (node.id, machine.memory_of(node.id).unwrap_or_default());
    let nodes = machine.memory_nodes();
    let known = machine.nodes.values().filter(|node| nodes.contains(node.id)).filter(has_pool);
    Ok((size, known.map(memory).collect()))
}

fn set_pools(args: &Set, global: &Global) -> Outcome {
    only_here(global)?;
    let input = input::load(&global.machine, Detail::Full)?;
    let (size, memory) = nodes_with_pool(&input.machine, args.huge_page_size)?;
    let asked = parse_pages(&args.pages, &memory).map_err(Failure::usage)?;
    let tree = Tree::live();
    let mut live = Live { tree: &tree, size };
    let wish = |(node, asked): (NodeId, u64)| {
        let before = set::Pools::read(&mut live, node).map_err(Failure::cannot)?;
        Ok(Wish { node, before, asked })
    };
    let wishes: Vec<Wish> = asked.into_iter().map(wish).collect::<Result<_, Failure>>()?;
    change(&wishes, size, &args.changing, global, None, |mut live, kept| {
        let settings = wishes.iter().map(|Wish { node, before, asked }| Changed {
            setting: live.setting(*node),
            before: *before,
            after: *asked,
        });
        kept.begin(settings.filter(|changed| changed.before != changed.after).collect())?;
        let pools = set::set(&mut live, &wishes);
        let is_short = pools.iter().any(|pool| pool.after() < pool.asked);
        let given_back = args.all_or_nothing && is_short;
        let given = if given_back { set::give_back(&mut live, &pools) } else { Ok(()) };
        // The journal holds what is there, also where something could not be given back.
        kept.settle(kept.newest(), |setting| setting.read(&tree).ok().flatten())?;
        given.map_err(Failure::cannot)?;
        Ok(PoolsChange { page_size: size, is_dry: false, pools, given_back, journal: Some(kept.path()) })
    })
}

/// Makes a change with its journal, which is opened for it, or shows the change where it is a dry run.
fn change(
    wishes: &[Wish],
    size: Bytes,
    changing: &Changing,
    global: &Global,
    kept: Option<Kept>,
    make: impl FnOnce(Live<'_>, &mut Kept) -> Result<PoolsChange, Failure>,
) -> Outcome {
    let tree = Tree::live();
    let changed = if changing.dry_run || wishes.iter().all(|wish| wish.before == wish.asked) {
        let pools = wishes.iter().map(Wish::untouched).collect();
        PoolsChange { page_size: size, is_dry: changing.dry_run, pools, given_back: false, journal: None }
    } else {
        for wish in wishes.iter().filter(|wish| wish.before != wish.asked) {
            let setting = Setting::HugePages { node: wish.node, size };
            setting.may_write().map_err(|error| {
                Failure::cannot(format_args!("cannot set {setting}: {}; expected root", io_words(&error)))
            })?;
        }
        let mut kept = kept.map_or_else(|| Kept::open(changing.journal.as_deref(), &tree), Ok)?;
        make(Live { tree: &tree, size }, &mut kept)?
    };
    let json = || json::hugepages::change(&changed);
    output::show(changing.json, global.color, json, |style| text::hugepages::change(&changed, style))?;
    Ok(if changed.is_done() { 0 } else { SHORT })
}

fn undo(args: &Undo, global: &Global) -> Outcome {
    if args.boot {
        return persist::undo(args, global);
    }
    only_here(global)?;
    let tree = Tree::live();
    let mut kept = Kept::open(args.changing.journal.as_deref(), &tree)?;
    let is_pool = |setting: &Setting| matches!(setting, Setting::HugePages { .. });
    let Some((at, last)) = kept.last(is_pool) else {
        return Err(Failure::cannot(format_args!(
            "nothing to restore: the journal {} has no change of huge pages",
            nodewise_machine::printable::quote(&kept.path())
        )));
    };
    if !kept.is_of_this_boot(last) && !args.force {
        return Err(Failure::cannot(
            "the last change of huge pages was made before this boot, which began with other pools: nothing to restore \
             (--force restores those values anyway)",
        ));
    }
    let mut wishes = Vec::new();
    let mut page = None;
    for changed in &last.settings {
        let Setting::HugePages { node, size } = changed.setting else { continue };
        let now = present(&tree, &changed.setting).map_err(Failure::cannot)?;
        let refused = refusal(changed, now).filter(|_| now.is_none() || !args.force);
        if let Some(why) = refused {
            return Err(Failure::cannot(why));
        }
        if page.is_some_and(|page| page != size) {
            return Err(Failure::cannot(
                "the last change in the journal has pages of several sizes: expected one",
            ));
        }
        page = Some(size);
        wishes.push(Wish { node, before: now.unwrap_or(changed.after), asked: changed.before });
    }
    let Some(size) = page else { return Ok(0) };
    // Already as it was: what is left is to forget it.
    if wishes.iter().all(|wish| wish.before == wish.asked) && !args.changing.dry_run {
        kept.settle(at, |setting| present(&tree, setting).ok().flatten())?;
    }
    change(&wishes, size, &args.changing, global, Some(kept), |mut live, kept| {
        let pools = set::set(&mut live, &wishes);
        kept.settle(at, |setting| setting.read(&tree).ok().flatten())?;
        let journal = pools.iter().any(|pool| !pool.is_done()).then(|| kept.path());
        Ok(PoolsChange { page_size: size, is_dry: false, pools, given_back: false, journal })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_pages_that_fit_are_counted_in_whole_blocks() {
        let zone = |node, blocks: &[u64]| FreeBlocks {
            node: NodeId::new(node),
            zone: "Normal".to_owned(),
            blocks: blocks.to_vec(),
        };
        let blocks = [zone(0, &[9, 0, 0, 1, 2]), zone(0, &[9, 9, 9, 1, 0]), zone(1, &[1, 0, 0, 0, 0])];
        let check = |node, order: u32, expected| {
            let size = Bytes::new(4096 << order);
            assert_eq!(
                could_add(&blocks, NodeId::new(node), size, Bytes::from_kib(4)),
                expected,
                "{node} {order}"
            );
        };
        check(0, 3, Some(1 + 4 + 1));
        check(0, 4, Some(2));
        check(1, 3, Some(0));
        // Larger than any block.
        check(0, 5, None);
        check(7, 3, None);
    }
}
