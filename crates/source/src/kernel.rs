//! The running kernel itself: where its functions are, and how its structures are laid out.

use crate::parse::{btf, kallsyms};
use crate::tree::{ReadError, Tree};

/// The file of symbols, for messages.
pub const SYMBOLS: &str = "/proc/kallsyms";
/// Types of the kernel.
const TYPES: &str = "/sys/kernel/btf/vmlinux";

/// Addresses of functions, in the order of the names; `None` for what the kernel does not have or hides.
///
/// # Source
/// `/proc/kallsyms`; only root sees addresses.
///
/// # Errors
/// A file that is there and cannot be read.
pub fn functions<const N: usize>(tree: &Tree, names: [&str; N]) -> Result<[Option<u64>; N], ReadError> {
    let text = tree.read_text(SYMBOLS)?.unwrap_or_default();
    Ok(names.map(|name| kallsyms::address(&text, name)))
}

/// Offsets of members of the kernel's structures, in the order of `(structure, member)`; `None` for what it does not have. All
/// of them where a kernel was built without its types (`CONFIG_DEBUG_INFO_BTF`).
///
/// # Source
/// `/sys/kernel/btf/vmlinux`, Linux 5.4.
///
/// # Errors
/// A file that is there and cannot be read.
pub fn offsets<const N: usize>(
    tree: &Tree,
    members: [(&str, &str); N],
) -> Result<[Option<u64>; N], ReadError> {
    let file = tree.read(TYPES)?.unwrap_or_default();
    Ok(btf::offsets(&file, members))
}
