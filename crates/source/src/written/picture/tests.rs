use super::*;
use crate::tree::Memory;
use nodewise_machine::spec;

fn content<'a>(picture: &'a Picture, path: &str) -> Option<&'a Content> {
    picture.entries.iter().find(|entry| entry.path == path).map(|entry| &entry.content)
}

fn link(target: &str) -> Content {
    Content::Link(target.to_owned())
}

fn nothing() -> Tree {
    Tree::memory(Memory::new())
}

#[test]
fn cpus_and_nodes_are_linked_both_ways() {
    let machine = spec::machine("2x(2c 1G)").unwrap();
    let picture = picture(&machine, None, &nothing());
    assert_eq!(content(&picture, "/sys/devices/system/node/node1/cpu2"), Some(&link("../../cpu/cpu2")));
    assert_eq!(content(&picture, "/sys/devices/system/cpu/cpu2/node1"), Some(&link("../../node/node1")));
    let device = link("../../../devices/system/node/node1");
    assert_eq!(content(&picture, "/sys/bus/node/devices/node1"), Some(&device));
    assert_eq!(content(&picture, "/sys/devices/system/node/node0/cpu2"), None);
}

#[test]
fn an_initiator_is_a_link() {
    let path = "/sys/devices/system/node/node1/access0/initiators/node0/cpulist";
    assert_eq!(initiator(path), Some(("/sys/devices/system/node/node1/access0/initiators", "node0")));
    assert_eq!(initiator("/sys/devices/system/node/node1/cpulist"), None);
}

#[test]
fn models_have_the_numbers_of_the_machine_and_the_instructions_of_this_one() {
    let here = "processor\t: 0\nvendor_id\t: V\nmodel name\t: Here\nphysical id\t: 7\nflags\t\t: fpu avx\n\nprocessor\t: 1\n";
    let here = Tree::memory(Memory::new().file(CPUINFO, here));
    let machine = spec::machine("2x(2c2t 1G)").unwrap();
    let picture = picture(&machine, None, &here);
    let Some(Content::Text(text)) = content(&picture, CPUINFO) else { panic!("no models") };
    let text = String::from_utf8(text.clone()).unwrap();
    assert_eq!(text.matches("processor\t").count(), 8, "{text}");
    assert_eq!(text.matches("flags\t\t: fpu avx\n").count(), 8, "{text}");
    assert_eq!(text.matches("siblings\t: 4\n").count(), 8, "{text}");
    assert_eq!(text.matches("cpu cores\t: 2\n").count(), 8, "{text}");
    assert!(!text.contains("Here") && !text.contains("physical id\t: 7\n"), "{text}");
}

#[test]
fn a_capture_is_copied_as_it_is() {
    let own = Memory::new()
        .file("/sys/devices/system/node/node3/distance", "10\n")
        .file("/sys/devices/system/node/node3/unknown", "kept\n")
        .file("/sys/devices/system/clocksource/name", "left out\n");
    let machine = spec::machine("(1c 1G)").unwrap();
    let picture = picture(&machine, Some(&Tree::memory(own)), &nothing());
    let kept = Content::Text(b"kept\n".to_vec());
    assert_eq!(content(&picture, "/sys/devices/system/node/node3/unknown"), Some(&kept));
    assert_eq!(content(&picture, "/sys/devices/system/clocksource/name"), None);
    assert_eq!(content(&picture, "/sys/devices/system/node/node0/cpulist"), None, "no file is made up");
    let list = Content::Text(b"0\n".to_vec());
    assert_eq!(content(&picture, "/sys/devices/system/cpu/possible"), Some(&list), "every kernel has it");
}

#[test]
fn memory_is_free_at_the_start() {
    let machine = spec::machine("2x(2c 1G)").unwrap();
    let picture = picture(&machine, None, &nothing());
    let Some(Content::Text(text)) = content(&picture, MEMINFO) else { panic!("no meminfo") };
    let text = String::from_utf8_lossy(text);
    assert!(text.contains("MemTotal: 2097152 kB\nMemFree: 2097152 kB\n"), "{text}");
}

#[test]
fn pools_of_huge_pages_are_real() {
    let here = "MemFree: 5 kB\nHugePages_Total:       3\nHugepagesize:       2048 kB\n";
    let here = Tree::memory(Memory::new().file(MEMINFO, here));
    let picture = picture(&spec::machine("(1c 1G)").unwrap(), None, &here);
    let Some(Content::Text(text)) = content(&picture, MEMINFO) else { panic!("no meminfo") };
    let text = String::from_utf8_lossy(text);
    assert!(text.ends_with("HugePages_Total:       3\nHugepagesize:       2048 kB\n"), "{text}");
    assert!(!text.contains("MemFree: 5 kB"), "{text}");
}

#[test]
fn a_link_in_place_of_a_folder_is_no_way_out() {
    let own = Memory::new()
        .link_to("/sys/devices/system/cpu", "/etc")
        .file("/sys/devices/system/node/node0/cpulist", "0\n");
    let machine = spec::machine("(1c 1G)").unwrap();
    let picture = picture(&machine, Some(&Tree::memory(own)), &nothing());
    assert_eq!(content(&picture, "/sys/devices/system/cpu"), None);
    let links = picture.entries.iter().filter(|entry| matches!(entry.content, Content::Link(_)));
    for link in links {
        let below = format!("{}/", link.path);
        assert!(!picture.entries.iter().any(|entry| entry.path.starts_with(&below)), "{}", link.path);
    }
}

#[test]
fn masks_are_as_wide_as_the_kernel_prints_them() {
    for (text, expected) in [
        ("0000,00000000,00000003\n", Some(80)),
        ("00000000,0000000f\n", Some(64)),
        ("ff\n\0\0", Some(8)),
        ("", None),
        ("00000000,,1\n", None),
        ("0x1\n", None),
    ] {
        let own = Memory::new().file("/sys/devices/system/node/node0/cpumap", text);
        let machine = spec::machine("(1c 1G)").unwrap();
        assert_eq!(
            picture(&machine, Some(&Tree::memory(own)), &nothing()).cpu_mask_bits(),
            expected,
            "{text:?}"
        );
    }
}
