//! Facts of a survey, whatever was measured: how far it can be believed, what was proven, what could not be
//! measured.

use std::collections::HashMap;

use nodewise_machine::conditions::Conditions;
use nodewise_machine::{Bytes, NodeId};
use nodewise_measure::cell::PageKind;
use nodewise_measure::latency::cache::LastLevel;
use nodewise_measure::survey::{Account, CellReport, LeftOut, Noise, SurveyFinding};

use crate::digest::counts::plural;
use crate::digest::provenance::date;

/// How a report ends, whatever was measured: how that was done, what could not be, and what it shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// How it was measured and what its figures are, a line each.
    pub how: Vec<String>,
    /// Cells without a measurement: where, and why.
    pub not_measured: Vec<(String, String)>,
    pub findings: Vec<FindingSentence>,
}

/// A finding as it is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindingSentence {
    pub sentence: String,
    /// Whether the finding says that figures may not repeat.
    pub is_noise: bool,
}

impl FindingSentence {
    /// A finding of a survey; `sentence` makes one of what its instrument shows.
    pub fn from_finding<F>(finding: &SurveyFinding<F>, sentence: impl Fn(&F) -> String) -> Self {
        let is_noise = finding.is_noise();
        match finding {
            SurveyFinding::Shown(shown) => Self { sentence: sentence(shown), is_noise },
            SurveyFinding::Noise(noise) => Self::from_noise(noise),
        }
    }

    /// A reason to believe figures less.
    pub fn from_noise(noise: &Noise) -> Self {
        Self { sentence: noise_sentence(noise), is_noise: noise.is_disturbance() }
    }
}

impl Ending {
    /// How a report of cells ends: whatever it measured, it says how sizes were chosen, what was proven of the
    /// pages, and what it could not measure.
    pub fn of_cells<'c>(
        how: impl IntoIterator<Item = String>,
        account: &Account,
        cells: impl Iterator<Item = &'c CellReport>,
        size: Bytes,
        findings: impl Iterator<Item = FindingSentence>,
    ) -> Self {
        let cells: Vec<&CellReport> = cells.collect();
        let proof = proof(cells.iter().copied(), size);
        // What was not measured has no way to name.
        let how = how.into_iter().filter(|_| cells.iter().any(|cell| cell.is_reached()));
        Self {
            how: how.chain(sizing(account)).chain(proof).collect(),
            not_measured: refusals(cells.into_iter()),
            findings: findings.collect(),
        }
    }
}

impl Ending {
    /// The same, which also says what the survey has not reached.
    #[must_use]
    pub fn with_not_reached(mut self, what: Option<String>) -> Self {
        self.not_measured.extend(what.map(|what| (what, NOT_REACHED.to_owned())));
        self
    }
}

/// Why something has neither a figure nor a reason of its own.
const NOT_REACHED: &str = "not reached before the end";

/// How many things a survey has not reached: `3 of 8 cells`; `None` where it has reached all.
pub fn missing(what: &str, are_reached: impl Iterator<Item = bool>) -> Option<String> {
    let (mut missing, mut all) = (0, 0);
    for is_reached in are_reached {
        all += 1;
        missing += usize::from(!is_reached);
    }
    (missing > 0).then(|| format!("{missing} of {}", plural(all, what)))
}

/// Names a kind of pages for a table's title.
pub fn pages_words(pages: PageKind) -> String {
    match pages {
        PageKind::Small => "small pages".to_owned(),
        PageKind::TransparentHuge => "huge pages, transparent".to_owned(),
        PageKind::Hugetlb(size) => format!("huge pages of {} from the pool", size.bytes()),
    }
}

/// Three significant digits.
pub fn digits(value: f64) -> String {
    format!("{value:.*}", decimals(value))
}

/// The figures behind the point with which a value has three significant digits; at most two.
pub const fn decimals(value: f64) -> usize {
    match value {
        value if value >= 100.0 => 0,
        value if value >= 10.0 => 1,
        _ => 2,
    }
}

