//! Emulated nodes: the texts of `nodewise emulation`.

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::printable::printable;
use nodewise_machine::{Machine, Node, Origin};
use nodewise_model::fake::outcome::Emulation;

use crate::digest::counts::plural;
use crate::digest::emulation::{
    BankLow, Board, Brought, Changed, Check, Effect, FEW, Figures, Planned, Status, Verified, When, order_of,
};
use crate::digest::walk::Basis;
use crate::style::{Ink, Style};
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table};

/// Columns of the names that facts follow.
const NAME: usize = 14;

/// Writes what a machine can, was asked for and has.
pub fn status(status: &Status, style: &Style) -> String {
    let mut page = Page::new(*style);
    let image = status.image.as_ref().map(|folder| format!("of the image {}", printable(folder)));
    page.heading("Emulation", image.as_deref().or(status.kernel.as_deref()).unwrap_or_default());
    let support = match status.support.is_there {
        Some(true) => "supported",
        Some(false) => "not supported",
        None => "not known",
    };
    fact(&mut page, "kernel", &format!("{support}: {}", status.support.by));
    if status.effect.is_some() {
        let running = words(status, When::Running);
        let running = if running.is_empty() { "nothing".to_owned() } else { running.join("; ") };
        fact(&mut page, "asked for", &running);
    }
    let next = words(status, When::Next);
    let boot_files = status.boot_files.clone();
    let next =
        boot_files.unwrap_or_else(|| if next.is_empty() { "nothing".to_owned() } else { next.join("; ") });
    fact(&mut page, "at next start", &next);
    if let Some(effect) = &status.effect {
        in_force(&mut page, status, effect);
    }
    if let Some(board) = &status.board {
        write_board(&mut page, board);
    }
    for (path, line) in &status.vain {
        let text = format!("{path}:{line} sets numa_policy, which only the kernel's command line can");
        remark(&mut page, "no effect", &text);
    }
    write_advice(&mut page, &status.advice);
    page.finish()
}

fn in_force(page: &mut Page, status: &Status, effect: &Effect) {
    let nodes = plural(effect.nodes, "node");
    let what = match (effect.is_emulated, effect.hardware_nodes) {
        (Some(true), Some(below)) => format!("{nodes}, emulated on {}", plural(below, "node")),
        (Some(true), None) => format!("{nodes}, emulated"),
        (Some(false), _) => format!("{nodes}, not emulated"),
        (None, _) => format!("{nodes}; the kernel log does not show whether they are emulated"),
    };
    fact(page, "in force", &what);
    if let Some(policy) = &effect.policy {
        fact(page, "new processes", policy);
    }
    match &status.ignored {
        None => {
            let why = status.no_log.as_deref().unwrap_or("the kernel log does not reach back to the start");
            fact(page, "ignored", &format!("not known: {why}"));
        }
        Some(words) if words.is_empty() => fact(page, "ignored", "nothing"),
        Some(words) => remark(page, "ignored", &format!("{}: this kernel does not know it", words.join(" "))),
    }
}

/// Who asks for what at a start.
fn words(status: &Status, when: When) -> Vec<String> {
    let asked = status.requests.iter().filter(|request| request.when == when);
    asked
        .map(|request| {
            let fake = request.fake.as_ref().map(|fake| format!("numa=fake={fake}"));
            let policy = request.policy.as_ref().map(|policy| format!("numa_policy={policy}"));
            let words: Vec<String> = fake.into_iter().chain(policy).collect();
            format!("{} ({})", words.join(" "), request.place)
        })
        .collect()
}

fn write_board(page: &mut Page, board: &Board) {
    page.heading("Board", &board.model);
    match &board.banklow {
        None => {}
        Some(Ok(BankLow { value, is_set, layout, nodes })) => {
            let origin = if *is_set { "set" } else { "the boot loader's own value" };
            let text = format!("{value} ({origin}): {layout}, made for {}", plural(*nodes, "node"));
            fact(page, "SDRAM_BANKLOW", &text);
        }
        Some(Err(why)) => fact(page, "SDRAM_BANKLOW", &format!("not known: {why}")),
    }
    if let Some(day) = &board.boot_loader {
        fact(page, "boot loader", &format!("of {day}"));
    }
    let queue = match (board.card_queue_asked, board.card_queue_used) {
        (_, Some(true)) => Some("used"),
        (Some(true), Some(false)) => {
            Some("asked for in config.txt (sd_cqe), and not used: the card may have none")
        }
        (Some(false), Some(false)) => Some("not used: dtparam=sd_cqe in config.txt asks for it"),
        _ => None,
    };
    if let Some(queue) = queue {
        fact(page, "card queue", queue);
    }
    if let Some((ways, chosen)) = &board.sleep {
        fact(page, "sleep", &format!("{chosen} (of {})", ways.join(", ")));
    }
}

/// Writes what an emulation would be.
pub fn plan(planned: &Planned<'_>, style: &Style) -> String {
    let mut page = Page::new(*style);
    let basis = match planned.basis {
        Basis::Kernel => "memory as in this kernel's log",
        Basis::Firmware => "memory as in the firmware's tables",
        Basis::Assumed => "nodes assumed one after the other from address 0",
        Basis::AssumedX86 => {
            "assumed: x86-64 (--architecture names another), nodes one after the other from address 0"
        }
    };
    page.heading(planned.word, &format!("{}, {basis}", planned.kernel));
    if let Some(made) = planned.made {
        let mut table = Table::new(vec![
            column("node", Keep::Always),
            column("of", Keep::Unless(3)),
            column("RAM", Keep::Always),
            Column { head: "range", align: Align::Left, keep: Keep::Unless(2) },
            Column { head: "CPUs", align: Align::Left, keep: Keep::Always },
            Column { head: "falls back on", align: Align::Left, keep: Keep::Always },
        ]);
        for node in &made.nodes {
            let ranges: Vec<String> =
                node.ranges.iter().map(|(start, end)| format!("{start:#x}-{:#x}", end - 1)).collect();
            let cpus = if node.cpus.is_empty() { Line::blank() } else { node.cpus.to_string().into() };
            table.row(vec![
                node.id.to_string().into(),
                node.physical.to_string().into(),
                node.memory.to_string().into(),
                ranges.join(" ").into(),
                cpus,
                order_of(made, node.id).into(),
            ]);
        }
        table.write(&mut page);
        distances(made, &mut page);
    }
    if let Some(remark) = planned.remark {
        page.heading("Not as asked", "");
        page.line(2, &Line::new().with(Ink::Notable, format!("  {remark}")));
    }
    page.finish()
}

