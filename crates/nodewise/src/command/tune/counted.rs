//! `nodewise tune --machine M`: placements on a machine that is not here, by the cache lines that the program moves under
//! each in a guest of it.

use std::collections::BTreeMap;
use std::ffi::OsString;

use nodewise_experiment::candidates::Candidates;
use nodewise_lab::layout::GuestNode;
use nodewise_lab::{Guest, GuestError, Lab, Layout, Limits};
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::placement::{Placement, Scope};
use nodewise_machine::printable::printable;
use nodewise_machine::{Bytes, Machine, NodeId};
use nodewise_model::cost::Costs;
use nodewise_model::ranking::Assumed;
use nodewise_source::Detail;
use nodewise_view::digest::ranking::{CountedPlacement, KnownCosts, Ranking, Uncounted};
use nodewise_view::json::ranking::CountedIn;
use nodewise_view::{json, text};

use super::placements;
use crate::cli::Global;
use crate::cli::tune::Tune;
use crate::command::lab::count::Count;
use crate::command::lab::{planned, watch};
use crate::failure::{Failure, NOT_STARTED, Outcome};
use crate::input::{self, Input};
use crate::measuring;
use crate::measuring::line::ProgressLine;
use crate::output;

/// Exit code of a program that fails under no placement.
const FAILS: u8 = 3;

/// Counts of placements, with those that have none, and their guest.
type Counts = (Vec<CountedPlacement>, Vec<Uncounted>, CountedIn);

/// Counts the program under each placement in a guest of the machine, and ranks them.
pub fn run(args: &Tune, global: &Global) -> Outcome {
    refuse_timing(args)?;
    if args.command.is_empty() {
        return Err(Failure::usage(
            "--machine needs a program, whose cache lines are counted in a guest of the machine: nodewise tune \
             --machine M -- PROGRAM",
        ));
    }
    let machine = input::load(&global.machine, Detail::Full)?.machine;
    let layout = planned(&machine, args.cpus, args.memory);
    let layout = layout.map_err(|error| Failure::cannot(error.to_string()))?;
    let costs = costs(args, &machine)?;
    let (placements, mut uncounted) = wanted(args, &layout)?;
    let parts = Lab::find(&args.kernel.clone().unwrap_or_default());
    let parts = parts.map_err(|error| Failure::new(NOT_STARTED, error.to_string()))?;
    let mut guest = parts.guest(layout);
    guest.timeout = timeout(args)?;
    let count = Count::new(&machine, &mut guest).map_err(|why| Failure::new(NOT_STARTED, why))?;
    let mut counted = Vec::new();
    let all = placements.len();
    for (at, Wanted { name, options }) in placements.into_iter().enumerate() {
        if !args.json {
            output::say(&format!("placement {} of {all}: {name}", at + 1));
        }
        match once(&count, &guest, &options, &args.command)? {
            Ok(counts) => counted.push(CountedPlacement { name, options, counts }),
            Err(why) if options.is_empty() => {
                return Err(Failure::new(
                    FAILS,
                    format!("the program fails without any placement, too: {why}"),
                ));
            }
            Err(why) => uncounted.push(Uncounted { name, why }),
        }
    }
    choose_phase(args, &mut counted, &mut uncounted)?;
    let guest_cpus = |node: &GuestNode| Some((node.id, u32::try_from(node.cpus.len()).ok()?));
    let with_cpus = guest.layout.nodes.iter().filter(|node| !node.cpus.is_empty());
    let guest_cpus = with_cpus.filter_map(guest_cpus).collect();
    judge((counted, uncounted, CountedIn { guest_cpus }), costs, &guest.layout, &machine, args, global)
}

