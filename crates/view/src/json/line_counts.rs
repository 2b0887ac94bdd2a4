//! `nodewise.lines/1`: cache lines that a program moved, by node and thread.

use serde::Serialize;

use super::{pretty, rounded};
use crate::digest::line_counts::{
    CodeFile, CodeLine, CodeReads, LINE, LineCell, LineCode, LineCounts, LineMappingKind, LinePart,
    LineWriter, LocalShare, LocalVerdict, OWN, SharedLine,
};

/// The schema of the document.
pub const SCHEMA: &str = "nodewise.lines/1";
/// The engine of the guest: nothing but TCG shows a plugin the accesses of a guest.
pub(super) const ENGINE: &str = "tcg";

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    engine: &'static str,
    line_bytes: u64,
    cache: CacheJson,
    lines: u64,
    local_lines: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    local_percent: Option<f64>,
    /// Those of them that the kernel moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<KernelJson>,
    /// Whether half of the cache, or twice the cache, gives other counts.
    is_unsure: bool,
    cpu_nodes: Vec<u32>,
    memory_nodes: Vec<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    demands: Vec<DemandJson>,
    /// The phase that is counted alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    only_phase: Option<String>,
    phases: Vec<PhaseJson>,
    phase_marks_not_distinguished: u64,
    threads: Vec<ThreadJson>,
    threads_not_distinguished: u64,
    cells: Vec<CellJson>,
    mappings: Vec<MappingJson>,
    parts: Vec<PartJson>,
    shared_lines: Vec<SharedLineJson>,
    lines_not_distinguished: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<CodeJson>,
}

#[derive(Serialize)]
struct KernelJson {
    lines: u64,
    local_lines: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    local_percent: Option<f64>,
    lines_read: u64,
    lines_written_back: u64,
}

#[derive(Serialize)]
struct CodeJson {
    places: Vec<PlaceJson>,
    reads: Vec<CodeReadsJson>,
    instructions_not_distinguished: u64,
}

#[derive(Serialize)]
struct PlaceJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    in_kernel: bool,
    has_file: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inlined_into: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
}

#[derive(Serialize)]
struct CodeReadsJson {
    phase_index: usize,
    place_index: usize,
    cpu_node: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_node: Option<u32>,
    lines_read: u64,
}

#[derive(Serialize)]
struct CacheJson {
    ways: u32,
    is_assumed: bool,
    half_bytes: u64,
    own_bytes: u64,
    twice_bytes: u64,
}

#[derive(Serialize)]
struct DemandJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    mapping: Option<String>,
    local_percent: f64,
    lines: u64,
    local_lines: u64,
    holds: bool,
    is_unsure: bool,
}

#[derive(Serialize)]
struct PhaseJson {
    /// Absent for the time outside of phases.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    lines: u64,
    local_lines: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    local_percent: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel_lines: Option<u64>,
}

#[derive(Serialize)]
struct ThreadJson {
    started_by: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

#[derive(Serialize)]
struct CellJson {
    phase_index: usize,
    thread_index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    in_kernel: Option<bool>,
    cpu_node: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_node: Option<u32>,
    lines_read: u64,
    lines_read_in_order: u64,
    lines_written_back: u64,
    lines_with_half_the_cache: u64,
    lines_with_twice_the_cache: u64,
}

#[derive(Serialize)]
struct MappingJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<u32>,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
}

#[derive(Serialize)]
struct SharedLineJson {
    sharing: &'static str,
    mapping_index: usize,
    /// In hexadecimal digits: numbers of JSON have 53 bits.
    address: String,
    writers: Vec<WriterJson>,
}

#[derive(Serialize)]
struct WriterJson {
    thread_index: usize,
    cpu_node: u32,
    writes: u64,
    bytes: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    place_index: Option<usize>,
}

#[derive(Serialize)]
struct PartJson {
    phase_index: usize,
    mapping_index: usize,
    cpu_node: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_node: Option<u32>,
    lines_read: u64,
}

