//! The README and `docs/` against the command: what they show can be typed, and prints what they show.
//!
//! A fenced block is one of these:
//!
//! | fence | is |
//! |---|---|
//! | `console` | commands behind `$ ` with their output: they are run, and must print it |
//! | `text` | the same, recorded once on some machine: the commands must be well-formed |
//! | `spec` | machine specs, one a line: they must be read, printed, and read back the same |
//!
//! In a `console` block `...` alone on a line stands for any lines. Every `nodewise ...` in
//! backquotes must be well-formed too. Commands run in the root of the repository, so that a reader of a clone can
//! repeat them.

#![expect(clippy::unwrap_used, reason = "what a test does not expect is its failure")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use nodewise_machine::spec;
use serde_json::Value;

/// A print-out of perftest.
const PERFTEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/perftest/latency");

/// A fenced block.
struct Block {
    /// The text after the backquotes.
    kind: String,
    /// The line of its fence, from 1.
    line: usize,
    lines: Vec<String>,
}

/// A command and its documented output.
struct Shown {
    command: String,
    output: Vec<String>,
}

/// A page: its name, and its text.
fn pages() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut paths = vec![root.join("README.md")];
    let docs = std::fs::read_dir(root.join("docs")).expect("docs is there");
    paths.extend(
        docs.map(|entry| entry.unwrap().path()).filter(|path| path.extension() == Some("md".as_ref())),
    );
    paths.sort();
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    paths.iter().map(|path| (name(path), std::fs::read_to_string(path).unwrap())).collect()
}

/// The blocks of a page, and the lines outside of them with their numbers.
fn take_apart(text: &str) -> (Vec<Block>, Vec<(usize, &str)>) {
    let (mut blocks, mut prose) = (Vec::new(), Vec::new());
    let mut open: Option<Block> = None;
    for (number, line) in (1..).zip(text.lines()) {
        match (line.strip_prefix("```"), open.take()) {
            (Some(_), Some(block)) => blocks.push(block),
            (Some(kind), None) => {
                open = Some(Block { kind: kind.to_owned(), line: number, lines: Vec::new() })
            }
            (None, Some(mut block)) => {
                block.lines.push(line.to_owned());
                open = Some(block);
            }
            (None, None) => prose.push((number, line)),
        }
    }
    assert!(open.is_none(), "a block is not closed");
    (blocks, prose)
}

/// The commands of a block, each with the lines behind it.
fn shown(block: &Block) -> Vec<Shown> {
    let mut commands: Vec<Shown> = Vec::new();
    for line in &block.lines {
        if let Some(command) = line.strip_prefix("$ ") {
            commands.push(Shown { command: command.to_owned(), output: Vec::new() });
        } else if let Some(last) = commands.last_mut() {
            last.output.push(line.clone());
        }
    }
    for shown in &mut commands {
        while shown.output.last().is_some_and(|line| line.is_empty()) {
            shown.output.pop();
        }
    }
    commands
}

/// The words of a command line as a shell takes them, up to the first pipe, redirection or comment.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '|' | '>' | '<' | ';' | '#') if word.is_none() => break,
            (None, ' ') => words.extend(word.take()),
            (None, _) => word.get_or_insert_default().push(c),
        }
    }
    assert!(quote.is_none(), "{line}: a quote is not closed");
    words.extend(word);
    words
}

/// The words behind `nodewise` in a line, if it is a command of ours: also under `cargo run` and
/// behind variables.
fn ours(line: &str) -> Option<Vec<String>> {
    let words = words(line);
    let start = words.iter().position(|word| !word.contains('='))?;
    let rest = match &words[start..] {
        [name, rest @ ..] if name == "nodewise" => rest,
        [cargo, run, release, dashes, rest @ ..]
            if [cargo.as_str(), run, release, dashes] == ["cargo", "run", "--release", "--"] =>
        {
            rest
        }
        _ => return None,
    };
    Some(rest.to_vec())
}

