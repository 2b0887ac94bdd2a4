//! Parts that the tests of several kinds of files share.

use crate::error::Refusal;
use crate::line::{Change, Policy};

/// Two nodes, and no policy.
pub(crate) fn two() -> Change {
    Change::emulate("2", Policy::Leave).expect("a number is plain")
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
