//! Lines that once differed, which are played before those that are drawn.

use super::Line;

/// A tool and the words behind its name.
pub const KNOWN: &[&str] = &[
    // The key file of an id whose key is negative is emptied, and what an earlier number left in `errno` is named.
    "numactl -L 64k -I 255 -S E -i 0",
    "numactl -L 64k -I 255 -S K -i 0",
    "numactl -L 64k -I 99999999999999999999 -S E -i 0",
    "numactl -L 99999999999999999999 -L 64k -I 255 -S E -i 0",
    // Nodes that mbind refuses, and set_mempolicy does not.
    "numactl -L 64k -f F -i !all -V",
    "numactl -L 64k -f F -i , -V",
    "numactl -L 64k -f F --interleave= -T",
    "numactl -L 64k -f F -p !all -T",
    "numactl -L 64k -f F -p 0,1 -T",
    "numactl -L 64k -f F -p 0-3 -T",
    "numactl -L 64k -f F -P !all -T",
    "numactl --interleave= probe",
    "numactl -p !all probe",
    "numactl -L 64k -f F -w !all -V",
    // Addresses as sscanf reads them.
    "numactl -m pci:00:020 probe",
    "numactl -m pci:000000:00:00.0 probe",
    "numactl -m pci:0x0:0.0 probe",
    "numactl -m pci:00:00.00 probe",
    "numactl -m pci:00:00.8 probe",
    "numactl -m pci:100:00.0 probe",
    "numactl -m pci:4294967296:00:00.0 probe",
    "numactl -m pci:-0:00.0 probe",
    "numactl -m pci:00:00.0,1 probe",
    "numactl -m pci:00 probe",
    "numactl -m file:E,0 probe",
    // Digits that only a newer C library knows.
    "numactl -m 0b0 probe",
    "numactl -C 0-0B1 probe",
    "numactl -m 0b2 probe",
    "numactl -L 0b1000000000000 -f F -i 0",
    "numactl -L 64k -I 0b1 -S K -i 0",
    "migratepages 0b0 0 0",
    "memhog 0b1k",
    "migspeed -p 0b1 0 0",
    // Shared memory without a policy, or with one for the process.
    "numactl --length=64k --file=F --verify",
    "numactl -N 0 --length=64k --file=F -m 0 --dump",
    "numactl -L 1m -f F --offset=4k -H",
    "numactl -L 1m -o 1m -f F -i 0 --verify",
    "numactl --file=/",
    // Words on standard error, and their order.
    "numactl -l -i 3-1 probe",
    "numactl -i 0 -t --length=64k",
    "numactl --ver",
    "numactl -p +-1 probe",
    "migspeed -p 0 1",
    // A node that 32 bits do not hold.
    "numactl -m 4294967296 probe",
    // Two devices; the second has no node.
    "numactl -p pci:0:0.0 -w file:/proc/self/status probe",
    "numactl -p pci:0:0.0 -i file:/proc/self/status probe",
    // A device beside one that does not exist, and a tab in the name of such a one.
    "numactl -i netdev:eth0 -c netdev:eth0.5 -b probe",
    "numactl -b -i netdev:\tth0.5 --cpunodebin=same probe",
    "migratepages {PID} !0 ip:10.0.0.1",
    // Numbers that the original makes the same process.
    "numastat 99999999999999999999 -v 4294967295",
    // Pages that a failing --verify brings in.
    "numactl -L 64k -f F -w 0 --verify -d",
];

/// A known line by its place.
pub fn known(place: usize) -> Option<Line> {
    let mut words = KNOWN.get(place)?.split(' ');
    let tools = ["numactl", "numastat", "migratepages", "migspeed", "memhog"];
    let name = words.next()?;
    let mut line = Line::new(tools.into_iter().find(|tool| *tool == name)?);
    line.words.extend(words.map(str::to_owned));
    Some(line)
}
