//! Pools of huge pages, a line per node and size.

use super::known;
use crate::digest::hugepages::Pools;

/// Writes pools; a value that is not known is empty.
pub fn hugepages(pools: &Pools) -> String {
    let mut text =
        String::from("node,page_size_bytes,total_pages,free_pages,surplus_pages,could_add_pages\n");
    for pool in &pools.pools {
        let fields = [
            pool.node.to_string(),
            pool.page_size.get().to_string(),
            known(pool.total),
            known(pool.free),
            known(pool.surplus),
            known(pool.could_add),
        ];
        text.push_str(&(fields.join(",") + "\n"));
    }
    text
}
