use nodewise_machine::id::Id as _;
use nodewise_syscall::{Task, affinity};

use super::*;
use crate::cell::facts::NoFacts;
use crate::survey::{Outcome, Pace, Surveyor};
use nodewise_stats::Direction;
use nodewise_syscall::clock::Monotonic;

fn conduct(pairs: &[Pair]) -> Vec<Outcome> {
    let mut surveyor = Surveyor { facts: &mut NoFacts, clock: &Monotonic::start(), observer: &mut |_| {} };
    surveyor.conduct(&mut CoreBench::new(1), pairs, Pace::exactly(2, 1), 1).outcomes
}

/// Two CPUs; where there is only one, it twice: the threads then take turns, slowly.
fn two() -> (CpuId, CpuId) {
    let cpus = affinity::cpus(Task::CURRENT).unwrap();
    let mut cpus = cpus.iter().cycle();
    (cpus.next().unwrap(), cpus.next().unwrap())
}

#[test]
fn two_cpus_have_a_latency_for_every_transfer() {
    let (to, from) = two();
    let pair = |transfer| Pair { to, from, home: NodeId::new(0), transfer };
    let pairs = Transfer::ALL.map(pair);
    for (pair, outcome) in pairs.iter().zip(conduct(&pairs)) {
        if to == from {
            // Whether the turns of one CPU go round in time is not known.
            continue;
        }
        assert_eq!(outcome.refusal, None, "{pair:?}");
        assert!(outcome.figure(Direction::LowerIsBetter).unwrap().best > 0.0, "{pair:?}");
        assert!(outcome.after.unwrap().is_full());
    }
}

#[test]
fn a_cpu_or_a_node_that_does_not_exist_is_refused() {
    let (here, _) = two();
    let lost = CpuId::new(CpuId::LIMIT - 1);
    let home = NodeId::new(0);
    let pair = |to, from, home| Pair { to, from, home, transfer: Transfer::HandOver };
    let outcomes =
        conduct(&[pair(here, lost, home), pair(lost, here, home), pair(here, here, NodeId::new(900))]);
    assert_eq!(outcomes[0].refusal, Some(Refusal::CpuLost { cpu: lost }));
    assert_eq!(outcomes[1].refusal, Some(Refusal::CpuLost { cpu: lost }));
    assert!(matches!(outcomes[2].refusal, Some(Refusal::Call(_))));
}

#[test]
fn names_are_read_back() {
    for transfer in Transfer::ALL {
        assert_eq!(Transfer::from_name(transfer.name()), Some(transfer));
    }
    assert_eq!(Transfer::from_name("ping"), None);
}
