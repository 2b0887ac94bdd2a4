//! Cores under their last-level cache.

use std::collections::BTreeMap;

use nodewise_machine::CpuId;

use super::scene::{Block, Core};
use crate::digest::counts::plural;
use crate::svg::font::Font;
use crate::svg::frame::{Anchor, Frame, Label, Role, Tone};
use crate::svg::palette::ON_THREAD;

/// How a core is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CoreSize {
    /// A cell per CPU with its number in it.
    Numbered,
    /// A square per core.
    Large,
    /// A small square per core.
    Small,
    /// Not at all: counts in words.
    Count,
}

const NUMBER: Font = ON_THREAD;
const NAME: Font = Font::regular(10.0);
/// Room around cores inside their cache.
const PAD: f64 = 6.0;
/// Between two blocks.
const BETWEEN_BLOCKS: f64 = 6.0;
/// Between two cores, and between the CPUs of one.
const BETWEEN_CORES: f64 = 3.0;
const BETWEEN_CPUS: f64 = 1.0;
/// Height of the name of a cache.
const NAME_HEIGHT: f64 = 15.0;

/// The cell of one core.
#[derive(Clone, Copy)]
struct Cell {
    least: f64,
    most: f64,
    height: f64,
}

impl CoreSize {
    /// The cell that fits every core of a node.
    fn cell(self, blocks: &[Block], last_cpu: CpuId) -> Cell {
        let cores = || blocks.iter().flat_map(|block| &block.cores);
        let threads = cores().map(|core| core.cpus.len()).max().unwrap_or(1).max(1) as f64;
        let inner = BETWEEN_CPUS * (threads - 1.0);
        let (cpu, most, height) = match self {
            Self::Numbered => {
                // Digits are equally wide, so the longest number is the widest.
                let widest = NUMBER.width(&last_cpu.to_string());
                (widest + 6.0, (widest + 6.0).max(40.0), 19.0)
            }
            Self::Large => (14.0 / threads, 24.0 / threads, 14.0),
            Self::Small | Self::Count => (9.0 / threads, 14.0 / threads, 9.0),
        };
        Cell { least: cpu * threads + inner, most: most * threads + inner, height }
    }
}

/// The arrangement of a node's blocks.
#[derive(Clone, Copy)]
struct Plan {
    per_row: usize,
    /// Room around the cores of a block; none where no cache is drawn around them.
    pad: f64,
    /// The width of a block.
    width: f64,
    /// Height of the names of caches; 0 where there are none, or they do not fit.
    head: f64,
    shape: Shape,
}

impl Plan {
    /// With this many blocks in a row; `None` when they do not fit.
    fn new(blocks: &[Block], per_row: usize, width: f64, cell: Cell) -> Option<Self> {
        let width = (width - BETWEEN_BLOCKS * (per_row as f64 - 1.0)) / per_row as f64;
        let most = blocks.iter().map(|block| block.cores.len()).max()?;
        let pad = if blocks.iter().any(|block| block.cache.is_some()) { PAD } else { 0.0 };
        let shape = Shape::new(most, width - 2.0 * pad, cell)?;
        let names = || blocks.iter().map(|block| name(block, width - 2.0 * pad));
        let head = if names().any(|name| !name.is_empty()) { NAME_HEIGHT } else { 0.0 };
        // Where cores are as wide as they get, blocks end with them.
        let content = names().map(|name| NAME.width(&name)).fold(shape.width(), f64::max) + 2.0 * pad;
        Some(Self { per_row, pad, width: width.min(content), head, shape })
    }

    fn block_height(&self) -> f64 {
        self.head + self.shape.height + 2.0 * self.pad
    }

    /// The height of all, and what speaks against it: gaps in the last row, caches without names.
    fn cost(&self, blocks: &[Block]) -> f64 {
        const UNNAMED: f64 = 40.0;
        let rows = blocks.len().div_ceil(self.per_row);
        let empty = (rows * self.per_row - blocks.len()) as f64;
        let unnamed = self.head == 0.0 && blocks.iter().any(|block| block.cache.is_some());
        rows as f64 * (self.block_height() + BETWEEN_BLOCKS)
            + 2.0 * empty
            + if unnamed { UNNAMED } else { 0.0 }
    }
}

/// Lays out the blocks of a node in a frame of a width; `None` when they do not fit into it.
pub(super) fn blocks(blocks: &[Block], width: f64, size: CoreSize, last_cpu: CpuId) -> Option<Frame> {
    let cell = size.cell(blocks, last_cpu);
    let plan = (1..=blocks.len())
        .filter_map(|per_row| Plan::new(blocks, per_row, width, cell))
        .min_by(|a, b| a.cost(blocks).total_cmp(&b.cost(blocks)))?;
    let (across, down) = (plan.width + BETWEEN_BLOCKS, plan.block_height() + BETWEEN_BLOCKS);
    let rows = blocks.len().div_ceil(plan.per_row) as f64;
    let mut all = Frame::new(Role::Group, width, rows * down - BETWEEN_BLOCKS);
    for (at, block) in blocks.iter().enumerate() {
        let (row, column) = ((at / plan.per_row) as f64, (at % plan.per_row) as f64);
        all.children.push(draw(block, &plan, size).moved(column * across, row * down));
    }
    Some(all)
}

