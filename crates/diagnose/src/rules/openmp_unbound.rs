//! Threads of OpenMP run on several nodes, and nothing binds them.

use std::collections::BTreeMap;

use nodewise_machine::printable::printable;
use nodewise_source::paths::shown;

use super::words::{self, nodes};
use super::{first_touch_on_one, thread_wanders};
use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Subject, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::{ProcessState, Situation};

/// Libraries of OpenMP: of GCC, LLVM, Intel.
const LIBRARIES: [&str; 3] = ["libgomp.so", "libomp.so", "libiomp5.so"];
/// Binds threads, or says that they are not bound.
const BIND: &str = "OMP_PROC_BIND";
/// Variables that bind threads where [`BIND`] is not set.
const PLACES: [&str; 3] = ["OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"];

pub static RULE: Rule = Rule {
    id: "openmp-unbound",
    title: "threads of OpenMP are not bound, and wander or lie away from their memory",
    severity: Severity::Note,
    on: with_distance,
    needs: &[Fact::Rates, Fact::Pages, Fact::Policies, Fact::Variables],
    sign: "a program that has libgomp, libomp or libiomp5 mapped, with OMP_PROC_BIND=false among its variables, or without it and \
           without OMP_PLACES, GOMP_CPU_AFFINITY and a KMP_AFFINITY other than none and disabled, about which thread-wanders or first-touch-on-one finds something",
    thresholds: &[],
    traps: "threads that the program, its launcher or a cpuset bound; a library that is mapped and not used",
    explains: &["thread-wanders", "first-touch-on-one"],
    sources: &[
        "numaprof#47",
        "muscle3#404",
        "libgomp manual, OMP_PROC_BIND: true where OMP_PLACES or GOMP_CPU_AFFINITY is set, otherwise false",
    ],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let effects = [&thread_wanders::RULE, &first_touch_on_one::RULE];
    let effects: Vec<_> = effects.iter().flat_map(|rule| (rule.check)(situation)).collect();
    let suspects = situation.significant().filter(|process| is_unbound(process));
    suspects
        .filter_map(|process| {
            let is_its = |effect: &&RuleFinding| {
                matches!(&effect.subject, Subject::Process { identity, .. } if *identity == process.process.identity)
            };
            Some(find(process, effects.iter().find(is_its)?))
        })
        .collect()
}

/// Whether a program has a library of OpenMP, and no variable that binds its threads.
fn is_unbound(process: &ProcessState<'_>) -> bool {
    let variables = process.program.and_then(|program| program.variables.as_ref());
    variables.is_some_and(|variables| !binds(variables)) && library(process).is_some()
}

fn binds(variables: &BTreeMap<String, String>) -> bool {
    let of = |name: &str| variables.get(name).map(|value| value.trim().to_ascii_lowercase());
    let is_none = |name: &str, value: &str| {
        let has_type = || value.split(',').any(|word| ["none", "disabled"].contains(&word.trim()));
        value.is_empty() || (name == "KMP_AFFINITY" && has_type())
    };
    match of(BIND).as_deref() {
        Some("false") => false,
        Some(value) if !value.is_empty() => true,
        _ => PLACES.iter().any(|name| of(name).is_some_and(|value| !is_none(name, &value))),
    }
}

fn library<'p>(process: &'p ProcessState<'_>) -> Option<&'p str> {
    let files = process.mappings?.mappings.iter().filter_map(|mapping| mapping.name.as_deref());
    let mut names = files.filter_map(|path| path.rsplit('/').next());
    names.find(|name| LIBRARIES.iter().any(|library| name.starts_with(library)))
}

fn find(process: &ProcessState<'_>, effect: &RuleFinding) -> RuleFinding {
    let threads = process.process.threads;
    let runs = process.runs_on();
    let summary = match runs.len() {
        0 | 1 => format!("nothing binds the {threads} threads of {}", words::process(process)),
        _ => format!(
            "nothing binds the {threads} threads of {}, which run on {}",
            words::process(process),
            nodes(&runs)
        ),
    };
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, process.subject(), summary);
    finding.confidence = Confidence::Likely;
    finding.concerns = effect.concerns;
    let bind = process.program.and_then(|program| program.variables.as_ref()?.get(BIND));
    let bind = if bind.is_some_and(|value| !value.trim().is_empty()) { "false" } else { "not set" };
    let library = printable(library(process).unwrap_or_default()).into_owned();
    finding.evidence = vec![
        Evidence::new("library", Value::text(library), shown::MAPS),
        Evidence::new(BIND, Value::text(bind), shown::VARIABLES),
        Evidence::new("threads", Value::Count(threads.into(), "threads"), shown::STAT),
    ];
    finding.mends = vec![Mend {
        commands: vec!["OMP_PROC_BIND=spread OMP_PLACES=cores COMMAND".to_owned()],
        ..Mend::words(
            "a core for each thread; close instead of spread where they share much. The first write in a parallel loop brings \
             the memory to them",
            Scope::Restart,
        )
    }];
    finding.experiment = Some("nodewise tune -- COMMAND".to_owned());
    finding.nodes = effect.nodes.clone();
    finding
}
