//! Output of perf that is about memory: `perf bench mem`, `perf bench numa mem`, and counts in MiB of `perf stat`.
//!
//! # Source
//! `tools/perf/bench/mem-functions.c`, whose KB, MB and GB are powers of 1024; `tools/perf/bench/numa.c`, whose GB are
//! 10^9 bytes; `tools/perf/builtin-stat.c`, which scales counts of memory controllers to MiB (2^20 bytes). Formats of
//! Linux 3.9 to 6.12.

use super::text::{MOST_FIGURES, Read, in_range, name, note, table};
use super::{FigureTable, FigureUnit};

const BENCH: &str = "# Running ";
const STAT: &str = "Performance counter stats";
const ELAPSED: &str = "seconds time elapsed";
const MIB: f64 = 1_048_576.0;

/// Whether an output can begin with this line.
pub(super) fn is_beginning(line: &str) -> bool {
    line.starts_with(STAT) || bench(line).is_some_and(|bench| matches!(bench, "mem" | "numa"))
}

/// The collection of a benchmark that is run: `mem` of `# Running 'mem/memcpy' benchmark:`.
fn bench(line: &str) -> Option<&str> {
    // Those of NUMA say further on that they are running.
    let rest = line.strip_prefix(BENCH).filter(|rest| rest.contains(" benchmark"))?.trim_start_matches('\'');
    Some(rest.split(['/', '\'', ' ']).next().unwrap_or(rest))
}

/// Reads a text with any of them.
pub(super) fn parse(text: &str) -> Read {
    let mut read = Read::default();
    let mut running = Running::default();
    for (at, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if bench(line).is_some() || line.starts_with(STAT) {
            std::mem::take(&mut running).finish(&mut read);
            running = Running::new(line);
        } else {
            running.line(at, line, &mut read);
        }
    }
    running.finish(&mut read);
    read
}

/// One benchmark, or one count, while it is read.
#[derive(Debug, Default)]
struct Running {
    title: String,
    kind: Kind,
    notes: Vec<String>,
    figures: Vec<(String, f64)>,
    /// The function that is measured, as the name of its figure.
    function: Option<String>,
    /// Counts in bytes, waiting for the time that they took.
    counts: Vec<(String, f64)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    /// Something else.
    #[default]
    Other,
    Memory,
    Numa,
    Stat,
}

impl Running {
    fn new(line: &str) -> Self {
        let kind = match bench(line) {
            Some("mem") => Kind::Memory,
            Some("numa") => Kind::Numa,
            Some(_) => Kind::Other,
            None => Kind::Stat,
        };
        let words = line.trim_start_matches(BENCH).trim_end_matches(':');
        let words = words.trim_end_matches(" benchmark").trim_matches('\'');
        let title = match kind {
            Kind::Stat => "memory traffic, perf stat".to_owned(),
            _ => format!("perf bench {}", name(&words.replace('/', " "))),
        };
        Self { title, kind, ..Self::default() }
    }

    fn line(&mut self, at: usize, line: &str, read: &mut Read) {
        match self.kind {
            Kind::Other => {}
            Kind::Memory => self.memory_line(at, line, read),
            Kind::Numa => self.numa_line(at, line, read),
            Kind::Stat => self.stat_line(at, line, read),
        }
    }

    /// `# function 'default' (...)`, `# Copying 1GB bytes ...` and `17.304930 GB/sec`.
    fn memory_line(&mut self, at: usize, line: &str, read: &mut Read) {
        if let Some(rest) = line.strip_prefix("# function '") {
            self.function = rest.split('\'').next().map(name);
            return;
        }
        if let Some(rest) = line.strip_prefix("# ") {
            note(&mut self.notes, rest);
            return;
        }
        let [value, unit] = line.split_whitespace().collect::<Vec<_>>()[..] else { return };
        let factor = match unit.to_ascii_lowercase().as_str() {
            "b/sec" => 1.0,
            "kb/sec" => 1024.0,
            "mb/sec" => MIB,
            "gb/sec" => MIB * 1024.0,
            _ => return,
        };
        let rate = decimal(value).and_then(|value| in_range(value * factor / 1e9));
        let figure = self.function.take().unwrap_or_else(|| "default".to_owned());
        self.push(at, line, figure, rate, read);
    }

