//! Where machines come from, and what the kernel says of processes and the system.
//!
//! Everything that reads `/sys` and `/proc` lives here, behind [`tree::Tree`], which is the running
//! system, a capture or a map in memory. Reading never prints and changes nothing; what is broken in
//! a file becomes an oddity of the machine with path, line and what was expected, and the rest still
//! comes.
//!
//! # Modules
//!
//! - `tree.rs` the only door to /sys, /proc, /dev and /boot; in `tree/` its forms (the running system, a
//!   directory, an archive, a map in memory), finding the machine in a capture, compressed data down to their
//!   last checksum (`tree/compressed.rs`), and bounded reading
//! - `parse.rs` text in, value out; in `parse/` one file per kernel format, named after the kernel's file;
//!   `parse/numa_maps/sums.rs` sums of `numa_maps` for processes of very many mappings
//! - `sysfs.rs` a tree to a `Machine`; in `sysfs/` a file per noun, each of which fills its part;
//!   `sysfs/siblings.rs` and `sysfs/memory.rs` whether files of CPUs, and fields of a node's memory, agree
//!   with one another, `sysfs/neighbours.rs` files that only some CPUs or nodes lack
//! - `thermal.rs` how hot the CPUs are
//! - `machine_file.rs` a machine as JSON (`nodewise.machine/1`), both ways; in `machine_file/` a file per
//!   part of the document
//! - `import.rs` outputs of other tools as machines: in `import/` the XML of hwloc (`import/hwloc_xml.rs`,
//!   `import/hwloc_devices.rs`), lscpu, likwid-topology
//! - `input.rs` what `--machine` names, as a machine; `limits.rs` how large a machine may be
//! - `capture.rs` writing a machine down; in `capture/` what is let in (`capture/rules.rs`), what is reduced,
//!   which identifiers are taken out, finding files, writing archives
//! - `turns.rs` reading many things in several threads
//! - `process.rs` processes, their descendants and where their pages are; in `process/` finding them by name;
//!   and others' claims on one (`process/claims.rs`); `own.rs` this process: what it may do, and what contains it
//! - `program.rs` the program of a process: its file, words, libraries, devices, limit and scheduling;
//!   `program/running.rs` what rules ask beside samples, with its variables, open devices (`program/devices.rs`), version
//!   (`program/version.rs`), and whether Go built it (`program/elf.rs`)
//! - `numactl.rs` a saved output of `numactl --hardware` as the files it was made from
//! - `mappings.rs` the mappings of a process with their pages; in `mappings/` counting them, drawing some of
//!   them, the kinds of mappings, and which other processes map the same
//! - `mapped.rs` mappings with their ends, kinds and nodes, for moving pages; `mapped/saved.rs` where pages were, as
//!   a file
//! - `in_force.rs` the placement that is in force in processes: CPUs of their threads, policies over their
//!   memory
//! - `record.rs` recordings: samples in a file; in `record/` frames, changes, blocks, writing and reading
//! - `sample.rs` the running system at one moment, as a value; in `sample/` the sampler that takes one after the
//!   other from any tree, at little cost (`tree/kept.rs`: files that stay open)
//! - `system.rs` how busy the system is: load, stolen time, stalls, clocks, counters
//! - `balance_journal.rs` the journal of balance: actions on processes, and the way back
//! - `settings.rs` settings of the running system that nodewise changes, written here only;
//!   `settings/journal.rs` their old values
//! - `site.rs` programs and files of a site that place others, zones and blocks of memory, hints of a board;
//!   `site/pinning.rs` files that pin interrupts
//! - `shared.rs` memory that processes share: segments, and file systems in memory
//! - `spare.rs` memory that can still be had: on a node, in its pools, below a limit; limits of CPU time; in `spare/` groups
//!   with limits (`spare/groups.rs`)
//! - `boot.rs` how the kernel was started, and what it wrote then (`parse/boot_log.rs`)
//! - `kernel.rs` where functions of the kernel are, and how its structures are laid out
//! - `acpi.rs` ACPI tables from bytes and dumps, and back to bytes; in `acpi/` decoding (`acpi/decode.rs`,
//!   `acpi/values.rs`), encoding, acpidump's text (`acpi/dump.rs`), where tables are found (`acpi/files.rs`)
//! - `smbios.rs` SMBIOS tables: memory slots; in `smbios/` entry points, the walk, the fields (`smbios/slots.rs`),
//!   tables without identity for captures (`smbios/blank.rs`), where they are found (`smbios/files.rs`)
//! - `devicetree.rs` device trees; in `devicetree/` the flattened form (`devicetree/blob.rs`), what it says
//!   of nodes (`devicetree/numa.rs`), and files
//! - `devices.rs` the node of a device that a user names; in `devices/` those that need more than a look:
//!   `file:` and `ip:`
//! - `facts.rs` one fact at a time, for programs in a hurry; `paths.rs` paths that other crates name;
//!   `file.rs` one file read and parsed; `written.rs` the files of a machine that has none; in `written/`
//!   those of nodes and CPUs, and the picture of a machine for programs (`written/picture/cpuinfo.rs`: models of CPUs)
//! - `user_namespaces.rs` switches that forbid user namespaces
#![forbid(unsafe_code)]

pub mod acpi;
pub mod balance_journal;
pub mod boot;
pub mod capture;
pub mod devices;
pub mod devicetree;
pub mod facts;
pub mod file;
pub mod import;
pub mod in_force;
pub mod input;
pub mod kernel;
pub mod limits;
pub mod machine_file;
pub mod mapped;
pub mod mappings;
pub mod numactl;
pub mod own;
pub mod parse;
pub mod paths;
pub mod process;
pub mod program;
pub mod record;
pub mod sample;
pub mod settings;
pub mod shared;
pub mod site;
pub mod smbios;
pub mod spare;
pub mod sysfs;
pub mod system;
pub mod thermal;
pub mod tree;
pub mod turns;
pub mod user_namespaces;
pub mod written;

pub use sysfs::Detail;
