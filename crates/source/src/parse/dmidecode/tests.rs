use proptest::prelude::{any, proptest};

use super::*;

/// dmidecode 3.2 on a server with two sockets, shortened.
const TEXT: &str = "\
# dmidecode 3.2
Getting SMBIOS data from sysfs.
SMBIOS 2.7 present.

Handle 0x0001, DMI type 1, 27 bytes
System Information
\tManufacturer: Dell Inc.
\tSerial Number: --

Handle 0x0400, DMI type 4, 42 bytes
Processor Information
\tSocket Designation: CPU1
\tType: Central Processor
\tFlags:
\t\tFPU (Floating-point unit on-chip)

Handle 0x1000, DMI type 16, 23 bytes
Physical Memory Array
\tLocation: System Board Or Motherboard
\tUse: System Memory

Handle 0x1100, DMI type 17, 34 bytes
Memory Device
\tArray Handle: 0x1000
\tTotal Width: 72 bits
\tData Width: 64 bits
\tSize: 4096 MB
\tForm Factor: DIMM
\tLocator: DIMM_A1 
\tBank Locator: Not Specified
\tType: DDR3
\tSpeed: 1600 MHz
\tManufacturer: 00AD04B300AD
\tPart Number: HMT351R7CFR8C-PB  
\tRank: 2
\tConfigured Clock Speed: 1333 MHz

Handle 0x1104, DMI type 17, 34 bytes
Memory Device
\tArray Handle: 0x1000
\tTotal Width: 72 bits
\tSize: No Module Installed
\tLocator: DIMM_A5 

Handle 0x1400, DMI type 20, 35 bytes
Memory Device Mapped Address
\tStarting Address: 0x00000000000
\tEnding Address: 0x0003FFFFFFF
\tPhysical Device Handle: 0x1100
";

#[test]
fn slots_are_read() {
    let Parsed { value: slots, problems } = parse(TEXT);
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(slots.board.vendor.as_deref(), Some("Dell Inc."));
    assert_eq!(slots.board.sockets, Some(1));
    assert_eq!(slots.ranges, [vec![(0, 1 << 30)], vec![]]);
    let [first, second] = &slots.slots[..] else { panic!("{slots:?}") };
    let module = MemoryModule {
        size: Some(Bytes::from_gib(4)),
        memory_type: Some("DDR3".into()),
        form_factor: Some("DIMM".into()),
        technology: None,
        max_speed_mt_per_s: Some(1600),
        configured_speed_mt_per_s: Some(1333),
        ranks: Some(2),
        data_width_bits: Some(64),
        total_width_bits: Some(72),
        manufacturer: Some("00AD04B300AD".into()),
        part_number: Some("HMT351R7CFR8C-PB".into()),
    };
    assert_eq!(first.module(), Some(&module));
    assert_eq!((first.locator.as_deref(), &first.bank), (Some("DIMM_A1"), &None));
    assert_eq!((second.locator.as_deref(), &second.state), (Some("DIMM_A5"), &SlotState::Empty));
}

#[test]
fn titles_count_where_there_are_no_handles_and_blanks_do_not() {
    let quiet: String = TEXT
        .lines()
        .filter(|line| !line.starts_with("Handle") && !line.contains(" Handle: "))
        .fold(String::new(), |text, line| text + &line.replace('\t', "    ") + "\r\n");
    let parsed = parse(&quiet);
    assert!(parsed.problems.is_empty(), "{:?}", parsed.problems);
    assert_eq!(parsed.value.slots, parse(TEXT).value.slots);
}

