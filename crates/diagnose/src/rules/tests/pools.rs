//! Rules about pools of huge pages, and about transparent ones.

use nodewise_machine::mapping::Mapping;
use nodewise_source::sample::PoolSample;

use super::*;

const HUGE: Bytes = Bytes::from_mib(2);

fn pool(fixture: &mut Fixture, counts: &[(u64, u64)]) {
    for sample in [&mut fixture.before, &mut fixture.now] {
        for (node, (total, free)) in sample.nodes.iter_mut().zip(counts) {
            node.pools =
                vec![PoolSample { page_size: HUGE, total: *total, free: Some(*free), surplus: None }];
        }
    }
}

#[test]
fn a_pool_whose_sum_looks_right() {
    let rule = &hugepages_uneven::RULE;
    let mut fixture = Fixture::new(FOUR);
    let uneven = [(63, 63), (63, 63), (62, 62), (52, 52)];
    pool(&mut fixture, &uneven);
    let found = one(&fixture, rule);
    assert_eq!(found.subject, Subject::Nodes(nodes("3")));
    assert_eq!(found.mends[0].commands, ["nodewise hugepages set 3=60 --huge-page-size=2M"]);
    assert_eq!(found.mends[0].undo, ["nodewise hugepages set 3=52 --huge-page-size=2M"]);
    fixture.machine.settings.command_line = Some("quiet hugepages=0:63,3:52".to_owned());
    silent(&fixture, rule);
    // A node without any was left out on purpose.
    let mut fixture = Fixture::new(FOUR);
    pool(&mut fixture, &[(64, 64), (64, 64), (64, 64), (0, 0)]);
    silent(&fixture, rule);
    let fixture = Fixture::new(FOUR);
    let situation = crate::Situation::new(&fixture.machine, Some(&fixture.before), &fixture.now).unwrap();
    assert_eq!(rule.lacks(&situation)[0].fact, "pools of huge pages");
}

#[test]
fn numbers_that_may_have_been_chosen_by_node_are_possible_at_most() {
    let check = |counts: &[(u64, u64)], huge: Bytes, why: Option<&str>| {
        let mut fixture = Fixture::new(FOUR);
        pool(&mut fixture, counts);
        for sample in [&mut fixture.before, &mut fixture.now] {
            sample.nodes.iter_mut().flat_map(|node| &mut node.pools).for_each(|pool| pool.page_size = huge);
        }
        let found = one(&fixture, &hugepages_uneven::RULE);
        let cause = found.cause.unwrap();
        match why {
            Some(why) => {
                assert_eq!((found.severity, found.confidence), (Severity::Note, Confidence::Possible));
                assert!(cause.contains(why), "{cause}");
            }
            None => assert_eq!((found.severity, found.confidence), (Severity::Warning, Confidence::Likely)),
        }
    };
    check(&[(512, 512), (512, 512), (256, 256), (128, 128)], HUGE, Some("round"));
    check(&[(100, 100), (50, 50), (50, 50), (50, 50)], HUGE, Some("round"));
    check(&[(4, 4), (4, 4), (4, 4), (1, 1)], Bytes::from_gib(1), Some("by hand"));
    check(&[(63, 3), (63, 63), (62, 62), (52, 52)], HUGE, Some("free ones"));
    check(&[(63, 3), (63, 63), (62, 62), (52, 0)], HUGE, None);
}

#[test]
fn a_pool_that_starves_its_node() {
    let rule = &hugepages_idle::RULE;
    let mut fixture = Fixture::new(FOUR);
    let counts = [(0, 0), (2_048, 2_000), (0, 0), (0, 0)];
    pool(&mut fixture, &counts);
    silent(&fixture, rule);
    full(&mut fixture, 1, Bytes::default());
    let found = one(&fixture, rule);
    assert_eq!(found.mends[0].commands, ["nodewise hugepages set 1=48 --huge-page-size=2M"]);
    assert_eq!(found.mends[0].undo, ["nodewise hugepages set 1=2048 --huge-page-size=2M"]);
    pool(&mut fixture, &[(0, 0), (2_048, 0), (0, 0), (0, 0)]);
    silent(&fixture, rule);
}

