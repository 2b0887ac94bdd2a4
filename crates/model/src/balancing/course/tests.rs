use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

use super::*;

const DRAWS: Draws = Draws { count: 100, seed: 1 };

const PROGRAM: Program = Program {
    memory: Bytes::from_mib(32),
    first_page: Some(0),
    below: Bytes::from_mib(0),
    resident: Bytes::from_mib(0),
    thread: Thread::Started,
    before: Duration::ZERO,
    pattern: Pattern::Sweep,
    sweep_from: None,
    touches_per_s: [1e6; 2],
    cpu_share: 1.0,
    room: None,
    unused_above: [0; 2],
};

fn seconds(times: &[f64]) -> Vec<Duration> {
    times.iter().copied().map(Duration::from_secs_f64).collect()
}

/// Medians of the share, in parts of a thousand.
fn medians(program: &Program, settings: Settings, times: &[f64]) -> Vec<u32> {
    let shares = forecast(program, settings, Costs::NONE, &seconds(times), DRAWS);
    shares.iter().map(|share| (share.median * 1000.0).round() as u32).collect()
}

#[test]
fn a_started_thread_has_its_memory_marked_after_the_delay() {
    assert_eq!(medians(&PROGRAM, Settings::KERNEL, &[0.5, 1.0, 1.1, 60.0]), [0, 0, 1000, 1000]);
}

#[test]
fn the_only_thread_waits_for_the_delay_twice() {
    let program = Program { thread: Thread::Forked, ..PROGRAM };
    assert_eq!(medians(&program, Settings::KERNEL, &[1.1, 1.9, 2.1]), [0, 0, 1000]);
}

#[test]
fn windows_of_a_started_thread_follow_each_other_at_the_delay() {
    let settings = Settings { size: Bytes::from_mib(4), ..Settings::KERNEL };
    assert_eq!(medians(&PROGRAM, settings, &[1.5, 2.5, 5.5, 60.0]), [125, 250, 625, 1000]);
    // What is scanned before them is a window, too.
    let below = Program { below: Bytes::from_mib(4), ..PROGRAM };
    assert_eq!(medians(&below, settings, &[1.5, 2.5, 60.0]), [0, 125, 1000]);
}

#[test]
fn windows_of_a_spawned_process_wait_for_the_delay_as_well() {
    let settings = Settings { size: Bytes::from_mib(4), ..Settings::KERNEL };
    let program = Program { thread: Thread::Spawned, ..PROGRAM };
    assert_eq!(medians(&program, settings, &[1.5, 2.5, 3.5, 10.5]), [0, 125, 250, 1000]);
    // Time that went by before is made up for.
    let late = Program { before: Duration::from_secs(7), ..program };
    assert_eq!(medians(&late, settings, &[0.5, 1.5, 2.5]), [0, 125, 250]);
}

#[test]
fn windows_of_the_only_thread_share_the_shortest_period() {
    let settings = Settings { size: Bytes::from_mib(4), ..Settings::KERNEL };
    let program = Program { thread: Thread::Forked, ..PROGRAM };
    // Eight windows, 125 ms apart and two ticks more.
    assert_eq!(medians(&program, settings, &[1.9, 2.05, 2.2, 3.2]), [0, 125, 250, 1000]);
    // Sixteen windows with what is elsewhere, 63 ms apart.
    let large = Program { resident: Bytes::from_mib(64), ..program };
    assert_eq!(medians(&large, settings, &[2.05, 2.1, 2.7]), [0, 125, 1000]);
}

#[test]
fn a_scan_goes_on_to_the_next_multiple_of_a_huge_page() {
    let settings = Settings { size: Bytes::from_mib(4), ..Settings::KERNEL };
    let program = Program { first_page: Some(256), ..PROGRAM };
    assert_eq!(medians(&program, settings, &[1.5, 2.5]), [156, 281]);
}

