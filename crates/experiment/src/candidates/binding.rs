//! Sets of CPUs by what they have in common, under the names that a user gives them.

use nodewise_machine::{CpuSet, Machine};

use super::cores::Cores;
use nodewise_machine::placement::Scope;

/// A way to choose CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// One CPU of each core around one last-level cache, or of one node.
    Compact,
    /// As many cores, taken from all nodes and caches.
    Spread,
    /// One CPU of every core.
    OnePerCore,
    /// The CPUs of each node by themselves.
    PerNode,
    /// The CPUs of each last-level cache by themselves.
    PerCache,
}

impl Binding {
    /// Every way.
    pub const ALL: [Self; 5] = [Self::Compact, Self::Spread, Self::OnePerCore, Self::PerNode, Self::PerCache];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Compact => "compact",
            Self::Spread => "spread",
            Self::OnePerCore => "one-per-core",
            Self::PerNode => "per-node",
            Self::PerCache => "per-cache",
        }
    }

    /// The way with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|binding| binding.name() == name)
    }

    /// The sets of CPUs that it gives on a machine, without those that may not be used.
    ///
    /// # Errors
    /// Why it gives none here, as the second half of a sentence.
    pub fn sets(self, machine: &Machine) -> Result<Vec<CpuSet>, &'static str> {
        let scope = Scope::from_machine(machine);
        let cores = Cores::from_machine(machine, &scope);
        let several = |sets: Vec<CpuSet>, why| if sets.len() > 1 { Ok(sets) } else { Err(why) };
        match self {
            Self::Compact => cores.compact().map(|cpus| vec![cpus]),
            Self::Spread => cores.compact().map(|cpus| vec![cores.spread(cpus.len())]),
            Self::OnePerCore => {
                cores.one_thread_each().map(|cpus| vec![cpus]).ok_or("no core has two CPUs that may be used")
            }
            Self::PerNode => {
                several(distinct(scope.cpus_of.values().cloned()), "only one node has CPUs that may be used")
            }
            Self::PerCache => several(
                distinct(machine.last_level_caches().map(|cache| cache.cpus.intersection(&scope.cpus))),
                "all CPUs that may be used share one last-level cache, as far as is known",
            ),
        }
    }
}

/// Sets that are not empty, each once: emulated nodes can list the same CPUs.
fn distinct(sets: impl Iterator<Item = CpuSet>) -> Vec<CpuSet> {
    let mut found: Vec<CpuSet> = Vec::new();
    for set in sets.filter(|set| !set.is_empty()) {
        if !found.contains(&set) {
            found.push(set);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::spec;

    fn check(text: &str, binding: &str, expected: Result<&[&str], &str>) {
        let machine = spec::machine(text).unwrap();
        let found = Binding::named(binding).unwrap().sets(&machine);
        let found = found.map(|sets| sets.iter().map(ToString::to_string).collect::<Vec<_>>());
        let expected = expected.map(|sets| sets.iter().map(ToString::to_string).collect());
        assert_eq!(found, expected, "{binding} on {text}");
    }

    #[test]
    fn each_way_gives_its_sets() {
        let text = "2x(4c2t 8G l3=32M/2c)";
        check(text, "compact", Ok(&["0-1"]));
        check(text, "spread", Ok(&["0,4"]));
        check(text, "one-per-core", Ok(&["0-7"]));
        check(text, "per-node", Ok(&["0-3,8-11", "4-7,12-15"]));
        check(text, "per-cache", Ok(&["0-1,8-9", "2-3,10-11", "4-5,12-13", "6-7,14-15"]));
    }

    #[test]
    fn what_would_change_nothing_says_why() {
        let text = "(4c 8G)";
        check(text, "per-node", Err("only one node has CPUs that may be used"));
        check(
            text,
            "per-cache",
            Err("all CPUs that may be used share one last-level cache, as far as is known"),
        );
        check(text, "one-per-core", Err("no core has two CPUs that may be used"));
        assert_eq!(Binding::named("near"), None);
    }
}
