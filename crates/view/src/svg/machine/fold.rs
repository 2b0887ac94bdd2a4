//! Folding: parts that are alike are drawn once.

use nodewise_machine::NodeSet;

use super::scene::{Block, Card, Chip, Core, PackageBox, Rest, Scene};
use super::{Detail, Fold};
use crate::digest::counts::plural;
use crate::digest::node::alike_sizes;
use crate::svg::frame::Role;

impl Scene {
    /// The same with as much folded and counted as a step of detail asks for.
    pub(super) fn folded(&self, detail: &Detail) -> Self {
        let mut scene = self.clone();
        if detail.fold >= Fold::Caches {
            let cards = scene.boxes.iter_mut().flat_map(|of_box| &mut of_box.cards);
            cards.for_each(|card| card.blocks = fold_blocks(&card.blocks));
        }
        if detail.fold >= Fold::MemoryOnlyNodes {
            scene.loose = fold_cards(&scene.loose);
        }
        if detail.fold >= Fold::Nodes {
            scene.boxes.iter_mut().for_each(|of_box| of_box.cards = fold_cards(&of_box.cards));
        }
        if detail.fold >= Fold::Packages {
            scene.boxes = fold_boxes(&scene.boxes);
        }
        scene.count_rest(detail.most);
        let cards = scene.boxes.iter_mut().flat_map(|of_box| &mut of_box.cards).chain(&mut scene.loose);
        cards.for_each(|card| limit_chips(&mut card.chips, detail.devices));
        limit_chips(&mut scene.nowhere, detail.devices);
        scene
    }

    /// Counts what is beyond the first `most` boxes, cards of a box and memory-only cards.
    fn count_rest(&mut self, most: usize) {
        let Rest { nodes } = &mut self.rest;
        for of_box in self.boxes.drain(most.min(self.boxes.len())..) {
            *nodes = nodes.union(&of_box.nodes);
        }
        let lists = self.boxes.iter_mut().map(|of_box| &mut of_box.cards).chain([&mut self.loose]);
        for cards in lists {
            for card in cards.drain(most.min(cards.len())..) {
                *nodes = nodes.union(&card.nodes);
            }
        }
    }
}

/// Keeps the first devices and counts the others.
fn limit_chips(chips: &mut Vec<Chip>, most: usize) {
    if chips.len() > most {
        let others = chips.len() + 1 - most;
        chips.truncate(most - 1);
        chips.push(Chip { role: Role::OtherDevice, text: format!("{others} more") });
    }
}

/// Blocks that are alike as one, in the order of the first.
fn fold_blocks(blocks: &[Block]) -> Vec<Block> {
    let mut folded: Vec<Block> = Vec::new();
    for block in blocks {
        match folded.iter_mut().find(|first| alike_blocks(first, block)) {
            Some(first) => first.times += block.times,
            None => folded.push(block.clone()),
        }
    }
    folded
}

fn alike_blocks(a: &Block, b: &Block) -> bool {
    let alike = |(a, b): (&Core, &Core)| a.cpus.len() == b.cpus.len() && a.slow == b.slow;
    a.cache == b.cache && a.cores.len() == b.cores.len() && a.cores.iter().zip(&b.cores).all(alike)
}

/// Nodes that are alike as one, in the order of the first.
fn fold_cards(cards: &[Card]) -> Vec<Card> {
    let mut folded: Vec<Card> = Vec::new();
    for card in cards {
        match folded.iter_mut().find(|first| alike_cards(first, card)) {
            Some(first) => join(first, card),
            None => folded.push(card.clone()),
        }
    }
    // A name stands for one device; of several nodes only the kinds can be named.
    folded.iter_mut().filter(|card| card.nodes.len() > 1).for_each(|card| count_kinds(&mut card.chips));
    folded
}

fn alike_cards(a: &Card, b: &Card) -> bool {
    let kinds = |card: &Card| card.chips.iter().map(|chip| chip.role).collect::<Vec<_>>();
    a.kind == b.kind
        && !a.nodes.is_empty()
        && !b.nodes.is_empty()
        && a.cpus.len() == b.cpus.len()
        && a.shares_cpus_with.is_empty() == b.shares_cpus_with.is_empty()
        && alike_sizes(a.memory.most, b.memory.most)
        && (a.tier, &a.cost, &a.notes) == (b.tier, &b.cost, &b.notes)
        && kinds(a) == kinds(b)
        && a.blocks.len() == b.blocks.len()
        && a.blocks.iter().zip(&b.blocks).all(|(a, b)| a.times == b.times && alike_blocks(a, b))
}

fn join(first: &mut Card, card: &Card) {
    first.nodes = first.nodes.union(&card.nodes);
    first.cpus = first.cpus.union(&card.cpus);
    first.shares_cpus_with = first.shares_cpus_with.union(&card.shares_cpus_with);
    first.memory.least = first.memory.least.min(card.memory.least);
    first.memory.most = first.memory.most.max(card.memory.most);
    // The share of one says nothing of the others.
    first.memory.used_percent = None;
}

