//! Drawing strings of nodes and of CPUs.

use super::Dice;

/// The things that a string names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// Nodes.
    Nodes,
    /// One node.
    Node,
    /// CPUs.
    Cpus,
}

/// A string: most are right on a machine with several nodes, and many on one with a single one.
pub fn draw(dice: &mut Dice, named: Named) -> String {
    let text = match dice.below(20) {
        0..=8 => plain(dice, named),
        9..=13 => composed(dice),
        14..=15 => device(dice),
        16 => dice
            .text(&["same", "", "all", "!all", "+all", "0,all", "all,0", "+!0", "!!0", "+", "!", "-", ","]),
        _ => {
            let text = if dice.percent(80) { composed(dice) } else { device(dice) };
            return spoilt(dice, text);
        }
    };
    if dice.percent(3) { spoilt(dice, text) } else { text }
}

fn plain(dice: &mut Dice, named: Named) -> String {
    match named {
        Named::Node => dice.text(&["0", "0", "0", "1", "3"]),
        Named::Nodes => {
            dice.text(&["0", "0", "0", "all", "1", "0-1", "1,2", "0,3", "+0", "!0", "+1", "2-3", "same"])
        }
        Named::Cpus => dice.text(&["0", "0", "1", "0-1", "all", "+0", "!0", "+1", "0,1", "+0-1", "!1"]),
    }
}

fn composed(dice: &mut Dice) -> String {
    let mut text = dice.text(&["", "", "", "!", "+", "!+", "+!"]);
    for at in 0..1 + dice.below(3) {
        if at > 0 {
            text.push(',');
        }
        text += &number(dice);
        if dice.percent(30) {
            text.push('-');
            text += &number(dice);
        }
    }
    if dice.percent(8) {
        text += ",all";
    }
    text
}

fn number(dice: &mut Dice) -> String {
    let small = dice.below(6);
    match dice.below(30) {
        0..=19 => small.to_string(),
        20 => format!("0x{small:x}"),
        21 => format!("0{small:o}"),
        22 => format!(" {small}"),
        23 => format!("+{small}"),
        24 => format!("-{small}"),
        25 => format!("{small} "),
        26 => dice.text(&["1023", "1024", "2048", "4096", "9999", "64", "128"]),
        27 => dice.text(&["2147483647", "2147483648", "4294967295", "4294967296", "4294967297"]),
        28 => dice.text(&["18446744073709551615", "18446744073709551616", "99999999999999999999999"]),
        _ => dice.text(&["08", "0x", "1k", "-", "x", "0b1", "1e3", "00", "-0"]),
    }
}

/// Devices that machines have, and some that none has.
fn device(dice: &mut Dice) -> String {
    dice.text(&[
        "netdev:lo",
        "netdev:eth0",
        "netdev: eth0",
        "netdev:nosuch",
        "netdev:",
        "netdev:a/b",
        "netdev:..",
        "netdev:eth0.5",
        "netdev:eth0,0",
        "0,netdev:eth0",
        "!netdev:eth0",
        "block:vda",
        "block:loop0",
        "block:nosuch",
        "block:/dev/vda",
        "file:/",
        "file:/dev/null",
        "file:/dev/vda",
        "file:/proc/self/status",
        "file:/nosuch",
        "file:",
        "file:E",
        "ip:127.0.0.1",
        "ip:10.0.0.1",
        "ip:",
        "pci:00:00.0",
        "pci:00:02.0",
        "pci:0000:00:00.0",
        "pci:0000:00:1f.0",
        "pci:00:00",
        "pci:0:0.0",
        "pci:ff:1f.7",
        "pci:zz",
        "pci:",
        "pci:00:02.0,0",
        "foo:bar",
        "netdev",
        "all:0",
    ])
}

/// A text with one character more, less, or another.
fn spoilt(dice: &mut Dice, text: String) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    let at = dice.below(letters.len() as u64 + 1) as usize;
    let new = dice.one(&['-', ',', '+', '!', ' ', 'x', '0', '9', ':', '.', '=', '\t', '\u{1b}', 'é', 'a']);
    match dice.below(3) {
        0 => letters.insert(at, new),
        1 if at < letters.len() => letters[at] = new,
        _ if at < letters.len() => drop(letters.remove(at)),
        _ => letters.push(new),
    }
    letters.into_iter().collect()
}