/// Judges counts of before for the machine, which may be another one with the same nodes.
pub fn judge_saved(mut counts: Counts, args: &Tune, global: &Global) -> Outcome {
    refuse_for_saved(args)?;
    let machine = input::load(&global.machine, Detail::Full)?.machine;
    let layout =
        Layout::new(&machine, &Limits::default()).map_err(|error| Failure::cannot(error.to_string()))?;
    let nodes = |keep: fn(&GuestNode) -> bool| -> Vec<NodeId> {
        layout.nodes.iter().filter(|node| keep(node)).map(|node| node.id).collect()
    };
    let memory = nodes(|node| node.memory.is_some());
    let has_other = counts.2.guest_cpus.keys().copied().collect::<Vec<_>>()
        != nodes(|node| !node.cpus.is_empty())
        || counts.0.iter().any(|placement| placement.counts.memory_nodes != memory);
    if has_other {
        return Err(Failure::usage(
            "--from: the counts are of a machine with other nodes: count the program on this one",
        ));
    }
    choose_phase(args, &mut counts.0, &mut counts.1)?;
    let costs = costs(args, &machine)?;
    judge(counts, costs, &layout, &machine, args, global)
}

/// Leaves the chosen phase alone; placements under which it moved no line are not counted. Without one everything stays.
fn choose_phase(
    args: &Tune,
    counted: &mut Vec<CountedPlacement>,
    uncounted: &mut Vec<Uncounted>,
) -> Result<(), Failure> {
    let Some(name) = &args.phase else { return Ok(()) };
    let mut unknown = None;
    for mut placement in std::mem::take(counted) {
        match placement.counts.only_phase(name) {
            Ok(counts) if counts.all().all > 0 => {
                placement.counts = counts;
                counted.push(placement);
            }
            Ok(_) => uncounted.push(Uncounted {
                name: placement.name,
                why: format!("the phase {} moved no lines", printable(name)),
            }),
            Err(error) => {
                uncounted.push(Uncounted { name: placement.name, why: error.to_string() });
                unknown = Some(error);
            }
        }
    }
    match unknown {
        Some(unknown) if counted.is_empty() => Err(Failure::new(NOT_STARTED, format!("--phase: {unknown}"))),
        _ => Ok(()),
    }
}

fn judge(
    (counted, uncounted, guest): Counts,
    (costs, mut assumed): (Costs, Assumed),
    layout: &Layout,
    machine: &Machine,
    args: &Tune,
    global: &Global,
) -> Outcome {
    let growth = layout.nodes.iter().filter_map(|node| {
        let here = guest.guest_cpus.get(&node.id).copied()?;
        Some((node.id, machine.cpus_of(node.stands_for).len() as f64 / f64::from(here)))
    });
    let growth: BTreeMap<NodeId, f64> = growth.collect_map();
    let costs = of_guest(&costs, layout);
    assumed.latencies = assumed.latencies.map(|ends| ends.map(|end| of_guest(&end, layout)));
    let ranking = Ranking::new(counted, uncounted, KnownCosts { costs, assumed, growth });
    let ranking = ranking.map_err(|unknown| Failure::cannot(unknown.to_string()))?;
    output::show(
        args.json,
        global.color,
        || json::ranking(&ranking, &guest),
        |style| text::ranking(&ranking, style),
    )?;
    Ok(0)
}

/// Refuses a machine for a result of measurements.
pub fn refuse_another_machine(global: &Global) -> Result<(), Failure> {
    if input::is_live(&global.machine) {
        return Ok(());
    }
    Err(Failure::usage(
        "--machine has no meaning with --from: the result is of the machine that it was measured on",
    ))
}

/// A placement to count.
struct Wanted {
    name: String,
    /// The options of `nodewise run` that apply it.
    options: Vec<String>,
}

