//! `nodewise.placement-lines/1`: placements by the cache lines that a program moves under them. It is read back, to judge the
//! same counts on another machine of these nodes.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use nodewise_machine::{Bytes, NodeId};
use serde::{Deserialize, Serialize};

use super::line_counts::ENGINE;
use super::reading::{Saved, items, node};
use super::{pretty, rounded};
use crate::digest::line_counts::{LINE, LineCell, LineCounts, LineThread, OWN, SIZES};
use crate::digest::ranking::{CountedPlacement, Decisive, RankedPhase, RankedPlacement, Ranking, Uncounted};

/// The schema of the document.
pub const SCHEMA: &str = "nodewise.placement-lines/1";

/// More placements, threads and cells than any run has.
const MOST_PLACEMENTS: usize = 1000;
const MOST_PHASES: usize = 1 << 10;
const MOST_THREADS: usize = 1 << 20;
const MOST_CELLS: usize = 1 << 22;
const MOST_NODES: usize = 1024;
/// More lines than a guest moves in years; sums of all cells stay below the most that 64 bits hold.
const MOST_LINES: u64 = 1 << 40;

#[derive(Serialize, Deserialize)]
struct Document {
    schema: String,
    #[serde(default)]
    engine: String,
    line_bytes: u64,
    cache: CacheJson,
    /// Nodes of the guest that have CPUs, with the number of them.
    cpu_nodes: Vec<CpuNodeJson>,
    memory_nodes: Vec<u32>,
    /// Names of phases; the first, without a name, is the time outside of phases.
    #[serde(default)]
    phases: Vec<String>,
    /// The phase that is counted alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    phase: Option<String>,
    placements: Vec<PlacementJson>,
    #[serde(default, skip_deserializing, skip_serializing_if = "Vec::is_empty")]
    ranked_phases: Vec<RankedPhaseJson>,
    #[serde(default, skip_deserializing)]
    decisive_assumptions: Vec<DecisiveJson>,
    not_counted: Vec<UncountedJson>,
    #[serde(default, skip_deserializing)]
    costs: CostsJson,
}

#[derive(Serialize, Deserialize)]
struct CacheJson {
    ways: u32,
    is_assumed: bool,
    /// Half of the machine's, the machine's, twice the machine's.
    sizes_bytes: [u64; SIZES],
}

#[derive(Serialize, Deserialize)]
struct CpuNodeJson {
    node: u32,
    guest_cpus: u32,
}

#[derive(Serialize, Deserialize)]
struct PlacementJson {
    name: String,
    options: Vec<String>,
    #[serde(default, skip_deserializing)]
    first_place: usize,
    #[serde(default, skip_deserializing)]
    last_place: usize,
    #[serde(default, skip_deserializing)]
    lines: u64,
    #[serde(default, skip_deserializing)]
    local_lines: u64,
    #[serde(default, skip_deserializing, skip_serializing_if = "Option::is_none")]
    local_percent: Option<f64>,
    #[serde(default, skip_deserializing)]
    lines_by_memory_node: BTreeMap<u32, u64>,
    thread_count: usize,
    cells: Vec<CellJson>,
}

#[derive(Serialize)]
struct DecisiveJson {
    assumption: &'static str,
    ends: Vec<EndJson>,
}

#[derive(Serialize)]
struct EndJson {
    end: &'static str,
    /// First and last place, by name of the placement.
    places: BTreeMap<String, [usize; 2]>,
}

#[derive(Serialize)]
struct RankedPhaseJson {
    phase_index: usize,
    placements: Vec<PlaceJson>,
}

#[derive(Serialize)]
struct PlaceJson {
    name: String,
    first_place: usize,
    last_place: usize,
    lines: u64,
    local_lines: u64,
}

#[derive(Serialize, Deserialize)]
struct CellJson {
    #[serde(default)]
    phase_index: usize,
    thread_index: usize,
    cpu_node: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    memory_node: Option<u32>,
    /// For half of the cache, the cache, twice the cache.
    lines_read: [u64; SIZES],
    lines_read_in_order: [u64; SIZES],
    lines_written_back: [u64; SIZES],
}

#[derive(Serialize, Deserialize)]
struct UncountedJson {
    name: String,
    why: String,
}

#[derive(Serialize, Default)]
struct CostsJson {
    are_assumed: bool,
    threads_may_grow: bool,
    paths: Vec<PathJson>,
    memory_gb_per_s: BTreeMap<u32, f64>,
    machine_cpus_for_each_of_the_guest: BTreeMap<u32, f64>,
}

#[derive(Serialize)]
struct PathJson {
    from_node: u32,
    memory_node: u32,
    latency_ns: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    link_gb_per_s: Option<f64>,
}

/// The guest in which lines were counted, as far as the counts do not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedIn {
    /// CPUs of each node of the guest that has some.
    pub guest_cpus: BTreeMap<NodeId, u32>,
}

