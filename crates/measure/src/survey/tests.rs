use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::*;
use crate::stop::Stop;
use nodewise_stats::Direction;

/// A clock that each sample and each preparation move on.
#[derive(Default)]
struct Hand {
    millis: AtomicU64,
}

impl Hand {
    fn pass(&self, millis: u64) {
        self.millis.fetch_add(millis, Ordering::Relaxed);
    }
}

impl Clock for Hand {
    fn now(&self) -> Duration {
        Duration::from_millis(self.millis.load(Ordering::Relaxed))
    }
}

/// Facts whose counter of switches grows when a test says so.
#[derive(Default)]
struct Counters {
    switched: u64,
    stop: Stop,
}

impl Facts for Counters {
    fn glance(&mut self) -> Glance {
        Glance { switched: Some(self.switched), ..Glance::default() }
    }
    fn stop(&self) -> &Stop {
        &self.stop
    }
}

/// A bench whose cells are names; what happens in them is looked up.
struct Script<'a> {
    clock: &'a Hand,
    log: Vec<String>,
    /// In which round a cell is refused.
    refused: BTreeMap<&'static str, u32>,
    /// After how many samples in all a cell stops giving any.
    lost: BTreeMap<&'static str, usize>,
    /// Up to which round the pages of a cell stay.
    moved: BTreeMap<&'static str, u32>,
    /// Samples of the cell `noisy` that are disturbed, at first.
    noise: u32,
    round: u32,
    prepare_millis: u64,
    /// The additional time of preparing a cell for the first time.
    once_millis: u64,
    prepared: BTreeSet<&'static str>,
    sample_millis: u64,
    interrupt: Option<(usize, &'a AtomicBool)>,
}

impl<'a> Script<'a> {
    fn new(clock: &'a Hand) -> Self {
        Self {
            clock,
            log: Vec::new(),
            refused: BTreeMap::new(),
            lost: BTreeMap::new(),
            moved: BTreeMap::new(),
            noise: 0,
            round: 0,
            prepare_millis: 10,
            once_millis: 0,
            prepared: BTreeSet::new(),
            sample_millis: 20,
            interrupt: None,
        }
    }

    fn samples(&self, name: &str) -> usize {
        self.log.iter().filter(|entry| entry.as_str() == name).count()
    }
}

impl Bench for Script<'_> {
    type Cell = &'static str;

    fn begin_round(&mut self, round: u32) {
        self.round = round;
        self.log.push(format!("round {round}"));
    }

    fn prepare(&mut self, cell: &Self::Cell, facts: &mut dyn Facts) -> Result<(), Refusal> {
        self.clock.pass(self.prepare_millis);
        if self.prepared.insert(*cell) {
            self.clock.pass(self.once_millis);
        }
        facts.go_on()?;
        match self.refused.get(cell) {
            Some(round) if *round == self.round => Err(Refusal::TooShort),
            _ => Ok(()),
        }
    }

    fn placed(&mut self, cell: &Self::Cell, _: &mut dyn Facts) -> Result<Option<Placed>, Refusal> {
        let stays = self.moved.get(cell).is_none_or(|round| self.round < *round);
        Ok(Some(Placed { on_node: if stays { 8 } else { 5 }, pages: 8, ..Placed::default() }))
    }

    fn sample(&mut self, cell: &Self::Cell, facts: &mut dyn Facts) -> Result<Timed, Refusal> {
        self.clock.pass(self.sample_millis);
        self.log.push((*cell).to_owned());
        let number = self.samples(cell);
        if self.lost.get(cell).is_some_and(|last| number > *last) {
            return Err(Refusal::TooShort);
        }
        if let Some((at, interrupt)) = self.interrupt {
            interrupt.store(self.log.len() >= at, Ordering::Relaxed);
        }
        let mut timed = Timed::around(facts, None, || Ok(number as f64))?;
        if *cell == "noisy" && self.noise > 0 {
            self.noise -= 1;
            timed.meanwhile.switched = Some(1);
        }
        Ok(timed)
    }
}

