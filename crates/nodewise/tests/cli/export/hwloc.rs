//! hwloc's XML, held against lstopo: it reads ours with both of its parsers, and what it then knows of a capture is what it
//! finds in the capture itself, object by object.

mod facts;
mod rules;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::nodewise::{corpus, output, run, without_variables, wrong};
use crate::sandbox::has;

use super::{FULL, exported, unpacked};
use facts::{Facts, facts};
use rules::{RULES, Side};

const LSTOPO: &str = "lstopo-no-graphics";

/// Output of lstopo for an input, as XML. `parser` is `0` for the one inside hwloc, `1` for libxml2.
#[track_caller]
fn lstopo(input: &Path, kind: &str, parser: &str) -> String {
    let mut command = without_variables(LSTOPO);
    command.arg("--input").arg(input).args(["--if", kind, "--of", "xml", "--disallowed"]);
    command.args(["--filter", "io:all", "--filter", "icache:all"]);
    // Without this it hides the nodes that are the memory of GPUs.
    command
        .env("HWLOC_KEEP_NVIDIA_GPU_NUMA_NODES", "1")
        .env("HWLOC_THISSYSTEM", "0")
        .env("HWLOC_LIBXML", parser);
    let ran = output(&mut command);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{}", input.display());
    ran.stdout
}

/// Output of lstopo for a text, which must be the same with both parsers.
#[track_caller]
fn reread(text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("machine.xml");
    std::fs::write(&file, text).unwrap();
    let [inside, libxml] = ["0", "1"].map(|parser| lstopo(&file, "xml", parser));
    assert_eq!(facts(&inside), facts(&libxml), "both parsers");
    inside
}

/// The facts that differ without a rule, each in a line; rules that explain one are put among the used.
fn unexplained(capture: &str, theirs: &Facts, ours: &Facts, used: &mut BTreeSet<usize>) -> Vec<String> {
    let none = BTreeMap::new();
    let mut found = Vec::new();
    for object in theirs.keys().chain(ours.keys()).collect::<BTreeSet<_>>() {
        let (their, our) = (theirs.get(object).unwrap_or(&none), ours.get(object).unwrap_or(&none));
        for fact in their.keys().chain(our.keys()).collect::<BTreeSet<_>>() {
            let side = match (their.get(fact), our.get(fact)) {
                (their, our) if their == our => continue,
                (Some(_), Some(_)) => Side::Differ,
                (Some(_), None) => Side::Theirs,
                (None, _) => Side::Ours,
            };
            match RULES.iter().position(|rule| rule.explains(capture, object, fact, side)) {
                Some(rule) => {
                    used.insert(rule);
                }
                None => {
                    let (their, our) = (their.get(fact), our.get(fact));
                    found.push(format!("{capture}: {object}: {fact}: hwloc {their:?}, nodewise {our:?}"));
                }
            }
        }
    }
    found
}

#[test]
fn hwloc_reads_a_capture_and_our_export_of_it_alike() {
    if !has(LSTOPO, "hwloc-nox") {
        return;
    }
    let mut used = BTreeSet::new();
    let mut found = Vec::new();
    let captures = corpus("captures");
    for path in &captures {
        let name = path.file_name().unwrap().to_string_lossy();
        let name = name.split(".tar").next().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let theirs = lstopo(&unpacked(path, folder.path()), "fsroot", "0");
        let ours = reread(&exported("hwloc", path.to_str().unwrap()));
        found.extend(unexplained(name, &facts(&theirs), &facts(&ours), &mut used));
    }
    // Another corpus has other captures.
    let needless = RULES.iter().enumerate().filter(|(at, _)| !used.contains(at)).map(|(_, rule)| rule.why);
    if std::env::var_os("NODEWISE_CORPUS").is_none() {
        found.extend(needless.map(|why| format!("a rule that explains nothing: {why}")));
    }
    assert!(found.is_empty(), "{} differences\n{}", found.len(), found.join("\n"));
}

#[test]
fn hwloc_diff_finds_nothing_that_hwloc_does_not_keep() {
    if !has("hwloc-diff", "hwloc-nox") || !has(LSTOPO, "hwloc-nox") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let compare = || {
        let mut command = without_variables("hwloc-diff");
        command.current_dir(folder.path()).args(["ours.xml", "kept.xml", "diff.xml"]);
        output(command.env("HWLOC_KEEP_NVIDIA_GPU_NUMA_NODES", "1"))
    };
    let machines = corpus("captures").into_iter().map(|path| path.to_str().unwrap().to_owned());
    for machine in machines.chain([FULL.to_owned()]) {
        let ours = exported("hwloc", &machine);
        write("ours.xml", &ours);
        write("kept.xml", &reread(&ours));
        let ran = compare();
        assert_eq!(ran.code, Some(0), "{machine}: {}", ran.stderr);
        assert!(ran.stderr.contains("Found no difference"), "{machine}: {}", ran.stderr);
        write("kept.xml", &ours.replacen("local_memory=\"", "local_memory=\"1", 1));
        let ran = compare();
        assert!(!ran.stderr.contains("Found no difference"), "a check that finds nothing is none: {machine}");
    }
}

