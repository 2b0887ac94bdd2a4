//! Packages with the nodes in them, and the nodes that are in none.

use super::Detail;
use super::card::{BAR, card};
use super::fold::counted;
use super::scene::{Card, PackageBox, Scale, Scene};
use crate::digest::counts::plural;
use crate::svg::font::Font;
use crate::svg::frame::{Frame, Role, Stack, Tone};

const TITLE: Font = Font::bold(12.0);
const TEXT: Font = Font::regular(11.0);
/// Between two boxes or cards.
pub(super) const GAP: f64 = 12.0;
/// Room around the cards of a box.
const PAD: f64 = 10.0;
/// The narrowest card: a title and a short text beside it.
pub(super) const NARROWEST: f64 = 138.0;

/// How far a pile of alike things shows under the one on top.
const PILE: f64 = 8.0;

/// The arrangement of boxes and cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Columns {
    pub(super) boxes: usize,
    /// Nodes of a package side by side.
    pub(super) cards: usize,
}

/// Lays out packages, then the nodes without CPUs below them; `None` when a card gets too narrow.
pub(super) fn body(scene: &Scene, width: f64, columns: Columns, detail: &Detail) -> Option<Frame> {
    let mut stack = Stack::new(Role::Group, width, 0.0);
    if !scene.boxes.is_empty() {
        let room = column_width(width, columns.boxes);
        let boxes: Option<Vec<Frame>> = scene
            .boxes
            .iter()
            .map(|of_box| package(of_box, room, columns.cards, scene.scale, detail))
            .collect();
        stack.frame(grid(boxes?, width, columns.boxes));
    }
    if !scene.loose.is_empty() {
        if !scene.boxes.is_empty() {
            stack.gap(GAP);
        }
        stack.frame(loose(&scene.loose, width, scene.scale, detail)?);
    }
    if !scene.rest.nodes.is_empty() {
        stack.gap(GAP);
        let text = format!("not drawn: {}", counted(&scene.rest.nodes));
        stack.text(&text, TEXT, Tone::Notable, 3);
    }
    Some(stack.finish())
}

/// Makes bars of equal memory equally long in cards of any width: a full bar is as long as the
/// narrowest card has room for.
pub(super) fn with_equal_bars(mut body: Frame) -> Frame {
    let narrowest = narrowest_bar_row(&body);
    level_bars(&mut body, narrowest);
    body
}

/// The width of the narrowest row with a memory bar.
fn narrowest_bar_row(frame: &Frame) -> f64 {
    let of_child = |child: &Frame| match child.role {
        Role::Memory => frame.area.width,
        _ => narrowest_bar_row(child),
    };
    frame.children.iter().map(of_child).fold(f64::INFINITY, f64::min)
}

fn level_bars(frame: &mut Frame, full: f64) {
    let room = frame.area.width;
    for child in &mut frame.children {
        if child.role == Role::Memory {
            let length = (child.area.width * full / room).max(BAR);
            let ratio = length / child.area.width;
            child.area.width = length;
            child.children.iter_mut().for_each(|used| used.area.width *= ratio);
        } else {
            level_bars(child, full);
        }
    }
}

fn column_width(width: f64, columns: usize) -> f64 {
    (width - GAP * (columns as f64 - 1.0)) / columns as f64
}

fn package(of_box: &PackageBox, width: f64, columns: usize, scale: Scale, detail: &Detail) -> Option<Frame> {
    if of_box.times > 1 {
        let one = one_package(of_box, width - PILE, columns, scale, detail)?;
        return Some(pile(one));
    }
    one_package(of_box, width, columns, scale, detail)
}

/// The frame on top of others like it.
fn pile(top: Frame) -> Frame {
    let mut pile = Frame::new(Role::Pile, top.area.width + PILE, top.area.height + PILE);
    pile.children.push(top);
    pile
}

fn one_package(
    of_box: &PackageBox,
    width: f64,
    columns: usize,
    scale: Scale,
    detail: &Detail,
) -> Option<Frame> {
    let mut stack = Stack::new(Role::Package, width, PAD);
    let columns = columns.min(of_box.cards.len());
    let room = column_width(stack.width(), columns);
    if room < NARROWEST {
        return None;
    }
    match (&of_box.label, of_box.times) {
        (Some(label), 1) => stack.text(label, TITLE, Tone::Plain, 3),
        (None, 1) => {}
        (label, times) => {
            let word = match (label, of_box.packages.len() / times) {
                (None, _) => plural(times, "node"),
                (Some(_), 0 | 1) => plural(times, "package"),
                (Some(_), several) => format!("{times} groups of {several} packages"),
            };
            stack.text(&format!("{word} alike"), TITLE, Tone::Plain, 1);
            stack.text(&format!("{}, the first drawn", counted(&of_box.nodes)), TEXT, Tone::Faint, 3);
        }
    }
    stack.gap(if of_box.label.is_some() || of_box.times > 1 { 4.0 } else { 0.0 });
    let cards: Option<Vec<Frame>> =
        of_box.cards.iter().map(|node| one_or_pile(node, room, scale, detail)).collect();
    stack.frame(grid(cards?, stack.width(), columns));
    Some(stack.finish())
}

fn one_or_pile(node: &Card, width: f64, scale: Scale, detail: &Detail) -> Option<Frame> {
    if node.nodes.len() > 1 {
        return card(node, width - PILE, scale, detail).map(pile);
    }
    card(node, width, scale, detail)
}

/// The number of nodes without CPUs side by side.
pub(super) fn loose_columns(cards: usize, width: f64) -> usize {
    const WANTED: f64 = 150.0;
    let fit = ((width + GAP) / (WANTED + GAP)).floor().max(1.0) as usize;
    // The same number of rows with as many in each.
    let rows = cards.div_ceil(fit).max(1);
    cards.div_ceil(rows).max(1)
}

fn loose(cards: &[Card], width: f64, scale: Scale, detail: &Detail) -> Option<Frame> {
    const MOST: f64 = 300.0;
    let columns = loose_columns(cards.len(), width);
    let room = column_width(width, columns).min(MOST);
    let cards: Option<Vec<Frame>> = cards.iter().map(|node| one_or_pile(node, room, scale, detail)).collect();
    Some(grid(cards?, width, columns))
}

fn stretch(frame: &mut Frame, height: f64) {
    if frame.role == Role::Pile {
        frame.children.iter_mut().for_each(|top| top.area.height = height - PILE);
    }
    frame.area.height = height;
}

/// Puts frames of one width into rows; all of a row become as high as the highest.
fn grid(mut frames: Vec<Frame>, width: f64, columns: usize) -> Frame {
    let mut all = Frame::new(Role::Group, width, 0.0);
    let mut y = 0.0;
    while !frames.is_empty() {
        let rest = frames.split_off(columns.min(frames.len()));
        let height = frames.iter().map(|frame| frame.area.height).fold(0.0, f64::max);
        let mut x = 0.0;
        for mut frame in frames {
            stretch(&mut frame, height);
            let step = frame.area.width + GAP;
            all.children.push(frame.moved(x, y));
            x += step;
        }
        y += height + GAP;
        frames = rest;
    }
    all.area.height = (y - GAP).max(0.0);
    all
}
