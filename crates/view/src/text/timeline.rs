//! A scenario that was played, step by step: the text of `nodewise simulate`.

use nodewise_machine::NodeId;

use crate::digest::timeline::{Moment, Timeline};
use crate::digest::walk::size;
use crate::style::{Ink, Style};
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table};

/// Writes a scenario: what each program does and takes, what found no room, and how the nodes end.
pub fn timeline(timeline: &Timeline, style: &Style) -> String {
    let mut page = Page::new(*style);
    page.heading(&timeline.title, &format!("{}, Linux {}", timeline.machine, timeline.release));
    if let Some(about) = &timeline.about {
        page.line(2, &Line::from("  ").with(Ink::Plain, about));
    }
    page.line(0, &Line::new());
    steps(timeline).write(&mut page);
    let findings: Vec<String> = timeline.moments.iter().filter_map(Moment::finding).collect();
    if !findings.is_empty() {
        page.heading("No room", "");
        for finding in findings {
            page.line(4, &Line::from("  ").with(Ink::Notable, finding));
        }
    }
    page.heading("Programs", "at their largest");
    programs(timeline).write(&mut page);
    page.heading("Nodes", "at the end; what numastat counted");
    nodes(timeline).write(&mut page);
    if let Some(note) = timeline.basis.note() {
        page.line(0, &Line::new());
        page.line(2, &Line::new().with(Ink::Faint, note));
    }
    page.finish()
}

const fn column(head: &'static str, align: Align) -> Column {
    Column { head, align, keep: Keep::Always }
}

fn steps(timeline: &Timeline) -> Table {
    let mut table = Table::new(vec![
        column("at", Align::Right),
        column("program", Align::Left),
        column("does", Align::Left),
        column("what and where", Align::Left),
    ]);
    for moment in &timeline.moments {
        let taken = shares(moment.step.outcome.nodes());
        let told = [moment.object(), taken].into_iter().filter(|text| !text.is_empty());
        let told = told.collect::<Vec<_>>().join(": ");
        table.row(vec![
            format!("{} s", moment.at_s).into(),
            moment.program.as_str().into(),
            moment.does().into(),
            if told.is_empty() { Line::blank() } else { told.into() },
        ]);
    }
    table
}

/// `0=60GiB, 1=4GiB`: without the blanks at which a line would break.
fn shares(nodes: impl IntoIterator<Item = (NodeId, u64)>) -> String {
    let words: Vec<String> =
        nodes.into_iter().map(|(node, pages)| format!("{node}={}", size(pages).replace(' ', ""))).collect();
    words.join(", ")
}

fn programs(timeline: &Timeline) -> Table {
    let mut table = Table::new(vec![
        column("program", Align::Left),
        column("size", Align::Right),
        column("node=size", Align::Left),
    ]);
    for (name, nodes) in timeline.largest() {
        let all = nodes.values().sum();
        table.row(vec![name.into(), size(all).into(), shares(nodes).into()]);
    }
    table
}