/// Writes the placements as JSON, indented, with a line end.
pub fn ranking(ranking: &Ranking, guest: &CountedIn) -> String {
    let first = ranking.placements.first().map(|ranked| &ranked.counted.counts);
    let cache = CacheJson {
        ways: first.map_or(0, |counts| counts.ways),
        is_assumed: first.is_some_and(|counts| counts.is_assumed),
        sizes_bytes: first.map_or([0; SIZES], |counts| counts.sizes.map(Bytes::get)),
    };
    let memory_nodes = first.map(|counts| counts.memory_nodes.iter().map(|node| node.number()).collect());
    let cpu_node = |(node, cpus): (&NodeId, &u32)| CpuNodeJson { node: node.number(), guest_cpus: *cpus };
    let uncounted =
        |uncounted: &Uncounted| UncountedJson { name: uncounted.name.clone(), why: uncounted.why.clone() };
    pretty(&Document {
        schema: SCHEMA.to_owned(),
        engine: ENGINE.to_owned(),
        line_bytes: LINE,
        cache,
        cpu_nodes: guest.guest_cpus.iter().map(cpu_node).collect(),
        memory_nodes: memory_nodes.unwrap_or_default(),
        phases: first.map(|counts| counts.phases.clone()).unwrap_or_default(),
        phase: first.and_then(|counts| counts.chosen.clone()),
        ranked_phases: ranking.phases.iter().map(ranked_phase).collect(),
        decisive_assumptions: ranking.decisive.iter().map(|found| decisive(found, ranking)).collect(),
        placements: ranking.placements.iter().map(placement).collect(),
        not_counted: ranking.uncounted.iter().map(uncounted).collect(),
        costs: costs(ranking),
    })
}

fn decisive(decisive: &Decisive, ranking: &Ranking) -> DecisiveJson {
    let end = |(end, places): &(&'static str, Vec<RangeInclusive<usize>>)| {
        let named = ranking.placements.iter().zip(places);
        let places = named
            .map(|(ranked, places)| (ranked.counted.name.clone(), [*places.start(), *places.end()]))
            .collect();
        EndJson { end, places }
    };
    DecisiveJson { assumption: decisive.assumption.words(), ends: decisive.ends.iter().map(end).collect() }
}

fn ranked_phase(phase: &RankedPhase) -> RankedPhaseJson {
    let place = |ranked: &RankedPlacement| {
        let share = ranked.counted.counts.all();
        PlaceJson {
            name: ranked.counted.name.clone(),
            first_place: *ranked.places.start(),
            last_place: *ranked.places.end(),
            lines: share.all,
            local_lines: share.local,
        }
    };
    RankedPhaseJson { phase_index: phase.phase, placements: phase.placements.iter().map(place).collect() }
}

fn placement(ranked: &RankedPlacement) -> PlacementJson {
    let CountedPlacement { name, options, counts } = &ranked.counted;
    let all = counts.all();
    let of_node = |to: &NodeId| (to.number(), counts.share(OWN, |cell| cell.node == Some(*to)).all);
    let cell = |cell: &LineCell| CellJson {
        phase_index: cell.phase,
        thread_index: cell.thread,
        cpu_node: cell.cpu_node.number(),
        memory_node: cell.node.map(NodeId::number),
        lines_read: cell.read,
        lines_read_in_order: cell.in_order,
        lines_written_back: cell.written,
    };
    PlacementJson {
        name: name.clone(),
        options: options.clone(),
        first_place: *ranked.places.start(),
        last_place: *ranked.places.end(),
        lines: all.all,
        local_lines: all.local,
        local_percent: all.percent().map(rounded),
        lines_by_memory_node: counts.memory_nodes.iter().map(of_node).collect(),
        thread_count: counts.threads.len(),
        cells: counts.cells.iter().map(cell).collect(),
    }
}

fn costs(ranking: &Ranking) -> CostsJson {
    let known = &ranking.known;
    let path = |(from, to, way): (NodeId, NodeId, &nodewise_model::cost::PathCost)| PathJson {
        from_node: from.number(),
        memory_node: to.number(),
        latency_ns: rounded(way.latency_ns),
        link_gb_per_s: way.bandwidth.map(|rate| rounded(rate / 1e9)),
    };
    let of_node = |(node, rate): (&NodeId, &f64)| (node.number(), rounded(rate / 1e9));
    CostsJson {
        are_assumed: known.assumed.is_any(),
        threads_may_grow: ranking.grows,
        paths: known.costs.paths.iter().map(path).collect(),
        memory_gb_per_s: known.costs.controllers.iter().map(of_node).collect(),
        machine_cpus_for_each_of_the_guest: known
            .growth
            .iter()
            .map(|(node, growth)| (node.number(), rounded(*growth)))
            .collect(),
    }
}

