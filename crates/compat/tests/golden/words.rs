//! The words of recorded commands, whose quotes are lost.

/// Commands with a blank inside a word, with that word. (An empty word shows as two blanks.)
const QUOTED: [(&str, &str); 6] = [
    ("numactl -m  1 numactl --show", " 1"),
    ("numactl -m 1  numactl --show", "1 "),
    ("numactl -m netdev: eth0 numactl --show", "netdev: eth0"),
    ("numactl -l sh -c echo $0 $1; exit 7 a b", "echo $0 $1; exit 7"),
    ("numactl -l sh -c kill -9 $$", "kill -9 $$"),
    // Written by the recorder without quotes, so that it is three words.
    ("numactl -H extra args", "extra"),
];

/// The words of a command.
pub fn command_words(command: &str) -> Vec<String> {
    let split = |text: &str| -> Vec<String> {
        if text.is_empty() { Vec::new() } else { text.split(' ').map(str::to_owned).collect() }
    };
    let Some((_, word)) = QUOTED.iter().find(|(known, _)| *known == command) else { return split(command) };
    let (before, after) = command.split_once(word).expect("the word is in the command");
    let mut words = split(before.strip_suffix(' ').expect("a blank before the word"));
    words.push((*word).to_owned());
    words.extend(split(after.strip_prefix(' ').unwrap_or(after)));
    words
}
