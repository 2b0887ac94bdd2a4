//! The owner of a process's placement, and the owner's commands for another one.
//!
//! # Source
//! The manual pages of systemctl(1), docker-update(1), virsh(1) and srun(1); the path of the control group says
//! who the owner is.

use nodewise_machine::{Bytes, CpuSet, NodeSet};
use nodewise_source::sample::{GroupKind, ProcessSample, group_names_up};

use crate::finding::{Mend, Owner, Scope};

impl Owner {
    /// The owner by the path of the control group.
    pub fn from_process(process: &ProcessSample) -> Self {
        Self::from_group(process.group.as_deref().unwrap_or_default())
    }

    /// The owner of the processes in a control group.
    pub fn from_group(path: &str) -> Self {
        // Units of a user's own manager are not those of the system.
        if path.split('/').any(|part| part.starts_with("user@")) {
            return Self::Itself;
        }
        let mut service = None;
        for group in group_names_up(path) {
            match group.kind {
                GroupKind::Pod => return Self::Kubelet,
                GroupKind::Docker | GroupKind::Podman if !path.contains("kubepods") => {
                    let runs = if group.kind == GroupKind::Docker { "docker" } else { "podman" };
                    return Self::Container(runs, group.name);
                }
                GroupKind::VirtualMachine => return Self::Libvirt(group.name),
                GroupKind::Service => service = service.or(Some(group.name)),
                _ => {}
            }
        }
        if path.contains("kubepods") {
            return Self::Kubelet;
        }
        let is_step = path.split('/').any(|part| {
            part.strip_prefix("job_")
                .is_some_and(|job| !job.is_empty() && job.bytes().all(|b| b.is_ascii_digit()))
        });
        if is_step {
            return Self::Slurm;
        }
        match service {
            Some(name) if name.ends_with(".service") => Self::Service(name),
            Some(name) => Self::Service(format!("{name}.service")),
            None => Self::Itself,
        }
    }

    /// The name, where a shell takes it as it is.
    fn plain(&self) -> Option<&str> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "@_.:-".contains(c);
        self.name().filter(|name| !name.is_empty() && !name.starts_with('-') && name.chars().all(is_plain))
    }

    /// Mends that keep the memory of a process on these nodes, and where CPUs are given the process on these.
    pub fn confine(&self, nodes: &NodeSet, cpus: Option<&CpuSet>, moves: Option<Bytes>) -> Vec<Mend> {
        let at_once = |commands: Vec<String>, undo: Vec<String>, what: &str| Mend {
            commands,
            needs_root: true,
            moves,
            undo,
            ..Mend::words(what, Scope::Now)
        };
        match self {
            Self::Itself => {
                let bind = if cpus.is_some() { format!("--cpunodebind={nodes} ") } else { String::new() };
                vec![Mend {
                    commands: vec![format!("nodewise run {bind}--membind={nodes} -- COMMAND")],
                    ..Mend::words("start it on these nodes", Scope::Restart)
                }]
            }
            Self::Service(_) => {
                let Some(unit) = self.plain() else { return Vec::new() };
                let words = |cpus: Option<String>, nodes: &str| {
                    let cpus = cpus.map_or_else(String::new, |cpus| format!(" AllowedCPUs={cpus}"));
                    format!("{cpus} AllowedMemoryNodes={nodes}")
                };
                let set = |words: &str| format!("systemctl set-property --runtime {unit}{words}");
                let wanted = words(cpus.map(ToString::to_string), &nodes.to_string());
                let empty = words(cpus.map(|_| String::new()), "");
                let what = "keep the unit on these nodes; its pages move while the command runs";
                vec![
                    at_once(vec![set(&wanted)], vec![set(&empty)], what),
                    Mend::words(
                        format!(
                            "permanently: systemctl edit {unit}, with {} below [Service]",
                            wanted.trim_start().replace(' ', " and ")
                        ),
                        Scope::Restart,
                    ),
                ]
            }
            Self::Container(program, _) => {
                let Some(id) = self.plain() else { return Vec::new() };
                let cpus = cpus.map_or_else(String::new, |cpus| format!(" --cpuset-cpus={cpus}"));
                let update = format!("{program} update{cpus} --cpuset-mems={nodes} {id}");
                let what = "keep the container on these nodes; its pages move while the command runs. Note the old \
                            lists first: the inspect command of the container shows them";
                vec![at_once(vec![update], Vec::new(), what)]
            }
            Self::Kubelet => vec![Mend::words(
                "the kubelet takes back what is set by hand: memoryManagerPolicy: Static with reservedMemory, \
                 cpuManagerPolicy: static and topologyManagerPolicy: single-numa-node in its configuration, and a pod \
                 of the class Guaranteed with whole CPUs",
                Scope::Restart,
            )],
            Self::Slurm => {
                vec![Mend {
                    commands: vec!["srun --cpu-bind=cores --mem-bind=local COMMAND".to_owned()],
                    ..Mend::words("let Slurm bind memory with the CPUs", Scope::Restart)
                }]
            }
            Self::Libvirt(_) => {
                let Some(name) = self.plain() else { return Vec::new() };
                let tune = format!("virsh numatune {name} --nodeset {nodes} --mode restrictive --live");
                vec![at_once(vec![tune], Vec::new(), "keep the memory of the virtual machine on these nodes")]
            }
        }
    }

    /// Mends that move a process's pages from some nodes to others, and keep it there.
    pub fn gather(&self, pages: &Gathering<'_>) -> Vec<Mend> {
        let Gathering { pid, from, to, cpus, size, may_move } = *pages;
        let migrate =
            Mend::migrate("move its pages to where it runs", pid, Some(from), &to.to_string(), size);
        let moves = Some(size).filter(|_| !may_move || matches!(self, Self::Libvirt(_)));
        let at_once = Some(migrate).filter(|_| may_move && !matches!(self, Self::Libvirt(_)));
        at_once.into_iter().chain(self.confine(to, Some(cpus), moves)).collect()
    }
}