#[test]
fn a_thread_that_shares_its_cpu_is_scanned_by_its_own_time() {
    let program = Program { cpu_share: 0.25, ..PROGRAM };
    assert_eq!(medians(&program, Settings::KERNEL, &[1.0, 1.1]), [0, 1000]);
}

#[test]
fn scans_that_take_long_follow_each_other_slowly() {
    let settings = Settings { size: Bytes::from_mib(4), ..Settings::KERNEL };
    // 1,024 pages take 10 ms, and the kernel sees two ticks of that: 256 ms of rest.
    let costs = Costs { mark: [Duration::from_nanos(10_000); 2], ..Costs::NONE };
    let at = |time| forecast(&PROGRAM, settings, costs, &seconds(&[time]), DRAWS)[0].median;
    assert_eq!([at(2.2), at(2.4)], [0.125, 0.25]);
}

/// Least and most time in ms, over draws, that is accounted for, lost and away in a scan of 30 ms whose page tables end after
/// 5, 10 ... ms.
fn seen(every_ms: u64, preemption: Preemption) -> [[f64; 2]; 3] {
    let turns =
        Turns { every: Duration::from_millis(every_ms), takes: Duration::from_micros(500), preemption };
    let mut random = Random::new(every_ms);
    let draws = (0..400).map(|_| {
        let end = |work: f64| ((work / 0.005).floor() + 1.0) * 0.005;
        let seen = turns::draw(turns, 0.0301, 0.004, end, &mut random);
        [seen.accounted, seen.lost, seen.away].map(|seconds| (seconds * 1e5).round() / 100.0)
    });
    draws.fold([[f64::MAX, f64::MIN]; 3], |range, seen| {
        [0, 1, 2].map(|at| [range[at][0].min(seen[at]), range[at][1].max(seen[at])])
    })
}

#[test]
fn a_scan_without_turns_of_others_is_seen_in_whole_ticks() {
    for preemption in [Preemption::Soon, Preemption::Lazy] {
        assert_eq!(seen(1_000_000_000, preemption), [[28.0; 2], [0.0; 2], [0.0; 2]]);
    }
}

#[test]
fn a_turn_of_another_takes_the_time_since_the_last_tick_with_it() {
    // One in 100 ms, so that few draws have two. One that begins at 12 ms, at which the table ends at 15 ms, takes 3 ms from what
    // is seen, and its own; one before the scan its own.
    let [accounted, lost, away] = seen(100, Preemption::Soon);
    assert!(lost[0] == 0.0 && (3.0..9.0).contains(&lost[1]), "{lost:?}");
    assert!(away[0] == 0.0 && (0.5..2.5).contains(&away[1]), "{away:?}");
    assert!((18.0..24.6).contains(&accounted[0]) && accounted[1] <= 30.1, "{accounted:?}");
    // A lazy kernel counts it to the end.
    let [accounted, lost, _] = seen(100, Preemption::Lazy);
    assert_eq!(lost, [0.0; 2]);
    assert!(accounted[0] >= 26.0 && (28.0..=30.1).contains(&accounted[1]), "{accounted:?}");
}

#[test]
fn turns_of_others_change_when_scans_come() {
    let settings = Settings { size: Bytes::from_mib(4), ..Settings::KERNEL };
    let width = |turns| {
        let costs = Costs { mark: [Duration::from_nanos(10_000); 2], turns, ..Costs::NONE };
        let program = Program { pattern: Pattern::Uniform, touches_per_s: [2000.0; 2], ..PROGRAM };
        let share = forecast(&program, settings, costs, &seconds(&[9.0]), Draws { count: 400, seed: 5 })[0];
        share.high - share.low
    };
    let turns = |preemption| {
        Some(Turns { every: Duration::from_millis(20), takes: Duration::from_micros(400), preemption })
    };
    let [alone, soon, lazy] = [None, turns(Preemption::Soon), turns(Preemption::Lazy)].map(width);
    assert!(soon > 1.2 * alone && lazy > 1.2 * alone, "{alone} {soon} {lazy}");
}

