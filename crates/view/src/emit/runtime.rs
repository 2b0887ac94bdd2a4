//! Programs that place threads themselves: OpenMP, PyTorch, Java.

use nodewise_machine::PolicyMode;
use nodewise_measure::placement::TransparentHuge;

use super::{Emitted, Unsaid, Wish, joined};

/// The environment of an OpenMP program: one place per CPU, as many threads.
///
/// # Source
/// OpenMP 5.2, chapter 21: `OMP_PLACES` takes a list of places, `{first:count}` is one of several CPUs.
pub(super) fn openmp(wish: &Wish<'_>) -> Result<Emitted, Unsaid> {
    let program = wish.program_or("PROGRAM");
    let cpus = wish.cpus().unwrap_or(&wish.scope.cpus);
    let places: Vec<String> = cpus.iter().map(|cpu| format!("{{{cpu}}}")).collect();
    let environment =
        format!("OMP_NUM_THREADS={} OMP_PLACES='{}' OMP_PROC_BIND=true", cpus.len(), places.join(","));
    Ok(Emitted::new(format!("{environment} {}", wish.wrapped(&program)?)).note(
        "memory comes from the node of the thread that writes it first, unless a policy says otherwise: let the threads that use it write it first",
    ))
}

/// torchrun's workers inherit the placement.
pub(super) fn torchrun(wish: &Wish<'_>) -> Result<Emitted, Unsaid> {
    let script = wish.program_or("SCRIPT");
    let cpus = wish.cpus().unwrap_or(&wish.scope.cpus).len();
    let wrapped = wish.wrapped(&format!("torchrun --nproc-per-node=WORKERS {script}"))?;
    let interleaves = wish
        .policy()
        .is_some_and(|policy| matches!(policy.mode, PolicyMode::Interleave | PolicyMode::WeightedInterleave));
    let gpus = "buffers that a GPU copies from should come from the node of the GPU: do not interleave workers that have one";
    Ok(Emitted::new(format!("OMP_NUM_THREADS=$(({cpus} / WORKERS)) {wrapped}"))
        .note("WORKERS is the number of processes; workers that each have a GPU are placed better by nodewise run --near gpu:N for each")
        .notes(interleaves.then(|| gpus.to_owned())))
}

/// Java. Its own NUMA allocator switches itself off where CPUs and memory are not those of the same
/// nodes, so that rule is kept.
///
/// # Source
/// java(1): `-XX:+UseNUMA`, `-XX:+UseNUMAInterleaving`, `-XX:+UseTransparentHugePages`.
pub(super) fn java(wish: &Wish<'_>) -> Result<Emitted, Unsaid> {
    let flags = match wish.policy().map(|policy| (policy.mode, &policy.nodes)) {
        // The kernel has interleaved already; the collector must not move pages back.
        Some((PolicyMode::Interleave | PolicyMode::WeightedInterleave, _)) => vec!["-XX:-UseNUMA"],
        Some((PolicyMode::Bind, nodes)) if nodes.len() > 1 => {
            let cpus = wish.cpus().unwrap_or(&wish.scope.cpus);
            let of_nodes = nodes
                .iter()
                .fold(nodewise_machine::CpuSet::new(), |all, node| all.union(&wish.scope.cpus_of(node)));
            if *cpus != of_nodes {
                return Err(Unsaid(format!(
                    "Java switches its NUMA support off where CPUs and memory are not those of the same nodes: memory of nodes {nodes} goes with CPUs {of_nodes}, this placement has CPUs {cpus}"
                )));
            }
            vec!["-XX:+UseNUMA"]
        }
        Some(_) => Vec::new(),
        None if wish.cpus().is_none() => vec!["-XX:+UseNUMA"],
        None => Vec::new(),
    };
    let huge = wish.placement.huge.map(|huge| match huge {
        TransparentHuge::Never => "-XX:-UseTransparentHugePages",
        TransparentHuge::Allowed | TransparentHuge::OnlyAdvised => "-XX:+UseTransparentHugePages",
    });
    let arguments = match wish.program.split_first() {
        Some((first, rest)) if first.rsplit('/').next() == Some("java") => {
            Wish { program: rest, ..*wish }.program_or("-jar APPLICATION.jar")
        }
        _ => wish.program_or("-jar APPLICATION.jar"),
    };
    let java = joined(
        ["java".to_owned()]
            .into_iter()
            .chain(flags.into_iter().chain(huge).map(str::to_owned))
            .chain([arguments]),
    );
    let placement = nodewise_measure::placement::Placement { huge: None, ..wish.placement.clone() };
    Ok(Emitted::new(Wish { placement: &placement, ..*wish }.wrapped(&java)?)
        .note("-XX:+UseNUMA has an effect with the parallel collector, G1 and ZGC"))
}
