//! Keys and their effects.

use std::sync::Arc;
use std::time::Duration;

use nodewise_diagnose::sample::Identity;
use nodewise_machine::{Bytes, CpuId, MeminfoValue};
use nodewise_terminal::{App, Effect, Inks, Interest, Key, Mappings, Origin, Reading, Seek};

use crate::{app, example, reading, screen, type_keys};

/// The names in the list of processes, as they are seen.
fn names(app: &mut App) -> Vec<String> {
    let text = screen(app, 100, 30);
    let lines = text
        .lines()
        .skip_while(|line| !line.trim_start().starts_with("PID"))
        .skip(1)
        .take_while(|line| !line.is_empty());
    let name = |line: &str| line.trim_start_matches('>').split_whitespace().nth(1).map(str::to_owned);
    lines.filter_map(name).collect()
}

/// The number of the selected process.
fn selected(app: &mut App) -> String {
    let text = screen(app, 100, 30);
    let line = text.lines().find(|line| line.starts_with('>')).unwrap_or_default();
    line.trim_start_matches('>').split_whitespace().next().unwrap_or_default().to_owned()
}

#[test]
fn the_order_follows_the_keys() {
    let mut app = app(4, 5);
    type_keys(&mut app, "sss");
    assert_eq!(
        names(&mut app),
        ["sshd", "node_exporter", "qemu-system-x86", "java", "postgres"],
        "by CPU time"
    );
    type_keys(&mut app, "r");
    assert_eq!(names(&mut app)[0], "postgres");
    type_keys(&mut app, "r<");
    assert_eq!(names(&mut app), ["java", "node_exporter", "postgres", "qemu-system-x86", "sshd"], "by name");
    type_keys(&mut app, "<");
    assert_eq!(names(&mut app)[0], "postgres", "by number");
}

#[test]
fn a_process_stays_selected_where_it_goes() {
    let mut app = app(4, 40);
    type_keys(&mut app, "jjj");
    let process = selected(&mut app);
    type_keys(&mut app, "r");
    assert_eq!(selected(&mut app), process, "in another order");
    app.take(reading(&example::sample(4, 40, 202), &example::sample(4, 40, 205)));
    assert_eq!(selected(&mut app), process, "in another reading");
    app.take(reading(&example::sample(4, 2, 202), &example::sample(4, 2, 205)));
    assert!(!selected(&mut app).is_empty(), "another where it has ended");
}

#[test]
fn filters_choose_by_what_is_known() {
    let check = |filter: &str, expected: &[&str]| {
        let mut app = app(4, 5);
        type_keys(&mut app, &format!("sss/{filter}<Enter>"));
        assert_eq!(names(&mut app), expected, "{filter}");
    };
    check("QEMU", &["qemu-system-x86"]);
    check("pid=4001", &["java"]);
    check("user=1001", &["sshd", "java"]);
    check("user=postgres", &["qemu-system-x86"]);
    check("user=nobody", &["process"]);
    check("unit=postgresql name=e", &["node_exporter", "qemu-system-x86", "postgres"]);
    check("node=2", &["qemu-system-x86"]);
    check("rss>300M", &["sshd", "node_exporter", "qemu-system-x86"]);
    check("cpu>3", &["sshd"]);
    check("nothing", &["process"]);
}

#[test]
fn a_filter_that_is_given_up_leaves_the_one_before() {
    let mut app = app(4, 5);
    type_keys(&mut app, "/java<Enter>/sshd");
    assert_eq!(names(&mut app), ["process"], "both");
    type_keys(&mut app, "<Esc>");
    assert_eq!(names(&mut app), ["java"]);
    type_keys(&mut app, "\\");
    assert_eq!(names(&mut app).len(), 5);
}

#[test]
fn effects_are_asked_for_and_never_done() {
    let mut app = app(4, 5);
    assert_eq!(app.handle(Key::Char('q')), [Effect::Quit]);
    assert_eq!(app.handle(Key::Control('c')), [Effect::Quit]);
    assert_eq!(app.handle(Key::Control('z')), [Effect::Suspend]);
    assert_eq!(app.handle(Key::Char('p')), [Effect::Pause(true)]);
    assert_eq!(app.handle(Key::Char(' ')), [Effect::Pause(false)]);
    assert_eq!(app.handle(Key::Char('+')), [Effect::Every(Duration::from_secs(2))]);
    assert_eq!(app.handle(Key::Char('-')), [Effect::Every(Duration::from_secs(1))]);
    assert_eq!(app.handle(Key::Char('[')), [], "a live view has no steps");
    let interest =
        |threads_of, interrupts| Effect::Interest(Interest { threads_of, interrupts, services: false });
    assert_eq!(app.handle(Key::Char('5')), [interest(None, true)]);
    assert_eq!(app.handle(Key::Char('3')), [interest(Some(4004), false)]);
    let mappings = Effect::Mappings(example::identity(4004));
    assert_eq!(app.handle(Key::Enter), [mappings.clone(), interest(None, false)]);
    assert_eq!(app.handle(Key::Enter), [], "they are being read");
    app.take_mappings(Mappings::Failed(example::identity(4004), "it has ended".to_owned()));
    assert_eq!(app.handle(Key::Enter), [mappings], "read again");
}