/// Reads counts back.
///
/// # Errors
/// What is wrong and where, fit to be shown.
pub fn read(saved: &Saved<'_>) -> Result<(Vec<CountedPlacement>, Vec<Uncounted>, CountedIn), String> {
    let document: Document = saved.contents(SCHEMA)?;
    let mut guest_cpus = BTreeMap::new();
    for (at, CpuNodeJson { node: number, guest_cpus: cpus }) in document.cpu_nodes.iter().enumerate() {
        let wrong = |why: String| format!("cpu_nodes[{at}]: {why}");
        let node = node(*number).map_err(wrong)?;
        if *cpus == 0 || guest_cpus.insert(node, *cpus).is_some() {
            return Err(wrong(format!("node {node} has {cpus} CPUs, or is there twice")));
        }
    }
    let memory_nodes = items("memory_nodes", document.memory_nodes, MOST_NODES, node)?;
    let mut phases = items("phases", document.phases, MOST_PHASES, Ok)?;
    if phases.is_empty() {
        phases.push(String::new());
    }
    if let Some((at, name)) = phases.iter().enumerate().find(|(at, name)| name.is_empty() != (*at == 0)) {
        return Err(format!("phases[{at}] is {name:?}: expected names, the first of them empty"));
    }
    if let Some(name) = document.phase.as_ref().filter(|name| !phases[1..].contains(name)) {
        return Err(format!("phase is {name:?}, which phases does not name"));
    }
    let frame = LineCounts {
        ways: document.cache.ways,
        sizes: document.cache.sizes_bytes.map(Bytes::new),
        is_assumed: document.cache.is_assumed,
        with_kernel: false,
        cpu_nodes: guest_cpus.keys().copied().collect(),
        memory_nodes,
        threads: Vec::new(),
        lost: 0,
        cells: Vec::new(),
        mappings: Vec::new(),
        parts: Vec::new(),
        phases,
        lost_phases: 0,
        chosen: document.phase,
        shared: Vec::new(),
        lost_lines: 0,
        code: None,
    };
    let placements =
        items("placements", document.placements, MOST_PLACEMENTS, |placement| counted(placement, &frame))?;
    let uncounted = document.not_counted.into_iter();
    let uncounted = uncounted.map(|UncountedJson { name, why }| Uncounted { name, why }).collect();
    Ok((placements, uncounted, CountedIn { guest_cpus }))
}