#[test]
fn pages_touched_at_random_become_local_as_in_the_occupancy_problem() {
    let program = Program { pattern: Pattern::Uniform, touches_per_s: [400.0; 2], ..PROGRAM };
    let times = seconds(&[10.0, 30.0, 60.0]);
    let shares = forecast(&program, Settings::KERNEL, Costs::NONE, &times, Draws { count: 400, seed: 2 });
    for share in &shares {
        let touches = 400.0 * (share.at.as_secs_f64() - 1.012);
        let c = touches / 8192.0;
        let expected = 1.0 - (-c).exp();
        let deviation = ((-c).exp() * (1.0 - (1.0 + c) * (-c).exp()) / 8192.0).sqrt();
        assert!((share.median - expected).abs() < deviation, "{share:?}, expected {expected}");
        let width = (share.high - share.low) / deviation;
        assert!((2.9..3.7).contains(&width), "{share:?}, {width} deviations, expected 3.29");
    }
}

#[test]
fn a_touch_by_touch_count_is_that_of_the_formula() {
    let mean = |touches: u64| {
        let mut random = Random::new(touches);
        (0..2000).map(|_| touch::untouched(700, 1000, touches, &mut random)).sum::<u64>() / 2000
    };
    // One more touch than are drawn one by one.
    assert!(mean(512).abs_diff(mean(513)) <= 2, "{} {}", mean(512), mean(513));
    assert!(mean(513).abs_diff(419) <= 2, "{}", mean(513));
}

#[test]
fn a_sweep_from_a_known_page_on_moves_the_pages_after_it() {
    // 1,000 pages in a second: by 2 s it has passed pages 2,000 to 4,000 of 8,192, a half of these marked.
    let settings = Settings { size: Bytes::from_mib(12), ..Settings::KERNEL };
    let program = Program { touches_per_s: [1000.0; 2], ..PROGRAM };
    let band = |sweep_from| {
        let program = Program { sweep_from, ..program };
        forecast(&program, settings, Costs::NONE, &seconds(&[2.0]), DRAWS)[0]
    };
    let [low, any, high] = [Some(0), None, Some(1000)].map(band);
    // Between 8 and 12 ms after the first second all 3,072 first pages are marked.
    let expected = |pages: f64| pages / 8192.0;
    assert!(expected(988.0) <= low.low && low.high <= expected(992.0), "{low:?}");
    assert!(expected(988.0) <= high.low && high.high <= expected(992.0), "{high:?}");
    assert_eq!(band(Some(8192)), low);
    // Where it starts anywhere, it may not have met any.
    assert!(any.low == 0.0 && any.high >= low.low, "{any:?}");
}

#[test]
fn faults_take_their_time_from_the_program() {
    let costs = Costs { fault: Duration::from_millis(1), ..Costs::NONE };
    for pattern in [Pattern::Uniform, Pattern::Sweep] {
        let program = Program { pattern, ..PROGRAM };
        let shares = forecast(&program, Settings::KERNEL, costs, &seconds(&[3.0, 20.0]), DRAWS);
        // A thousand pages a second.
        assert!((0.23..0.25).contains(&shares[0].median), "{pattern:?} {shares:?}");
        assert!(shares[1].median > 0.999, "{pattern:?} {shares:?}");
    }
}

#[test]
fn a_node_without_room_takes_what_it_can() {
    let program = Program { room: Some(Bytes::from_mib(8)), ..PROGRAM };
    assert_eq!(medians(&program, Settings::KERNEL, &[60.0]), [250]);
}

#[test]
fn a_rate_that_is_known_roughly_widens_the_band() {
    let width = |rate| {
        let program = Program { pattern: Pattern::Uniform, touches_per_s: rate, ..PROGRAM };
        let share = forecast(&program, Settings::KERNEL, Costs::NONE, &seconds(&[15.0]), DRAWS)[0];
        share.high - share.low
    };
    assert!(width([400.0, 600.0]) > 4.0 * width([500.0; 2]));
}

