//! `--space FILE`: the candidates as a product of axes, written down in TOML.
//!
//! ```toml
//! usual = true                              # the placements that make sense here, too
//! memory = ["default", "interleave=all", "membind=same"]
//! cpus = ["all", "compact", "spread", "per-node", "0-3"]
//! huge = ["default", "never"]
//! balancing = ["default", "on", "off"]
//! threads = [1, "cores", "cpus"]
//! placements = ["cpunodebind=0 membind=1"]  # besides the product
//! ```
//!
//! Every word of an axis becomes options of `nodewise run`; what they mean is decided there.

use std::path::Path;

use nodewise_experiment::candidates::LeftOut;
use nodewise_experiment::candidates::binding::Binding;
use nodewise_experiment::toml_text::TomlText;
use nodewise_machine::Machine;
use nodewise_machine::printable::quote;
use serde::Deserialize;
use toml::Spanned;

use super::placements;
use super::threads::Count;
use crate::failure::Failure;
use crate::input;

/// The most placements of a space: each is a run in every round.
const MOST: usize = 100;
/// The largest file that is read.
const MOST_READ: u64 = 1 << 20;

/// A space of candidates.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// Whether the placements that make sense here are in it.
    pub usual: bool,
    /// Options of `run` without dashes, each with the words that it comes from.
    pub options: Vec<Options>,
    /// How many threads; empty where the file does not say.
    pub threads: Vec<Count>,
    /// The choices that this machine has no sets of CPUs for.
    pub left_out: Vec<LeftOut>,
}

/// Options of `run` without dashes, separated by blanks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    pub words: String,
    /// The words of the file that they come from.
    pub origins: Vec<Origin>,
}

/// A word of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// Where it begins, in bytes.
    pub offset: usize,
    /// Its line, from 1.
    pub line: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    usual: bool,
    memory: Option<Vec<Spanned<String>>>,
    cpus: Option<Vec<Spanned<String>>>,
    huge: Option<Vec<Spanned<String>>>,
    balancing: Option<Vec<Spanned<String>>>,
    threads: Option<Vec<Spanned<Threads>>>,
    #[serde(default)]
    placements: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a number of threads, \"cpus\" or \"cores\"")]
enum Threads {
    Number(i64),
    Word(String),
}

/// Reads the file of a space for a machine.
///
/// # Errors
/// A file that cannot be read, or is none.
pub fn read(path: &Path, machine: &Machine) -> Result<Space, Failure> {
    let name = quote(&path.to_string_lossy());
    let fail = |why: String| Failure::usage(format_args!("--space {name}: {why}"));
    let text = input::read_text(path, MOST_READ).map_err(fail)?;
    parse(&text, machine).map_err(fail)
}

/// Reads a space for a machine.
///
/// # Errors
/// What is wrong and in which line, and what was expected.
pub fn parse(text: &str, machine: &Machine) -> Result<Space, String> {
    let toml = TomlText::new(text);
    let file: File = toml.read().map_err(|error| error.to_string())?;
    let mut space = Space { usual: file.usual, ..Space::default() };
    let is_product =
        [&file.memory, &file.cpus, &file.huge, &file.balancing].iter().any(|axis| axis.is_some());
    let axes = [
        memory(file.memory, &toml),
        cpus(file.cpus, &toml, machine, &mut space.left_out)?,
        huge(file.huge, &toml)?,
        balancing(file.balancing, &toml)?,
    ];
    for count in file.threads.unwrap_or_default() {
        let word = match count.get_ref() {
            Threads::Number(number) => number.to_string(),
            Threads::Word(word) => word.clone(),
        };
        let parsed =
            Count::parse(&word).map_err(|error| wrong(&toml, &count, &format!("threads: {error}")))?;
        space.threads.push(parsed);
    }
    let product: usize = axes.iter().map(Vec::len).fold(1, usize::saturating_mul);
    let all = product.saturating_add(file.placements.len()).saturating_mul(space.threads.len().max(1));
    if all > MOST {
        return Err(format!("the space has {all} candidates: expected {MOST} at most"));
    }
    if is_product {
        space.options =
            axes.into_iter().fold(vec![Options { words: String::new(), origins: Vec::new() }], times);
    }
    space.options.extend(file.placements.iter().map(|words| options(words.get_ref(), words, &toml)));
    Ok(space)
}

/// A placement whose pages balancing leaves where they are, for want of a policy of its own that does.
const UNBALANCED: &str = "localalloc";