fn counted(placement: PlacementJson, frame: &LineCounts) -> Result<CountedPlacement, String> {
    let threads = placement.thread_count;
    if threads > MOST_THREADS {
        return Err(format!("thread_count is {threads}: expected at most {MOST_THREADS}"));
    }
    let cells = items("cells", placement.cells, MOST_CELLS, |cell| {
        let (phase, phases) = (cell.phase_index, frame.phases.len());
        if phase >= phases {
            return Err(format!("phase_index is {phase}: there are {phases} phases"));
        }
        let (read, in_order, written) = (cell.lines_read, cell.lines_read_in_order, cell.lines_written_back);
        if cell.thread_index >= threads {
            return Err(format!("thread_index is {}: there are {threads} threads", cell.thread_index));
        }
        let cpu_node = node(cell.cpu_node)?;
        if !frame.cpu_nodes.contains(&cpu_node) {
            return Err(format!("cpu_node is {cpu_node}, which cpu_nodes does not name"));
        }
        let memory = cell.memory_node.map(node).transpose()?;
        if let Some(memory) = memory.filter(|memory| !frame.memory_nodes.contains(memory)) {
            return Err(format!("memory_node is {memory}, which memory_nodes does not name"));
        }
        if let Some(lines) = read.iter().chain(&written).find(|lines| **lines > MOST_LINES) {
            return Err(format!("{lines} lines: expected at most {MOST_LINES}"));
        }
        if let Some((some, all)) = in_order.iter().zip(&read).find(|(some, all)| some > all) {
            return Err(format!("{some} lines of {all} that were read are in order"));
        }
        Ok(LineCell {
            phase,
            thread: cell.thread_index,
            in_kernel: false,
            cpu_node,
            node: memory,
            read,
            written,
            in_order,
        })
    })?;
    let thread = LineThread { parent: 0, ids: None, name: None };
    let counts = LineCounts { threads: vec![thread; threads], cells, ..frame.clone() };
    Ok(CountedPlacement { name: placement.name, options: placement.options, counts })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::ranking::tests::{known, phased, ranking as sample};
    use proptest::prelude::{any, proptest};
    use serde_json::{Value, json};

    fn guest() -> CountedIn {
        CountedIn { guest_cpus: [0, 1].map(|node| (NodeId::new(node), 2)).into() }
    }

    #[test]
    fn what_is_written_is_read_and_judged_alike() {
        let text = ranking(&sample(), &guest());
        let (placements, uncounted, found) = read(&Saved::from_json(&text).unwrap()).unwrap();
        assert_eq!(found, guest());
        let again = Ranking::new(placements, uncounted, known()).unwrap();
        assert_eq!(ranking(&again, &found), text);
        let json: Value = serde_json::from_str(&text).unwrap();
        let of = |at: usize, name: &str| json["placements"][at][name].clone();
        assert_eq!(
            [of(0, "name"), of(0, "first_place"), of(0, "last_place")],
            [json!("local"), json!(1), json!(2)]
        );
        assert_eq!([of(1, "lines"), of(1, "local_lines")], [json!(1000), json!(750)]);
        assert_eq!(json["placements"][1]["lines_by_memory_node"], json!({"0": 750, "1": 250}));
        assert_eq!(json["costs"]["paths"][1]["latency_ns"], json!(145.0));
    }

    #[test]
    fn phases_are_kept_and_one_that_was_chosen_stays_so() {
        let text = ranking(&phased(), &guest());
        let (placements, uncounted, found) = read(&Saved::from_json(&text).unwrap()).unwrap();
        let mut again = Ranking::new(placements, uncounted, known()).unwrap();
        assert_eq!(ranking(&again, &found), text);
        let json: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["phases"], json!(["", "fill", "read\u{1b}"]));
        let place = |name: &str, places: [u64; 2], lines: u64, local: u64| json!({"name": name, "first_place": places[0], "last_place": places[1], "lines": lines, "local_lines": local});
        assert_eq!(
            json["ranked_phases"][1],
            json!({"phase_index": 1, "placements": [
                place("membind=0", [1, 1], 500, 500), place("default", [2, 2], 500, 0),
            ]})
        );
        for ranked in &mut again.placements {
            ranked.counted.counts = ranked.counted.counts.clone().only_phase("fill").unwrap();
        }
        let chosen = again.placements.into_iter().map(|ranked| ranked.counted).collect();
        let chosen = ranking(&Ranking::new(chosen, Vec::new(), known()).unwrap(), &found);
        let (placements, ..) = read(&Saved::from_json(&chosen).unwrap()).unwrap();
        assert_eq!(placements[0].counts.chosen.as_deref(), Some("fill"));
        assert!(!chosen.contains("ranked_phases"));
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_place() {
        let text = ranking(&sample(), &guest());
        let check = |path: &[&str], value: Value, expected: &str| {
            let mut json: Value = serde_json::from_str(&text).unwrap();
            let pointer = format!("/{}", path.join("/"));
            *json.pointer_mut(&pointer).unwrap() = value;
            let error = read(&Saved::from_json(&json.to_string()).unwrap()).unwrap_err();
            assert!(error.contains(expected), "{error}");
        };
        let cell = |field: &'static str| ["placements", "1", "cells", "0", field];
        check(
            &cell("thread_index"),
            json!(9),
            "placements[1]: cells[0]: thread_index is 9: there are 3 threads",
        );
        check(&cell("memory_node"), json!(7), "memory_node is 7, which memory_nodes does not name");
        check(&cell("cpu_node"), json!(7), "cpu_node is 7, which cpu_nodes does not name");
        check(&cell("lines_read"), json!([u64::MAX, 0, 0]), "expected at most 1099511627776");
        check(
            &cell("lines_read_in_order"),
            json!([501, 0, 0]),
            "501 lines of 500 that were read are in order",
        );
        check(&["placements", "0", "thread_count"], json!(1_u64 << 40), "expected at most 1048576");
        check(&["cpu_nodes", "1", "node"], json!(0), "cpu_nodes[1]: node 0 has 2 CPUs, or is there twice");
        check(
            &cell("phase_index"),
            json!(1),
            "placements[1]: cells[0]: phase_index is 1: there are 1 phases",
        );
        check(&["phases", "0"], json!("a"), "phases[0] is \"a\": expected names, the first of them empty");
        check(
            &["phases"],
            json!(["", "a", ""]),
            "phases[2] is \"\": expected names, the first of them empty",
        );
        check(&["schema"], json!("x"), "expected nodewise.placement-lines/1");
    }

    proptest! {
        #[test]
        fn any_numbers_are_read_or_refused(lines in any::<[u64; 3]>(), thread in 0usize..4, node in 0u32..3) {
            let mut json: Value = serde_json::from_str(&ranking(&sample(), &guest())).unwrap();
            json["placements"][0]["cells"][0] = json!({
                "thread_index": thread, "cpu_node": node, "memory_node": node,
                "lines_read": lines, "lines_read_in_order": lines, "lines_written_back": lines,
            });
            if let Ok((placements, uncounted, _)) = read(&Saved::from_json(&json.to_string()).unwrap()) {
                let _ = Ranking::new(placements, uncounted, known());
            }
        }
    }
}