/// Writes what was counted as JSON, indented, with a line end.
pub fn line_counts(counts: &LineCounts, verdicts: &[LocalVerdict]) -> String {
    let all = counts.all();
    let [half, own, twice] = counts.sizes.map(nodewise_machine::Bytes::get);
    let cache = CacheJson {
        ways: counts.ways,
        is_assumed: counts.is_assumed,
        half_bytes: half,
        own_bytes: own,
        twice_bytes: twice,
    };
    pretty(&Document {
        schema: SCHEMA,
        engine: ENGINE,
        line_bytes: LINE,
        cache,
        lines: all.all,
        local_lines: all.local,
        local_percent: all.percent().map(rounded),
        kernel: counts.of_kernel().map(|share| kernel(counts, share)),
        is_unsure: counts.unsure().is_some(),
        cpu_nodes: counts.cpu_nodes.iter().map(|node| node.number()).collect(),
        memory_nodes: counts.memory_nodes.iter().map(|node| node.number()).collect(),
        demands: verdicts.iter().map(demand).collect(),
        only_phase: counts.chosen.clone(),
        phases: (0..counts.phases.len()).map(|place| phase(counts, place)).collect(),
        phase_marks_not_distinguished: counts.lost_phases,
        threads: threads(counts),
        threads_not_distinguished: counts.lost,
        cells: counts.cells.iter().map(|it| cell(it, counts.with_kernel)).collect(),
        mappings: mappings(counts),
        parts: counts.parts.iter().map(part).collect(),
        shared_lines: counts.shared.iter().map(shared_line).collect(),
        lines_not_distinguished: counts.lost_lines,
        code: counts.code.as_ref().map(code),
    })
}

fn kernel(counts: &LineCounts, share: LocalShare) -> KernelJson {
    let sum = |of: fn(&LineCell) -> u64| counts.cells.iter().filter(|cell| cell.in_kernel).map(of).sum();
    KernelJson {
        lines: share.all,
        local_lines: share.local,
        local_percent: share.percent().map(rounded),
        lines_read: sum(|cell| cell.read[OWN]),
        lines_written_back: sum(|cell| cell.written[OWN]),
    }
}

fn code(code: &LineCode) -> CodeJson {
    let place = |place: &CodeLine| PlaceJson {
        program: match &place.program {
            CodeFile::File(path) => Some(path.clone()),
            CodeFile::Unknown | CodeFile::None | CodeFile::Kernel => None,
        },
        in_kernel: place.program == CodeFile::Kernel,
        has_file: place.program != CodeFile::None,
        function: place.function.clone(),
        inlined_into: place.inlined_into.clone(),
        source: place.source.as_ref().map(|(path, _)| path.clone()),
        line: place.source.as_ref().map(|(_, line)| *line),
        offset: place.offset,
    };
    let reads = |reads: &CodeReads| CodeReadsJson {
        phase_index: reads.phase,
        place_index: reads.place,
        cpu_node: reads.cpu_node.number(),
        memory_node: reads.node.map(nodewise_machine::NodeId::number),
        lines_read: reads.lines,
    };
    CodeJson {
        places: code.places.iter().map(place).collect(),
        reads: code.reads.iter().map(reads).collect(),
        instructions_not_distinguished: code.lost,
    }
}

fn shared_line(line: &SharedLine) -> SharedLineJson {
    let writer = |writer: &LineWriter| WriterJson {
        thread_index: writer.thread,
        cpu_node: writer.cpu_node.number(),
        writes: writer.writes,
        bytes: writer.bytes_words(),
        place_index: writer.by,
    };
    SharedLineJson {
        sharing: line.sharing().word(),
        mapping_index: line.mapping,
        address: format!("{:#x}", line.address),
        writers: line.writers.iter().map(writer).collect(),
    }
}

fn demand(verdict: &LocalVerdict) -> DemandJson {
    DemandJson {
        mapping: verdict.demand.mapping.clone(),
        local_percent: verdict.demand.percent,
        lines: verdict.share().all,
        local_lines: verdict.share().local,
        holds: verdict.holds(),
        is_unsure: verdict.is_unsure(),
    }
}

