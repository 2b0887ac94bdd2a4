//! The machine's own IPv4 addresses.
//!
//! # Source
//! `/proc/net/fib_trie`: a tree drawn with bars; an address on one line, what it is on the next.
//!
//! ```text
//!        |-- 192.0.2.2
//!           /32 host LOCAL
//! ```

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// Reads the addresses that are marked as local. Lines of other kinds are passed over: the drawing
/// differs between releases.
pub fn parse(text: &str) -> BTreeSet<Ipv4Addr> {
    let mut local = BTreeSet::new();
    let mut leaf: Option<Ipv4Addr> = None;
    for line in text.lines() {
        let line = line.trim();
        if let Some(address) = line.strip_prefix("|-- ") {
            leaf = address.parse().ok();
        } else if line.starts_with("/32 host LOCAL") {
            local.extend(leaf);
        }
    }
    local
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    #[test]
    fn own_addresses_are_found() {
        let text = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n        |-- 127.0.0.1\n           /32 host LOCAL\n        |-- 192.0.2.0\n           /24 link UNICAST\n        |-- 192.0.2.2\n           /32 host LOCAL\n        |-- 192.0.2.255\n           /32 link BROADCAST\n";
        let local: Vec<String> = parse(text).iter().map(ToString::to_string).collect();
        assert_eq!(local, ["127.0.0.1", "192.0.2.2"]);
        assert!(parse("|-- x\n/32 host LOCAL\n").is_empty());
    }

    proptest! {
        #[test]
        fn print_then_parse_is_identity(bits in any::<u32>()) {
            let address = Ipv4Addr::from_bits(bits);
            prop_assert_eq!(parse(&format!("   |-- {address}\n      /32 host LOCAL\n")), BTreeSet::from([address]));
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in any::<String>()) {
            let _ = parse(&text);
        }
    }
}
