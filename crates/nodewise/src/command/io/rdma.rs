//! perftest over an RDMA device: once per node of the buffers, against servers on another host.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nodewise_machine::order::Order as _;
use nodewise_machine::placement::Placement;
use nodewise_machine::{CpuSet, NodeId, NodeSet, PolicyMode};
use nodewise_measure::io::DeviceReport;
use nodewise_measure::perftest::{Comparison, PerftestQuantity, Side, Table};

use super::client::{Client, ClientError};
use crate::failure::Failure;
use crate::measuring;

/// The port of perftest itself.
const PORT: u16 = 18515;
/// How often a test is tried, for a server ends after every test and somebody has to start it again.
const ATTEMPTS: u32 = 5;
/// The time that it has for that.
const BETWEEN: Duration = Duration::from_secs(1);

/// Where the servers wait.
pub struct Peer<'a> {
    pub host: &'a str,
    /// The port of the latency server; that of the bandwidth server is the next.
    pub port: Option<u16>,
}

impl Peer<'_> {
    /// Runs both tests over a device with buffers on each of these nodes, by CPUs near the device.
    ///
    /// # Errors
    /// A signal that cannot be listened for. What goes wrong with a test is in the report of the device.
    pub fn measure(&self, device: &mut DeviceReport, cpus: &CpuSet, nodes: &NodeSet) -> Result<(), Failure> {
        let interrupt = measuring::interrupt()?;
        let mut run = |client: &Client, placement: &Placement| patiently(client, placement, &interrupt);
        self.run_all(device, cpus, nodes, &mut run);
        Ok(())
    }

    fn run_all(
        &self,
        device: &mut DeviceReport,
        cpus: &CpuSet,
        nodes: &NodeSet,
        run: &mut dyn FnMut(&Client, &Placement) -> Result<Table, ClientError>,
    ) {
        let (mut sides, mut refused) = (Vec::new(), Vec::new());
        for kind in PerftestQuantity::ALL {
            let client = self.client(device, kind);
            for node in home_first(device.home.node(), nodes) {
                let placement = Placement::memory(PolicyMode::Bind, NodeSet::from([node.number()]));
                let placement = if cpus.is_empty() { placement } else { placement.with_cpus(cpus.clone()) };
                match run(&client, &placement) {
                    Ok(table) => sides.push(Side { label: format!("node {node}"), node: Some(node), table }),
                    Err(error) => refused.push(format!("buffers on node {node}: {error}")),
                }
            }
        }
        device.perftest = Comparison::from_sides(sides);
        // The same reason for every node is one line.
        refused.dedup_by(|one, other| {
            one.split_once(": ").map(|of| of.1) == other.split_once(": ").map(|of| of.1)
        });
        device.refused = (!refused.is_empty()).then(|| refused.join("; "));
    }

    fn client(&self, device: &DeviceReport, kind: PerftestQuantity) -> Client {
        let name = device.name.strip_prefix("ib:").unwrap_or(&device.name);
        let first = self.port.unwrap_or(PORT);
        let port = match kind {
            PerftestQuantity::Latency => first,
            PerftestQuantity::Bandwidth => first.saturating_add(1),
        };
        Client { kind, device: name.to_owned(), host: self.host.to_owned(), port: Some(port) }
    }
}

/// The node of the device first, for the others are compared with it.
fn home_first(home: Option<NodeId>, nodes: &NodeSet) -> Vec<NodeId> {
    let mut order: Vec<NodeId> = nodes.iter().collect();
    order.order_by_key(|node| (Some(*node) != home, *node));
    order
}

fn patiently(client: &Client, placement: &Placement, interrupt: &AtomicBool) -> Result<Table, ClientError> {
    let mut attempt = 1;
    loop {
        if interrupt.load(Ordering::Relaxed) {
            return Err(ClientError::Interrupted);
        }
        match client.run(placement, interrupt) {
            Err(ClientError::Failed { .. }) if attempt < ATTEMPTS && !interrupt.load(Ordering::Relaxed) => {
                attempt += 1;
                measuring::wait(Instant::now() + BETWEEN, interrupt, || false);
            }
            ended => return ended,
        }
    }
}

#[cfg(test)]
mod tests {
    use nodewise_measure::io::{DeviceKind, Home};

    use super::*;

    fn device(home: Home) -> DeviceReport {
        DeviceReport {
            name: "ib:mlx5_2".to_owned(),
            kind: DeviceKind::Rdma,
            home,
            size: None,
            refused: None,
            ways: Vec::new(),
            perftest: Vec::new(),
        }
    }

    fn table(kind: PerftestQuantity) -> Table {
        let head = match kind {
            PerftestQuantity::Latency => "t_typical[usec]",
            PerftestQuantity::Bandwidth => "BW average[Gb/sec]",
        };
        Table::parse(&format!("#bytes #iterations {head}\n2 1000 1.5\n")).unwrap()
    }

    fn words(client: &Client) -> String {
        let words: Vec<String> =
            client.words().iter().map(|word| word.to_string_lossy().into_owned()).collect();
        words.join(" ")
    }

    #[test]
    fn both_tests_run_once_per_node_bound_to_it_the_node_of_the_device_first() {
        let mut device = device(Home::Node(NodeId::new(1)));
        let mut ran = Vec::new();
        let peer = Peer { host: "far-host", port: None };
        peer.run_all(&mut device, &CpuSet::from([4, 5]), &NodeSet::from([0, 1]), &mut |client, placement| {
            let policy = placement.policy.as_ref().unwrap();
            let cpus = placement.cpus.as_ref().unwrap();
            ran.push(format!("{} on {} from {cpus}: {}", policy.mode, policy.nodes, words(client)));
            Ok(table(client.kind))
        });
        assert_eq!(
            ran,
            [
                "bind on 1 from 4-5: ib_send_lat -a -F -d mlx5_2 -p 18515 far-host",
                "bind on 0 from 4-5: ib_send_lat -a -F -d mlx5_2 -p 18515 far-host",
                "bind on 1 from 4-5: ib_send_bw -a -F --report_gbits -d mlx5_2 -p 18516 far-host",
                "bind on 0 from 4-5: ib_send_bw -a -F --report_gbits -d mlx5_2 -p 18516 far-host",
            ]
        );
        assert_eq!(device.refused, None);
        let labels: Vec<&str> =
            device.perftest.iter().flat_map(|of| of.sides()).map(|side| side.label.as_str()).collect();
        assert_eq!(labels, ["node 1", "node 0", "node 1", "node 0"]);
    }

    #[test]
    fn a_test_that_fails_is_named_and_the_others_are_shown() {
        let mut device = device(Home::Unknown("nobody knows".to_owned()));
        let peer = Peer { host: "far-host", port: Some(7000) };
        peer.run_all(&mut device, &CpuSet::new(), &NodeSet::from([0, 1]), &mut |client, placement| {
            assert_eq!(placement.cpus, None);
            match client.kind {
                PerftestQuantity::Latency => Ok(table(PerftestQuantity::Latency)),
                PerftestQuantity::Bandwidth => {
                    Err(ClientError::NotStarted { program: "ib_send_bw", why: "gone".to_owned() })
                }
            }
        });
        assert_eq!(
            device.refused.as_deref(),
            Some("buffers on node 0: ib_send_bw could not be started: gone"),
            "one reason is told once"
        );
        assert_eq!((device.perftest.len(), device.perftest[0].sides().len()), (1, 2));
    }
}