/// Pages to move, and the places of their process afterwards.
#[derive(Clone, Copy, Debug)]
pub struct Gathering<'a> {
    pub pid: u32,
    pub from: &'a NodeSet,
    pub to: &'a NodeSet,
    /// CPUs of the targets that the process may use.
    pub cpus: &'a CpuSet,
    pub size: Bytes,
    /// Whether its cpuset allows the targets.
    pub may_move: bool,
}

#[cfg(test)]
mod tests {
    use nodewise_machine::{CpuId, NodeId};
    use nodewise_source::process::Pid;
    use nodewise_source::sample::Identity;

    use super::*;

    fn owner(group: &str) -> Owner {
        let identity = Identity { pid: Pid::new(7), started_ticks: 1 };
        Owner::from_process(&ProcessSample { group: Some(group.into()), ..ProcessSample::new(identity) })
    }

    #[test]
    fn the_group_says_who_places_a_process() {
        let id = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
        assert_eq!(owner("/"), Owner::Itself);
        assert_eq!(owner("/user.slice/user-1000.slice/session-3.scope"), Owner::Itself);
        assert_eq!(owner("/user.slice/user-1000.slice/user@1000.service/app.slice"), Owner::Itself);
        assert_eq!(
            owner("/user.slice/user-1000.slice/user@1000.service/app.slice/db.service"),
            Owner::Itself
        );
        assert_eq!(owner("/system.slice/mysqld.service"), Owner::Service("mysqld.service".into()));
        assert_eq!(owner("/system.slice/slurmstepd.scope/job_12/step_0/user/task_0"), Owner::Slurm);
        assert!(matches!(owner(&format!("/system.slice/docker-{id}.scope")), Owner::Container("docker", _)));
        assert_eq!(owner("/kubepods.slice/kubepods-burstable.slice/x"), Owner::Kubelet);
    }

    #[test]
    fn no_name_reaches_a_command_that_a_shell_would_read_otherwise() {
        let nodes = NodeSet::from_iter([NodeId::new(1)]);
        let cpus = CpuSet::from_iter([CpuId::new(4)]);
        for name in ["a b", "$(reboot)", "-x", "a;b", "", "a\nb"] {
            assert_eq!(Owner::Service(name.to_owned()).confine(&nodes, Some(&cpus), None), [], "{name}");
        }
        let mends = Owner::Service("mysqld.service".into()).confine(&nodes, Some(&cpus), None);
        let expected =
            "systemctl set-property --runtime mysqld.service AllowedCPUs=4 AllowedMemoryNodes=1".to_owned();
        assert_eq!(mends[0].commands, [expected]);
    }
}