#[test]
fn the_same_seed_gives_the_same_band() {
    let program = Program { pattern: Pattern::Uniform, touches_per_s: [500.0; 2], ..PROGRAM };
    let band =
        |seed| forecast(&program, Settings::KERNEL, Costs::NONE, &seconds(&[9.0]), Draws { seed, ..DRAWS });
    assert_eq!(band(3), band(3));
    assert_ne!(band(3), band(4));
}

const SLOW: Program =
    Program { memory: Bytes::from_mib(32), pattern: Pattern::Uniform, touches_per_s: [2048.0; 2], ..PROGRAM };

fn promoted(program: &Program, promotion: Promotion, times: &[f64]) -> Vec<ShareLocal> {
    let draws = Draws { count: 200, seed: 3 };
    forecast_promotion(program, promotion, Settings::KERNEL, Costs::NONE, &seconds(times), draws).unwrap()
}

/// A threshold that is known.
fn hot(millis: u64) -> Promotion {
    Promotion { hot: [Duration::from_millis(millis); 2], ..Promotion::KERNEL }
}

#[test]
fn pages_that_are_touched_soon_after_their_mark_are_promoted() {
    // A quarter of the pages is touched in a second: 1 - e^-0.25 of them once at least.
    let first = 1.0 - (-0.25_f64).exp();
    let shares = promoted(&SLOW, hot(1000), &[0.9, 2.1, 2.9]);
    assert_eq!(shares[0].high, 0.0);
    for share in &shares[1..] {
        assert!((share.median - first).abs() < 0.003, "{share:?}, expected {first}");
        assert!(share.high - share.low < 0.01, "{share:?}");
    }
    // With all the time that there is, as many as follow a CPU without a threshold.
    let patient = promoted(&SLOW, hot(1_000_000), &[5.0])[0];
    let followed = forecast(&SLOW, Settings::KERNEL, Costs::NONE, &seconds(&[5.0]), DRAWS)[0];
    assert!((patient.median - followed.median).abs() < 0.003, "{patient:?} {followed:?}");
}

#[test]
fn a_page_is_hot_by_wall_time_in_whole_ticks() {
    let first = |millis| promoted(&SLOW, hot(millis), &[2.9])[0].median;
    assert_eq!(first(1), first(4));
    assert!(first(5) > 1.5 * first(4) && first(5) == first(8), "{} {}", first(4), first(5));
    // Others have the CPU for half of a second, so that half as many touches come in it.
    let half = 1.0 - (-0.125_f64).exp();
    let shared = promoted(&Program { cpu_share: 0.5, ..SLOW }, hot(1000), &[1.9])[0];
    let turn = Duration::from_millis(1);
    let turns = Some(Turns { every: turn, takes: turn, preemption: Preemption::Lazy });
    let costs = Costs { turns, ..Costs::NONE };
    let draws = Draws { count: 200, seed: 3 };
    let settings = Settings::KERNEL;
    let taken = forecast_promotion(&SLOW, hot(1000), settings, costs, &seconds(&[1.9]), draws).unwrap()[0];
    for share in [shared, taken] {
        assert!((share.median - half).abs() < 0.003, "{share:?}, expected {half}");
    }
}

#[test]
fn pages_that_a_long_scan_marks_are_hot_from_its_ticks_on() {
    // The scan takes 0.8 seconds. With a tick of 0.1 a page is marked 0.05 seconds after its tick begins on average.
    let share = |tick| {
        let costs =
            Costs { tick: Duration::from_millis(tick), mark: [Duration::from_micros(100); 2], ..Costs::NONE };
        let draws = Draws { count: 200, seed: 3 };
        forecast_promotion(&SLOW, hot(1000), Settings::KERNEL, costs, &seconds(&[4.0]), draws).unwrap()[0]
            .median
    };
    let lost = 0.05 * 0.25 * (-0.25_f64).exp();
    let (fine, coarse) = (share(1), share(100));
    assert!((fine - coarse - lost).abs() < 0.003, "{fine} {coarse}, expected {lost} less");
}

