//! A scenario that was played, step by step: the text of `nodewise simulate`.

use nodewise_machine::NodeId;
use nodewise_model::simulate::Owner;
use nodewise_model::{Counters, ZoneState};

use crate::digest::timeline::{Kind, Moment, Timeline, shares, state};
use crate::digest::walk::size;
use crate::style::{Ink, Style};
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table};

/// How much is told of the zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zones {
    /// How they are at the end.
    AtTheEnd,
    /// How they are after each step that changed them, with what the step added to the counters.
    AfterEachStep,
}

/// Writes a scenario: what each program does and takes, what went otherwise than it may look, and how the
/// nodes end.
pub fn timeline(timeline: &Timeline, zones: Zones, style: &Style) -> String {
    let mut page = Page::new(*style);
    page.heading(&timeline.title, &format!("{}, Linux {}", timeline.machine, timeline.release));
    if let Some(about) = &timeline.about {
        page.line(2, &Line::from("  ").with(Ink::Plain, about));
    }
    page.line(0, &Line::new());
    steps(timeline).write(&mut page);
    findings(timeline, &mut page);
    page.heading("Programs", "at their largest");
    programs(timeline).write(&mut page);
    others(timeline, &mut page);
    if zones == Zones::AfterEachStep {
        page.heading("Zones", "after each step that changed them");
        zones_by_step(timeline).write(&mut page);
        page.heading("Counters", "what each step added");
        counters_by_step(timeline).write(&mut page);
    }
    page.heading("Nodes", "at the end; what numastat counted");
    nodes(timeline).write(&mut page);
    page.heading("Zones", "at the end");
    zones_at_end(timeline).write(&mut page);
    if let Some(note) = timeline.basis.note() {
        page.line(0, &Line::new());
        page.line(2, &Line::new().with(Ink::Faint, note));
    }
    page.finish()
}

const fn column(head: &'static str, align: Align) -> Column {
    Column { head, align, keep: Keep::Always }
}

/// A column that gives way, the lowest number first.
const fn weak(head: &'static str, order: u8) -> Column {
    Column { head, align: Align::Right, keep: Keep::Unless(order) }
}

fn steps(timeline: &Timeline) -> Table {
    let mut table = Table::new(vec![
        column("at", Align::Right),
        column("program", Align::Left),
        column("does", Align::Left),
        column("what and where", Align::Left),
    ]);
    for moment in &timeline.moments {
        let program = if moment.program.is_empty() { Line::blank() } else { moment.program.as_str().into() };
        table.row(vec![format!("{} s", moment.at_s).into(), program, moment.does().into(), told(moment)]);
    }
    table
}

/// With what a step was, and what came of it.
fn told(moment: &Moment) -> Line {
    let (object, outcome) = (moment.object(), moment.outcome());
    let between = if object.is_empty() || outcome.is_empty() { "" } else { ": " };
    let is_notable =
        |kind: Kind| matches!(kind, Kind::Refused | Kind::Killed | Kind::Skipped | Kind::Missing);
    let ink = if moment.findings.iter().any(|finding| is_notable(finding.kind)) {
        Ink::Notable
    } else {
        Ink::Plain
    };
    if object.is_empty() && outcome.is_empty() {
        return Line::blank();
    }
    Line::new().with(Ink::Plain, format!("{object}{between}")).with(ink, outcome)
}

fn findings(timeline: &Timeline, page: &mut Page) {
    let mut findings = timeline.findings().peekable();
    if findings.peek().is_none() {
        return;
    }
    page.heading("What to know", "");
    for finding in findings {
        page.line(4, &Line::from("  ").with(Ink::Notable, &finding.sentence));
    }
}

fn programs(timeline: &Timeline) -> Table {
    let mut table = Table::new(vec![
        column("program", Align::Left),
        column("size", Align::Right),
        column("node=size", Align::Left),
    ]);
    for (name, nodes) in &timeline.largest {
        let all = nodes.values().sum();
        let told = shares(nodes.iter().map(|(node, pages)| (*node, *pages)));
        let told = if told.is_empty() { Line::blank() } else { told.into() };
        table.row(vec![name.as_str().into(), size(all).into(), told]);
    }
    table
}

/// The pool and files, where they have memory that no program has.
fn others(timeline: &Timeline, page: &mut Page) {
    let mut table = Table::new(vec![
        column("of", Align::Left),
        column("size", Align::Right),
        column("node=size", Align::Left),
    ]);
    let mut any = false;
    for (owner, placement) in &timeline.placements {
        let name = match owner {
            Owner::Program(_) => continue,
            Owner::File(name) => format!("file {name}"),
            Owner::Pool => "pool of huge pages".to_owned(),
        };
        if placement.pages() > 0 {
            any = true;
            let told = shares(placement.nodes.iter().map(|(node, pages)| (*node, *pages)));
            table.row(vec![name.into(), size(placement.pages()).into(), told.into()]);
        }
    }
    if any {
        page.heading("Nobody's", "at the end");
        table.write(page);
    }
}

