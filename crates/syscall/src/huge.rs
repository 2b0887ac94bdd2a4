//! Transparent huge pages: whether a process gets them, and how large they are.

use std::ffi::{c_int, c_ulong};

pub use nodewise_machine::placement::TransparentHuge;

use crate::call::Call;
use crate::error::CallError;
use crate::raw;

/// The second and third argument of `PR_SET_THP_DISABLE`.
pub(crate) const fn numbers(setting: TransparentHuge) -> (c_ulong, c_ulong) {
    match setting {
        TransparentHuge::Allowed => (0, 0),
        TransparentHuge::Never => (1, 0),
        TransparentHuge::OnlyAdvised => (1, raw::PR_THP_DISABLE_EXCEPT_ADVISED),
    }
}

/// The answer of `PR_GET_THP_DISABLE`: 0, 1, or from Linux 6.18 `1 | flags`.
const fn from_answer(answer: c_int) -> TransparentHuge {
    match answer {
        0 => TransparentHuge::Allowed,
        _ if answer as c_ulong & raw::PR_THP_DISABLE_EXCEPT_ADVISED != 0 => TransparentHuge::OnlyAdvised,
        _ => TransparentHuge::Never,
    }
}

/// Sets whether this process may get transparent huge pages.
///
/// # Source
/// `prctl(2)`, `PR_SET_THP_DISABLE`, Linux 3.15; pages that are there stay as they are.
///
/// # Errors
/// `EINVAL` on an older kernel, and for [`TransparentHuge::OnlyAdvised`] before Linux 6.18.
pub fn set_transparent_huge(setting: TransparentHuge) -> Result<(), CallError> {
    let (disable, flags) = numbers(setting);
    raw::set_thp_disable(disable, flags)
        .map_err(|errno| CallError::new(Call::SetThpDisable { setting }, errno))
}

/// Whether this process may get transparent huge pages.
///
/// # Source
/// `prctl(2)`, `PR_GET_THP_DISABLE`, Linux 3.15.
///
/// # Errors
/// `EINVAL` on an older kernel.
pub fn transparent_huge() -> Result<TransparentHuge, CallError> {
    raw::get_thp_disable().map(from_answer).map_err(|errno| CallError::new(Call::GetThpDisable, errno))
}

/// The size of the huge page that transparent huge pages are made of, in bytes.
///
/// One page-table page full of small pages, which is how the kernel defines it (`HPAGE_PMD_SIZE`):
/// entries are 8 bytes wide on every 64-bit architecture. 2 MiB for pages of 4 KiB, 512 MiB for
/// pages of 64 KiB. (s390x and POWER's hash tables have smaller ones, which divide this.)
pub fn transparent_huge_size() -> usize {
    let small = raw::page_size();
    small * (small / 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_of_the_kernel_is_one_of_three_settings() {
        for (answer, expected) in
            [(0, TransparentHuge::Allowed), (1, TransparentHuge::Never), (3, TransparentHuge::OnlyAdvised)]
        {
            assert_eq!(from_answer(answer), expected);
        }
    }
}
