//! The file of a suite: TOML, every key named, every value checked.

use std::collections::BTreeMap;
use std::time::Duration;

use nodewise_machine::Bytes;
use nodewise_machine::duration;
use nodewise_machine::printable::{printable, quote};
use serde::Deserialize;
use toml::{Spanned, Value};

use super::command::Command;
use super::input::{Content, Input};
use super::{Benchmark, Gauge, Need, Origin, Suite, Threads};
use crate::metric::{Metric, Pattern};
use crate::toml_text::{TomlError, TomlText};
use nodewise_stats::Direction;

/// The largest file that is read, in bytes.
pub const MOST_BYTES: usize = 1 << 20;
/// The most benchmarks and the most inputs of a suite, numbers of threads of a benchmark, and both together.
const MOST: usize = 100;
const MOST_CASES: usize = 400;
/// The most threads: as many CPUs as Linux can be built for on x86.
const MOST_THREADS: i64 = 8192;
/// The most letters of a name.
const LONGEST_NAME: usize = 40;
/// The largest input.
const LARGEST_INPUT: Bytes = Bytes::from_gib(1024);
/// The time limit of a run unless the suite says otherwise.
const TIMEOUT: Duration = Duration::from_secs(600);

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    title: Spanned<String>,
    about: Option<String>,
    #[serde(default)]
    input: Vec<Spanned<InputToml>>,
    #[serde(default)]
    benchmark: Vec<Spanned<BenchmarkToml>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct InputToml {
    name: Spanned<String>,
    kind: Spanned<String>,
    size: Option<Spanned<String>>,
    files: Option<Spanned<i64>>,
    #[serde(default)]
    seed: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct BenchmarkToml {
    name: Spanned<String>,
    about: Option<String>,
    command: Spanned<String>,
    prepare: Option<Spanned<String>>,
    prepare_each: Option<Spanned<String>>,
    metric: Option<Spanned<String>>,
    unit: Option<Spanned<String>>,
    better: Option<Spanned<String>>,
    threads: Option<Spanned<Vec<Spanned<Value>>>>,
    #[serde(default)]
    needs: BTreeMap<String, Spanned<String>>,
    memory_traffic: Option<bool>,
    timeout: Option<Spanned<String>>,
}

/// The fault, and at which byte.
type Fault = (usize, String);

/// Reads a suite.
///
/// # Errors
/// The first fault, with its place.
pub fn parse(text: &str) -> Result<Suite, TomlError> {
    let read = TomlText::new(text);
    if text.len() > MOST_BYTES {
        return Err(read.fault(0, &format!("the file is larger than {MOST_BYTES} bytes")));
    }
    suite(&read.read()?).map_err(|(at, what)| read.fault(at, &what))
}

fn suite(file: &File) -> Result<Suite, Fault> {
    let title = name(&file.title, "a title")?;
    let about = file.about.as_deref().map(plain);
    if file.benchmark.len() > MOST || file.input.len() > MOST {
        return Err((0, format!("a suite has at most {MOST} benchmarks and {MOST} inputs")));
    }
    let mut inputs: Vec<Input> = Vec::new();
    for one in &file.input {
        let input = input(one.get_ref())?;
        if inputs.iter().any(|other| other.name == input.name) {
            return Err((
                one.get_ref().name.span().start,
                format!("two inputs are called {}", quote(&input.name)),
            ));
        }
        inputs.push(input);
    }
    let mut benchmarks: Vec<Benchmark> = Vec::new();
    for one in &file.benchmark {
        let benchmark = benchmark(one.get_ref(), &inputs)?;
        if benchmarks.iter().any(|other| other.name == benchmark.name) {
            let at = one.get_ref().name.span().start;
            return Err((at, format!("two benchmarks are called {}", quote(&benchmark.name))));
        }
        benchmarks.push(benchmark);
    }
    if benchmarks.iter().map(|benchmark| benchmark.threads.len()).sum::<usize>() > MOST_CASES {
        return Err((0, format!("a suite has at most {MOST_CASES} rows: benchmarks times threads")));
    }
    if benchmarks.is_empty() {
        return Err((0, "the suite has no benchmark: expected a [[benchmark]]".to_owned()));
    }
    Ok(Suite { title, about, inputs, benchmarks })
}

fn input(read: &InputToml) -> Result<Input, Fault> {
    let name = read.name.get_ref();
    let letters = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let is_name = !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(letters);
    if !is_name || name.starts_with(['.', '-']) {
        let what = format!("{} is not a name of an input: expected letters, digits, _ and -", quote(name));
        return Err((read.name.span().start, what));
    }
    let kind_at = read.kind.span().start;
    let content = match (read.kind.get_ref().as_str(), &read.size, &read.files) {
        ("text", Some(size), None) => Content::Text { size: input_size(size)? },
        ("text", None, _) => return Err((kind_at, "a text needs a size, as size = \"64M\"".to_owned())),
        ("text", _, Some(files)) => return Err((files.span().start, "a text has no files".to_owned())),
        ("c", None, Some(files)) => {
            let files = in_range(files.span().start, *files.get_ref(), 10_000, "files")?;
            Content::C { files }
        }
        ("c", _, None) => return Err((kind_at, "a C program needs a number of files".to_owned())),
        ("c", Some(size), _) => {
            return Err((size.span().start, "a C program has files, no size".to_owned()));
        }
        (other, ..) => {
            return Err((kind_at, format!("{} is not a kind of input: expected text or c", quote(other))));
        }
    };
    Ok(Input { name: name.clone(), content, seed: read.seed.into() })
}

fn input_size(size: &Spanned<String>) -> Result<Bytes, Fault> {
    let fault = |what: String| (size.span().start, what);
    let bytes: Bytes = size.get_ref().parse().map_err(|error| fault(format!("size: {error}")))?;
    if bytes > LARGEST_INPUT {
        return Err(fault(format!("an input of {bytes} is too large: expected {LARGEST_INPUT} at most")));
    }
    Ok(bytes)
}

fn in_range(at: usize, number: i64, most: i64, what: &str) -> Result<u32, Fault> {
    let right = (1..=most).contains(&number).then(|| u32::try_from(number).ok()).flatten();
    right.ok_or_else(|| (at, format!("{number} is not a number of {what}: expected 1 to {most}")))
}

fn benchmark(read: &BenchmarkToml, inputs: &[Input]) -> Result<Benchmark, Fault> {
    let name = name(&read.name, "a name")?;
    let optional = |text: &Option<Spanned<String>>| text.as_ref().map(|text| command(text, inputs));
    let threads = threads(read)?;
    let command_read = command(&read.command, inputs)?;
    if threads.len() > 1 && !command_read.names("{threads}") {
        let what = "it runs with several numbers of threads, but the command has no {threads}";
        return Err((read.command.span().start, what.to_owned()));
    }
    Ok(Benchmark {
        name,
        about: read.about.as_deref().map(plain),
        command: command_read,
        prepare: optional(&read.prepare).transpose()?,
        prepare_each: optional(&read.prepare_each).transpose()?,
        metric: gauge(read)?,
        threads,
        needs: read.needs.iter().map(need).collect::<Result<_, _>>()?,
        memory_traffic: read.memory_traffic.unwrap_or(true),
        timeout: read.timeout.as_ref().map_or(Ok(TIMEOUT), timeout)?,
    })
}

/// A name that fits a table.
fn name(text: &Spanned<String>, what: &str) -> Result<String, Fault> {
    let name = text.get_ref().trim();
    let right = (1..=LONGEST_NAME).contains(&name.chars().count()) && printable(name) == name;
    right.then(|| name.to_owned()).ok_or_else(|| {
        let what = format!("{} is not {what}: expected 1 to {LONGEST_NAME} printable letters", quote(name));
        (text.span().start, what)
    })
}

/// A text on one line, fit to be shown.
fn plain(text: &str) -> String {
    printable(&text.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned()
}

fn command(text: &Spanned<String>, inputs: &[Input]) -> Result<Command, Fault> {
    let fault = |what: String| (text.span().start, what);
    let command = Command::new(text.get_ref()).map_err(|error| fault(error.to_string()))?;
    for (_, rest) in command.text().match_indices("{inputs}/").map(|(at, place)| (at, at + place.len())) {
        let letters = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let word: String = command.text()[rest..].chars().take_while(|c| letters(*c)).collect();
        if !inputs.iter().any(|input| input.name == word) {
            return Err(fault(format!("there is no [[input]] with the name {}", quote(&word))));
        }
    }
    Ok(command)
}

fn gauge(read: &BenchmarkToml) -> Result<Gauge, Fault> {
    let better = read.better.as_ref().map(direction).transpose()?;
    let unit = read.unit.as_ref().map(|unit| name(unit, "a unit")).transpose()?;
    match &read.metric {
        Some(metric) if metric.get_ref() != "wall" => {
            let at = metric.span().start;
            let pattern = Pattern::new(metric.get_ref()).map_err(|error| (at, error.to_string()))?;
            let expected = "a number that is printed needs better = \"higher\" or better = \"lower\"";
            let better = better.ok_or_else(|| (at, expected.to_owned()))?;
            Ok(Gauge { metric: Metric::Printed(pattern, better), unit: unit.unwrap_or_default() })
        }
        _ if better == Some(Direction::HigherIsBetter) => {
            let at = read.better.as_ref().map_or(0, |better| better.span().start);
            Err((at, "of time less is better: expected better = \"lower\", or a metric".to_owned()))
        }
        _ if unit.as_deref().is_some_and(|unit| unit != "s") => {
            let at = read.unit.as_ref().map_or(0, |unit| unit.span().start);
            Err((at, "time is in s: expected unit = \"s\", or a metric".to_owned()))
        }
        _ => Ok(Gauge::wall()),
    }
}

fn direction(text: &Spanned<String>) -> Result<Direction, Fault> {
    match text.get_ref().as_str() {
        "higher" => Ok(Direction::HigherIsBetter),
        "lower" => Ok(Direction::LowerIsBetter),
        other => {
            Err((text.span().start, format!("better is {}: expected \"higher\" or \"lower\"", quote(other))))
        }
    }
}

fn threads(read: &BenchmarkToml) -> Result<Vec<Threads>, Fault> {
    let Some(list) = &read.threads else { return Ok(vec![Threads::All]) };
    let at = list.span().start;
    if !(1..=MOST).contains(&list.get_ref().len()) {
        return Err((at, format!("expected 1 to {MOST} numbers of threads, as threads = [1, \"all\"]")));
    }
    let one = |value: &Spanned<Value>| match value.get_ref() {
        Value::Integer(count) => {
            in_range(value.span().start, *count, MOST_THREADS, "threads").map(Threads::Count)
        }
        Value::String(word) if word == "all" => Ok(Threads::All),
        other => {
            let what = format!("{} is not a number of threads: expected a number or \"all\"", shown(other));
            Err((value.span().start, what))
        }
    };
    list.get_ref().iter().map(one).collect()
}

/// The contents of the file, in short.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        other => format!("a value of the type {}", other.type_str()),
    }
}

