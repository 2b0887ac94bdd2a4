//! The controller of `nodewise balance`: which processes are brought together with their memory, when, and by which
//! means. It decides from situations, has no clock, and does nothing itself.
//!
//! A process goes through these stages: seen, candidate (it needs an action in several windows in a row), held or
//! planned, acting, settling, judged, resting. One that is never touched has a reason, see [`Never`].

mod limits;
mod means;
mod never;
mod plan;
mod room;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::order::Order as _;
use nodewise_machine::{Bytes, CpuSet, NodeId, NodeSet};
use nodewise_source::process::Pid;
use nodewise_source::sample::{Allowed, Identity};

pub use limits::{Limits, PRESSURE};
pub use means::{Means, Named, Need, PageMove, RemoteTime, Spread, remote_share, stranded_share};
pub use never::{Never, ProcessFacts, claimed, explicit_policy, is_default, places_others};
pub use plan::{Action, Done, Hold, Judged, LeftAlone, Plan, Stop, Verdict, Waiting};
pub use room::room;

use crate::situation::{ProcessState, Situation};
use never::{Examinee, Kin};
use room::{Room, Spent};

/// Rests are doubled up to this one: our choice.
const LONGEST_REST: Duration = Duration::from_secs(24 * 3600);
/// Verdicts in a row after which nothing more is tried.
const ENOUGH: u32 = 2;
/// A rise of the share that makes an action a bad one: our choice.
const WORSE: f64 = 0.05;
/// The part of its CPUs from which a process wants more than it was left: our choice.
const FULL: f64 = 0.95;
/// A verdict waits for the end of a stop up to this time: our choice.
const PATIENCE: Duration = Duration::from_secs(300);
/// The smallest amount that is worth beginning with.
const LEAST_MOVE: Bytes = Bytes::MIB;

/// A window, and what samples do not hold.
#[derive(Clone, Copy)]
pub struct Observation<'a> {
    pub now: Duration,
    pub situation: &'a Situation<'a>,
    pub facts: &'a BTreeMap<Identity, ProcessFacts>,
    /// CPUs and nodes that processes have by default: those of the first process.
    pub everyone: &'a Allowed,
    /// Whether pages can be swapped out; false where that is not known.
    pub has_swap: bool,
    /// nodewise itself.
    pub own: Pid,
}

/// Processes whose policies of mappings a window asks for.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Awaited {
    /// Those that an action has changed: what was read before the action says nothing of what another hand did after it.
    pub changed: Vec<Identity>,
    /// Those whose threads this controller keeps on some CPUs.
    pub kept: Vec<Identity>,
    /// Those whose action waits for nothing else, the most needed first.
    pub needy: Vec<Identity>,
}

#[derive(Clone, Debug, PartialEq)]
enum Stage {
    Seen,
    Candidate,
    Acting { since: Duration },
    Settling { until: Duration },
    Resting { until: Duration, after: Verdict },
    LeftAlone,
}

/// A process over the windows.
#[derive(Clone, Debug)]
struct Track {
    stage: Stage,
    name: Arc<str>,
    /// Windows in a row in which it needed an action.
    windows: u32,
    /// When it became a candidate, and the scans then.
    candidate_at: Duration,
    scans: Option<u64>,
    /// The need and the share when the last action began.
    need: Option<Need>,
    /// Bytes of the last action's plan, and the part of it that was done.
    planned: Bytes,
    done: f64,
    /// Bytes that would move if the last action were taken back.
    way_back: Bytes,
    rest: Duration,
    worse: u32,
    /// Nodes that its pages leave in the last action.
    leaving: Vec<NodeId>,
    /// Nodes that its pages left, and when.
    left: BTreeMap<NodeId, Duration>,
    /// CPUs that this controller gave it.
    ours: Option<CpuSet>,
}

/// The controller.
#[derive(Clone, Debug)]
pub struct Controller {
    limits: Limits,
    tracks: BTreeMap<Identity, Track>,
    spent: Spent,
    /// Verdicts of no difference in a row, by the name of the program.
    in_vain: BTreeMap<Arc<str>, u32>,
    /// How much memory was waited for in the last window, in full.
    full: Option<f64>,
}

