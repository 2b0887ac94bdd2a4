//! A check of a kernel as TAP 14: a test point per script, with the difference as YAML.

use std::fmt::Write as _;

use nodewise_machine::printable::{json, printable};

use crate::digest::conformance::{CheckedMachine, Inexact, KernelCheck, ScriptDifference, ScriptOutcome};

/// The first lines: the version, the plan, and what is compared.
pub fn head(check: &KernelCheck, scripts: u64) -> String {
    let mut text = format!("TAP version 14\n1..{scripts}\n");
    let kernel = check.kernel.as_deref().unwrap_or("of an unknown release");
    comment(&mut text, &format!("kernel {kernel}, {}", check.image));
    comment(
        &mut text,
        &format!(
            "model: the rules of {}; nearest release that they were compared with: {}",
            check.model, check.compared
        ),
    );
    if let Some(seed) = check.seed {
        comment(&mut text, &format!("seed {seed}"));
    }
    text
}

/// The lines of a machine, whose first script is the point with this number.
pub fn machine(machine: &CheckedMachine, first: usize) -> String {
    let mut text = String::new();
    comment(&mut text, &format!("machine {}", machine_words(machine)));
    for (point, script) in (first..).zip(&machine.scripts) {
        let number = match script.name.kind {
            "calls" => script.name.number.to_string(),
            kind => format!("{kind} {}", script.name.number),
        };
        let point = match &script.outcome {
            ScriptOutcome::Same => format!("ok {point} - script {number}\n"),
            ScriptOutcome::Failed(why) => {
                let why = [("machine", quoted(&machine_words(machine))), ("not_played", quoted(why))];
                format!("not ok {point} - script {number} could not be played\n{}", yaml(&why, &[]))
            }
            ScriptOutcome::Differs(difference) => {
                let what = printable(&difference.what).replace('#', "\\#");
                format!("not ok {point} - script {number}: {what}\n{}", difference_lines(machine, difference))
            }
        };
        text.push_str(&point);
    }
    text
}

/// The last lines: how many of each.
pub fn end(check: &KernelCheck) -> String {
    let (same, differ, failed) = check.counts();
    let mut text = String::new();
    comment(
        &mut text,
        &format!("{same} scripts without a difference, {differ} with one, {failed} not played"),
    );
    let all = check.inexact(None);
    if all.left_out > 0 {
        comment(
            &mut text,
            &format!("{} steps not played: the model does not know their outcome", all.left_out),
        );
    }
    if let Some(mean) = all.mean() {
        comment(&mut text, &widths(all, mean));
    }
    for kind in check.kinds.iter().filter(|_| check.kinds.len() > 1) {
        let (same, differ, failed) = check.counts_of(Some(kind));
        let mut words = format!("{kind}: {same} of {} without a difference", same + differ + failed);
        let inexact = check.inexact(Some(kind));
        if inexact.left_out > 0 {
            words.push_str(&format!(", {} steps not played", inexact.left_out));
        }
        if let Some(mean) = inexact.mean() {
            words.push_str(&format!(", {}", widths(inexact, mean)));
        }
        comment(&mut text, &words);
    }
    text
}

/// The number of intervals, and how wide they are.
fn widths(Inexact { intervals, widest, .. }: Inexact, mean: u64) -> String {
    let percent = |thousandths: u64| format!("{}.{} %", thousandths / 10, thousandths % 10);
    format!("{intervals} intervals, of {} of a limit on average, {} at most", percent(mean), percent(widest))
}

fn comment(text: &mut String, words: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "# {}", printable(words));
}

/// The spec, and what is added to the kernel's command line and to QEMU's.
fn machine_words(machine: &CheckedMachine) -> String {
    let append = machine.append.iter().map(|words| format!(" --append {words}"));
    let qemu = machine.qemu.iter().map(|words| format!(" with QEMU's {words}"));
    append.chain(qemu).fold(format!("\"{}\"", machine.spec), |text, words| text + &words)
}

fn difference_lines(machine: &CheckedMachine, difference: &ScriptDifference) -> String {
    let repeated = format!("{} of {}", difference.repeated, difference.plays);
    let fields = [
        ("machine", quoted(&machine_words(machine))),
        ("aspect", difference.aspect.to_owned()),
        ("what", quoted(&difference.what)),
        ("kernel", quoted(&difference.kernel)),
        ("model", quoted(&difference.model)),
        ("calls_left", difference.length.to_string()),
        ("calls_drawn", difference.drawn.to_string()),
        ("repeated", quoted(&repeated)),
    ];
    let file = difference.file.as_ref().map(|file| ("program", quoted(file)));
    yaml(&fields.into_iter().chain(file).collect::<Vec<_>>(), &difference.calls)
}

