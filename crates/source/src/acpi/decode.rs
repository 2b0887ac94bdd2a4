//! Bytes to a table.

use nodewise_machine::firmware::layout::Word as _;
use nodewise_machine::firmware::{
    Entries, Entry, FirmwareFinding, Layout, Other, Rule, Slit, Subtables, Table, TableHeader, cedt, hmat,
    madt, msct, slit, srat,
};
use nodewise_machine::printable::quote;

use super::values;

/// The largest table that is taken apart: the distances of 1,024 domains have one MiB.
const MOST_BYTES: usize = 2 << 20;
/// The number of findings that are reported of one table; beyond that they are counted.
const MOST_FINDINGS: usize = 50;

/// Decodes a table. What is wrong is added to the findings, and the rest still comes; without a
/// header there is no table.
pub fn decode(bytes: &[u8], findings: &mut Vec<FirmwareFinding>) -> Option<Table> {
    let header = header(bytes, findings)?;
    let name = header.name();
    let mut own = Vec::new();
    let table = take_apart(header, bytes, &mut own);
    values::check(&table, &mut own);
    if let Some(more) = own.len().checked_sub(MOST_FINDINGS).filter(|more| *more > 0) {
        own.truncate(MOST_FINDINGS);
        own.push(FirmwareFinding::in_table(
            name,
            Rule::StructureLength,
            format!("{more} more things are wrong with it"),
        ));
    }
    findings.append(&mut own);
    Some(table)
}

fn take_apart(header: TableHeader, bytes: &[u8], findings: &mut Vec<FirmwareFinding>) -> Table {
    let mut reader = Reader { name: header.name(), findings };
    let bytes = reader.whole(bytes, &header);
    if bytes.len() > MOST_BYTES && header.signature != *b"DSDT" && header.signature != *b"SSDT" {
        let text = format!("the table has {} bytes: one of nodes has at most {MOST_BYTES}", bytes.len());
        reader.find(4, Rule::Length, text);
        return Table::Other(Other { header, bytes: Vec::new() });
    }
    match header.signature {
        srat::SIGNATURE => Table::Srat(reader.subtables(header, bytes)),
        slit::SIGNATURE => Table::Slit(reader.slit(header, bytes)),
        hmat::SIGNATURE => Table::Hmat(reader.subtables(header, bytes)),
        cedt::SIGNATURE => Table::Cedt(reader.subtables(header, bytes)),
        msct::SIGNATURE => Table::Msct(reader.subtables(header, bytes)),
        madt::SIGNATURE => Table::Madt(reader.subtables(header, bytes)),
        _ => Table::Other(Other { header, bytes: bytes[TableHeader::WIDTH..].to_vec() }),
    }
}

/// The header, when these bytes begin with one.
fn header(bytes: &[u8], findings: &mut Vec<FirmwareFinding>) -> Option<TableHeader> {
    let mut refuse = |text: String| findings.push(FirmwareFinding::in_table("table", Rule::Header, text));
    let Ok(header) = TableHeader::take(&mut &bytes[..]) else {
        let expected = TableHeader::WIDTH;
        refuse(format!("{} bytes are not an ACPI table: expected a header of {expected}", bytes.len()));
        return None;
    };
    let is_letter = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || b"_!$".contains(byte);
    if !header.signature.iter().all(is_letter) {
        let [a, b, c, d] = header.signature;
        refuse(format!(
            "bytes {a:02x} {b:02x} {c:02x} {d:02x} are not a signature: expected four capital letters"
        ));
        return None;
    }
    // What is in other files can begin with four capital letters too; then its length fits by chance only.
    let (said, there) = (header.length as usize, bytes.len());
    if !KNOWN.contains(&header.signature) && !(TableHeader::WIDTH..=there).contains(&said) {
        refuse(format!(
            "{} begins no ACPI table: its length would be {said}, and {there} bytes are there",
            quote(&header.name())
        ));
        return None;
    }
    Some(header)
}

/// Tables that are taken apart, however broken they are.
const KNOWN: [[u8; 4]; 6] =
    [srat::SIGNATURE, slit::SIGNATURE, hmat::SIGNATURE, cedt::SIGNATURE, msct::SIGNATURE, madt::SIGNATURE];

/// Reads one table.
struct Reader<'a> {
    name: String,
    findings: &'a mut Vec<FirmwareFinding>,
}

