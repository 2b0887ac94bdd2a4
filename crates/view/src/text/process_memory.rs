//! Where the memory of a process is and why: the first part of `nodewise explain --pid`.

use crate::digest::process_memory::ProcessMemory;
use crate::style::Ink;
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table};

/// Writes it.
pub(super) fn section(page: &mut Page, memory: &ProcessMemory) {
    let name = memory.name.as_ref().map_or_else(String::new, |name| format!(" {name}"));
    page.heading(&format!("Process {}{name}", memory.pid), &memory.what);
    page.line(2, &format!("  policy {}", memory.policy_words()).into());
    if !memory.other_policies.is_empty() {
        page.line(2, &format!("  other policies of it: {}", memory.other_policies.join(", ")).into());
    }
    page.line(2, &format!("  {}", memory.scope_words()).into());
    page.line(0, &Line::new());
    let column = |head, align| Column { head, align, keep: Keep::Always };
    let mut table = Table::new(vec![
        column("node", Align::Right),
        column("size", Align::Right),
        column("because", Align::Left),
    ]);
    for node in &memory.nodes {
        let about = if memory.is_sampled { "about " } else { "" };
        table.row(vec![
            node.node.to_string().as_str().into(),
            format!("{about}{}", node.size).as_str().into(),
            memory.words(node).as_str().into(),
        ]);
    }
    table.write(page);
    for note in &memory.notes {
        page.line(2, &Line::from("  ").with(Ink::Faint, note.clone()));
    }
}
