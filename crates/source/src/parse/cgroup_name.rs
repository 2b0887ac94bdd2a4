//! Services, containers and virtual machines by the paths of their control groups.
//!
//! # Source
//! No daemon is asked: the paths follow the conventions of systemd, Docker, Podman, CRI-O, containerd, Kubernetes,
//! LXC and libvirt. A path that follows none is its own name.

/// A control group as its users name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupName {
    pub kind: GroupKind,
    /// The name without the decoration of its kind: not fit for a terminal.
    pub name: String,
}

/// The kind of a control group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupKind {
    /// The top of the hierarchy.
    Root,
    /// A unit of systemd that starts processes: `cron.service`.
    Service,
    /// A unit of systemd for processes that others started: `init.scope`.
    Scope,
    /// A unit of systemd that holds others: `system.slice`.
    Slice,
    /// A session of a user.
    Session,
    /// Everything of a user, by number.
    User,
    Docker,
    Podman,
    Crio,
    Containerd,
    /// A pod of Kubernetes, by its identifier.
    Pod,
    Lxc,
    /// A virtual machine of libvirt.
    VirtualMachine,
    /// None of them: the path.
    Other,
}

/// Hexadecimal digits of a container's identifier, and those that are shown.
const IDENTIFIER: (usize, usize) = (64, 12);

/// Names a group by its path.
pub fn name(path: &str) -> GroupName {
    let mut parts = path.rsplit('/').filter(|part| !part.is_empty());
    let Some(last) = parts.next() else { return group(GroupKind::Root, "/") };
    let parent = parts.next().unwrap_or_default();
    unit(last, parent)
        .or_else(|| bare_container(last, parent))
        .or_else(|| pod(last.strip_prefix("pod")?, path))
        .or_else(|| {
            Some(group(GroupKind::Lxc, last.strip_prefix("lxc.payload.").filter(|name| !name.is_empty())?))
        })
        .unwrap_or_else(|| group(GroupKind::Other, path))
}

/// Names a group and those that it is in, from its own up to below the root.
pub fn names_up(path: &str) -> impl Iterator<Item = GroupName> + '_ {
    std::iter::successors(Some(path), |path| Some(path.rsplit_once('/')?.0))
        .take_while(|path| !path.is_empty())
        .map(name)
}

fn group(kind: GroupKind, name: &str) -> GroupName {
    GroupName { kind, name: name.to_owned() }
}

/// A unit of systemd.
fn unit(last: &str, parent: &str) -> Option<GroupName> {
    if let Some(stem) = last.strip_suffix(".scope") {
        return Some(scope(stem, last, parent));
    }
    if let Some(stem) = last.strip_suffix(".slice") {
        let pod_of = stem.rsplit_once("-pod").filter(|(front, _)| front.starts_with("kubepods"));
        let pod_of = pod_of.map(|(_, pod)| pod).or_else(|| stem.strip_prefix("kubepods-pod"));
        if let Some(named) = pod_of.and_then(|name| pod(&name.replace('_', "-"), last)) {
            return Some(named);
        }
        return match stem.strip_prefix("user-").filter(|user| user.bytes().all(|byte| byte.is_ascii_digit()))
        {
            Some(user) if !user.is_empty() => Some(group(GroupKind::User, user)),
            _ => Some(GroupName { kind: GroupKind::Slice, name: unescape(last) }),
        };
    }
    last.ends_with(".service").then(|| GroupName { kind: GroupKind::Service, name: unescape(last) })
}

fn scope(stem: &str, last: &str, parent: &str) -> GroupName {
    let engines = [
        ("docker-", GroupKind::Docker),
        ("libpod-", GroupKind::Podman),
        ("crio-", GroupKind::Crio),
        ("cri-containerd-", GroupKind::Containerd),
    ];
    let container = engines.iter().find_map(|(prefix, kind)| {
        let short = identifier(stem.strip_prefix(prefix)?)?;
        Some(group(*kind, short))
    });
    container
        .or_else(|| {
            // `machine-qemu\x2d1\x2dNAME.scope`: the number counts the machines that were started.
            let machine = unescape(stem.strip_prefix("machine-")?);
            let (number, name) = machine.strip_prefix("qemu-")?.split_once('-')?;
            let counted = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
            (counted && !name.is_empty()).then(|| group(GroupKind::VirtualMachine, name))
        })
        .or_else(|| {
            let session = stem.strip_prefix("session-").filter(|_| parent.starts_with("user-"))?;
            Some(group(GroupKind::Session, session))
        })
        .unwrap_or_else(|| GroupName { kind: GroupKind::Scope, name: unescape(last) })
}

/// A container without systemd: `/docker/<64 digits>`.
fn bare_container(last: &str, parent: &str) -> Option<GroupName> {
    if let Some(podman) = last.strip_prefix("libpod-").and_then(identifier) {
        return Some(group(GroupKind::Podman, podman));
    }
    let kind = match parent {
        "docker" => GroupKind::Docker,
        "libpod_parent" => GroupKind::Podman,
        _ => return None,
    };
    Some(group(kind, identifier(last)?))
}