/// The placements that were named, or those that make sense in the guest.
fn wanted(args: &Tune, layout: &Layout) -> Result<(Vec<Wanted>, Vec<Uncounted>), Failure> {
    let guest: Input = input::load(&spec_of(layout), Detail::Full)?;
    let scope = Scope::from_machine(&guest.machine);
    let mut named: Vec<(String, Placement)> = Vec::new();
    let mut uncounted = Vec::new();
    if args.placement.is_empty() {
        // What is left out are placements that the spec of the guest does not know of, and those that are the same.
        let Candidates { chosen, .. } = Candidates::from_machine(&guest.machine);
        named.extend(chosen.into_iter().map(|candidate| (candidate.name, candidate.placement)));
    } else {
        named.push(("default".to_owned(), Placement::DEFAULT));
        for words in &args.placement {
            let placement = placements::named(words, &guest)
                .map_err(|error| Failure::usage(format_args!("--placement: {error}")))?;
            if !named.iter().any(|(_, other)| *other == placement) {
                named.push((placement.name(&scope), placement));
            }
        }
    }
    let mut wanted = Vec::new();
    for (name, placement) in named {
        match placement.run_options(&scope) {
            Some(options) => wanted.push(Wanted { name, options }),
            None => uncounted.push(Uncounted { name, why: "no option of nodewise run says it".to_owned() }),
        }
    }
    Ok((wanted, uncounted))
}

/// The guest as a spec of a machine: its nodes, CPUs, memory and distances.
fn spec_of(layout: &Layout) -> String {
    let node = |node: &GuestNode| {
        let cpus = (!node.cpus.is_empty()).then(|| format!("{}c", node.cpus.len()));
        let parts: Vec<String> = cpus.into_iter().chain(node.memory.map(Bytes::exact)).collect();
        format!("({})", parts.join(" "))
    };
    let nodes: Vec<String> = layout.nodes.iter().map(node).collect();
    let ids = || layout.nodes.iter().map(|node| node.id);
    let row = |from: NodeId| {
        let cell = |to| layout.distances.get(from, to).map_or_else(String::new, u32::to_string);
        ids().map(cell).collect::<Vec<_>>().join(",")
    };
    let rows: Vec<String> = ids().map(row).collect();
    if nodes.len() < 2 { nodes.concat() } else { format!("{}; dist={}", nodes.join(" "), rows.join("/")) }
}

/// Figures of the machine: those of its firmware, those of files, the rest by rules of thumb.
fn costs(args: &Tune, machine: &Machine) -> Result<(Costs, Assumed), Failure> {
    let mut costs = Costs::from_firmware(machine);
    measuring::add_saved_costs(&mut costs, args.latency.as_deref(), args.bandwidth.as_deref())?;
    let assumed = costs.assume_the_rest(machine);
    Ok((costs, assumed))
}

/// The costs by the numbers of the guest's nodes.
fn of_guest(costs: &Costs, layout: &Layout) -> Costs {
    let mut own = Costs {
        paths: nodewise_machine::NodeMatrix::new(layout.nodes.iter().map(|node| node.id)),
        ..Costs::default()
    };
    for from in &layout.nodes {
        for to in &layout.nodes {
            if let Some(way) = costs.paths.get(from.stands_for, to.stands_for) {
                own.paths.set(from.id, to.id, *way);
            }
        }
        if let Some(rate) = costs.controllers.get(&from.stands_for) {
            own.controllers.insert(from.id, *rate);
        }
    }
    own
}

/// Runs the program once under a placement; a program that fails has the reason.
fn once(
    count: &Count,
    guest: &Guest,
    options: &[String],
    program: &[OsString],
) -> Result<Result<nodewise_view::digest::line_counts::LineCounts, String>, Failure> {
    let mut command: Vec<OsString> = Vec::new();
    if !options.is_empty() {
        command.extend([count.program.clone().into_os_string(), "run".into()]);
        command.extend(options.iter().map(OsString::from));
        command.push("--".into());
    }
    command.extend_from_slice(program);
    let line = ProgressLine::new();
    let mut printed = Vec::new();
    let counted =
        count.counts(guest, u32::from(!options.is_empty()), &command, &mut printed, &mut watch(&line));
    line.clear();
    match counted {
        Ok((0, counts)) => Ok(Ok(counts)),
        Ok((status, _)) => {
            let printed = String::from_utf8_lossy(&printed);
            let last = printed.lines().rev().find(|line| !line.trim().is_empty());
            let said = last.map(|last| format!(": {}", printable(last.trim()))).unwrap_or_default();
            Ok(Err(format!("it ends with exit code {status}{said}")))
        }
        Err(GuestError::TimedOut { after, .. }) => {
            Ok(Err(format!("it was stopped after {} s", after.as_secs())))
        }
        Err(error) => Err(Failure::new(NOT_STARTED, error.to_string())),
    }
}

