//! Devices and memory slots of two machines.

use std::collections::BTreeMap;

use nodewise_machine::{Device, Machine, MemoryModule, MemorySlot, SlotState};

use super::{DiffExtent, FactGroup, FactValue, Names, NumberOf, Subject, TextOf, Walk, side_by_side};

/// Compares them.
pub(super) fn compare(walk: &mut Walk<'_>) {
    slots(walk);
    devices(walk);
}

fn text(text: &Option<String>) -> Option<FactValue> {
    text.as_deref().map(FactValue::text)
}

fn number(number: Option<impl Into<u64>>) -> Option<FactValue> {
    number.map(|number| FactValue::Number(number.into()))
}

fn slots(walk: &mut Walk<'_>) {
    walk.begin(FactGroup::MemorySlots);
    let machines = [walk.a, walk.b];
    if !walk.both_have("slots", "memory slots", machines.map(|machine| machine.memory_slots.slots.len())) {
        return;
    }
    let [a, b] = machines.map(slots_by_name);
    let all =
        side_by_side(a.iter().map(|(name, slot)| (name, *slot)), b.iter().map(|(name, slot)| (name, *slot)));
    for (name, both) in all {
        let subject = || Subject::Named(name.clone());
        walk.existence("slot", "slot", subject(), both.map(|slot| slot.is_some()));
        let [Some(one), Some(other)] = both else { continue };
        let both = [one, other];
        match [&one.state, &other.state] {
            [SlotState::Installed(one), SlotState::Installed(other)] => module(walk, subject, [one, other]),
            states => walk.fact("module", "module", subject(), states.map(contents)),
        }
        walk.fact("socket", "socket", subject(), both.map(|slot| text(&slot.socket)));
        walk.fact("channel", "channel", subject(), both.map(|slot| text(&slot.channel)));
        walk.fact(
            "package",
            "package",
            subject(),
            both.map(|slot| number(slot.package.map(|id| id.number()))),
        );
        walk.fact("node", "node", subject(), both.map(|slot| number(slot.node.map(|id| id.number()))));
    }
}

/// Slots by bank and locator, which is how the board names them.
fn slots_by_name(machine: &Machine) -> BTreeMap<String, &MemorySlot> {
    let (mut slots, mut names) = (BTreeMap::new(), Names::default());
    for slot in &machine.memory_slots.slots {
        let words: Vec<&str> = slot.bank.iter().chain(&slot.locator).map(String::as_str).collect();
        let name = if words.is_empty() { "slot without a name".to_owned() } else { words.join(" ") };
        slots.insert(names.unique(name), slot);
    }
    slots
}

/// The contents of a slot in a word or two.
fn contents(state: &SlotState) -> Option<FactValue> {
    match state {
        SlotState::Unknown => None,
        SlotState::Empty => Some(FactValue::Absent),
        SlotState::Installed(module) => {
            let size = module.size.map(|size| size.to_string());
            let words: Vec<String> = size.into_iter().chain(module.memory_type.clone()).collect();
            Some(if words.is_empty() { FactValue::Present } else { FactValue::Text(words.join(" ")) })
        }
    }
}