fn conduct(bench: &mut Script<'_>, cells: &[&'static str], pace: Pace) -> Survey {
    conduct_until(bench, cells, pace, Stop::NEVER)
}

fn conduct_until(bench: &mut Script<'_>, cells: &[&'static str], pace: Pace, stop: Stop) -> Survey {
    let clock = bench.clock;
    let mut observer = |progress: Progress| assert!(progress.done < progress.all, "{progress:?}");
    let facts = &mut Counters { stop, ..Counters::default() };
    Surveyor { facts, clock, observer: &mut observer }.conduct(bench, cells, pace, 1)
}

const CELLS: [&str; 4] = ["a", "b", "c", "d"];

#[test]
fn every_pass_samples_every_cell_once_in_an_order_of_its_own() {
    let clock = Hand::default();
    let mut bench = Script::new(&clock);
    let survey = conduct(&mut bench, &CELLS, Pace::exactly(3, 5));
    let names: Vec<&str> =
        bench.log.iter().map(String::as_str).filter(|entry| !entry.starts_with("round")).collect();
    assert_eq!(names.len(), 4 * 3 * 5);
    let mut orders = BTreeSet::new();
    for pass in names.chunks(4) {
        let mut sorted = pass.to_vec();
        sorted.sort_unstable();
        assert_eq!(sorted, CELLS);
        orders.insert(pass.to_vec());
    }
    assert!(orders.len() > 5, "the order changes: {orders:?}");
    for outcome in &survey.outcomes {
        assert_eq!(outcome.rounds.iter().map(Vec::len).collect::<Vec<_>>(), [5, 5, 5]);
        assert_eq!(outcome.before, Some(Placed { on_node: 8, pages: 8, ..Placed::default() }));
    }
    assert!(!survey.interrupted);
    assert_eq!(survey.took, Duration::from_millis(3 * (4 * 10 + 4 * 5 * 20)));
}

#[test]
fn the_same_seed_gives_the_same_order() {
    let clock = Hand::default();
    let (mut one, mut other) = (Script::new(&clock), Script::new(&clock));
    conduct(&mut one, &CELLS, Pace::exactly(2, 4));
    conduct(&mut other, &CELLS, Pace::exactly(2, 4));
    assert_eq!(one.log, other.log);
}

#[test]
fn a_refused_cell_is_marked_and_the_others_come() {
    let clock = Hand::default();
    let mut bench = Script::new(&clock);
    bench.refused.insert("b", 0);
    bench.lost.insert("c", 2);
    let survey = conduct(&mut bench, &CELLS, Pace::exactly(6, 2));
    let figures: Vec<bool> =
        survey.outcomes.iter().map(|outcome| outcome.figure(Direction::LowerIsBetter).is_some()).collect();
    assert_eq!(figures, [true, false, false, true]);
    assert_eq!(bench.samples("b"), 0);
    assert_eq!(bench.samples("c"), 3, "a cell that was lost is not asked for again");
    assert_eq!(survey.outcomes[2].refusal, Some(Refusal::TooShort));
    assert_eq!(bench.samples("d"), 12);
}

#[test]
fn a_cell_whose_pages_moved_has_no_figure() {
    let clock = Hand::default();
    let mut bench = Script::new(&clock);
    bench.moved.insert("a", 4);
    let survey = conduct(&mut bench, &["a", "b"], Pace::exactly(6, 2));
    assert!(survey.outcomes[0].has_moved());
    assert_eq!(survey.outcomes[0].figure(Direction::LowerIsBetter), None);
    assert_eq!(survey.outcomes[0].after.as_ref().map(|placed| placed.on_node), Some(5));
    assert!(survey.outcomes[1].figure(Direction::LowerIsBetter).is_some());
}

#[test]
fn a_disturbed_cell_is_measured_once_more_and_no_other() {
    let clock = Hand::default();
    let mut bench = Script::new(&clock);
    bench.noise = 5;
    let survey = conduct(&mut bench, &["a", "noisy"], Pace::exactly(6, 2));
    assert_eq!((bench.samples("a"), bench.samples("noisy")), (12, 24));
    let [quiet, noisy] = &survey.outcomes[..] else { panic!("two cells") };
    assert!(noisy.again && !quiet.again);
    assert_eq!(noisy.marks(), Marks { samples: 12, ..Marks::default() });
}

