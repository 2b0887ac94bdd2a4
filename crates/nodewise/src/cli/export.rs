//! `nodewise export`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::ValueEnum;
use nodewise_machine::printable::quote;

use crate::output::Destination;

/// Writes a machine in the formats that other programs read
///
/// Facts that the machine does not give are left out. docs/export.md says what each format holds, and which programs
/// read it in the tests.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  nodewise export hwloc -o web7.xml         then lstopo --input web7.xml
  nodewise export hwloc --measured latency.json -o web7.xml
  nodewise export metrics -o /var/lib/prometheus/node-exporter/nodewise.prom
  nodewise export metrics --listen 127.0.0.1:9109
  nodewise export dot | dot -Tsvg > machine.svg
  nodewise export libvirt --machine web7.tar.gz
  nodewise export slurm --host web7 --machine \"2x(8c2t 64G); dist=21\"

Exit codes: 0; 2 wrong usage; 3 the machine lacks a fact without which the format says nothing, or FILE cannot be written.")]
pub struct Export {
    /// Format of the output
    #[arg(value_name = "FORMAT")]
    pub format: Format,
    /// File to write, whole or not at all, instead of standard output; replaces an existing file
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<Destination>,
    /// Name of the host, in kubernetes and slurm [default: the host name of this machine]
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    /// Write the latencies and bandwidths in FILE instead of the firmware's: a result of latency or bandwidth --json, or
    /// output of Intel Memory Latency Checker (may be repeated); with the format hwloc
    #[arg(long, value_name = "FILE")]
    pub measured: Vec<PathBuf>,
    /// Answer Prometheus on this loopback address until Ctrl-C, such as 127.0.0.1:9109; with the format metrics
    #[arg(long, value_name = "ADDRESS", value_parser = loopback, conflicts_with = "output")]
    pub listen: Option<SocketAddr>,
    #[command(flatten)]
    pub supplied: super::Supplied,
}

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// XML of hwloc 2, for lstopo, Open MPI and every program with hwloc
    Hwloc,
    /// Text format of Prometheus, for the textfile collector of node exporter
    Metrics,
    /// OpenMetrics 1.0, for a server that Prometheus scrapes
    Openmetrics,
    /// Diagram for Graphviz
    Dot,
    /// Diagram for Mermaid, which pages of Markdown draw
    Mermaid,
    /// Tables in Markdown, for issues and wikis
    Markdown,
    /// Arguments of QEMU for a guest with these nodes
    Qemu,
    /// Domain of libvirt with these nodes, each bound to the node it is like
    Libvirt,
    /// NodeResourceTopology object of Kubernetes
    Kubernetes,
    /// Labels for Node Feature Discovery, a file of its folder features.d
    Nfd,
    /// Lines for slurm.conf and gres.conf
    Slurm,
    /// Rules of udev that fill the pools of huge pages of each node at boot
    Udev,
}

/// Reads an address and a port that only programs of this machine reach.
fn loopback(text: &str) -> Result<SocketAddr, String> {
    let expected = "expected a loopback address and a port, as in 127.0.0.1:9109 or [::1]:9109";
    let address = text.parse().ok().filter(|address: &SocketAddr| address.ip().is_loopback());
    address.ok_or_else(|| format!("{} is not one to listen on: {expected}", quote(text)))
}

#[cfg(test)]
mod tests {
    use super::loopback;

    #[test]
    fn only_programs_of_this_machine_are_answered() {
        for text in ["127.0.0.1:9109", "[::1]:0"] {
            assert_eq!(loopback(text).map(|address| address.to_string()).as_deref(), Ok(text));
        }
        for text in ["0.0.0.0:9109", "192.0.2.1:80", "localhost:80", "127.0.0.1", ""] {
            assert!(loopback(text).is_err(), "{text}");
        }
    }
}