fn nodewise(words: &[String]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nodewise"));
    for variable in ["NO_COLOR", "CLICOLOR_FORCE", "GLIBC_TUNABLES"] {
        command.env_remove(variable);
    }
    command.args(words).env("COLUMNS", "80");
    command
}

/// Tools that are called through the command. They take their words as the originals do, `--help`
/// among them, so what follows their name is theirs.
const TOOLS: [&str; 5] = ["numactl", "numastat", "migratepages", "migspeed", "memhog"];

/// Whether verb and options exist and their values are of the right kind. With `--help` before the
/// program the words up to there are read, and nothing is done.
fn check_words(line: &str) -> Result<(), String> {
    let Some(mut words) = ours(line) else { return Ok(()) };
    let is_end = |word: &String| word == "--" || TOOLS.contains(&word.as_str());
    words.truncate(words.iter().position(is_end).unwrap_or(words.len()));
    words.push("--help".to_owned());
    let output = nodewise(&words).output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{line}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// The pieces between single backquotes that are commands of ours.
fn inline_commands(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2).filter(|piece| piece.starts_with("nodewise "))
}

/// Whether output is as shown, where `...` stands for any lines.
fn matches(shown: &[String], printed: &[&str]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((line, rest)) if line == "..." => {
            (0..=printed.len()).any(|skipped| matches(rest, &printed[skipped..]))
        }
        Some((line, rest)) => printed
            .split_first()
            .is_some_and(|(first, others)| line.trim_end() == first.trim_end() && matches(rest, others)),
    }
}

fn check_output(shown: &Shown, folder: &Path) -> Result<(), String> {
    let words = ours(&shown.command).ok_or_else(|| format!("{}: not a command of ours", shown.command))?;
    let output = nodewise(&words).current_dir(folder).output().map_err(|error| error.to_string())?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let printed: Vec<&str> = text.trim_end().lines().collect();
    if matches(&shown.output, &printed) {
        return Ok(());
    }
    Err(format!("{}: expected\n{}\nbut it prints\n{text}", shown.command, shown.output.join("\n")))
}

/// Fails with everything that does not hold.
fn all_hold(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} things do not hold:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_command_that_is_shown_can_be_typed() {
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for (page, text) in pages() {
        let (blocks, prose) = take_apart(&text);
        let of_blocks = blocks.iter().flat_map(|block| {
            let commands = shown(block).into_iter().map(|shown| shown.command);
            // In a block without prompts every line is a command.
            let bare = block.lines.iter().filter(|_| block.kind == "sh").cloned();
            commands.chain(bare).map(|command| (block.line, command)).collect::<Vec<_>>()
        });
        let of_prose = prose.iter().flat_map(|(number, line)| {
            inline_commands(line).map(|command| (*number, command.to_owned())).collect::<Vec<_>>()
        });
        for (line, command) in of_blocks.chain(of_prose) {
            seen += usize::from(ours(&command).is_some());
            wrong.extend(check_words(&command).err().map(|why| format!("{page}:{line}: {why}")));
        }
    }
    all_hold(&wrong);
    assert!(seen > 30, "only {seen} commands were found");
}

#[test]
fn the_readme_has_a_row_for_each_verb() {
    let help = nodewise(&["--help".to_owned()]).output().unwrap().stdout;
    let help = String::from_utf8(help).unwrap();
    let (_, section) = help.split_once("\nVerbs:\n").expect("help lists the verbs");
    let entries = section.lines().take_while(|line| !line.is_empty());
    let verbs = entries.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let verbs: Vec<&str> = verbs.filter_map(|line| line.split_whitespace().next()).collect();
    let readme = pages().into_iter().find(|(name, _)| name == "README.md").expect("README.md is there").1;
    let missing =
        verbs.iter().filter(|verb| !readme.contains(&format!("[`{verb}`]")) && !TOOLS.contains(verb));
    all_hold(&missing.map(|verb| format!("README.md has no row for {verb}")).collect::<Vec<_>>());
    assert!(verbs.len() > 10, "{verbs:?}");
}

