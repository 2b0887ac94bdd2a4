use super::super::tests::check;
use super::*;
use crate::arguments::BindOptions;
use crate::call::PolicyQuery;
use crate::support::Support;
use nodewise_machine::{Bytes, CpuSet, KernelRelease, MemPolicy, NodeId, NodeSet, PolicyMode};

fn set() -> Call {
    Call::SetMempolicy { policy: MemPolicy::new(PolicyMode::Bind, NodeSet::from([0, 1])) }
}

fn migrate(task: Task) -> Call {
    Call::MigratePages { task, from: NodeSet::from([0]), to: NodeSet::from([1]) }
}

fn filter_in(container: Option<Container>) -> Circumstances {
    Circumstances { seccomp: Some(SeccompMode::Filter), container, ..Circumstances::default() }
}

/// Checks a call that docker's default profile blocks, with the mend line that must come.
fn check_mend(container: Container, call: Call, expected: &str) {
    let name = call.name();
    let what = call.to_string();
    for (errno, answer) in [(Errno::EPERM, "EPERM"), (Errno::ENOSYS, "ENOSYS")] {
        check(
            call.clone(),
            errno,
            &filter_in(Some(container)),
            Limit::Seccomp,
            &format!("{what}: a seccomp filter answers {name} with {answer}; {expected}"),
        );
    }
}

#[test]
fn a_filtered_policy_call_names_the_line_for_its_container() {
    for (container, line) in [
        (Container::Docker, "start the container with: docker run --cap-add=SYS_NICE"),
        (
            Container::Kubernetes,
            "add to the container: securityContext: {capabilities: {add: [\"SYS_NICE\"]}}",
        ),
        (
            Container::Podman,
            "start the container with: podman run --cap-add=SYS_NICE, and where that is not enough \
             --security-opt seccomp=PROFILE.json, a profile that allows set_mempolicy",
        ),
        (Container::SystemdService, "add to the service: SystemCallFilter=@resources"),
        (Container::Nspawn, "start the container with: systemd-nspawn --system-call-filter=@resources"),
        (Container::Lxc, "allow set_mempolicy in the container's profile: lxc.seccomp.profile"),
    ] {
        check_mend(container, set(), line);
    }
}

#[test]
fn a_filtered_page_call_names_a_profile_because_no_capability_opens_it() {
    for (container, line) in [
        (
            Container::Docker,
            "start the container with: docker run --security-opt seccomp=PROFILE.json, a copy of the \
             default profile that allows move_pages (or seccomp=unconfined)",
        ),
        (
            Container::Podman,
            "start the container with: podman run --security-opt seccomp=PROFILE.json, a copy of its \
             profile that allows move_pages (or seccomp=unconfined)",
        ),
        (
            Container::Kubernetes,
            "add to the container: securityContext: {seccompProfile: {type: Localhost, \
             localhostProfile: PROFILE.json}}, a profile that allows move_pages (or type: Unconfined)",
        ),
        (Container::SystemdService, "add to the service: SystemCallFilter=@resources"),
    ] {
        let call = Call::MovePages { task: Task::CURRENT, pages: 4, targets: None };
        check_mend(container, call, line);
    }
}

#[test]
fn a_capability_that_is_there_already_is_not_asked_for() {
    check(
        set(),
        Errno::EPERM,
        &Circumstances { sys_nice: Some(true), ..filter_in(Some(Container::Docker)) },
        Limit::Seccomp,
        "set_mempolicy(bind, nodes 0-1): a seccomp filter answers set_mempolicy with EPERM; start the \
         container with: docker run --security-opt seccomp=PROFILE.json, a copy of the default profile \
         that allows set_mempolicy (or seccomp=unconfined)",
    );
}

#[test]
fn a_filter_of_an_unknown_container_names_every_line() {
    check(
        set(),
        Errno::EPERM,
        &filter_in(None),
        Limit::Seccomp,
        "set_mempolicy(bind, nodes 0-1): a seccomp filter answers set_mempolicy with EPERM; in a \
         container add the capability SYS_NICE (docker or podman run --cap-add=SYS_NICE; Kubernetes \
         securityContext: {capabilities: {add: [\"SYS_NICE\"]}}); in a systemd service set \
         SystemCallFilter=@resources get_mempolicy",
    );
    check(
        Call::SchedSetaffinity { task: Task::CURRENT, cpus: CpuSet::from([1]) },
        Errno::EPERM,
        &filter_in(None),
        Limit::Seccomp,
        "sched_setaffinity(self, CPU 1): a seccomp filter answers sched_setaffinity with EPERM; allow \
         sched_setaffinity in the filter (docker or podman run --security-opt seccomp=PROFILE.json; in \
         a systemd service SystemCallFilter=@resources)",
    );
}

#[test]
fn get_mempolicy_is_in_no_group_of_systemd() {
    check(
        Call::GetMempolicy { query: PolicyQuery::Thread },
        Errno::EPERM,
        &filter_in(Some(Container::SystemdService)),
        Limit::Seccomp,
        "get_mempolicy(policy of this thread): a seccomp filter answers get_mempolicy with EPERM; add to \
         the service: SystemCallFilter=get_mempolicy",
    );
}

