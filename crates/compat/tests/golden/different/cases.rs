//! Commands that do something else than with the original.

use nodewise_compat::Release;

use super::{Context, shown};
use crate::answer::Answer;

/// The effect of a command.
enum Does {
    /// Runs `numactl --show` under the default policy on these CPUs.
    RunsOn(&'static [u32]),
    /// Runs `numactl --show` bound to the memory of this node.
    BindsTo(u32),
    /// Runs `numactl --show` of 2.0.16 bound to the memory of these nodes.
    BindsToMany(&'static [u32]),
    /// Runs `numactl --show` preferring these nodes.
    Prefers(&'static [u32]),
    /// Has no CPU to run on.
    NoCpu,
    /// Names a node that the kernel cannot number; the words of the warning.
    Refuses(&'static str),
    /// Prints this.
    Prints(&'static str),
    /// Shows the machine.
    ShowsHardware,
    /// Has no nodes to bind to.
    NoNode,
    /// Shows the CPUs that the original cannot read.
    ShowsTwoThousandCpus,
}

/// The answer to a command that does something else; `None` where it does the same.
pub fn different_answer(context: &Context<'_>) -> Option<Answer> {
    let command = context.record.cmd.as_str();
    if command == "numactl -m file:/dev/null true" {
        return Some(no_block_device("1:3"));
    }
    let does = match context.file {
        "numactl-cpuset-4n" => {
            let (group, command) = command.strip_prefix("incg ")?.split_once(' ')?;
            in_cpuset(group, command, context.release)?
        }
        "numactl-io-affinity-pci" => pci_functions_behind_bridges(command)?,
        "fakesys-hardware-and-numastat" => on_simulated_trees(context, command)?,
        _ => on_four_nodes(context, command)?,
    };
    Some(answer(context, &does))
}

/// Chapter "Devices of files": the answer also where the settings are strict.
pub fn even_strictly(context: &Context<'_>) -> Option<Answer> {
    (context.record.cmd == "numactl -m file:/dev/null true").then(|| no_block_device("0:0"))
}

fn no_block_device(device: &str) -> Answer {
    Answer {
        rc: 1,
        stdout: "<file:/dev/null> is invalid\n".to_owned(),
        stderr: format!(
            "libnuma: Warning: Cannot find block device {device} in sysfs for `/dev/null'\n<NUMACTL-USAGE>\n"
        ),
    }
}

fn answer(context: &Context<'_>, does: &Does) -> Answer {
    let answer = |rc: i32, stdout: String, stderr: &str| Answer { rc, stdout, stderr: stderr.to_owned() };
    match does {
        Does::RunsOn(cpus) => {
            answer(0, show(context, ("default", "current"), cpus, memory(context), &[]), "")
        }
        Does::BindsTo(node) => {
            answer(0, show(context, ("bind", &node.to_string()), &[0, 1, 2, 3], &[*node], &[*node]), "")
        }
        Does::BindsToMany(nodes) => {
            let shown = show(context, ("bind", &nodes[0].to_string()), cpus(context), nodes, nodes);
            answer(0, shown, "libnuma.c: Success\n")
        }
        Does::Prefers(nodes) => {
            let preferred = format!("{} (preferred-many)", nodes[0]);
            let noise = if nodes.len() > 1 { "libnuma.c: Invalid argument\n" } else { "" };
            let shown = show(context, ("preferred-many", &preferred), cpus(context), memory(context), nodes);
            answer(0, shown, noise)
        }
        Does::NoCpu => answer(
            1,
            String::new(),
            "numa_sched_setaffinity_v2_int() failed: Invalid argument\nsched_setaffinity: Invalid argument\n",
        ),
        Does::Refuses(words) => {
            let argument = context.record.cmd.split(' ').nth(4).unwrap_or_default();
            let stderr = format!("libnuma: Warning: node argument 1024 {words}\n\n<NUMACTL-USAGE>\n");
            answer(1, format!("<{argument}> is invalid\n"), &stderr)
        }
        Does::Prints(text) => answer(0, (*text).to_owned(), ""),
        Does::ShowsHardware => context.hardware.clone().expect("the records show the machine"),
        Does::ShowsTwoThousandCpus => answer(0, two_thousand_cpus(context), ""),
        Does::NoNode => {
            answer(1, String::new(), "set_mempolicy: Invalid argument\nsetting membind: Invalid argument\n")
        }
    }
}

/// Two nodes with 1,024 CPUs each.
fn two_thousand_cpus(context: &Context<'_>) -> String {
    let old = context.release == Release::V2_0_16;
    let cpus = |first: u32| -> String {
        match old || !context.record.cmd.contains("--cpu-compress") {
            true => (first..first + 1024).map(|cpu| format!(" {cpu}")).collect(),
            false => format!(" {first}-{} (1024)", first + 1023),
        }
    };
    let node =
        |id: u32| format!("node {id} cpus:{}\nnode {id} size: N MB\nnode {id} free: N MB\n", cpus(id * 1024));
    let distances = if old {
        "node distances:\nnode   0   1 \n  0:  10  21 \n  1:  21  10 \n"
    } else {
        "node distances:\nnode     0    1 \n   0:   10   21 \n   1:   21   10 \n"
    };
    format!("available: 2 nodes (0-1)\n{}{}{distances}", node(0), node(1))
}

fn show(
    context: &Context<'_>,
    (policy, preferred): (&str, &str),
    cpus: &[u32],
    memory: &[u32],
    nodes: &[u32],
) -> String {
    let list = |numbers: &[u32]| numbers.iter().map(|number| format!("{number} ")).collect::<String>();
    let mut cpu_nodes: Vec<u32> = cpus.iter().filter_map(|cpu| shown::node_of(context, *cpu)).collect();
    cpu_nodes.dedup();
    let (cpus, cpu_nodes, memory, nodes) = (list(cpus), list(&cpu_nodes), list(memory), list(nodes));
    format!(
        "policy: {policy}\npreferred node: {preferred}\nphyscpubind: {cpus}\ncpubind: {cpu_nodes}\n\
         nodebind: {cpu_nodes}\nmembind: {memory}\npreferred: {nodes}\n"
    )
}

/// The nodes that memory may come from.
fn memory(context: &Context<'_>) -> &'static [u32] {
    match (context.file, group(context)) {
        ("numactl-mixed", _) => &[0, 1, 3],
        ("host-one-node" | "fakesys-hardware-and-numastat", _) => &[0],
        (_, "a") => &[1, 2],
        (_, "c") => &[3],
        (_, "d") => &[0, 2],
        _ => &[0, 1, 2, 3],
    }
}

/// The CPUs of the machine, or of a cpuset.
fn cpus(context: &Context<'_>) -> &'static [u32] {
    if context.file == "numactl-mixed" {
        return &[0, 1, 2, 3, 4, 5, 6, 7];
    }
    match group(context) {
        "a" => &[1, 2],
        "b" => &[2],
        "d" => &[1, 3],
        _ => &[0, 1, 2, 3],
    }
}

fn group<'c>(context: &'c Context<'_>) -> &'c str {
    context.record.cmd.strip_prefix("incg ").and_then(|rest| rest.split(' ').next()).unwrap_or_default()
}

/// Chapter "Nodes with CPUs and without memory": strings for `-N` are about nodes with CPUs.
fn in_cpuset(group: &str, command: &str, release: Release) -> Option<Does> {
    let Some(string) =
        command.strip_prefix("numactl -N ").and_then(|rest| rest.strip_suffix(" numactl --show"))
    else {
        let many = command == "numactl -P all numactl --show" && release == Release::V2_0_16;
        return match (many, group) {
            (true, "a") => Some(Does::Prefers(&[1, 2])),
            (true, "c") => Some(Does::Prefers(&[3])),
            _ => None,
        };
    };
    Some(match (group, string) {
        ("b", "+0") => Does::RunsOn(&[2]),
        ("b", "+1") => Does::Refuses("is out of range"),
        ("b", "+0-1") => Does::Refuses("out of range"),
        ("b", "!+0") => Does::NoCpu,
        ("c", "0" | "+0") => Does::RunsOn(&[0]),
        ("c", "1" | "+1") => Does::RunsOn(&[1]),
        ("c", "2") => Does::RunsOn(&[2]),
        ("c", "+0-1") => Does::RunsOn(&[0, 1]),
        ("c", "1-2") => Does::RunsOn(&[1, 2]),
        ("c", "!1") => Does::RunsOn(&[0, 2, 3]),
        ("c", "!+0") => Does::RunsOn(&[1, 2, 3]),
        ("c", "all" | "0-3") => Does::RunsOn(&[0, 1, 2, 3]),
        ("c" | "d", "!all") => Does::NoCpu,
        ("d", "1" | "+0" | "1-2") => Does::RunsOn(&[1]),
        ("d", "+1" | "!1" | "!+0") => Does::RunsOn(&[3]),
        ("d", "+0-1" | "all" | "0-3") => Does::RunsOn(&[1, 3]),
        _ => return None,
    })
}

/// Chapter "PCI functions behind a bridge".
fn pci_functions_behind_bridges(command: &str) -> Option<Does> {
    match command {
        "numactl -m pci:21:00.0 numactl --show" | "numactl -m pci:0000:21:00.0 numactl --show" => {
            Some(Does::BindsTo(1))
        }
        "numactl -m pci:0000:41:00.0 numactl --show" => Some(Does::BindsTo(2)),
        _ => None,
    }
}

/// The trees are simulated, the process is not: it may use CPUs 0 and 1 and node 0.
fn on_simulated_trees(context: &Context<'_>, command: &str) -> Option<Does> {
    let section = |part: &str| context.record.section.contains(part);
    match command {
        "numactl --hardware" if section("cpu2048") => Some(Does::ShowsTwoThousandCpus),
        "numactl --hardware --cpu-compress" if section("cpu2048") => Some(Does::ShowsTwoThousandCpus),
        "numactl --show" if section("cpu2048") => Some(Does::RunsOn(&[0, 1])),
        "numactl -N 1 true" if section("n32") || section("nodist") || section("bigdist") => {
            Some(Does::Prints(""))
        }
        "numactl -m !0 true" if section("= empty") => Some(Does::NoNode),
        _ => None,
    }
}

/// Chapters "Blocked calls", "Policies of shared memory" and others.
fn on_four_nodes(context: &Context<'_>, command: &str) -> Option<Does> {
    let old = context.release == Release::V2_0_16;
    let mixed = context.file == "numactl-mixed";
    Some(match command {
        "seccomp-run 1 all6 -- numactl -H" | "seccomp-run 1 all6 -- numactl --hardware" if !old => {
            Does::ShowsHardware
        }
        "seccomp-run 38 all6 -- numactl -H" => Does::ShowsHardware,
        "seccomp-run 1 all6 -- numactl -N 0 echo ran" => Does::Prints("ran\n"),
        "numactl --cpunodebind=1,2 numactl --show" if mixed => Does::RunsOn(&[3, 4, 5, 6, 7]),
        "numactl --membind=!0 numactl --show" | "numactl -m !+0 numactl --show" if old && mixed => {
            Does::BindsToMany(&[1, 3])
        }
        "numactl -m !all numactl --show" if old && mixed => Does::NoNode,
        "numactl --length=64k --file /dev/shm/A -d" if old && !mixed => Does::Prints(
            "0000000000000000-0000000000008000: interleave : 0 1 2 3 \n\
             0000000000008000-0000000000010000: bind : 1 \n",
        ),
        "numactl --length=64k --file /dev/shm/A -d" if old => Does::Prints(
            "0000000000000000-0000000000008000: interleave : 0 1 3 \n\
             0000000000008000-0000000000010000: bind : 1 \n",
        ),
        "numactl --length=64k --file /dev/shm/C --preferred=1 --dump" if old => {
            Does::Prints("0000000000000000-0000000000010000: preferred-many : 1 \n")
        }
        "numactl --length=64k --file /dev/shm/C2 --preferred-many=1,2 --dump" if !mixed => {
            Does::Prints("0000000000000000-0000000000010000: preferred-many : 1 2 \n")
        }
        "numactl --length=64k --file /dev/shm/D2 --weighted-interleave=all --dump" if !old && !mixed => {
            Does::Prints("0000000000000000-0000000000010000: weighted-interleave : 0 1 2 3 \n")
        }
        "numactl --length=64k --file /dev/shm/D2 --weighted-interleave=all --dump" if !old => {
            Does::Prints("0000000000000000-0000000000010000: weighted-interleave : 0 1 3 \n")
        }
        _ => return None,
    })
}
