//! A migration of pages: the text of `nodewise migrate`.

use std::time::Duration;

use nodewise_machine::Bytes;

use crate::digest::migrate::{Ending, Migration};
use crate::style::{Ink, Style};
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table};

const fn column(head: &'static str, align: Align) -> Column {
    Column { head, align, keep: Keep::Always }
}

/// Writes what moved, memory by kind and node before and after, and a sentence per reason for what stayed.
pub fn migrate(migration: &Migration, style: &Style) -> String {
    let mut page = Page::new(*style);
    page.heading(&format!("Process {} ({})", migration.pid, migration.name), &conclusion(migration));
    if migration.ending == Ending::DryRun {
        for flow in &migration.plan {
            let text = format!("  node {} to {}: {}", flow.from, flow.to, flow.size);
            page.line(4, &Line::from(text));
        }
    }
    let mut columns =
        vec![column("kind", Align::Left), column("node", Align::Right), column("before", Align::Right)];
    // Nothing is after a dry run.
    columns.extend(migration.after.as_ref().map(|_| column("after", Align::Left)));
    let mut table = Table::new(columns);
    for (kind, node, before, after) in migration.rows() {
        let mut row: Vec<Line> = vec![kind.into(), node.to_string().into(), before.to_string().into()];
        if migration.after.is_some() {
            row.push(after.map(|size| size.to_string().into()).unwrap_or_default());
        }
        table.row(row);
    }
    table.write(&mut page);
    for failed in &migration.failed {
        let text = format!("not moved: {} {}", failed.size, failed.sentence);
        page.line(4, &Line::from("  ").with(Ink::Notable, text));
    }
    if migration.gone > Bytes::new(0) {
        let text = format!("  {} was freed or swapped out meanwhile", migration.gone);
        page.line(4, &Line::from(text));
    }
    for note in &migration.notes {
        page.line(4, &Line::from(format!("  {note}")));
    }
    if let Some(file) = &migration.undo {
        let text = format!("  nodewise migrate --undo {file} moves it back");
        page.line(4, &Line::new().with(Ink::Faint, text));
    }
    page.finish()
}

/// A time that a person would not ask about.
const SHORT: Duration = Duration::from_millis(100);

