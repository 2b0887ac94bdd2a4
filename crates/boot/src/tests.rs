//! Parts that the tests of several kinds of files share.

use crate::error::Refusal;
use crate::line::{Change, Policy};
use crate::pool::BootPools;
use nodewise_machine::{Bytes, NodeId};

/// Two nodes, and no policy.
pub(crate) fn two() -> Change {
    Change::emulate("2", Policy::Leave).expect("a number is plain")
}

/// Four pages of 2 MiB, the kernel's default size, on node 0: `hugepagesz=2M hugepages=0:4`.
pub(crate) fn four_pages() -> Change {
    let pages = [(NodeId::new(0), 4)].into();
    Change::pools(BootPools { size: Bytes::from_mib(2), is_default: true, pages })
}

/// Compares an editor's result for a text and [`two`] with the expected one.
#[track_caller]
pub(crate) fn check(
    edit: impl Fn(&str, &Change) -> Result<String, Refusal>,
    text: &str,
    expected: Result<&str, Refusal>,
) {
    assert_eq!(edit(text, &two()).as_deref(), expected.as_deref(), "{text}");
}
