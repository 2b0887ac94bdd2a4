//! Programs that place threads themselves: OpenMP, PyTorch, Java.

use nodewise_machine::placement::HugePages;
use nodewise_machine::{CpuSet, NodeSet, PolicyMode};

use super::{Emitted, Unsaid, Wish, joined};

/// The environment of an OpenMP program: one place per CPU, and as many threads unless a study has found
/// another number. Fewer threads than places are spread over them, as the kernel spread those of the study.
///
/// # Source
/// OpenMP 5.2, chapter 21: `OMP_PLACES` takes a list of places, `{first:count}` is one of several CPUs;
/// `OMP_PROC_BIND` is true, false or a policy as `spread`.
pub(super) fn openmp(wish: &Wish<'_>) -> Result<Emitted, Unsaid> {
    let program = wish.program_or("PROGRAM");
    let cpus = wish.cpus().unwrap_or(&wish.scope.cpus);
    let places: Vec<String> = cpus.iter().map(|cpu| format!("{{{cpu}}}")).collect();
    let threads = wish.threads.count().map_or(cpus.len(), |count| count as usize);
    let bind = if threads < cpus.len() { "spread" } else { "true" };
    let mut variables = wish.threads.assignments();
    if variables.is_empty() {
        variables.push(format!("OMP_NUM_THREADS={threads}"));
    }
    variables.extend([format!("OMP_PLACES='{}'", places.join(",")), format!("OMP_PROC_BIND={bind}")]);
    let line = joined(variables.into_iter().chain([wish.wrapped(&program)?]));
    Ok(Emitted::new(line).note(
        "memory comes from the node of the thread that writes it first, unless a policy says otherwise: let the threads that use it write it first",
    ))
}

/// torchrun's workers inherit the placement, and share the threads.
pub(super) fn torchrun(wish: &Wish<'_>) -> Result<Emitted, Unsaid> {
    let script = wish.program_or("SCRIPT");
    let cpus = wish.cpus().unwrap_or(&wish.scope.cpus).len();
    let share = match wish.threads.count() {
        None => format!("$(({cpus} / WORKERS))"),
        // Rounded up: 0 would mean as many as there are CPUs.
        Some(count) => format!("$((({count} + WORKERS - 1) / WORKERS))"),
    };
    let mut variables: Vec<String> =
        wish.threads.variables().map(|(name, _)| format!("{name}={share}")).collect();
    if variables.is_empty() {
        variables.push(format!("OMP_NUM_THREADS={share}"));
    }
    let wrapped = wish.wrapped(&format!("torchrun --nproc-per-node=WORKERS {script}"))?;
    let interleaves = wish
        .policy()
        .is_some_and(|policy| matches!(policy.mode, PolicyMode::Interleave | PolicyMode::WeightedInterleave));
    let gpus = "buffers that a GPU copies from should come from the node of the GPU: do not interleave workers that have one";
    Ok(Emitted::new(joined(variables.into_iter().chain([wrapped])))
        .note("WORKERS is the number of processes; workers that each have a GPU are placed better by nodewise run --near gpu:N for each")
        .notes(interleaves.then(|| gpus.to_owned())))
}

/// Java's own switch for NUMA.
const USE_NUMA: &str = "-XX:+UseNUMA";

/// Java. Its own NUMA allocator switches itself off where CPUs and memory are not those of the same
/// nodes, so that rule is kept where it is switched on, and a note says so where it is not.
///
/// # Source
/// java(1): `-XX:+UseNUMA`, `-XX:+UseNUMAInterleaving`, `-XX:+UseTransparentHugePages`, `-XX:+UseLargePages`,
/// `-XX:ActiveProcessorCount`.
pub(super) fn java(wish: &Wish<'_>) -> Result<Emitted, Unsaid> {
    let masks = Masks::from_wish(wish);
    let numa = match wish.policy().map(|policy| policy.mode) {
        // The kernel has interleaved already; the collector must not move pages back.
        Some(PolicyMode::Interleave | PolicyMode::WeightedInterleave) => Some("-XX:-UseNUMA"),
        Some(PolicyMode::Bind) if masks.nodes.len() > 1 => {
            masks.mismatch().map_or(Ok(()), |why| Err(Unsaid(why)))?;
            Some(USE_NUMA)
        }
        None if wish.cpus().is_none() => Some(USE_NUMA),
        _ => None,
    };
    let huge = wish.placement.huge.map(|huge| match huge {
        HugePages::NEVER => "-XX:-UseTransparentHugePages",
        HugePages::Transparent(_) => "-XX:+UseTransparentHugePages",
        HugePages::Pool => "-XX:+UseLargePages",
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
            .chain(numa.into_iter().chain(huge).map(str::to_owned))
            .chain([arguments]),
    );
    let placement = nodewise_machine::placement::Placement { huge: None, ..wish.placement.clone() };
    let line = Wish { placement: &placement, ..*wish }.wrapped(&java)?;
    let switched = "-XX:+UseNUMA has an effect with the parallel collector, G1 and ZGC".to_owned();
    let threads = wish.threads.variables().next().map(|(_, count)| {
        format!(
            "Java's own pools look at none of these variables: -XX:ActiveProcessorCount={count} limits them"
        )
    });
    Ok(Emitted::new(wish.with_variables(line))
        .notes((numa == Some(USE_NUMA)).then_some(switched))
        .notes(if numa.is_none() { masks.mismatch() } else { None })
        .notes(threads))
}

/// The CPUs that a placement allows, and the nodes that memory may come from.
struct Masks {
    cpus: CpuSet,
    nodes: NodeSet,
    /// The CPUs of these nodes.
    of_nodes: CpuSet,
}

impl Masks {
    fn from_wish(wish: &Wish<'_>) -> Self {
        let scope = wish.scope;
        let cpus = wish.cpus().unwrap_or(&scope.cpus).clone();
        let Some(nodes) = wish.bound().cloned() else {
            // Every CPU goes with memory of all nodes, also one of a node that has none.
            return Self { cpus, nodes: scope.memory_nodes.clone(), of_nodes: scope.cpus.clone() };
        };
        let of_nodes = nodes.iter().fold(CpuSet::new(), |all, node| all.union(&scope.cpus_of(node)));
        Self { cpus, nodes, of_nodes }
    }

    /// Why Java's NUMA support would not work, as a sentence; `None` where the masks agree.
    fn mismatch(&self) -> Option<String> {
        let Self { cpus, nodes, of_nodes } = self;
        let with = match of_nodes.is_empty() {
            true => "no CPU".to_owned(),
            false => format!("CPUs {of_nodes}"),
        };
        (cpus != of_nodes).then(|| {
            format!(
                "Java switches its NUMA support off where CPUs and memory are not those of the same nodes: memory of nodes {nodes} goes with {with}, this placement has CPUs {cpus}"
            )
        })
    }
}
