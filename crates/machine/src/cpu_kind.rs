//! CPUs that differ in speed: performance and efficiency cores, big and little ones.

use std::collections::BTreeMap;

use crate::cpu::{CoreType, Cpu};
use crate::id::CpuId;
use crate::machine::Machine;
use crate::order::Order as _;
use crate::set::CpuSet;

/// CPUs whose speed or highest frequency differs by no more than this part are of one kind: favoured cores
/// of a server run a few percent faster than the others, while the slow cores of every hybrid processor
/// known are at least a quarter slower.
const TOLERANCE: u32 = 10;

/// Online CPUs of one speed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuKind {
    /// The kind in words: `performance cores`, `Cortex-A76`, `fast CPUs`.
    pub name: String,
    /// The type of core, where the kernel names it.
    pub core_type: Option<CoreType>,
    /// The model, where the models of a machine differ.
    pub model: Option<String>,
    /// The largest `cpu_capacity` among them.
    pub capacity: Option<u32>,
    /// The highest frequency among them, in kHz.
    pub max_frequency_khz: Option<u32>,
    pub cpus: CpuSet,
}

impl Machine {
    /// The kinds of online CPUs, fastest first: by type of core and model, then by capacity and by the
    /// highest frequency, both with a tolerance of 10 %. One kind where CPUs do not differ.
    pub fn cpu_kinds(&self) -> Vec<CpuKind> {
        let mut groups: BTreeMap<(Option<CoreType>, Option<&str>), Vec<&Cpu>> = BTreeMap::new();
        let online = || self.cpus.values().filter(|cpu| cpu.online);
        // What is known of some CPUs only does not distinguish the others.
        let typed = online().all(|cpu| cpu.core_type.is_some());
        let modelled = online().all(|cpu| self.model_of(cpu.id).is_some());
        for cpu in online() {
            let model = self.model_of(cpu.id).filter(|_| modelled);
            groups.entry((cpu.core_type.filter(|_| typed), model)).or_default().push(cpu);
        }
        let several = self.cpu_models.len() > 1;
        let mut kinds = Vec::new();
        for ((core_type, model), cpus) in groups {
            let by_capacity = split(cpus, |cpu| cpu.capacity);
            for cpus in by_capacity.into_iter().flat_map(|cpus| split(cpus, |cpu| cpu.max_frequency_khz)) {
                kinds.push(CpuKind {
                    name: String::new(),
                    core_type,
                    model: model.filter(|_| several).map(ToOwned::to_owned),
                    capacity: cpus.iter().filter_map(|cpu| cpu.capacity).max(),
                    max_frequency_khz: cpus.iter().filter_map(|cpu| cpu.max_frequency_khz).max(),
                    cpus: cpus.iter().map(|cpu| cpu.id).collect(),
                });
            }
        }
        let fastest_first = |kind: &CpuKind| {
            (
                std::cmp::Reverse(kind.capacity),
                kind.core_type,
                std::cmp::Reverse(kind.max_frequency_khz),
                kind.cpus.first(),
            )
        };
        kinds.order_by_key(fastest_first);
        let count = kinds.len();
        for (at, kind) in kinds.iter_mut().enumerate() {
            kind.name = kind.words(at, count);
        }
        kinds
    }

    /// The model of a CPU.
    pub fn model_of(&self, cpu: CpuId) -> Option<&str> {
        self.cpu_models.iter().find(|model| model.cpus.contains(cpu)).map(|model| model.name.as_str())
    }
}

/// CPUs with a similar number: each group's lie within the tolerance below its highest. One group where the
/// number of a CPU is not known.
fn split(cpus: Vec<&Cpu>, number: impl Fn(&Cpu) -> Option<u32>) -> Vec<Vec<&Cpu>> {
    let Some(mut values) = cpus.iter().map(|cpu| number(cpu)).collect::<Option<Vec<u32>>>() else {
        return vec![cpus];
    };
    values.order_by(|a, b| b.cmp(a));
    let mut tops: Vec<u32> = Vec::new();
    for value in values {
        let near = |top: &u32| u64::from(value) * 100 >= u64::from(*top) * u64::from(100 - TOLERANCE);
        if !tops.last().is_some_and(near) {
            tops.push(value);
        }
    }
    let group = |cpu: &Cpu| number(cpu).map(|value| tops.iter().filter(|top| **top >= value).count());
    let mut groups: BTreeMap<Option<usize>, Vec<&Cpu>> = BTreeMap::new();
    for cpu in cpus {
        groups.entry(group(cpu)).or_default().push(cpu);
    }
    groups.into_values().collect()
}

