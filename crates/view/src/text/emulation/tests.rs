use super::*;
use crate::digest::emulation::{ChangedFile, Request, Support, advice};
use crate::json;
use nodewise_machine::{Bytes, NodeId, spec};
use nodewise_model::fake::outcome::{Emulation, EmulationVariant, emulate, remark as remark_of};
use nodewise_model::ram::Range;
use serde_json::Value;

fn pi() -> Status {
    let request = |place: &str, when, fake: Option<&str>| Request {
        place: place.to_owned(),
        when,
        fake: fake.map(str::to_owned),
        policy: Some("interleave".to_owned()),
    };
    let effect = Effect {
        nodes: 8,
        is_emulated: Some(true),
        hardware_nodes: Some(1),
        policy: Some("interleave:0-7".to_owned()),
    };
    Status {
        image: None,
        kernel: Some("6.12.25+rpt-rpi-2712".to_owned()),
        support: Support { is_there: Some(true), by: "CONFIG_NUMA_EMU is set".to_owned() },
        requests: vec![
            request("the device tree", When::Running, None),
            request("the boot loader", When::Running, Some("8")),
            request("/boot/firmware/cmdline.txt", When::Next, Some("4")),
        ],
        boot_files: None,
        advice: advice(&effect, true),
        effect: Some(effect),
        ignored: Some(Vec::new()),
        no_log: None,
        board: Some(Board {
            model: "Raspberry Pi 5 Model B Rev 1.0".to_owned(),
            banklow: Some(Ok(BankLow {
                value: 1,
                is_set: false,
                layout: "{bank[3:1], row, bank[0], column}",
                nodes: 8,
            })),
            boot_loader: Some("2025-11-05".to_owned()),
            card_queue_asked: Some(true),
            card_queue_used: Some(true),
            sleep: Some((vec!["s2idle".to_owned()], "s2idle".to_owned())),
        }),
        vain: vec![("/etc/sysctl.d/90-numa.conf".to_owned(), 3)],
    }
}

#[test]
fn the_state_of_a_board_is_told() {
    assert_eq!(
        status(&pi(), &Style::plain(80)),
        "\
Emulation  6.12.25+rpt-rpi-2712
  kernel        supported: CONFIG_NUMA_EMU is set
  asked for     numa_policy=interleave (the device tree); numa=fake=8
                numa_policy=interleave (the boot loader)
  at next start numa=fake=4 numa_policy=interleave (/boot/firmware/cmdline.txt)
  in force      8 nodes, emulated on 1 node
  new processes interleave:0-7
  ignored       nothing

Board  Raspberry Pi 5 Model B Rev 1.0
  SDRAM_BANKLOW 1 (the boot loader's own value): {bank[3:1], row, bank[0],
                column}, made for 8 nodes
  boot loader   of 2025-11-05
  card queue    used
  sleep         s2idle (of s2idle)
  no effect     /etc/sysctl.d/90-numa.conf:3 sets numa_policy, which only the
                kernel's command line can

Advice
  Interleave: these nodes are slices of one memory, as near to every CPU, and
  pages spread over all of them keep more of its banks busy at once. New
  processes do so already.
  mpirun binds each rank to a node or a core by default, and its memory with it:
  that cancels interleaving. Use mpirun --bind-to none.
"
    );
}

#[test]
fn the_json_of_a_state_says_the_same() {
    let json: Value = serde_json::from_str(&json::emulation::status(&pi())).unwrap();
    let text = status(&pi(), &Style::plain(200));
    assert_eq!(json["schema"], "nodewise.emulation-status/1");
    assert_eq!((json["node_count"].as_u64(), json["is_emulated"].as_bool()), (Some(8), Some(true)));
    for request in json["requests"].as_array().unwrap() {
        let words = request["fake"].as_str().map(|fake| format!("numa=fake={fake} ")).unwrap_or_default();
        let expected = format!("{words}numa_policy=interleave ({})", request["place"].as_str().unwrap());
        assert!(text.contains(&expected), "{expected}");
    }
    assert!(text.contains(json["board"]["bank_layout"].as_str().unwrap()));
    assert_eq!(json["without_effect"][0]["line"], 3);
}

/// Two nodes of 768 MiB, as in a guest.
fn made(word: &str) -> (Option<Emulation>, Option<String>) {
    let machine = spec::machine("2x(1c 768M); arch=x86_64; kernel=6.12.107").unwrap();
    let range = |start, end, node| Range { start, end, node: NodeId::new(node) };
    let ram = [range(0x1000, 0x5ffd_f000, 0)];
    let blocks = [range(0x1000, 0x3000_0000, 0), range(0x3000_0000, 0x5ffd_f000, 1)];
    let fake = word.parse().unwrap();
    let made = emulate(&fake, EmulationVariant::Mainline, &machine, &ram, &blocks);
    let remark = remark_of(&fake, EmulationVariant::Mainline, made.as_ref());
    (made, remark)
}