/// Every one of these with every one of an axis.
fn times(product: Vec<Options>, axis: Vec<Options>) -> Vec<Options> {
    let joined = |one: &Options, other: &Options| Options {
        words: joined(&one.words, &other.words),
        origins: one.origins.iter().chain(&other.origins).copied().collect(),
    };
    product.iter().flat_map(|one| axis.iter().map(move |other| joined(one, other))).collect()
}

fn joined(one: &str, other: &str) -> String {
    // Pages under a policy stay where they are: there is nothing to switch off.
    let has_policy = || placements::typed(one).is_ok_and(|(place, _)| place.has_policy());
    let other = if other == UNBALANCED && has_policy() { "" } else { other };
    format!("{one} {other}").trim().to_owned()
}

fn options(words: &str, at: &Spanned<String>, toml: &TomlText<'_>) -> Options {
    let offset = at.span().start;
    Options { words: words.to_owned(), origins: vec![Origin { offset, line: toml.line(offset) }] }
}

/// An axis that is not given has one value: nothing.
fn nothing() -> Vec<Options> {
    vec![Options { words: String::new(), origins: Vec::new() }]
}

fn memory(axis: Option<Vec<Spanned<String>>>, toml: &TomlText<'_>) -> Vec<Options> {
    let Some(axis) = axis else { return nothing() };
    let one = |word: &Spanned<String>| {
        let words = if word.get_ref() == "default" { "" } else { word.get_ref() };
        options(words, word, toml)
    };
    axis.iter().map(one).collect()
}

/// Describes the fault of a value, with its place.
fn wrong<T>(toml: &TomlText<'_>, value: &Spanned<T>, what: &str) -> String {
    toml.fault(value.span().start, what).to_string()
}

fn cpus(
    axis: Option<Vec<Spanned<String>>>,
    toml: &TomlText<'_>,
    machine: &Machine,
    left_out: &mut Vec<LeftOut>,
) -> Result<Vec<Options>, String> {
    let Some(axis) = axis else { return Ok(nothing()) };
    let mut all = Vec::new();
    for word in &axis {
        let name = word.get_ref().as_str();
        match Binding::named(name).map(|binding| binding.sets(machine)) {
            Some(Ok(sets)) => {
                all.extend(sets.iter().map(|cpus| options(&format!("physcpubind={cpus}"), word, toml)));
            }
            Some(Err(why)) => left_out.push(LeftOut { name: name.to_owned(), why: why.to_owned() }),
            None if name == "all" => all.push(options("", word, toml)),
            None if name.starts_with(|c: char| c.is_ascii_digit()) => {
                all.push(options(&format!("physcpubind={name}"), word, toml));
            }
            None if name.contains('=') => all.push(options(name, word, toml)),
            None => {
                let names = Binding::ALL.map(Binding::name).join(", ");
                let what = format!(
                    "cpus: {} is not a choice of CPUs: expected all, {names}, a list such as 0-3, or an option of \
                     nodewise run",
                    quote(name)
                );
                return Err(wrong(toml, word, &what));
            }
        }
    }
    // What this machine has no sets for leaves the CPUs as they are.
    Ok(if all.is_empty() { nothing() } else { all })
}

fn huge(axis: Option<Vec<Spanned<String>>>, toml: &TomlText<'_>) -> Result<Vec<Options>, String> {
    let Some(axis) = axis else { return Ok(nothing()) };
    let one = |word: &Spanned<String>| match word.get_ref().as_str() {
        "default" => Ok(options("", word, toml)),
        "always" | "never" | "pool" => Ok(options(&format!("huge={}", word.get_ref()), word, toml)),
        other => {
            let what = format!("huge: {} is not one of default, always, never, pool", quote(other));
            Err(wrong(toml, word, &what))
        }
    };
    axis.iter().map(one).collect()
}

