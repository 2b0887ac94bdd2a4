//! A process's mappings: what a range of its addresses is, and where its pages are.

use std::fmt;

/// The use that a process may make of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Permissions {
    pub read: bool,
    pub write: bool,
    pub execute: bool,
    /// Whether what is written is seen by others who map the same (`MAP_SHARED`).
    pub shared: bool,
}

impl fmt::Display for Permissions {
    /// Writes them as the kernel does: `rw-p`, `r-xs`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = |is_set, letter| if is_set { letter } else { '-' };
        write!(
            f,
            "{}{}{}{}",
            letter(self.read, 'r'),
            letter(self.write, 'w'),
            letter(self.execute, 'x'),
            if self.shared { 's' } else { 'p' }
        )
    }
}

/// The object behind a mapping: two mappings with the same one map the same file or shared memory,
/// whatever its name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    /// Major and minor number of the file system's device.
    pub device: (u32, u32),
    pub inode: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_written_as_the_kernel_does() {
        let check = |permissions: Permissions, expected: &str| assert_eq!(permissions.to_string(), expected);
        check(Permissions::default(), "---p");
        check(Permissions { read: true, execute: true, shared: true, ..Permissions::default() }, "r-xs");
        check(Permissions { read: true, write: true, ..Permissions::default() }, "rw-p");
    }
}