#[test]
fn mappings_are_those_of_the_process_and_not_of_its_number() {
    let mut app = app(4, 5);
    type_keys(&mut app, "<Enter><Enter>");
    let mappings = Arc::new(example::mappings(4004, "other"));
    let earlier = Identity { started_ticks: 1, ..example::identity(4004) };
    app.take_mappings(Mappings::Read(earlier, Arc::clone(&mappings)));
    assert!(screen(&mut app, 80, 24).contains("reading the mappings of process 4004"));
    app.take_mappings(Mappings::Read(example::identity(4004), mappings));
    assert!(screen(&mut app, 80, 24).contains("4004 other"));
}

#[test]
fn help_scrolls_back_from_its_end_at_once() {
    let mut app = app(4, 5);
    screen(&mut app, 80, 24);
    type_keys(&mut app, "?<End>");
    let end = screen(&mut app, 80, 24);
    assert!(end.contains("unknown"), "{end}");
    for key in [Key::Down, Key::PageDown] {
        app.handle(key);
        assert_eq!(screen(&mut app, 80, 24), end);
    }
    app.handle(Key::Up);
    assert_ne!(screen(&mut app, 80, 24), end, "one line up");
    app.handle(Key::End);
    screen(&mut app, 80, 40);
    let taller = screen(&mut app, 80, 24);
    app.handle(Key::Up);
    assert_ne!(screen(&mut app, 80, 24), taller, "after a taller terminal, too");
}

#[test]
fn a_fact_is_awaited_only_while_it_can_still_come() {
    let quiet = |seconds| {
        let mut sample = example::sample(4, 5, seconds);
        sample.interrupts.clear();
        sample
    };
    let mut app = app(4, 5);
    type_keys(&mut app, "5");
    app.take(reading(&quiet(202), &quiet(203)));
    assert!(screen(&mut app, 80, 24).contains("\n reading ...\n"));
    app.take(reading(&quiet(203), &quiet(204)));
    type_keys(&mut app, "p");
    assert!(screen(&mut app, 80, 24).contains("\n paused: p resumes reading\n"));
    app.take(reading(&quiet(204), &quiet(205)));
    assert!(screen(&mut app, 80, 24).contains("\n no interrupts of devices were found\n"));
    let mut app = App::new(Origin::Recording("a".to_owned()), Duration::from_secs(1), Inks::Plain);
    app.take(reading(&quiet(202), &quiet(203)));
    type_keys(&mut app, "5");
    assert!(screen(&mut app, 80, 24).contains("\n this recording has no interrupts of devices"));
}

#[test]
fn a_recording_is_gone_through_by_keys() {
    let mut app = App::new(Origin::Recording("a".to_owned()), Duration::from_secs(1), Inks::Plain);
    app.take(reading(&example::sample(4, 5, 200), &example::sample(4, 5, 202)));
    assert!(app.is_paused(), "it stands still at first");
    for (key, seek) in
        [('[', Seek::Back), (']', Seek::On), ('{', Seek::MinuteBack), ('}', Seek::MinuteOn), ('G', Seek::End)]
    {
        assert_eq!(app.handle(Key::Char(key)), [Effect::Pause(true), Effect::Seek(seek)]);
    }
    type_keys(&mut app, "g90m");
    let to = Seek::To(Duration::from_secs(5400));
    assert_eq!(app.handle(Key::Enter), [Effect::Pause(true), Effect::Seek(to)]);
    type_keys(&mut app, "gx");
    assert_eq!(app.handle(Key::Enter), []);
    assert!(screen(&mut app, 120, 24).contains("is not a time"));
}

#[test]
fn a_screen_is_saved_as_it_is_seen() {
    let mut app = app(4, 5);
    let seen = screen(&mut app, 100, 30);
    type_keys(&mut app, "ea.txt");
    let effects = app.handle(Key::Enter);
    assert_eq!(effects, [Effect::Save { name: "a.txt".to_owned(), text: seen }]);
    type_keys(&mut app, "e");
    assert_eq!(app.handle(Key::Enter), [], "no name, no file");
}

#[test]
fn one_line_says_what_root_would_add() {
    let mut app = app(4, 5);
    assert!(screen(&mut app, 80, 24).contains("\nroot would add: memory of processes by node (1)\n"));
    let mut app = app.of_root();
    assert!(
        screen(&mut app, 80, 24).contains("\nnot readable even as root: memory of processes by node (1)\n")
    );
}

#[test]
fn stranded_memory_has_a_command_that_moves_it() {
    let mut app = app(4, 5);
    type_keys(&mut app, "/pid=4001<Enter>m");
    let text = screen(&mut app, 100, 30);
    assert!(text.contains("nodewise migrate 4001 --from-nodes 0 --to 1"), "{text}");
}

