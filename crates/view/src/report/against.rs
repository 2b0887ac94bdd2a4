//! Changes between two reports: figures that both have, side by side.

use std::collections::BTreeMap;

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::order::Order as _;

use super::{DataTable, Page, Part, WIDTH};
use crate::digest::diff::Diff;
use crate::style::Style;
use crate::text;

/// Heads of the columns that hold a figure and its interval begin with these words.
const MEDIAN: &str = "median";
const LOW: &str = "interval_low";
const HIGH: &str = "interval_high";

/// A figure with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Figure {
    median: f64,
    interval: Option<(f64, f64)>,
}

impl Figure {
    /// Whether both intervals are known and apart.
    fn is_apart_from(self, other: Self) -> Option<bool> {
        let ((low, high), (other_low, other_high)) = self.interval.zip(other.interval)?;
        Some(high < other_low || other_high < low)
    }
}

/// Makes the page of changes: facts of the machine, and measurements that two reports have of the same kind.
///
/// A figure differs where its interval and that of the other report have no value in common: two intervals of 95 % are
/// apart by chance in fewer than one of a hundred cells that did not change. Both are of one session each, and say
/// nothing of what changes from session to session: `nodewise compare` measures that.
pub fn changes(before: &[Page], now: &[Page], machines: Option<&Diff<'_>>) -> Page {
    let mut parts = Vec::new();
    parts.extend(machines.map(|machines| Part::Text(text::diff(machines, &Style::plain(WIDTH)))));
    let (mut compared, mut apart, mut unknown) = (0_usize, 0_usize, 0_usize);
    for page in now {
        let Some(old) = before.iter().find(|old| old.heading == page.heading) else { continue };
        let (Some(old), Some(new)) = (table_of(old), table_of(page)) else { continue };
        let Some(found) = Compared::from_tables(old, new) else { continue };
        compared += found.rows.len();
        apart += found.apart;
        unknown += found.unknown;
        parts.push(Part::Table(format!("{}: before and now", page.heading), found.into_table()));
    }
    let conclusion = match (compared, apart) {
        (0, _) => "no figure is in both reports".to_owned(),
        (_, 0) => format!("no difference in {compared} figures that both reports have"),
        _ => format!("{apart} of {compared} figures differ beyond their intervals"),
    };
    if unknown > 0 {
        parts.push(Part::Note(format!(
            "{unknown} figures have no interval in one of the reports (it needs six rounds), so chance is not excluded there"
        )));
    }
    Page {
        name: "changes".to_owned(),
        heading: "Changes".to_owned(),
        conclusion: Some(conclusion),
        parts,
        document: None,
    }
}

fn table_of(page: &Page) -> Option<&DataTable> {
    page.parts.iter().find_map(|part| match part {
        Part::Table(_, table) => Some(table),
        _ => None,
    })
}

/// Rows of two tables with the same names in front of their figures.
struct Compared {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
    apart: usize,
    unknown: usize,
}