fn module(walk: &mut Walk<'_>, subject: impl Fn() -> Subject, both: [&MemoryModule; 2]) {
    walk.fact("module_bytes", "module size", subject(), both.map(|module| module.size.map(FactValue::Size)));
    let texts: [(&'static str, &'static str, TextOf<MemoryModule>); 5] = [
        ("memory_type", "memory type", |module| &module.memory_type),
        ("form_factor", "form factor", |module| &module.form_factor),
        ("technology", "technology", |module| &module.technology),
        ("manufacturer", "manufacturer", |module| &module.manufacturer),
        ("part_number", "part number", |module| &module.part_number),
    ];
    for (word, label, of) in texts {
        walk.fact(word, label, subject(), both.map(|module| text(of(module))));
    }
    let numbers: [(&'static str, &'static str, &'static str, NumberOf<MemoryModule>); 5] = [
        ("MT/s", "max_speed_mt_per_s", "highest speed", |module| module.max_speed_mt_per_s),
        ("MT/s", "configured_speed_mt_per_s", "configured speed", |module| module.configured_speed_mt_per_s),
        ("", "ranks", "ranks", |module| module.ranks),
        ("bits", "data_width_bits", "data width", |module| module.data_width_bits),
        ("bits", "total_width_bits", "total width", |module| module.total_width_bits),
    ];
    for (unit, word, label, of) in numbers {
        walk.fact_in(unit, word, label, subject(), both.map(|module| number(of(module))));
    }
}

fn devices(walk: &mut Walk<'_>) {
    walk.begin(FactGroup::Devices);
    let machines = [walk.a, walk.b];
    if !walk.both_have("devices", "devices", machines.map(|machine| machine.devices.len())) {
        return;
    }
    let [a, b] = machines.map(devices_by_key);
    let all = side_by_side(
        a.iter().map(|(key, device)| (key, *device)),
        b.iter().map(|(key, device)| (key, *device)),
    );
    for (key, both) in all {
        let subject = || Subject::Named(called(key, both));
        walk.existence("device", "device", subject(), both.map(|device| device.is_some()));
        let [Some(one), Some(other)] = both else { continue };
        let both = [one, other];
        let identities = both.map(identity);
        let is_other = matches!(&identities, [Some(one), Some(other)] if one != other);
        walk.fact("identity", "vendor:device", subject(), identities);
        // Another device in the same place has everything else of its own.
        if !is_other {
            device(walk, subject, both);
        }
    }
}

/// Devices by PCI address, else by their first name.
fn devices_by_key(machine: &Machine) -> BTreeMap<String, &Device> {
    let (mut devices, mut names) = (BTreeMap::new(), Names::default());
    for device in &machine.devices {
        let name = device.names.first().map(|name| format!("{} {}", name.class.word(), name.name));
        let key = device.pci.map(|address| address.to_string()).or(name);
        let key = key.unwrap_or_else(|| "device without a name".to_owned());
        devices.insert(names.unique(key), device);
    }
    devices
}

/// Names of a device, as a text that lists them.
fn names(device: &Device) -> String {
    let names: Vec<String> =
        device.names.iter().map(|name| format!("{} {}", name.class.word(), name.name)).collect();
    names.join(", ")
}

/// The address with the device's names, where the sides do not disagree about them.
fn called(key: &str, both: [Option<&Device>; 2]) -> String {
    let names: Vec<String> = both.into_iter().flatten().map(names).collect();
    match &names[..] {
        [first, rest @ ..]
            if !first.is_empty() && first != key && rest.iter().all(|other| other == first) =>
        {
            format!("{key} ({first})")
        }
        _ => key.to_owned(),
    }
}

fn identity(device: &Device) -> Option<FactValue> {
    let (vendor, device) = device.vendor.zip(device.device)?;
    Some(FactValue::Text(format!("{vendor:04x}:{device:04x}")))
}

fn device(walk: &mut Walk<'_>, subject: impl Fn() -> Subject, both: [&Device; 2]) {
    let class = both.map(|device| device.class_code.map(|code| FactValue::Text(format!("0x{code:06x}"))));
    walk.fact("class_code", "PCI class", subject(), class);
    let named = both.map(|device| {
        Some(if device.names.is_empty() { FactValue::Absent } else { FactValue::Text(names(device)) })
    });
    walk.fact("names", "names", subject(), named);
    walk.fact("node", "node", subject(), both.map(|device| number(device.node.map(|id| id.number()))));
    let local = both
        .map(|device| (!device.local_cpus.is_empty()).then(|| FactValue::Cpus(device.local_cpus.clone())));
    walk.fact("local_cpus", "local CPUs", subject(), local);
    let links = both.map(|device| device.link.unwrap_or_default());
    walk.fact_in("lanes", "link_width", "link width", subject(), links.map(|link| number(link.width)));
    walk.fact_in(
        "lanes",
        "link_max_width",
        "highest link width",
        subject(),
        links.map(|link| number(link.max_width)),
    );
    walk.fact_in(
        "MT/s",
        "link_max_speed_mt_per_s",
        "highest link speed",
        subject(),
        links.map(|link| number(link.max_speed)),
    );
    if walk.extent == DiffExtent::Everything {
        // Devices lower it to save power.
        walk.fact_in(
            "MT/s",
            "link_speed_mt_per_s",
            "link speed",
            subject(),
            links.map(|link| number(link.speed)),
        );
    }
    let memory = both.map(|device| device.dax.and_then(|dax| dax.size).map(FactValue::Size));
    walk.fact("dax_bytes", "DAX memory", subject(), memory);
    walk.fact(
        "dax_node",
        "node of DAX memory",
        subject(),
        both.map(|device| number(device.dax.and_then(|dax| dax.node).map(|id| id.number()))),
    );
}