/// A reason to believe figures less, as a sentence.
pub fn noise_sentence(noise: &Noise) -> String {
    match noise {
        Noise::Stolen { share } => {
            format!("too noisy: this machine's host took {:.0} % of a CPU's time meanwhile", share * 100.0)
        }
        Noise::Others { cpus } => {
            format!("too noisy: other programs used {cpus:.1} CPUs on average meanwhile")
        }
        Noise::Disturbed { cells, of } => format!(
            "too noisy: {cells} of {of} cells (marked !) were disturbed in more than a quarter of their \
             samples, also when measured once more"
        ),
        Noise::Uncertain { cells, of, widest } if widest.is_finite() => format!(
            "too noisy: {cells} of {of} intervals reach more than 5 % from their median (the widest {:.0} %)",
            widest * 100.0
        ),
        Noise::Uncertain { cells, of, .. } => {
            format!("{cells} of {of} cells have too few rounds for an interval: expected 6 or more")
        }
        Noise::Interrupted => "ended early: figures are those of the samples taken so far".to_owned(),
        Noise::LeftOut(left_out) => left_out_sentence(left_out),
    }
}

/// The parts that a limit of time has left out, as a sentence.
fn left_out_sentence(left_out: &LeftOut) -> String {
    let LeftOut { rounds, of_rounds, cells, of_cells, disturbed } = *left_out;
    let missing = of_rounds.saturating_sub(rounds);
    let parts = [
        (missing > 0).then(|| format!("{missing} of {}", plural(of_rounds, "round"))),
        (cells > 0).then(|| format!("{cells} of {}", plural(of_cells, "cell"))),
        (disturbed > 0).then(|| format!("repeating {}", plural(disturbed, "disturbed cell"))),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("left out to end in time: {}", parts.join(", "))
}

/// The machine in a few words, as far as it is known: CPU, kernel, hypervisor.
pub fn platform(conditions: &Conditions) -> String {
    let kernel = conditions.kernel.as_ref().map(|kernel| format!("Linux {}", kernel.text()));
    let known = [conditions.cpu_model.clone(), kernel, conditions.hypervisor.clone()];
    known.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Where figures come from, as a picture has it below its title: the machine, as [`platform`] has it, when it
/// was measured, and with which nodewise; what is not known is left out.
pub fn caption(conditions: &Conditions) -> String {
    let version = conditions.nodewise_version.as_ref().map(|version| format!(" with nodewise {version}"));
    let version = version.unwrap_or_default();
    let measured = match conditions.began.and_then(date) {
        Some(date) => format!("measured {date}{version}"),
        None if version.is_empty() => String::new(),
        None => format!("measured{version}"),
    };
    let known = [platform(conditions), measured].into_iter().filter(|part| !part.is_empty());
    known.collect::<Vec<_>>().join("; ")
}

/// The cells that have no figure, by reason: how many, where, why.
pub fn refusals<'c>(cells: impl Iterator<Item = &'c CellReport>) -> Vec<(String, String)> {
    let cells: Vec<&CellReport> = cells.collect();
    let several_kinds = cells.iter().any(|cell| cell.pages != cells[0].pages);
    let reasons = by_reason(cells.iter().filter_map(|cell| Some((cell.refused.as_deref()?, *cell))));
    reasons.into_iter().map(|(why, refused)| (place(&refused, several_kinds), why.to_owned())).collect()
}

/// Things by the reason that each has, in the order in which the reasons come.
pub fn by_reason<'r, T>(things: impl Iterator<Item = (&'r str, T)>) -> Vec<(&'r str, Vec<T>)> {
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut reasons: Vec<(&str, Vec<T>)> = Vec::new();
    for (why, thing) in things {
        let place = *places.entry(why).or_insert(reasons.len());
        if place == reasons.len() {
            reasons.push((why, Vec::new()));
        }
        reasons[place].1.push(thing);
    }
    reasons
}

