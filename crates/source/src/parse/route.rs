//! Which interface leads to a host.
//!
//! # Source
//! `/proc/net/route` (the main table of IPv4), `/proc/net/ipv6_route` (every table of IPv6, the
//! machine's own addresses included).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Parsed, digits, lines};

/// `RTF_UP`: the route can be used.
const UP: u32 = 0x1;
/// `RTF_REJECT`: the route says that there is no way.
const REJECT: u32 = 0x200;
/// `RTF_LOCAL`: an address of this machine (IPv6 only).
const LOCAL: u32 = 0x8000_0000;

/// A route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The interface it goes through, as it was read.
    pub interface: String,
    /// The network it leads to.
    pub destination: IpAddr,
    /// How many leading bits of the destination count.
    pub prefix: u8,
    /// Smaller is preferred among routes of equal prefix.
    pub metric: u32,
    flags: u32,
}

impl Route {
    /// Whether the destination is an address of this machine.
    pub fn is_local(&self) -> bool {
        self.flags & LOCAL != 0
    }

    fn leads_to(&self, host: IpAddr) -> bool {
        let same = match (self.destination, host) {
            (IpAddr::V4(net), IpAddr::V4(host)) => {
                bits(net.to_bits().into(), 32, self.prefix) == bits(host.to_bits().into(), 32, self.prefix)
            }
            (IpAddr::V6(net), IpAddr::V6(host)) => {
                bits(net.to_bits(), 128, self.prefix) == bits(host.to_bits(), 128, self.prefix)
            }
            _ => false,
        };
        same && self.flags & UP != 0 && self.flags & REJECT == 0
    }
}

/// The leading bits of an address.
fn bits(address: u128, width: u32, prefix: u8) -> u128 {
    address.checked_shr(width - u32::from(prefix)).unwrap_or(0)
}

/// The route to a host: the longest prefix, then the smallest metric.
pub fn find(routes: &[Route], host: IpAddr) -> Option<&Route> {
    let able = routes.iter().filter(|route| route.leads_to(host));
    able.min_by_key(|route| (u8::MAX - route.prefix, route.metric))
}

/// Reads the routes of IPv4.
pub fn parse_v4(text: &str) -> Parsed<Vec<Route>> {
    table(text, 1, "an interface, an address and a mask in hexadecimal", v4)
}

/// Reads the routes of IPv6.
pub fn parse_v6(text: &str) -> Parsed<Vec<Route>> {
    table(text, 0, "an address and a prefix in hexadecimal, and an interface at the end", v6)
}

fn table(text: &str, skip: usize, expected: &str, read: fn(&str) -> Option<Route>) -> Parsed<Vec<Route>> {
    let mut parsed = Parsed::<Vec<Route>>::default();
    for (number, line) in lines(text).skip(skip).filter(|(_, line)| !line.trim().is_empty()) {
        match read(line) {
            Some(route) => parsed.value.push(route),
            None => parsed.problems.add(number, expected, line.trim()),
        }
    }
    parsed
}

fn v4(line: &str) -> Option<Route> {
    let words: Vec<&str> = line.split_ascii_whitespace().take(8).collect();
    let [interface, destination, _, flags, _, _, metric, mask] = words[..] else { return None };
    // The kernel prints the address as a number of its own byte order.
    let address = |text| hex(text, 8).map(|word| Ipv4Addr::from((word as u32).to_ne_bytes()));
    let mask = address(mask)?.to_bits();
    if mask.count_ones() != mask.leading_ones() {
        return None;
    }
    Some(Route {
        interface: interface.to_owned(),
        destination: address(destination)?.into(),
        prefix: mask.leading_ones() as u8,
        metric: digits(metric)?,
        flags: hex(flags, 8)? as u32,
    })
}

fn v6(line: &str) -> Option<Route> {
    let words: Vec<&str> = line.split_ascii_whitespace().take(10).collect();
    let [destination, prefix, _, _, _, metric, _, _, flags, interface] = words[..] else { return None };
    let prefix = hex(prefix, 2).filter(|prefix| *prefix <= 128)? as u8;
    Some(Route {
        interface: interface.to_owned(),
        destination: Ipv6Addr::from_bits(hex(destination, 32).filter(|_| destination.len() == 32)?).into(),
        prefix,
        metric: hex(metric, 8)? as u32,
        flags: hex(flags, 8)? as u32,
    })
}

