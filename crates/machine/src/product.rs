//! The model of a machine, and the firmware on it.

/// Maker and model of a machine, and its firmware (BIOS, UEFI). `None`: the source does not say.
///
/// # Source
/// `sys_vendor`, `product_name` and `bios_*` of `/sys/class/dmi/id`, from SMBIOS types 0 and 1, Linux 2.6.23.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Product {
    /// The maker: `Dell Inc.`.
    pub vendor: Option<String>,
    /// The model: `PowerEdge R740`.
    pub name: Option<String>,
    /// The maker of the firmware.
    pub firmware_vendor: Option<String>,
    /// The firmware's version, in its maker's form.
    pub firmware_version: Option<String>,
    /// The date of the firmware, in its maker's form: `02/24/2021`.
    pub firmware_date: Option<String>,
}

impl Product {
    /// Whether nothing is known.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}
