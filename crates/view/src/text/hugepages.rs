//! Pools of huge pages, and a change of them: the texts of `nodewise hugepages`.

use nodewise_machine::Bytes;

use crate::digest::hugepages::{PoolChange, Pools, PoolsChange};
use crate::style::{Ink, Style};
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table};

const fn column(head: &'static str, align: Align) -> Column {
    Column { head, align, keep: Keep::Always }
}

fn number(figure: Option<u64>) -> Line {
    figure.map(|figure| Line::from(figure.to_string())).unwrap_or_default()
}

/// Writes the pools of every node.
pub fn hugepages(pools: &Pools, style: &Style) -> String {
    let mut page = Page::new(*style);
    if pools.pools.is_empty() {
        page.heading("Huge pages", "the kernel shows no pools of huge pages by node");
        return page.finish();
    }
    let remark = match (pools.total(), pools.idle()) {
        (Some(total), _) if total == Bytes::new(0) => "all pools are empty".to_owned(),
        (Some(total), Some(idle)) => format!("{total} in pools, {idle} of it free"),
        _ => String::new(),
    };
    page.heading("Huge pages", &remark);
    let mut table = Table::new(vec![
        column("node", Align::Right),
        column("page size", Align::Right),
        column("total", Align::Right),
        column("free", Align::Right),
        column("surplus", Align::Right),
        column("could add", Align::Right),
        column("memory", Align::Left),
    ]);
    for pool in &pools.pools {
        let memory = pool.total.map(|total| pool.page_size.times(total).to_string());
        table.row(vec![
            pool.node.to_string().into(),
            pool.page_size.to_string().into(),
            number(pool.total),
            number(pool.free),
            number(pool.surplus),
            number(pool.could_add),
            memory.map(Line::from).unwrap_or_default(),
        ]);
    }
    table.write(&mut page);
    for whole in &pools.whole {
        let words = [(whole.reserved, "reserved"), (whole.overcommit, "allowed above the pools")];
        let words: Vec<String> =
            words.iter().filter_map(|(pages, word)| pages.map(|pages| format!("{pages} {word}"))).collect();
        if !words.is_empty() {
            let text = format!("  {} pages on all nodes: {}", whole.page_size, words.join(", "));
            page.line(4, &Line::from(text));
        }
    }
    if pools.pools.iter().any(|pool| pool.could_add.is_some()) {
        let why = "  could add: pages that fit into free blocks now; compaction can make more";
        page.line(4, &Line::new().with(Ink::Faint, why));
    }
    page.finish()
}

/// Writes a change of pools: a row per node, then a sentence for each that is short.
pub fn change(change: &PoolsChange, style: &Style) -> String {
    let mut page = Page::new(*style);
    let remark = if change.is_dry { "a dry run: nothing is changed" } else { "" };
    page.heading(&format!("Huge pages of {}", change.page_size), remark);
    let mut table = Table::new(vec![
        column("node", Align::Right),
        column("before", Align::Right),
        column("asked", Align::Right),
        column("after", Align::Right),
        column("tries", Align::Left),
    ]);
    for pool in &change.pools {
        let after = if change.is_dry { Line::new() } else { pool.after().to_string().into() };
        table.row(vec![
            pool.node.to_string().into(),
            pool.before.to_string().into(),
            pool.asked.to_string().into(),
            after,
            tries(pool),
        ]);
    }
    table.write(&mut page);
    if change.is_dry {
        return page.finish();
    }
    for text in change.pools.iter().filter_map(|pool| pool.shortfall(change.page_size)) {
        page.line(4, &Line::from("  ").with(Ink::Notable, text));
    }
    if change.given_back {
        page.line(
            4,
            &Line::from("  the kernel could not provide every page: pools restored (--all-or-nothing)"),
        );
    } else if let Some(journal) = &change.journal {
        let text = format!("  nodewise hugepages undo --journal {journal} restores the old values");
        page.line(4, &Line::new().with(Ink::Faint, text));
    }
    page.finish()
}

