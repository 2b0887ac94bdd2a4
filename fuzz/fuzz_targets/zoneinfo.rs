//! Zones that are read are printed as the kernel prints them and read back the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nodewise_source::parse::zoneinfo::{Zone, parse};

/// A block as the kernel prints it, without the counters of the node.
fn print(zone: &Zone) -> String {
    let mut text = format!("Node {}, zone {:>8}\n", zone.node, zone.name);
    text.extend(zone.free.map(|free| format!("  pages free     {free}\n")));
    let sizes = [
        ("boost", zone.boost),
        ("min", zone.min),
        ("low", zone.low),
        ("high", zone.high),
        ("promo", zone.promo),
        ("spanned", zone.spanned),
        ("present", zone.present),
        ("managed", zone.managed),
        ("cma", zone.cma),
    ];
    text.extend(sizes.iter().filter_map(|(name, size)| Some(format!("        {name:<8} {}\n", (*size)?))));
    let protection: Vec<String> = zone.protection.iter().map(ToString::to_string).collect();
    if !protection.is_empty() {
        text += &format!("        protection: ({})\n", protection.join(", "));
    }
    // Counters may be called like sizes; behind the protection they cannot be taken for one.
    if !zone.protection.is_empty() {
        text.extend(zone.counters.iter().map(|(name, count)| format!("      {name:<12} {count}\n")));
    }
    text.extend(zone.start_pfn.map(|pfn| format!("  start_pfn:           {pfn}\n")));
    text
}

fuzz_target!(|text: &str| {
    let parsed = parse(text);
    assert!(parsed.value.zones.len() <= text.lines().count());
    assert!(parsed.problems.count() <= text.lines().count());
    for zone in &parsed.value.zones {
        let again = parse(&print(zone));
        assert!(again.problems.is_empty(), "{}: {:?}", print(zone), again.problems);
        let mut expected = zone.clone();
        if zone.protection.is_empty() {
            expected.counters = Default::default();
        }
        assert_eq!(again.value.zones, [expected], "{}", print(zone));
    }
});
