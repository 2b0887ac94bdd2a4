//! `numa_error` and `numa_warn`. A program may define its own, so the library calls them by name;
//! the definitions of the library stand in `link/weak.c`, because Rust has neither weak symbols nor
//! functions with any number of arguments.

use core::ffi::{CStr, c_int};

/// Numbers of warnings: `numa_warn` gives each once.
pub mod warning {
    use super::c_int;

    /// CPUs of a node cannot be had.
    pub const NODE_CPUS: c_int = 6;
    /// A list of CPUs is wrong.
    pub const CPU_LIST: c_int = 9;
    /// A list of nodes is wrong, or the kernel takes one only.
    pub const NODE_LIST: c_int = 10;
    /// A file of a `file:` node is not there.
    pub const NO_FILE: c_int = 11;
    /// The file of a `file:` node is on no block device.
    pub const NO_BLOCK_DEVICE: c_int = 15;
    /// The host of an `ip:` node is not known.
    pub const NO_HOST: c_int = 19;
    /// There is no way to the host of an `ip:` node.
    pub const NO_ROUTE: c_int = 20;
    /// A `pci:` address is wrong.
    pub const PCI_ADDRESS: c_int = 23;
    /// The kernel does not say at which node a device is.
    pub const NODE_UNKNOWN: c_int = 25;
    /// The node of a device cannot be read.
    pub const NODE_UNREADABLE: c_int = 26;
    /// A device has a name that no device has.
    pub const DEVICE_NAME: c_int = 28;
}

/// Tells the program that a function failed, with `errno`.
#[cfg(not(test))]
pub fn report(what: &CStr) {
    unsafe extern "C" {
        fn numa_error(what: *const core::ffi::c_char);
    }
    // SAFETY: the text ends with NUL and lives for ever or as long as the call.
    unsafe { numa_error(what.as_ptr()) };
}

/// Warns the program, with a text that must not be taken as a format.
#[cfg(not(test))]
pub fn warn(number: c_int, text: &CStr) {
    unsafe extern "C" {
        fn numa_warn(number: c_int, format: *const core::ffi::c_char, ...);
    }
    // SAFETY: the format takes one text, which ends with NUL and lives as long as the call.
    unsafe { numa_warn(number, c"%s".as_ptr(), text.as_ptr()) };
}

#[cfg(test)]
pub use recorded::{report, reported, warn};

#[cfg(test)]
mod recorded {
    use super::{CStr, c_int};
    use std::borrow::ToOwned;
    use std::cell::RefCell;
    use std::string::String;
    use std::thread_local;
    use std::vec::Vec;

    thread_local! {
        static REPORTED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    }

    fn record(text: &CStr) {
        REPORTED.with_borrow_mut(|reported| reported.push(text.to_str().unwrap_or("?").to_owned()));
    }

    pub fn report(what: &CStr) {
        record(what);
    }

    pub fn warn(_number: c_int, text: &CStr) {
        record(text);
    }

    /// What was reported by this thread since the last call.
    pub fn reported() -> Vec<String> {
        REPORTED.take()
    }
}
