//! Devices inside node strings: `netdev:eth0`, `block:sda`, `file:/data`, `ip:10.0.0.1`, `pci:21:00.0`.
//!
//! Where a device is, the caller finds out.

use crate::number::{self, Base};

/// A kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    Net,
    Block,
    /// The disk that a file or file system is on.
    File,
    /// The interface through which a host is reached.
    Host,
    Pci,
    Infiniband,
    /// A GPU or accelerator, by its number.
    Gpu,
}

/// A device as it was typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device<'a> {
    pub kind: DeviceKind,
    /// Whether the originals know the word for the kind: they say `netdev:` and not `net:`.
    pub original: bool,
    pub name: &'a [u8],
    pub text: &'a [u8],
}

/// The device at the beginning of a text, whose name is all the rest; `None` where the text begins like no device.
pub fn split(text: &[u8]) -> Option<Device<'_>> {
    let colon = text.iter().position(|byte| *byte == b':')?;
    let (word, behind) = text.split_at_checked(colon)?;
    // No table: its pointers would be relocated whenever libnuma is loaded.
    let (kind, original) = match word {
        b"netdev" => (DeviceKind::Net, true),
        b"block" => (DeviceKind::Block, true),
        b"file" => (DeviceKind::File, true),
        b"ip" => (DeviceKind::Host, true),
        b"pci" => (DeviceKind::Pci, true),
        b"net" => (DeviceKind::Net, false),
        b"ib" => (DeviceKind::Infiniband, false),
        b"gpu" => (DeviceKind::Gpu, false),
        _ => return None,
    };
    Some(Device { kind, original, name: behind.get(1..)?, text })
}

/// Whether a name in `/sys/class` may hold a dot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dots {
    /// It may: `eth0.5` is a VLAN. In numactl and `nodewise run`.
    Accepted,
    /// It may not, as in the originals: in libnuma, where a program may rely on the refusal and has no switch, and in
    /// numactl where it is strict.
    Refused,
}

/// The name of a network interface or disk, without the blanks before it. `None` for one that no device has: it
/// would be another folder of `/sys`.
pub fn class_name(name: &[u8], dots: Dots) -> Option<&[u8]> {
    let name = number::unpadded(name);
    let illegal = |byte: &u8| *byte == b'/' || (*byte == b'.' && dots == Dots::Refused);
    let folder = name == b"." || name == b"..";
    (!folder && !name.iter().any(illegal)).then_some(name)
}

/// Where a PCI function is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PciFunction {
    pub domain: u32,
    pub bus: u8,
    /// The device, below 32.
    pub device: u8,
    /// The function, below 8.
    pub function: u8,
}

/// A number that no PCI function has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSuchFunction;

/// The address at the beginning of a text, `[domain:]bus:device[.function]` in hexadecimal digits, whatever follows
/// it; `None` where there is none.
///
/// # Source
/// The originals hand the text to `sscanf(3)`: each number may have blanks, a sign and `0x` before it.
pub fn pci_function(text: &[u8]) -> Option<Result<PciFunction, NoSuchFunction>> {
    let [domain, bus, device, function] = match fields(text, [b':', b':', b'.']) {
        ([domain, bus, device, function], 4) => [domain, bus, device, function],
        ([domain, bus, device, _], 3) => [domain, bus, device, 0],
        _ => match fields(text, [b':', b'.', 0]) {
            ([bus, device, function, _], 3) => [0, bus, device, function],
            ([bus, device, ..], 2) => [0, bus, device, 0],
            _ => return None,
        },
    };
    let byte = |number: u32, limit: u8| u8::try_from(number).ok().filter(|number| *number <= limit);
    let address = || {
        let (bus, device, function) = (byte(bus, 0xff)?, byte(device, 0x1f)?, byte(function, 7)?);
        Some(PciFunction { domain, bus, device, function })
    };
    Some(address().ok_or(NoSuchFunction))
}