#[test]
fn sockets_without_a_processor_are_sockets() {
    // ThinkServer RD450 of Lenovo, and a socket for mathematics.
    let socket = |name: &str, kind: &str, status: &str| {
        format!("Processor Information\n\tSocket Designation: {name}\n\tType: {kind}\n\tStatus: {status}\n\n")
    };
    let text = [
        socket("CPU2", "<OUT OF SPEC>", "Unpopulated"),
        socket("CPU1", "Central Processor", "Populated, Enabled"),
        socket("FPU", "Math Processor", "Populated, Enabled"),
    ];
    let board = parse(&text.concat()).value.board;
    assert_eq!((board.sockets, board.processors), (Some(2), vec![Some(true), Some(false)]));
    // Names that do not order them.
    let text = [
        socket("Socket 940", "Central Processor", "Unpopulated"),
        socket("Socket 940", "Central Processor", "Unknown"),
        "Processor Information\n\tVersion: old\n".to_owned(),
    ];
    let board = parse(&text.concat()).value.board;
    assert_eq!(board.processors, [Some(false), None, None]);
}

#[test]
fn addresses_of_slots_without_a_module_are_none() {
    let slot = |handle: &str, size: &str, range: &str| {
        let (start, end) = range.split_once('-').unwrap();
        format!(
            "Handle 0x{handle}, DMI type 17, 28 bytes\nMemory Device\n\tSize: {size}\n\n\
             Memory Device Mapped Address\n\tStarting Address: 0x{start}\n\tEnding Address: 0x{end}\n\
             \tPhysical Device Handle: 0x{handle}\n\n"
        )
    };
    let text = [
        slot("0001", "4 GB", "00000000000-000FFFFFFFF"),
        // S4882 of Tyan: the last KiB of the module before it.
        slot("0002", "No Module Installed", "000FFFFFC00-000FFFFFFFF"),
        // X8DTN+ of Supermicro: zeros, for a module too.
        slot("0003", "8 GB", "00000000000-000000003FF"),
    ];
    assert_eq!(parse(&text.concat()).value.ranges, [vec![(0, 4 << 30)], vec![], vec![]]);
}

#[test]
fn sizes_have_their_units() {
    for (size, expected) in [
        ("512 kB", Some(Bytes::from_kib(512))),
        ("32 GB", Some(Bytes::from_gib(32))),
        ("1 TB", Some(Bytes::from_gib(1024))),
        ("Unknown", None),
    ] {
        let parsed = parse(&format!("Memory Device\n\tSize: {size}\n"));
        assert!(parsed.problems.is_empty());
        assert_eq!(parsed.value.slots[0].module().unwrap().size, expected, "{size}");
    }
}

#[test]
fn a_value_that_does_not_parse_is_named_with_its_line() {
    let text = "Memory Device\n\tSize: much\n\tSpeed: fast\n\tArray Handle: 0x12345\n\tLocator: A1\n";
    let parsed = parse(text);
    let problems: Vec<String> = parsed.problems.first.iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        [
            "line 4: expected a handle such as 0x1000, found \"0x12345\"",
            "line 2: expected a size such as 16 GB, found \"much\"",
            "line 3: expected a speed such as 3200 MT/s, found \"fast\"",
        ]
    );
    let slot = &parsed.value.slots[0];
    assert_eq!(slot.locator.as_deref(), Some("A1"));
    assert_eq!(slot.module().unwrap().size, None);
}

#[test]
fn its_texts_are_known_from_others() {
    assert!(is_dmidecode(TEXT));
    assert!(is_dmidecode("Memory Device\n\tSize: 4 GB\n"));
    assert!(is_dmidecode("  Handle 0x0001, DMI type 17, 34 bytes\n"));
    assert!(!is_dmidecode("hello\nHandle with care, DMI type\n"));
}

proptest! {
    #[test]
    fn any_text_is_survived(text in any::<String>(), near in "((Handle 0x[0-9a-f]{0,5}, DMI type [0-9]{1,2}, 9 bytes|Memory Device( Mapped Address)?|\t(Size|Speed|Rank|Array Handle|Starting Address|Ending Address|Physical Device Handle): (0x)?[0-9a-fk]{0,17}( GB| MT/s)?)?\n){0,20}") {
        let _ = parse(&text);
        let _ = parse(&near);
        let _ = (is_dmidecode(&text), reason(&text));
    }
}
