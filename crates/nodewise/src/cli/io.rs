//! `nodewise io`.

use std::path::PathBuf;

use nodewise_machine::Bytes;

use super::measure_options::{MeasureOptions, PageOptions};

/// Shows the node of each device, and measures reads from disks into the memory of each node
///
/// Disks and files are opened read-only and read with direct I/O, in large sequential blocks and in random
/// blocks of 4 KiB, by a CPU near the device, into a buffer on each node. The kernel confirms the node of each
/// buffer before and after. RDMA devices are measured with perftest (ib_send_lat, ib_send_bw) once per node,
/// when a server waits on another host. --from shows an earlier result of --json, or output of perftest side by
/// side. Ctrl-C ends it with the figures so far.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  nodewise io                           all devices; disks need root
  nodewise io /data/big.file            the disk that a file is on
  nodewise io nvme0n1 net:eth0 --quick
  nodewise io mlx5_2 --rdma-peer far-host
  nodewise io nvme0n1 --json > disk.json   to show later, with --from
  nodewise io --from disk.json
  nodewise io --from near=local.txt far=membind1.txt --svg lat.svg

DEVICE is a name as nodewise show has it (nvme0n1, block:nvme0n1, net:eth0, ib:mlx5_0), FILE a path. \
--huge-pages is the kind of pages that buffers have [default: small ones].

On the host of --rdma-peer both servers have to wait, each again after every test:
  while ib_send_lat -a -F; do :; done &
  while ib_send_bw -a -F --report_gbits -p 18516; do :; done

Exit codes: 0 when there are figures, or nothing was to be read; 2 wrong usage; 3 when nothing could \
be read.")]
pub struct Io {
    /// Devices and files to read or to locate [default: all devices of this machine]
    #[arg(value_name = "DEVICE|FILE")]
    pub subjects: Vec<String>,
    #[command(flatten)]
    pub measure: MeasureOptions,
    #[command(flatten)]
    pub pages: PageOptions,
    /// Size of memory: the buffer on each node, such as 64M [default: 16M]
    #[arg(long, value_name = "SIZE", help_heading = "Measuring", value_parser = super::size)]
    pub size: Option<Bytes>,
    /// Run perftest over the RDMA devices against the servers on this host
    #[arg(long, value_name = "HOST", help_heading = "RDMA")]
    pub rdma_peer: Option<String>,
    /// Port of the latency server; that of the bandwidth server is the next [default: 18515]
    #[arg(long, value_name = "PORT", requires = "rdma_peer", help_heading = "RDMA",
          value_parser = clap::value_parser!(u16).range(1..65535))]
    pub rdma_port: Option<u16>,
    /// Read FILE instead of this machine: a result of --json, or output of perftest from several files with the
    /// first as the baseline; measures nothing
    #[arg(
        long,
        value_name = "[LABEL=]FILE",
        num_args = 1..,
        conflicts_with_all = ["subjects", "quick", "thorough", "huge", "cpus", "nodes", "seed", "size",
                              "rdma_peer"],
        help_heading = "Output"
    )]
    pub from: Vec<PathBuf>,
}
