//! Where figures come from, in the words of a caption: the machine, its kernel, the source, the date.

use std::time::{SystemTime, UNIX_EPOCH};

use nodewise_machine::{Machine, Origin};

use super::counts::processors;

/// A machine's processors, kernel and source, as a picture has them below its title; what is not known is left
/// out. Foreign text.
pub fn provenance(machine: &Machine) -> String {
    let kernel = machine.kernel.as_ref().map(|kernel| format!("Linux {kernel}"));
    let parts = [processors(machine), kernel.unwrap_or_default(), source(machine)];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

/// Where the description of a machine comes from, and when it was read: `from capture web7.tar, as of 2026-11-25
/// 12:30 UTC`. Empty for the running machine if the time is not known.
pub fn source(machine: &Machine) -> String {
    let origin = match &machine.origin {
        Origin::Live => None,
        origin => Some(format!("from {origin}")),
    };
    let moment = machine.read_at.and_then(date).map(|date| format!("as of {date}"));
    origin.into_iter().chain(moment).collect::<Vec<_>>().join(", ")
}

/// A moment as a date and a time of UTC, to the minute; `None` before 1970 and from the year 10000 on.
pub fn date(moment: SystemTime) -> Option<String> {
    const DAY: u64 = 86_400;
    let seconds = moment.duration_since(UNIX_EPOCH).ok()?.as_secs();
    // The proleptic Gregorian calendar in eras of 400 years from the first of March of the year 0 on: Hinnant,
    // "chrono-Compatible Low-Level Date Algorithms", civil_from_days.
    let days = seconds / DAY + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute) = (seconds % DAY / 3_600, seconds % 3_600 / 60);
    (year < 10_000).then(|| format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02} UTC"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_caption_has_processors_kernel_source_and_date_as_far_as_they_are_known() {
        let mut machine = nodewise_machine::spec::machine("(1c 1G); kernel=6.12.1").unwrap();
        let check = |machine: &Machine, expected: &str| assert_eq!(provenance(machine), expected);
        check(&machine, "Linux 6.12.1, from spec (1c 1G); kernel=6.12.1");
        machine.origin = Origin::Capture("web7.tar".to_owned());
        machine.read_at = Some(UNIX_EPOCH + Duration::from_secs(1_795_359_600));
        check(&machine, "Linux 6.12.1, from capture web7.tar, as of 2026-11-22 15:00 UTC");
        (machine.origin, machine.kernel) = (Origin::Live, None);
        check(&machine, "as of 2026-11-22 15:00 UTC");
        machine.read_at = None;
        check(&machine, "");
    }
}