/// A process with a GiB in a pool.
fn pooled(fixture: &mut Fixture, memory: &[(u32, Bytes)], cpu: u32) {
    fixture.process(&Work { memory, cpu: &[(cpu, seconds(10))], ..Work::default() });
    fixture.mappings(100, &[(MappingKind::HugePool, MemPolicy::DEFAULT, memory)]);
    let read = std::sync::Arc::make_mut(&mut fixture.now.mappings[0].mappings);
    read.mappings = read.mappings.drain(..).map(|of| Mapping { page_size: Some(HUGE), ..of }).collect();
}

#[test]
fn a_user_of_a_pool_that_is_elsewhere() {
    let rule = &hugepages_wrong_node::RULE;
    let mut fixture = Fixture::new(FOUR);
    pool(&mut fixture, &[(0, 0), (0, 0), (600, 88), (0, 0)]);
    pooled(&mut fixture, &[(2, gib(1))], 0);
    let found = one(&fixture, rule);
    assert_eq!(found.mends[0].commands, ["nodewise hugepages set 0=512 --huge-page-size=2M"]);
    // It took what it needs from its own node.
    let mut fixture = Fixture::new(FOUR);
    pool(&mut fixture, &[(512, 0), (0, 0), (600, 600), (0, 0)]);
    pooled(&mut fixture, &[(0, gib(1))], 0);
    silent(&fixture, rule);
}

#[test]
fn balancing_leaves_pools_where_they_are() {
    let rule = &hugetlb_stays::RULE;
    let mut fixture = Fixture::new(FOUR);
    fixture.machine.settings.numa_balancing = Some(1);
    pooled(&mut fixture, &[(2, gib(1))], 0);
    let found = one(&fixture, rule);
    assert_eq!(found.severity, Severity::Info);
    let commands = |at: usize| found.mends[at].commands[0].as_str();
    assert_eq!(commands(0), "nodewise hugepages set 0=512 --huge-page-size=2M");
    assert_eq!(commands(1), "nodewise run --cpunodebind=0 --membind=0 -- COMMAND");
    // Its own node has what it needs, or a part of it.
    pool(&mut fixture, &[(600, 600), (0, 0), (512, 0), (0, 0)]);
    assert_eq!(one(&fixture, rule).mends.len(), 1);
    pool(&mut fixture, &[(600, 500), (0, 0), (512, 0), (0, 0)]);
    assert_eq!(one(&fixture, rule).mends[0].commands, ["nodewise hugepages set 0=612 --huge-page-size=2M"]);
    fixture.machine.settings.numa_balancing = Some(0);
    silent(&fixture, rule);
}

#[test]
fn faults_that_wait_for_compaction() {
    let rule = &thp_stalling::RULE;
    let mut fixture = Fixture::new(FOUR);
    fixture.happened(&[("compact_stall", 900)]);
    silent(&fixture, rule);
    fixture.machine.settings.transparent_hugepage_defrag = Some("always".to_owned());
    let found = one(&fixture, rule);
    let file = "/sys/kernel/mm/transparent_hugepage/defrag";
    assert_eq!(found.mends[0].commands, [format!("echo defer+madvise > {file}")]);
    assert_eq!(found.mends[0].undo, [format!("echo always > {file}")]);
    fixture.happened(&[("compact_stall", 0)]);
    silent(&fixture, rule);
    assert!(fixture.lacks_at_once(rule).contains(&"rates"));
}

#[test]
fn fewer_pages_than_were_asked_for_at_boot() {
    let rule = &hugepages_cut::RULE;
    let mut fixture = Fixture::new(FOUR);
    pool(&mut fixture, &[(16, 16), (16, 16), (16, 16), (2, 2)]);
    fixture.machine.settings.command_line = Some("quiet hugepagesz=2M hugepages=64".to_owned());
    assert_eq!(one(&fixture, rule).concerns, Some(HUGE.times(14)));
    fixture.machine.settings.command_line = Some("quiet hugepagesz=2M hugepages=50".to_owned());
    silent(&fixture, rule);
    fixture.machine.settings.command_line = None;
    let situation = crate::Situation::new(&fixture.machine, Some(&fixture.before), &fixture.now).unwrap();
    assert_eq!(rule.lacks(&situation)[0].fact, "the kernel's command line");
}
