//! The packages and nodes that are side by side.
//!
//! There is no formula for what looks well: every sensible arrangement is laid out, and the one
//! that comes nearest to the shape of a screen, and of a box that the eye takes in, is kept.

use super::boxes::{Columns, GAP, NARROWEST, body, loose_columns, with_equal_bars};
use super::cores::CoreSize;
use super::scene::Scene;
use super::{Detail, HEIGHT, WIDTH};
use crate::svg::frame::Frame;

/// About the height of the title, the foot and the margins.
const HEAD_AND_FOOT: f64 = 130.0;
/// The shape of a page that a screen shows well: width to height.
const ASPECT: f64 = 1.5;
/// The shape of a package that the eye takes in best.
const BOX_ASPECT: f64 = 1.2;

/// The room for packages and nodes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Space {
    /// The narrowest they may be.
    pub(super) least: f64,
    /// The widest they may be.
    pub(super) most: f64,
    /// The other parts of the page's width: panel and margins.
    pub(super) beside: f64,
    /// The height that the panel takes anyway.
    pub(super) height: f64,
}

/// Lays out packages and nodes as well as can be; `None` when no arrangement fits.
pub(super) fn best_body(scene: &Scene, space: Space, detail: &Detail) -> Option<Frame> {
    if too_much(scene, detail) {
        return None;
    }
    let mut widths = [300.0, 420.0, 540.0, 680.0, 800.0, space.most]
        .map(|width: f64| width.max(space.least).min(space.most))
        .to_vec();
    widths.dedup();
    let mut best: Option<(f64, Frame)> = None;
    for width in widths {
        for columns in arrangements(scene).filter(|columns| !too_high(scene, *columns, detail)) {
            let Some(body) = body(scene, width, columns, detail) else { continue };
            let cost = cost(scene, &body, columns, space);
            if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                best = Some((cost, body));
            }
        }
    }
    best.map(|(_, body)| with_equal_bars(body))
}

/// How far an arrangement is from what is wanted. The weights were found by looking at pictures of
/// twenty machines from a laptop to 64 nodes.
fn cost(scene: &Scene, body: &Frame, columns: Columns, space: Space) -> f64 {
    let width = body.area.width + space.beside;
    let height = body.area.height.max(space.height) + HEAD_AND_FOOT;
    let rows = scene.boxes.len().div_ceil(columns.boxes).max(1) as f64;
    let of_box = (body.area.width / columns.boxes as f64) / (body.area.height.max(1.0) / rows);
    let loose = scene.loose.len();
    (width / height / ASPECT).ln().abs()
        + 0.4 * (of_box / BOX_ASPECT).ln().abs()
        + 0.4 * width * height / (WIDTH * HEIGHT)
        + 0.8 * empty_share(scene.boxes.len(), columns.boxes)
        + 0.4 * empty_share(loose, loose_columns(loose, body.area.width))
        + if height > HEIGHT { 10.0 } else { 0.0 }
}

/// The part of the last row that stays empty.
fn empty_share(count: usize, columns: usize) -> f64 {
    let last = count % columns.max(1);
    if last == 0 { 0.0 } else { (columns - last) as f64 / columns as f64 }
}

/// The ways to put packages, and nodes in them, side by side.
fn arrangements(scene: &Scene) -> impl Iterator<Item = Columns> {
    let most_cards = scene.boxes.iter().map(|of_box| of_box.cards.len()).max().unwrap_or(1);
    let boxes = scene.boxes.len().clamp(1, 8);
    (1..=boxes).flat_map(move |boxes| (1..=most_cards.min(8)).map(move |cards| Columns { boxes, cards }))
}

/// Whether the smallest cards in this arrangement would be higher than the page, so that laying
/// them out is of no use. The last steps of detail take any height.
fn too_high(scene: &Scene, columns: Columns, detail: &Detail) -> bool {
    const CARD: f64 = 70.0;
    let rows = scene.boxes.chunks(columns.boxes.max(1)).map(|row| {
        let most = row.iter().map(|of_box| of_box.cards.len()).max().unwrap_or(0);
        most.div_ceil(columns.cards.max(1)) as f64 * (CARD + GAP) + GAP
    });
    detail.cores != CoreSize::Count && rows.sum::<f64>() > HEIGHT - HEAD_AND_FOOT
}

/// Whether the cores, or the smallest cards, would fill the page by themselves, so that laying them
/// out is of no use.
fn too_much(scene: &Scene, detail: &Detail) -> bool {
    // Cells with numbers take room by CPU, squares by core.
    let (of_core, of_cpu) = match detail.cores {
        CoreSize::Numbered => (0.0, 20.0 * 22.0),
        CoreSize::Large => (17.0 * 17.0, 0.0),
        CoreSize::Small => (12.0 * 12.0, 0.0),
        CoreSize::Count => (0.0, 0.0),
    };
    const CARD: f64 = NARROWEST * 60.0;
    let of_boxes = || scene.boxes.iter().flat_map(|of_box| &of_box.cards);
    let cores = || of_boxes().flat_map(|card| &card.blocks).flat_map(|block| &block.cores);
    let cpus: usize = cores().map(|core| core.cpus.len()).sum();
    let cards = of_boxes().count() + scene.loose.len();
    let least = cores().count() as f64 * of_core + cpus as f64 * of_cpu + cards as f64 * CARD;
    least > WIDTH * HEIGHT
}