#[test]
fn console_blocks_print_what_they_show() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut wrong, mut run) = (Vec::new(), 0);
    for (page, text) in pages() {
        for block in take_apart(&text).0.iter().filter(|block| block.kind == "console") {
            for shown in shown(block) {
                run += 1;
                let result = check_output(&shown, &root);
                wrong.extend(result.err().map(|why| format!("{page}:{}: {why}", block.line)));
            }
        }
    }
    all_hold(&wrong);
    assert!(run > 0, "no command was found");
}

#[test]
fn specs_that_are_shown_are_read_and_printed_back() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for (page, text) in pages() {
        let (blocks, prose) = take_apart(&text);
        let of_blocks = blocks.iter().filter(|block| block.kind == "spec").flat_map(|block| &block.lines);
        // Rows of a table of that page whose first cell is a spec: it has a group in parentheses.
        let rows = prose.iter().filter(|_| page == "spec.md");
        let of_tables = rows.filter_map(|(_, line)| {
            let cell = line.strip_prefix("| `")?.split_once('`')?.0;
            cell.contains(')').then_some(cell)
        });
        for spec in of_blocks.map(String::as_str).chain(of_tables) {
            seen += 1;
            let result = spec::parse(spec)
                .map_err(|error| error.to_string())
                .and_then(|read| match spec::parse(&read.to_string()) {
                    Ok(again) if again == read => Ok(()),
                    _ => Err(format!("it is printed as {read}, which is not the same")),
                })
                .and_then(|()| spec::machine(spec).map(drop).map_err(|error| error.to_string()));
            wrong.extend(result.err().map(|why| format!("{page}: {spec}: {why}")));
        }
    }
    all_hold(&wrong);
    assert!(seen > 10, "only {seen} specs were found");
}

/// The names of all fields in a JSON document. Fields that are named after a kernel's line or a node
/// hold no names of ours.
fn fields(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                found.insert(name.clone());
                if name == "meminfo" {
                    value.as_object().into_iter().flatten().for_each(|(_, line)| fields(line, found));
                } else if name != "interleave_weights" {
                    fields(value, found);
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| fields(value, found)),
        _ => {}
    }
}

