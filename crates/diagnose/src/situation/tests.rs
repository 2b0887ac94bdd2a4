use nodewise_machine::Bytes;

use super::fixture::{Fixture, Work, nodes, seconds};
use super::*;

const FOUR: &str = "4x(2c 16G)";

fn gib(count: u64) -> Bytes {
    Bytes::from_gib(count)
}

#[test]
fn shared_memory_is_not_available_and_the_edge_is_left_out() {
    let mut fixture = Fixture::new(FOUR);
    fixture.meminfo(1, "MemFree", gib(1));
    fixture.meminfo(1, "Shmem", gib(8));
    let situation = Situation::new(&fixture.machine, None, &fixture.now).unwrap();
    let node = situation.nodes[&NodeId::new(1)];
    assert_eq!(node.available.unwrap() + node.high.unwrap(), gib(5), "free, and 2 + 2 GiB of page cache");
    fixture.now.nodes[1].memory.retain(|field| field.name != "SReclaimable");
    let situation = Situation::new(&fixture.machine, None, &fixture.now).unwrap();
    assert_eq!(situation.nodes[&NodeId::new(1)].available, None, "unknown is not 0");
}

#[test]
fn memory_that_is_not_initialised_yet_is_free() {
    let mut fixture = Fixture::new("(2c 128G)");
    fixture.meminfo(0, "MemTotal", gib(4));
    fixture.meminfo(0, "MemFree", gib(3));
    fixture.now.memory = Some(gib(126));
    fixture.now.nodes[0].present = Some(gib(128));
    let situation = Situation::new(&fixture.machine, None, &fixture.now).unwrap();
    let node = situation.nodes[&NodeId::new(0)];
    assert_eq!((node.size, node.free), (gib(126), gib(125)));
    assert_eq!(node.available.unwrap() + node.high.unwrap(), gib(125 + 32), "free, and page cache");
}

#[test]
fn memory_is_stranded_where_its_process_can_not_have_run() {
    let mut fixture = Fixture::new(FOUR);
    fixture.process(&Work {
        memory: &[(0, gib(1)), (2, gib(3))],
        cpu: &[(0, seconds(9)), (2, seconds(1))],
        ..Work::default()
    });
    let situation = Situation::new(&fixture.machine, Some(&fixture.before), &fixture.now).unwrap();
    let process = &situation.processes[0];
    assert_eq!(process.runs_on(), nodes("0-1"));
    assert_eq!(process.stranded(&situation.places.with_cpus()), Some((gib(3), nodes("2"))));
    // Memory that came in the window may still be on its way.
    let mut process = (*fixture.before.processes.last().unwrap().as_ref()).clone();
    process.pages.as_mut().unwrap().nodes.remove(&NodeId::new(2));
    *fixture.before.processes.last_mut().unwrap() = process.into();
    let situation = Situation::new(&fixture.machine, Some(&fixture.before), &fixture.now).unwrap();
    assert_eq!(situation.processes[0].stranded(&situation.places.with_cpus()), None);
}

#[test]
fn an_idle_process_has_nothing_stranded() {
    let mut fixture = Fixture::new(FOUR);
    fixture.process(&Work { memory: &[(2, gib(3))], ..Work::default() });
    let situation = Situation::new(&fixture.machine, Some(&fixture.before), &fixture.now).unwrap();
    assert_eq!(situation.processes[0].stranded(&situation.places.with_cpus()), None);
}

#[test]
fn nodes_with_a_page_or_two_are_not_named() {
    let mut fixture = Fixture::new(FOUR);
    let page = Bytes::from_kib(4);
    fixture.process(&Work { memory: &[(2, gib(3)), (3, page)], cpu: &[(0, seconds(9))], ..Work::default() });
    let situation = Situation::new(&fixture.machine, Some(&fixture.before), &fixture.now).unwrap();
    let stranded = situation.processes[0].stranded(&situation.places.with_cpus());
    assert_eq!(stranded, Some((gib(3) + page, nodes("2"))));
}

#[test]
fn pages_of_files_are_no_own_memory() {
    let with = |own: Option<Bytes>| {
        let mut fixture = Fixture::new(FOUR);
        fixture.process(&Work { memory: &[(2, gib(4))], cpu: &[(0, seconds(10))], ..Work::default() });
        fixture.now.mappings.clear();
        for sample in [&mut fixture.before, &mut fixture.now] {
            let process = std::sync::Arc::make_mut(sample.processes.last_mut().unwrap());
            process.pages.as_mut().unwrap().nodes.get_mut(&NodeId::new(2)).unwrap().own = own;
        }
        fixture
    };
    let stranded = |fixture: &Fixture| {
        let situation = Situation::new(&fixture.machine, Some(&fixture.before), &fixture.now).unwrap();
        let stranded =
            situation.processes.first().and_then(|process| process.stranded(&situation.places.with_cpus()));
        stranded.map(|(size, _)| size)
    };
    assert_eq!(stranded(&with(Some(gib(1)))), Some(gib(1)));
    assert_eq!(stranded(&with(Some(gib(0)))), None);
    let unknown = with(None);
    assert_eq!(stranded(&unknown), None);
    let situation = Situation::new(&unknown.machine, None, &unknown.now).unwrap();
    let lack = crate::rule::Fact::Pages.lack(&situation).unwrap();
    assert_eq!(lack.reason, "nothing says which of their pages are of files");
}