fn phase(counts: &LineCounts, place: usize) -> PhaseJson {
    let share = counts.share(OWN, |cell| cell.phase == place);
    PhaseJson {
        name: counts.phases.get(place).filter(|name| !name.is_empty()).cloned(),
        lines: share.all,
        local_lines: share.local,
        local_percent: share.percent().map(rounded),
        kernel_lines: counts
            .with_kernel
            .then(|| counts.share(OWN, |cell| cell.phase == place && cell.in_kernel).all),
    }
}

fn threads(counts: &LineCounts) -> Vec<ThreadJson> {
    let thread = |thread: &crate::digest::line_counts::LineThread| ThreadJson {
        started_by: thread.parent,
        thread: thread.ids.map(|(thread, _)| thread),
        process: thread.ids.map(|(_, process)| process),
        name: thread.name.clone(),
    };
    counts.threads.iter().map(thread).collect()
}

fn cell(cell: &LineCell, with_kernel: bool) -> CellJson {
    CellJson {
        phase_index: cell.phase,
        thread_index: cell.thread,
        in_kernel: with_kernel.then_some(cell.in_kernel),
        cpu_node: cell.cpu_node.number(),
        memory_node: cell.node.map(nodewise_machine::NodeId::number),
        lines_read: cell.read[OWN],
        lines_read_in_order: cell.in_order[OWN],
        lines_written_back: cell.written[OWN],
        lines_with_half_the_cache: cell.moved(0),
        lines_with_twice_the_cache: cell.moved(2),
    }
}

fn mappings(counts: &LineCounts) -> Vec<MappingJson> {
    let mapping = |mapping: &crate::digest::line_counts::LineMapping| {
        let (kind, file) = match &mapping.kind {
            LineMappingKind::Unknown => ("unknown", None),
            LineMappingKind::Heap => ("heap", None),
            LineMappingKind::Stack => ("stack", None),
            LineMappingKind::Anonymous => ("anonymous", None),
            LineMappingKind::File(name) => ("file", Some(name.clone())),
            LineMappingKind::Kernel => ("kernel", None),
        };
        MappingJson { process: mapping.process, kind, file }
    };
    counts.mappings.iter().map(mapping).collect()
}