fn hex(text: &str, most: usize) -> Option<u128> {
    let plain = (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if plain { u128::from_str_radix(text, 16).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    fn word(address: [u8; 4]) -> String {
        format!("{:08X}", u32::from_ne_bytes(address))
    }

    fn v4_table() -> String {
        let line = |interface: &str, net, flags, metric, mask| {
            format!(
                "{interface}\t{}\t00000000\t{flags}\t0\t0\t{metric}\t{}\t0\t0\t0   \n",
                word(net),
                word(mask)
            )
        };
        "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n".to_owned()
            + &line("eth0", [0, 0, 0, 0], "0003", 0, [0, 0, 0, 0])
            + &line("eth1", [192, 0, 2, 0], "0001", 100, [255, 255, 255, 0])
            + &line("eth2", [192, 0, 2, 0], "0001", 50, [255, 255, 255, 0])
            + &line("eth3", [192, 0, 2, 0], "0200", 0, [255, 255, 255, 0])
    }

    const V6_TABLE: &str = "\
fd000000000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0
00000000000000000000000000000000 00 00000000000000000000000000000000 00 fd000000000000000000000000000001 00000400 00000002 00000000 00000003     eth1
fd000000000000000000000000000002 80 00000000000000000000000000000000 00 00000000000000000000000000000000 00000000 00000003 00000000 80200001     eth0
00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo
";

    fn check(routes: &Parsed<Vec<Route>>, host: &str, interface: Option<&str>) {
        assert!(routes.problems.is_empty(), "{:?}", routes.problems);
        let route = find(&routes.value, host.parse().unwrap());
        assert_eq!(route.map(|route| route.interface.as_str()), interface, "{host}");
    }

    #[test]
    fn the_longest_prefix_wins_then_the_smallest_metric() {
        let routes = parse_v4(&v4_table());
        check(&routes, "192.0.2.77", Some("eth2"));
        check(&routes, "198.51.100.1", Some("eth0"));
        check(&routes, "fd00::9", None);
        let routes = parse_v6(V6_TABLE);
        check(&routes, "fd00::9", Some("eth0"));
        check(&routes, "2001:db8::1", Some("eth1"));
    }

    #[test]
    fn an_address_of_this_machine_is_known() {
        let routes = parse_v6(V6_TABLE);
        assert!(find(&routes.value, "fd00::2".parse().unwrap()).unwrap().is_local());
        assert!(!find(&routes.value, "fd00::9".parse().unwrap()).unwrap().is_local());
    }

    #[test]
    fn lines_that_were_cut_are_told() {
        let parsed = parse_v4("Iface\neth0\t0000\n");
        assert_eq!(parsed.problems.first[0].line, 2);
        assert_eq!(parse_v6("fd 81 0 0 0 0 0 0 0 eth0\n").problems.count(), 1);
        let holes = format!("h\neth0 {} 0 1 0 0 0 {}\n", word([10, 0, 0, 0]), word([255, 0, 255, 0]));
        assert_eq!(parse_v4(&holes).problems.count(), 1, "a mask with holes is no prefix");
    }

    proptest! {
        #[test]
        fn a_route_leads_to_its_own_network(net in any::<u128>(), host in any::<u128>(), prefix in 0u8..=128) {
            let mask = if prefix == 0 { 0 } else { u128::MAX << (128 - u32::from(prefix)) };
            let text = format!("{:032x} {prefix:02x} 0 00 0 00000400 0 0 00000001 eth0\n", net & mask);
            let routes = parse_v6(&text);
            prop_assert!(routes.problems.is_empty());
            prop_assert!(find(&routes.value, Ipv6Addr::from_bits(net).into()).is_some());
            let other = find(&routes.value, Ipv6Addr::from_bits(host).into()).is_some();
            prop_assert_eq!(other, host & mask == net & mask);
        }

        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>(), near in r"([0-9a-f]{0,33} ?[0-9a-f]{0,3} ){0,12}") {
            let _ = (parse_v4(&text), parse_v6(&text), parse_v4(&format!("h\n{near}")), parse_v6(&near));
        }
    }
}
