//! numastat's command line.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use nodewise_machine::NodeId;
use nodewise_machine::id::Id as _;

use crate::getopt::{Argument, Getopt, Long, Operands, Short, Spec, Wrong};
use crate::release::Settings;

/// The request.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Options {
    /// Whether there was nothing at all on the command line: the table of numastat's first release.
    pub plain: bool,
    /// `-c`: columns as narrow as their numbers.
    pub compact: bool,
    /// `-m`: the memory of the nodes.
    pub meminfo: bool,
    /// `-n`: the counters of the nodes.
    pub counters: bool,
    /// `-s`: largest rows first.
    pub sort: Option<SortBy>,
    /// `-v`: a table for each process.
    pub verbose: bool,
    /// `-z`: no rows and columns of zeros.
    pub hide_zeros: bool,
    /// `--json`.
    pub json: bool,
    /// `-p` and the other words: processes and patterns, in order.
    pub processes: Vec<OsString>,
}

/// The column that rows are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortBy {
    Total,
    /// That of one node; of all where there is no such node.
    Node(NodeId),
}

impl SortBy {
    /// Reads the text that is joined to `-s`: only digits name a node.
    fn from_argument(argument: Option<&OsStr>) -> Self {
        let digits = argument.and_then(OsStr::to_str).filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
        let node = digits.and_then(|digits| digits.parse().ok()).filter(|node| *node < NodeId::LIMIT);
        node.map_or(Self::Total, |node| Self::Node(NodeId::new(node)))
    }
}

/// The request of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    Show(Options),
    /// `-V`: the version, after the output for the processes before it.
    Version(Vec<OsString>),
    /// The usage text, after the output for the processes before the error, and the error's line.
    Usage(Vec<OsString>, Option<Wrong>),
}

const fn short(letter: char, argument: Argument) -> Short {
    Short { letter, argument }
}

const SPEC: Spec<'static> = Spec {
    shorts: &[
        short('c', Argument::None),
        short('m', Argument::None),
        short('n', Argument::None),
        short('p', Argument::Required),
        short('s', Argument::Optional),
        short('v', Argument::None),
        short('V', Argument::None),
        short('z', Argument::None),
        short('?', Argument::None),
    ],
    longs: &[
        Long { name: "help", argument: Argument::None, value: '?' },
        Long { name: "json", argument: Argument::None, value: 'j' },
    ],
    operands: Operands::AnyPlace,
};

/// The originals' options alone.
const STRICT: Spec<'static> = Spec { longs: SPEC.longs.split_at(1).0, ..SPEC };

/// Reads the command line. The first word that is wrong ends it, as do `-V` and `-?`.
pub fn read(args: &[OsString], settings: Settings) -> Request {
    let mut options = Options { plain: args.is_empty(), ..Options::default() };
    let spec = if settings.strict { STRICT } else { SPEC };
    let mut words = Getopt::new(args, spec.permuting(settings));
    for word in words.by_ref() {
        let found = match word {
            Ok(found) => found,
            Err(wrong) => return Request::Usage(options.processes, Some(wrong)),
        };
        match found.value {
            'c' => options.compact = true,
            'm' => options.meminfo = true,
            'n' => options.counters = true,
            'p' => options.processes.extend(found.argument),
            's' => options.sort = Some(SortBy::from_argument(found.argument.as_deref())),
            'v' => options.verbose = true,
            'V' => return Request::Version(options.processes),
            'z' => options.hide_zeros = true,
            'j' => options.json = true,
            _ => return Request::Usage(options.processes, None),
        }
    }
    options.processes.extend(words.operands());
    Request::Show(options)
}

/// The number of a process, when the word is one: digits only. No word at all is process 0, as in C;
/// a number that no process has is `None` inside. Strictly, numbers wrap around at 2^32.
pub fn pid(word: &OsStr, strict: bool) -> Option<Option<u32>> {
    let text = word.to_str().filter(|_| word.as_bytes().iter().all(u8::is_ascii_digit))?;
    if text.is_empty() {
        return Some(Some(0));
    }
    let number: Option<u64> = text.parse().ok();
    let number = if strict { number.map(|number| u64::from(number as u32)) } else { number };
    let possible = number.and_then(|number| i32::try_from(number).ok());
    Some(possible.map(i32::unsigned_abs))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &[&str]) -> Vec<OsString> {
        line.iter().map(OsString::from).collect()
    }

    fn check(line: &[&str], expected: Options) {
        assert_eq!(read(&words(line), Settings::default()), Request::Show(expected), "{line:?}");
    }

    #[test]
    fn letters_may_be_joined_and_processes_stand_anywhere() {
        check(&[], Options { plain: true, ..Options::default() });
        check(
            &["-cm", "-z"],
            Options { compact: true, meminfo: true, hide_zeros: true, ..Options::default() },
        );
        check(
            &["180", "-p", "-m", "holder", "-n"],
            Options { counters: true, processes: words(&["-m", "180", "holder"]), ..Options::default() },
        );
        check(&["--", "-m"], Options { processes: words(&["-m"]), ..Options::default() });
        check(&["--j", "-v"], Options { json: true, verbose: true, ..Options::default() });
    }

    #[test]
    fn the_node_to_sort_by_is_joined_to_its_letter() {
        let sort = |by| Options { sort: Some(by), ..Options::default() };
        check(&["-s"], sort(SortBy::Total));
        check(&["-s2"], sort(SortBy::Node(NodeId::new(2))));
        check(&["-s0"], sort(SortBy::Node(NodeId::new(0))));
        check(&["-s-1"], sort(SortBy::Total));
        check(&["-s99999999999"], sort(SortBy::Total));
        check(&["-s", "2"], Options { processes: words(&["2"]), ..sort(SortBy::Total) });
        check(&["-msc"], Options { meminfo: true, ..sort(SortBy::Total) });
    }

    #[test]
    fn a_wrong_word_ends_the_line() {
        let wrong = |line: &[&str]| match read(&words(line), Settings::default()) {
            Request::Usage(_, wrong) => wrong.map(|wrong| wrong.to_string()),
            other => panic!("{other:?}"),
        };
        assert_eq!(wrong(&["-p"]).as_deref(), Some("option requires an argument -- 'p'"));
        assert_eq!(wrong(&["-h"]).as_deref(), Some("invalid option -- 'h'"));
        assert_eq!(wrong(&["--help"]), None);
        assert_eq!(wrong(&["-?"]), None);
        assert_eq!(wrong(&["--version", "-V"]).as_deref(), Some("unrecognized option '--version'"));
        let version = Request::Version(words(&["x"]));
        assert_eq!(read(&words(&["-p", "x", "-V", "-h"]), Settings::default()), version);
    }

    #[test]
    fn digits_are_a_process() {
        assert_eq!(pid(OsStr::new("0180"), false), Some(Some(180)));
        assert_eq!(pid(OsStr::new(""), false), Some(Some(0)));
        assert_eq!(pid(OsStr::new("99999999999999999999"), true), Some(None));
        assert_eq!(pid(OsStr::new("4294967296"), false), Some(None));
        assert_eq!(pid(OsStr::new("4294967297"), true), Some(Some(1)));
        assert_eq!(pid(OsStr::new("-1"), false), None);
        assert_eq!(pid(OsStr::new("bash"), false), None);
        assert_eq!(pid(OsStr::from_bytes(b"1\xff"), false), None);
    }
}
