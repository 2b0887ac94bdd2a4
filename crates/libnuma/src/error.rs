//! `numa_error` and `numa_warn`. A program may define its own, so the library calls them by name;
//! the definitions of the library are in `link/weak.c`, because Rust has neither weak symbols nor
//! functions with any number of arguments.

use core::ffi::{CStr, c_int, c_long, c_uint};

pub use nodewise_notation::warning;
use nodewise_notation::warning::Warning;

/// Reports to the program that a function failed, with `errno`.
#[cfg(not(test))]
pub fn report(what: &CStr) {
    unsafe extern "C" {
        fn numa_error(what: *const core::ffi::c_char);
    }
    // SAFETY: the text ends with NUL and lives forever or as long as the call.
    unsafe { numa_error(what.as_ptr()) };
}

/// The text of a warning behind its format. Texts have no characters that drive a terminal.
#[derive(Clone, Copy)]
pub enum Arguments<'a> {
    None,
    /// `%s`.
    Text(&'a CStr),
    /// `%s` twice.
    Texts(&'a CStr, &'a CStr),
    /// `%s` three times.
    ThreeTexts(&'a CStr, &'a CStr, &'a CStr),
    /// `%d`.
    Int(c_int),
    /// `%ld`.
    Long(c_long),
    /// `%u:%u` and `%s`.
    Device(c_uint, c_uint, &'a CStr),
}

/// Warns the program. Its own `numa_warn` gets the format and the arguments, as with the originals, so the
/// arguments are those that the format takes.
#[cfg(not(test))]
pub fn warn(warning: Warning, arguments: Arguments<'_>) {
    unsafe extern "C" {
        fn numa_warn(number: c_int, format: *const core::ffi::c_char, ...);
    }
    let (number, format) = (warning.number, warning.format.as_ptr());
    match arguments {
        // SAFETY: the format takes nothing, ends with NUL and lives forever.
        Arguments::None => unsafe { numa_warn(number, format) },
        // SAFETY: the format takes a text, which ends with NUL and lives as long as the call.
        Arguments::Text(text) => unsafe { numa_warn(number, format, text.as_ptr()) },
        // SAFETY: as above, with two texts.
        Arguments::Texts(one, two) => unsafe { numa_warn(number, format, one.as_ptr(), two.as_ptr()) },
        // SAFETY: as above, with three texts.
        Arguments::ThreeTexts(one, two, three) => unsafe {
            numa_warn(number, format, one.as_ptr(), two.as_ptr(), three.as_ptr());
        },
        // SAFETY: the format takes an int.
        Arguments::Int(value) => unsafe { numa_warn(number, format, value) },
        // SAFETY: the format takes a long.
        Arguments::Long(value) => unsafe { numa_warn(number, format, value) },
        // SAFETY: the format takes two unsigned ints and a text, which ends with NUL and lives as long as the call.
        Arguments::Device(major, minor, name) => unsafe {
            numa_warn(number, format, major, minor, name.as_ptr());
        },
    }
}

#[cfg(test)]
pub use recorded::{report, reported, warn};

#[cfg(test)]
mod recorded {
    use super::{Arguments, CStr, Warning};
    use core::fmt::Display;
    use std::borrow::ToOwned;
    use std::cell::RefCell;
    use std::string::{String, ToString as _};
    use std::thread_local;
    use std::vec;
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

    /// Records the text that C would make of a warning.
    pub fn warn(warning: Warning, arguments: Arguments<'_>) {
        let text = |text: &CStr| text.to_str().unwrap_or("?").to_owned();
        let arguments = match arguments {
            Arguments::None => Vec::new(),
            Arguments::Text(one) => vec![text(one)],
            Arguments::Texts(one, two) => vec![text(one), text(two)],
            Arguments::ThreeTexts(one, two, three) => vec![text(one), text(two), text(three)],
            Arguments::Int(value) => vec![value.to_string()],
            Arguments::Long(value) => vec![value.to_string()],
            Arguments::Device(major, minor, name) => vec![major.to_string(), minor.to_string(), text(name)],
        };
        let conversions = warning.format.to_bytes().iter().filter(|byte| **byte == b'%').count();
        assert_eq!(conversions, arguments.len(), "arguments of {:?}", warning.format);
        let arguments: Vec<&dyn Display> =
            arguments.iter().map(|argument| argument as &dyn Display).collect();
        REPORTED.with_borrow_mut(|reported| reported.push(warning.with(&arguments).to_string()));
    }

    /// Takes the reports of this thread since the last call.
    pub fn reported() -> Vec<String> {
        REPORTED.take()
    }
}