/// All distances of few nodes; those of many in whatever form stays legible.
fn distances(made: &Emulation, page: &mut Page) {
    if made.nodes.len() > FEW {
        let mut machine = Machine::new(Origin::Live);
        machine.nodes = made.nodes.iter().map(|node| (node.id, Node::new(node.id))).collect_map();
        machine.distances = made.distances.clone();
        return super::show::distances::distances(&machine, page);
    }
    page.heading("Distances", "");
    for (from, row) in made.distances.rows() {
        let row: Vec<String> =
            row.iter().map(|cell| cell.map_or("-".to_owned(), |value| value.to_string())).collect();
        page.line(8, &Line::from(format!("  {from:>4}  {}", row.join(" "))));
    }
}

const fn column(head: &'static str, keep: Keep) -> Column {
    Column { head, align: Align::Right, keep }
}

/// Writes whether an emulation works.
pub fn verify(verified: &Verified, style: &Style) -> String {
    let mut page = Page::new(*style);
    let verdict = if verified.holds() { "pass" } else { "fail" };
    page.heading("Verification", verdict);
    for Check { what, holds, reason } in &verified.checks {
        let (word, ink) = match holds {
            Some(true) => ("pass", Ink::Plain),
            Some(false) => ("FAIL", Ink::Notable),
            None => ("?", Ink::Faint),
        };
        let line =
            Line::new().with(ink, format!("  {word:<4}  {what}")).with(Ink::Plain, format!(": {reason}"));
        page.line(8, &line);
    }
    if let Some(Brought { nodes, memory, kernel, policy, figures }) = &verified.brought {
        page.heading("Brought", "");
        let before = nodes.0.map_or_else(|| "not known".to_owned(), |count| count.to_string());
        fact(&mut page, "nodes", &format!("{before} before, {} now", nodes.1));
        if let Some((before, now)) = memory {
            fact(&mut page, "memory", &format!("{before} before, {now} now"));
        }
        if let Some((before, now)) = policy {
            fact(&mut page, "new processes", &format!("{before} before, {now} now"));
        }
        match figures {
            Figures::Command(command) => path_fact(&mut page, "figures", command),
            Figures::NotSaved(how) => fact(&mut page, "figures", how),
        }
        if let Some((before, now)) = kernel {
            remark(
                &mut page,
                "kernel",
                &format!("{before} before, {now} now: another kernel is another machine"),
            );
        }
    }
    write_advice(&mut page, &verified.advice);
    page.finish()
}

/// Writes a change of boot files. Lines of files are printed as they are, however long, so that `patch` can
/// read them.
pub fn changed(changed: &Changed, style: &Style) -> String {
    let mut text = String::new();
    for file in &changed.files {
        for line in file.diff.split_inclusive('\n') {
            let body = line.trim_end_matches('\n');
            // A tab in a file is not a hazard, and as an escape it would be another line.
            let parts: Vec<_> = body.split('\t').map(printable).collect();
            text.push_str(&parts.join("\t"));
            text.push('\n');
        }
    }
    let mut page = Page::new(*style);
    if !text.is_empty() {
        page.line(0, &Line::new());
    }
    let what = if changed.is_dry { "would change" } else { "changed" };
    for file in &changed.files {
        path_fact(&mut page, what, &file.path);
        if let Some(backup) = &file.backup {
            path_fact(&mut page, "kept as", backup);
        }
    }
    for path in &changed.right {
        path_fact(&mut page, "right already", path);
    }
    for note in &changed.remarks {
        remark(&mut page, "note", note);
    }
    if !changed.next.is_empty() && !changed.is_dry {
        fact(&mut page, "next", &changed.next.join(", then "));
    }
    text + &page.finish()
}

fn write_advice(page: &mut Page, advice: &[String]) {
    if !advice.is_empty() {
        page.heading("Advice", "");
    }
    for line in advice {
        page.line(2, &Line::from(format!("  {line}")));
    }
}

fn fact(page: &mut Page, name: &str, text: &str) {
    let line = Line::new().with(Ink::Faint, format!("  {name:<NAME$}")).with(Ink::Plain, text);
    page.line(NAME + 2, &line);
}

/// A path that a reader copies stays in one piece, below its name where it is too long.
fn path_fact(page: &mut Page, name: &str, path: &str) {
    let line = Line::new().with(Ink::Faint, format!("  {name:<NAME$}"));
    if line.columns() + path.chars().count() <= page.width() {
        page.line(NAME + 2, &line.with(Ink::Plain, path));
    } else {
        page.line(0, &line);
        page.line(4, &Line::from(format!("    {path}")));
    }
}

fn remark(page: &mut Page, name: &str, text: &str) {
    let line = Line::new().with(Ink::Faint, format!("  {name:<NAME$}")).with(Ink::Notable, text);
    page.line(NAME + 2, &line);
}

#[cfg(test)]
mod tests;