#[test]
fn mpirun_maps_ranks_by_our_export_as_by_hwlocs_own() {
    if !has("mpirun", "openmpi-bin") || !has(LSTOPO, "hwloc-nox") {
        return;
    }
    // A rank in each package; nothing is started, for which mpirun then reports an error of its own.
    let ranks = |file: &Path| {
        let mut command = without_variables("mpirun");
        command.args(["--allow-run-as-root", "--oversubscribe", "--do-not-launch", "--display-map"]);
        command.args(["--map-by", "ppr:1:socket", "--mca", "hwloc_base_topo_file"]).arg(file).arg("true");
        let ran = output(&mut command);
        (ran.stdout.lines().filter(|line| line.contains("Process OMPI jobid")).count(), ran)
    };
    for name in ["16amd64-8n2c-cpusets", "48amd64-4pa2n6c-sparse", "96em64t-4no4pa3ca2co"] {
        let capture = corpus("captures").into_iter().find(|path| path.to_string_lossy().contains(name));
        let Some(capture) = capture else { continue };
        let folder = tempfile::tempdir().unwrap();
        let [ours, theirs] = ["ours.xml", "theirs.xml"].map(|file| folder.path().join(file));
        std::fs::write(&ours, exported("hwloc", capture.to_str().unwrap())).unwrap();
        let unfolded = tempfile::tempdir().unwrap();
        std::fs::write(&theirs, lstopo(&unpacked(&capture, unfolded.path()), "fsroot", "0")).unwrap();
        let ((found, ran), (expected, _)) = (ranks(&ours), ranks(&theirs));
        assert!(found > 1, "{name}: {}{}", ran.stdout, ran.stderr);
        assert_eq!(found, expected, "{name}: {}", ran.stdout);
    }
}

#[test]
fn hwloc_reads_machines_of_every_kind() {
    if !has(LSTOPO, "hwloc-nox") {
        return;
    }
    for machine in [FULL, "(1c)", "(4c 1G) 7x(1G)", "64x(4c 32G)", "2x(2x(24c 126G l3=32M/6c)); dist=11,20"] {
        reread(&exported("hwloc", machine));
    }
}

#[test]
fn a_machine_without_cpus_is_refused() {
    let ran = run(&["export", "hwloc", "--machine", "(0c 1G)"]);
    assert!(ran.code == Some(3) || ran.code == Some(2), "{:?} {}", ran.code, ran.stderr);
}

#[test]
fn measured_values_take_the_place_of_the_firmwares_and_hwloc_reads_them() {
    let sample = |name: &str| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/figures");
        folder.join(name).to_str().unwrap().to_owned()
    };
    let mlc = sample("mlc-3.10-two-nodes.txt");
    let machine = "2x(4c 64G); dist=10,21/21,10; access=0>1:250ns,300ns/30G";
    let text = run(&["export", "hwloc", "--machine", machine, "--measured", &mlc]).ok();
    assert!(
        !text.contains("\"250\"") && text.contains("\"300\""),
        "the firmware's write latency stays: {text}"
    );
    if has(LSTOPO, "hwloc-nox") {
        let read = facts(&reread(&text));
        let node = |number: u32| {
            let mut of = read
                .iter()
                .filter(|(name, _)| name.contains("NUMANode") && name.contains(&number.to_string()));
            of.next().map(|(_, facts)| facts.clone()).unwrap_or_else(|| panic!("{:?}", read.keys()))
        };
        let (near, far) = ("0x0000000f", "0x000000f0");
        assert_eq!(node(0)[&format!("Latency from {near}")], "81");
        assert_eq!(node(0)[&format!("Latency from {far}")], "142");
        assert_eq!(node(1)[&format!("ReadLatency from {near}")], "140");
        assert_eq!(node(0)[&format!("Bandwidth from {near}")], "113074");
        assert_eq!(node(1)[&format!("ReadBandwidth from {near}")], "34306");
    }
    // Results of our own are read, too; a node that the machine lacks is not.
    let folder = tempfile::tempdir().unwrap();
    let one = folder.path().join("one.json");
    let latency = run(&["latency", "--quick", "--size=1M", "--rounds=1", "--nodes=0", "--json"]);
    if latency.code == Some(0) {
        std::fs::write(&one, &latency.stdout).unwrap();
        let text =
            run(&["export", "hwloc", "--machine", "(4c 64G)", "--measured", one.to_str().unwrap()]).ok();
        assert!(text.contains("<memattr name=\"Latency\" flags=\"6\">"), "{text}");
    }
    let refused = |words: &[&str], expected: &str| wrong("export", words, expected);
    refused(
        &["hwloc", "--machine", "(4c 64G)", "--measured", &mlc],
        "has CPUs of node 0 and memory of node 1: expected nodes of this machine, with CPUs on nodes 0 and memory on \
         nodes 0",
    );
    refused(&["hwloc", "--measured", &sample("stream-5.10.txt")], "has no matrix of nodes with figures");
    refused(&["dot", "--measured", &mlc], "--measured goes with the format hwloc");
}
