//! Processes: where their memory is, where they run, and the stranded share.

use nodewise_diagnose::Window;

use super::{column, number, percent, size};
use crate::digest::running::{ProcessRow, Running, words};
use crate::style::Ink;
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Keep, Table};

/// Writes the table of processes, and the threads of each that has some.
pub(super) fn write(running: &Running, page: &mut Page) {
    if running.processes.is_empty() {
        return;
    }
    let shown = running.processes.len();
    page.heading("Processes", &format!("{shown} of {}", running.process_count));
    let right = |head, keep| column(head, Align::Right, keep);
    let left = |head, keep| column(head, Align::Left, keep);
    let mut table = Table::new(vec![
        right("PID", Keep::Always),
        left("name", Keep::Always),
        right("CPU", Keep::Always),
        right("memory", Keep::Unless(3)),
        right("stranded", Keep::Always),
        right("local", Keep::Unless(2)),
        right("threads", Keep::Unless(1)),
        left("runs on", Keep::Unless(4)),
        left("memory on", Keep::Always),
    ])
    .naming_omitted();
    for row in &running.processes {
        let ink = if row.notably_stranded().is_some() { Ink::Notable } else { Ink::Plain };
        let stranded = row.stranded_share().map(words::percent);
        table.row(vec![
            Line::from(row.identity.pid.to_string()),
            Line::new().with(Ink::Strong, &*row.name),
            percent(row.cpu_share),
            size(row.resident),
            stranded.map_or_else(Line::new, |share| Line::new().with(ink, share)),
            percent(row.locality.as_ref().and_then(|locality| locality.local_index)),
            Line::from(row.threads.to_string()),
            Line::from(words::runs_on(row)),
            Line::from(words::memory_on(row)),
        ]);
    }
    table.write(page);
    let mut notes = vec![
        "stranded: memory on nodes where the process did not run; local: memory on the nodes where its CPU time was \
         spent"
            .to_owned(),
    ];
    if matches!(running.window, Window::SinceBoot(_)) {
        notes[0] = "stranded: memory on nodes where the process may not run; nodes where it does run need an interval: \
                    nodewise stat 1"
            .to_owned();
    }
    if running.processes_left_out > 0 {
        notes.push(format!("{} more not listed (--top N)", running.processes_left_out));
    }
    if running.processes.iter().any(ProcessRow::is_drawn) {
        notes.push("~ from a sample of pages: --json has the 95 % intervals".to_owned());
    }
    for note in notes {
        page.line(2, &Line::from("  ").with(Ink::Faint, note));
    }
    for row in running.processes.iter().filter(|row| !row.tasks.is_empty()) {
        threads(row, page);
    }
}

/// Writes the table of services and containers.
pub(super) fn services(running: &Running, page: &mut Page) {
    let Some(rows) = &running.services else { return };
    if rows.is_empty() {
        page.heading("Services", "none");
        return;
    }
    page.heading("Services", "memory that is charged to them");
    let right = |head, keep| column(head, Align::Right, keep);
    let mut table = Table::new(vec![
        column("kind", Align::Left, Keep::Unless(1)),
        column("name", Align::Left, Keep::Always),
        right("CPU", Keep::Always),
        right("memory", Keep::Always),
        right("anonymous", Keep::Unless(2)),
        right("files", Keep::Unless(2)),
        column("may use nodes", Align::Left, Keep::Unless(0)),
        column("memory on", Align::Left, Keep::Always),
    ])
    .naming_omitted();
    for row in rows {
        table.row(vec![
            Line::from(row.kind_word()),
            Line::new().with(Ink::Strong, &*row.name),
            percent(row.cpu_share),
            size(row.size()),
            size(row.anonymous),
            size(row.files),
            row.nodes.as_ref().map_or_else(Line::new, |nodes| Line::from(nodes.to_string())),
            Line::from(words::charged_on(row)),
        ]);
    }
    table.write(page);
    let mut notes = vec![
        "memory: what a service or its groups touched first, files included; a file that several use counts for one of \
         them"
            .to_owned(),
    ];
    if running.services_left_out > 0 {
        notes.push(format!("{} more not listed (--top N)", running.services_left_out));
    }
    for note in notes {
        page.line(2, &Line::from("  ").with(Ink::Faint, note));
    }
}

fn threads(row: &ProcessRow, page: &mut Page) {
    page.heading(&format!("Threads of {}", row.identity.pid), &row.name);
    let right = |head, keep| column(head, Align::Right, keep);
    let mut table = Table::new(vec![
        right("TID", Keep::Always),
        column("name", Align::Left, Keep::Always),
        right("CPU", Keep::Always),
        right("last CPU", Keep::Unless(2)),
        right("node", Keep::Always),
        right("preferred", Keep::Always),
        right("moved pages/s", Keep::Unless(1)),
        column("ran on", Align::Left, Keep::Unless(4)),
        column("hint faults by node, decayed", Align::Left, Keep::Always),
    ])
    .naming_omitted();
    for task in &row.tasks {
        let text = |value: Option<String>| value.map_or_else(Line::new, Line::from);
        let faults: Vec<String> = task
            .faults
            .iter()
            .map(|(node, faults)| format!("{node}: {} private, {} shared", faults.private, faults.shared))
            .collect();
        table.row(vec![
            Line::from(task.identity.pid.to_string()),
            Line::new().with(Ink::Strong, &*task.name),
            percent(task.cpu_share),
            text(task.processor.map(|cpu| cpu.to_string())),
            text(task.node.map(|node| node.to_string())),
            text(task.preferred.map(|node| node.to_string())),
            number(row.window.rate(task.migrated_pages)),
            Line::from(match (&task.cpu, row.window) {
                (Some(cpu), Window::Interval(_)) if !cpu.used.is_zero() => words::by_node(cpu),
                _ => String::new(),
            }),
            Line::from(faults.join(", ")),
        ]);
    }
    table.write(page);
}
