//! `nodewise tune` without a program on a machine with one node: what can be gained here, what elsewhere,
//! and what to try next.

use nodewise_experiment::candidates::LeftOut;
use nodewise_experiment::study::Study;
use nodewise_experiment::verdict::{Advice, Analysis, ArmResult, Verdict};
use nodewise_model::cost::Bottleneck;

use super::{Extent, conclusion, not_tried, notes, nothing_works, pages};
use crate::digest::change::change_words;
use crate::digest::example::{CONTROLLER, FAR_NS, LINK, NEAR_NS, THREADS_PER_NODE, predicted};
use crate::style::{Ink, Style};
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table};

/// Writes it.
pub fn first(
    study: &Study,
    analysis: &Analysis,
    left_out: &[LeftOut],
    extent: Extent,
    style: &Style,
) -> String {
    let mut page = Page::new(*style);
    let one = "one node: where memory lies cannot make a difference on this machine";
    page.line(2, &Line::new().with(Ink::Strong, one));
    match nothing_works(study) {
        Some(text) => page.line(2, &Line::new().with(Ink::Notable, text)),
        None => {
            page.line(2, &Line::new().with(Ink::Accent, gain(study, analysis)));
            conclusion::why(study, analysis, &mut page);
            measured(study, analysis, &mut page);
            if extent == Extent::All {
                pages::write(study, analysis, extent, &mut page);
                not_tried(left_out, extent, &mut page);
            }
        }
    }
    elsewhere(&mut page);
    next(&mut page);
    page.finish()
}

/// Writes what is worth knowing where the time of a first look on a machine with several nodes held no round.
pub fn too_short(nodes: usize, why: &str, style: &Style) -> String {
    let mut page = Page::new(*style);
    let several = format!("{nodes} nodes: where memory lies can make a difference on this machine");
    page.line(2, &Line::new().with(Ink::Strong, several));
    page.line(2, &Line::new().with(Ink::Notable, why));
    elsewhere(&mut page);
    page.heading("Next", "");
    command("nodewise tune --time 5m", "this comparison, with more time", &mut page);
    command(PROGRAM.0, PROGRAM.1, &mut page);
    page.finish()
}

/// Names the other things than nodes that can make a difference here, in one sentence.
fn gain(study: &Study, analysis: &Analysis) -> String {
    match &analysis.advice {
        Advice::Use { best, .. } => {
            let name = &study.plan.arm(*best).name;
            let effect = analysis.arm(*best).and_then(|arm| arm.effect);
            let size = effect.map_or(String::new(), |effect| {
                format!(": {} latency of random access", change_words(effect.ratio, 1))
            });
            format!("{name} can{size}")
        }
        Advice::Keep { smallest_detectable, .. } => {
            let least = smallest_detectable.map_or(String::new(), |least| {
                format!(
                    ": a gain above {} would have been detected (80 % power)",
                    conclusion::share(least / (1.0 + least))
                )
            });
            format!("huge pages do not either{least}")
        }
        Advice::TooFewRounds { blocks, needed } => format!(
            "huge pages might: {} of the {needed} rounds that it takes to know fitted (nodewise tune --time 2m)",
            blocks
        ),
        Advice::NothingToCompare if study.plan.treatments().is_empty() => {
            "huge pages cannot be tried here: the system has none to give".to_owned()
        }
        Advice::NothingToCompare | Advice::BaselineFailed(_) => {
            "the built-in workload did not run as asked under any placement".to_owned()
        }
    }
}