/// Says the result in one clause.
fn conclusion(migration: &Migration) -> String {
    let Migration { moved, took, paused, listing, calls, ending, .. } = migration;
    if *ending == Ending::DryRun {
        let all: Bytes = migration.plan.iter().map(|flow| flow.size).sum();
        return format!("a dry run: {all} would move");
    }
    let end = match ending {
        Ending::Interrupted => ", then interrupted",
        Ending::ProcessEnded => ", then the process ended",
        Ending::Refused => ", then the kernel refused",
        Ending::Done | Ending::DryRun => "",
    };
    if *calls == 0 {
        return format!("nothing moved{end}");
    }
    let rate = migration.rate().map(|rate| format!(", {rate}/s")).unwrap_or_default();
    let pause =
        if paused.is_zero() { String::new() } else { format!(", paused {:.1} s", paused.as_secs_f64()) };
    let list = if *listing < SHORT {
        String::new()
    } else {
        format!(", {:.1} s of them to list pages", listing.as_secs_f64())
    };
    format!("{moved} moved in {:.2} s{list}{rate}{pause}{end}", took.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::migrate::{Amount, Failed, Flow};
    use crate::json;
    use nodewise_machine::NodeId;

    fn amount(kind: &'static str, node: u32, mib: u64) -> Amount {
        Amount { kind, node: NodeId::new(node), size: Bytes::from_mib(mib) }
    }

    fn migration() -> Migration {
        Migration {
            pid: 4711,
            name: "postgres".to_owned(),
            started_at_ticks: 99,
            plan: vec![Flow { from: NodeId::new(0), to: "node 1".to_owned(), size: Bytes::from_mib(512) }],
            before: vec![amount("heap", 0, 12), amount("anon", 0, 500)],
            after: Some(vec![amount("heap", 1, 12), amount("anon", 0, 4), amount("anon", 1, 496)]),
            moved: Bytes::from_mib(508),
            gone: Bytes::new(0),
            failed: vec![Failed {
                reason: "shared",
                errno: Some(13),
                sentence: "that other processes map too (--shared moves them)".to_owned(),
                size: Bytes::from_mib(4),
            }],
            calls: 9,
            took: Duration::from_millis(508),
            paused: Duration::from_millis(254),
            listing: Duration::ZERO,
            ending: Ending::Done,
            notes: vec!["pages that it touches later follow its own policy".to_owned()],
            undo: Some("old.moved".to_owned()),
        }
    }

    #[test]
    fn a_migration_says_what_moved_and_why_the_rest_stayed() {
        let expected = "\
Process 4711 (postgres)  508 MiB moved in 0.51 s, 2 GiB/s, paused 0.3 s
  kind  node   before  after
  heap     0   12 MiB  0 B
  heap     1      0 B  12 MiB
  anon     0  500 MiB  4 MiB
  anon     1      0 B  496 MiB
  not moved: 4 MiB that other processes map too (--shared moves them)
  pages that it touches later follow its own policy
  nodewise migrate --undo old.moved moves it back
";
        assert_eq!(migrate(&migration(), &Style::plain(80)), expected);
    }

    #[test]
    fn a_dry_run_says_what_would_move() {
        let dry =
            Migration { ending: Ending::DryRun, after: None, failed: Vec::new(), undo: None, ..migration() };
        let expected = "\
Process 4711 (postgres)  a dry run: 512 MiB would move
  node 0 to node 1: 512 MiB
  kind  node  before
  heap     0  12 MiB
  anon     0  500 MiB
  pages that it touches later follow its own policy
";
        let text = migrate(&dry, &Style::plain(80));
        assert_eq!(text.lines().map(str::trim_end).collect::<Vec<_>>(), expected.lines().collect::<Vec<_>>());
    }

    #[test]
    fn an_end_before_the_end_is_in_the_first_line() {
        let check = |ending, calls, expected: &str| {
            let text = migrate(&Migration { ending, calls, ..migration() }, &Style::plain(120));
            assert!(text.lines().next().unwrap().ends_with(expected), "{text}");
        };
        check(Ending::Interrupted, 3, "paused 0.3 s, then interrupted");
        check(Ending::ProcessEnded, 3, "then the process ended");
        check(Ending::Refused, 0, "nothing moved, then the kernel refused");
    }

    #[test]
    fn the_time_to_list_pages_is_named_where_it_is_long_and_is_no_part_of_the_rate() {
        let (took, listing) = (Duration::from_secs(145), Duration::from_millis(16_746));
        let long = Migration { took, listing, moved: Bytes::from_gib(8), ..migration() };
        let text = migrate(&long, &Style::plain(120));
        let first = text.lines().next().unwrap();
        assert!(
            first.ends_with("8 GiB moved in 145.00 s, 16.7 s of them to list pages, 64 MiB/s, paused 0.3 s"),
            "{text}"
        );
    }

    #[test]
    fn json_says_the_same_as_the_text() {
        let document: serde_json::Value =
            serde_json::from_str(&json::migrate::migrate(&migration())).unwrap();
        assert_eq!(document["schema"], "nodewise.migrate/1");
        assert_eq!(document["moved_bytes"], 508 << 20);
        assert_eq!(document["failed"][0]["reason"], "shared");
        assert_eq!(document["failed"][0]["size_bytes"], 4 << 20);
        assert_eq!(document["after"].as_array().unwrap().len(), 3);
        assert_eq!(document["before"][1]["kind"], "anon");
        assert_eq!((&document["undo"], &document["ending"]), (&"old.moved".into(), &"done".into()));
    }

    #[test]
    fn a_name_that_drives_a_terminal_is_made_visible() {
        let text = migrate(&Migration { name: "a\x1b[2Jb".to_owned(), ..migration() }, &Style::plain(80));
        assert!(!text.contains('\x1b'), "{text}");
    }
}