fn part(part: &LinePart) -> PartJson {
    PartJson {
        phase_index: part.phase,
        mapping_index: part.mapping,
        cpu_node: part.cpu_node.number(),
        memory_node: part.node.map(nodewise_machine::NodeId::number),
        lines_read: part.read[OWN],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::line_counts::LocalDemand;
    use crate::digest::line_counts::tests::phased;
    use crate::digest::line_counts::tests::sample;
    use crate::digest::line_counts::tests::with_kernel;

    #[test]
    fn lines_of_the_kernel_have_fields_where_they_are_counted() {
        let json = |counts: &LineCounts| -> serde_json::Value {
            serde_json::from_str(&line_counts(counts, &[])).unwrap()
        };
        let without = json(&sample());
        assert_eq!((without.get("kernel"), without["cells"][0].get("in_kernel")), (None, None));
        assert_eq!(without["phases"][0].get("kernel_lines"), None);
        let with = json(&with_kernel());
        assert_eq!(
            with["kernel"],
            serde_json::json!({
                "lines": 250, "local_lines": 0, "local_percent": 0.0, "lines_read": 240, "lines_written_back": 10,
            })
        );
        assert_eq!(with["phases"][0]["kernel_lines"], 250);
        assert_eq!([2, 3].map(|at| with["cells"][at]["in_kernel"].as_bool()), [Some(false), Some(true)]);
        assert_eq!(with["mappings"][4]["kind"], "kernel");
        assert_eq!((&with["lines"], &without["lines"]), (&2004.into(), &2004.into()));
    }

    #[test]
    fn phases_have_their_sums_and_cells_their_phases() {
        let json: serde_json::Value = serde_json::from_str(&line_counts(&phased(), &[])).unwrap();
        let phases = json["phases"].as_array().unwrap();
        assert_eq!((phases[0].get("name"), &phases[1]["name"]), (None, &"solve\u{1b}".into()));
        assert_eq!((&phases[1]["lines"], &phases[1]["local_lines"]), (&954.into(), &700.into()));
        assert_eq!(phases[2].get("local_percent"), None);
        assert_eq!(
            (&json["cells"][0]["phase_index"], &json["cells"][2]["phase_index"]),
            (&0.into(), &1.into())
        );
        let only = phased().only_phase("solve\u{1b}").unwrap();
        let json: serde_json::Value = serde_json::from_str(&line_counts(&only, &[])).unwrap();
        assert_eq!((&json["only_phase"], &json["lines"]), (&"solve\u{1b}".into(), &954.into()));
    }

    #[test]
    fn places_in_code_are_there_where_they_were_counted() {
        let json = |counts: &LineCounts| -> serde_json::Value {
            serde_json::from_str(&line_counts(counts, &[])).unwrap()
        };
        assert_eq!(json(&sample()).get("code"), None);
        let mut counts = sample();
        let mut code = crate::digest::line_counts::code::tests::code();
        code.places[2].program = CodeFile::Kernel;
        counts.code = Some(code);
        let code = &json(&counts)["code"];
        let in_kernel = [1, 2].map(|at| code["places"][at].get("in_kernel").and_then(|it| it.as_bool()));
        assert_eq!((in_kernel, code["places"][2].get("program")), ([None, Some(true)], None));
        let places: Vec<_> = (0..4).map(|at| &code["places"][at]).collect();
        assert_eq!((&places[0]["source"], &places[0]["line"]), (&"/src/triad.c".into(), &14.into()));
        assert_eq!((places[1].get("source"), &places[1]["function"]), (None, &"memcpy".into()));
        assert_eq!((&places[2]["offset"], &places[3]["has_file"]), (&0x1a40.into(), &false.into()));
        assert_eq!(
            (&code["reads"][1]["place_index"], &code["reads"][1]["lines_read"]),
            (&0.into(), &300.into())
        );
    }

    #[test]
    fn sums_are_those_of_the_cells() {
        let counts = sample();
        let verdict = |mapping: Option<&str>| {
            let demand = LocalDemand { mapping: mapping.map(str::to_owned), percent: 95.0 };
            counts.verdict(&demand).unwrap()
        };
        let text = line_counts(&counts, &[verdict(None), verdict(Some("heap"))]);
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let cells = json["cells"].as_array().unwrap();
        let sum = |chosen: &dyn Fn(&serde_json::Value) -> bool| -> u64 {
            let lines = |cell: &serde_json::Value| {
                cell["lines_read"].as_u64().unwrap() + cell["lines_written_back"].as_u64().unwrap()
            };
            cells.iter().filter(|cell| chosen(cell)).map(lines).sum()
        };
        assert_eq!(json["lines"], sum(&|_| true));
        assert_eq!(json["local_lines"], sum(&|cell| cell["cpu_node"] == cell["memory_node"]));
        assert_eq!(
            (json["demands"][0]["holds"].as_bool(), json["is_unsure"].as_bool()),
            (Some(false), Some(true))
        );
        assert_eq!(json["demands"][0].get("mapping"), None);
        assert_eq!(
            (&json["demands"][1]["mapping"], &json["demands"][1]["lines"]),
            (&"heap".into(), &1140.into())
        );
        assert_eq!(json["threads"][1]["started_by"], 0);
        assert_eq!(json["threads"][2].get("name"), None);
        let shared = &json["shared_lines"][0];
        assert_eq!((&shared["sharing"], &shared["address"]), (&"false".into(), &"0x55aa0040".into()));
        assert_eq!(
            (&shared["writers"][1]["bytes"], &shared["writers"][1]["writes"]),
            (&"8-15".into(), &3000.into())
        );
        let parts = json["parts"].as_array().unwrap();
        let read: u64 = parts.iter().map(|part| part["lines_read"].as_u64().unwrap()).sum();
        assert_eq!(read, counts.read_and_written().0);
        assert_eq!(
            (json["mappings"][2]["kind"].as_str(), json["mappings"][2]["process"].as_u64()),
            (Some("file"), Some(300))
        );
        // As the text has it.
        assert!(crate::text::line_counts(&counts, &crate::style::Style::plain(80)).contains("84.8 % local"));
        assert_eq!(json["local_percent"], 84.830_339);
    }
}