#[test]
fn a_repetition_that_is_worse_is_not_kept() {
    let clock = Hand::default();
    let mut bench = Script::new(&clock);
    bench.noise = 4;
    bench.lost.insert("noisy", 12);
    let survey = conduct(&mut bench, &["noisy"], Pace::exactly(6, 2));
    let outcome = &survey.outcomes[0];
    assert!(outcome.again && outcome.refusal.is_none());
    assert_eq!(outcome.marks().disturbed, 4);
    assert!(outcome.is_disturbed());
}

#[test]
fn a_budget_leaves_out_samples_and_never_rounds() {
    let check = |budget, samples: usize| {
        let clock = Hand::default();
        let mut bench = Script::new(&clock);
        let pace = Pace { rounds: 6, samples: 9, budget: Some(Duration::from_millis(budget)) };
        let survey = conduct(&mut bench, &CELLS, pace);
        for outcome in survey.outcomes {
            let counts: Vec<usize> = outcome.rounds.iter().map(Vec::len).collect();
            assert_eq!(counts, [samples; 6], "within {budget} ms");
        }
    };
    // A round takes 40 ms for making ready and 80 ms for each pass.
    check(1, 1);
    check(6 * (40 + 3 * 80), 3);
    check(6 * (40 + 100 * 80), 9);
}

#[test]
fn an_interrupted_survey_keeps_what_it_has() {
    let clock = Hand::default();
    let interrupt = Arc::new(AtomicBool::new(false));
    let mut bench = Script::new(&clock);
    bench.interrupt = Some((20, &interrupt));
    let stop = Stop::on(Arc::clone(&interrupt));
    let survey = conduct_until(&mut bench, &CELLS, Pace::exactly(6, 2), stop);
    assert!(survey.interrupted && survey.left_out.is_none());
    assert_eq!(bench.log.iter().filter(|entry| !entry.starts_with("round")).count(), 17);
    assert!(survey.outcomes.iter().all(|outcome| outcome.figure(Direction::LowerIsBetter).is_some()));
}

#[test]
fn a_survey_without_cells_ends() {
    let clock = Hand::default();
    assert_eq!(conduct(&mut Script::new(&clock), &[], Pace::exactly(6, 2)).outcomes, []);
}

#[test]
fn quick_takes_what_it_says() {
    let most = |nodes| Pace::quick(nodes).budget.unwrap().mul_f64(1.5);
    assert!(most(1) <= Duration::from_secs(15), "{:?}", most(1));
    assert!(most(8) <= Duration::from_secs(60), "{:?}", most(8));
    assert!(most(64) <= Duration::from_secs(60));
    assert_eq!(Pace::quick_limit(1), Duration::from_secs(15));
    assert_eq!([8, 64].map(Pace::quick_limit), [Duration::from_secs(60); 2]);
}

/// A survey of four cells that must end by 15 s of a clock: when it ended, and what it left out. A step of
/// making ready and a sample take so long.
fn within_15_s(prepare_millis: u64, sample_millis: u64) -> (Duration, Survey) {
    let clock = Arc::new(Hand::default());
    let end = Duration::from_secs(15);
    let mut bench = Script::new(&clock);
    (bench.prepare_millis, bench.sample_millis) = (prepare_millis, sample_millis);
    let stop = Stop::NEVER.at(clock.clone(), end);
    let survey = conduct_until(&mut bench, &CELLS, Pace::quick(1), stop);
    (clock.now(), survey)
}

