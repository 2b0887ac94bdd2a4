//! The whole picture: title, packages on the left, distances on the right, a foot.

use nodewise_machine::{CpuKind, Machine};

use super::arrangement::{Space, best_body};
use super::boxes::GAP;
use super::card::chip;
use super::cores::CoreSize;
use super::scene::Scene;
use super::{Caches, Detail, WIDTH};
use crate::digest::cache::CacheLevel;
use crate::digest::counts::{cpu_names, ghz, headline, platform, processors};
use crate::digest::oddity::pointer;
use crate::digest::provenance::source;
use crate::svg::frame::{Frame, Role, Stack, Tone};
use crate::svg::legend::square;
use crate::svg::sheet::{MARGIN, SMALL, TEXT, TITLE};

/// Between the packages and the panel.
const GUTTER: f64 = 28.0;

/// Lays out the page in the arrangement that fills it best; `None` when there is none.
pub(super) fn page(
    machine: &Machine,
    scene: &Scene,
    panel: Option<&Frame>,
    detail: &Detail,
    caches: Caches,
) -> Option<Frame> {
    let beside = panel.map_or(0.0, |panel| panel.area.width + GUTTER) + 2.0 * MARGIN;
    let space = Space {
        // The title is on one line where it can.
        least: TITLE.width(&headline(machine)) + 1.0 + 2.0 * MARGIN - beside,
        most: WIDTH - beside,
        beside,
        height: panel.map_or(0.0, |panel| panel.area.height),
    };
    let body = best_body(scene, space, detail)?;
    let mut stack = assemble(machine, body, panel);
    if caches == Caches::All {
        levels(machine, &mut stack);
    }
    foot(machine, scene, detail, &mut stack);
    Some(stack.finish())
}

fn assemble(machine: &Machine, body: Frame, panel: Option<&Frame>) -> Stack {
    let beside = panel.map_or(0.0, |panel| panel.area.width + GUTTER);
    let width = body.area.width + beside + 2.0 * MARGIN;
    let mut stack = Stack::new(Role::Page, width, MARGIN);
    stack.text(&headline(machine), TITLE, Tone::Plain, 3);
    stack.text(&processors(machine), TEXT, Tone::Faint, 2);
    stack.text(&platform(machine), TEXT, Tone::Faint, 2);
    stack.text(&source(machine), TEXT, Tone::Faint, 2);
    stack.gap(12.0);
    let mut row = Frame::new(Role::Group, width - 2.0 * MARGIN, body.area.height);
    if let Some(panel) = panel {
        row.area.height = row.area.height.max(panel.area.height);
        let right = row.area.width - panel.area.width;
        row.children.push(panel.clone().moved(right, 0.0));
    }
    row.children.insert(0, body);
    stack.frame(row);
    stack
}

/// A line for each level of caches.
fn levels(machine: &Machine, stack: &mut Stack) {
    stack.gap(GAP);
    for level in CacheLevel::all(machine) {
        stack.text(&format!("{}: {}", level.name, level.words()), TEXT, Tone::Plain, 2);
    }
}

/// Describes the boxes around cores, where there are any.
fn cache_word(scene: &Scene) -> Option<String> {
    let blocks = scene.boxes.iter().flat_map(|of_box| &of_box.cards).flat_map(|card| &card.blocks);
    let cache = blocks.filter_map(|block| block.cache.as_deref()).next()?;
    Some(format!("boxes around them are {} caches", cache.split(' ').next().unwrap_or(cache)))
}

/// Draws the legend of the two shades of cells, where CPUs differ in speed.
fn kinds(machine: &Machine, stack: &mut Stack) {
    let kinds = machine.cpu_kinds();
    if kinds.len() < 2 {
        return;
    }
    // A square, and the room before and behind the words.
    let room = stack.width() - 24.0;
    let entry = |(at, kind): (usize, &CpuKind)| {
        let role = if at == 0 { Role::Thread } else { Role::SlowThread };
        let speed = kind.max_frequency_khz.map(|khz| format!(", up to {}", ghz(khz))).unwrap_or_default();
        square(role, &SMALL.fit(&format!("{}: {}{speed}", kind.name, cpu_names(&kind.cpus)), room))
    };
    stack.gap(GAP);
    stack.flow(kinds.iter().enumerate().map(entry).collect(), 8.0);
}

fn foot(machine: &Machine, scene: &Scene, detail: &Detail, stack: &mut Stack) {
    if !scene.nowhere.is_empty() {
        stack.gap(GAP);
        stack.text("on no node", SMALL, Tone::Faint, 1);
        stack.gap(2.0);
        let room = stack.width();
        stack.flow(scene.nowhere.iter().map(|device| chip(device, room)).collect(), 4.0);
    }
    kinds(machine, stack);
    let mut words = Vec::new();
    if detail.cores != CoreSize::Count && !scene.boxes.is_empty() {
        words.push("a cell is a CPU, those of a core touch".to_owned());
        words.extend(cache_word(scene));
    }
    if scene.scale.largest.get() > 0 {
        words.push("memory bars are to scale".to_owned());
    }
    let oddities = pointer(machine).unwrap_or_default();
    stack.gap(10.0);
    let words = words.join("; ");
    if SMALL.width(&words) + SMALL.width(&oddities) + 24.0 <= stack.width() {
        stack.pair((&words, SMALL, Tone::Faint), (&oddities, SMALL, Tone::Notable));
    } else {
        stack.text(&words, SMALL, Tone::Faint, 3);
        stack.text(&oddities, SMALL, Tone::Notable, 1);
    }
}