#[test]
fn a_device_is_marked_by_the_rule_of_findings() {
    let check = |own: u64, other: u64, is_marked: bool| {
        let sample = |seconds| {
            let mut sample = example::sample(4, 5, seconds);
            sample.interrupts[0].by_cpu =
                vec![(CpuId::new(12), own * seconds), (CpuId::new(0), other * seconds)];
            sample
        };
        let mut app = app(4, 5);
        type_keys(&mut app, "5");
        app.take(reading(&sample(200), &sample(202)));
        assert_eq!(screen(&mut app, 80, 24).contains(" %! "), is_marked, "{own} {other}");
    };
    check(50, 50, true);
    check(51, 50, false);
    check(50, 49, false);
    check(0, 99, false);
}

#[test]
fn an_order_holds_whatever_the_numbers_are() {
    let Reading { running, position } = reading(&example::sample(4, 60, 200), &example::sample(4, 60, 202));
    let mut running = Arc::unwrap_or_clone(running);
    for row in running.processes.iter_mut().step_by(3) {
        row.cpu_share = Some(f64::NAN);
    }
    let mut app = app(4, 5);
    app.take(Reading { running: Arc::new(running), position });
    type_keys(&mut app, "sss");
    let text = screen(&mut app, 100, 80);
    let lines = text.lines().skip_while(|line| !line.contains("CPU%*")).skip(1);
    let shares =
        lines.filter_map(|line| line.trim_start_matches('>').split_whitespace().nth(2)?.parse::<f64>().ok());
    let shares: Vec<f64> = shares.filter(|share| !share.is_nan()).collect();
    assert!(shares.len() > 20 && shares.is_sorted_by(|one, other| one >= other), "{shares:?}\n{text}");
}

#[test]
fn much_stranded_memory_comes_first_before_cpu_time() {
    let Reading { running, position } = reading(&example::sample(4, 60, 200), &example::sample(4, 60, 202));
    let mut app = app(4, 5);
    app.take(Reading { running: Arc::clone(&running), position });
    let text = screen(&mut app, 100, 200);
    let pids = text
        .lines()
        .skip_while(|line| !line.contains("  PID "))
        .skip(1)
        .map_while(|line| line.trim_start_matches('>').split_whitespace().next()?.parse::<u32>().ok());
    let row = |pid: u32| running.processes.iter().find(|row| row.identity.pid.number() == pid).unwrap();
    let keys: Vec<_> = pids.map(|pid| (row(pid).notably_stranded(), row(pid).cpu_share)).collect();
    assert!(keys.is_sorted_by(|one, other| one >= other), "{keys:?}");
    let stranded = keys.iter().filter(|(stranded, _)| stranded.is_some()).count();
    assert!((1..keys.len()).contains(&stranded), "{stranded} of {}", keys.len());
}

#[test]
fn free_memory_of_the_last_readings_has_a_bar_each() {
    let bars = |app: &mut App| {
        let text = screen(app, 160, 30);
        let bar = |c: &char| ('\u{2581}'..='\u{2588}').contains(c);
        text.lines().map(|line| line.chars().filter(bar).collect::<String>()).find(|bars| !bars.is_empty())
    };
    let mut app = app(4, 5);
    type_keys(&mut app, "1");
    assert_eq!(bars(&mut app).unwrap(), "\u{2586}");
    let mut full = example::sample(4, 5, 203);
    let free = full.nodes[0].memory.iter_mut().find(|field| field.name == "MemFree").unwrap();
    free.value = MeminfoValue::Size(Bytes::from_mib(1));
    app.take(reading(&example::sample(4, 5, 202), &full));
    assert_eq!(bars(&mut app).unwrap(), "\u{2586}\u{2581}");
    for second in 204..240 {
        app.take(reading(&example::sample(4, 5, second - 1), &example::sample(4, 5, second)));
    }
    assert_eq!(bars(&mut app).unwrap(), "\u{2586}".repeat(15));
    app.take(reading(&example::sample(4, 5, 210), &example::sample(4, 5, 211)));
    assert_eq!(bars(&mut app).unwrap(), "\u{2586}", "a step back clears it");
}

#[test]
fn a_service_opens_its_processes() {
    let mut app = app(4, 5);
    let interest = Interest { services: true, ..Interest::default() };
    assert_eq!(app.handle(Key::Char('6')), [Effect::Interest(interest)]);
    app.take(reading(&example::with_groups(4, 5, 200), &example::with_groups(4, 5, 202)));
    type_keys(&mut app, "<Enter>");
    let text = screen(&mut app, 100, 30);
    assert!(text.contains("filter unit=/system.slice/postgresql.service"), "{text}");
    assert_eq!(names(&mut app).len(), 5, "they all have this group");
    let mut app = App::new(Origin::Recording("a".to_owned()), Duration::from_secs(1), Inks::Plain);
    app.take(reading(&example::sample(4, 5, 200), &example::sample(4, 5, 202)));
    type_keys(&mut app, "6");
    assert!(screen(&mut app, 80, 24).contains("\n this recording has no services\n"));
}