fn count_kinds(chips: &mut Vec<Chip>) {
    const KINDS: [(Role, &str); 4] = [
        (Role::Compute, "GPU"),
        (Role::Network, "network device"),
        (Role::Disk, "disk"),
        (Role::OtherDevice, "other device"),
    ];
    let count = |(role, word)| {
        let count = chips.iter().filter(|chip| chip.role == role).count();
        (count > 0).then(|| Chip { role, text: plural(count, word) })
    };
    *chips = KINDS.into_iter().filter_map(count).collect();
}

/// Packages that are alike as one, in the order of the first.
fn fold_boxes(boxes: &[PackageBox]) -> Vec<PackageBox> {
    let mut folded: Vec<PackageBox> = Vec::new();
    for of_box in boxes {
        match folded.iter_mut().find(|first| alike_boxes(first, of_box)) {
            Some(first) => {
                first.packages.extend(&of_box.packages);
                first.nodes = first.nodes.union(&of_box.nodes);
                first.times += of_box.times;
                for (card, other) in first.cards.iter_mut().zip(&of_box.cards) {
                    let nodes = card.nodes.clone();
                    let cpus = card.cpus.clone();
                    join(card, other);
                    // The first package is the one that is drawn: its nodes keep their names.
                    card.nodes = nodes;
                    card.cpus = cpus;
                }
            }
            None => folded.push(of_box.clone()),
        }
    }
    for of_box in folded.iter_mut().filter(|of_box| of_box.times > 1) {
        of_box.cards.iter_mut().for_each(|card| count_kinds(&mut card.chips));
    }
    folded
}

fn alike_boxes(a: &PackageBox, b: &PackageBox) -> bool {
    a.label.is_some() == b.label.is_some()
        && a.packages.len() / a.times == b.packages.len() / b.times
        && a.cards.len() == b.cards.len()
        && a.cards.iter().zip(&b.cards).all(|(a, b)| a.nodes.len() == b.nodes.len() && alike_cards(a, b))
}

/// How many nodes a set names, and which: `60 nodes: 4-63`.
pub(super) fn counted(nodes: &NodeSet) -> String {
    format!("{}: {nodes}", plural(nodes.len(), "node"))
}

#[cfg(test)]
mod tests {
    use super::super::STEPS;
    use super::*;
    use nodewise_machine::spec;

    /// The boxes and the loose nodes that are drawn at a level of folding, as text.
    fn check(spec: &str, fold: Fold, boxes: &[&str], loose: &[&str]) {
        let machine = spec::machine(spec).unwrap();
        let detail = Detail { fold, ..STEPS[0] };
        let scene = Scene::new(&machine).folded(&detail);
        let written: Vec<String> = scene
            .boxes
            .iter()
            .map(|of_box| {
                let cards: Vec<String> = of_box.cards.iter().map(|card| card.nodes.to_string()).collect();
                format!("{} x [{}] of {}", of_box.times, cards.join(" "), of_box.nodes)
            })
            .collect();
        assert_eq!(written, boxes, "{spec}");
        let written: Vec<String> = scene.loose.iter().map(|card| card.nodes.to_string()).collect();
        assert_eq!(written, loose, "{spec}");
    }

    #[test]
    fn nothing_is_folded_without_need() {
        check("2x(2x(4c 8G)) (1G)", Fold::Nothing, &["1 x [0 1] of 0-1", "1 x [2 3] of 2-3"], &["4"]);
    }

    #[test]
    fn like_packages_are_drawn_once_and_name_all_nodes() {
        check("32x(2x(4c 8G))", Fold::Packages, &["32 x [0 1] of 0-63"], &[]);
        check("32x(2x(4c 8G))", Fold::Nodes, &["32 x [0-1] of 0-63"], &[]);
        check("4x(4c 8G); dev=net:eth0@1", Fold::Packages, &["3 x [0] of 0,2-3", "1 x [1] of 1"], &[]);
    }

    #[test]
    fn memory_may_differ_a_little_and_no_more() {
        check("(4c 62G) (4c 64G) (4c 32G)", Fold::Packages, &["2 x [0] of 0-1", "1 x [2] of 2"], &[]);
        check("(4c 1G) 7x(1G) (4G)", Fold::MemoryOnlyNodes, &["1 x [0] of 0"], &["1-7", "8"]);
    }

    #[test]
    fn what_is_not_drawn_is_counted() {
        let machine = spec::machine("(1c 1G) (1c 2G) (1c 4G) (1G) (2G) (4G)").unwrap();
        let scene = Scene::new(&machine).folded(&Detail { most: 2, ..STEPS[0] });
        assert_eq!(scene.rest.nodes.to_string(), "2,5");
    }
}