impl Compared {
    fn from_tables(old: &DataTable, new: &DataTable) -> Option<Self> {
        let column =
            |table: &DataTable, word: &str| table.head.iter().position(|head| head.starts_with(word));
        let figures = |table: &DataTable| -> Option<BTreeMap<Vec<String>, Figure>> {
            let (median, low, high) = (column(table, MEDIAN)?, column(table, LOW)?, column(table, HIGH)?);
            let number = |row: &[String], at: usize| {
                row.get(at)?.parse::<f64>().ok().filter(|value| value.is_finite())
            };
            let figure = |row: &Vec<String>| {
                let interval = number(row, low).zip(number(row, high));
                Some((row.get(..median)?.to_vec(), Figure { median: number(row, median)?, interval }))
            };
            Some(table.rows.iter().filter_map(figure).collect_map())
        };
        let (old_figures, new_figures) = (figures(old)?, figures(new)?);
        let median = column(new, MEDIAN)?;
        let unit = new.head[median].trim_start_matches(MEDIAN);
        let mut head = new.head[..median].to_vec();
        head.extend([
            format!("before{unit}"),
            format!("now{unit}"),
            "change_percent".to_owned(),
            "differs".to_owned(),
        ]);
        let (mut rows, mut apart, mut unknown) = (Vec::new(), 0, 0);
        for (names, now) in new_figures {
            let Some(before) = old_figures.get(&names) else { continue };
            let differs = before.is_apart_from(now);
            apart += usize::from(differs == Some(true));
            unknown += usize::from(differs.is_none());
            let change = if before.median == 0.0 {
                String::new()
            } else {
                format!("{:+.1}", (now.median / before.median - 1.0) * 100.0)
            };
            let words = match differs {
                Some(true) => "yes",
                Some(false) => "no",
                None => "unknown",
            };
            let figures = [before.median.to_string(), now.median.to_string(), change, words.to_owned()];
            rows.push(names.into_iter().chain(figures).collect());
        }
        (!rows.is_empty()).then_some(Self { head, rows, apart, unknown })
    }

    /// The table, what differs first.
    fn into_table(mut self) -> DataTable {
        self.rows.order_by_key(|row| row.last().is_none_or(|word| word != "yes"));
        DataTable { head: self.head, rows: self.rows }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::diff::DiffExtent;

    fn page(csv: &str) -> Page {
        Page {
            name: "latency".to_owned(),
            heading: "Memory latency".to_owned(),
            conclusion: None,
            parts: vec![Part::Text("x".to_owned()), Part::Table("all".to_owned(), DataTable::from_csv(csv))],
            document: None,
        }
    }

    const HEAD: &str = "from,to,median_ns,interval_low_ns,interval_high_ns,best_ns\n";

    #[test]
    fn figures_of_the_same_cell_are_side_by_side_and_those_apart_come_first() {
        let before = page(&format!("{HEAD}0,0,80,79,81,78\n0,1,140,138,142,1\n1,1,80,,,78\n2,2,5,4,6,4\n"));
        let now =
            page(&format!("{HEAD}0,0,80.5,79,82,78\n0,1,154,150,158,1\n1,1,90,89,91,78\n3,3,5,4,6,4\n"));
        let found = changes(std::slice::from_ref(&before), &[now], None);
        assert_eq!(found.conclusion.as_deref(), Some("1 of 3 figures differ beyond their intervals"));
        let [Part::Table(name, table), Part::Note(note)] = &found.parts[..] else { panic!("{found:?}") };
        assert_eq!(name, "Memory latency: before and now");
        assert_eq!(table.head, ["from", "to", "before_ns", "now_ns", "change_percent", "differs"]);
        assert_eq!(
            table.rows,
            [
                ["0", "1", "140", "154", "+10.0", "yes"],
                ["0", "0", "80", "80.5", "+0.6", "no"],
                ["1", "1", "80", "90", "+12.5", "unknown"]
            ]
        );
        assert!(note.starts_with("1 figures"), "{note}");
        let same = changes(std::slice::from_ref(&before), std::slice::from_ref(&before), None);
        assert_eq!(same.conclusion.as_deref(), Some("no difference in 4 figures that both reports have"));
        assert_eq!(changes(&[], &[], None).conclusion.as_deref(), Some("no figure is in both reports"));
    }

    #[test]
    fn facts_of_the_machine_come_first() {
        let machine = |spec: &str| nodewise_machine::spec::machine(spec).unwrap();
        let (a, b) = (machine("2x(2c 4G)"), machine("2x(2c 8G)"));
        let diff = Diff::new(&a, &b, DiffExtent::Lasting);
        let page = changes(&[], &[], Some(&diff));
        let [Part::Text(text)] = &page.parts[..] else { panic!("{page:?}") };
        assert!(text.contains("4 GiB") && text.contains("8 GiB"), "{text}");
    }
}
