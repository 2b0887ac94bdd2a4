//! The plan of `nodewise balance`, and in `balance/evaluation.rs` its evaluation.

pub mod evaluation;

use std::collections::BTreeMap;
use std::time::Duration;

use nodewise_diagnose::balance::{Action, LeftAlone, Limits, Named, Need, Plan};
use nodewise_machine::Bytes;
use nodewise_machine::check::node_names;
use nodewise_machine::order::Order as _;
use nodewise_machine::plural::{by_count, plural};
use nodewise_machine::printable::printable;

use crate::style::{Ink, Style};
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table};

/// Processes that are named for one reason; the others are counted.
const NAMED: usize = 3;

/// The circumstances of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanSetting {
    pub windows: u32,
    pub window: Duration,
    /// Whether the kernel's balancing is on.
    pub balancing: bool,
    /// Why the plan could not be carried out by this user.
    pub missing_rights: Option<String>,
}

fn named(process: &Named) -> String {
    format!("{} ({})", printable(&process.name), process.identity.pid)
}

/// The nodes of an action in words, without its process: `pages 0 -> 1, threads to node 1`.
fn means(action: &Action) -> String {
    let mut parts: Vec<String> = Vec::new();
    if !action.means.pages.is_empty() {
        let pages = action.means.pages.iter().map(|pages| format!("{} -> {}", pages.from, pages.to));
        parts.push(format!("pages {}", pages.collect::<Vec<_>>().join(", ")));
    }
    if let Some(spread) = &action.means.spread {
        parts.push(format!("pages spread over {}", node_names(&spread.over)));
    }
    if let Some((cpus, nodes)) = &action.means.cpus {
        parts.push(format!("threads to {} (CPUs {cpus})", node_names(nodes)));
    }
    parts.join("; ")
}

fn why(need: Need) -> String {
    match need {
        Need::Stranded(share) => {
            format!("{:.0} % of its memory is on nodes where it does not run", share * 100.0)
        }
        Need::Scattered(share) => {
            format!("its memory is on one node; {:.0} % of it is remote to its threads", share * 100.0)
        }
        Need::Advised(share) => format!("advised; {:.0} % of its memory is elsewhere", share * 100.0),
    }
}

/// An action in one line.
pub fn action(action: &Action) -> String {
    format!("{}: {}, {} at most; {}", named(&action.process), means(action), action.most, why(action.need))
}

/// Time that moving takes at the rate, in seconds.
fn seconds(size: Bytes, limits: &Limits) -> f64 {
    size.get() as f64 / limits.rate.get().max(1) as f64
}

/// Writes the plan, what waits, and what is left alone with the reasons.
pub fn plan(plan: &Plan, limits: &Limits, setting: &PlanSetting, style: &Style) -> String {
    let mut page = Page::new(*style);
    page.heading("Plan", &conclusion(plan, setting));
    if let Some(stop) = &plan.stop {
        page.line(4, &Line::from("  ").with(Ink::Notable, format!("nothing would be done now: {stop}")));
    }
    actions(plan, limits, &mut page);
    waiting(plan, setting, &mut page);
    left_alone(plan, limits, &mut page);
    let limits = format!(
        "  limits: {}/s, {} an hour; {:.0} % of the target node stays available; nothing moves above {} % memory \
         pressure",
        limits.rate,
        limits.per_hour,
        limits.keep_available * 100.0,
        limits.pressure
    );
    page.line(4, &Line::new().with(Ink::Faint, limits));
    if let Some(missing) = &setting.missing_rights {
        page.line(4, &Line::from("  ").with(Ink::Notable, missing.as_str()));
    }
    page.line(4, &Line::from("  nothing was changed; --apply acts, and balance undo takes it back"));
    page.finish()
}

fn conclusion(plan: &Plan, setting: &PlanSetting) -> String {
    let PlanSetting { windows, window, .. } = setting;
    let watched = window.as_secs_f64() * f64::from(*windows);
    let actions = match plan.actions.len() {
        0 => "nothing to do".to_owned(),
        count => plural(count, "action"),
    };
    format!(
        "{actions} (watched {watched:.0} s in {}; {} {} with known memory, {} too small)",
        plural(*windows, "window"),
        plan.examined,
        by_count(&plan.examined, "process", "processes"),
        plan.small
    )
}

const fn column(head: &'static str, align: Align) -> Column {
    Column { head, align, keep: Keep::Always }
}

fn actions(plan: &Plan, limits: &Limits, page: &mut Page) {
    if plan.actions.is_empty() {
        return;
    }
    let mut table = Table::new(vec![
        column("process", Align::Left),
        column("action", Align::Left),
        column("bytes", Align::Right),
        column("time", Align::Right),
        column("why", Align::Left),
    ]);
    for action in &plan.actions {
        table.row(vec![
            named(&action.process).into(),
            means(action).into(),
            action.most.to_string().into(),
            format!("{:.0} s", seconds(action.most, limits)).into(),
            why(action.need).into(),
        ]);
    }
    table.write(page);
}

