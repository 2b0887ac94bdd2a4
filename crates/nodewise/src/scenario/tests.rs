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
    check(
        "[[event]]\nat = 0\nprogram = \"a\"\nend = true\nfree = \"b\"",
        "line 1: the event of \"a\" has 2 things to do: expected one of allocate, free, set-policy, run-on, move-from \
         with move-to, end",
    );
    check(
        "\n[[event]]\nat = 0\nprogram = \"a\"\nfree = \"b\"\nhuge = true",
        "line 2: region, huge and policy belong to allocate, which is missing",
    );
    check(
        "[[event]]\nat = 0\nprogram = \"a\"\nmove-to = \"1\"",
        "line 1: move-from and move-to belong together",
    );
    for (text, line) in [
        ("title = 3", "line 1: "),
        ("title = \"a\"\ncolour = 3", "line 2: "),
        ("title = \"a\"\n]]", "line 2: "),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.starts_with(line), "{error}");
    }
}

#[test]
fn hostile_texts_are_survived() {
    for text in
        ["[[[[", "a = \"\\u{1b}\"", "[[event]]\nat = 1e999", &"[".repeat(100_000), "\0", "[[event]]\nat = {}"]
    {
        assert!(parse(text).is_err());
    }
}