/// A block of YAML behind a test point.
fn yaml(fields: &[(&str, String)], calls: &[String]) -> String {
    let mut text = "  ---\n".to_owned();
    for (name, value) in fields {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {name}: {value}");
    }
    if !calls.is_empty() {
        text.push_str("  calls:\n");
    }
    calls.iter().for_each(|call| text.push_str(&format!("    - {}\n", quoted(call))));
    text + "  ...\n"
}

/// A text in double quotes, which YAML reads as JSON does.
fn quoted(text: &str) -> String {
    let text = serde_json::to_string(text).expect("a text is JSON");
    json(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::conformance::{CheckedScript, ScriptName};

    fn check() -> KernelCheck {
        let difference = ScriptDifference {
            aspect: "pages",
            what: "pages of m0".to_owned(),
            kernel: "0-3 on node 1".to_owned(),
            model: "0-3 on node 0".to_owned(),
            calls: vec!["m0 = mmap(4 pages)".to_owned(), "write to m0: 0, 1, 2, 3".to_owned()],
            length: 2,
            drawn: 14,
            repeated: 3,
            plays: 3,
            program: "int main".to_owned(),
            file: Some("script-1001.c".to_owned()),
        };
        let script = |kind, number, outcome, left_out| {
            let name = ScriptName { kind, number };
            let inexact = Inexact { left_out, intervals: left_out, widths: 85 * left_out, widest: 123 };
            CheckedScript { name, outcome, inexact }
        };
        let ended = "the guest\u{1b}[m ended".to_owned();
        let scripts = vec![
            script("pools", 1000, ScriptOutcome::Same, 2),
            script("calls", 1001, ScriptOutcome::Differs(Box::new(difference)), 0),
            script("thp", 1002, ScriptOutcome::Failed(ended), 0),
        ];
        let machine = CheckedMachine {
            spec: "2x(1c 512M)".to_owned(),
            append: Some("numa=fake=2".to_owned()),
            qemu: None,
            engine: Some("tcg"),
            scripts,
            seconds: 31,
        };
        KernelCheck {
            kernel: Some("6.13.0".to_owned()),
            image: "bzImage".to_owned(),
            model: "6.13".to_owned(),
            compared: "6.12".to_owned(),
            kinds: vec!["pools", "calls", "thp"],
            seed: Some(1),
            machines: vec![machine],
        }
    }

    #[test]
    fn every_script_is_a_point() {
        let check = check();
        let text = head(&check, 3) + &machine(&check.machines[0], 1) + &end(&check);
        let expected = "\
TAP version 14
1..3
# kernel 6.13.0, bzImage
# model: the rules of 6.13; nearest release that they were compared with: 6.12
# seed 1
# machine \"2x(1c 512M)\" --append numa=fake=2
ok 1 - script pools 1000
not ok 2 - script 1001: pages of m0
  ---
  machine: \"\\\"2x(1c 512M)\\\" --append numa=fake=2\"
  aspect: pages
  what: \"pages of m0\"
  kernel: \"0-3 on node 1\"
  model: \"0-3 on node 0\"
  calls_left: 2
  calls_drawn: 14
  repeated: \"3 of 3\"
  program: \"script-1001.c\"
  calls:
    - \"m0 = mmap(4 pages)\"
    - \"write to m0: 0, 1, 2, 3\"
  ...
not ok 3 - script thp 1002 could not be played
  ---
  machine: \"\\\"2x(1c 512M)\\\" --append numa=fake=2\"
  not_played: \"the guest\\u001b[m ended\"
  ...
# 1 scripts without a difference, 1 with one, 1 not played
# 2 steps not played: the model does not know their outcome
# 2 intervals, of 8.5 % of a limit on average, 12.3 % at most
# pools: 1 of 1 without a difference, 2 steps not played, 2 intervals, of 8.5 % of a limit on average, 12.3 % at most
# calls: 0 of 1 without a difference
# thp: 0 of 1 without a difference
";
        assert_eq!(text, expected);
    }

    #[test]
    fn json_has_the_program_too() {
        let json: serde_json::Value = serde_json::from_str(&crate::json::conformance(&check())).unwrap();
        assert_eq!(json["schema"], "nodewise.kernel-check/1");
        let scripts = &json["machines"][0]["scripts"];
        assert_eq!(scripts[0]["outcome"], "same");
        assert_eq!(scripts[1]["program"], "int main");
        assert_eq!(scripts[1]["calls"][0], "m0 = mmap(4 pages)");
        assert_eq!(scripts[2]["outcome"], "not played");
        assert_eq!(scripts[2]["kind"], "thp");
        assert_eq!((&json["kinds"][1]["kind"], &json["kinds"][1]["different"]), (&"calls".into(), &1.into()));
        let left_out = [&json, &json["kinds"][0], &scripts[0], &scripts[1]];
        assert_eq!(left_out.map(|of| of["steps_not_played"].as_u64()), [Some(2), Some(2), Some(2), Some(0)]);
        assert_eq!(
            (&json["same"], &json["different"], &json["not_played"]),
            (&1.into(), &1.into(), &1.into())
        );
    }
}