/// Whether pages are moved to where they are used: as the system does, also under a policy that names
/// several nodes, or not at all.
fn balancing(axis: Option<Vec<Spanned<String>>>, toml: &TomlText<'_>) -> Result<Vec<Options>, String> {
    let Some(axis) = axis else { return Ok(nothing()) };
    let one = |word: &Spanned<String>| match word.get_ref().as_str() {
        "default" => Ok(options("", word, toml)),
        "on" => Ok(options("balancing", word, toml)),
        "off" => Ok(options(UNBALANCED, word, toml)),
        other => {
            Err(wrong(toml, word, &format!("balancing: {} is not one of default, on, off", quote(other))))
        }
    };
    axis.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::spec;
    use proptest::prelude::{any, prop, proptest};

    fn read_on(text: &str, machine: &str) -> Result<Space, String> {
        parse(text, &spec::machine(machine).unwrap())
    }

    fn check(text: &str, expected: &[&str]) {
        let space = read_on(text, "2x(2c 8G)").unwrap();
        let words: Vec<&str> = space.options.iter().map(|options| options.words.as_str()).collect();
        assert_eq!(words, expected, "{text}");
    }

    #[test]
    fn axes_are_multiplied_and_placements_come_besides() {
        check(
            "memory = ['default', 'interleave=all']\ncpus = ['all', 'per-node']\n",
            &[
                "",
                "physcpubind=0-1",
                "physcpubind=2-3",
                "interleave=all",
                "interleave=all physcpubind=0-1",
                "interleave=all physcpubind=2-3",
            ],
        );
        check(
            "huge = ['never']\nplacements = ['membind=0 huge=always']",
            &["huge=never", "membind=0 huge=always"],
        );
        check("cpus = ['0,2', 'cpunodebind=1']", &["physcpubind=0,2", "cpunodebind=1"]);
        check("usual = true", &[]);
    }

    #[test]
    fn balancing_is_switched_off_by_a_policy_and_on_for_one() {
        check("balancing = ['default', 'off']", &["", "localalloc"]);
        check(
            "memory = ['membind=0-1', 'default']\ncpus = ['cpunodebind=0']\nbalancing = ['on', 'off']",
            &[
                "membind=0-1 cpunodebind=0 balancing",
                "membind=0-1 cpunodebind=0",
                "cpunodebind=0 balancing",
                "cpunodebind=0 localalloc",
            ],
        );
        check(
            "memory = ['-m0', '-iall', '-N0', 'near=net:eth0', '-l']\nbalancing = ['off']",
            &["-m0", "-iall", "-N0 localalloc", "near=net:eth0", "-l"],
        );
    }

    #[test]
    fn options_know_the_lines_that_they_come_from() {
        let space =
            read_on("memory = [\n 'default',\n 'membind=0']\ncpus = ['compact']", "2x(2c 8G)").unwrap();
        let lines: Vec<usize> = space.options[1].origins.iter().map(|origin| origin.line).collect();
        assert_eq!(lines, [3, 4]);
        let space = read_on("threads = [1,\n 'cores']", "2x(2c 8G)").unwrap();
        assert_eq!(space.threads, [Count::Exactly(1), Count::Cores]);
    }

    #[test]
    fn what_this_machine_does_not_have_is_left_out_with_the_reason() {
        let space = read_on("cpus = ['per-node', 'per-cache']\nhuge = ['never']", "(2c 8G)").unwrap();
        assert_eq!(space.options.len(), 1);
        let why: Vec<&str> = space.left_out.iter().map(|left| left.why.as_str()).collect();
        assert_eq!(
            why,
            [
                "only one node has CPUs that may be used",
                "all CPUs that may be used share one last-level cache, as far as is known"
            ]
        );
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let fails = |text: &str, expected: &str| {
            let error = read_on(text, "2x(2c 8G)").unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        };
        fails(
            "usual = true\nmemry = []",
            "line 2, column 1: unknown field `memry`, expected one of `usual`, `memory`",
        );
        fails(
            "balancing = ['some']",
            "line 1, column 14: balancing: \"some\" is not one of default, on, off",
        );
        fails(
            "huge = [\n'often']",
            "line 2, column 1: huge: \"often\" is not one of default, always, never, pool",
        );
        fails(
            "cpus = ['near']",
            "line 1, column 9: cpus: \"near\" is not a choice of CPUs: expected all, compact, spread",
        );
        fails(
            "\nthreads = [0]",
            "line 2, column 12: threads: \"0\" is not a number of threads: expected 1 to 65536",
        );
        fails("threads = [1.5]", "line 1, column 11: expected a number of threads");
        fails("memory = 'x'", "line 1, column 10: invalid type: string");
        fails("memory = [", "line 1, column ");
        let many = format!("memory = [{}]\nthreads = [{}]", "'a',".repeat(20), "1,".repeat(20));
        fails(&many, "the space has 400 candidates: expected 100 at most");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(
            text in any::<String>(),
            lines in prop::collection::vec("(memory|cpus|huge|balancing|threads|usual|x) = [\\[\\]'0-9a-z=, ]{0,12}", 0..5),
        ) {
            let _ = read_on(&text, "2x(2c 8G)");
            let _ = read_on(&lines.join("\n"), "2x(2c 8G)");
        }
    }
}