/// The pages after each try, where there were several.
fn tries(pool: &PoolChange) -> Line {
    if pool.tries.len() < 2 {
        return Line::new();
    }
    let tries: Vec<String> = pool.tries.iter().map(ToString::to_string).collect();
    tries.join(", ").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::hugepages::{Pool, WholePool};
    use crate::{csv, json};
    use nodewise_machine::NodeId;

    fn pools() -> Pools {
        let pool = |node, kib, total, could_add| Pool {
            node: NodeId::new(node),
            page_size: Bytes::from_kib(kib),
            total: Some(total),
            free: Some(total / 2),
            surplus: Some(0),
            could_add,
        };
        Pools {
            pools: vec![pool(0, 2048, 512, Some(80)), pool(0, 1 << 20, 0, None), pool(3, 2048, 0, Some(7))],
            whole: vec![WholePool { page_size: Bytes::from_mib(2), reserved: Some(12), overcommit: Some(0) }],
        }
    }

    #[test]
    fn pools_are_a_row_per_node_and_size() {
        let text = hugepages(&pools(), &Style::plain(80));
        let expected = "\
Huge pages  1 GiB in pools, 512 MiB of it free
  node  page size  total  free  surplus  could add  memory
     0      2 MiB    512   256        0         80  1 GiB
     0      1 GiB      0     0        0          -  0 B
     3      2 MiB      0     0        0          7  0 B
  2 MiB pages on all nodes: 12 reserved, 0 allowed above the pools
  could add: pages that fit into free blocks now; compaction can make more
";
        assert_eq!(text, expected);
    }

    #[test]
    fn json_and_csv_say_the_same_as_the_text() {
        let document: serde_json::Value =
            serde_json::from_str(&json::hugepages::hugepages(&pools())).unwrap();
        assert_eq!(document["schema"], "nodewise.hugepages/1");
        let csv = csv::hugepages(&pools());
        for (pool, line) in pools().pools.iter().zip(csv.lines().skip(1)) {
            let own = document["pools"].as_array().unwrap().iter().find(|own| {
                own["node"] == pool.node.number() && own["page_size_bytes"] == pool.page_size.get()
            });
            let own = own.unwrap();
            assert_eq!(own["total_pages"].as_u64(), pool.total);
            assert_eq!(own["could_add_pages"].as_u64(), pool.could_add);
            assert!(line.starts_with(&format!("{},{},", pool.node, pool.page_size.get())), "{line}");
        }
        assert_eq!(document["sizes"][0]["reserved_pages"], 12);
    }

    #[test]
    fn a_change_says_what_is_short() {
        let pool = PoolChange {
            node: NodeId::new(1),
            before: 0,
            asked: 400,
            tries: vec![230, 232],
            compactions: 1,
            refused: None,
            largest_free: Some(Bytes::from_mib(1)),
        };
        let mut changed = PoolsChange {
            page_size: Bytes::from_mib(2),
            is_dry: false,
            pools: vec![pool],
            given_back: false,
            journal: Some("/tmp/j".to_owned()),
        };
        let expected = "\
Huge pages of 2 MiB
  node  before  asked  after  tries
     1       0    400    232  230, 232
  node 1: 464 MiB of 800 MiB: 168 pages short, largest free block 1 MiB after 1
    compaction
  nodewise hugepages undo --journal /tmp/j restores the old values
";
        assert_eq!(change(&changed, &Style::plain(80)), expected);
        let document: serde_json::Value = serde_json::from_str(&json::hugepages::change(&changed)).unwrap();
        assert_eq!((&document["done"], &document["pools"][0]["after_pages"]), (&false.into(), &232.into()));
        changed.given_back = true;
        let text = change(&changed, &Style::plain(80));
        assert!(text.contains("pools restored (--all-or-nothing)"), "{text}");
    }

    #[test]
    fn a_kernel_without_pools_is_said_to_have_none() {
        let text = hugepages(&Pools::default(), &Style::plain(80));
        assert_eq!(text, "Huge pages  the kernel shows no pools of huge pages by node\n");
    }
}
