//! CPUs and caches of two machines.

use std::collections::{BTreeMap, BTreeSet};

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{Cache, CoreType, Cpu, CpuId, CpuSet, Machine};

use super::{FactGroup, FactValue, NumberOf, Subject, Walk, side_by_side};

/// Compares them.
pub(super) fn compare(walk: &mut Walk<'_>) {
    walk.begin(FactGroup::Cpus);
    let (a, b) = (walk.a, walk.b);
    let possible = [a, b].map(|machine| {
        // Compared as text: not only the CPUs that are online count.
        (!machine.possible_cpus.is_empty()).then(|| FactValue::Text(machine.possible_cpus.to_string()))
    });
    walk.fact("possible_cpus", "possible CPUs", Subject::Machine, possible);
    if walk.both_have("cpus", "CPUs", [a.cpus.len(), b.cpus.len()]) {
        let all = side_by_side(
            a.cpus.iter().map(|(id, cpu)| (*id, cpu)),
            b.cpus.iter().map(|(id, cpu)| (*id, cpu)),
        );
        for (id, both) in all {
            walk.existence("cpu", "CPU", Subject::Cpu(id), both.map(|cpu| cpu.is_some()));
            if let [Some(one), Some(other)] = both {
                cpu(walk, id, [one, other]);
            }
        }
    }
    caches(walk);
}

/// Compares a CPU. One that is offline has no place in a core and in a package.
fn cpu(walk: &mut Walk<'_>, id: CpuId, cpus: [&Cpu; 2]) {
    let subject = || Subject::Cpu(id);
    walk.fact("online", "online", subject(), cpus.map(|cpu| Some(FactValue::Switch(cpu.online))));
    if cpus.iter().any(|cpu| !cpu.online) {
        return;
    }
    let models = [walk.a, walk.b].map(|machine| machine.model_of(id).map(FactValue::text));
    walk.fact("model", "model", subject(), models);
    let types = cpus.map(|cpu| cpu.core_type.map(CoreType::word).map(FactValue::text));
    walk.fact("core_type", "core type", subject(), types);
    let number = |number: Option<u32>| number.map(|number| FactValue::Number(number.into()));
    let frequencies = cpus.map(|cpu| number(cpu.max_frequency_khz));
    walk.fact_in("kHz", "max_frequency_khz", "highest frequency", subject(), frequencies);
    let facts: [(&'static str, &'static str, NumberOf<Cpu>); 7] = [
        ("capacity", "capacity", |cpu| cpu.capacity),
        ("drawer", "drawer", |cpu| cpu.drawer.map(|id| id.number())),
        ("book", "book", |cpu| cpu.book.map(|id| id.number())),
        ("package", "package", |cpu| cpu.package.map(|id| id.number())),
        ("die", "die", |cpu| cpu.die.map(|id| id.number())),
        ("cluster", "cluster", |cpu| cpu.cluster.map(|id| id.number())),
        ("core", "core", |cpu| cpu.core.map(|id| id.number())),
    ];
    for (word, label, of) in facts {
        walk.fact(word, label, subject(), cpus.map(|cpu| number(of(cpu))));
    }
    walk.fact("threads", "threads of the core", subject(), cpus.map(|cpu| set(&cpu.siblings)));
}

fn set(cpus: &CpuSet) -> Option<FactValue> {
    (!cpus.is_empty()).then(|| FactValue::Cpus(cpus.clone()))
}

/// The caches of a machine by name.
struct CachesOf<'m> {
    by_name: BTreeMap<String, Vec<&'m Cache>>,
    /// CPUs with any cache.
    cpus: CpuSet,
}

impl<'m> CachesOf<'m> {
    fn new(machine: &'m Machine) -> Self {
        let mut all = Self { by_name: BTreeMap::new(), cpus: CpuSet::new() };
        for cache in &machine.caches {
            all.by_name.entry(cache.name()).or_default().push(cache);
            all.cpus = all.cpus.union(&cache.cpus);
        }
        all
    }

    fn named(&self, name: &str) -> impl Iterator<Item = &'m Cache> {
        self.by_name.get(name).into_iter().flatten().copied()
    }

    /// The cache of each CPU that has one of this name; of several the first.
    fn by_cpu(&self, name: &str) -> BTreeMap<CpuId, &'m Cache> {
        let (mut caches, mut seen) = (BTreeMap::new(), CpuSet::new());
        for cache in self.named(name) {
            let new = cache.cpus.difference(&seen);
            seen = seen.union(&new);
            caches.extend(new.iter().map(|cpu| (cpu, cache)));
        }
        caches
    }

    /// The first cache of this name whose CPUs are not known.
    fn shared(&self, name: &str) -> Option<&'m Cache> {
        self.named(name).find(|cache| cache.cpus.is_empty())
    }
}

fn caches(walk: &mut Walk<'_>) {
    walk.begin(FactGroup::Caches);
    if !walk.both_have("caches", "caches", [walk.a.caches.len(), walk.b.caches.len()]) {
        return;
    }
    let [a, b] = [CachesOf::new(walk.a), CachesOf::new(walk.b)];
    let known = a.cpus.intersection(&b.cpus);
    let cpus = walk.common.as_ref().map_or_else(|| known.clone(), |common| known.intersection(common));
    let names: BTreeSet<&String> = a.by_name.keys().chain(b.by_name.keys()).collect_set();
    for name in names {
        let caches = [&a, &b].map(|caches| caches.by_cpu(name));
        for cpu in &cpus {
            let both = [caches[0].get(&cpu).copied(), caches[1].get(&cpu).copied()];
            let subject = || Subject::Cpu(cpu);
            if both.iter().any(Option::is_some) {
                let there = both
                    .map(|cache| Some(if cache.is_some() { FactValue::Present } else { FactValue::Absent }));
                walk.fact(name.to_ascii_lowercase(), name.clone(), subject(), there);
            }
            if let [Some(one), Some(other)] = both {
                cache(walk, name, subject, [one, other]);
            }
        }
        if let [Some(one), Some(other)] = [a.shared(name), b.shared(name)] {
            cache(walk, name, || Subject::Machine, [one, other]);
        }
    }
}

fn cache(walk: &mut Walk<'_>, name: &str, subject: impl Fn() -> Subject, both: [&Cache; 2]) {
    let lower = name.to_ascii_lowercase();
    let number = |number: Option<u32>| number.map(|number| FactValue::Number(number.into()));
    let size = both.map(|cache| cache.size.map(FactValue::Size));
    walk.fact(format!("{lower}_bytes"), format!("{name} size"), subject(), size);
    let line = both.map(|cache| number(cache.line_size));
    walk.fact_in("B", format!("{lower}_line_bytes"), format!("{name} line"), subject(), line);
    walk.fact(
        format!("{lower}_ways"),
        format!("{name} ways"),
        subject(),
        both.map(|cache| number(cache.ways)),
    );
    walk.fact(
        format!("{lower}_sets"),
        format!("{name} sets"),
        subject(),
        both.map(|cache| number(cache.sets)),
    );
    walk.fact(
        format!("{lower}_cpus"),
        format!("{name} shared by"),
        subject(),
        both.map(|cache| set(&cache.cpus)),
    );
}
