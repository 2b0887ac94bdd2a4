//! Places of devices: the files that name nodes and CPUs near them.

use nodewise_machine::CpuSet;

/// Folders whose entries are devices with files about nodes and CPUs.
pub const DEVICE_FOLDERS: [&str; 5] = [
    "/sys/bus/pci/devices",
    "/sys/bus/nd/devices",
    "/sys/bus/dax/devices",
    "/sys/bus/cxl/devices",
    "/sys/class/pci_bus",
];

/// Files of a device that is near no node: all CPUs are as near, as the kernel has it for such devices.
///
/// # Source
/// `numa_node`, `local_cpus`, `local_cpulist` of a device; `cpuaffinity`, `cpulistaffinity` of a PCI bus; `target_node` of a
/// DAX device.
pub(super) fn of_devices(online: &CpuSet, mask_bits: Option<u32>) -> Vec<(&'static str, String)> {
    let none = || "-1\n".to_owned();
    let mask = || format!("{}\n", padded_mask(&online.to_mask(), mask_bits.unwrap_or_default()));
    let list = || format!("{online}\n");
    vec![
        ("numa_node", none()),
        ("target_node", none()),
        ("local_cpus", mask()),
        ("cpuaffinity", mask()),
        ("local_cpulist", list()),
        ("cpulistaffinity", list()),
    ]
}

/// A mask as wide as the kernel prints it, `bits` bits, from one of any width that fits.
pub fn padded_mask(digits: &str, bits: u32) -> String {
    let groups = bits.div_ceil(32).max(1) as usize;
    let known: Vec<&str> = digits.split(',').collect();
    let missing = groups.saturating_sub(known.len());
    let mut text: String = "00000000,".repeat(missing);
    text += &known.iter().map(|group| format!("{group:0>8}")).collect::<Vec<_>>().join(",");
    // The first group has as many digits as its bits need; those of a mask that does not fit stay.
    let spare = 8 - (bits.saturating_sub(1) % 32 / 4 + 1) as usize;
    let zeros = text.bytes().take_while(|byte| *byte == b'0').count();
    text.split_off(spare.min(zeros))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_padded_to_their_bits() {
        for (digits, bits, expected) in [
            ("00000003", 2, "3"),
            ("3", 8, "03"),
            ("000000ff", 8, "ff"),
            ("ff", 64, "00000000,000000ff"),
            ("0000000f", 80, "0000,00000000,0000000f"),
            ("1,00000000", 40, "01,00000000"),
            ("1,00000000", 33, "1,00000000"),
        ] {
            assert_eq!(padded_mask(digits, bits), expected, "{digits} {bits}");
        }
    }
}
