//! `file:PATH`: the disk that a file is on.

use std::path::Path;

use nodewise_machine::NodeId;
use nodewise_machine::printable::{errno_words, printable};
use rustix::fs::{FileType, major, minor, stat, statfs};

use super::{Finder, NoNode, place};
use crate::tree::Tree;

/// File systems without a block device of their own, by `f_type` (`linux/magic.h`).
const FILESYSTEMS: [(u32, &str); 12] = [
    (0x0102_1994, "tmpfs"),
    (0x8584_58f6, "ramfs"),
    (0x794c_7630, "overlay"),
    (0x9123_683e, "btrfs"),
    (0x2fc1_2fc1, "zfs"),
    (0xca45_1a4e, "bcachefs"),
    (0x0000_6969, "nfs"),
    (0x6573_5546, "fuse"),
    (0x0102_1997, "9p"),
    (0xff53_4d42, "cifs"),
    (0xfe53_4d42, "smb"),
    (0x00c3_6400, "ceph"),
];

impl Finder<'_> {
    /// The node of the block device that holds a file, or that a device file stands for.
    pub(super) fn file(&self, path: &Path) -> Result<NodeId, NoNode> {
        let tree = self.live()?;
        let shown = printable(&path.to_string_lossy()).into_owned();
        let error = |errno: rustix::io::Errno| NoNode::File {
            path: shown.clone(),
            cause: errno_words(errno.raw_os_error()),
        };
        let stat = stat(path).map_err(error)?;
        let is_block = FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice;
        let device = if is_block { stat.st_rdev } else { stat.st_dev };
        let entry = format!("/sys/dev/block/{}:{}", major(device), minor(device));
        match place(tree, &entry) {
            Some(place) => self.node_of_path(tree, place),
            None => {
                let kind = statfs(path).map_err(error)?.f_type as u32;
                let known = FILESYSTEMS.iter().find(|(magic, _)| *magic == kind);
                let filesystem = known.map_or("a file system", |(_, name)| name);
                Err(NoNode::NoBlockDevice { path: shown, filesystem })
            }
        }
    }

    /// The running system's files; files and hosts are nowhere else.
    pub(super) fn live(&self) -> Result<&Tree, NoNode> {
        self.tree.filter(|tree| tree.is_live()).ok_or_else(|| NoNode::LiveOnly(self.name.clone()))
    }
}