#[test]
fn each_window_of_the_first_pass_is_marked_whole() {
    let settings = Settings { size: Bytes::from_mib(4), ..Settings::KERNEL };
    let times = seconds(&[2.5, 5.5, 8.5]);
    let draws = Draws { count: 200, seed: 3 };
    let promoted = forecast_promotion(&SLOW, hot(1_000_000), settings, Costs::NONE, &times, draws).unwrap();
    let followed = forecast(&SLOW, settings, Costs::NONE, &times, draws);
    for (promoted, followed) in promoted.iter().zip(&followed) {
        assert!((promoted.median - followed.median).abs() < 0.005, "{promoted:?} {followed:?}");
    }
}

#[test]
fn the_time_between_passes_doubles_while_pages_are_promoted() {
    // Scans after 1, 3, 7, 15 seconds, or one try later: each time a part of what is unmarked.
    let times = [2.5, 3.0, 4.5, 6.9, 9.5, 12.9];
    let medians: Vec<f64> = promoted(&SLOW, hot(1000), &times).iter().map(|share| share.median).collect();
    assert!(medians[0] == medians[1] && medians[2] > medians[1] + 0.03, "{medians:?}");
    assert!(medians[3] == medians[2] && medians[4] > medians[3] + 0.03, "{medians:?}");
    // The third pass is the last before 15 seconds, but in draws where a try came too soon.
    assert!(medians[5] < medians[4] + 0.005, "{medians:?}");
    // A pass in which nothing is promoted is followed by the next without delay.
    let none = Program { room: Some(Bytes::new(0)), ..SLOW };
    assert_eq!(promoted(&none, hot(1000), &[60.0])[0].high, 0.0);
}

#[test]
fn the_fourth_pass_waits_until_unused_mappings_are_scanned() {
    // Passes after 1, 3 and 7 seconds. The fourth comes after 15 without such mappings; five of them take a scan each 4 seconds.
    let fourth = |unused_above| {
        let program = Program { unused_above, ..SLOW };
        let shares = promoted(&program, hot(1000), &[12.9, 18.0, 30.0, 34.0]);
        let [third, soon, before, after] = [0, 1, 2, 3].map(|at| shares[at].median);
        [soon > third + 0.03, before > third + 0.03, after > third + 0.03]
    };
    assert_eq!(fourth([0; 2]), [true; 3]);
    assert_eq!(fourth([5; 2]), [false, false, true]);
    // Where their number is not known, neither is the share.
    let wide = promoted(&Program { unused_above: [0, 10], ..SLOW }, hot(1000), &[30.0])[0];
    let known = promoted(&Program { unused_above: [5; 2], ..SLOW }, hot(1000), &[30.0])[0];
    assert!(wide.high - wide.low > 3.0 * (known.high - known.low), "{wide:?} {known:?}");
}

#[test]
fn pages_that_a_scan_passes_over_put_the_next_one_off() {
    // In the second pass, after 3 seconds, 22 % of 8,192 pages are promoted and 61 % are marked still: 40 ms or more, and 32 times as
    // long until the third, which comes after 7 seconds without.
    let third = |passed_over| {
        let draws = Draws { count: 200, seed: 3 };
        let costs = Costs { passed_over, ..Costs::NONE };
        let times = seconds(&[6.9, 8.2, 10.5]);
        let shares = forecast_promotion(&SLOW, hot(1000), Settings::KERNEL, costs, &times, draws).unwrap();
        let [before, soon, late] = [0, 1, 2].map(|at| shares[at].median);
        [soon, late].map(|share| share > before + 0.03)
    };
    let page = Duration::from_micros(10);
    assert_eq!(third(PassedOver::NONE), [true, true]);
    assert_eq!(third(PassedOver { marked: page, ..PassedOver::NONE }), [false, true]);
    assert_eq!(third(PassedOver { promoted: 3 * page, ..PassedOver::NONE }), [false, true]);
}

