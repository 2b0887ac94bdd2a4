//! Which control groups a process is in.
//!
//! # Source
//! `/proc/PID/cgroup`: `hierarchy:controllers:path`; the unified hierarchy is `0::/path`.

use super::{Parsed, lines};

/// Membership in one hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The controllers of the hierarchy; empty for the unified one.
    pub controllers: Vec<String>,
    /// The group's path in the hierarchy, as it was read.
    pub path: String,
}

impl Membership {
    /// Whether this is the unified hierarchy (cgroup v2).
    pub fn is_unified(&self) -> bool {
        self.controllers.is_empty()
    }
}

/// Reads every line.
pub fn parse(text: &str) -> Parsed<Vec<Membership>> {
    let mut parsed = Parsed::<Vec<Membership>>::default();
    for (number, line) in lines(text).filter(|(_, line)| !line.is_empty()) {
        let mut parts = line.splitn(3, ':').skip(1);
        match (parts.next(), parts.next()) {
            (Some(controllers), Some(path)) if path.starts_with('/') => {
                let controllers = controllers.split(',').filter(|word| !word.is_empty());
                parsed.value.push(Membership {
                    controllers: controllers.map(str::to_owned).collect(),
                    path: path.to_owned(),
                });
            }
            _ => parsed.problems.add(number, "a number, controllers and a path between colons", line),
        }
    }
    parsed
}

/// The membership in the hierarchy that counts memory: the old one of the controller where there is one, else the
/// unified one.
pub fn of_memory(memberships: &[Membership]) -> Option<&Membership> {
    let old = memberships.iter().find(|member| member.controllers.iter().any(|name| name == "memory"));
    old.or_else(|| memberships.iter().find(|member| member.is_unified()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, proptest};

    #[test]
    fn memberships_are_read() {
        let parsed = parse("7:cpuset,cpu:/jjh\n0::/user.slice/a:b\nx\n");
        assert_eq!(parsed.value[0].controllers, ["cpuset", "cpu"]);
        assert_eq!((parsed.value[1].path.as_str(), parsed.value[1].is_unified()), ("/user.slice/a:b", true));
        assert_eq!(parsed.problems.count(), 1);
    }

    #[test]
    fn memory_is_counted_in_one_hierarchy() {
        let path = |text: &str| of_memory(&parse(text).value).map(|group| group.path.clone());
        assert_eq!(path("4:memory:/old\n2:cpuacct:/\n0::/new\n").as_deref(), Some("/old"));
        assert_eq!(path("2:cpuacct:/\n0::/new\n").as_deref(), Some("/new"));
        assert_eq!(path("2:cpuacct:/\n"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>(), near in "([0-9]:[a-z,]{0,4}:?/?[a-z:]{0,4}\n){0,3}") {
            let _ = parse(&text);
            let _ = parse(&near);
        }
    }
}
