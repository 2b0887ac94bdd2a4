//! Text beside JSON.

use nodewise_machine::firmware::srat::{self, Memory, ProcessorApic, SratFixed};
use nodewise_machine::firmware::{FirmwareFinding, Rule, Slit, Srat, SratEntry, Table, TableHeader, Tables};
use nodewise_model::firmware::{Setting, boot};
use serde_json::Value;

use crate::digest::acpi::Acpi;
use crate::style::Style;
use crate::{json, text};

fn tables() -> Tables {
    let cpu = |apic_id, domain_low| {
        SratEntry::ProcessorApic(ProcessorApic {
            domain_low,
            apic_id,
            flags: srat::ENABLED,
            sapic_eid: 0,
            domain_high: [0; 3],
            clock_domain: 0,
        })
    };
    let memory = |proximity_domain, base_address, length| {
        SratEntry::Memory(Memory {
            proximity_domain,
            reserved1: 0,
            base_address,
            length,
            reserved2: 0,
            flags: srat::ENABLED,
            reserved3: 0,
        })
    };
    let entries = [cpu(0, 1), cpu(2, 1), cpu(16, 0), memory(1, 0, 1 << 30), memory(0, 1 << 30, 1 << 31)];
    let fixed = SratFixed { table_revision: 1, reserved: 0 };
    let srat = Table::Srat(Srat::new(TableHeader::new(srat::SIGNATURE, 3), fixed, entries));
    let slit = Table::Slit(Slit::new(&[vec![10, 21], vec![31, 10]]));
    let finding = FirmwareFinding::at("SRAT", 9, Rule::Checksum, "the checksum is 0x00: expected 0x12");
    Tables { tables: vec![srat, slit], findings: vec![finding] }
}

fn shown(width: usize) -> (String, Value) {
    let tables = tables();
    let booted = boot(&tables, &Setting::default());
    let acpi = Acpi { source: "some\u{1b}where", tables: &tables, booted: &booted };
    let value = serde_json::from_str(&json::acpi(&acpi)).unwrap();
    (text::acpi(&acpi, &Style::plain(width)), value)
}

#[test]
fn domains_fold_and_fields_have_their_names() {
    assert_eq!(
        shown(80).0,
        "\
Tables  from some\\x1bwhere
  Signature  Revision  Length  OEM ID  OEM Table ID  structures
  SRAT              3       0  NODEWI  NODEWISE      5
  SLIT              1       0  NODEWI  NODEWISE      2 localities

SRAT  processors by Proximity Domain
  domain  structures  Enabled  Type                        APIC, UID or ITS ids
       0           1  yes      Processor Local APIC/SAPIC  16
       1           2  yes      Processor Local APIC/SAPIC  0,2

SRAT  Memory Affinity
  domain  Base Address         end  Address Length  Flags
       1           0x0  0x3fffffff           1 GiB  enabled
       0    0x40000000  0xbfffffff           2 GiB  enabled

SLIT  distance from each domain to domains 0, 1, 2, ...
  from
     0   10  21
     1   31  10

Linux  the nodes that it makes of these tables
  node  domain  memory  at boot  CPUs
     0       1   1 GiB  online   0-1
     1       0   2 GiB  online   2
  assumed: SRAT: without a MADT, CPUs are numbered in the order of the SRAT
  assumed: SRAT: the tables do not say where RAM is: each range is taken for
    full

Wrong  what does not agree with the specification
  SRAT at 0x9: the checksum is 0x00: expected 0x12
"
    );
}

#[test]
fn lines_fit_and_nothing_drives_the_terminal() {
    for width in [40, 60, 80, 160] {
        let (text, _) = shown(width);
        assert!(text.lines().all(|line| line.chars().count() <= width), "{width}\n{text}");
        assert!(!text.contains('\u{1b}'));
    }
}

#[test]
fn json_says_the_same_as_the_text() {
    let (text, value) = shown(120);
    for node in value["kernel"]["nodes"].as_array().unwrap() {
        let row = format!("{}       {}", node["node"], node["domain"]);
        assert!(text.contains(&row), "{row}\n{text}");
    }
    let fields = value["tables"][0]["structures"][3]["fields"].as_array().unwrap();
    let length = fields.iter().find(|field| field["name"] == "Address Length").unwrap();
    assert_eq!((length["offset"].as_u64(), length["value"].as_u64()), (Some(16), Some(1 << 30)));
    assert_eq!(value["findings"][0]["rule"], "checksum");
    for finding in value["findings"].as_array().unwrap() {
        assert!(text.contains(finding["text"].as_str().unwrap()), "{finding}\n{text}");
    }
    for note in value["kernel"]["notes"].as_array().unwrap() {
        let told = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.contains(note["text"].as_str().unwrap()), "{note}\n{text}");
    }
}