    /// ` main,       12.345, GB/sec,         total-speed`, or with `-q` `12.345 GB/sec total speed`.
    fn numa_line(&mut self, at: usize, line: &str, read: &mut Read) {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let (value, figure) = match fields[..] {
            [_, value, "GB/sec", label] => (value, label),
            _ => match line.split_once(" GB/sec") {
                Some((value, label)) => (value.trim(), label.trim_start_matches('/').trim()),
                None => return,
            },
        };
        let rate = decimal(value).and_then(in_range);
        self.push(at, line, name(figure), rate, read);
    }

    /// `765.35 MiB  uncore_imc/cas_count_read/`, with a place in front where counts are by socket or node.
    fn stat_line(&mut self, at: usize, line: &str, read: &mut Read) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let Some(seconds) = line.strip_suffix(ELAPSED) {
            let seconds = decimal(seconds.trim()).filter(|seconds| *seconds > 0.0);
            let Some(seconds) = seconds else {
                read.problem(at, "seconds above 0", line);
                return;
            };
            note(&mut self.notes, &format!("counted over {seconds} s"));
            for (figure, bytes) in std::mem::take(&mut self.counts) {
                self.push(at, line, figure, in_range(bytes / seconds / 1e9), read);
            }
            return;
        }
        let Some(unit) = words.iter().position(|word| *word == "MiB") else { return };
        let (Some(value), Some(event)) =
            (unit.checked_sub(1).and_then(|at| words.get(at)), words.get(unit + 1))
        else {
            return;
        };
        // An event that was not counted.
        if value.ends_with('>') {
            return;
        }
        match decimal(value).map(|mib| mib * MIB) {
            Some(0.0) => {}
            Some(bytes) if self.counts.len() < MOST_FIGURES => {
                let place = words[..unit - 1].join(" ");
                self.counts.push((name(&format!("{place} {event}")), bytes));
            }
            Some(_) => read.problem(at, "fewer counts", line),
            None => read.problem(at, "a count in MiB", line),
        }
    }

    fn push(&mut self, at: usize, line: &str, figure: String, rate: Option<f64>, read: &mut Read) {
        match rate {
            Some(rate) if self.figures.len() < MOST_FIGURES => self.figures.push((figure, rate)),
            Some(_) => read.problem(at, "fewer figures", line),
            None => read.problem(at, "a rate above 0", line),
        }
    }

    fn finish(self, read: &mut Read) {
        let unit = FigureUnit::GbPerS;
        read.add(table(self.title, self.notes, FigureTable::List { unit, figures: self.figures }));
    }
}

/// A number as perf writes it: with a point, or in some languages a comma, before its decimals, and with commas
/// between thousands where it has both.
fn decimal(word: &str) -> Option<f64> {
    let parts = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let text = match (word.split_once('.'), word.split_once(',')) {
        (Some((whole, decimals)), Some(_)) if parts(decimals) => {
            let mut groups = whole.split(',');
            let first = groups.next().unwrap_or("");
            let is_grouped = (1..=3).contains(&first.len()) && groups.all(|group| group.len() == 3);
            is_grouped.then(|| format!("{}.{decimals}", whole.replace(',', "")))?
        }
        // Six decimals are always printed, so that three digits behind a comma could be either.
        (None, Some((whole, decimals))) if decimals.len() == 6 => format!("{whole}.{decimals}"),
        (_, None) => word.to_owned(),
        _ => return None,
    };
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let begins = text.starts_with(|first: char| first.is_ascii_digit());
    (is_plain && begins).then(|| text.parse().ok()).flatten().filter(|value: &f64| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_the_languages_that_perf_prints() {
        let check = |word: &str, expected: Option<f64>| assert_eq!(decimal(word), expected, "{word}");
        check("17.304930", Some(17.304_930));
        check("6,180775", Some(6.180_775));
        check("1,024.03", Some(1024.03));
        check("1,261,120.00", Some(1_261_120.0));
        check("0", Some(0.0));
        for word in ["", ".", "-1.0", "1,024", "1,02.5", "1e3", "1.2.3", "x", "<not", "12,34.5", "1,2,3.0"] {
            check(word, None);
        }
    }
}
