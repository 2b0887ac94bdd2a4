//! Which process of one moment is which of another, within one start of a machine and beyond.
//!
//! Within one start of a machine a process is its number and its start. After another start, or on another
//! machine, numbers mean nothing: processes correspond by name and service, and those that share both are
//! one entry, because nothing says which of six workers is which.

use std::collections::BTreeMap;

use nodewise_source::parse::cgroup_name::{self, GroupKind};
use nodewise_source::sample::Identity;

/// How the machines of two moments are related.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// One start of one machine: numbers of processes mean the same.
    SameBoot,
    /// Another start of a machine that looks the same.
    OtherBoot,
    /// Machines that differ in nodes, CPUs, memory or processor.
    OtherMachine,
    /// A moment that does not say when its machine started.
    Unknown,
}

impl Relation {
    /// Every relation, with its word in JSON.
    pub const ALL: [(Self, &'static str); 4] = [
        (Self::SameBoot, "same_boot"),
        (Self::OtherBoot, "other_boot"),
        (Self::OtherMachine, "other_machine"),
        (Self::Unknown, "unknown"),
    ];

    /// The word for it in JSON.
    pub fn word(self) -> &'static str {
        Self::ALL.into_iter().find(|(relation, _)| *relation == self).map_or("unknown", |(_, word)| word)
    }

    /// The reason why two moments are less comparable; `None` within one start of a machine.
    pub const fn words(self) -> Option<&'static str> {
        match self {
            Self::SameBoot => None,
            Self::OtherBoot => Some("the machine was restarted in between"),
            Self::OtherMachine => Some("different machines"),
            Self::Unknown => Some("a recording does not say when its machine started"),
        }
    }
}

/// A process that is looked for in another moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate<'a> {
    pub identity: Identity,
    pub name: &'a str,
    /// The path of its control group.
    pub group: Option<&'a str>,
}

/// How processes correspond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MatchedBy {
    /// The same process.
    Identity,
    /// Processes of the same name and service, all together.
    Name,
}

/// Processes that correspond, by their places in the two lists; one side may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessMatch {
    pub by: MatchedBy,
    pub before: Vec<usize>,
    pub after: Vec<usize>,
}

/// Places in the list before and in the one after.
type Places = (Vec<usize>, Vec<usize>);

/// Matches the processes of two moments. Each is in exactly one match.
pub fn matches(before: &[Candidate<'_>], after: &[Candidate<'_>], relation: Relation) -> Vec<ProcessMatch> {
    let mut found = Vec::new();
    let mut same: BTreeMap<Identity, usize> = BTreeMap::new();
    if relation == Relation::SameBoot {
        same.extend(before.iter().enumerate().map(|(at, candidate)| (candidate.identity, at)));
    }
    let mut is_matched = vec![false; before.len()];
    let mut named: BTreeMap<(&str, String), Places> = BTreeMap::new();
    for (at, candidate) in after.iter().enumerate() {
        match same.remove(&candidate.identity) {
            Some(earlier) => {
                is_matched[earlier] = true;
                found.push(ProcessMatch { by: MatchedBy::Identity, before: vec![earlier], after: vec![at] });
            }
            None => named.entry((candidate.name, service(candidate.group))).or_default().1.push(at),
        }
    }
    for (at, candidate) in before.iter().enumerate().filter(|(at, _)| !is_matched[*at]) {
        named.entry((candidate.name, service(candidate.group))).or_default().0.push(at);
    }
    let named = named.into_values();
    found.extend(named.map(|(before, after)| ProcessMatch { by: MatchedBy::Name, before, after }));
    found
}

