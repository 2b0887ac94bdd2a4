//! Memory that processes share: segments of System V, and file systems in memory.

use nodewise_machine::Bytes;

use crate::file;
use crate::parse::mounts::{self, Mount};
use crate::parse::sysvipc_shm::{self, Segment};
use crate::parse::{Parsed, digits};
use crate::tree::{ReadError, Tree};

/// A mounted file system in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryFiles {
    /// Where, as it was read.
    pub folder: String,
    /// `tmpfs` or `hugetlbfs`.
    pub kind: String,
    /// The most that it may hold. `None`: the mount does not say.
    pub size: Option<Bytes>,
    /// The policy of its files, in the kernel's words: `mpol=`.
    pub policy: Option<String>,
    /// When its files get transparent huge pages: `huge=`; for hugetlbfs the size of a page.
    pub huge: Option<String>,
}

/// Lists the segments of System V shared memory of this IPC namespace; `None` where the kernel has none.
///
/// # Source
/// `/proc/sysvipc/shm`.
///
/// # Errors
/// A file that cannot be read.
pub fn segments(tree: &Tree) -> Result<Option<Parsed<Vec<Segment>>>, ReadError> {
    file::parsed(tree, "/proc/sysvipc/shm", sysvipc_shm::parse)
}

/// Lists the file systems in memory that are mounted here.
///
/// # Source
/// `/proc/mounts`; the options of tmpfs are those of tmpfs(5).
///
/// # Errors
/// A file that cannot be read.
pub fn memory_files(tree: &Tree) -> Result<Vec<MemoryFiles>, ReadError> {
    let mounts = file::parsed(tree, "/proc/mounts", mounts::parse)?;
    let of_memory = |mount: &Mount| matches!(mount.kind.as_str(), "tmpfs" | "hugetlbfs");
    Ok(mounts
        .map(|parsed| parsed.value)
        .unwrap_or_default()
        .into_iter()
        .filter(of_memory)
        .map(read)
        .collect())
}

fn read(mount: Mount) -> MemoryFiles {
    let size = option(&mount, "size=").and_then(|text| size(&text));
    let huge = option(&mount, "huge=").or_else(|| option(&mount, "pagesize="));
    let policy = option(&mount, "mpol=");
    MemoryFiles { size, policy, huge, folder: mount.folder, kind: mount.kind }
}

/// The value of an option. The nodes of a policy are divided by commas, as options are.
fn option(mount: &Mount, name: &str) -> Option<String> {
    let at = mount.options.iter().position(|option| option.starts_with(name))?;
    let rest = mount.options[at + 1..].iter();
    let is_nodes = |option: &&String| option.bytes().next().is_some_and(|byte| byte.is_ascii_digit());
    let more = rest.take_while(is_nodes).map(|nodes| format!(",{nodes}"));
    Some(mount.options[at][name.len()..].to_owned() + &more.collect::<String>())
}

/// The kernel writes KiB with a small `k`; a person may have written other units.
fn size(text: &str) -> Option<Bytes> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let shift = match unit {
        "" => 0,
        "k" | "K" => 10,
        "m" | "M" => 20,
        "g" | "G" => 30,
        _ => return None,
    };
    let number: u64 = digits(number)?;
    number.checked_mul(1 << shift).map(Bytes::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Memory;

    #[test]
    fn file_systems_in_memory_are_listed_with_their_policies() {
        let mounts = "\
/dev/vda / ext4 rw 0 0
tmpfs /dev/shm tmpfs rw,nosuid,size=8388608k,nr_inodes=400k,mpol=interleave:0-1,3,huge=advise 0 0
none /mnt/huge hugetlbfs rw,pagesize=2M 0 0
tmpfs /run tmpfs rw,mode=755 0 0
";
        let tree = Tree::memory(Memory::new().file("/proc/mounts", mounts));
        let found = memory_files(&tree).unwrap();
        assert_eq!(found.len(), 3);
        assert_eq!(found[0].size, Some(Bytes::from_gib(8)));
        assert_eq!(found[0].policy.as_deref(), Some("interleave:0-1,3"));
        assert_eq!(found[0].huge.as_deref(), Some("advise"));
        assert_eq!((found[1].kind.as_str(), found[1].huge.as_deref()), ("hugetlbfs", Some("2M")));
        assert_eq!((found[2].size, &found[2].policy), (None, &None));
        assert_eq!(segments(&tree).unwrap(), None);
    }
}
