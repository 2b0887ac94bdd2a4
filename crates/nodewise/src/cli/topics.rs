//! The topics of `nodewise help`.
//!
//! Their layout: a paragraph is one line, an entry of a list begins with two blanks and has two or more before
//! its explanation. Both are wrapped to the terminal.

/// A topic.
#[derive(Debug)]
pub struct Topic {
    /// The word that asks for it, and others that do.
    pub names: &'static [&'static str],
    /// One line, for the list of topics.
    pub about: &'static str,
    /// The text.
    pub text: &'static str,
}

/// All topics, in the order in which they are listed.
pub const TOPICS: [Topic; 7] = [
    Topic {
        names: &["machines", "machine"],
        about: "the values of --machine",
        text: "\
Verbs that look, predict or emulate take --machine M. Without it they use this machine.

  live                 this machine
  web7.json            a machine file, as nodewise show --json or nodewise capture -o web7.json writes it
  web7.tar.gz          a capture: .tar, .tar.gz, .tar.bz2 or a directory, from nodewise capture or from hwloc-gather-topology
  acpi:DIR             the machine that Linux makes of the ACPI tables in DIR
  dtb:FILE             the machine that Linux makes of a device tree
  numactl-H.txt        a saved output of numactl --hardware
  lscpu.txt            a saved output of lscpu, as text or JSON (-J), or of likwid-topology
  topology.xml         XML of hwloc 2 (lstopo)
  dmidecode.txt        a saved output of dmidecode: memory slots only
  \"2x(8c 64G)\"         a hypothetical machine in one line: two packages with 8 cores and 64 GiB each

More of such lines:

  \"4x(12c2t 128G)\"                  12 cores of 2 threads in each of four nodes
  \"2x(2x(24c 126G)); dist=11,20\"    two nodes in each of two packages
  \"2x(16c 256G) (512G tier=22)\"     a node of memory only, such as CXL

Facts that a machine does not give are supplied by --node-memory, --architecture, --page-size and --huge-page-size, in the verbs that need them.

Read on: docs/spec.md, docs/capture.md, docs/acpi.md
",
    },
    Topic {
        names: &["policies", "policy", "placements", "placement"],
        about: "memory policies, and placements of programs",
        text: "\
A placement is a set of CPUs, a memory policy, and huge pages or not. nodewise run takes it as options:

  --membind=NODES              memory from these nodes only (bind); without free memory there a process is killed
  --preferred=NODE             memory from this node first, then from the nearest (preferred)
  --preferred-many=NODES       the same for several nodes (preferred-many, Linux 5.15)
  --interleave=NODES           page by page over these nodes (interleave)
  --weighted-interleave=NODES  in proportion to the nodes' weights (weighted-interleave, Linux 6.9)
  --localalloc                 memory of the node whose CPU touches a page first (local)
  --cpunodebind=NODES          CPUs of these nodes
  --physcpubind=CPUS           these CPUs
  --near=DEVICE                CPUs of a device's node, and its memory first; with --strict its memory only
  --huge=WHEN                  huge pages: always, never or pool

nodewise tune --placement and compare --placements take the same options without dashes: 'cpunodebind=0 membind=0'. In a list they are separated by commas: default,interleave=all.

nodewise explain takes a policy as /proc/PID/numa_maps shows it: a mode, flags behind \"=\", nodes behind \":\".

  local                        no nodes
  bind:0-1                     a mode with nodes
  bind=static:0-1              flags: static, relative, balancing
  bind=relative|balancing:0    several flags

Read on: docs/run.md, docs/explain.md
",
    },
    Topic {
        names: &["nodes", "cpus", "sets", "lists"],
        about: "notation of nodes and CPUs",
        text: "\
NODES and CPUS are lists of numbers, as the kernel writes them:

  0-2,5         0, 1, 2 and 5
  all           all that this process may use
  !1            all but 1
  +0-1          counted within what this process may use: the first two
  same          the nodes of the option before

Node numbers may have gaps, and nodes may have no CPUs or no memory. A node of a device is written with the device:

  net:eth0      a network interface (netdev:eth0 as in numactl)
  block:sda     a disk
  file:/data    the disk of a file
  ip:10.0.0.1   the interface that leads to a host
  ib:mlx5_0     an InfiniBand device
  gpu:0         a GPU, counted from 0
  pci:21:00.0   any PCI device

Read on: docs/run.md; docs/compat.md for the notation of numactl and libnuma
",
    },
    Topic {
        names: &["units", "sizes", "durations", "times"],
        about: "sizes, times, and units of results",
        text: "\
A SIZE is a number with a unit; letters count in powers of 1024:

  64K 512M 1.5G 2T        KiB, MiB, GiB, TiB
  4096B                   bytes

A TIME is a number with a unit; a number alone is seconds:

  500ms 90s 10m 2h

In results:

  KiB, MiB, GiB           powers of 1024, for memory and caches
  GB/s                    10^9 bytes per second
  ns                      nanoseconds

What is unknown is left out or marked; it is never shown as 0.
",
    },
    Topic {
        names: &["exit-codes", "exit", "codes", "errors"],
        about: "exit codes",
        text: "\
Every verb ends with one of these:

  0      done
  1      findings (doctor, advise --check, acpi, emulation verify), or a benchmark that became slower (compare)
  2      wrong usage
  3      this machine cannot do it
  4      internal error
  125    run and lab: nodewise could not start the program
  126    run: the program cannot be executed
  127    run: the program was not found

run and lab end with the code of their program. Ctrl-C ends a measurement with the results so far, and 0.
",
    },
    Topic {
        names: &["environment", "variables"],
        about: "environment variables",
        text: "\
Options are never read from variables. These change how output looks:

  COLUMNS                    width of text
  NO_COLOR, CLICOLOR_FORCE   never or always colour, where --color is not given
  TERM=dumb                  no colour

These belong to the verbs numactl, numastat, migratepages, migspeed and memhog:

  NODEWISE_NUMACTL_COMPAT    2.0.16 gives options and texts of that release (otherwise 2.0.19)
  NODEWISE_STRICT_COMPAT     1 keeps errors of the originals too
  NUMASTAT_WIDTH             width of numastat's tables
  POSIXLY_CORRECT            options end at the first operand

These belong to lab:

  XDG_CACHE_HOME             folder of the kernels (otherwise ~/.cache)

run --huge sets GLIBC_TUNABLES for the program that it starts.
",
    },
    Topic {
        names: &["formats", "format", "json", "csv", "svg", "png"],
        about: "JSON, CSV, pictures, and reading results again",
        text: "\
Verbs that measure take these options:

  --json         prints the result as JSON with every figure; each document names its schema and version
  --csv          prints one line per cell or placement, with commas
  --svg FILE     writes a picture into FILE
  --png FILE     writes it as PNG, where nodewise was built with --features png
  --from FILE    shows a result that --json printed, without measuring; --svg, --png and --csv work on it too; nodewise compare has --before and --after instead, and nodewise io reads the output of perftest

A result can be measured on a server and looked at elsewhere:

  nodewise latency --json > server.json
  nodewise latency --from server.json --svg server.svg

nodewise show --json prints a machine file, which --machine reads. Unknown values are left out. A field may be added within a version of a schema; a field that changes raises the version.

nodewise show, diff and doctor have --csv, too: one line per fact or finding.

Read on: docs/json.md, docs/options.md
",
    },
];