fn with_plan<T>(word: &str, run: impl FnOnce(&Planned<'_>) -> T) -> T {
    let (made, remark) = made(word);
    let word = format!("numa=fake={word}");
    let basis = Basis::Kernel;
    run(&Planned { word: &word, kernel: "6.12.107", basis, made: made.as_ref(), remark: remark.as_deref() })
}

#[test]
fn a_plan_names_every_range() {
    let text = with_plan("4", |planned| plan(planned, &Style::plain(80)));
    assert_eq!(
        text,
        "\
numa=fake=4  6.12.107, memory as in this kernel's log
  node  of        RAM  range                  CPUs  falls back on
     0   0    384 MiB  0x1000-0x18000fff      0     0 2 1 3
     1   1    384 MiB  0x30000000-0x47ffffff  1     1 3 2 0
     2   0    384 MiB  0x18001000-0x2fffffff  0     2 0 3 1
     3   1  383.9 MiB  0x48000000-0x5ffdefff  1     3 1 0 2

Distances
     0  10 20 10 20
     1  20 10 20 10
     2  10 20 10 20
     3  20 10 20 10
"
    );
}

#[test]
fn the_json_of_a_plan_says_the_same() {
    with_plan("4", |planned| {
        let json: Value = serde_json::from_str(&json::emulation::plan(planned)).unwrap();
        let text = plan(planned, &Style::plain(120));
        for node in json["nodes"].as_array().unwrap() {
            let range = &node["ranges"][0];
            let bound = |name: &str| range[name].as_u64().unwrap();
            assert!(text.contains(&format!("{:#x}-{:#x}", bound("first_byte"), bound("last_byte"))));
        }
        assert_eq!(json["distances"][0], serde_json::json!([10, 20, 10, 20]));
    });
}

#[test]
fn a_plan_that_fails_says_why() {
    let text = with_plan("100", |planned| plan(planned, &Style::plain(80)));
    assert!(text.contains("not enough memory for this number of nodes"), "{text}");
    let json: Value =
        with_plan("100", |planned| serde_json::from_str(&json::emulation::plan(planned)).unwrap());
    assert_eq!(json["nodes"], serde_json::json!([]));
    assert!(json["not_as_asked"].is_string());
}

#[test]
fn a_verification_fails_with_its_reason() {
    let verified = Verified {
        checks: vec![
            Check { what: "the kernel was asked", holds: Some(true), reason: "numa=fake=4".to_owned() },
            Check {
                what: "the nodes are there",
                holds: Some(false),
                reason: "1 node, 4 expected".to_owned(),
            },
            Check { what: "ranges", holds: None, reason: "no log".to_owned() },
        ],
        brought: Some(Brought {
            nodes: (Some(1), 1),
            memory: Some((Bytes::from_mib(2048), Bytes::from_gib(1))),
            kernel: None,
            policy: Some(("default".to_owned(), "interleave:0-3".to_owned())),
            figures: Figures::Command("nodewise compare --suite board --against before.json".to_owned()),
        }),
        advice: Vec::new(),
    };
    assert_eq!(
        verify(&verified, &Style::plain(80)),
        "\
Verification  fail
  pass  the kernel was asked: numa=fake=4
  FAIL  the nodes are there: 1 node, 4 expected
  ?     ranges: no log

Brought
  nodes         1 before, 1 now
  memory        2 GiB before, 1 GiB now
  new processes default before, interleave:0-3 now
  figures       nodewise compare --suite board --against before.json
"
    );
    let json: Value = serde_json::from_str(&json::emulation::verify(&verified)).unwrap();
    assert_eq!((&json["holds"], &json["checks"][2].get("holds")), (&Value::Bool(false), &None));
}

#[test]
fn a_change_is_shown_as_a_difference() {
    let file = ChangedFile {
        path: "/boot/cmdline.txt".to_owned(),
        diff: "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\u{1b}\tb\n+c\n".to_owned(),
        backup: None,
    };
    let change = Changed {
        is_dry: true,
        files: vec![file],
        right: vec!["/etc/kernel/cmdline".to_owned()],
        remarks: Vec::new(),
        next: vec!["reboot".to_owned()],
    };
    assert_eq!(
        changed(&change, &Style::plain(80)),
        "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\\x1b\tb\n+c\n\n  would change  /boot/cmdline.txt\n  right already /etc/kernel/cmdline\n"
    );
    let json: Value =
        serde_json::from_str(&json::emulation::changed(json::emulation::CHANGE_SCHEMA, &change)).unwrap();
    assert_eq!(json["files"][0]["diff"], change.files[0].diff);
}
