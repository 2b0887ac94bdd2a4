//! The picture of a machine: packages, nodes, last-level caches, cores, memory, devices, distances.
//!
//! A laptop and a machine of 64 nodes must both be readable on a laptop's screen. So the picture
//! is tried in steps of less and less detail, and the first that fits is drawn: cores with
//! their numbers, then as squares; packages that are alike drawn once, then nodes, then caches;
//! counts instead of cores. What is folded says so and names its nodes.

mod arrangement;
mod boxes;
mod card;
mod cores;
mod distances;
mod fold;
mod page;
mod scene;

use nodewise_machine::Machine;

use crate::digest::counts::{headline, platform, processors};
use crate::digest::provenance::source;
use crate::svg::frame::Frame;
use crate::svg::paint::paint;
use crate::svg::palette::Theme;
use cores::CoreSize;
use scene::Scene;

/// The widest picture, px: what a laptop shows without scaling.
pub const WIDTH: f64 = 1200.0;
/// The highest picture that still shows details, px. Only the last step may be higher.
pub const HEIGHT: f64 = 820.0;

/// How much of a machine is drawn one by one.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Detail {
    cores: CoreSize,
    /// The parts that are drawn once where several are alike.
    fold: Fold,
    /// Most devices of a node that are named; the others are counted.
    devices: usize,
    /// Most packages, nodes of a package and memory-only nodes that are drawn; the others are
    /// counted together.
    most: usize,
}

/// The parts that are drawn once where several are alike. Each variant includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fold {
    Nothing,
    MemoryOnlyNodes,
    Packages,
    Nodes,
    Caches,
}

/// The steps, most detail first.
const STEPS: [Detail; 14] = {
    const fn step(cores: CoreSize, fold: Fold, devices: usize) -> Detail {
        Detail { cores, fold, devices, most: 64 }
    }
    [
        step(CoreSize::Numbered, Fold::Nothing, 16),
        step(CoreSize::Large, Fold::Nothing, 16),
        step(CoreSize::Small, Fold::Nothing, 16),
        step(CoreSize::Numbered, Fold::MemoryOnlyNodes, 16),
        step(CoreSize::Small, Fold::MemoryOnlyNodes, 16),
        step(CoreSize::Numbered, Fold::Packages, 16),
        step(CoreSize::Large, Fold::Packages, 16),
        step(CoreSize::Small, Fold::Packages, 12),
        step(CoreSize::Numbered, Fold::Nodes, 12),
        step(CoreSize::Small, Fold::Nodes, 12),
        step(CoreSize::Small, Fold::Caches, 8),
        step(CoreSize::Count, Fold::Caches, 6),
        Detail { cores: CoreSize::Count, fold: Fold::Caches, devices: 4, most: 8 },
        Detail { cores: CoreSize::Count, fold: Fold::Caches, devices: 2, most: 4 },
    ]
};

/// Which caches a picture has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Caches {
    /// The last-level ones, as boxes around the cores that share them.
    #[default]
    LastLevel,
    /// Those, and all others in a line for each level.
    All,
}

/// Lays the picture out: the tree that [`machine_svg`] paints.
pub fn layout(machine: &Machine, caches: Caches) -> Frame {
    let whole = Scene::new(machine);
    let panel = distances::panel(machine);
    let mut drawn = None;
    for detail in &STEPS {
        let page = page::page(machine, &whole.folded(detail), panel.as_ref(), detail, caches);
        let fits = page.as_ref().is_some_and(|page| page.area.height <= HEIGHT);
        drawn = page.or(drawn);
        if fits {
            break;
        }
    }
    drawn.unwrap_or_else(|| Frame::new(crate::svg::Role::Page, WIDTH, 100.0))
}

/// Draws a machine as an SVG document of its own.
///
/// # Units
/// Lengths in px; at most [`WIDTH`] wide.
pub fn machine_svg(machine: &Machine, caches: Caches, theme: Theme) -> String {
    let title = headline(machine);
    let from = source(machine);
    let known: Vec<String> =
        [processors(machine), platform(machine), from].into_iter().filter(|part| !part.is_empty()).collect();
    paint(&layout(machine, caches), &title, &known.join(", "), theme)
}