fn identifier(text: &str) -> Option<&str> {
    let (whole, shown) = IDENTIFIER;
    let valid = text.len() == whole && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if valid { text.get(..shown) } else { None }
}

/// A pod with its class where the path says one: `best effort`, `burstable`.
fn pod(identifier: &str, path: &str) -> Option<GroupName> {
    let valid = (32..=36).contains(&identifier.len())
        && identifier.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    let class = ["besteffort", "burstable"].into_iter().find(|class| path.contains(class));
    let name = class.map_or_else(|| identifier.to_owned(), |class| format!("{identifier} ({class})"));
    valid.then_some(GroupName { kind: GroupKind::Pod, name })
}

/// Decodes the escapes of systemd: `\x2d` is a dash.
fn unescape(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let code = tail.get(..3).filter(|code| *first == b'\\' && code[0] == b'x');
        let digit = |at: usize| code.and_then(|code| char::from(code[at]).to_digit(16));
        match digit(1).zip(digit(2)).and_then(|(high, low)| u8::try_from(high * 16 + low).ok()) {
            Some(byte) => {
                out.push(byte);
                rest = &tail[3..];
            }
            None => {
                out.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn the_groups_of_a_path_go_up_to_below_the_root() {
        let kinds: Vec<GroupKind> =
            names_up("/system.slice/mysqld.service/child").map(|group| group.kind).collect();
        assert_eq!(kinds, [GroupKind::Other, GroupKind::Service, GroupKind::Slice]);
        assert_eq!(names_up("/").next().map(|group| group.kind), Some(GroupKind::Root));
        assert_eq!(names_up("").next(), None);
    }

    #[test]
    fn groups_are_named_as_their_users_name_them() {
        let check = |path: &str, kind: GroupKind, text: &str| {
            let path = path.replace("ID", ID);
            assert_eq!(name(&path), group(kind, text), "{path}");
        };
        check("/", GroupKind::Root, "/");
        check("/system.slice/cron.service", GroupKind::Service, "cron.service");
        check(
            r"/system.slice/system-getty.slice/getty@tty1.service",
            GroupKind::Service,
            "getty@tty1.service",
        );
        check(r"/system.slice/dev-disk-by\x2duuid.service", GroupKind::Service, "dev-disk-by-uuid.service");
        check("/init.scope", GroupKind::Scope, "init.scope");
        check("/system.slice", GroupKind::Slice, "system.slice");
        check("/user.slice/user-1000.slice", GroupKind::User, "1000");
        check("/user.slice/user-1000.slice/session-3.scope", GroupKind::Session, "3");
        check("/system.slice/docker-ID.scope", GroupKind::Docker, "0123456789ab");
        check("/docker/ID", GroupKind::Docker, "0123456789ab");
        check("/machine.slice/libpod-ID.scope", GroupKind::Podman, "0123456789ab");
        check("/libpod_parent/libpod-ID", GroupKind::Podman, "0123456789ab");
        check("/kubepods.slice/crio-ID.scope", GroupKind::Crio, "0123456789ab");
        check("/kubepods.slice/cri-containerd-ID.scope", GroupKind::Containerd, "0123456789ab");
        let uid = "12345678-1234-1234-1234-123456789abc";
        let slice = uid.replace('-', "_");
        check(&format!("/kubepods.slice/kubepods-pod{slice}.slice"), GroupKind::Pod, uid);
        check(
            &format!("/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{slice}.slice"),
            GroupKind::Pod,
            &format!("{uid} (burstable)"),
        );
        check(&format!("/kubepods/besteffort/pod{uid}"), GroupKind::Pod, &format!("{uid} (besteffort)"));
        check("/lxc.payload.web", GroupKind::Lxc, "web");
        check(r"/machine.slice/machine-qemu\x2d1\x2ddb\x2done.scope", GroupKind::VirtualMachine, "db-one");
    }

    #[test]
    fn a_path_of_no_convention_is_its_own_name() {
        for path in ["/jobs/17", "/docker/short", "/process_api/x", "/../a", "/podx", "/lxc.payload."] {
            assert_eq!(name(path), group(GroupKind::Other, path));
        }
        assert_eq!(name("/docker-short.scope"), group(GroupKind::Scope, "docker-short.scope"));
        assert_eq!(name("/user-.slice"), group(GroupKind::Slice, "user-.slice"));
    }

    proptest! {
        #[test]
        fn a_service_keeps_its_name(service in "[a-z@.-]{1,20}") {
            let unit = format!("{service}.service");
            prop_assert_eq!(name(&format!("/system.slice/{unit}")), group(GroupKind::Service, &unit));
        }

        #[test]
        fn any_path_has_a_name(path in any::<String>(), near in r"(/(docker|libpod|crio|machine|user|kubepods)?-?(pod)?[0-9a-f\\x]{0,70}(\.scope|\.slice|\.service)?){0,3}") {
            prop_assert!(!name(&path).name.is_empty());
            prop_assert!(!name(&near).name.is_empty());
        }
    }
}