#[test]
fn a_policy_call_refused_where_the_filter_is_not_known_is_still_a_filter() {
    // The kernel has no rule that answers set_mempolicy with EPERM.
    check(
        set(),
        Errno::EPERM,
        &Circumstances { container: Some(Container::Docker), ..Circumstances::default() },
        Limit::Seccomp,
        "set_mempolicy(bind, nodes 0-1): a seccomp filter answers set_mempolicy with EPERM; start the \
         container with: docker run --cap-add=SYS_NICE",
    );
}

#[test]
fn a_policy_call_refused_without_a_filter_is_a_sandbox() {
    let here = Circumstances { seccomp: Some(SeccompMode::Off), ..Circumstances::default() };
    check(
        set(),
        Errno::EPERM,
        &here,
        Limit::Sandbox,
        "set_mempolicy(bind, nodes 0-1): operation not permitted although Linux allows this call to \
         everybody and no seccomp filter is active: a sandbox or a security module refuses it; run \
         outside of the sandbox",
    );
}

#[test]
fn a_call_that_does_not_exist_without_a_filter_is_a_kernel_without_numa() {
    let here = Circumstances { seccomp: Some(SeccompMode::Off), ..Circumstances::default() };
    check(
        set(),
        Errno::ENOSYS,
        &here,
        Limit::KernelBuild,
        "set_mempolicy(bind, nodes 0-1): this kernel was built without NUMA (CONFIG_NUMA); boot a kernel \
         that has it",
    );
    check(
        Call::Getcpu,
        Errno::ENOSYS,
        &here,
        Limit::KernelBuild,
        "getcpu(): this kernel was built without this call; boot a kernel that has it",
    );
    check(
        migrate(Task::CURRENT),
        Errno::ENOSYS,
        &Circumstances { container: Some(Container::Docker), ..Circumstances::default() },
        Limit::Unknown,
        "migrate_pages(self, node 0 to node 1): this kernel was built without NUMA (CONFIG_NUMA), or a \
         seccomp filter says that it does not exist; start the container with: docker run \
         --security-opt seccomp=PROFILE.json, a copy of the default profile that allows migrate_pages \
         (or seccomp=unconfined)",
    );
}

#[test]
fn a_home_node_on_an_old_kernel_is_the_kernel_even_under_a_filter() {
    let home = || Call::SetHomeNode { address: 0x1000, length: Bytes::MIB, node: NodeId::new(1) };
    let old = Circumstances { release: KernelRelease::new("5.15.0-91-generic"), ..filter_in(None) };
    check(
        home(),
        Errno::ENOSYS,
        &old,
        Limit::KernelRelease,
        "set_mempolicy_home_node(0x1000, 1 MiB, node 1): set_mempolicy_home_node needs Linux 5.17 or \
         newer: this is 5.15.0-91-generic; leave the home node out: allocations then start at the \
         CPU's node",
    );
    let podman = Circumstances {
        release: KernelRelease::new("6.12.107+deb13-amd64"),
        ..filter_in(Some(Container::Podman))
    };
    check(
        home(),
        Errno::ENOSYS,
        &podman,
        Limit::Seccomp,
        "set_mempolicy_home_node(0x1000, 1 MiB, node 1): a seccomp filter answers \
         set_mempolicy_home_node with ENOSYS; start the container with: podman run --cap-add=SYS_NICE, \
         and where that is not enough --security-opt seccomp=PROFILE.json, a profile that allows \
         set_mempolicy_home_node",
    );
}

/// Returns the result of a probe with one answer for the page calls.
fn support(pages: Availability) -> Support {
    let present = Availability::Present;
    Support {
        get_mempolicy: present,
        set_mempolicy: present,
        mbind: present,
        home_node: present,
        migrate_pages: pages,
        move_pages: pages,
        set_affinity: present,
        transparent_huge: present,
        modes: [present; PolicyMode::ALL.len()],
        balancing_bind: present,
        balancing_preferred_many: present,
    }
}

#[test]
fn a_refusal_about_another_process_is_a_filter_only_where_the_call_is_seen_blocked() {
    let task = Task::new(42).unwrap();
    let blocked = Availability::Blocked(Errno::EPERM);
    let here = |pages| Circumstances { support: Some(support(pages)), ..filter_in(Some(Container::Podman)) };
    check(
        migrate(task),
        Errno::EPERM,
        &here(blocked),
        Limit::Seccomp,
        "migrate_pages(pid 42, node 0 to node 1): a seccomp filter answers migrate_pages with EPERM; \
         start the container with: podman run --security-opt seccomp=PROFILE.json, a copy of its \
         profile that allows migrate_pages (or seccomp=unconfined)",
    );
    let explanation =
        crate::explain(&CallError::new(migrate(task), Errno::EPERM), &here(Availability::Present));
    assert_eq!(explanation.limit, Limit::Privilege);
}

#[test]
fn ones_own_pages_and_cpus_are_refused_by_a_filter_alone() {
    let here = Circumstances { allowed_nodes: Some(NodeSet::from([0, 1])), ..filter_in(None) };
    let own_range = Call::Mbind {
        address: 0x1000,
        length: Bytes::MIB,
        policy: MemPolicy::DEFAULT,
        options: BindOptions::default(),
    };
    for call in [
        own_range,
        migrate(Task::CURRENT),
        Call::MovePages { task: Task::CURRENT, pages: 1, targets: None },
        Call::SchedGetaffinity { task: Task::CURRENT },
        Call::GetThpDisable,
    ] {
        let explanation = crate::explain(&CallError::new(call, Errno::EPERM), &here);
        assert_eq!(explanation.limit, Limit::Seccomp, "{explanation}");
    }
}