/// The most time of a run with its guest's start.
fn timeout(args: &Tune) -> Result<std::time::Duration, Failure> {
    let typed = args.run_limit.as_deref().unwrap_or("10m");
    nodewise_machine::duration::parse(typed)
        .map_err(|error| Failure::usage(format_args!("--run-limit: {error}")))
}

/// Refuses options of a study whose runs are timed.
fn refuse_timing(args: &Tune) -> Result<(), Failure> {
    let timed = [
        ("--space", args.space.is_some()),
        ("--threads", args.threads.is_some()),
        ("--runs", args.runs.is_some()),
        ("--no-race", args.no_race),
        ("--time", args.time.is_some()),
        ("--metric", !args.metric.is_empty()),
        ("--higher-is-better", args.higher_is_better),
        ("--seed", args.seed.is_some()),
        ("--journal", args.journal.is_some()),
        ("--prepare", args.prepare.is_some()),
        ("--cool-down", args.cool_down.is_some()),
        ("--serve", args.serve.is_some()),
        ("--emit", args.emit.is_some()),
        ("--all", args.all),
        ("--csv", args.csv),
        ("--svg", args.svg.is_some()),
        ("--png", args.png.is_some()),
    ];
    refuse(&timed, "with --machine: there the program runs once under each placement, and is not timed")
}

/// Refuses options of a program that is counted, for one that is timed.
pub fn refuse_counting(args: &Tune) -> Result<(), Failure> {
    let counted = [
        ("--phase", args.phase.is_some()),
        ("--latency", args.latency.is_some()),
        ("--bandwidth", args.bandwidth.is_some()),
        ("--kernel", args.kernel.is_some()),
        ("--max-cpus", args.cpus.is_some()),
        ("--memory", args.memory.is_some()),
    ];
    refuse(&counted, "without --machine: here the program is timed")
}

/// Refuses options of a guest, and forms that counts do not have, for counts of before.
fn refuse_for_saved(args: &Tune) -> Result<(), Failure> {
    let of_guest = [
        ("--kernel", args.kernel.is_some()),
        ("--max-cpus", args.cpus.is_some()),
        ("--memory", args.memory.is_some()),
    ];
    refuse(&of_guest, "with --from of counts: the program is not counted again")?;
    let forms = [("--csv", args.csv), ("--svg", args.svg.is_some()), ("--png", args.png.is_some())];
    refuse(&forms, "with --from of counts: their ranking is text or JSON")
}

