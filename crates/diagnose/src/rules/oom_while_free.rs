//! The kernel killed a process for want of memory while other nodes had some.

use nodewise_machine::{Bytes, NodeId, NodeSet};
use nodewise_source::paths::shown;
use nodewise_source::sample::{ProcessSample, Sample};

use super::words::nodes;
use crate::finding::{Confidence, Evidence, Mend, Owner, RuleFinding, Scope, Severity, Subject, Value};
use crate::rule::{Fact, Rule, several_nodes};
use crate::situation::{NodeState, Situation};
use crate::thresholds;

pub static RULE: Rule = Rule {
    id: "oom-while-free",
    title: "the kernel killed a process for want of memory while other nodes had some",
    severity: Severity::Critical,
    on: several_nodes,
    needs: &[Fact::Rates, Fact::Events, Fact::NodeMemory, Fact::Watermarks, Fact::Processes],
    sign: "the kernel counted a kill in the window, a process that is gone had at least 90 % of its memory on nodes that \
           were short at the beginning (below twice their high watermarks, less than 10 % available), and at least 10 % of \
           the machine is available on other nodes",
    thresholds: &[
        &thresholds::SIGNIFICANT,
        &thresholds::SIGNIFICANT_SHARE,
        &thresholds::OOM_ON_SHORT,
        &thresholds::OOM_SHORT,
        &thresholds::OOM_MARKS,
        &thresholds::OOM_ELSEWHERE,
    ],
    traps: "a memory limit of a control group kills without any node being short; a process that ended by itself in the same \
            window: likely at most, the kernel's log names the policy or cpuset",
    explains: &["node-at-watermark", "swap-while-free"],
    sources: &["mm/oom_kill.c: CONSTRAINT_MEMORY_POLICY and CONSTRAINT_CPUSET", "polardb#692"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    diagnose(situation).into_iter().collect()
}

/// The memory of a process on nodes, and on all.
fn memory(process: &ProcessSample, on: &NodeSet) -> Option<(Bytes, Bytes)> {
    let pages = &process.pages.as_ref()?.nodes;
    let part = pages.iter().filter(|(node, _)| on.contains(**node)).map(|(_, share)| share.size).sum();
    Some((part, pages.values().map(|share| share.size).sum()))
}

fn diagnose(situation: &Situation<'_>) -> Option<RuleFinding> {
    let killed = situation.event("oom_kill").filter(|count| *count > 0)?;
    let before = situation.before?;
    let short = short(situation, before);
    // A process that was killed stays in the list until its parent asks for its end.
    let has_left = |process: &&ProcessSample| {
        let now = situation.now.process(process.identity);
        !process.kernel_thread && now.is_none_or(|now| matches!(now.state, 'Z' | 'X'))
    };
    let lost = before.processes.iter().map(AsRef::as_ref).filter(has_left).filter_map(|process| {
        let (on_short, all) = memory(process, &short)?;
        let share = if all.get() == 0 { 0.0 } else { on_short.get() as f64 / all.get() as f64 };
        let is_much = on_short >= situation.floor() && share >= situation.limit(&thresholds::OOM_ON_SHORT);
        is_much.then_some((process, on_short, share))
    });
    let (process, size, share) = lost.max_by_key(|(_, size, _)| *size)?;
    let others = situation.memory_nodes().difference(&short);
    let room: Bytes = others.iter().filter_map(|node| situation.nodes.get(&node)).map(NodeState::room).sum();
    let least = situation.total().share(situation.limit(&thresholds::OOM_ELSEWHERE));
    if room < least {
        return None;
    }
    let subject = Subject::Process {
        identity: process.identity,
        name: process.name.as_ref().to_owned(),
        owner: Owner::from_process(process),
    };
    let summary = format!(
        "it had {size} on {} and is gone, with {killed} of the kernel's kills; {} had {room} available",
        nodes(&short),
        nodes(&others)
    );
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, subject, summary);
    finding.confidence = Confidence::Likely;
    finding.concerns = Some(size);
    finding.evidence = vec![
        Evidence::new("kills for want of memory", Value::Count(killed, "kills"), shown::VMSTAT),
        Evidence::new(format!("its memory on {}", nodes(&short)), Value::Share(share), shown::NUMA_MAPS)
            .at(situation.thresholds(), &thresholds::OOM_ON_SHORT),
        Evidence::new(format!("available on {}", nodes(&others)), Value::Size(room), shown::NODE_MEMINFO)
            .at_part(Value::Size(least), situation.thresholds(), &thresholds::OOM_ELSEWHERE),
    ];
    let cpuset = process.allowed.as_ref().and_then(|allowed| allowed.nodes.as_ref());
    finding.cause = Some(match cpuset {
        Some(allowed) if allowed.is_disjoint(&others) => format!("its cpuset has {} only", nodes(allowed)),
        _ => "a policy, or a limit of its control group: dmesg says which (constraint=)".to_owned(),
    });
    finding.mends = vec![Mend {
        commands: vec![format!("nodewise run --preferred-many={short} -- COMMAND")],
        ..Mend::words(
            "start it with a policy that goes on elsewhere when its nodes are full, and with a cpuset that has them",
            Scope::Restart,
        )
    }];
    finding.nodes = short;
    Some(finding)
}

/// Nodes that were short at the beginning of the window.
fn short(situation: &Situation<'_>, before: &Sample) -> NodeSet {
    let (part, marks) = (situation.limit(&thresholds::OOM_SHORT), situation.limit(&thresholds::OOM_MARKS));
    let is_short = |node: NodeId| {
        let then = situation.state_in(before, node)?;
        Some(then.free < then.high?.share(marks) && then.room() < then.size.share(part))
    };
    situation.memory_nodes().iter().filter(|node| is_short(*node) == Some(true)).collect()
}