/// The service of a process as it is called after another start, too: sessions, scopes and containers get new
/// numbers, so that of those only the kind counts.
fn service(group: Option<&str>) -> String {
    let Some(group) = group else { return String::new() };
    let named = cgroup_name::name(group);
    match named.kind {
        GroupKind::Root
        | GroupKind::Service
        | GroupKind::Slice
        | GroupKind::User
        | GroupKind::Lxc
        | GroupKind::VirtualMachine
        | GroupKind::Other => named.name,
        kind @ (GroupKind::Scope
        | GroupKind::Session
        | GroupKind::Docker
        | GroupKind::Podman
        | GroupKind::Crio
        | GroupKind::Containerd
        | GroupKind::Pod) => format!("{kind:?}"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use nodewise_source::process::Pid;
    use proptest::prelude::{Just, Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};

    use super::*;

    fn candidate<'a>(pid: u32, name: &'a str, group: &'a str) -> Candidate<'a> {
        Candidate { identity: Identity { pid: Pid::new(pid), started_ticks: 5 }, name, group: Some(group) }
    }

    /// The names on both sides of each match, in the order of the names.
    fn check(
        relation: Relation,
        before: &[Candidate<'_>],
        after: &[Candidate<'_>],
        expected: &[(MatchedBy, &[u32], &[u32])],
    ) {
        let pids = |all: &[Candidate<'_>], places: &[usize]| {
            places.iter().map(|at| all[*at].identity.pid.number()).collect::<Vec<_>>()
        };
        let found = matches(before, after, relation);
        let found: Vec<(MatchedBy, Vec<u32>, Vec<u32>)> =
            found.iter().map(|one| (one.by, pids(before, &one.before), pids(after, &one.after))).collect();
        let expected: Vec<(MatchedBy, Vec<u32>, Vec<u32>)> =
            expected.iter().map(|(by, one, other)| (*by, one.to_vec(), other.to_vec())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn within_a_boot_a_process_is_its_number_and_its_start() {
        let web = "/system.slice/web.service";
        let before = [candidate(1, "init", "/"), candidate(5, "web", web), candidate(6, "sh", "/")];
        let after = [candidate(1, "init", "/"), candidate(9, "web", web)];
        let expected: [(MatchedBy, &[u32], &[u32]); 3] = [
            (MatchedBy::Identity, &[1], &[1]),
            (MatchedBy::Name, &[6], &[]),
            // The service was restarted.
            (MatchedBy::Name, &[5], &[9]),
        ];
        check(Relation::SameBoot, &before, &after, &expected);
    }

    #[test]
    fn after_another_boot_numbers_mean_nothing() {
        let web = "/system.slice/web.service";
        let before = [candidate(5, "web", web), candidate(6, "web", web), candidate(7, "web", "/user.slice")];
        let after = [candidate(5, "sshd", "/system.slice/ssh.service"), candidate(8, "web", web)];
        let expected: [(MatchedBy, &[u32], &[u32]); 3] =
            [(MatchedBy::Name, &[], &[5]), (MatchedBy::Name, &[7], &[]), (MatchedBy::Name, &[5, 6], &[8])];
        for relation in [Relation::OtherBoot, Relation::OtherMachine, Relation::Unknown] {
            check(relation, &before, &after, &expected);
        }
    }

    #[test]
    fn a_session_keeps_no_number_of_its_own() {
        let session = |number: u32| format!("/user.slice/user-0.slice/session-{number}.scope");
        let (one, other) = (session(3), session(14));
        let before = [candidate(5, "bash", &one)];
        let after = [candidate(9, "bash", &other)];
        check(Relation::OtherBoot, &before, &after, &[(MatchedBy::Name, &[5], &[9])]);
    }

    fn relations() -> impl Strategy<Value = Relation> {
        prop_oneof![
            Just(Relation::SameBoot),
            Just(Relation::OtherBoot),
            Just(Relation::OtherMachine),
            Just(Relation::Unknown)
        ]
    }

    proptest! {
        #[test]
        fn every_process_is_in_one_match_and_equal_lists_match_wholly(
            before in prop::collection::btree_map(0u32..40, ("[ab]", any::<bool>()), 0..12),
            after in prop::collection::btree_map(0u32..40, ("[ab]", any::<bool>()), 0..12),
            relation in relations(),
        ) {
            let list = |all: &BTreeMap<u32, (String, bool)>| -> Vec<(u32, String, bool)> {
                all.iter().map(|(pid, (name, service))| (*pid, name.clone(), *service)).collect()
            };
            let (before, after) = (list(&before), list(&after));
            fn candidates(all: &[(u32, String, bool)]) -> Vec<Candidate<'_>> {
                let group = |service: &bool| if *service { "/system.slice/x.service" } else { "/" };
                all.iter().map(|(pid, name, service)| candidate(*pid, name, group(service))).collect()
            }
            let found = matches(&candidates(&before), &candidates(&after), relation);
            let places = |side: fn(&ProcessMatch) -> &Vec<usize>| {
                let all: Vec<usize> = found.iter().flat_map(|one| side(one).clone()).collect();
                let distinct: BTreeSet<usize> = all.iter().copied().collect();
                (all.len(), distinct.len())
            };
            prop_assert_eq!(places(|one| &one.before), (before.len(), before.len()));
            prop_assert_eq!(places(|one| &one.after), (after.len(), after.len()));
            let itself = matches(&candidates(&before), &candidates(&before), relation);
            prop_assert!(itself.iter().all(|one| one.before == one.after));
        }
    }
}