#[test]
fn a_limit_of_time_leaves_out_samples_then_rounds_then_cells() {
    let check = |prepare: u64, sample: u64, expected: Option<(u32, usize)>| {
        let (ended, survey) = within_15_s(prepare, sample);
        let left_out = survey.left_out.map(|left_out| (left_out.rounds, left_out.cells));
        assert_eq!(left_out, expected, "{prepare} ms, {sample} ms: {:?}", survey.left_out);
        // What had begun when the time was over is all that comes later.
        let most = Duration::from_secs(15) + Duration::from_millis(prepare.max(sample));
        assert!(ended <= most, "{prepare} ms, {sample} ms: {ended:?}");
        assert!(!survey.interrupted);
        let measured =
            survey.outcomes.iter().filter(|outcome| outcome.figure(Direction::LowerIsBetter).is_some());
        assert_eq!(measured.count(), 4 - expected.map_or(0, |(_, cells)| cells));
    };
    check(10, 20, None);
    // All rounds with one sample each still fit.
    check(300, 200, None);
    // A round takes 4 s, so three fit.
    check(800, 200, Some((3, 0)));
    check(1500, 300, Some((2, 0)));
    // Two cells are ready after half of the time; a third is in the next round.
    check(4000, 1000, Some((1, 1)));
    // The time is over before a third cell has a sample.
    check(1000, 4000, Some((0, 1)));
    // Not even one.
    check(20_000, 1, Some((0, 4)));
}

/// A survey of four cells within 14 s, each of which takes so long when it is prepared for the first time, and
/// next to nothing later: its samples by round, and what it left out.
fn with_slow_beginnings(once_millis: u64) -> (Vec<Vec<usize>>, Option<(u32, usize)>) {
    let clock = Arc::new(Hand::default());
    let end = Duration::from_secs(14);
    let mut bench = Script::new(&clock);
    bench.once_millis = once_millis;
    let survey = conduct_until(&mut bench, &CELLS, Pace::quick(1), Stop::NEVER.at(clock.clone(), end));
    assert!(clock.now() <= end, "{:?}", clock.now());
    let samples = survey.outcomes.iter().map(|outcome| outcome.rounds.iter().map(Vec::len).collect());
    (samples.collect(), survey.left_out.map(|left_out| (left_out.rounds, left_out.cells)))
}

#[test]
fn a_slow_first_round_costs_neither_later_rounds_nor_their_samples() {
    // A first round of 4 s leaves time for five of a second.
    assert_eq!(with_slow_beginnings(1000), (vec![vec![1, 9, 9, 9, 9, 9]; 4], None));
    // One of 8 s is longer than what is left, and the others still fit.
    assert_eq!(with_slow_beginnings(2000), (vec![vec![1, 1, 1, 2, 2, 2]; 4], None));
}

#[test]
fn cells_that_the_first_round_has_no_time_for_come_first_in_the_next() {
    let (samples, left_out) = with_slow_beginnings(2500);
    let rounds: Vec<usize> = samples.iter().map(Vec::len).collect();
    assert_eq!((rounds, left_out), (vec![6, 6, 6, 5], Some((5, 0))));
}

#[test]
fn a_repetition_that_does_not_fit_is_left_out_and_said() {
    let clock = Arc::new(Hand::default());
    let mut bench = Script::new(&clock);
    bench.noise = 50;
    bench.prepare_millis = 400;
    let stop = Stop::NEVER.at(clock.clone(), Duration::from_secs(6));
    let survey = conduct_until(&mut bench, &["noisy", "a"], Pace { budget: None, ..Pace::quick(1) }, stop);
    assert_eq!(survey.left_out.map(|left_out| (left_out.rounds, left_out.disturbed)), Some((6, 1)));
    assert!(clock.now() <= Duration::from_secs(6));
}

#[test]
fn a_survey_that_is_stopped_while_a_cell_is_made_ready_says_nothing_of_the_cell() {
    let clock = Hand::default();
    let interrupt = Arc::new(AtomicBool::new(true));
    let survey = conduct_until(&mut Script::new(&clock), &CELLS, Pace::exactly(6, 2), Stop::on(interrupt));
    assert!(survey.interrupted);
    assert!(survey.outcomes.iter().all(|outcome| outcome.refusal.is_none() && !outcome.is_reached()));
}
