//! Plans and actions as lines of the journal.

use nodewise_diagnose::balance::{Action, Named, Need, Plan};
use nodewise_machine::NodeId;
use nodewise_source::balance_journal::{
    self, ActionEntry, Entry, LeftAloneEntry, PagesEntry, PlanEntry, PlannedEntry, ProcessEntry, WaitingEntry,
};

use super::act::Acted;
use crate::cli::balance::Balance;

pub(super) fn process(process: &Named) -> ProcessEntry {
    ProcessEntry {
        pid: process.identity.pid.number(),
        started_ticks: process.identity.started_ticks,
        name: process.name.clone(),
    }
}

const fn word(need: Need) -> &'static str {
    match need {
        Need::Stranded(_) => "stranded",
        Need::Scattered(_) => "scattered",
        Need::Advised(_) => balance_journal::ADVISED,
    }
}

pub(super) fn action(action: &Action) -> ActionEntry {
    let pages = action.means.pages.iter().map(|pages| PagesEntry {
        from: pages.from.number(),
        to: pages.to.number(),
        size_bytes: pages.size.get(),
    });
    ActionEntry {
        need: word(action.need).to_owned(),
        need_share: action.need.share(),
        remote_share: action.remote,
        pages: pages.collect(),
        most_bytes: action.most.get(),
        spread: action
            .means
            .spread
            .iter()
            .flat_map(|spread| spread.over.iter())
            .map(NodeId::number)
            .collect(),
        cpus: action.means.cpus.as_ref().map(|(cpus, _)| cpus.to_string()),
    }
}

pub(super) fn ended(acted: &Acted) -> Entry {
    Entry::Ended {
        ending: acted.ending.clone(),
        moved_bytes: acted.done.moved.get(),
        failed_bytes: acted.done.failed.get(),
    }
}

pub(super) fn plan(plan: &Plan, args: &Balance) -> Entry {
    let actions = plan
        .actions
        .iter()
        .map(|planned| PlannedEntry { process: process(&planned.process), action: action(planned) });
    let waiting = plan.waiting.iter().map(|waiting| WaitingEntry {
        process: process(&waiting.process),
        need: waiting.need.map(|need| word(need).to_owned()),
        need_share: waiting.need.map(Need::share),
        hold: waiting.hold.word().to_owned(),
        why: waiting.hold.to_string(),
    });
    let left_alone = plan.left_alone.iter().map(|left| LeftAloneEntry {
        process: process(&left.process),
        size_bytes: left.size.get(),
        reason: left.why.word().to_owned(),
        why: left.why.to_string(),
    });
    Entry::Plan(PlanEntry {
        windows: args.windows,
        window_s: args.window.as_secs_f64(),
        stop: plan.stop.as_ref().map(ToString::to_string),
        actions: actions.collect(),
        waiting: waiting.collect(),
        left_alone: left_alone.collect(),
        small_processes: plan.small,
        examined_processes: plan.examined,
    })
}
