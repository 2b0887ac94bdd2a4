//! Drawing command lines of numactl.

use super::line::{OptionNames, spell};
use super::nodes::{self, Named};
use super::{Dice, Line};

/// The argument that an option takes.
#[derive(Clone, Copy)]
enum Takes {
    Nothing,
    Named(Named),
    Size,
    Mode,
    Id,
    File,
    Key,
}

type Known = (OptionNames, Takes);

const fn known(letter: char, name: &'static str, takes: Takes) -> Known {
    (OptionNames { letter: Some(letter), name }, takes)
}

const POLICIES: [Known; 7] = [
    known('m', "membind", Takes::Named(Named::Nodes)),
    known('i', "interleave", Takes::Named(Named::Nodes)),
    known('p', "preferred", Takes::Named(Named::Node)),
    known('P', "preferred-many", Takes::Named(Named::Nodes)),
    known('w', "weighted-interleave", Takes::Named(Named::Nodes)),
    known('l', "localalloc", Takes::Nothing),
    known('b', "balancing", Takes::Nothing),
];
const CPUS: [Known; 4] = [
    known('N', "cpunodebind", Takes::Named(Named::Nodes)),
    known('c', "cpubind", Takes::Named(Named::Nodes)),
    known('C', "physcpubind", Takes::Named(Named::Cpus)),
    known('a', "all", Takes::Nothing),
];
const SHOWN: [Known; 4] = [
    known('s', "show", Takes::Nothing),
    known('H', "hardware", Takes::Nothing),
    (OptionNames { letter: None, name: "version" }, Takes::Nothing),
    (OptionNames { letter: None, name: "cpu-compress" }, Takes::Nothing),
];
const SHAPE: [Known; 6] = [
    known('L', "length", Takes::Size),
    known('L', "length", Takes::Size),
    known('o', "offset", Takes::Size),
    known('M', "shmmode", Takes::Mode),
    known('I', "shmid", Takes::Id),
    known('u', "huge", Takes::Nothing),
];
const MEMORY: [Known; 3] =
    [known('f', "file", Takes::File), known('f', "file", Takes::File), known('S', "shm", Takes::Key)];
const USES: [Known; 5] = [
    known('T', "touch", Takes::Nothing),
    known('d', "dump", Takes::Nothing),
    known('D', "dump-nodes", Takes::Nothing),
    known('V', "verify", Takes::Nothing),
    known('t', "strict", Takes::Nothing),
];

/// Draws a line.
pub fn draw(dice: &mut Dice) -> Line {
    let mut line = Line::new("numactl");
    match dice.below(10) {
        0..=3 => {
            for _ in 0..1 + dice.below(3) {
                let of = if dice.percent(60) { &POLICIES[..] } else { &CPUS[..] };
                option(dice, &mut line, of);
            }
            program(dice, &mut line);
        }
        4..=6 => shared(dice, &mut line),
        7 => {
            for _ in 0..dice.below(2) {
                let of = if dice.percent(50) { &POLICIES[..] } else { &CPUS[..] };
                option(dice, &mut line, of);
            }
            option(dice, &mut line, &SHOWN);
            if dice.percent(40) {
                option(dice, &mut line, &SHOWN);
            }
        }
        _ => {
            for _ in 0..dice.below(6) {
                let of =
                    dice.one(&[&POLICIES[..], &CPUS[..], &SHOWN[..], &SHAPE[..], &MEMORY[..], &USES[..]]);
                option(dice, &mut line, of);
            }
            if dice.percent(60) {
                program(dice, &mut line);
            }
        }
    }
    spoil(dice, &mut line);
    line
}

