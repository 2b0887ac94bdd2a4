//! The parts that a library without the standard library must bring when it is linked.

use core::panic::PanicInfo;

unsafe extern "C" {
    /// Defined nowhere: a library in which a panic can be reached does not link.
    fn nodewise_libnuma_a_panic_can_be_reached() -> !;
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    // SAFETY: the function does not exist, so no library that could call it does either.
    unsafe { nodewise_libnuma_a_panic_can_be_reached() }
}
