//! Reports of scenarios: as text, as JSON, and in a picture.

use super::*;
use crate::digest::walk::Basis;
use crate::digest::walk::size_of;
use crate::json;
use crate::svg::{Frame, timeline::timeline_page};
use nodewise_machine::{NodeId, NodeSet, spec};
use nodewise_model::simulate::{Act, Backing, Mapping, Simulation};
use nodewise_model::{BuiltAt, Memory, Release, Weights};

fn start(policy: &str) -> Act {
    let policy = policy.parse().unwrap();
    Act::Start { cpu_node: NodeId::new(0), policy, allowed: (0..128).map(NodeId::new).collect() }
}

fn take(region: &str, pages: u64) -> Act {
    Act::Allocate(Mapping {
        region: region.to_owned(),
        pages,
        backing: Backing::Small,
        policy: None,
        first_page: None,
    })
}

/// Steps a minute apart on a machine with some GiB of swap.
fn play<'a>(spec: &str, swap_gib: u64, acts: impl IntoIterator<Item = (&'a str, Act)>) -> Timeline {
    let machine = spec::machine(spec).unwrap();
    let release = Release::REFERENCE;
    let before = Memory::from_machine(&machine, BuiltAt::Boot, release);
    let simulation = Simulation::new(before.clone(), Weights::new(), 1024, release).on(&machine);
    let mut simulation = simulation.with_swap(swap_gib << 18);
    let about = Some("What is bound to it finds no room.".to_owned());
    let mut timeline = Timeline::new("A full node", spec, release, Basis::Assumed, before).about(about);
    for (minute, (program, act)) in acts.into_iter().enumerate() {
        let step = simulation.play(program, &act).unwrap();
        timeline.add(minute as f64 * 60.0, program, act, step, simulation.memory());
    }
    timeline.ended(&simulation)
}

/// A database that fills its node, a tool that is bound there, a call without sense, a move, and a kill.
fn played(spec: &str, swap_gib: u64) -> Timeline {
    let acts = [
        ("database", start("default")),
        ("database", take("pool", 10 << 18)),
        ("tool", start("bind:0")),
        ("tool", take("heap", 1 << 18)),
        ("tool", Act::SetPolicy("interleave=balancing:0".parse().unwrap())),
        ("database", Act::Migrate { old: NodeSet::from([0]), new: NodeSet::from([1]) }),
        ("tool", take("more", 12 << 18)),
        ("tool", Act::End),
    ];
    play(spec, swap_gib, acts)
}

const TWO: &str = "2x(8c 8G); dist=21";

fn document(timeline: &Timeline) -> serde_json::Value {
    serde_json::from_str(&json::timeline::timeline(timeline).collect::<String>()).unwrap()
}

#[test]
fn steps_findings_programs_nodes_and_zones_are_told() {
    let text = timeline(&played(TWO, 2), Zones::AfterEachStep, &Style::plain(80));
    snapbox::assert_data_eq!(text, snapbox::file!["../../../tests/golden/timeline-80.txt"].raw());
}

#[test]
fn text_and_json_tell_the_same() {
    for swap in [0, 2] {
        let played = played(TWO, swap);
        let text = timeline(&played, Zones::AtTheEnd, &Style::plain(400));
        let json = document(&played);
        assert_eq!(json["schema"], "nodewise.simulation/2");
        let steps = json["steps"].as_array().unwrap();
        assert_eq!(steps.len(), played.moments.len());
        for step in steps {
            let (program, does) = (step["program"].as_str().unwrap(), step["does"].as_str().unwrap());
            let row = format!("{} s  {program:<8}  {does}", step["at_s"]);
            assert!(text.contains(&row.replace(".0 s", " s")), "{row}");
            for finding in step["findings"].as_array().into_iter().flatten() {
                assert!(text.contains(finding.as_str().unwrap()), "{finding}");
            }
        }
        assert_eq!(steps[4]["refused"]["errno"], "EINVAL");
        // The database first, which is not bound, and then the tool itself.
        let killed = steps.iter().filter_map(|step| step["killed"].as_array()).flatten();
        let killed: Vec<&str> = killed.map(|one| one["program"].as_str().unwrap()).collect();
        assert_eq!(killed, ["database", "tool"], "{swap} GiB of swap");
        assert_eq!(steps[7]["skipped"], "killed");
        let nodes = text.lines().skip_while(|line| !line.starts_with("Nodes")).skip(2);
        for (node, row) in json["after"]["nodes"].as_array().unwrap().iter().zip(nodes) {
            for field in
                ["numa_hit", "numa_miss", "numa_foreign", "interleave_hit", "local_node", "other_node"]
            {
                let figure = node[field].to_string();
                assert!(row.split_whitespace().any(|word| word == figure), "{field}: {row}");
            }
            assert!(row.contains(&size_of(node["least_free_pages"].as_u64().unwrap(), 4096)), "{row}");
        }
    }
}

