//! Switches of the kernel that forbid user namespaces to ordinary users.

use crate::tree::Tree;

/// A switch, and the value with which it forbids them.
///
/// # Source
/// `namespaces(7)` for the first (Linux 4.9); patches of Debian and of Ubuntu for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Its name for `sysctl(8)`.
    pub name: &'static str,
    pub forbids: &'static str,
    /// A value that permits them.
    pub permits: &'static str,
    path: &'static str,
}

const SWITCHES: [Switch; 3] = [
    Switch {
        name: "user.max_user_namespaces",
        forbids: "0",
        permits: "10000",
        path: "/proc/sys/user/max_user_namespaces",
    },
    Switch {
        name: "kernel.unprivileged_userns_clone",
        forbids: "0",
        permits: "1",
        path: "/proc/sys/kernel/unprivileged_userns_clone",
    },
    Switch {
        name: "kernel.apparmor_restrict_unprivileged_userns",
        forbids: "1",
        permits: "0",
        path: "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
    },
];

/// The first switch that forbids user namespaces.
pub fn switched_off(tree: &Tree) -> Option<Switch> {
    let forbids = |switch: &Switch| {
        tree.read_text(switch.path).ok().flatten().is_some_and(|text| text.trim() == switch.forbids)
    };
    SWITCHES.into_iter().find(forbids)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Memory;

    #[test]
    fn the_switch_that_forbids_is_named() {
        let tree = |limit: &str, restrict: &str| {
            let limited = Memory::new().file(SWITCHES[0].path, limit);
            Tree::memory(limited.file(SWITCHES[2].path, restrict))
        };
        assert_eq!(switched_off(&tree("96365\n", "0\n")), None);
        assert_eq!(switched_off(&tree("0\n", "0\n")), Some(SWITCHES[0]));
        assert_eq!(switched_off(&tree("96365\n", "1\n")), Some(SWITCHES[2]));
    }
}
