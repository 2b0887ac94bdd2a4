use super::*;

fn check(text: &str, expected: &str) {
    assert_eq!(parse(text).unwrap_err(), expected, "{text}");
}

#[test]
fn every_shipped_scenario_is_read() {
    for (name, text) in SHIPPED {
        let scenario = parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(scenario.machine.is_some() && scenario.about.is_some(), "{name}");
        assert!(scenario.steps.is_sorted_by(|a, b| a.at_s <= b.at_s), "{name}");
    }
}

#[test]
fn steps_stand_by_time_and_starts_come_first() {
    let text = "\
[[event]]
at = 0
program = \"a\"
allocate = \"1G\"
[[event]]
at = 5
program = \"a\"
end = true
[[program]]
name = \"a\"
[[program]]
name = \"b\"
start = 2.5
";
    let scenario = parse(text).unwrap();
    let steps: Vec<(f64, &str, usize)> =
        scenario.steps.iter().map(|step| (step.at_s, step.program.as_str(), step.line)).collect();
    assert_eq!(steps, [(0.0, "a", 9), (0.0, "a", 1), (2.5, "b", 11), (5.0, "a", 5)]);
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    check("", "it has neither a [[program]] nor an [[event]]");
    check("[[program]]\nname = \"a\"\nstart = -1", "line 1: start is -1: expected seconds, 0 or more");
    check(
        "[[event]]\nat = nan\nprogram = \"a\"\nend = true",
        "line 1: at is NaN: expected seconds, 0 or more",
    );
    const KNOWN: &str = "map, allocate, touch, read, write, free, set-policy, mbind, home-node, move-pages, migrate-pages, mremap, \
                         oom-score-adj, run-on, cpuset, fork, thread, balance, end, hugepages, demotion, sync, drop-caches, \
                         limit, join";
    let event = |rest: &str| format!("\n[[event]]\nat = 0\nprogram = \"a\"\n{rest}");
    check(
        &event("end = true\nfree = \"b\""),
        &format!("line 2: the event of \"a\" has 2 things to do (free, end): expected one of {KNOWN}"),
    );
    check(
        &event("end = false"),
        &format!("line 2: the event of \"a\" has nothing to do: expected one of {KNOWN}"),
    );
    for (rest, why) in [
        ("free = \"b\"\nhuge = true", "huge belongs to map, allocate, and not to free"),
        (
            "read = \"1G\"\nlength = \"1G\"",
            "length belongs to touch, mbind, home-node, move-pages, and not to read",
        ),
        ("end = true\nto = \"1\"", "to belongs to move-pages, migrate-pages, and not to end"),
        ("set-policy = \"local\"\nstrict = true", "strict belongs to mbind, and not to set-policy"),
        ("mbind = \"heap\"", "mbind needs a policy, as in policy = \"bind:0\""),
        ("home-node = 1", "home-node needs a region, as in region = \"heap\""),
        ("move-pages = \"heap\"", "move-pages needs a node to move to, as in to = \"1\""),
        ("migrate-pages = \"0\"", "migrate-pages needs nodes to move to, as in to = \"1\""),
        ("map = \"1G\"\nhuge = true\nfile = \"x\"", "memory is one of huge, pool, file and private-file"),
        (
            "map = \"1G\"\nfirst-page = 3\npool = true",
            "first-page is for private memory: files and pools begin with page 0",
        ),
    ] {
        check(&event(rest), &format!("line 2: {why}"));
    }
    check("[[event]]\nat = 0\nend = true", "line 1: end needs a program: program = \"NAME\"");
    for (text, line) in [
        ("title = 3", "line 1, column 9: "),
        ("title = \"a\"\ncolour = 3", "line 2, column 1: "),
        ("title = \"a\"\n]]", "line 2, column 1: "),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.starts_with(line), "{error}");
    }
}

