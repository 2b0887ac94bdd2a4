//! The warnings of libnuma, in its words: numactl and its friends print them too.
//!
//! Each has a number, and libnuma gives those of a number once. A program that brings its own `numa_warn` gets the
//! number, the format and the arguments, so the formats are C's. Some end with a line feed, which then is followed
//! by an empty line.
//!
//! # Source
//! What numactl 2.0.16 and 2.0.19 print, and what they hand to a `numa_warn` of the program.

use core::ffi::CStr;
use core::fmt;

use crate::string::{Fault, Reason};

/// A warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Its number, below 32. Several can have the same.
    pub number: i32,
    /// Its text, with the conversions of `printf(3)`: `%s`, `%d`, `%ld` and `%u`.
    pub format: &'static CStr,
}

const fn warning(number: i32, format: &'static CStr) -> Warning {
    Warning { number, format }
}

/// CPUs of a node that cannot be read.
pub const NODE_CPUS_UNREADABLE: Warning = warning(6, c"Cannot read node cpumask from sysfs");
/// A node that the task may not use.
pub const NODE_NOT_ALLOWED: Warning = warning(6, c"node %d not allowed");
/// A mask of CPUs that cannot be read.
pub const CPU_MASK: Warning = warning(6, c"Cannot parse cpumap. Assuming one node");
/// A CPU that may not be named.
pub const CPU_OUT_OF_RANGE: Warning = warning(9, c"cpu argument %s is out of range\n");
/// The same at the end of a range.
pub const CPU_END_OUT_OF_RANGE: Warning = warning(9, c"cpu argument %s out of range\n");
/// A range without an end.
pub const CPU_MISSING: Warning = warning(9, c"missing cpu argument %s\n");
/// A text that is neither number nor word.
pub const CPU_UNPARSEABLE: Warning = warning(9, c"unparseable cpu description `%s'\n");
/// A node that may not be named.
pub const NODE_OUT_OF_RANGE: Warning = warning(10, c"node argument %ld is out of range\n");
/// The same at the end of a range.
pub const NODE_END_OUT_OF_RANGE: Warning = warning(10, c"node argument %ld out of range\n");
/// A range without an end.
pub const NODE_MISSING: Warning = warning(10, c"missing node argument %s\n");
/// A text that is neither number, word nor device.
pub const NODE_UNPARSEABLE: Warning = warning(10, c"unparseable node description `%s'\n");
/// Several preferred nodes for a kernel that takes one.
pub const ONE_PREFERRED: Warning =
    warning(10, c"Unable to handle MANY preferred nodes. Falling back to first node\n");
/// A file that does not exist.
pub const NO_FILE: Warning = warning(11, c"Cannot stat file %s");
/// A file on no disk.
pub const NO_BLOCK_DEVICE: Warning = warning(15, c"Cannot find block device %u:%u in sysfs for `%s'");
/// A host that is not known.
pub const NO_HOST: Warning = warning(19, c"Cannot resolve %s: %s");
/// A host that cannot be reached.
pub const NO_ROUTE: Warning = warning(20, c"Cannot find a way to %s");
/// A host whose interface is not known.
pub const NO_INTERFACE: Warning = warning(20, c"Cannot find the interface of the way to %s");
/// A host whose node is not known, with the reason.
pub const NO_NODE_OF_HOST: Warning = warning(20, c"Cannot find the node of %s: %s");
/// A PCI address that is none.
pub const PCI_ADDRESS: Warning = warning(23, c"Cannot parse PCI device `%s'");
/// A device whose node the kernel does not say. The first two texts are its class with a blank before it.
pub const NODE_UNKNOWN: Warning = warning(25, c"Kernel does not know node mask for%s%s device `%s'");
/// A device, of the class named first, whose node cannot be read.
pub const NODE_UNREADABLE: Warning = warning(26, c"Cannot read node mask for %s device `%s'");
/// A device with a name that no device has.
pub const DEVICE_NAME: Warning = warning(28, c"Illegal characters in `%s' specification");

/// The members that a string names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    Nodes,
    Cpus,
}

/// The argument of a warning about a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument<'a> {
    Number(u64),
    /// A part of what was typed.
    Typed(&'a [u8]),
}

/// The warning that a faulty string earns; some earn none.
pub fn of_string<'a, F>(subject: Subject, fault: &Fault<'a, F>) -> Option<(Warning, Argument<'a>)> {
    // A node out of range is named by its number, all else as it was typed. Not one table of all cases: its pointers
    // would be relocated whenever libnuma is loaded.
    let (of_nodes, of_cpus, number) = match &fault.reason {
        Reason::OutOfRange(number) => (NODE_OUT_OF_RANGE, CPU_OUT_OF_RANGE, Some(*number)),
        Reason::EndOutOfRange(number) => (NODE_END_OUT_OF_RANGE, CPU_END_OUT_OF_RANGE, Some(*number)),
        Reason::NoEnd => (NODE_MISSING, CPU_MISSING, None),
        Reason::Unparseable => (NODE_UNPARSEABLE, CPU_UNPARSEABLE, None),
        Reason::Backwards(..) | Reason::Behind | Reason::Device(_) => return None,
    };
    let typed = Argument::Typed(fault.rest);
    Some(match subject {
        Subject::Nodes => (of_nodes, number.map_or(typed, Argument::Number)),
        Subject::Cpus => (of_cpus, typed),
    })
}

impl Warning {
    /// The text with its arguments, as `printf(3)` would write it. A conversion without an argument stays.
    pub fn with<'a>(self, arguments: &'a [&'a dyn fmt::Display]) -> impl fmt::Display + 'a {
        Filled { format: self.format, arguments }
    }
}

struct Filled<'a> {
    format: &'static CStr,
    arguments: &'a [&'a dyn fmt::Display],
}

impl fmt::Display for Filled<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.format.to_str().unwrap_or_default();
        for argument in self.arguments {
            let Some((before, conversion)) = rest.split_once('%') else { break };
            let length = conversion.find(['s', 'd', 'u']).map_or(conversion.len(), |at| at.saturating_add(1));
            write!(f, "{before}{argument}")?;
            rest = conversion.get(length..).unwrap_or_default();
        }
        f.write_str(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(warning: Warning, arguments: &[&dyn fmt::Display], expected: &str) {
        assert_eq!(warning.with(arguments).to_string(), expected);
    }

    #[test]
    fn arguments_take_the_places_of_their_conversions() {
        check(NODE_OUT_OF_RANGE, &[&-1], "node argument -1 is out of range\n");
        check(NO_BLOCK_DEVICE, &[&8, &1, &"a%s"], "Cannot find block device 8:1 in sysfs for `a%s'");
        check(NODE_UNKNOWN, &[&"", &"", &"0:0"], "Kernel does not know node mask for device `0:0'");
        check(CPU_MASK, &[], "Cannot parse cpumap. Assuming one node");
        check(CPU_MASK, &[&1], "Cannot parse cpumap. Assuming one node");
    }

    #[test]
    fn a_faulty_string_is_named_by_number_or_as_typed() {
        let fault = Fault { rest: &b"9,0"[..], reason: Reason::<()>::OutOfRange(9) };
        assert_eq!(of_string(Subject::Nodes, &fault), Some((NODE_OUT_OF_RANGE, Argument::Number(9))));
        assert_eq!(of_string(Subject::Cpus, &fault), Some((CPU_OUT_OF_RANGE, Argument::Typed(b"9,0"))));
        let fault = Fault { rest: &b";"[..], reason: Reason::<()>::Behind };
        assert_eq!(of_string(Subject::Nodes, &fault), None);
    }
}