/// Where some cells are, in as few words as say it.
fn place(cells: &[&CellReport], several_kinds: bool) -> String {
    let same = |of: fn(&CellReport) -> NodeId| {
        let first = cells.first().map(|cell| of(cell))?;
        cells.iter().all(|cell| of(cell) == first).then_some(first)
    };
    let pages = match cells.first() {
        Some(first) if several_kinds && cells.iter().all(|cell| cell.pages == first.pages) => {
            format!(", {}", pages_words(first.pages))
        }
        _ => String::new(),
    };
    let where_ = match (same(|cell| cell.from), same(|cell| cell.memory)) {
        (Some(from), Some(memory)) => format!("node {from} to node {memory}"),
        (None, Some(memory)) => format!("memory of node {memory}"),
        (Some(from), None) => format!("CPUs of node {from}"),
        (None, None) => format!("{} cells", cells.len()),
    };
    format!("{where_}{pages}")
}

/// Returns the reason for the amount of memory used, in one line; `None` where the user chose it.
pub fn sizing(account: &Account) -> Option<String> {
    let LastLevel { claimed, found, is_cut_short, .. } = account.last_level?;
    let claimed = claimed.map_or_else(|| "none".to_owned(), |size| size.to_string());
    let found = match found {
        Some(size) => format!("found {size}"),
        None if is_cut_short => "was cut short".to_owned(),
        None => "found none".to_owned(),
    };
    Some(format!("sizes by the last-level cache: a short sweep {found}, the system claims {claimed}"))
}

/// Describes the proof of the placement, in one line: the worst over all cells with a figure.
pub fn proof<'c>(cells: impl Iterator<Item = &'c CellReport>, size: Bytes) -> Option<String> {
    let measured: Vec<&CellReport> = cells.filter(|cell| cell.figure.is_some()).collect();
    let cells = || measured.iter().copied();
    let share = |of: fn(&CellReport) -> Option<f64>| cells().filter_map(of).reduce(f64::min);
    let before = share(|cell| cell.before.as_ref()?.share())?;
    let after = share(|cell| cell.after.as_ref()?.share());
    let huge = cells().filter(|cell| cell.pages != PageKind::Small).filter_map(|cell| {
        let huge = cell.before.as_ref()?.huge?;
        Some(huge.get() as f64 / size.get().max(1) as f64)
    });
    let huge = huge.reduce(f64::min).map_or_else(
        || "; how much is huge the kernel does not say".to_owned(),
        |share| format!("; {} of the huge ones are", percent(share.min(1.0))),
    );
    let huge = if cells().any(|cell| cell.pages != PageKind::Small) { huge } else { String::new() };
    Some(format!("{}{huge}", proof_sentence("pages", before, after)))
}

/// Describes a proof: the worst shares that lay where they should be.
pub fn proof_sentence(what: &str, before: f64, after: Option<f64>) -> String {
    format!(
        "{what} on the node they should be on (move_pages): {} before, {} after",
        percent(before),
        after.map_or_else(|| "not asked".to_owned(), percent)
    )
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn a_caption_has_the_machine_the_date_and_the_program() {
        let check = |seconds: Option<u64>, version: Option<&str>, expected: &str| {
            let conditions = Conditions {
                cpu_model: Some("Some CPU".to_owned()),
                began: seconds.map(|seconds| UNIX_EPOCH + Duration::from_secs(seconds)),
                nodewise_version: version.map(str::to_owned),
                ..Conditions::default()
            };
            assert_eq!(caption(&conditions), expected);
        };
        check(Some(0), Some("0.1.0"), "Some CPU; measured 1970-01-01 00:00 UTC with nodewise 0.1.0");
        // `date -u -d @951782399`, a second before the leap day of 2000, and that day.
        check(Some(951_782_399), None, "Some CPU; measured 2000-02-28 23:59 UTC");
        check(Some(951_782_400), None, "Some CPU; measured 2000-02-29 00:00 UTC");
        check(Some(1_795_359_600), None, "Some CPU; measured 2026-11-22 15:00 UTC");
        check(Some(253_402_300_800), Some("0.1.0"), "Some CPU; measured with nodewise 0.1.0");
        check(None, None, "Some CPU");
    }
}
