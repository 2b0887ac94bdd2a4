//! Fewer huge pages than the boot line asked for.

use std::collections::BTreeMap;

use nodewise_machine::Bytes;
use nodewise_source::paths::shown;

use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Subject, Value};
use crate::rule::{Fact, Rule, any};
use crate::situation::Situation;

pub static RULE: Rule = Rule {
    id: "hugepages-cut",
    title: "the boot line asks for more huge pages than there are",
    severity: Severity::Warning,
    on: any,
    needs: &[Fact::Pools, Fact::CommandLine],
    sign: "hugepages= on the command line, for the size named before it, is more than the pools of that size hold",
    thresholds: &[],
    traps: "pools that were made smaller on purpose since the start",
    explains: &["hugepages-uneven"],
    sources: &["Documentation/admin-guide/kernel-parameters.txt: hugepages=, hugepagesz="],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let settings = &situation.machine.settings;
    let line = settings.command_line.as_deref().unwrap_or_default();
    let wanted = wanted(line, settings.default_huge_page_size);
    wanted.into_iter().filter_map(|(size, count)| find(situation, size, count)).collect()
}

/// Pages by size. Each size is named before its number; without a name it is the default.
fn wanted(line: &str, default: Option<Bytes>) -> BTreeMap<Bytes, u64> {
    let (mut size, mut wanted) = (default, BTreeMap::new());
    for word in line.split_ascii_whitespace().take_while(|word| *word != "--") {
        if let Some(text) =
            word.strip_prefix("hugepagesz=").or_else(|| word.strip_prefix("default_hugepagesz="))
        {
            size = text.parse().ok();
        } else if let Some(text) = word.strip_prefix("hugepages=") {
            let count = |part: &str| part.rsplit(':').next().and_then(|count| count.parse::<u64>().ok());
            let sum = text.split(',').try_fold(0u64, |sum, part| sum.checked_add(count(part)?));
            if let (Some(size), Some(sum)) = (size, sum) {
                wanted.insert(size, sum);
            }
        }
    }
    wanted
}

fn find(situation: &Situation<'_>, size: Bytes, wanted: u64) -> Option<RuleFinding> {
    let pools = situation.now.nodes.iter().flat_map(|node| &node.pools).filter(|pool| pool.page_size == size);
    let got: u64 = pools.map(|pool| pool.total).fold(0, u64::saturating_add);
    if got >= wanted {
        return None;
    }
    let summary = format!("{wanted} pages of {size} were asked for at boot, {got} are there");
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, Subject::Machine, summary);
    finding.confidence = Confidence::Likely;
    finding.concerns = Some(size.times(wanted - got));
    finding.evidence = vec![
        Evidence::new("asked for", Value::Count(wanted, "pages"), shown::COMMAND_LINE),
        Evidence::new("got", Value::Count(got, "pages"), shown::NODE_POOL),
    ];
    finding.cause = Some("memory was short or fragmented, or the pool was made smaller since".to_owned());
    finding.mends = vec![Mend::words(
        "ask for less, or ask by node: nodewise hugepages persist NODE=COUNT,...",
        Scope::Reboot,
    )];
    Some(finding)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_belongs_to_the_size_before_it() {
        let check = |line: &str, expected: &[(u64, u64)]| {
            let found: Vec<(u64, u64)> = wanted(line, Some(Bytes::from_mib(2)))
                .into_iter()
                .map(|(size, count)| (size.mib(), count))
                .collect();
            assert_eq!(found, expected, "{line}");
        };
        check("quiet hugepages=16 hugepagesz=1G hugepages=0:2,1:3", &[(2, 16), (1024, 5)]);
        check("hugepages=16 hugepages=18", &[(2, 18)]);
        check("hugepagesz=x hugepages=16", &[]);
        check("hugepages=99999999999999999999999 -- hugepages=1", &[]);
        check("hugepages=18446744073709551615,1:1", &[]);
    }
}
