//! A node, or several that are alike, as a card.

use nodewise_machine::{Bytes, check::node_names};

use super::Detail;
use super::cores::{CoreSize, blocks, caches, words};
use super::scene::{Card, Chip, Memory, Scale};
use crate::digest::counts::{cpu_names, plural};
use crate::svg::font::Font;
use crate::svg::frame::{Frame, Label, Role, Stack, Tone};

const TITLE: Font = Font::bold(13.0);
const TEXT: Font = Font::regular(11.0);
const SMALL: Font = Font::regular(10.0);
/// Room around the content of a card.
const PAD: f64 = 10.0;
/// Height of a memory bar, and its least length.
pub(super) const BAR: f64 = 9.0;

/// Lays out a card; `None` when its cores do not fit into the width.
pub(super) fn card(card: &Card, width: f64, scale: Scale, detail: &Detail) -> Option<Frame> {
    let role = if card.cpus.is_empty() { Role::MemoryNode } else { Role::Node };
    let mut stack = Stack::new(role, width, PAD);
    heading(card, &mut stack);
    if !card.cpus.is_empty() {
        let shared = if card.shares_cpus_with.is_empty() {
            String::new()
        } else {
            format!(", shared with {}", node_names(&card.shares_cpus_with))
        };
        stack.text(&format!("{}{shared}", cpu_names(&card.cpus)), SMALL, Tone::Faint, 2);
        if detail.cores == CoreSize::Count {
            stack.text(&words(&card.blocks), TEXT, Tone::Plain, 2);
        } else {
            let cores = blocks(&card.blocks, stack.width(), detail.cores, scale.last_cpu)?;
            if cores.children.iter().all(|block| block.labels.is_empty()) {
                stack.text(&caches(&card.blocks), SMALL, Tone::Faint, 1);
            }
            stack.gap(4.0);
            stack.frame(cores);
        }
    }
    if !card.nodes.is_empty() {
        stack.gap(4.0);
        memory(card, scale.largest, &mut stack);
    }
    for note in &card.notes {
        stack.text(note, SMALL, Tone::Faint, 1);
    }
    if !card.chips.is_empty() {
        stack.gap(6.0);
        let room = stack.width();
        stack.flow(card.chips.iter().map(|device| chip(device, room)).collect(), 4.0);
    }
    let mut frame = stack.finish();
    frame.id = card.nodes.first().map(|node| format!("node-{node}"));
    frame.tip = Some(tip(card));
    Some(frame)
}

fn heading(card: &Card, stack: &mut Stack) {
    let title = if card.nodes.is_empty() { "no node".to_owned() } else { node_names(&card.nodes) };
    let alike = card.nodes.len() > 1;
    let each = if alike { " each" } else { "" };
    let count = if alike { card.cpus.len() / card.nodes.len() } else { card.cpus.len() };
    let (side, tone) = match card.kind.words() {
        Some(words) if !card.nodes.is_empty() => (words.to_owned(), Tone::Notable),
        _ => (format!("{}{each}", plural(count, "CPU")), Tone::Faint),
    };
    if alike {
        stack.pair(
            (&format!("{} alike", plural(card.nodes.len(), "node")), TITLE, Tone::Plain),
            (&side, TEXT, tone),
        );
        stack.text(&title, TEXT, Tone::Plain, 3);
    } else {
        stack.pair((&title, TITLE, Tone::Plain), (&side, TEXT, tone));
    }
}

/// Size, share in use, tier and cost; then the bar.
fn memory(card: &Card, largest: Bytes, stack: &mut Stack) {
    let Memory { least, most, used_percent } = card.memory;
    let size = match (least, most) {
        (Some(least), Some(most)) if least.to_string() == most.to_string() => most.to_string(),
        (Some(least), Some(most)) => format!("{least} to {most}"),
        _ => "memory size unknown".to_owned(),
    };
    if most == Some(Bytes::new(0)) {
        return;
    }
    let each = if card.nodes.len() > 1 { " each" } else { "" };
    let used = used_percent.map(|used| format!("{used}% used")).unwrap_or_default();
    stack.pair((&format!("{size}{each}"), TEXT, Tone::Plain), (&used, SMALL, Tone::Faint));
    if let Some(most) = most {
        stack.gap(2.0);
        stack.frame(bar(most, used_percent, largest, stack.width()));
        stack.gap(2.0);
    }
    let tier = card.tier.map(|tier| format!("tier {tier}"));
    let facts: Vec<String> = tier.into_iter().chain(card.cost.clone()).collect();
    if !facts.is_empty() {
        stack.text(&facts.join(", "), SMALL, Tone::Faint, 2);
    }
}

fn bar(size: Bytes, used_percent: Option<u64>, largest: Bytes, width: f64) -> Frame {
    let share = size.get() as f64 / largest.get().max(1) as f64;
    let length = (share * width).clamp(BAR, width.max(BAR));
    let mut bar = Frame::new(Role::Memory, length, BAR);
    if let Some(used) = used_percent.filter(|used| *used > 0) {
        bar.children.push(Frame::new(Role::Used, length * used.min(100) as f64 / 100.0, BAR));
    }
    // The bar keeps its place in a row as wide as the card, whatever its length.
    let mut row = Frame::new(Role::Group, width, BAR);
    row.children.push(bar);
    row
}

/// A device, at most as wide as the room there is.
pub(super) fn chip(chip: &Chip, room: f64) -> Frame {
    const SIDE: f64 = 6.0;
    const HEIGHT: f64 = 17.0;
    let label = Label::new(&SMALL.fit(&chip.text, room - 2.0 * SIDE), SMALL, SIDE, (0.0, HEIGHT));
    let mut frame = Frame::new(chip.role, label.area().right() + SIDE, HEIGHT);
    frame.labels.push(label);
    frame
}

fn tip(card: &Card) -> String {
    let mut facts = Vec::new();
    if !card.nodes.is_empty() {
        facts.push(node_names(&card.nodes));
    }
    facts.push(cpu_names(&card.cpus));
    facts.extend(card.memory.most.map(|size| format!("memory {size}")));
    facts.join(", ")
}