fn waiting(plan: &Plan, setting: &PlanSetting, page: &mut Page) {
    for waiting in plan.waiting.iter().filter(|waiting| waiting.need.is_some()) {
        let need = waiting.need.map(why).unwrap_or_default();
        let text = format!("  waits: {}: {}; {need}", named(&waiting.process), waiting.hold);
        page.line(4, &Line::from(text));
    }
    if setting.balancing && !plan.waiting.is_empty() {
        let text = "  the kernel's balancing is on: it has two scans to move pages itself";
        page.line(4, &Line::new().with(Ink::Faint, text));
    }
}

/// Processes by reason, the reasons with the most memory first.
fn left_alone(plan: &Plan, limits: &Limits, page: &mut Page) {
    let mut reasons: BTreeMap<String, Vec<&LeftAlone>> = BTreeMap::new();
    for left in &plan.left_alone {
        reasons.entry(left.why.to_string()).or_default().push(left);
    }
    let size = |left: &[&LeftAlone]| left.iter().map(|left| left.size).sum::<Bytes>();
    let mut reasons: Vec<(String, Vec<&LeftAlone>)> = reasons.into_iter().collect();
    reasons.order_by_key(|(_, left)| std::cmp::Reverse(size(left)));
    for (reason, left) in reasons {
        let mut names: Vec<String> = left.iter().take(NAMED).map(|left| named(&left.process)).collect();
        if left.len() > NAMED {
            names.push(format!("{} more", left.len() - NAMED));
        }
        page.line(4, &Line::from(format!("  left alone: {} {reason}", names.join(", "))));
    }
    if plan.small > 0 {
        let text = format!("  left alone: {} with less than {}", plan.small, limits.least_size);
        page.line(4, &Line::new().with(Ink::Faint, text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_diagnose::Pid;
    use nodewise_diagnose::balance::{Hold, Means, Never, PageMove, Stop, Waiting};
    use nodewise_diagnose::sample::Identity;
    use nodewise_machine::{CpuSet, NodeId, NodeSet};

    fn process(pid: u32, name: &str) -> Named {
        Named { identity: Identity { pid: Pid::new(pid), started_ticks: 5 }, name: name.to_owned() }
    }

    fn example() -> Plan {
        let pages = PageMove { from: NodeId::new(2), to: NodeId::new(0), size: Bytes::from_gib(2) };
        let cpus: (CpuSet, NodeSet) = ("12-15".parse().unwrap(), NodeSet::from([3]));
        let action = |name, need, means: Means| Action {
            process: process(3310, name),
            need,
            most: means.size(),
            means,
            remote: Some(0.4),
        };
        Plan {
            actions: vec![
                action("java", Need::Stranded(0.37), Means { pages: vec![pages], ..Means::default() }),
                action("python3", Need::Scattered(0.5), Means { cpus: Some(cpus), ..Means::default() }),
            ],
            waiting: vec![Waiting {
                process: process(7, "\u{1b}[2J"),
                need: Some(Need::Stranded(0.2)),
                hold: Hold::NoRoom(NodeId::new(1)),
            }],
            left_alone: vec![LeftAlone {
                process: process(2417, "mysqld"),
                size: Bytes::from_gib(9),
                why: Never::Policy("bind:1".to_owned()),
            }],
            small: 400,
            examined: 412,
            ..Plan::default()
        }
    }

    fn setting() -> PlanSetting {
        PlanSetting { windows: 3, window: Duration::from_secs(15), balancing: true, missing_rights: None }
    }

    fn flat(found: &Plan) -> String {
        let text = plan(found, &Limits::default(), &setting(), &Style::plain(200));
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_plan_names_processes_means_and_reasons() {
        let text = flat(&example());
        for expected in [
            "2 actions (watched 45 s in 3 windows; 412 processes with known memory, 400 too small)",
            "java (3310) pages 2 -> 0 2 GiB 20 s 37 % of its memory is on nodes where it does not run",
            "python3 (3310) threads to node 3 (CPUs 12-15) 0 B 0 s",
            "(7): node 1 has no room; 20 %",
            "left alone: mysqld (2417) has a memory policy (\"bind:1\")",
            "nothing was changed",
        ] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn what_stops_everything_is_said_first() {
        let text = flat(&Plan { stop: Some(Stop::Placer("numad".to_owned())), ..Plan::default() });
        assert!(text.contains("nothing to do") && text.contains("\"numad\" places processes too"), "{text}");
    }
}