#[test]
fn the_changes_come_to_what_is_there_at_the_end() {
    let json = document(&played(TWO, 2));
    let steps = json["steps"].as_array().unwrap();
    let key = |zone: &serde_json::Value| (zone["node"].to_string(), zone["zone"].to_string());
    for zone in json["after"]["zones"].as_array().unwrap() {
        let mut changes = steps.iter().filter_map(|step| step["zones"].as_array()).flatten();
        let last = changes.rfind(|change| key(change) == key(zone));
        let before = json["zones"].as_array().unwrap().iter().find(|before| key(before) == key(zone));
        let free = last.or(before).unwrap()["free_pages"].clone();
        assert_eq!(free, zone["free_pages"]);
    }
    for node in json["after"]["nodes"].as_array().unwrap() {
        let gains = steps.iter().filter_map(|step| step["counters"].as_array()).flatten();
        let own = gains.filter(|gain| gain["node"] == node["node"]);
        let hits: u64 = own.map(|gain| gain["numa_hit"].as_u64().unwrap()).sum();
        assert_eq!(hits, node["numa_hit"].as_u64().unwrap());
    }
}

#[test]
fn a_file_that_is_on_the_disk_alone_is_told_of_at_the_end() {
    let file = |touched: bool| {
        let backing = Backing::File("shm".to_owned());
        let mapping =
            Mapping { region: "cache".to_owned(), pages: 2 << 18, backing, policy: None, first_page: None };
        if touched { Act::Allocate(mapping) } else { Act::Map(mapping) }
    };
    let acts = [
        ("reader", start("default")),
        ("reader", file(false)),
        ("writer", start("default")),
        ("writer", file(true)),
        ("writer", Act::End),
        ("tool", start("bind:0")),
        ("tool", take("heap", 17 << 17)),
    ];
    let played = play(TWO, 4, acts);
    let json = document(&played);
    let after = &json["after"]["files"][0];
    assert_eq!((after["name"].as_str(), after["swapped_pages"].as_u64()), (Some("shm"), Some(2 << 18)));
    let text = timeline(&played, Zones::AtTheEnd, &Style::plain(80));
    assert!(text.contains("file shm  2 GiB  swap=2GiB"), "{text}");
}

/// This many programs on eight nodes, each with some steps.
fn crowd(programs: usize, steps: usize) -> Timeline {
    let names: Vec<String> = (0..programs).map(|number| format!("p{number}")).collect();
    let starts = names.iter().map(|name| (name.as_str(), start("interleave:0-7")));
    let takes = (0..steps).map(|step| (names[step % programs].as_str(), take(&format!("r{step}"), 1000)));
    play("8x(4c 64G)", 0, starts.chain(takes))
}

#[test]
fn the_size_of_json_grows_with_steps_and_that_of_a_picture_not_beyond_its_pixels() {
    let pieces =
        |timeline: &Timeline| json::timeline::timeline(timeline).map(|piece| piece.len()).sum::<usize>();
    let few = pieces(&crowd(20, 200));
    let many = pieces(&crowd(200, 2000));
    // Ten times the steps, and ten times the programs.
    assert!(many < 13 * few, "{few} and {many} bytes");
    let drawn = crate::svg::timeline_svg(&crowd(300, 2000), crate::svg::Theme::Light);
    assert!(drawn.matches("<rect").count() < 25_000 && drawn.len() < 3_000_000, "{} bytes", drawn.len());
}

/// Every frame and label that is not inside what holds it.
fn outside(frame: &Frame, wrong: &mut Vec<String>) {
    for child in &frame.children {
        if !frame.area.holds(&child.area) {
            wrong.push(format!("{:?} in {:?}", child.area, frame.area));
        }
        outside(child, wrong);
    }
    for label in &frame.labels {
        if !frame.area.holds(&label.area()) {
            wrong.push(format!("{} in {:?}", label.text, frame.area));
        }
    }
}

#[test]
fn the_picture_keeps_everything_inside() {
    for spec in [TWO, "(4c 8G) 7x(8G)", "128x(1c 8G)"] {
        let mut wrong = Vec::new();
        outside(&timeline_page(&played(spec, 1)), &mut wrong);
        assert_eq!(wrong, [""; 0], "{spec}");
    }
}

#[test]
fn the_picture_is_xml_and_names_the_programs_and_what_happened() {
    let svg = crate::svg::timeline_svg(&played(TWO, 0), crate::svg::Theme::Light);
    let document = roxmltree::Document::parse(&svg).unwrap();
    let texts: Vec<&str> = document.descendants().filter_map(|node| node.text()).collect();
    for word in ["database", "tool", "refused", "killed"] {
        assert!(texts.contains(&word), "{word}: {texts:?}");
    }
}

#[test]
fn bands_are_to_scale_every_node_is_named_and_free_memory_is_in_the_legend() {
    fn band(frame: &Frame, id: &str) -> Option<f64> {
        if frame.id.as_deref() == Some(id) {
            return Some(frame.area.height);
        }
        frame.children.iter().find_map(|child| band(child, id))
    }
    let timeline = played("(4c 64G) (4c 16G)", 1);
    let page = timeline_page(&timeline);
    let heights = [0, 1].map(|node| band(&page, &format!("node-{node}")).unwrap());
    let managed = [0, 1].map(|node| timeline.before.managed_of(NodeId::new(node)) as f64);
    let (drawn, expected) = (heights[1] / heights[0], managed[1] / managed[0]);
    assert!((drawn - expected).abs() < 0.01, "{drawn}, expected {expected}");
    let svg = crate::svg::timeline_svg(&played("64x(1c 8G)", 1), crate::svg::Theme::Auto);
    for text in [">free<", ">heights to scale<", ">time<", ">node 0, ", ">node 63, "] {
        assert!(svg.contains(text), "{text}");
    }
}