#[test]
fn every_field_of_the_json_documents_is_explained() {
    let page = pages().into_iter().find(|(name, _)| name == "json.md").expect("docs/json.md is there").1;
    let prose: Vec<&str> = take_apart(&page).1.into_iter().map(|(_, line)| line).collect();
    let explained: BTreeSet<&str> =
        prose.iter().flat_map(|line| line.split('`').skip(1).step_by(2)).collect();
    let spec = "(2c2t 4G l3=8M huge=2M:4) (4G tier=22); dist=17; access=0>1:250ns/30G; dev=pci:21:00.0@0; \
                dev=net:eth0@1; weights=0:3,1:1; kernel=6.12; arch=x86_64";
    let mut missing = Vec::new();
    for command in [
        vec!["show", "--json"],
        vec!["show", "--json", "--machine", spec],
        vec!["workload", "chase", "--json", "--size=1M", "--samples=1"],
        vec!["workload", "stream", "--json", "--size=3M", "--passes=1", "--threads=1"],
        vec!["explain", "bind:0", "--json", "--trace", "--machine", spec],
        vec!["explain", "bind:1", "--json", "--cost", "--machine", spec],
        vec!["zonelist", "--json", "--machine", spec],
        vec!["zones", "--json", "--machine", spec],
        vec!["simulate", "database", "--json"],
        vec!["doctor", "--once", "--json"],
        vec!["doctor", "--json", "--machine", spec],
        vec!["doctor", "rules", "--json"],
        vec!["advise", "--json", "--", "true"],
        vec!["advise", "--json", "--window=200ms", "1"],
        vec!["bandwidth", "--json", "--quick", "--matrix", "--huge=never", "--size=1M"],
        vec!["bandwidth", "--json", "--quick", "--file=/dev/shm", "--size=1M"],
        vec!["io", "--json", "--quick", "--size=64K", env!("CARGO_BIN_EXE_nodewise"), "net:none"],
        vec!["io", "--json", "--from", PERFTEST],
        vec!["tune", "--json", "--runs=2", "--seed=1", "--", "true"],
        vec![
            "compare",
            "--json",
            "--before=../../suites/recorded/pi5-without.json",
            "--after=../../suites/recorded/pi5-with.json",
        ],
        vec!["compare", "--json", "--list", "--suite=board"],
        vec!["emulation", "plan", "--nodes=2", "--json", "--machine", spec],
        vec!["emulation", "status", "--json"],
        vec!["emulation", "verify", "--json"],
        vec!["acpi", "--json", "../../fuzz/seeds/acpi/dump"],
        vec!["survey", "--verbs", "show,doctor", "--host", "a", "--machine", spec],
        vec!["fleet", "report", "../../data/surveys", "--json"],
        vec!["fleet", "report", "../../data/surveys", "--json", "--against", "../../data/surveys"],
        vec!["numactl", "--json", "--hardware"],
        vec!["numactl", "--json", "--show"],
        vec!["numastat", "--json"],
    ] {
        let words: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
        let output = nodewise(&words).output().unwrap();
        let document = serde_json::from_slice(&output.stdout).expect("the command prints JSON");
        let mut names = BTreeSet::new();
        fields(&document, &mut names);
        let unknown = names.iter().filter(|name| {
            // `nodes[].cpus` explains `cpus`.
            let is_it =
                |word: &&str| word.rsplit('.').next().map(|last| last.trim_end_matches("[]")) == Some(name);
            !explained.iter().any(is_it)
        });
        missing.extend(unknown.map(|name| format!("docs/json.md does not explain {name} of {command:?}")));
    }
    all_hold(&missing);
}

#[test]
fn links_lead_to_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut wrong = Vec::new();
    for (page, text) in pages() {
        let folder = if page == "README.md" { root.clone() } else { root.join("docs") };
        for (number, line) in take_apart(&text).1 {
            let targets = line.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
            for target in targets.map(|(target, _)| target.split('#').next().unwrap_or_default()) {
                let there = target.is_empty() || target.starts_with("http") || folder.join(target).exists();
                wrong.extend((!there).then(|| format!("{page}:{number}: there is no {target}")));
            }
        }
    }
    all_hold(&wrong);
}

/// The table of contents of the site (`cargo xtask site`) is itself no page of it.
const CONTENTS: &str = "SUMMARY.md";

#[test]
fn the_contents_of_the_site_name_each_page_once() {
    let pages = pages();
    let contents = &pages.iter().find(|(name, _)| name == CONTENTS).expect("docs has it").1;
    let listed = |page: &str| contents.matches(&format!("]({page})")).count();
    let pages = pages.iter().map(|(name, _)| name).filter(|name| *name != CONTENTS && *name != "README.md");
    let wrong = pages.filter(|page| listed(page) != 1);
    all_hold(&wrong.map(|page| format!("{page} is listed {} times", listed(page))).collect::<Vec<_>>());
}

/// Whether a cell names a file of a crate, or of this one, and tests in it.
fn names_tests(cell: &str) -> Result<String, String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut words = cell.split('`').skip(1).step_by(2);
    let file = words.next().unwrap_or_default();
    let folders = ["nodewise/tests", "nodewise", "", ".."].map(|folder| crates.join(folder).join(file));
    let text = folders.iter().find_map(|path| std::fs::read_to_string(path).ok());
    let text = text.ok_or_else(|| format!("there is no file {file}"))?;
    let missing = words.find(|name| !text.contains(&format!("fn {name}(")));
    missing.map_or(Ok(text), |name| Err(format!("{file} has no test {name}")))
}

