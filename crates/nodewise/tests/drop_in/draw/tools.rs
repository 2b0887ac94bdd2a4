//! Drawing command lines of numastat, migratepages, migspeed and memhog.

use super::nodes::{self, Named};
use super::numactl::size;
use super::{Dice, Line};

/// Tables of the machine, of processes, and wrong options.
pub fn numastat(dice: &mut Dice) -> Line {
    let mut line = Line::new("numastat");
    for _ in 0..dice.below(4) {
        line.push(dice.text(&[
            "-c", "-m", "-n", "-z", "-v", "-s", "-s0", "-s1", "-s9", "-sx", "-cm", "-cn", "-mn", "-cz", "-p",
        ]));
        if line.has(&["-p"]) && dice.percent(90) {
            line.push(process(dice));
        }
    }
    if dice.percent(30) {
        line.push(process(dice));
    }
    if dice.percent(15) {
        let word = dice
            .text(&["-V", "-?", "--help", "--h", "--nosuch", "-Z", "--", "-h", "-msc", "-c=1", "--help=x"]);
        let at = dice.below(line.words.len() as u64 + 1) as usize;
        line.words.insert(at, word);
    }
    if dice.percent(10) {
        line.variables
            .push(("NUMASTAT_WIDTH", dice.one(&["40", "80", "0", "x", "10", "132", "-1", "", "10000001"])));
    }
    if dice.percent(5) {
        line.variables.push(("POSIXLY_CORRECT", "1"));
    }
    line
}

/// Processes that are there, and some that are not.
fn process(dice: &mut Dice) -> String {
    dice.text(&[
        "{PID}",
        "{PID}",
        "{PID}",
        "99999999",
        "no such process",
        "",
        "4294967295",
        "4294967296",
        "99999999999999999999",
        "{PID}x",
        "0x5f5e0ff",
        "\u{1b}x",
    ])
}

/// Moves pages of the line's own process, or fails to.
pub fn migratepages(dice: &mut Dice) -> Line {
    let mut line = Line::new("migratepages");
    if dice.percent(90) {
        line.push(match dice.below(10) {
            0..=7 => "{PID}".to_owned(),
            _ => process(dice),
        });
    }
    for _ in 0..if dice.percent(90) { 2 } else { dice.below(4) } {
        line.push(if dice.percent(50) {
            dice.text(&["0", "all", "1", "0-1", "2"])
        } else {
            nodes::draw(dice, Named::Nodes)
        });
    }
    spoil(dice, &mut line);
    line
}

/// Moves a few pages.
pub fn migspeed(dice: &mut Dice) -> Line {
    let mut line = Line::new("migspeed");
    if dice.percent(60) {
        line.push("-p");
        line.push(match dice.below(10) {
            0..=6 => dice.text(&["300", "512", "1000"]),
            _ => dice.text(&["x", "", "10x", "-1", "0x", "99999999999999999999"]),
        });
    }
    if dice.percent(40) {
        line.push(dice.text(&["-v", "-vv", "-h", "-v", "-Z", "--verbose", "-p"]));
    }
    for _ in 0..if dice.percent(85) { 2 } else { dice.below(4) } {
        line.push(if dice.percent(60) {
            dice.text(&["0", "0", "1"])
        } else {
            nodes::draw(dice, Named::Nodes)
        });
    }
    spoil(dice, &mut line);
    line
}

/// Fills memory.
pub fn memhog(dice: &mut Dice) -> Line {
    let mut line = Line::new("memhog");
    for _ in 0..dice.below(3) {
        line.push(dice.text(&[
            "-r2",
            "-r1",
            "-r0",
            "-r",
            "-rx",
            "-r-1",
            "-H",
            "-fE",
            "-fF",
            "-f",
            "-fD",
            "-fU",
            "-h",
            "--",
            "-x",
            "-f/dev/null",
        ]));
    }
    if dice.percent(95) {
        line.push(match dice.below(10) {
            0..=6 => dice.text(&["4k", "64k", "1m", "21m", "5000"]),
            _ => size(dice),
        });
    }
    if dice.percent(70) {
        line.push(dice.text(&[
            "membind",
            "interleave",
            "preferred",
            "preferred-many",
            "local",
            "default",
            "--membind",
            "-interleave",
            "bind",
            "prefer",
            "",
            "weighted-interleave",
            "MEMBIND",
            "---local",
            "m",
        ]));
        if dice.percent(85) {
            line.push(nodes::draw(dice, Named::Nodes));
        }
    }
    if dice.percent(5) {
        line.push("more");
    }
    line
}

/// A small tool with words of another.
pub fn friend_without_sense(dice: &mut Dice) -> Line {
    let mut line = Line::new(dice.one(&["numastat", "migratepages", "migspeed"]));
    for _ in 0..dice.below(4) {
        let word = match dice.below(4) {
            // Numastat takes it for a piece of a name, which other processes may have.
            0 if line.tool != "numastat" => nodes::draw(dice, Named::Nodes),
            1 => process(dice),
            _ => dice.text(&[
                "-h",
                "--help",
                "--",
                "-v",
                "--hardware",
                "-?",
                "--h",
                "-p",
                "0",
                "--=",
                "-V",
                "-Zh",
            ]),
        };
        line.push(word);
    }
    if line.tool == "migspeed" && line.words.len() > 1 {
        // Few pages: the heap of the original moves with them.
        line.words.insert(0, "-p500".to_owned());
    }
    spoil(dice, &mut line);
    line
}

fn spoil(dice: &mut Dice, line: &mut Line) {
    if dice.percent(8) {
        let word = dice.text(&["-h", "--help", "--", "-Z", "--nosuch", "-?", "--h"]);
        let at = dice.below(line.words.len() as u64 + 1) as usize;
        line.words.insert(at, word);
    }
    if dice.percent(5) {
        line.variables.push(("POSIXLY_CORRECT", "1"));
    }
}