#[test]
fn every_thing_to_do_is_read() {
    let read = |rest: &str| {
        let scenario = parse(&format!("[[event]]\nat = 0\nprogram = \"a\"\n{rest}"));
        scenario.unwrap_or_else(|error| panic!("{rest}: {error}")).steps.remove(0).act
    };
    let heap = || Part { region: "heap".to_owned(), offset: None, length: None };
    let text = str::to_owned;
    let mapping =
        |backing| Mapping { size: text("1G"), region: None, backing, policy: None, first_page: None };
    for (rest, act) in [
        ("map = \"1G\"\npool = true", Written::Map(mapping(Backing::Pool))),
        ("allocate = \"1G\"\nfile = \"x\"", Written::Allocate(mapping(Backing::File(text("x"))))),
        ("allocate = \"1G\"\nhuge = true", Written::Allocate(mapping(Backing::Huge))),
        (
            "touch = \"heap\"\noffset = \"1G\"\nlength = \"2G\"",
            Written::Touch(Part { offset: Some(text("1G")), length: Some(text("2G")), ..heap() }),
        ),
        ("read = \"200M\"", Written::Read(FilePart { file: text("data"), offset: None, size: text("200M") })),
        (
            "write = \"200M\"\nfile = \"log\"\noffset = \"1G\"",
            Written::Write(FilePart { file: text("log"), offset: Some(text("1G")), size: text("200M") }),
        ),
        ("sync = true", Written::Sync),
        ("drop-caches = true", Written::DropCaches),
        ("free = \"heap\"", Written::Free(text("heap"))),
        ("set-policy = \"local\"", Written::SetPolicy(text("local"))),
        (
            "mbind = \"heap\"\npolicy = \"bind:0\"\nmove-all = true",
            Written::Mbind {
                part: heap(),
                policy: text("bind:0"),
                strict: false,
                moves: false,
                moves_all: true,
            },
        ),
        ("home-node = 1\nregion = \"heap\"", Written::HomeNode { part: heap(), node: 1 }),
        ("move-pages = \"heap\"\nto = \"1\"", Written::MovePages { part: heap(), to: text("1"), all: false }),
        ("migrate-pages = \"0\"\nto = \"1\"", Written::MigratePages { old: text("0"), new: text("1") }),
        ("map = \"1G\"\nhuge = false", Written::Map(mapping(Backing::NeverHuge))),
        ("map = \"1G\"\nprivate-file = \"x\"", Written::Map(mapping(Backing::PrivateFile(text("x"))))),
        (
            "mremap = \"heap\"\nsize = \"2G\"",
            Written::Remap { region: text("heap"), size: Some(text("2G")), first_page: None },
        ),
        ("oom-score-adj = -7", Written::OomScoreAdj(-7)),
        ("run-on = 3", Written::RunOn(3)),
        ("cpuset = \"0-1\"", Written::Cpuset(text("0-1"))),
        ("fork = \"b\"", Written::Fork(text("b"))),
        ("thread = \"t\"", Written::Thread(text("t"))),
        ("balance = true", Written::Balance),
        (
            "balance = true\nfor = 60\ntouches = \"150-200\"\nsweep = true",
            Written::BalanceFor { seconds: 60.0, touches: text("150-200"), sweeps: true },
        ),
        ("end = true", Written::End),
        ("hugepages = 7", Written::HugePages(7)),
        ("demotion = false", Written::Demotion(false)),
    ] {
        assert_eq!(read(rest), act, "{rest}");
    }
    for of_system in ["hugepages = 7", "sync = true", "drop-caches = true"] {
        assert_eq!(parse(&format!("[[event]]\nat = 0\n{of_system}")).unwrap().steps[0].program, "");
    }
}

#[test]
fn a_scenario_has_at_most_ten_thousand_steps() {
    let event = "[[event]]\nat = 1\nhugepages = 7\n";
    assert_eq!(parse(&event.repeat(MOST_STEPS)).unwrap().steps.len(), MOST_STEPS);
    let refused = parse(&event.repeat(MOST_STEPS + 1)).unwrap_err();
    assert_eq!(refused, "more than 10000 groups, programs and events");
}

#[test]
fn a_zero_with_a_sign_is_a_zero() {
    let text = "[[event]]\nat = -0.0\nprogram = \"a\"\nend = true\n[[program]]\nname = \"a\"";
    let steps = parse(text).unwrap().steps;
    assert!(matches!(steps[0].act, Written::Start { .. }), "{steps:?}");
}

#[test]
fn hostile_texts_are_survived() {
    for text in
        ["[[[[", "a = \"\\u{1b}\"", "[[event]]\nat = 1e999", &"[".repeat(100_000), "\0", "[[event]]\nat = {}"]
    {
        assert!(parse(text).is_err());
    }
}

#[test]
fn groups_are_made_first_and_give_their_programs_their_nodes() {
    let text = "\
[[program]]
name = \"a\"
group = \"db\"
[[program]]
name = \"b\"
group = \"db\"
nodes = \"2\"
[[group]]
name = \"pod\"
nodes = \"0-1\"
[[group]]
name = \"db\"
parent = \"pod\"
max = \"2G\"
[[event]]
at = 5
limit = { name = \"db\", max = \"1G\" }
";
    let steps = parse(text).unwrap().steps;
    let acts: Vec<String> = steps
        .iter()
        .map(|step| match &step.act {
            Written::Limit(group) => format!("{} {:?}", group.name, group.max.as_deref()),
            Written::Start { nodes, .. } => format!("{} {:?}", step.program, nodes.as_deref()),
            Written::Join(group) => format!("{} joins {group}", step.program),
            other => format!("{other:?}"),
        })
        .collect();
    let expected = [
        "pod None",
        "db Some(\"2G\")",
        "a Some(\"0-1\")",
        "a joins db",
        "b Some(\"2\")",
        "b joins db",
        "db Some(\"1G\")",
    ];
    assert_eq!(acts, expected);
    check("[[group]]\nname = \"a\"\n[[group]]\nname = \"a\"", "line 3: the group \"a\" is there already");
    // Groups that are in each other have no nodes, and are refused when they are made.
    let circle = "[[group]]\nname = \"a\"\nparent = \"a\"\n[[program]]\nname = \"p\"\ngroup = \"a\"";
    assert!(parse(circle).is_ok());
}