/// Errors in the names of tests in the last column of a page's tables, and the number of rows.
fn wrong_tests(name: &str) -> (Vec<String>, usize) {
    let page = pages().into_iter().find(|(own, _)| own == name).expect("docs has it").1;
    let rows = page.lines().filter(|line| line.starts_with("| ")).skip(1);
    let cells: Vec<&str> =
        rows.map(|row| row.trim_end_matches(" |").rsplit(" | ").next().unwrap_or_default()).collect();
    let wrong = cells
        .iter()
        .filter_map(|cell| names_tests(cell).err().map(|why| format!("docs/{name}: {cell}: {why}")));
    (wrong.collect(), cells.len())
}

#[test]
fn every_feature_names_a_test_that_exists() {
    all_hold(&wrong_tests("features.md").0);
}

#[test]
fn every_finding_about_the_model_names_a_test_that_exists() {
    let (wrong, rows) = wrong_tests("model-findings.md");
    all_hold(&wrong);
    assert!(rows >= 19, "{rows} rows");
}

/// The version that a program prints, as far as numbers and dots go.
fn version_of(program: &str) -> Option<String> {
    // These know a shorter word alone.
    let word = match program {
        "iasl" => "-v",
        "dot" => "-V",
        _ => "--version",
    };
    let output = Command::new(program).arg(word).output().ok()?;
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    let numbers =
        text.split(|c: char| !c.is_ascii_digit() && c != '.').map(|number| number.trim_matches('.'));
    // Not the 64 of x86_64.
    numbers.filter(|number| number.len() > 2).map(str::to_owned).next()
}

#[test]
#[expect(clippy::print_stderr, reason = "another version than the documented one is worth a line")]
fn every_program_that_accepts_a_format_is_run_by_the_test_that_is_named() {
    let page = pages().into_iter().find(|(name, _)| name == "export.md").expect("docs has it").1;
    let (_, section) = page.split_once("\n## Accepted by\n").expect("the page has that part");
    let rows =
        section.lines().take_while(|line| !line.starts_with("## ")).filter(|line| line.starts_with("| "));
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for row in rows.skip(1) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [_, program, version, cell] = cells[..] else { panic!("{row}") };
        seen += 1;
        let name = program.split('`').nth(1).unwrap_or_default();
        match names_tests(cell) {
            Ok(text) if !text.contains(name) => wrong.push(format!("{row}: {cell} does not run {name}")),
            Ok(_) => {}
            Err(why) => wrong.push(format!("{row}: {why}")),
        }
        // Another version than the one that was tried is worth a line, and no fault of ours.
        if let Some(here) = version_of(name).filter(|here| !here.starts_with(version)) {
            eprintln!("docs/export.md names {name} {version}, and this system has {here}");
        }
    }
    all_hold(&wrong);
    assert!(seen >= 15, "{seen} rows");
}

#[test]
fn wrong_words_are_found() {
    for line in
        ["nodewise shew", "nodewise show --jsn", "nodewise tune --runs=x -- true", "nodewise run -z -- a"]
    {
        assert!(check_words(line).is_err(), "{line}");
    }
    for line in
        ["nodewise show --machine '2x(8c 64G)' | head", "COLUMNS=80 nodewise tune -- a --any", "ls --x"]
    {
        assert_eq!(check_words(line), Ok(()), "{line}");
    }
    assert_eq!(inline_commands("see `nodewise run` and `run`").collect::<Vec<_>>(), ["nodewise run"]);
}

#[test]
fn dots_stand_for_any_lines() {
    let check = |shown: &str, printed: &str, expected: bool| {
        let shown: Vec<String> = shown.lines().map(str::to_owned).collect();
        assert_eq!(matches(&shown, &printed.lines().collect::<Vec<_>>()), expected, "{shown:?} {printed:?}");
    };
    check("a\n...\nd", "a\nb\nc\nd", true);
    check("a\n...", "a", true);
    check("...\nb", "a\nc", false);
    check("a", "a\nb", false);
    check("a  ", "a", true);
}