impl Controller {
    /// A controller that has seen nothing.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            tracks: BTreeMap::new(),
            spent: Spent::default(),
            in_vain: BTreeMap::new(),
            full: None,
        }
    }

    /// A controller that begins again: it knows no process, and the bytes of the last hour still count.
    #[must_use]
    pub fn renewed(&self) -> Self {
        Self { spent: self.spent.clone(), ..Self::new(self.limits) }
    }

    /// Its limits.
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Looks at a window, and says what may be done.
    pub fn observe(&mut self, seen: &Observation<'_>) -> Plan {
        let situation = seen.situation;
        let mut plan = Plan {
            stop: self.stop(seen),
            examined: situation.processes.len(),
            remote: RemoteTime::of_all(situation, self.limits.least_size),
            ..Plan::default()
        };
        self.tracks.retain(|identity, _| situation.now.process(*identity).is_some());
        let kin = Kin::new(situation.now, seen.own);
        let with_cpus = situation.places.with_cpus();
        let mut needy: Vec<(&ProcessState<'_>, Need)> = Vec::new();
        for process in &situation.processes {
            let forbidden = self.forbids(process, seen, &kin);
            let need = means::need(process, situation, &self.limits);
            if let Some(why) = forbidden {
                if why == Never::Young {
                    self.track(process).count(process, need, seen.now);
                }
                self.leave_alone(process, why, &mut plan);
                continue;
            }
            let track = self.track(process);
            if track.wants_more(process) {
                plan.release.push(Named::new(process));
            }
            match track.stage.clone() {
                Stage::Acting { .. } => plan.wait(process, need, Hold::Acting),
                Stage::Settling { until } if seen.now < until => {
                    plan.wait(process, need, Hold::Settling(until));
                }
                // Who waits for memory is not known: the verdict comes later.
                Stage::Settling { until }
                    if plan.stop.is_some() && seen.now < until.saturating_add(PATIENCE) =>
                {
                    plan.wait(process, need, Hold::Settling(until));
                }
                Stage::Settling { .. } => {
                    let judged = self.judge(process, seen, &with_cpus, &plan);
                    plan.judged.push(judged);
                }
                Stage::Resting { until, after } if seen.now < until => {
                    track.count(process, need, seen.now);
                    if need.is_some() {
                        plan.wait(process, need, Hold::Resting(until, after));
                    }
                }
                _ => {
                    track.count(process, need, seen.now);
                    match need {
                        None if track.windows > 0 => {}
                        None => track.stage = Stage::Seen,
                        Some(need) => {
                            track.stage = Stage::Candidate;
                            needy.push((process, need));
                        }
                    }
                }
            }
        }
        plan.add_unreadable(seen, &self.limits);
        // Most bytes in need first.
        let weight = |(process, need): &(&ProcessState<'_>, Need)| {
            std::cmp::Reverse((process.size().get() as f64 * need.share()) as u64)
        };
        needy.order_by_key(|needy| (weight(needy), needy.0.process.identity));
        self.add_actions(&needy, seen, &mut plan);
        plan
    }

    /// The processes whose policies of mappings are to be read before [`Self::observe`] sees this window: those that were
    /// acted on and are judged now, then those that await an action, the most needed first.
    pub fn awaits(&self, seen: &Observation<'_>) -> Awaited {
        let plan = self.clone().observe(seen);
        let may_act = plan.stop.is_none();
        let awaiting = plan.waiting.iter().filter(|waiting| waiting.hold == Hold::PolicyUnknown && may_act);
        let ours =
            self.tracks.iter().filter(|(_, track)| track.ours.is_some()).map(|(identity, _)| *identity);
        Awaited {
            changed: plan.judged.iter().map(|judged| judged.process.identity).collect(),
            kept: ours.collect(),
            needy: awaiting.map(|waiting| waiting.process.identity).collect(),
        }
    }

    /// Notes that an action begins.
    pub fn begin(&mut self, action: &Action, now: Duration) {
        self.spent.add(now, action.process.identity, action.most);
        if let Some(track) = self.tracks.get_mut(&action.process.identity) {
            track.stage = Stage::Acting { since: now };
            track.need = Some(action.need);
            track.planned = action.means.size();
            track.way_back = action.most;
            track.leaving = action.means.pages.iter().map(|pages| pages.from).collect();
            if let Some((cpus, _)) = &action.means.cpus {
                track.ours = Some(cpus.clone());
            }
        }
    }

    /// Notes that an action has ended.
    pub fn end(&mut self, identity: Identity, now: Duration, done: Done) {
        let (settle, failed) = (self.limits.settle, self.limits.failed);
        let Some(track) = self.tracks.get_mut(&identity) else { return };
        let Stage::Acting { since } = track.stage else { return };
        track.way_back = done.moved;
        self.spent.correct(since, identity, done.moved, now);
        if done.moved.get() > 0 {
            track.left.extend(track.leaving.drain(..).map(|node| (node, now)));
        }
        let tried = (done.moved + done.failed).get();
        track.done = match track.planned.get() {
            0 => 1.0,
            planned => (done.moved.get() as f64 / planned as f64).min(1.0),
        };
        if !done.narrowed {
            track.ours = None;
        }
        if tried == 0 && !done.narrowed {
            // The process was not what the plan saw: that says nothing about the action.
            track.rest_until(now, Verdict::Unknown, self.limits.rest);
        } else if tried > 0 && done.failed.get() as f64 / tried as f64 > failed {
            track.rest_until(now, Verdict::Failed, self.limits.rest);
        } else {
            track.stage = Stage::Settling { until: now.saturating_add(settle) };
        }
    }

    /// Notes that an action was taken back, and the bytes that moved for it.
    pub fn undone(&mut self, identity: Identity, now: Duration, moved: Bytes) {
        self.spent.add(now, identity, moved);
        if let Some(track) = self.tracks.get_mut(&identity) {
            track.ours = None;
        }
    }

    /// Notes that a process has its old CPUs again, because the new ones were too few.
    pub fn released(&mut self, identity: Identity, now: Duration) {
        let rest = self.limits.rest;
        if let Some(track) = self.tracks.get_mut(&identity) {
            track.ours = None;
            track.worse += 1;
            track.rest_until(now, Verdict::Worse, rest);
        }
    }

    fn track(&mut self, process: &ProcessState<'_>) -> &mut Track {
        let name = &process.process.name;
        self.tracks.entry(process.process.identity).or_insert_with(|| Track::new(name))
    }

    fn forbids(&self, process: &ProcessState<'_>, seen: &Observation<'_>, kin: &Kin) -> Option<Never> {
        let identity = process.process.identity;
        let track = self.tracks.get(&identity);
        let examinee = Examinee {
            state: process,
            facts: seen.facts.get(&identity),
            everyone: seen.everyone,
            ours: track.and_then(|track| track.ours.as_ref()),
        };
        never::never(&examinee, seen.situation, kin, &self.limits).or_else(|| {
            let in_vain = self.in_vain.get(&process.process.name).copied().unwrap_or(0);
            match track {
                Some(track) if track.worse >= ENOUGH => Some(Never::Worse),
                _ => (in_vain >= ENOUGH).then_some(Never::NoEffect),
            }
        })
    }

    fn leave_alone(&mut self, process: &ProcessState<'_>, why: Never, plan: &mut Plan) {
        if why == Never::Small {
            plan.small += 1;
            return;
        }
        let named = Named::new(process);
        let track = self.track(process);
        let was_ours =
            matches!(track.stage, Stage::Acting { .. } | Stage::Settling { .. }) || track.ours.is_some();
        let by_others =
            matches!(why, Never::Policy(_) | Never::Cpuset | Never::Affinity | Never::Orchestrator(_));
        if was_ours && by_others {
            plan.handed_back.push((named.clone(), why.clone()));
            track.ours = None;
            (track.stage, track.windows) = (Stage::LeftAlone, 0);
        }
        // A window without evidence changes nothing, youth passes by itself, and no reason ends a rest or a verdict that is due.
        if !why.is_ignorance() && why != Never::Young {
            track.windows = 0;
            if matches!(track.stage, Stage::Seen | Stage::Candidate) {
                track.stage = Stage::LeftAlone;
            }
        }
        plan.left_alone.push(LeftAlone { process: named, size: process.size(), why });
    }

    fn stop(&mut self, seen: &Observation<'_>) -> Option<Stop> {
        let class = seen.situation.class;
        if !class.has_distance() {
            return Some(Stop::NoDistance(class.word()));
        }
        let placers = seen.situation.now.processes.iter().filter(|process| never::is_placer(process));
        if let Some(placer) = placers.map(|process| process.name.as_ref().to_owned()).next() {
            return Some(Stop::Placer(placer));
        }
        if !never::shows_defaults(seen.everyone, seen.situation) {
            return Some(Stop::NoDefaults);
        }
        match seen.situation.event("oom_kill") {
            None => return Some(Stop::Unknown("processes that were killed for want of memory (oom_kill)")),
            Some(0) => {}
            Some(_) => return Some(Stop::OutOfMemory),
        }
        let Some(pressure) = seen.situation.now.pressure.memory else {
            return Some(Stop::Unknown("how long programs wait for memory (PSI)"));
        };
        let some = pressure.some.map_or(0.0, |stall| stall.avg10);
        let full = pressure.full.map_or(0.0, |stall| stall.avg10);
        let rises = full > 0.0 && self.full.is_some_and(|before| full > before);
        self.full = Some(full);
        (some > self.limits.pressure || rises).then_some(Stop::Pressure(some, full))
    }

    fn judge(
        &mut self,
        process: &ProcessState<'_>,
        seen: &Observation<'_>,
        with_cpus: &NodeSet,
        plan: &Plan,
    ) -> Judged {
        let (rest, now) = (self.limits.rest, seen.now);
        let track = self.track(process);
        let need = track.need;
        let before = need.map_or(0.0, Need::share);
        let after = match need {
            Some(Need::Scattered(_)) => remote_share(process),
            _ => stranded_share(process, with_cpus),
        };
        let verdict = match after {
            _ if plan.stop.is_some() => Verdict::Unknown,
            None => Verdict::Unknown,
            Some(after) if after > before + WORSE => Verdict::Worse,
            // Half of the effect of what was done.
            Some(after) if after > before * (1.0 - track.done / 2.0) => Verdict::NoDifference,
            Some(_) => Verdict::AsPlanned,
        };
        if verdict == Verdict::Worse {
            track.worse += 1;
        }
        track.rest_until(now, verdict, rest);
        match verdict {
            Verdict::NoDifference => *self.in_vain.entry(process.process.name.clone()).or_default() += 1,
            Verdict::AsPlanned => {
                self.in_vain.remove(&process.process.name);
            }
            _ => {}
        }
        Judged { process: Named::new(process), verdict, before, after }
    }

    fn add_actions(&self, needy: &[(&ProcessState<'_>, Need)], seen: &Observation<'_>, plan: &mut Plan) {
        let mut room = Room::new(seen.situation, seen.has_swap);
        let mut hour = self.left_with_way_back(seen.now);
        for (process, need) in needy {
            match self.decide(process, *need, seen, &room, hour) {
                Err(hold) => plan.wait(process, Some(*need), hold),
                Ok(action) => {
                    for pages in &action.means.pages {
                        room.take(pages.to, pages.size);
                    }
                    for node in action.means.cpus.iter().flat_map(|(_, nodes)| nodes.iter()) {
                        room.take_time(node, means::more_time(process, node, &self.limits));
                    }
                    hour = Bytes::new(hour.get().saturating_sub(action.most.get()));
                    plan.actions.push(action);
                }
            }
        }
        if plan.stop.is_some() {
            plan.actions.clear();
        }
    }

    /// Half of the bytes that the hour leaves beside those that actions without a verdict would need to go back: whatever
    /// moves can be taken back within the hour's bytes.
    fn left_with_way_back(&self, now: Duration) -> Bytes {
        let open = self.tracks.values().filter(|track| track.may_go_back());
        let back: Bytes = open.map(|track| track.way_back).sum();
        let left = self.spent.left_of_hour(now, &self.limits);
        Bytes::new(left.get().saturating_sub(back.get()) / 2)
    }

    fn decide(
        &self,
        process: &ProcessState<'_>,
        need: Need,
        seen: &Observation<'_>,
        room: &Room,
        hour: Bytes,
    ) -> Result<Action, Hold> {
        let identity = process.process.identity;
        let Some(track) = self.tracks.get(&identity) else {
            return Err(Hold::Windows(0, self.limits.windows));
        };
        if track.windows < self.limits.windows {
            return Err(Hold::Windows(track.windows, self.limits.windows));
        }
        self.wait_for_kernel(process, track, seen)?;
        let recent =
            track.left.iter().filter(|(_, at)| seen.now.saturating_sub(**at) < self.limits.back_after);
        let left: BTreeSet<NodeId> = recent.map(|(node, _)| *node).collect_set();
        let means = means::choose(process, need, seen.situation, room, &left, &self.limits)?;
        let day = self.spent.left_of_day(seen.now, identity, process.size(), &self.limits);
        let most = means.size().min(hour).min(day);
        if !means.pages.is_empty() && most < LEAST_MOVE.min(means.size()) {
            return Err(if day < hour { Hold::DaySpent } else { Hold::HourSpent });
        }
        // Half of the pages do not help all of the threads.
        if means.cpus.is_some() && most < means.size() {
            return Err(if day < hour { Hold::DaySpent } else { Hold::HourSpent });
        }
        if seen.facts.get(&identity).is_none_or(|facts| facts.mapping_policies.is_none()) {
            return Err(Hold::PolicyUnknown);
        }
        Ok(Action { process: Named::new(process), need, means, most, remote: remote_share(process) })
    }

    /// Leaves the work to the kernel's balancing as long as that may still do it.
    fn wait_for_kernel(
        &self,
        process: &ProcessState<'_>,
        track: &Track,
        seen: &Observation<'_>,
    ) -> Result<(), Hold> {
        // Where it is not known whether the kernel balances, it has its time too.
        if seen.situation.machine.settings.numa_balancing == Some(0) {
            return Ok(());
        }
        let waited = seen.now.saturating_sub(track.candidate_at) >= self.limits.scans_time;
        let done = means::scans(process).zip(track.scans).map(|(now, then)| now.saturating_sub(then));
        match done {
            Some(done) if done >= self.limits.scans => Ok(()),
            _ if waited => Ok(()),
            done => Err(Hold::Balancing(done, self.limits.scans)),
        }
    }
}

impl Track {
    fn new(name: &Arc<str>) -> Self {
        Self {
            stage: Stage::Seen,
            name: Arc::clone(name),
            windows: 0,
            candidate_at: Duration::ZERO,
            scans: None,
            need: None,
            planned: Bytes::default(),
            way_back: Bytes::default(),
            done: 1.0,
            rest: Duration::ZERO,
            worse: 0,
            leaving: Vec::new(),
            left: BTreeMap::new(),
            ours: None,
        }
    }

    /// Counts windows in a row with a need, also while the process rests or is young: what was seen then need not be waited
    /// for afterwards.
    fn count(&mut self, process: &ProcessState<'_>, need: Option<Need>, now: Duration) {
        if need.is_none() {
            // Where it is not known where it ran, that says nothing.
            if !process.is_unsure() {
                self.windows = 0;
            }
            return;
        }
        if self.windows == 0 || self.name != process.process.name {
            self.name = Arc::clone(&process.process.name);
            self.windows = 0;
            (self.candidate_at, self.scans) = (now, means::scans(process));
        }
        self.windows = self.windows.saturating_add(1);
    }

    /// Whether a verdict may still take the last action back.
    const fn may_go_back(&self) -> bool {
        matches!(self.stage, Stage::Acting { .. } | Stage::Settling { .. })
    }

    /// Whether the process uses nearly all of the CPUs that this controller left it.
    fn wants_more(&self, process: &ProcessState<'_>) -> bool {
        let is_acting = matches!(self.stage, Stage::Acting { .. });
        let Some(cpus) = self.ours.as_ref().filter(|_| !is_acting) else { return false };
        process.cpu_share().is_some_and(|share| share >= FULL * cpus.len() as f64)
    }

    /// Rests are doubled as long as actions do not do what they should.
    fn rest_until(&mut self, now: Duration, verdict: Verdict, first: Duration) {
        self.rest = match verdict {
            Verdict::AsPlanned | Verdict::Unknown => first,
            _ => self.rest.saturating_mul(2).clamp(first, LONGEST_REST.max(first)),
        };
        self.windows = 0;
        self.stage = Stage::Resting { until: now.saturating_add(self.rest), after: verdict };
    }
}

#[cfg(test)]
mod tests;
