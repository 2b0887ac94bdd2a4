//! A command line, and how one option of it is spelled.

use std::fmt;

use super::Dice;

/// A command line of a tool.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// The tool.
    pub tool: &'static str,
    /// The words behind its name. `{PID}` is a process that holds memory, and each line's own.
    pub words: Vec<String>,
    /// Variables of the environment.
    pub variables: Vec<(&'static str, &'static str)>,
}

impl Line {
    /// A line without words.
    pub fn new(tool: &'static str) -> Self {
        Self { tool, ..Self::default() }
    }

    /// Adds a word.
    pub fn push(&mut self, word: impl Into<String>) {
        self.words.push(word.into());
    }

    /// Whether a word begins with one of these.
    pub fn has(&self, beginnings: &[&str]) -> bool {
        self.words.iter().any(|word| beginnings.iter().any(|beginning| word.starts_with(beginning)))
    }

    /// Whether one of the words is this option: by a letter, alone or among others, or by a beginning of
    /// its name.
    pub fn has_option(&self, letter: char, name: &str) -> bool {
        self.words.iter().any(|word| match word.strip_prefix("--") {
            Some(long) => {
                let long = long.split('=').next().unwrap_or_default();
                !long.is_empty() && name.starts_with(long)
            }
            None => word.starts_with('-') && word.contains(letter),
        })
    }
}

/// An option's argument in a line of numactl.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// The letter of the option.
    pub letter: char,
    /// The word that it is in.
    pub word: usize,
    /// Where it begins in the word.
    pub at: usize,
}

/// The options of numactl with an argument; `cpubind` and `cpunodebind` are one.
const WITH_ARGUMENT: [(char, &str); 13] = [
    ('i', "interleave"),
    ('w', "weighted-interleave"),
    ('p', "preferred"),
    ('P', "preferred-many"),
    ('c', "cpubind"),
    ('N', "cpunodebind"),
    ('C', "physcpubind"),
    ('m', "membind"),
    ('S', "shm"),
    ('f', "file"),
    ('o', "offset"),
    ('L', "length"),
    ('M', "shmmode"),
];

impl Line {
    /// The arguments of numactl's options, in their order. An abbreviation is the first option that it may
    /// stand for: a line with another is refused as a whole.
    pub fn arguments(&self) -> Vec<Argument> {
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(word) = self.words.get(at).filter(|word| word.len() > 1 && word.starts_with('-')) {
            if word == "--" {
                break;
            }
            if let Some((letter, begins)) = option_with_argument(word) {
                let joined = begins.is_some();
                let (word, begins) = begins.map_or((at + 1, 0), |begins| (at, begins));
                if self.words.get(word).is_some() {
                    found.push(Argument { letter, word, at: begins });
                }
                at += usize::from(!joined);
            }
            at += 1;
        }
        found
    }

    /// The text of an argument.
    pub fn text(&self, argument: &Argument) -> &str {
        &self.words[argument.word][argument.at..]
    }
}

/// The letter of an option that takes an argument, and where the argument begins when it is in the same word.
fn option_with_argument(word: &str) -> Option<(char, Option<usize>)> {
    if let Some(long) = word.strip_prefix("--") {
        let name = long.split('=').next().unwrap_or_default();
        let known = WITH_ARGUMENT.iter().chain([&('I', "shmid")]);
        let (letter, _) = known.into_iter().find(|(_, known)| known.starts_with(name))?;
        return Some((*letter, word.find('=').map(|at| at + 1)));
    }
    let takes = |letter: &char| *letter == 'I' || WITH_ARGUMENT.iter().any(|(known, _)| known == letter);
    let (at, letter) = word.char_indices().skip(1).find(|(_, letter)| takes(letter))?;
    Some((letter, Some(at + 1).filter(|at| *at < word.len())))
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.variables {
            write!(f, "{name}={value} ")?;
        }
        f.write_str(self.tool)?;
        self.words.iter().try_for_each(|word| write!(f, " {}", quoted(word)))
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:+,@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    if word.chars().any(char::is_control) {
        return format!("$'{}'", word.escape_default());
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// An option: its names and whether it takes an argument.
#[derive(Clone, Copy)]
pub struct OptionNames {
    /// The letter; `None` where it has only a name.
    pub letter: Option<char>,
    /// The name.
    pub name: &'static str,
}

/// Adds an option with its argument, in one of the spellings that there are.
pub fn spell(dice: &mut Dice, line: &mut Line, option: OptionNames, argument: Option<String>) {
    let letter = option.letter.filter(|_| dice.percent(50));
    let Some(letter) = letter else {
        let cut = if dice.percent(30) {
            1 + dice.below(option.name.len() as u64) as usize
        } else {
            option.name.len()
        };
        let name = &option.name[..cut];
        match argument {
            Some(argument) if dice.percent(70) => line.push(format!("--{name}={argument}")),
            Some(argument) => {
                line.push(format!("--{name}"));
                line.push(argument);
            }
            None if dice.percent(2) => line.push(format!("--{name}=x")),
            None => line.push(format!("--{name}")),
        }
        return;
    };
    // A letter may be joined to the letters before it, where those take no argument.
    let joins = dice.percent(15)
        && line.words.last().is_some_and(|word| {
            word.len() >= 2 && word.starts_with('-') && word[1..].chars().all(|c| "abtuTlsHdDV".contains(c))
        });
    let mut word = if joins { line.words.pop().unwrap_or_default() } else { "-".to_owned() };
    word.push(letter);
    match argument {
        Some(argument) if dice.percent(50) && !argument.is_empty() => line.push(word + &argument),
        Some(argument) => {
            line.push(word);
            line.push(argument);
        }
        None => line.push(word),
    }
}
