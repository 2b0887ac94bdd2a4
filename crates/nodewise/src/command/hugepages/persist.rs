//! Pools that a system has from its boot on.

use std::collections::BTreeMap;
use std::path::Path;

use nodewise_boot::pool::BootPools;
use nodewise_boot::{Change, Plan, Root, kernels, loader, plan, tmpfiles};
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::printable::printable;
use nodewise_machine::{Bytes, HugePool, KernelRelease, Machine, NodeId};
use nodewise_source::Detail;
use nodewise_view::digest::emulation::Changed;
use nodewise_view::digest::hugepages::parse_pages;
use nodewise_view::{json, text};

use super::nodes_with_pool;
use crate::cli::Global;
use crate::cli::hugepages::{Persist, Through, Undo};
use crate::failure::{Failure, Outcome};
use crate::{boot_files, input, output};

/// The first release that takes numbers per node on its command line.
const PER_NODE: (u16, u16) = (5, 16);

/// Runs `hugepages persist`.
pub(super) fn run(args: &Persist, global: &Global) -> Outcome {
    // The pools of another machine can be those of an image.
    if is_own(&args.root) {
        boot_files::only_here(global)?;
    }
    let root = Root::open(&args.root).map_err(Failure::usage)?;
    let input = input::load(&global.machine, Detail::Full)?;
    let plan = planned(args, &root, &pools(args, &input.machine)?, &input.machine)?;
    let mut shown = boot_files::outline(&plan, args.dry_run);
    boot_files::apply(&root, &plan, &mut shown)?;
    show(&shown, args.json, global)
}

/// Runs `hugepages undo --boot`.
pub(super) fn undo(args: &Undo, global: &Global) -> Outcome {
    boot_files::only_here(global)?;
    let root = Root::open(&args.root).map_err(Failure::usage)?;
    let plan = tmpfiles::undo(&root).map_err(Failure::cannot)?;
    let mut shown = boot_files::outline(&plan, args.changing.dry_run);
    boot_files::undo(&root, &plan, &mut shown)?;
    // What was left of an interrupted change is something, too.
    if plan.edits.is_empty() && shown.remarks.is_empty() {
        return Err(Failure::cannot(
            "nothing to restore: no boot file has a change of huge pages by nodewise",
        ));
    }
    show(&shown, args.changing.json, global)
}

fn show(shown: &Changed, json: bool, global: &Global) -> Outcome {
    let written = || json::emulation::changed(json::hugepages::BOOT_SCHEMA, shown);
    output::show(json, global.color, written, |style| text::emulation::changed(shown, style))?;
    Ok(0)
}

/// The pools that are wanted.
fn pools(args: &Persist, machine: &Machine) -> Result<BootPools, Failure> {
    let (size, memory) = nodes_with_pool(machine, args.huge_page_size)?;
    let pages = match &args.pages {
        Some(pages) => parse_pages(pages, &memory).map_err(Failure::usage)?,
        None => present(machine, size)?,
    };
    Ok(BootPools { size, is_default: machine.settings.default_huge_page_size == Some(size), pages })
}

/// The pools as they are now.
fn present(machine: &Machine, size: Bytes) -> Result<BTreeMap<NodeId, u64>, Failure> {
    let pools = machine.nodes.values().flat_map(|node| node.huge_pools.iter().map(|pool| (node.id, pool)));
    let of_size = pools.filter(|(_, pool)| pool.page_size == size);
    let own = |(node, pool): (NodeId, &HugePool)| {
        let total = pool.total.ok_or_else(|| {
            Failure::cannot(format_args!("the pool of node {node} cannot be read: expected pages by node"))
        })?;
        Ok((node, total.saturating_sub(pool.surplus.unwrap_or(0))))
    };
    let pages: BTreeMap<NodeId, u64> = of_size.map(own).try_collect_map::<_, _, Failure>()?;
    if pages.values().all(|pages| *pages == 0) {
        return Err(Failure::usage(format_args!(
            "all pools of {size} pages are empty now: expected pages by node, such as 0=512; all=0 removes them"
        )));
    }
    Ok(pages)
}

/// The kernels of an image: which of them it starts is unknown.
fn of_image(root: &Root) -> Result<Vec<KernelRelease>, Failure> {
    let kernels = kernels::installed(root).map_err(Failure::cannot)?;
    Ok(kernels.iter().filter_map(|kernel| KernelRelease::new(&kernel.release)).collect())
}

fn is_own(root: &Path) -> bool {
    root == Path::new("/")
}

fn planned(args: &Persist, root: &Root, pools: &BootPools, machine: &Machine) -> Result<Plan, Failure> {
    if args.through == Through::Systemd {
        return tmpfiles::change(root, pools).map_err(Failure::cannot);
    }
    let kernels = if is_own(&args.root) { machine.kernel.iter().cloned().collect() } else { of_image(root)? };
    if let Some(kernel) = kernels.iter().find(|kernel| kernel.version() < PER_NODE) {
        return Err(Failure::cannot(format_args!(
            "Linux {} takes no numbers per node on its command line (since 5.16): expected --through systemd",
            printable(kernel.text())
        )));
    }
    let loader = loader::kept(root).map_err(Failure::cannot)?;
    plan::change(root, &loader, &Change::pools(pools.clone())).map_err(Failure::cannot)
}