fn nodes(timeline: &Timeline) -> Table {
    let mut table = Table::new(vec![
        column("node", Align::Right),
        column("size", Align::Right),
        column("free", Align::Right),
        weak("least free", 5),
        weak("hit", 4),
        column("miss", Align::Right),
        column("foreign", Align::Right),
        weak("interleave", 1),
        weak("local", 2),
        weak("other", 3),
        column("", Align::Left),
    ]);
    let after = &timeline.after;
    for node in timeline.nodes() {
        let counters = after.counters().get(&node).copied().unwrap_or_default();
        let least = timeline.least_free.get(&node).copied().unwrap_or_else(|| after.free_of(node));
        let mut row: Vec<Line> = vec![
            node.to_string().into(),
            size(after.managed_of(node)).into(),
            size(after.free_of(node)).into(),
            size(least).into(),
        ];
        row.extend(counted(&counters));
        row.push(Line::blank());
        table.row(row);
    }
    table
}

fn counted(counters: &Counters) -> [Line; 6] {
    let Counters { hit, miss, foreign, interleave_hit, local, other } = counters;
    [hit, miss, foreign, interleave_hit, local, other].map(|count| count.to_string().into())
}

fn zones_at_end(timeline: &Timeline) -> Table {
    let mut table = Table::new(vec![
        column("node", Align::Right),
        column("zone", Align::Left),
        column("free", Align::Right),
        weak("min", 2),
        weak("low", 3),
        weak("high", 1),
        column("it is", Align::Left),
    ]);
    for zone in timeline.after.zones() {
        table.row(vec![
            zone.node.to_string().into(),
            zone.kind.name().into(),
            size(zone.free).into(),
            size(zone.marks.min).into(),
            size(zone.marks.low).into(),
            size(zone.marks.high).into(),
            state(zone).into(),
        ]);
    }
    table
}

fn zones_by_step(timeline: &Timeline) -> Table {
    let mut table = Table::new(vec![
        column("at", Align::Right),
        column("node", Align::Right),
        column("zone", Align::Left),
        column("free", Align::Right),
        column("it is", Align::Left),
    ]);
    let row = |at_s: f64, zone: &ZoneState| -> Vec<Line> {
        vec![
            format!("{at_s} s").into(),
            zone.node.to_string().into(),
            zone.kind.name().into(),
            size(zone.free).into(),
            state(zone).into(),
        ]
    };
    for moment in &timeline.moments {
        for zone in &moment.zones {
            table.row(row(moment.at_s, zone));
        }
    }
    table
}

fn counters_by_step(timeline: &Timeline) -> Table {
    let mut table = Table::new(vec![
        column("at", Align::Right),
        column("node", Align::Right),
        weak("hit", 4),
        column("miss", Align::Right),
        column("foreign", Align::Right),
        weak("interleave", 1),
        weak("local", 2),
        weak("other", 3),
        column("", Align::Left),
    ]);
    for moment in &timeline.moments {
        let row = |(node, counters): (&NodeId, &Counters)| {
            let mut row: Vec<Line> = vec![format!("{} s", moment.at_s).into(), node.to_string().into()];
            row.extend(counted(counters));
            row.push(Line::blank());
            row
        };
        moment.counters.iter().map(row).for_each(|row| table.row(row));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::walk::Basis;
    use crate::json;
    use crate::svg::{Frame, timeline::timeline_page};
    use nodewise_machine::{NodeSet, spec};
    use nodewise_model::simulate::{Act, Backing, Mapping, Simulation};
    use nodewise_model::{BuiltAt, Memory, Release, Weights};

    fn start(policy: &str) -> Act {
        let policy = policy.parse().unwrap();
        Act::Start { cpu_node: NodeId::new(0), policy, allowed: (0..128).map(NodeId::new).collect() }
    }

    fn take(region: &str, pages: u64) -> Act {
        Act::Allocate(Mapping { region: region.to_owned(), pages, backing: Backing::Small, policy: None })
    }

    /// Steps a minute apart on a machine with some GiB of swap.
    fn play<'a>(spec: &str, swap_gib: u64, acts: impl IntoIterator<Item = (&'a str, Act)>) -> Timeline {
        let machine = spec::machine(spec).unwrap();
        let release = Release::REFERENCE;
        let before = Memory::of(&machine, BuiltAt::Boot, release);
        let simulation = Simulation::new(before.clone(), Weights::new(), 1024, release).on(&machine);
        let mut simulation = simulation.with_swap(swap_gib << 18);
        let about = Some("What is bound to it finds no room.".to_owned());
        let mut timeline = Timeline::new("A full node", spec, release, Basis::Assumed, before).about(about);
        for (minute, (program, act)) in acts.into_iter().enumerate() {
            let step = simulation.play(program, &act).unwrap();
            timeline.add(minute as f64 * 60.0, program, act, step, simulation.memory());
        }
        timeline.ended(simulation.memory().clone())
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
        snapbox::assert_data_eq!(text, snapbox::file!["../../tests/golden/timeline-80.txt"].raw());
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
                assert!(row.contains(&size(node["least_free_pages"].as_u64().unwrap())), "{row}");
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

    /// So many programs on eight nodes, each with some steps.
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
}