fn nodes(timeline: &Timeline) -> Table {
    let mut table = Table::new(vec![
        column("node", Align::Right),
        column("size", Align::Right),
        column("free", Align::Right),
        column("least free", Align::Right),
        Column { head: "hit", align: Align::Right, keep: Keep::Unless(1) },
        column("miss", Align::Right),
        column("foreign", Align::Left),
    ]);
    let after = timeline.after();
    for node in timeline.nodes() {
        let counters = after.counters().get(&node).copied().unwrap_or_default();
        table.row(vec![
            node.to_string().into(),
            size(after.managed_of(node)).into(),
            size(after.free_of(node)).into(),
            size(timeline.least_free(node)).into(),
            counters.hit.to_string().into(),
            counters.miss.to_string().into(),
            counters.foreign.to_string().into(),
        ]);
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
    use nodewise_model::simulate::{Act, Simulation};
    use nodewise_model::{BuiltAt, Memory, Release, Weights};

    /// A database that fills its node, a tool that is bound there, and a move, each a minute after the last.
    fn played(spec: &str) -> Timeline {
        let machine = spec::machine(spec).unwrap();
        let before = Memory::of(&machine, BuiltAt::Boot, Release::REFERENCE);
        let mut simulation = Simulation::new(before.clone(), Weights::new(), 1024, Release::REFERENCE);
        let start = |policy: &str| Act::Start {
            cpu_node: NodeId::new(0),
            policy: policy.parse().unwrap(),
            allowed: machine.nodes_with_memory(),
        };
        let take = |region: &str, pages| Act::Allocate {
            region: region.to_owned(),
            pages,
            huge: false,
            policy: None,
        };
        let acts = [
            ("database", start("default")),
            ("database", take("pool", 10 << 18)),
            ("tool", start("bind:0")),
            ("tool", take("heap", 1 << 18)),
            ("database", Act::Migrate { old: NodeSet::from([0]), new: NodeSet::from([1]) }),
            ("tool", Act::End),
        ];
        let mut moments = Vec::new();
        for (minute, (program, act)) in acts.into_iter().enumerate() {
            let step = simulation.play(program, &act).unwrap();
            let programs = simulation.programs();
            let programs = programs.into_iter().map(|(name, nodes)| (name.to_owned(), nodes)).collect();
            let memory = simulation.memory().clone();
            moments.push(Moment {
                at_s: minute as f64 * 60.0,
                program: program.to_owned(),
                act,
                step,
                programs,
                memory,
            });
        }
        let (title, machine) = ("A full node".to_owned(), spec.to_owned());
        let about = Some("What is bound to it finds no room.".to_owned());
        let (release, basis) = (Release::REFERENCE, Basis::Assumed);
        Timeline { title, about, machine, release, basis, before, moments }
    }

    const TWO: &str = "2x(8c 8G); dist=21";

    #[test]
    fn steps_findings_programs_and_nodes_are_told() {
        let text = timeline(&played(TWO), &Style::plain(80));
        assert_eq!(text, include_str!("../../tests/golden/timeline-80.txt"));
    }

    #[test]
    fn text_and_json_tell_the_same() {
        let played = played(TWO);
        let text = timeline(&played, &Style::plain(200));
        let json: serde_json::Value = serde_json::from_str(&json::timeline::timeline(&played)).unwrap();
        assert_eq!(json["schema"], "nodewise.simulation/1");
        let steps = json["steps"].as_array().unwrap();
        assert_eq!(steps.len(), played.moments.len());
        for step in steps {
            let row = format!(
                "{} s  {:<8}  {}",
                step["at_s"],
                step["program"].as_str().unwrap(),
                step["does"].as_str().unwrap()
            );
            assert!(text.contains(&row.replace(".0 s", " s")), "{row}");
            if let Some(pages) = step["missing_pages"].as_u64() {
                assert!(text.contains(&format!("{} of tool find no room", size(pages))), "{text}");
            }
        }
        let nodes = text.lines().skip_while(|line| !line.starts_with("Nodes")).skip(2);
        for (node, row) in json["nodes"].as_array().unwrap().iter().zip(nodes) {
            for field in ["numa_hit", "numa_miss", "numa_foreign"] {
                let figure = node[field].to_string();
                assert!(row.split_whitespace().any(|word| word == figure), "{field}: {row}");
            }
            assert!(row.contains(&size(node["least_free_pages"].as_u64().unwrap())), "{row}");
        }
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
            outside(&timeline_page(&played(spec)), &mut wrong);
            assert_eq!(wrong, [""; 0], "{spec}");
        }
    }

    #[test]
    fn the_picture_is_xml_and_names_the_programs() {
        let svg = crate::svg::timeline_svg(&played(TWO), crate::svg::Theme::Light);
        let document = roxmltree::Document::parse(&svg).unwrap();
        let texts: Vec<&str> = document.descendants().filter_map(|node| node.text()).collect();
        assert!(texts.contains(&"database") && texts.contains(&"tool"), "{texts:?}");
    }
}
