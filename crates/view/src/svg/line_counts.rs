//! Cache lines that a program moved, as a heat map: CPUs of a node by memory of a node.

use crate::digest::line_counts::{LineCounts, OWN, PhaseShare, percent};
use crate::svg::frame::{Frame, Role, Stack, Tone};
use crate::svg::heatmap::{GUTTER, flow_width, share_panel};
use crate::svg::paint::paint;
use crate::svg::palette::Theme;
use crate::svg::sheet::{self, HEAD, MARGIN, SMALL, TEXT};

/// Most mappings that are listed below the picture.
const MOST_MAPPINGS: usize = 5;
/// Most phases that have a table: those with most remote lines.
const MOST_PHASES: usize = 8;
/// Most nodes with CPUs that have a sentence of their own.
const MOST_NODES: usize = 16;
/// The narrowest page: room for the sentences.
const LEAST: f64 = 620.0;

/// Draws the counts as an SVG document; `provenance` is the caption: the command and the machine.
///
/// # Units
/// Lengths in px; at most 980 wide.
pub fn line_counts_svg(counts: &LineCounts, provenance: &str, theme: Theme) -> String {
    let about = "cache lines by node of the CPUs and node of the memory";
    paint(&line_counts_page(counts, provenance), &title(counts), about, theme)
}

/// Lays out the picture.
pub fn line_counts_page(counts: &LineCounts, provenance: &str) -> Frame {
    let mut panels = vec![share_panel(&counts.matrix())];
    if let Some(share) = counts.of_kernel() {
        panels.push(share_panel(&counts.kernel_matrix(&share.words())));
    }
    // One phase alone is the picture.
    let phases = if counts.chosen.is_none() { counts.worst_phases(MOST_PHASES) } else { Vec::new() };
    for PhaseShare { phase, share } in &phases {
        panels.push(share_panel(&counts.phase_matrix(*phase, &share.words())));
    }
    let width = flow_width(&panels).max(LEAST);
    let mut stack = Stack::new(Role::Page, width + 2.0 * MARGIN, MARGIN);
    sheet::begin(&title(counts), provenance, &mut stack);
    stack.gap(14.0);
    stack.flow(panels, GUTTER);
    sheet::more(counts.phase_shares().len(), MOST_PHASES.max(phases.len()), "phase", &mut stack);
    stack.text("Local share", HEAD, Tone::Plain, 1);
    by_node(counts, &mut stack);
    let mappings = counts.worst_mappings();
    if !mappings.is_empty() {
        stack.gap(8.0);
        stack.text("Lines read, by mapping", HEAD, Tone::Plain, 1);
    }
    for (mapping, share) in mappings.iter().take(MOST_MAPPINGS) {
        let process = mapping.process.map(|number| format!(" of process {number}")).unwrap_or_default();
        stack.text(&format!("{}{process}: {}", mapping.kind.word(), share.words()), TEXT, Tone::Plain, 2);
    }
    sheet::more(mappings.len(), MOST_MAPPINGS, "mapping", &mut stack);
    stack.gap(10.0);
    if counts.nowhere() > 0 {
        stack.text(&counts.nowhere_words(), SMALL, Tone::Notable, 2);
    }
    counts.unsure_words().into_iter().for_each(|words| stack.text(&words, SMALL, Tone::Notable, 2));
    stack.text(&counts.cache_words(), SMALL, Tone::Faint, 2);
    stack.finish()
}

fn title(counts: &LineCounts) -> String {
    let of_phase = counts.chosen.as_deref().map(|name| format!(", phase {name}"));
    format!("Cache lines by node{}: {} local", of_phase.unwrap_or_default(), percent(counts.all()))
}

/// A sentence for all CPUs, and for those of each node.
fn by_node(counts: &LineCounts, stack: &mut Stack) {
    stack.text(&format!("All CPUs: {}", counts.all().words()), TEXT, Tone::Plain, 1);
    for node in counts.cpu_nodes.iter().take(MOST_NODES) {
        let share = counts.share(OWN, |cell| cell.cpu_node == *node);
        if share.all > 0 {
            stack.text(&format!("CPUs of node {node}: {}", share.words()), TEXT, Tone::Plain, 1);
        }
    }
    sheet::more(counts.cpu_nodes.len(), MOST_NODES, "node", stack);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::line_counts::tests::{phased, sample};

    fn texts(frame: &Frame, found: &mut Vec<String>) {
        found.extend(frame.labels.iter().map(|label| label.text.clone()));
        frame.children.iter().for_each(|child| texts(child, found));
    }

    /// The numbers and the colours of the cells, by row.
    fn cells(frame: &Frame, found: &mut Vec<(String, Role)>) {
        let is_cell = matches!(frame.role, Role::Distance(_) | Role::NoDistance) && frame.labels.len() == 1;
        found.extend(is_cell.then(|| (frame.labels[0].text.clone(), frame.role)));
        frame.children.iter().for_each(|child| cells(child, found));
    }

    #[test]
    fn cells_have_their_lines_and_the_colour_of_their_share() {
        let mut found = Vec::new();
        cells(&line_counts_page(&sample(), "./stream"), &mut found);
        let found: Vec<(&str, Role)> = found.iter().map(|(text, role)| (text.as_str(), *role)).collect();
        // Of 2000 lines in all: 50 %, 2.5 %, none; none, 35 %, 12.5 %.
        let step = Role::Distance;
        assert_eq!(
            found,
            [
                ("1000", step(5)),
                ("50", step(1)),
                ("0", Role::NoDistance),
                ("0", Role::NoDistance),
                ("700", step(4)),
                ("250", step(3)),
            ]
        );
    }

    #[test]
    fn local_shares_are_in_words() {
        let mut found = Vec::new();
        texts(&line_counts_page(&sample(), "./stream in a guest of M"), &mut found);
        for text in [
            "Cache lines by node: 84.8 % local",
            "./stream in a guest of M",
            "All CPUs: 84.8 % of 2004 lines are local, 304 are remote",
            "CPUs of node 0: 94.8 % of 1054 lines are local, 54 are remote",
            "CPUs of node 1: 73.6 % of 950 lines are local, 250 are remote",
            "lib\\x1b.so of process 300: 93.3 % of 750 lines are local, 50 are remote",
            "4 lines of memory outside of all nodes are in no column",
            "unsure: 2204 lines with a cache of 512 KiB, 1344 with 2 MiB",
        ] {
            assert!(found.iter().any(|label| label == text), "{text}: {found:#?}");
        }
    }

    #[test]
    fn phases_have_tables_of_their_own() {
        let mut found = Vec::new();
        texts(&line_counts_page(&phased(), ""), &mut found);
        for text in ["outside of phases", "solve\\x1b"] {
            assert!(found.iter().any(|label| label == text), "{text}: {found:#?}");
        }
        let mut found = Vec::new();
        texts(&line_counts_page(&phased().only_phase("solve\u{1b}").unwrap(), ""), &mut found);
        assert!(
            found.contains(&"Cache lines by node, phase solve\\x1b: 73.3 % local".to_owned()),
            "{found:#?}"
        );
    }

    #[test]
    fn a_program_without_lines_has_a_picture() {
        let mut counts = sample();
        counts.cells.clear();
        counts.parts.clear();
        let mut found = Vec::new();
        texts(&line_counts_page(&counts, ""), &mut found);
        assert!(found.contains(&"Cache lines by node: no lines, 0 % local".to_owned()), "{found:?}");
    }
}