/// Reads hexadecimal numbers at the beginning of a text, with these characters between them, each cut to the
/// `unsigned int` of C, and counts them. A separator that is NUL ends them.
fn fields(text: &[u8], separators: [u8; 3]) -> ([u32; 4], usize) {
    let mut found = [0; 4];
    let mut count = 0;
    let mut rest = Some(text);
    for (at, place) in found.iter_mut().enumerate() {
        let Some((number, behind)) = rest.and_then(|rest| number::leading(rest, Base::Hexadecimal)) else {
            break;
        };
        *place = number as u32;
        count = at.saturating_add(1);
        let separator = separators.get(at).filter(|separator| **separator != 0);
        rest = separator.and_then(|separator| behind.strip_prefix(&[*separator]));
    }
    (found, count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    #[test]
    fn kinds_have_their_words() {
        for (text, kind, original, name) in [
            ("netdev:eth0", DeviceKind::Net, true, "eth0"),
            ("net:eth0", DeviceKind::Net, false, "eth0"),
            ("file: /a:b", DeviceKind::File, true, " /a:b"),
            ("ip:::1", DeviceKind::Host, true, "::1"),
            ("pci:", DeviceKind::Pci, true, ""),
            ("gpu:0", DeviceKind::Gpu, false, "0"),
        ] {
            let (name, text) = (name.as_bytes(), text.as_bytes());
            assert_eq!(split(text), Some(Device { kind, original, name, text }));
        }
        for text in ["", "eth0", "usb:1", "NETDEV:eth0", "netdev", ":eth0"] {
            assert_eq!(split(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_name_that_leaves_its_folder_is_refused() {
        let check = |name: &'static str, accepted: bool, strict: bool| {
            for (dots, expected) in [(Dots::Accepted, accepted), (Dots::Refused, strict)] {
                let found = class_name(name.as_bytes(), dots);
                assert_eq!(found, expected.then_some(name.trim().as_bytes()), "{name} {dots:?}");
            }
        };
        check(" eth0", true, true);
        check("eth0.5", true, false);
        check("..", false, false);
        check("a/b", false, false);
        check("", true, true);
    }

    fn check(text: &str, expected: Option<Result<&str, NoSuchFunction>>) {
        let found = pci_function(text.as_bytes()).map(|found| {
            found.map(|at| format!("{:04x}:{:02x}:{:02x}.{}", at.domain, at.bus, at.device, at.function))
        });
        assert_eq!(found, expected.map(|expected| expected.map(str::to_owned)), "{text:?}");
    }

    #[test]
    fn functions_are_read_as_sscanf_reads_them() {
        for (text, expected) in [
            ("21:00.0", "0000:21:00.0"),
            ("0:1F.7", "0000:00:1f.7"),
            ("1:2:3", "0001:02:03.0"),
            ("000021:00", "0000:21:00.0"),
            ("10000:21:00.0", "10000:21:00.0"),
            ("\t21:00.0", "0000:21:00.0"),
            ("000000:0x21:0.00,0", "0000:21:00.0"),
            ("1:2:3:4", "0001:02:03.0"),
            ("1:2x", "0000:01:02.0"),
        ] {
            check(text, Some(Ok(expected)));
        }
        for text in ["21:00.10", "21:20", "100:0", "-1:0", "0:0:0.8"] {
            check(text, Some(Err(NoSuchFunction)));
        }
        for text in ["21", ":", "zz:00.0", "", "21:", "21:.0"] {
            check(text, None);
        }
    }

    proptest! {
        #[test]
        fn any_function_comes_back(domain: u16, bus: u8, device in 0u8..32, function in 0u8..8) {
            let expected = PciFunction { domain: domain.into(), bus, device, function };
            for text in [
                format!("{domain:04x}:{bus:02x}:{device:02x}.{function}"),
                format!("{domain:x}:{bus:X}:{device:x}.{function}"),
            ] {
                prop_assert_eq!(pci_function(text.as_bytes()), Some(Ok(expected)));
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..30)) {
            pci_function(&bytes);
            split(&bytes);
            class_name(&bytes, Dots::Accepted);
        }
    }
}
