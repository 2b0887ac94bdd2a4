//! CPUs close together, far apart, and one per core.

use std::collections::BTreeMap;

use nodewise_machine::{CpuId, CpuSet, Machine};

use nodewise_machine::placement::Scope;

/// The cores that may be used, each by its first CPU, grouped by what they share.
pub(super) struct Cores {
    /// The first CPU of every core.
    firsts: CpuSet,
    /// Whether some core has more than one CPU that may be used.
    threads: bool,
    /// Cores by last-level cache.
    by_cache: Vec<CpuSet>,
    by_node: Vec<CpuSet>,
}

impl Cores {
    /// The cores of a machine.
    pub fn from_machine(machine: &Machine, scope: &Scope) -> Self {
        let (mut firsts, mut threads) = (CpuSet::new(), false);
        for core in machine.cores().values() {
            let usable = core.intersection(&scope.cpus);
            firsts.extend(usable.first());
            threads |= usable.len() > 1;
        }
        let caches = machine.last_level_caches().map(|cache| &cache.cpus);
        let by_cache = groups(caches, &firsts);
        let by_node = groups(scope.cpus_of.values(), &firsts);
        Self { firsts, threads, by_cache, by_node }
    }

    /// One CPU of each core around one last-level cache, or of one node where caches say nothing:
    /// the group with the most cores, the first of equals.
    pub fn compact(&self) -> Result<CpuSet, &'static str> {
        let groupings = [&self.by_cache, &self.by_node];
        for groups in groupings {
            let largest = groups.iter().map(CpuSet::len).max().unwrap_or(0);
            // `max_by_key` would take the last of equals.
            let group = groups.iter().find(|group| group.len() == largest);
            if let Some(group) = group.filter(|_| largest > 1 && groups.len() > 1) {
                return Ok(group.clone());
            }
        }
        Err(if groupings.iter().any(|groups| groups.len() == 1) {
            "all CPUs that may be used share one last-level cache or one node"
        } else {
            "no two cores share a last-level cache or a node"
        })
    }

    /// As many cores as wanted, dealt out over nodes, in each over last-level caches, and then over
    /// cores; one CPU of each.
    pub fn spread(&self, wanted: usize) -> CpuSet {
        let mut by_node: Vec<Vec<CpuId>> =
            self.by_node.iter().map(|node| deal(&groups(self.by_cache.iter(), node))).collect();
        let placed: CpuSet = by_node.iter().flatten().copied().collect();
        by_node.push(self.firsts.difference(&placed).iter().collect());
        deal_lists(&by_node).into_iter().take(wanted).collect()
    }

    /// One CPU of each core, where cores have several.
    pub fn one_thread_each(&self) -> Option<CpuSet> {
        self.threads.then(|| self.firsts.clone())
    }
}

/// The parts of `all` that lie in each of these sets, without empty ones and repeats, and in the end
/// each member that lies in none of them as a part of its own.
fn groups<'a>(sets: impl Iterator<Item = &'a CpuSet>, all: &CpuSet) -> Vec<CpuSet> {
    let mut rest = all.clone();
    let mut by_first: BTreeMap<Option<CpuId>, CpuSet> = BTreeMap::new();
    for set in sets {
        let group = set.intersection(&rest);
        if !group.is_empty() {
            rest = rest.difference(&group);
            by_first.insert(group.first(), group);
        }
    }
    by_first.extend(rest.iter().map(|cpu| (Some(cpu), CpuSet::from_iter([cpu]))));
    by_first.into_values().collect()
}

fn deal(groups: &[CpuSet]) -> Vec<CpuId> {
    deal_lists(&groups.iter().map(|group| group.iter().collect()).collect::<Vec<_>>())
}

/// First the first of each list, then the second of each, and so on.
fn deal_lists(lists: &[Vec<CpuId>]) -> Vec<CpuId> {
    let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
    (0..longest).flat_map(|turn| lists.iter().filter_map(move |list| list.get(turn).copied())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::spec;

    fn cores(text: &str) -> Cores {
        let machine = spec::machine(text).unwrap();
        let scope = Scope::from_machine(&machine);
        Cores::from_machine(&machine, &scope)
    }

    fn check(text: &str, compact: &str, spread: &str, one_thread_each: Option<&str>) {
        let cores = cores(text);
        let found = cores.compact().unwrap();
        assert_eq!(found.to_string(), compact, "compact on {text}");
        assert_eq!(cores.spread(found.len()).to_string(), spread, "spread on {text}");
        let each = cores.one_thread_each().map(|cpus| cpus.to_string());
        assert_eq!(each.as_deref(), one_thread_each, "one thread per core on {text}");
    }

    #[test]
    fn compact_is_one_cache_and_spread_takes_as_many_cores_from_all() {
        check("2x(8c 8G l3=32M/4c)", "0-3", "0,4,8,12", None);
        check("(8c2t 8G l3=16M/4c)", "0-3", "0-1,4-5", Some("0-7"));
    }

    #[test]
    fn without_caches_a_node_is_compact() {
        check("4x(4c2t 8G)", "0-3", "0,4,8,12", Some("0-15"));
        check("(2c 8G) (4c 8G)", "2-5", "0-3", None);
    }

    #[test]
    fn one_cache_and_one_node_leave_no_choice() {
        let why = "all CPUs that may be used share one last-level cache or one node";
        assert_eq!(cores("(4c 8G l3=8M/4c)").compact(), Err(why));
        assert_eq!(cores("(4c 8G)").compact(), Err(why));
        let why = "no two cores share a last-level cache or a node";
        assert_eq!(cores("4x(1c 8G)").compact(), Err(why));
    }

    #[test]
    fn cores_outside_every_cache_are_dealt_too() {
        let mut machine = spec::machine("(8c 8G l3=8M/4c)").unwrap();
        machine.caches.retain(|cache| !cache.cpus.contains(CpuId::new(7)));
        let scope = Scope::from_machine(&machine);
        let cores = Cores::from_machine(&machine, &scope);
        assert_eq!(cores.compact().unwrap().to_string(), "0-3");
        assert_eq!(cores.spread(5).to_string(), "0,4-7");
    }
}