fn refuse(options: &[(&str, bool)], why: &str) -> Result<(), Failure> {
    match options.iter().find(|(_, is_set)| *is_set) {
        None => Ok(()),
        Some((option, _)) => Err(Failure::usage(format_args!("{option} has no meaning {why}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::USAGE;
    use nodewise_machine::spec;

    fn layout(text: &str) -> Layout {
        Layout::new(&spec::machine(text).unwrap(), &Limits::default()).unwrap()
    }

    fn tune(words: &[&str]) -> Tune {
        use clap::Parser as _;
        match crate::cli::Cli::try_parse_from(["nodewise", "tune"].iter().chain(words)) {
            Ok(crate::cli::Cli { verb: Some(crate::cli::Verb::Tune(tune)), .. }) => tune,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn counts_of_before_are_ranked_without_a_guest_and_without_a_picture() {
        let from = |words: &[&str]| refuse_for_saved(&tune(&[&["--from=counts.json"], words].concat()));
        for word in ["--kernel=6.12", "--max-cpus=4", "--memory=2G", "--csv", "--svg=a.svg", "--png=a.png"] {
            let refused = from(&[word]).unwrap_err();
            let name = word.split('=').next().unwrap();
            let expected = format!("{name} has no meaning with --from of counts");
            assert!(refused.code == USAGE && refused.message.starts_with(&expected), "{}", refused.message);
        }
        for words in [&[][..], &["--json", "--phase=solve"], &["--latency=l.json", "--bandwidth=b.json"]] {
            assert!(from(words).is_ok(), "{words:?}");
        }
    }

    #[test]
    fn a_phase_is_chosen_under_every_placement_that_moves_lines_in_it() {
        let (node, frame) = (NodeId::new(0), include_str!("counted/phases.json"));
        let saved = json::Saved::from_json(frame).unwrap();
        let (counted, ..) = json::ranking::read(&saved).unwrap();
        let choose = |phase: &str| {
            let (mut counted, mut uncounted) = (counted.clone(), Vec::new());
            let chosen = choose_phase(&tune(&["--phase", phase]), &mut counted, &mut uncounted);
            chosen.map(|()| (counted, uncounted))
        };
        let (solved, left_out) = choose("solve").unwrap();
        let lines = |counted: &CountedPlacement| (counted.name.clone(), counted.counts.all().all);
        assert_eq!(solved.iter().map(lines).collect::<Vec<_>>(), [("default".to_owned(), 60)]);
        assert!(solved[0].counts.cells.iter().all(|cell| cell.cpu_node == node));
        let why = "the phase solve moved no lines".to_owned();
        assert_eq!(left_out, [Uncounted { name: "interleave all".to_owned(), why }]);
        let refused = choose("sovle").unwrap_err();
        assert_eq!(
            (refused.code, refused.message.as_str()),
            (NOT_STARTED, "--phase: the program marked no phase \"sovle\": expected one of load, solve")
        );
    }

    #[test]
    fn the_spec_of_a_guest_is_read_as_its_nodes() {
        for (text, expected) in [
            ("2x(12c 64G); dist=21", "(4c 1G) (4c 1G); dist=10,21/21,10"),
            ("(4G) (2c 2G); dist=17", "(2c 640M) (1280M); dist=10,17/17,10"),
            ("(4c 1G)", "(4c 1G)"),
        ] {
            let spec = spec_of(&layout(text));
            assert_eq!(spec, expected);
            let machine = spec::machine(&spec).unwrap();
            assert_eq!(machine.nodes.len(), layout(text).nodes.len());
        }
    }

    #[test]
    fn costs_go_with_the_nodes_that_a_guest_numbers_anew() {
        let text = "(4G) (2c 2G); dist=17; access=1>0:250ns/30G; access=1>1:90ns/100G";
        let machine = spec::machine(text).unwrap();
        let mut costs = Costs::from_firmware(&machine);
        costs.assume_the_rest(&machine);
        let own = of_guest(&costs, &layout(text));
        let latency = |to| own.paths.get(NodeId::new(0), NodeId::new(to)).unwrap().latency_ns;
        assert_eq!([latency(0), latency(1)], [90.0, 250.0]);
        assert_eq!(own.controllers[&NodeId::new(1)], 30e9);
    }

    #[test]
    fn placements_are_those_of_the_guest() {
        let layout = layout("2x(12c 64G); dist=21");
        let names = |words: &[&str]| {
            let (wanted, _) = wanted(&tune(words), &layout).unwrap();
            wanted.into_iter().map(|wanted| (wanted.name, wanted.options.join(" "))).collect::<Vec<_>>()
        };
        let all = names(&[]);
        assert_eq!(all[0], ("default".to_owned(), String::new()));
        let has = |option: &str| all.iter().any(|(_, options)| options == option);
        assert!(has("--cpunodebind=0 --membind=0") && has("--interleave=all"), "{all:?}");
        let named = names(&["--placement", "membind=1", "--placement", "membind=1"]);
        assert_eq!(named[1..], [("memory of node 1".to_owned(), "--membind=1".to_owned())]);
        let wrong = wanted(&tune(&["--placement", "membind=2"]), &layout).map(|_| ()).unwrap_err();
        assert!(
            wrong.message.contains("node 2 does not exist: this machine has nodes 0-1"),
            "{}",
            wrong.message
        );
    }
}
