use std::collections::BTreeSet;

use nodewise_machine::{Bytes, MemPolicy, PolicyMode, mapping::MappingKind};

use super::*;
use crate::situation::fixture::{Fixture, Work, nodes, seconds};

const FOUR: &str = "4x(2c 16G)";

fn diagnosis(fixture: &Fixture) -> Diagnosis {
    let situation = Situation::new(&fixture.machine, Some(&fixture.before), &fixture.now).unwrap();
    Diagnosis::new(&situation, &[])
}

fn rules_of(findings: &[RuleFinding]) -> Vec<&'static str> {
    findings.iter().map(|finding| finding.rule).collect()
}

#[test]
fn a_healthy_machine_has_no_finding() {
    let mut fixture = Fixture::new(FOUR);
    let size = Bytes::from_gib(4);
    fixture.process(&Work { memory: &[(1, size)], cpu: &[(2, seconds(10))], ..Work::default() });
    fixture.process(&Work {
        pid: 200,
        memory: &[(0, size), (3, size)],
        cpu: &[(0, seconds(3)), (6, seconds(3))],
        ..Work::default()
    });
    assert_eq!(rules_of(&diagnosis(&fixture).findings), [] as [&str; 0]);
}

#[test]
fn a_cause_takes_its_effect_under_it() {
    let mut fixture = Fixture::new(FOUR);
    let size = Bytes::from_gib(4);
    let work = Work { memory: &[(2, size)], cpu: &[(0, seconds(10))], cpus: Some("0-1"), ..Work::default() };
    fixture.process(&work);
    let bound = MemPolicy::new(PolicyMode::Bind, nodes("2"));
    fixture.mappings(100, &[(MappingKind::Anonymous, bound, &[(2, size)])]);
    let found = diagnosis(&fixture);
    assert_eq!(rules_of(&found.findings), ["memory-stranded"]);
    assert_eq!(rules_of(&found.findings[0].explains), ["bound-away"]);
    assert_eq!((found.at_least(Severity::Warning), found.at_least(Severity::Critical)), (1, 0));
}

#[test]
fn the_worst_comes_first_and_a_small_part_of_the_machine_is_a_note() {
    let mut fixture = Fixture::new(FOUR);
    let (small, large) = (Bytes::from_mib(400), Bytes::from_gib(3));
    let cpu = &[(0, seconds(10))];
    fixture.process(&Work { memory: &[(2, small)], cpu, ..Work::default() });
    fixture.process(&Work { pid: 200, memory: &[(3, large)], cpu, ..Work::default() });
    let found = diagnosis(&fixture).findings;
    let shown: Vec<_> = found.iter().map(|finding| (finding.severity, finding.concerns)).collect();
    assert_eq!(shown, [(Severity::Warning, Some(large)), (Severity::Note, Some(small))]);
}

#[test]
fn a_rule_without_its_facts_is_not_examined_and_says_why() {
    let fixture = Fixture::new(FOUR);
    let situation = Situation::new(&fixture.machine, None, &fixture.now).unwrap();
    let found = Diagnosis::new(&situation, &["swap-while-free".to_owned()]);
    assert!(found.examined.is_empty());
    let [(rule, lacks)] = &found.not_examined[..] else { panic!("one rule") };
    assert_eq!((rule.id, lacks[0].fact), ("swap-while-free", "rates"));
}

#[test]
fn rules_about_other_machines_are_not_asked() {
    let fixture = Fixture::new("1x(2c 16G)");
    let found = diagnosis(&fixture);
    assert_eq!(found.class, Class::One);
    assert!(found.elsewhere > 0 && found.findings.is_empty());
}

#[test]
fn the_catalogue_has_each_id_once_and_explains_what_exists() {
    let ids: BTreeSet<&str> = rules::ALL.iter().map(|rule| rule.id).collect();
    assert_eq!(ids.len(), rules::ALL.len());
    for rule in rules::ALL {
        let is_plain =
            rule.id.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        assert!(is_plain && !rule.explains.contains(&rule.id), "{}", rule.id);
        assert!(!rule.title.is_empty() && !rule.sign.is_empty() && !rule.sources.is_empty(), "{}", rule.id);
    }
}

#[test]
fn a_mild_cause_is_as_severe_as_its_effect() {
    let mut fixture = Fixture::new(FOUR);
    let node = 1;
    fixture.meminfo(node, "MemFree", Bytes::from_mib(60));
    fixture.meminfo(node, "Active(file)", Bytes::default());
    fixture.meminfo(node, "Inactive(file)", Bytes::default());
    for sample in [&mut fixture.before, &mut fixture.now] {
        let pool = nodewise_source::sample::PoolSample {
            page_size: Bytes::from_mib(2),
            total: 2_048,
            free: Some(2_048),
            surplus: None,
        };
        sample.nodes[node as usize].pools = vec![pool];
    }
    let found = diagnosis(&fixture);
    assert_eq!(rules_of(&found.findings), ["hugepages-idle"]);
    assert_eq!(rules_of(&found.findings[0].explains), ["node-at-watermark"]);
    assert_eq!(found.at_least(Severity::Warning), 1);
}