fn measured(study: &Study, analysis: &Analysis, page: &mut Page) {
    page.heading("Measured here", "one chain of loads at random, and all CPUs reading in order");
    let right = |head| Column { head, align: Align::Right, keep: Keep::Always };
    let left = |head, keep| Column { head, align: Align::Left, keep };
    let mut table = Table::new(vec![
        left("placement", Keep::Always),
        right("latency"),
        right("change"),
        right("bandwidth"),
        // On narrow terminals two bandwidths are near enough to be compared without it.
        Column { head: "change", align: Align::Right, keep: Keep::Unless(0) },
        left("", Keep::Always),
    ]);
    for result in &analysis.arms {
        let also = result.also.first().copied().flatten();
        let words = |words: Option<String>| Line::from(words.unwrap_or_default());
        table.row(vec![
            study.plan.arm(result.arm).name.as_str().into(),
            words(result.summary.map(|summary| format!("{:.1} ns", summary.median))),
            words(result.effect.map(|effect| change_words(effect.ratio, 1))),
            words(also.map(|also| format!("{:.1} GB/s", also.summary.median))),
            words(also.and_then(|also| also.ratio).map(|(ratio, _)| change_words(ratio, 1))),
            word(result),
        ]);
    }
    table.write(page);
    notes::write(study, analysis, page);
    let head = format!("  {}", conclusion::done(study));
    page.line(4, &Line::new().with(Ink::Faint, head));
}

/// The known facts about the latency.
fn word(result: &ArmResult) -> Line {
    match result.verdict {
        Verdict::Baseline => Line::new().with(Ink::Faint, "baseline"),
        Verdict::Better => Line::new().with(Ink::Accent, "better"),
        Verdict::Worse => Line::new().with(Ink::Notable, "worse"),
        Verdict::NoDifference => "no difference".into(),
        _ => "open".into(),
    }
}

/// An example of a machine with nodes.
fn elsewhere(page: &mut Page) {
    let Ok(rows) = predicted() else { return };
    page.heading("Example", "a server with two nodes: predicted from declared figures, not measured");
    let mut table = Table::new(vec![
        Column { head: "placement", align: Align::Left, keep: Keep::Always },
        Column { head: "bandwidth", align: Align::Right, keep: Keep::Always },
        Column { head: "change", align: Align::Right, keep: Keep::Always },
        Column { head: "latency", align: Align::Right, keep: Keep::Always },
        Column { head: "bound by", align: Align::Left, keep: Keep::Always },
    ]);
    let default = rows.first().map_or(1.0, |row| row.bandwidth);
    for (at, row) in rows.iter().enumerate() {
        let change = if at == 0 { String::new() } else { change_words(row.bandwidth / default, 0) };
        table.row(vec![
            row.placement.into(),
            format!("{:.0} GB/s", row.bandwidth / 1e9).into(),
            change.into(),
            format!("{:.0} ns", row.latency_ns).into(),
            match row.bottleneck {
                Bottleneck::Threads(_) => "threads".into(),
                Bottleneck::Link(..) => "the link".into(),
                Bottleneck::Controller(node) => format!("node {node}'s memory").into(),
            },
        ]);
    }
    table.write(page);
    let text = format!(
        "  a program of {} threads whose data one of them has written; each node has {THREADS_PER_NODE} cores, \
         {:.0} GB/s and {NEAR_NS:.0} ns, the link between them {:.0} GB/s and {FAR_NS:.0} ns",
        2 * THREADS_PER_NODE,
        CONTROLLER / 1e9,
        LINK / 1e9
    );
    page.line(4, &Line::new().with(Ink::Faint, text));
}

/// Writes the next things to try, each as a command with its reason.
fn next(page: &mut Page) {
    page.heading("Next", "");
    for (text, why) in [
        PROGRAM,
        ("nodewise explain --machine '2x(16c 64G)' interleave:0-1", "memory on a machine that you describe"),
        (
            "nodewise lab --machine '2x(2c 1G)' -- nodewise tune",
            "this command in a virtual machine with two nodes",
        ),
    ] {
        command(text, why, page);
    }
}

/// The command that most readers try next, and its reason.
const PROGRAM: (&str, &str) = ("nodewise tune -- PROGRAM", "the best placement for a program of yours");

fn command(text: &str, why: &str, page: &mut Page) {
    page.line(6, &Line::from("  ").with(Ink::Accent, text));
    page.line(6, &Line::from("      ").with(Ink::Faint, why));
}
