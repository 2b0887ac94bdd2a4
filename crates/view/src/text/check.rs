//! A check of one machine in one line, for programs that watch machines.

use nodewise_fleet::check::{CheckFinding, HostCheck};
use nodewise_fleet::group::FigureName;
use nodewise_fleet::suspect::inverse;
use nodewise_machine::plural::plural;
use nodewise_machine::printable::printable;

use crate::digest::fleet::pair_words;

/// The result of a check in a line without a line end: what is wrong, the worst first, or what was compared.
pub fn check(check: &HostCheck) -> String {
    if check.findings.is_empty() {
        return format!("healthy: {}", compared(check));
    }
    let findings: Vec<String> = check.findings.iter().map(finding).collect();
    let count = plural(findings.len(), "finding");
    printable(&format!("{count}: {}", findings.join("; "))).into_owned()
}

fn compared(check: &HostCheck) -> String {
    let group = check.group.as_ref();
    let group =
        group.map(|(name, hosts)| format!("{} as group {name} ({})", check.host, plural(*hosts, "host")));
    let mut parts = vec![group.unwrap_or_else(|| format!("{}, compared with no group", check.host))];
    if check.facts_compared > 0 {
        parts.push(plural(check.facts_compared, "fact"));
    }
    if !check.figures.is_empty() {
        parts.push(plural(check.figures.len(), "figure"));
    }
    printable(&parts.join(", ")).into_owned()
}

fn finding(finding: &CheckFinding) -> String {
    match finding {
        CheckFinding::Slow { figure, slowness, pairs, .. } => {
            let worst = pairs.first().map(|pair| format!(" ({})", pair_words(pair))).unwrap_or_default();
            format!("{figure} {:.2} times that of its group{worst}", inverse(*figure, *slowness))
        }
        CheckFinding::Fact { fact, value, usual } => format!("{fact}: {value}, usually {usual}"),
        CheckFinding::Finding { id, severity, summary } => format!("{id} ({}): {summary}", severity.word()),
        CheckFinding::UnknownKind { kind } => format!("no machine of the reference is {kind}"),
        CheckFinding::UnknownLayout { layout } => {
            format!("{layout}: no machine of the reference with this hardware is divided so")
        }
    }
}

/// The line with its beginning and its figures as plugins of Nagios print them: `NODEWISE OK - ... | latency=1.01`.
pub fn nagios(state: &str, line: &str, check: Option<&HostCheck>) -> String {
    // A bar would begin the figures.
    let line = line.replace('|', "/");
    let label = |name: &FigureName| match name.memory {
        None => name.quantity.word().to_owned(),
        Some(node) => format!("{}_node{node}", name.quantity.word()),
    };
    let figures = check.into_iter().flat_map(|check| &check.figures);
    let figures: Vec<String> = figures.map(|(name, slow)| format!("{}={slow:.3}", label(name))).collect();
    let figures = if figures.is_empty() { String::new() } else { format!(" | {}", figures.join(" ")) };
    format!("NODEWISE {state} - {line}{figures}")
}

/// The beginning of a line that some readers cut, with dots where something is left out.
pub fn cut(line: &str, most: usize) -> String {
    match line.char_indices().nth(most) {
        None => line.to_owned(),
        Some(_) => {
            let kept: String = line.chars().take(most.saturating_sub(3)).collect();
            format!("{kept}...")
        }
    }
}

#[cfg(test)]
mod tests {
    use nodewise_fleet::survey::Quantity;
    use nodewise_machine::Severity;

    use super::*;

    fn checked(findings: Vec<CheckFinding>) -> HostCheck {
        HostCheck {
            host: "web7".to_owned(),
            group: Some(("A".to_owned(), 64)),
            findings,
            facts_compared: 23,
            figures: vec![(FigureName { quantity: Quantity::Latency, memory: None }, 1.012)],
        }
    }

    #[test]
    fn a_healthy_machine_names_its_group() {
        let healthy = checked(Vec::new());
        let line = check(&healthy);
        assert_eq!(line, "healthy: web7 as group A (64 hosts), 23 facts, 1 figure");
        assert_eq!(nagios("OK", &line, Some(&healthy)), format!("NODEWISE OK - {line} | latency=1.012"));
    }

    #[test]
    fn foreign_texts_stay_in_their_line() {
        let finding = CheckFinding::Finding {
            id: "x".to_owned(),
            severity: Severity::Warning,
            summary: "a\nb | c\u{1b}[2J".to_owned(),
        };
        let line = nagios("WARNING", &check(&checked(vec![finding])), None);
        assert!(line.lines().count() == 1 && !line.contains('\u{1b}') && !line.contains('|'), "{line}");
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdefg", 6), "abc...");
    }
}