/// The arrangement of a block's cores.
#[derive(Clone, Copy)]
struct Shape {
    columns: usize,
    core_width: f64,
    core_height: f64,
    height: f64,
}

impl Shape {
    fn width(&self) -> f64 {
        self.columns as f64 * (self.core_width + BETWEEN_CORES) - BETWEEN_CORES
    }

    /// For this many cores in this much room; `None` when not even one fits beside the edge.
    fn new(cores: usize, room: f64, cell: Cell) -> Option<Self> {
        let fit = ((room + BETWEEN_CORES) / (cell.least + BETWEEN_CORES)).floor();
        if fit < 1.0 {
            return None;
        }
        let rows = cores.div_ceil((fit as usize).min(cores));
        // The same number of rows with as many in each.
        let columns = cores.div_ceil(rows);
        let core_width = (room + BETWEEN_CORES) / columns as f64 - BETWEEN_CORES;
        let height = rows as f64 * (cell.height + BETWEEN_CORES) - BETWEEN_CORES;
        Some(Self { columns, core_width: core_width.min(cell.most), core_height: cell.height, height })
    }
}

fn draw(block: &Block, plan: &Plan, size: CoreSize) -> Frame {
    let Plan { pad, width, head, shape, .. } = *plan;
    let role = if block.cache.is_some() { Role::Cache } else { Role::Group };
    let mut frame = Frame::new(role, width, plan.block_height());
    let text = name(block, width - 2.0 * pad);
    if head > 0.0 && !text.is_empty() {
        frame.labels.push(Label::new(&text, NAME, pad, (4.0, NAME_HEIGHT - 2.0)).toned(Tone::Faint));
    }
    for (at, core) in block.cores.iter().enumerate() {
        let x = pad + (at % shape.columns) as f64 * (shape.core_width + BETWEEN_CORES);
        let y = pad + head + (at / shape.columns) as f64 * (shape.core_height + BETWEEN_CORES);
        frame.children.extend(cpus(core, x, y, shape, size));
    }
    frame
}

/// The CPUs of a core, side by side.
fn cpus(core: &Core, x: f64, y: f64, shape: Shape, size: CoreSize) -> impl Iterator<Item = Frame> {
    let count = core.cpus.len() as f64;
    let width = (shape.core_width + BETWEEN_CPUS) / count - BETWEEN_CPUS;
    let role = if core.slow { Role::SlowThread } else { Role::Thread };
    core.cpus.iter().enumerate().map(move |(at, cpu)| {
        let mut frame = Frame::new(role, width, shape.core_height);
        if size == CoreSize::Numbered {
            let label = Label::new(&cpu.to_string(), NUMBER, width / 2.0, (0.0, shape.core_height));
            frame.labels.push(label.anchored(Anchor::Middle).toned(Tone::OnThread));
        }
        frame.moved(x + at as f64 * (width + BETWEEN_CPUS), y)
    })
}

/// The longest name of a block's cache that fits.
fn name(block: &Block, width: f64) -> String {
    let cache = block.cache.as_deref().unwrap_or_default();
    let short = cache.split_once(' ').map_or(cache, |(_, size)| size);
    let times = match (block.times, block.cache.is_some()) {
        (1, _) => String::new(),
        (times, true) => format!("{times} x "),
        (times, false) => format!("{times} alike"),
    };
    let fits = |text: &String| NAME.width(text) <= width;
    [format!("{times}{cache}"), format!("{times}{short}")].into_iter().find(fits).unwrap_or_default()
}

/// The cores of a node in words: `24 cores, 48 CPUs, 4 x L3 32 MiB`.
pub(super) fn words(blocks: &[Block]) -> String {
    let cores: usize = blocks.iter().map(|block| block.cores.len() * block.times).sum();
    let cpus: usize =
        blocks.iter().flat_map(|block| block.cores.iter().map(|core| core.cpus.len() * block.times)).sum();
    let cpus = (cpus != cores).then(|| plural(cpus, "CPU"));
    let caches = Some(caches(blocks)).filter(|caches| !caches.is_empty());
    [plural(cores, "core")].into_iter().chain(cpus).chain(caches).collect::<Vec<_>>().join(", ")
}

/// The last-level caches of a node in words: `4 x L3 32 MiB`.
pub(super) fn caches(blocks: &[Block]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for block in blocks {
        *counts.entry(block.cache.as_deref().unwrap_or_default()).or_default() += block.times;
    }
    let named = counts.iter().filter(|(cache, _)| !cache.is_empty());
    let words = |(cache, count): (&&str, &usize)| match count {
        1 => (*cache).to_owned(),
        count => format!("{count} x {cache}"),
    };
    named.map(words).collect::<Vec<_>>().join(", ")
}
