//! Which program a process is, by the file that it runs, its command line and its libraries.

use nodewise_machine::Bytes;

use super::{Application, MemoryWord, Sign};

/// The most bytes of a name that the kernel keeps.
const KEPT: usize = 15;
/// Options of interpreters whose value is the next word: it is not the script.
const VALUED: [&str; 13] = [
    "-cp",
    "-classpath",
    "--class-path",
    "-p",
    "--module-path",
    "--add-modules",
    "--add-opens",
    "--add-exports",
    "--add-reads",
    "--patch-module",
    "--limit-modules",
    "-W",
    "-X",
];
/// Options whose value is the script, the class or the module.
const NAMES_SCRIPT: [&str; 3] = ["-m", "--module", "-jar"];

/// Facts by which a process is recognised. None of them is fit for a terminal.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ProgramFacts {
    /// The name that it gave itself.
    pub name: Option<String>,
    /// The path of the file that it runs; `None` where only its user may know.
    pub exe: Option<String>,
    /// Its command line.
    pub words: Option<Vec<String>>,
    /// File names of the libraries that it has loaded; `None` where only its user may know.
    pub libraries: Option<Vec<String>>,
    /// Libraries that its file names, of a program that does not run: it will load these, and others.
    pub named_libraries: Vec<String>,
}

/// Memory that a command line declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    pub size: Bytes,
    /// The words that say so: not fit for a terminal.
    pub words: String,
}

/// The first program that a process fits.
pub fn recognise<'a>(programs: &'a [Application], facts: &ProgramFacts) -> Option<&'a Application> {
    programs.iter().find(|program| program.signs.iter().any(|sign| fits(sign, facts)))
}

/// The memory that the command line of a program declares: the last such word counts, as it does for programs.
pub fn declared(program: &Application, facts: &ProgramFacts) -> Option<Declared> {
    let words = facts.words.as_deref()?;
    let at = |at: usize| program.memory.iter().find_map(|word| declared_at(word, words, at));
    (0..words.len()).rev().find_map(at)
}

fn declared_at(memory: &MemoryWord, words: &[String], at: usize) -> Option<Declared> {
    let first = words.get(at)?;
    let (text, words) = if memory.is_next {
        let next = words.get(at + 1).filter(|_| *first == memory.before)?;
        // Other settings may follow the size, as in `size=8G,slots=2`.
        let size = next.strip_prefix(memory.next_before.as_str())?.split(',').next()?;
        (size, format!("{first} {next}"))
    } else {
        (first.strip_prefix(memory.before.as_str())?, first.clone())
    };
    let size = match (text.parse::<u64>(), text.parse::<f64>()) {
        (Ok(number), _) => Bytes::new(number.checked_mul(memory.unit.get())?),
        (_, Ok(number)) => {
            let size = number * memory.unit.get() as f64;
            Bytes::new((0.0..u64::MAX as f64).contains(&size).then_some(size as u64)?)
        }
        _ => text.parse().ok()?,
    };
    (size.get() > 0).then_some(Declared { size, words })
}

fn fits(sign: &Sign, facts: &ProgramFacts) -> bool {
    let any = |patterns: &[String], text: &str| patterns.iter().any(|pattern| matches(pattern, text));
    let words = facts.words.as_deref().unwrap_or_default();
    let exe = || match &facts.exe {
        Some(path) => any(&sign.exe, file_name(path.strip_suffix(" (deleted)").unwrap_or(path))),
        None => is_started_as(&sign.exe, facts),
    };
    let library = |patterns: &[String]| {
        let is_among = |libraries: &[String]| libraries.iter().any(|library| any(patterns, library));
        match &facts.libraries {
            Some(loaded) => Some(is_among(loaded)),
            // A library that the file does not name may still be loaded by another.
            None => is_among(&facts.named_libraries).then_some(true),
        }
    };
    (sign.exe.is_empty() || exe())
        && (sign.script.is_empty() || script(words).is_some_and(|script| any(&sign.script, script)))
        && (sign.word.is_empty() || words.iter().any(|word| any(&sign.word, word)))
        && (sign.library.is_empty() || library(&sign.library) == Some(true))
        && (sign.without.is_empty() || library(&sign.without) == Some(false))
}

/// Whether name and command line both say that it is one of these programs. A script has the name of its file, and its
/// command line begins with the interpreter.
fn is_started_as(patterns: &[String], facts: &ProgramFacts) -> bool {
    let Some(first) = facts.words.as_deref().and_then(<[String]>::first) else { return false };
    // Servers put their state behind their name.
    let first = file_name(first.split([' ', ':']).next().unwrap_or_default());
    let cut = |text: &str| text.bytes().take(KEPT).collect::<Vec<u8>>();
    let is_name = |name: &String| cut(name) == cut(first);
    facts.name.as_ref().is_some_and(is_name) && patterns.iter().any(|pattern| matches(pattern, first))
}

/// The script, the class or the module that an interpreter runs.
fn script(words: &[String]) -> Option<&str> {
    let mut rest = words.iter().skip(1);
    while let Some(word) = rest.next() {
        if NAMES_SCRIPT.contains(&word.as_str()) {
            return rest.next().map(String::as_str);
        }
        if word == "-c" || word == "-" {
            return None;
        }
        if VALUED.contains(&word.as_str()) {
            rest.next();
        } else if !word.starts_with('-') {
            return Some(word);
        }
    }
    None
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// Whether a text fits a pattern in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let (middle, last) = rest.rsplit_once('*').map_or(("", rest), |(middle, last)| (middle, last));
    for part in middle.split('*').filter(|part| !part.is_empty()) {
        match text.find(part) {
            Some(at) => text = &text[at + part.len()..],
            None => return false,
        }
    }
    text.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        let check = |pattern: &str, text: &str, expected: bool| {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        };
        check("mongod", "mongod", true);
        check("mongod", "mongodb", false);
        check("qemu-system-*", "qemu-system-x86_64", true);
        check("*Foam", "simpleFoam", true);
        check("*Foam", "simpleFoamy", false);
        check("ib_*_bw", "ib_write_bw", true);
        check("ib_*_bw", "ib_bw", false);
        check("a*b*c", "a-b-b-c", true);
        check("a*b*c", "a-c-b", false);
        check("ab*ba", "aba", false);
        check("*", "", true);
    }

    #[test]
    fn the_script_of_an_interpreter_is_found_behind_its_options() {
        let check = |line: &str, expected: Option<&str>| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(script(&words), expected, "{line}");
        };
        check("python3 -u train.py x", Some("train.py"));
        check("python3 -W ignore -m vllm.entrypoints y", Some("vllm.entrypoints"));
        check("python3 -c vllm", None);
        check("java -Xmx1g -cp a:b kafka.Kafka c", Some("kafka.Kafka"));
        check("java -jar /srv/x.jar", Some("/srv/x.jar"));
        check("java --add-opens java.base/java.lang=ALL-UNNAMED -cp a kafka.Kafka", Some("kafka.Kafka"));
        check("java -m", None);
        check("java", None);
    }
}
