//! Memory modules as a guest's firmware lists them: SMBIOS tables for QEMU, which makes none of these types then.
//!
//! # Source
//! DSP0134 (System Management BIOS Reference Specification) 3.7, 7.17 and 7.18. A file of QEMU's `-smbios file=` holds one
//! structure.

use std::fs;
use std::path::Path;

/// The name of a slot, and the size of the module in it in MiB; 0 for none.
pub type Module = (&'static str, u16);

/// The array that all slots belong to, and the first of theirs.
const ARRAY: u16 = 0x1000;
const FIRST: u16 = 0x1100;
/// No structure about errors.
const NO_ERRORS: u16 = 0xfffe;
const MIB: u64 = 1 << 20;

/// Writes the tables of a guest, and gives QEMU's words for them.
pub fn words(guest: &str, slots: &[Module]) -> String {
    if slots.is_empty() {
        return String::new();
    }
    let modules = (0..).zip(slots).map(|(number, slot)| module(number, *slot));
    let tables = [array(slots.len() as u16)].into_iter().chain(modules);
    let file = |(number, table): (usize, Vec<u8>)| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{guest}-smbios-{number}"));
        // Another run may be booting from the same file.
        if fs::read(&path).ok().as_ref() != Some(&table) {
            fs::write(&path, table).expect("a table can be written");
        }
        format!("-smbios file={}", path.display())
    };
    tables.enumerate().map(file).collect::<Vec<_>>().join(" ")
}

/// A structure: its type, its number, its fields behind both, its texts.
fn structure(kind: u8, handle: u16, fields: &[&[u8]], texts: &[&str]) -> Vec<u8> {
    let fields = fields.concat();
    let mut bytes = vec![kind, fields.len() as u8 + 4];
    bytes.extend(handle.to_le_bytes());
    bytes.extend(fields);
    texts.iter().for_each(|text| bytes.extend(text.bytes().chain([0])));
    // Two zeros end it, also where it has no text.
    bytes.extend(if texts.is_empty() { &[0, 0][..] } else { &[0] });
    bytes
}

/// Type 16: memory of the system on its board, with error correction, of up to 1 TiB.
fn array(slots: u16) -> Vec<u8> {
    let capacity = (1u64 << 20) * MIB;
    let fields: [&[u8]; 5] = [
        &[3, 3, 6],
        // The field of 8 bytes has it.
        &0x8000_0000u32.to_le_bytes(),
        &NO_ERRORS.to_le_bytes(),
        &slots.to_le_bytes(),
        &capacity.to_le_bytes(),
    ];
    structure(16, ARRAY, &fields, &[])
}

/// Type 17: a slot for a DIMM of DDR4 with 3,200 MT/s.
fn module(number: u16, (name, size): Module) -> Vec<u8> {
    let [speed, voltage] = [if size > 0 { 3200u16 } else { 0 }, 1200].map(u16::to_le_bytes);
    let fields: [&[u8]; 14] = [
        &ARRAY.to_le_bytes(),
        &NO_ERRORS.to_le_bytes(),
        // Widths with and without error correction.
        &72u16.to_le_bytes(),
        &64u16.to_le_bytes(),
        &size.to_le_bytes(),
        // A DIMM of no set, named by the first text and the second; DDR4, synchronous.
        &[9, 0, 1, 2, 0x1a],
        &0x80u16.to_le_bytes(),
        &speed,
        // Maker and serial number; two ranks.
        &[3, 4, 0, 0, 2],
        &0u32.to_le_bytes(),
        &speed,
        &voltage,
        &voltage,
        &voltage,
    ];
    let (bank, serial) = (format!("BANK {number}"), format!("S{number}"));
    structure(17, FIRST + number, &fields, &[name, &bank, "Maker", &serial])
}
