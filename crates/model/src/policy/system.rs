//! The policy of programs that have set none: pages from near the CPU, or what `numa_policy=` says.
//!
//! # Source
//! `numa_policy=` of the Raspberry Pi kernels (6.6 and 6.12, `mm/mempolicy.c`), which is in no other kernel:
//! there it is an unknown word, and passed to user space. The text is that of the mount option `mpol=` of
//! tmpfs. Read, and not seen.

use nodewise_machine::settings::parameter;
use nodewise_machine::{KernelRelease, Machine, MemPolicy, ModeFlags, NodeSet, PolicyMode};

use super::set::{Policy, Scope};
use crate::ram::Architecture;
use crate::release::Release;

/// The policy that a machine's programs begin with, by the rules of a release. Whether the kernel knows the
/// parameter, the text of the machine's own says: a number does not show for whom a kernel is built.
pub fn initial_policy(machine: &Machine, release: Release) -> Policy {
    let line = machine.settings.command_line.as_deref().unwrap_or_default();
    if !machine.kernel.as_ref().is_some_and(KernelRelease::is_raspberry_pi) {
        return Policy::DEFAULT;
    }
    let asked = parameter(line, "numa_policy").last();
    let nodes = machine.memory_nodes();
    let scope =
        Scope { allowed: &nodes, max_nodes: Architecture::from_machine(machine).max_nodes(), release };
    // What the kernel does not accept changes nothing.
    let policy = asked.and_then(|asked| of_option(asked, &nodes));
    policy.and_then(|policy| Policy::from_mem_policy(&policy, scope).ok()).unwrap_or(Policy::DEFAULT)
}

/// Reads the mount option `mpol=` of tmpfs: a policy in the kernel's words, whose nodes have memory. `None` for
/// what the kernel refuses.
///
/// Interleaving policies without nodes are over all nodes with memory; a preferred policy has one node, a
/// bound one and one of several preferred nodes some, the default and local none. Balancing is not a flag
/// here.
fn of_option(text: &str, with_memory: &NodeSet) -> Option<MemPolicy> {
    let mut policy: MemPolicy = text.parse().ok()?;
    let known = ModeFlags::STATIC_NODES.with(ModeFlags::RELATIVE_NODES);
    if !policy.nodes.is_subset(with_memory)
        || policy.flags == known
        || policy.flags.contains(ModeFlags::NUMA_BALANCING)
    {
        return None;
    }
    let nodes = policy.nodes.len();
    let fits = match policy.mode {
        PolicyMode::Default | PolicyMode::Local => nodes == 0,
        PolicyMode::Preferred => nodes == 1,
        PolicyMode::Bind | PolicyMode::PreferredMany => nodes > 0,
        PolicyMode::Interleave | PolicyMode::WeightedInterleave => {
            if nodes == 0 {
                policy.nodes = with_memory.clone();
            }
            true
        }
    };
    fits.then_some(policy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::spec;

    fn check(kernel: &str, line: &str, expected: &str) {
        let mut machine = spec::machine("8x(4c 1G); dist=10; arch=aarch64").unwrap();
        machine.kernel = KernelRelease::new(kernel);
        machine.settings.command_line = Some(line.to_owned());
        assert_eq!(initial_policy(&machine, Release::REFERENCE).effective().to_string(), expected, "{line}");
    }

    #[test]
    fn the_kernels_of_the_raspberry_pi_have_a_policy_of_their_own() {
        let pi = "6.12.25+rpt-rpi-2712";
        check(pi, "numa_policy=interleave numa=fake=8", "interleave:0-7");
        check("6.6.31-v8+", "numa_policy=interleave:0-3", "interleave:0-3");
        check("6.12.107+deb13-arm64", "numa_policy=interleave", "default");
        check(pi, "quiet", "default");
        check(pi, "numa_policy=bind:1 numa_policy=prefer:2 quiet", "prefer:2");
        check(pi, "quiet -- numa_policy=interleave", "default");
    }

    #[test]
    fn what_the_kernel_refuses_changes_nothing() {
        for wrong in
            ["interleave:0-8", "prefer", "prefer:1,2", "bind", "local:1", "bind=balancing:1", "x", ""]
        {
            check("6.12.25+rpt-rpi-2712", &format!("numa_policy={wrong}"), "default");
        }
        check("6.12.25+rpt-rpi-2712", "numa_policy=bind=static:1", "bind=static:1");
    }
}
