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

/// Makers of virtual machines, as vendor or model begins.
const VIRTUAL: [&str; 16] = [
    "Alibaba Cloud",
    "Apple Virtualization",
    "Bochs",
    "BHYVE",
    "Google Compute Engine",
    "KVM",
    "KubeVirt",
    "OpenStack",
    "Parallels",
    "QEMU",
    "Virtual Machine",
    "VirtualBox",
    "VMware",
    "Xen",
    "innotek GmbH",
    "pKVM",
];

impl Product {
    /// Whether vendor or model name a virtual machine: processors other than x86 have no flag for that.
    pub fn is_virtual(&self) -> bool {
        let names = || self.vendor.iter().chain(&self.name).map(|text| text.trim());
        // Whole machines of EC2 have models such as c7g.metal and m7i.metal-24xl.
        let is_ec2 = names().any(|text| text == "Amazon EC2");
        let is_metal = names().any(|text| text.contains(".metal"));
        (is_ec2 && !is_metal) || names().any(|text| VIRTUAL.iter().any(|maker| text.starts_with(maker)))
    }

    /// Whether nothing is known.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtual_machines_name_themselves() {
        let check = |vendor: &str, name: &str, expected: bool| {
            let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
            let product = Product { vendor: text(vendor), name: text(name), ..Product::default() };
            assert_eq!(product.is_virtual(), expected, "{vendor}, {name}");
        };
        check("QEMU", "KVM Virtual Machine", true);
        check("Amazon EC2", "c7g.16xlarge", true);
        check("Amazon EC2", "c7g.metal", false);
        check("Amazon EC2", "m7i.metal-24xl", false);
        check("Microsoft Corporation", "Virtual Machine", true);
        check("Microsoft Corporation", "Surface Pro", false);
        check("Google", "Google Compute Engine", true);
        check("Huawei", "TaiShan 2280 V2", false);
        check("", "", false);
    }
}