fn need((program, origin): (&String, &Spanned<String>)) -> Result<Need, Fault> {
    let at = origin.span().start;
    let is_path = program.starts_with('/');
    let is_name = !program.is_empty() && (is_path || !program.contains('/'));
    if !is_name || printable(program) != program.as_str() || program.len() > 200 {
        let what = format!("{} is not a program: expected a name, or a path from the root", quote(program));
        return Err((at, what));
    }
    let text = origin.get_ref();
    let origin = if text.starts_with("https://") && printable(text) == text.as_str() {
        Origin::Address(text.clone())
    } else if is_package(text) {
        Origin::Package(text.clone())
    } else {
        let what = format!(
            "{} is not a Debian package: expected its name, or an address that begins with https://",
            quote(text)
        );
        return Err((at, what));
    };
    Ok(Need { program: program.clone(), origin })
}

/// Whether a text is the name of a package.
///
/// # Source
/// Debian Policy 5.6.1: two or more of lower-case letters, digits, `+`, `-` and `.`; the first is a letter or
/// digit.
fn is_package(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let rest = |byte: u8| plain(byte) || b"+-.".contains(&byte);
    (2..=100).contains(&text.len()) && text.bytes().all(rest) && text.bytes().next().is_some_and(plain)
}

/// The longest time limit: a day is enough for one run.
const MOST_TIMEOUT: Duration = Duration::from_secs(86_400);

/// As [`duration::parse`], up to a day.
fn timeout(text: &Spanned<String>) -> Result<Duration, Fault> {
    let fault = |what: String| (text.span().start, what);
    let limit = duration::parse(text.get_ref()).map_err(|error| fault(error.to_string()))?;
    if limit > MOST_TIMEOUT {
        return Err(fault(format!("{} is out of range: expected at most 24h", quote(text.get_ref()))));
    }
    Ok(limit)
}

#[cfg(test)]
mod tests;
