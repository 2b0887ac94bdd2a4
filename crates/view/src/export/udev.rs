//! Rules of udev that set the pools of huge pages of each node when the system starts.
//!
//! # Source
//! udev(7): `ATTR{NAME}="VALUE"` writes a file of a device below its folder. Nodes are devices of the subsystem `node`, and
//! systemd-udev-trigger.service announces all of them with the action `add`.

use std::fmt::Write as _;

use nodewise_machine::Machine;

use super::NotExpressible;

/// Writes a rule for each pool that the machine sets. Pages above a pool's own number come and go by themselves.
///
/// # Errors
/// A machine without pages in any pool.
pub fn udev(machine: &Machine) -> Result<String, NotExpressible> {
    let pools = machine.nodes.values().flat_map(|node| node.huge_pools.iter().map(|pool| (node.id, pool)));
    let pages = pools.filter_map(|(node, pool)| {
        let own = pool.total?.saturating_sub(pool.surplus.unwrap_or(0));
        (own > 0).then_some((node, pool.page_size.get() >> 10, own))
    });
    let mut text = String::new();
    for (node, kib, pages) in pages {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "ACTION==\"add\", SUBSYSTEM==\"node\", KERNEL==\"node{node}\", \
             ATTR{{hugepages/hugepages-{kib}kB/nr_hugepages}}=\"{pages}\""
        );
    }
    if text.is_empty() {
        return Err(NotExpressible { format: "a rule of udev", needs: "pools of huge pages with pages" });
    }
    Ok(format!(
        "# Huge pages of each node. udev fills the pools when it finds the nodes, early at boot.\n{text}"
    ))
}

#[cfg(test)]
mod tests {
    use nodewise_machine::spec;

    use super::udev;

    #[test]
    fn each_pool_with_pages_has_a_rule() {
        let machine = spec::machine("(2c 4G huge=2M:8) (2c 4G) (2c 4G huge=2M:3)").unwrap();
        let text = udev(&machine).unwrap();
        let rules: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(rules.len(), 2, "{text}");
        assert_eq!(
            rules[1],
            "ACTION==\"add\", SUBSYSTEM==\"node\", KERNEL==\"node2\", \
             ATTR{hugepages/hugepages-2048kB/nr_hugepages}=\"3\""
        );
        let why = udev(&spec::machine("2x(2c 4G)").unwrap()).unwrap_err().to_string();
        assert!(why.contains("pools of huge pages"), "{why}");
    }
}