#[test]
fn other_mappings_take_their_time_in_the_first_two_passes_alone() {
    // Ten ticks, and 32 times as long until the next pass: passes after 1, 4.3, 9.6 and 17.6 seconds. With them in the third, too, the
    // fourth would come after 18.9 seconds.
    let other_mappings = Duration::from_millis(41);
    let costs = Costs { passed_over: PassedOver { other_mappings, ..PassedOver::NONE }, ..Costs::NONE };
    let draws = Draws { count: 200, seed: 3 };
    let times = seconds(&[2.5, 4.1, 5.8, 9.4, 11.0, 17.4, 18.6]);
    let shares = forecast_promotion(&SLOW, hot(1000), Settings::KERNEL, costs, &times, draws).unwrap();
    let passes = shares.windows(2).map(|pair| pair[1].median > pair[0].median + 0.03);
    assert_eq!(passes.collect::<Vec<bool>>(), [false, true, false, true, false, true], "{shares:?}");
}

#[test]
fn pages_that_are_passed_over_do_not_change_a_first_pass() {
    let settings = Settings { size: Bytes::from_mib(4), ..Settings::KERNEL };
    let passed = Duration::from_micros(50);
    let passed_over = PassedOver { marked: passed, promoted: passed, ..PassedOver::NONE };
    let shares = |passed_over| {
        let costs = Costs { mark: [Duration::from_micros(10); 2], passed_over, ..Costs::NONE };
        let times = seconds(&[2.5, 5.5, 9.0]);
        forecast_promotion(&SLOW, hot(1000), settings, costs, &times, DRAWS).unwrap()
    };
    assert_eq!(shares(passed_over), shares(PassedOver::NONE));
}

#[test]
fn no_more_pages_are_promoted_than_the_limit_lets_through() {
    let promotion = Promotion { pages_per_s: 256, lag: 16, ..hot(1_000_000) };
    let shares = promoted(&SLOW, promotion, &[1.9, 2.9, 3.9]);
    for (share, seconds) in shares.iter().zip([1.0, 2.0, 3.0]) {
        let expected = 256.0 * seconds / 8192.0;
        let lag = (LAG_OF_COUNTERS * seconds + 1.0) / 8192.0;
        assert!((share.median - expected).abs() < lag, "{share:?}, expected {expected}");
    }
}

#[test]
fn a_counter_that_lacks_nothing_lets_exactly_the_limit_through() {
    let promotion = Promotion { pages_per_s: 256, lag: 0, ..hot(1_000_000) };
    let shares = promoted(&SLOW, promotion, &[1.9, 2.9]);
    let exactly = [256.0 / 8192.0, 512.0 / 8192.0];
    for (share, exactly) in shares.iter().zip(exactly) {
        assert_eq!([share.low, share.median, share.high], [exactly; 3]);
    }
}

#[test]
fn a_counter_is_as_far_behind_as_when_its_second_began() {
    // The first of 260 candidates begins the second. They are seen 13 at a time, all of them with the last one, which is refused.
    let promotion = Promotion { pages_per_s: 256, lag: 12, ..hot(1_000_000) };
    let share = promoted(&SLOW, promotion, &[1.9])[0];
    assert_eq!(share.median, 259.0 / 8192.0);
    assert!(share.low >= 255.0 / 8192.0 && share.high <= 268.0 / 8192.0, "{share:?}");
}

/// Pages that counters of a node may lack, for a second.
const LAG_OF_COUNTERS: f64 = 16.0;

#[test]
fn a_sweep_has_no_forecast_of_promotion() {
    let sweep = Program { pattern: Pattern::Sweep, ..SLOW };
    let times = seconds(&[1.0]);
    assert!(forecast_promotion(&sweep, hot(1000), Settings::KERNEL, Costs::NONE, &times, DRAWS).is_none());
}