/// The order that works, with omissions and repetitions.
fn shared(dice: &mut Dice, line: &mut Line) {
    if dice.percent(85) {
        let length = size(dice);
        spell(dice, line, SHAPE[0].0, Some(length));
    }
    for _ in 0..dice.below(3) {
        option(dice, line, &SHAPE[2..]);
    }
    if dice.percent(20) {
        option(dice, line, &USES[4..]);
    }
    if dice.percent(8) {
        option(dice, line, &CPUS);
    }
    if dice.percent(95) {
        option(dice, line, &MEMORY);
    }
    if dice.percent(80) {
        option(dice, line, &POLICIES[..6]);
    }
    for _ in 0..dice.below(4) {
        option(dice, line, &USES[..4]);
    }
    if dice.percent(8) {
        let of = dice.one(&[&POLICIES[..], &CPUS[..], &SHOWN[..], &SHAPE[..], &MEMORY[..]]);
        option(dice, line, of);
    }
    if dice.percent(4) {
        program(dice, line);
    }
}

fn option(dice: &mut Dice, line: &mut Line, of: &[Known]) {
    let (names, takes) = dice.one(of);
    let argument = match takes {
        Takes::Nothing => None,
        Takes::Named(named) => Some(nodes::draw(dice, named)),
        Takes::Size => Some(size(dice)),
        Takes::Mode => Some(dice.text(&[
            "600",
            "0644",
            "777",
            "1777",
            "0",
            "8",
            "xyz",
            "",
            "-1",
            "99999999999999999999",
        ])),
        Takes::Id => {
            Some(dice.text(&["0", "1", "0x10", "255", "256", "-1", "x", "", "1x", "99999999999999999999"]))
        }
        Takes::File => Some(file(dice)),
        Takes::Key => Some(dice.text(&["K", "E", "{KEY}", "{KEY}", "D", "nodir/K", "", "L", "/nosuch/K"])),
    };
    spell(dice, line, names, argument);
}

fn file(dice: &mut Dice) -> String {
    dice.text(&[
        "F",
        "F",
        "F",
        "E",
        "E",
        "Z",
        "U",
        "D",
        "L",
        "nodir/F",
        "/",
        "",
        "./F",
        "/dev/null",
        "/proc/version",
    ])
}

/// Sizes that a machine of 2 GiB can have.
pub fn size(dice: &mut Dice) -> String {
    match dice.below(4) {
        0..=2 => dice.text(&["64k", "64k", "4k", "128k", "1m", "65536", "0x10000"]),
        _ => dice.text(&[
            "0",
            "1",
            "5000",
            "64K",
            "1x",
            "-4096",
            "",
            "k",
            "2M",
            " 4k",
            "+4k",
            "0200000",
            "4kb",
            "-1",
            "9999999999999999999999",
            "0x",
            "12k",
            "8589934592g",
        ]),
    }
}

/// A program to run, or none that can be run.
fn program(dice: &mut Dice, line: &mut Line) {
    if dice.percent(15) {
        line.push("--");
    }
    let words: &[&str] = match dice.below(18) {
        0..=6 => &["probe"],
        7 => &["probe", "-m", "0", "a b", ""],
        8 => &["probe", "--", "--show"],
        9 => &["true"],
        10 => &["sh", "-c", "exit 7"],
        11 => &["sh", "-c", "kill -9 $$"],
        12 => &["nosuch"],
        13 => dice.one(&[&["./X"][..], &["/"], &[""], &["D"], &["no\u{1b}such"]]),
        14 => &["numactl", "--show"],
        15 => &["numactl", "-l", "numactl", "-s"],
        16 => &["numactl", "-H"],
        _ => &[],
    };
    line.words.extend(words.iter().map(|word| (*word).to_owned()));
}

/// Makes some lines wrong.
fn spoil(dice: &mut Dice, line: &mut Line) {
    if dice.percent(4) {
        let word = dice.text(&[
            "-Z", "--nosuch", "-", "--", "--=", "---", "-?", "-h", "--help", "--he", "--ver", "--s", "-x1",
            "--show=1", "\u{1b}", "-\u{1b}",
        ]);
        let at = dice.below(line.words.len() as u64 + 1) as usize;
        line.words.insert(at, word);
    }
    if dice.percent(3) {
        // The argument of the last option is missing, or its program.
        line.words.pop();
    }
}