impl CpuKind {
    /// The name of the kind at a place of this many, fastest first.
    fn words(&self, at: usize, count: usize) -> String {
        match (self.core_type, &self.model, at, count) {
            (Some(core_type), ..) => format!("{} cores", core_type.word()),
            (None, Some(model), ..) => model.clone(),
            (None, None, _, 1) => "CPUs".to_owned(),
            (None, None, 0, _) => "fast CPUs".to_owned(),
            (None, None, at, count) if at + 1 == count => "slow CPUs".to_owned(),
            (None, None, ..) => "CPUs in between".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::CpuModel;
    use crate::spec;

    /// Four CPUs, changed one by one; the sets of CPUs of each kind.
    fn check(change: impl Fn(u32, &mut Cpu), models: &[(&str, &str)], expected: &[(&str, &str)]) {
        let mut machine = spec::machine("(4c 1G)").unwrap();
        for (id, cpu) in &mut machine.cpus {
            change(id.number(), cpu);
        }
        let model =
            |(name, cpus): &(&str, &str)| CpuModel { name: (*name).to_owned(), cpus: cpus.parse().unwrap() };
        machine.cpu_models = models.iter().map(model).collect();
        let kinds: Vec<(String, String)> =
            machine.cpu_kinds().iter().map(|kind| (kind.name.clone(), kind.cpus.to_string())).collect();
        let kinds: Vec<(&str, &str)> =
            kinds.iter().map(|(name, cpus)| (name.as_str(), cpus.as_str())).collect();
        assert_eq!(kinds, expected);
    }

    #[test]
    fn favoured_cores_are_no_kind() {
        check(|id, cpu| cpu.max_frequency_khz = Some(5_000_000 + id * 100_000), &[], &[("CPUs", "0-3")]);
        check(|_, _| (), &[("Example", "0-3")], &[("CPUs", "0-3")]);
        // One clock for both CPUs: some drivers have a file for the first alone.
        check(|id, cpu| cpu.max_frequency_khz = Some(800_000).filter(|_| id == 0), &[], &[("CPUs", "0-3")]);
        check(|_, _| (), &[("A", "0"), ("B", "1-2")], &[("CPUs", "0-3")]);
    }

    #[test]
    fn slow_cores_are_a_kind_by_type_capacity_frequency_or_model() {
        let slow = |id: u32| id < 2;
        check(
            |id, cpu| {
                cpu.core_type = Some(if slow(id) { CoreType::Efficiency } else { CoreType::Performance });
            },
            &[],
            &[("performance cores", "2-3"), ("efficiency cores", "0-1")],
        );
        check(
            |id, cpu| cpu.capacity = Some(if slow(id) { 446 } else { 1024 }),
            &[],
            &[("fast CPUs", "2-3"), ("slow CPUs", "0-1")],
        );
        check(
            |id, cpu| cpu.max_frequency_khz = Some(if slow(id) { 3_900_000 } else { 5_200_000 }),
            &[],
            &[("fast CPUs", "2-3"), ("slow CPUs", "0-1")],
        );
        check(
            |id, cpu| cpu.capacity = Some(if slow(id) { 446 } else { 1024 }),
            &[("Cortex-A55", "0-1"), ("Cortex-A76", "2-3")],
            &[("Cortex-A76", "2-3"), ("Cortex-A55", "0-1")],
        );
    }

    #[test]
    fn steps_are_counted_from_the_fastest_and_not_from_the_next() {
        // 100, 92, 85, 78: each within a tenth of the one before.
        let speeds = [1000, 920, 850, 780];
        check(
            |id, cpu| cpu.capacity = Some(speeds[id as usize]),
            &[],
            &[("fast CPUs", "0-1"), ("slow CPUs", "2-3")],
        );
    }
}
