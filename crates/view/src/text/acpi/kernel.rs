//! The nodes that a kernel makes of the tables, and the errors in these.

use nodewise_machine::firmware::Tables;
use nodewise_machine::{Bytes, NodeId};
use nodewise_model::firmware::{Booted, NoteKind};

use super::column;
use crate::style::Ink;
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Table};

/// Writes the nodes that Linux derives from the tables, and the notes on them.
pub(super) fn nodes(booted: &Booted, page: &mut Page) {
    let remark = if booted.is_accepted { "the nodes that it makes of these tables" } else { "one node" };
    page.heading("Linux", remark);
    let mut shown = Table::new(vec![
        column("node", Align::Right),
        column("domain", Align::Right),
        column("memory", Align::Right),
        column("at boot", Align::Left),
        column("CPUs", Align::Left),
    ]);
    for node in &booted.possible {
        let cpus = booted.cpus_of(node);
        shown.row(vec![
            node.to_string().into(),
            booted.domain(node).map(|domain| domain.to_string()).unwrap_or_default().into(),
            memory(booted, node).into(),
            if booted.online.contains(node) { "online" } else { "offline" }.into(),
            if cpus.is_empty() { "none".to_owned() } else { cpus.to_string() }.into(),
        ]);
    }
    shown.write(page);
    for note in &booted.notes {
        let ink = match note.kind {
            NoteKind::Rejected | NoteKind::DoesNotBoot => Ink::Notable,
            NoteKind::Ignored | NoteKind::Unusual | NoteKind::Assumed => Ink::Plain,
        };
        let line = Line::from("  ").with(ink, note.kind.word().replace('-', " ")).with(Ink::Plain, ": ");
        page.line(4, &line.with(Ink::Plain, note.to_string()));
    }
}

fn memory(booted: &Booted, node: NodeId) -> String {
    if booted.ram.is_empty() {
        return String::new();
    }
    match booted.memory(node) {
        0 => "none".to_owned(),
        bytes => Bytes::new(bytes).to_string(),
    }
}

/// Writes what is wrong with the tables, if anything is.
pub(super) fn findings(tables: &Tables, page: &mut Page) {
    if tables.findings.is_empty() {
        return;
    }
    page.heading("Wrong", "what does not agree with the specification");
    for finding in &tables.findings {
        page.line(4, &Line::from("  ").with(Ink::Plain, finding.to_string()));
    }
}
