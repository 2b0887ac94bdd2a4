//! `ip:HOST`: the interface that leads to a host.

use std::net::{IpAddr, ToSocketAddrs as _};

use nodewise_machine::printable::printable;
use nodewise_machine::{DeviceClass, DeviceRef, NodeId};

use super::{Finder, NoNode};
use crate::file;
use crate::parse::{Parsed, fib_trie, route};
use crate::tree::Tree;

impl Finder<'_> {
    /// The node of the interface that the routing tables choose.
    pub(super) fn host(&self, host: &str) -> Result<NodeId, NoNode> {
        let tree = self.live()?;
        let address = match host.trim_matches(['[', ']']).parse() {
            Ok(address) => address,
            Err(_) => resolve(host).map_err(|cause| self.unreachable(cause))?,
        };
        match interface(tree, address).map_err(|cause| self.unreachable(cause))? {
            PacketRoute::Own => Err(NoNode::OwnAddress(self.name.clone())),
            PacketRoute::None => Err(self.unreachable("no route leads there".to_owned())),
            PacketRoute::Through(name) => {
                let device = DeviceRef::Net(name.clone());
                let found = self.named(DeviceClass::Net, &name, &device);
                found.map_err(|error| match error {
                    NoNode::NotKnown(_) => NoNode::NotKnown(printable(&device.to_string()).into_owned()),
                    error => error,
                })
            }
        }
    }

    fn unreachable(&self, cause: String) -> NoNode {
        NoNode::Host { host: self.name.clone(), cause }
    }
}

fn resolve(host: &str) -> Result<IpAddr, String> {
    let addresses =
        (host, 0).to_socket_addrs().map_err(|error| printable(&error.to_string()).into_owned())?;
    addresses.map(|address| address.ip()).next().ok_or_else(|| "it has no address".to_owned())
}

/// Where a packet would go.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PacketRoute {
    Own,
    None,
    Through(String),
}

/// Looks an address up in the tables of the kernel.
///
/// # Source
/// `/proc/net/route`, `/proc/net/fib_trie`, `/proc/net/ipv6_route`. Rules that choose among several
/// tables (policy routing) are not followed.
pub(super) fn interface(tree: &Tree, address: IpAddr) -> Result<PacketRoute, String> {
    let own = match address {
        IpAddr::V4(address) => {
            let text = tree.read_text("/proc/net/fib_trie").map_err(|error| error.to_string())?;
            text.is_some_and(|text| fib_trie::parse(&text).contains(&address))
        }
        IpAddr::V6(_) => false,
    };
    // What is sent to no address stays here.
    if own || address.is_loopback() || address.is_unspecified() {
        return Ok(PacketRoute::Own);
    }
    let routes = match address {
        IpAddr::V4(_) => file::parsed(tree, "/proc/net/route", route::parse_v4),
        IpAddr::V6(_) => file::parsed(tree, "/proc/net/ipv6_route", route::parse_v6),
    };
    let Parsed { value: routes, .. } = routes.map_err(|error| error.to_string())?.unwrap_or_default();
    Ok(match route::find(&routes, address) {
        Some(route) if route.is_local() || route.interface == "lo" => PacketRoute::Own,
        Some(route) => PacketRoute::Through(route.interface.clone()),
        None => PacketRoute::None,
    })
}
