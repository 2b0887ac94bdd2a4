//! The owner of a process's placement, and the owner's commands for another one.
//!
//! # Source
//! The manual pages of systemctl(1), docker-update(1), virsh(1) and srun(1); the path of the control group says
//! who the owner is.

use nodewise_machine::{Bytes, CpuSet, NodeSet};
use nodewise_source::sample::{GroupKind, ProcessSample, group_name};

use crate::finding::{Mend, Owner, Scope};

impl Owner {
    /// The owner by the path of the control group.
    pub fn from_process(process: &ProcessSample) -> Self {
        let path = process.group.as_deref().unwrap_or_default();
        let mut rest = path;
        let mut service = None;
        while !rest.is_empty() {
            let group = group_name(rest);
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
            rest = rest.rsplit_once('/').map_or("", |(parent, _)| parent);
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
        // A user's own session is nobody's service.
        match service.filter(|name| !name.starts_with("user@")) {
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

    /// Mends that keep a process on these nodes: memory and CPUs.
    pub fn confine(&self, nodes: &NodeSet, cpus: &CpuSet, moves: Option<Bytes>) -> Vec<Mend> {
        let at_once = |commands: Vec<String>, undo: Vec<String>, what: &str| Mend {
            commands,
            needs_root: true,
            moves,
            undo,
            ..Mend::words(what, Scope::Now)
        };
        match self {
            Self::Itself => vec![Mend {
                commands: vec![format!("nodewise run --cpunodebind={nodes} --membind={nodes} -- COMMAND")],
                ..Mend::words("start it on these nodes", Scope::Restart)
            }],
            Self::Service(_) => {
                let Some(unit) = self.plain() else { return Vec::new() };
                let set = |cpus: &str, nodes: &str| {
                    format!(
                        "systemctl set-property --runtime {unit} AllowedCPUs={cpus} AllowedMemoryNodes={nodes}"
                    )
                };
                let what = "keep the unit on these nodes; its pages move while the command runs";
                vec![
                    at_once(vec![set(&cpus.to_string(), &nodes.to_string())], vec![set("", "")], what),
                    Mend::words(
                        format!(
                            "permanently: systemctl edit {unit}, with AllowedCPUs={cpus} and AllowedMemoryNodes={nodes} \
                             below [Service]"
                        ),
                        Scope::Restart,
                    ),
                ]
            }
            Self::Container(program, _) => {
                let Some(id) = self.plain() else { return Vec::new() };
                let update = format!("{program} update --cpuset-cpus={cpus} --cpuset-mems={nodes} {id}");
                let what = "keep the container on these nodes; its pages move while the command runs";
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

    /// Mends that move its pages, and keep it where it runs.
    pub fn gather(&self, pid: u32, to: &NodeSet, cpus: &CpuSet, moves: Bytes) -> Vec<Mend> {
        let file = format!("nodewise-{pid}.moved");
        let migrate = Mend {
            commands: vec![format!("nodewise migrate {pid} --to {to} --save {file}")],
            needs_root: true,
            moves: Some(moves),
            undo: vec![format!("nodewise migrate --undo {file}")],
            ..Mend::words("move its pages to where it runs", Scope::Now)
        };
        let for_good = match self {
            // What the kubelet, Slurm and the others own is theirs to place; pages may move at once.
            Self::Itself | Self::Service(_) | Self::Container(..) | Self::Kubelet | Self::Slurm => {
                self.confine(to, cpus, None)
            }
            Self::Libvirt(_) => return self.confine(to, cpus, Some(moves)),
        };
        [migrate].into_iter().chain(for_good).collect()
    }
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
            assert_eq!(Owner::Service(name.to_owned()).confine(&nodes, &cpus, None), [], "{name}");
        }
        let mends = Owner::Service("mysqld.service".into()).confine(&nodes, &cpus, None);
        let expected =
            "systemctl set-property --runtime mysqld.service AllowedCPUs=4 AllowedMemoryNodes=1".to_owned();
        assert_eq!(mends[0].commands, [expected]);
    }
}