fn programs() -> impl Strategy<Value = Program> {
    let thread = prop_oneof![Just(Thread::Forked), Just(Thread::Spawned), Just(Thread::Started)];
    let pattern = prop_oneof![Just(Pattern::Uniform), Just(Pattern::Sweep)];
    let rate = prop_oneof![Just(0.0), 0.0f64..1e7, any::<f64>()];
    let share = prop_oneof![0.0f64..1.0, any::<f64>()];
    (thread, pattern, rate, share, 0u64..1 << 34, 0u64..1 << 26, proptest::option::of(any::<u64>())).prop_map(
        |(thread, pattern, touches_per_s, cpu_share, memory, below, place)| Program {
            memory: Bytes::new(memory),
            first_page: place,
            below: Bytes::new(below),
            resident: Bytes::new(below * 2),
            thread,
            before: Duration::from_micros(below),
            pattern,
            sweep_from: place,
            touches_per_s: [touches_per_s, touches_per_s * 1.5],
            cpu_share,
            room: place.map(Bytes::new),
            unused_above: [below % 7, below % 7 + place.unwrap_or(0) % 9],
        },
    )
}

proptest! {
    #[test]
    fn shares_are_parts_of_one_and_never_fall(
        program in programs(),
        delay in 0u64..5000,
        period in 0u64..5000,
        size in 0u64..4096,
        (tick, mark, fault) in (0u64..20_000_000, 0u64..10_000, 0u64..1_000_000),
        passed_over in (0u64..10_000, 0u64..10_000),
        times in proptest::collection::vec(0u64..40_000, 1..5),
        seed in any::<u64>(),
    ) {
        let settings = Settings {
            delay: Duration::from_millis(delay),
            period_min: Duration::from_millis(period),
            size: Bytes::from_mib(size),
        };
        let [tick, mark, fault] = [tick.max(1_000_000), mark, fault].map(Duration::from_nanos);
        let turns = (seed % 3 > 0).then_some(Turns {
            every: Duration::from_micros(seed % 100_000),
            takes: fault * 20,
            preemption: if seed % 3 == 1 { Preemption::Soon } else { Preemption::Lazy },
        });
        let times: Vec<Duration> = times.into_iter().map(Duration::from_millis).collect();
        let (marked, promoted) = passed_over;
        let passed_over = PassedOver {
            marked: Duration::from_nanos(marked),
            promoted: Duration::from_nanos(promoted),
            other_mappings: Duration::from_micros(marked),
        };
        let costs = Costs { tick, mark: [mark, mark * 2], passed_over, fault, turns };
        let shares = forecast(&program, settings, costs, &times, Draws { count: 3, seed });
        prop_assert_eq!(shares.len(), times.len());
        let promotion =
            Promotion { hot: [delay, period].map(Duration::from_millis), pages_per_s: size, lag: size, period_max: settings.delay };
        // Without a delay windows may be marked at each tick.
        let soon: Vec<Duration> = times.iter().map(|time| *time / 16).collect();
        let uniform = Program { pattern: Pattern::Uniform, ..program };
        let promoted =
            forecast_promotion(&uniform, promotion, settings, costs, &soon, Draws { count: 2, seed }).unwrap();
        for share in &promoted {
            prop_assert!(0.0 <= share.low && share.low <= share.high && share.high <= 1.0, "{share:?}");
        }
        let mut sorted = shares.clone();
        sorted.sort_by_key(|share| share.at);
        for share in &sorted {
            prop_assert!(0.0 <= share.low && share.low <= share.median, "{share:?}");
            prop_assert!(share.median <= share.high && share.high <= 1.0, "{share:?}");
        }
        for pair in sorted.windows(2) {
            prop_assert!(pair[0].median <= pair[1].median, "{pair:?}");
        }
    }
}