impl Reader<'_> {
    fn find(&mut self, offset: usize, rule: Rule, text: String) {
        self.findings.push(FirmwareFinding::at(self.name.clone(), offset, rule, text));
    }

    /// The bytes of the table, by the length and the checksum in its header.
    fn whole<'a>(&mut self, bytes: &'a [u8], header: &TableHeader) -> &'a [u8] {
        /// Where the header has them.
        const LENGTH: usize = 4;
        const CHECKSUM: usize = 9;
        let said = header.length as usize;
        let there = bytes.len();
        if said < TableHeader::WIDTH {
            self.find(
                LENGTH,
                Rule::Length,
                format!("the length is {said}: expected at least {} for a header", TableHeader::WIDTH),
            );
            return bytes;
        }
        if said > there {
            self.find(LENGTH, Rule::Length, format!("the length is {said}, and {there} bytes are there"));
            return bytes;
        }
        if said < there {
            let more = there - said;
            self.find(said, Rule::Length, format!("{more} bytes follow the table, which has {said}"));
        }
        let bytes = &bytes[..said];
        let sum = bytes.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
        if sum != 0 {
            let (is, right) = (header.checksum, header.checksum.wrapping_sub(sum));
            self.find(CHECKSUM, Rule::Checksum, format!("the checksum is {is:#04x}: expected {right:#04x}"));
        }
        bytes
    }

    /// A table that is a list of structures.
    fn subtables<H: Layout + Fallback, E: Entries>(
        &mut self,
        header: TableHeader,
        bytes: &[u8],
    ) -> Subtables<H, E> {
        let mut rest = &bytes[TableHeader::WIDTH..];
        let fixed = H::take(&mut rest).unwrap_or_else(|needs| {
            let least = TableHeader::WIDTH as u64 + needs.0;
            let text = format!("the table has {} bytes: expected at least {least}", bytes.len());
            self.find(TableHeader::WIDTH, Rule::Length, text);
            // What is there of the fields is reported by its bytes alone.
            H::fallback()
        });
        let start = bytes.len() - rest.len();
        if let Some(offset) = fixed.first_structure().filter(|offset| *offset != start) {
            let text = format!("the first structure is declared at {offset:#x}: expected {start:#x}");
            self.find(TableHeader::WIDTH, Rule::Value, text);
            return Subtables { header, fixed, entries: Vec::new(), rest: rest.to_vec() };
        }
        let mut entries = Vec::new();
        while !rest.is_empty() {
            match self.entry::<E>(bytes.len() - rest.len(), rest) {
                Some((entry, behind)) => {
                    entries.push(entry);
                    rest = behind;
                }
                None => break,
            }
        }
        Subtables { header, fixed, entries, rest: rest.to_vec() }
    }

    /// A structure, and what follows it; `None` where nothing can be taken apart any more.
    fn entry<'a, E: Entries>(&mut self, offset: usize, bytes: &'a [u8]) -> Option<(Entry<E>, &'a [u8])> {
        let least = E::HEAD.width();
        let left = bytes.len();
        let mut behind = bytes;
        let Some((kind, reserved, length)) = E::HEAD.take(&mut behind) else {
            let text = format!("{left} bytes are left: expected a structure of at least {least}, or none");
            self.find(offset, Rule::StructureLength, text);
            return None;
        };
        if length < least || length > left {
            let text = format!(
                "a structure of type {kind} has length {length}: expected {least} to {left}, the end of the table"
            );
            self.find(offset, Rule::StructureLength, text);
            return None;
        }
        let (body, extra, needs) = E::take(kind, &bytes[least..length]);
        self.judge(offset, length, &body, extra, needs.map(|needs| needs.0.saturating_add(least as u64)));
        Some((Entry { offset, reserved, body, extra: extra.to_vec() }, &bytes[length..]))
    }

    /// Notes oddities of a structure that could be taken.
    fn judge<E: Entries>(
        &mut self,
        offset: usize,
        length: usize,
        body: &E,
        extra: &[u8],
        needs: Option<u64>,
    ) {
        // Of the MADT only the CPUs are of interest here, and of some of them only the start.
        let whole = self.name.as_bytes() != madt::SIGNATURE;
        match (body.name(), needs) {
            (Some(name), Some(needs)) => {
                let text = format!("{name} structure of {length} bytes: its fields need {needs}");
                self.find(offset, Rule::StructureLength, text);
            }
            (Some(name), None) if whole && !extra.is_empty() => {
                let expected = length - extra.len();
                let text = format!("{name} structure of {length} bytes: its fields take {expected}");
                self.find(offset, Rule::StructureLength, text);
            }
            (None, _) if whole => {
                let text = format!("structures of type {} are not known: shown as bytes", body.kind());
                self.find(offset, Rule::Type, text);
            }
            _ => {}
        }
    }

    fn slit(&mut self, header: TableHeader, bytes: &[u8]) -> Slit {
        let mut cells = &bytes[TableHeader::WIDTH..];
        let Some(localities) = u64::take(&mut cells) else {
            let text = format!("the table has {} bytes: expected at least {}", bytes.len(), slit::FIXED);
            self.find(TableHeader::WIDTH, Rule::Length, text);
            return Slit { header, localities: 0, distances: Vec::new(), rest: cells.to_vec() };
        };
        let there = cells.len();
        let wanted = localities.checked_mul(localities);
        let count = wanted.and_then(|wanted| usize::try_from(wanted).ok()).unwrap_or(usize::MAX);
        if count > there {
            let text = match wanted {
                Some(wanted) => format!(
                    "{localities} localities have {wanted} distances, and {there} bytes are left for them"
                ),
                None => format!("{localities} localities have more distances than any table holds"),
            };
            self.find(TableHeader::WIDTH, Rule::Count, text);
        } else if count < there {
            let text = format!("{} bytes follow the {count} distances", there - count);
            self.find(slit::FIXED + count, Rule::Length, text);
        }
        let (distances, rest) = cells.split_at(count.min(there));
        Slit { header, localities, distances: distances.to_vec(), rest: rest.to_vec() }
    }
}

/// The fields before the first structure.
trait Fallback {
    /// Returns the replacement for fields that are cut short.
    fn fallback() -> Self;

    /// The declared place of the first structure, in tables that declare it.
    fn first_structure(&self) -> Option<usize> {
        None
    }
}

impl Fallback for () {
    fn fallback() -> Self {}
}

impl Fallback for srat::SratFixed {
    fn fallback() -> Self {
        Self { table_revision: 1, reserved: 0 }
    }
}

impl Fallback for hmat::HmatFixed {
    fn fallback() -> Self {
        Self { reserved: 0 }
    }
}

impl Fallback for madt::MadtFixed {
    fn fallback() -> Self {
        Self { local_apic_address: 0, flags: 0 }
    }
}

impl Fallback for msct::MsctFixed {
    fn fallback() -> Self {
        Self { proximity_offset: 0, max_proximity_domains: 0, max_clock_domains: 0, max_physical_address: 0 }
    }

    fn first_structure(&self) -> Option<usize> {
        Some(self.proximity_offset as usize)
    }
}
