use std::collections::BTreeSet;

use proptest::prelude::{any, prop, prop_assert, proptest};
use toml::Value;

use super::*;

/// A process of the test data.
struct Recorded {
    entry: String,
    facts: ProgramFacts,
    memory: Option<Bytes>,
}

fn recorded() -> Vec<Recorded> {
    let file: toml::Table = toml::from_str(include_str!("../../tests/processes.toml")).unwrap();
    let text = |table: &Value, key: &str| table.get(key).and_then(Value::as_str).map(str::to_owned);
    let list = |table: &Value, key: &str| -> Option<Vec<String>> {
        let list = table.get(key)?.as_array()?;
        Some(list.iter().map(|word| word.as_str().unwrap().to_owned()).collect())
    };
    let process = |table: &Value| Recorded {
        entry: text(table, "entry").unwrap(),
        facts: ProgramFacts {
            name: text(table, "name"),
            exe: text(table, "exe"),
            words: list(table, "words"),
            libraries: Some(list(table, "libraries").unwrap_or_default()),
            named_libraries: Vec::new(),
        },
        memory: text(table, "memory").map(|size| size.parse().unwrap()),
    };
    file["process"].as_array().unwrap().iter().map(process).collect()
}

fn found<'a>(programs: &'a [Application], facts: &ProgramFacts) -> Option<&'a str> {
    recognise(programs, facts).map(|program| program.id.as_str())
}

#[test]
fn every_entry_is_well_formed() {
    let programs = applications().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(programs.len(), 44);
    for Application { id, rule, reason, sources, .. } in &programs {
        assert!(rule.ends_with('.') && reason.ends_with('.'), "{id}: rule and reason are sentences");
        assert!(!sources.is_empty(), "{id}");
    }
}

#[test]
fn every_entry_has_a_process_that_is_recognised_as_it() {
    let programs = applications().unwrap();
    let recorded = recorded();
    for Recorded { entry, facts, memory } in &recorded {
        assert_eq!(found(&programs, facts), Some(entry.as_str()), "{facts:?}");
        let program = recognise(&programs, facts).unwrap();
        assert_eq!(declared(program, facts).map(|declared| declared.size), *memory, "{facts:?}");
    }
    let covered: BTreeSet<&str> = recorded.iter().map(|process| process.entry.as_str()).collect();
    let missing: Vec<&str> =
        programs.iter().map(|program| program.id.as_str()).filter(|id| !covered.contains(id)).collect();
    assert_eq!(missing, [""; 0], "entries without a process in tests/processes.toml");
}

#[test]
fn a_script_or_an_editor_with_the_same_words_is_not_the_program() {
    let programs = applications().unwrap();
    for Recorded { facts, .. } in recorded() {
        let words = facts.words.clone().unwrap();
        let file = facts.exe.clone().unwrap();
        let shell = |exe: Option<&str>| ProgramFacts {
            name: facts.name.clone(),
            exe: exe.map(str::to_owned),
            words: Some(vec!["/bin/bash".to_owned(), file.clone()]),
            libraries: Some(Vec::new()),
            ..ProgramFacts::default()
        };
        assert_eq!(found(&programs, &shell(Some("/usr/bin/bash"))), None, "{facts:?}");
        assert_eq!(found(&programs, &shell(None)), None, "the exe is not known: {facts:?}");
        let editor = ProgramFacts {
            name: Some("vim".to_owned()),
            exe: Some("/usr/bin/vim.basic".to_owned()),
            words: Some(["vim".to_owned()].into_iter().chain(words.clone()).collect()),
            libraries: Some(Vec::new()),
            ..ProgramFacts::default()
        };
        assert_eq!(found(&programs, &editor), None, "{facts:?}");
        let notes = ProgramFacts {
            name: Some("python3".to_owned()),
            exe: Some("/usr/bin/python3.12".to_owned()),
            words: Some(["python3", "notes.py"].map(str::to_owned).into_iter().chain(words).collect()),
            libraries: Some(Vec::new()),
            ..ProgramFacts::default()
        };
        assert_eq!(found(&programs, &notes), None, "{facts:?}");
    }
}

#[test]
fn a_process_of_another_user_is_recognised_by_its_name_and_command_line_together() {
    let programs = applications().unwrap();
    let facts = |name: &str, first: &str| ProgramFacts {
        name: Some(name.to_owned()),
        words: Some(vec![first.to_owned()]),
        ..ProgramFacts::default()
    };
    assert_eq!(found(&programs, &facts("postgres", "postgres: walwriter ")), Some("postgresql"));
    assert_eq!(found(&programs, &facts("redis-server", "/usr/bin/redis-server *:6379")), Some("redis"));
    assert_eq!(found(&programs, &facts("mongod", "/opt/decoy")), None);
    assert_eq!(found(&programs, &facts("decoy", "/usr/bin/mongod")), None);
    assert_eq!(found(&programs, &ProgramFacts::default()), None);
    // Which vLLM it is, its libraries say: where they are not known, neither.
    let vllm = ProgramFacts {
        words: Some(["python3", "/usr/bin/vllm", "serve"].map(str::to_owned).to_vec()),
        exe: Some("/usr/bin/python3.12".to_owned()),
        ..ProgramFacts::default()
    };
    assert_eq!(found(&programs, &vllm), None);
}

#[test]
fn a_file_that_names_a_library_is_known_by_it_before_it_is_started() {
    let programs = applications().unwrap();
    let facts = |name: &str, script: &str, library: &str| ProgramFacts {
        exe: Some(format!("/opt/bin/{name}")),
        words: Some([name, script].map(str::to_owned).to_vec()),
        named_libraries: ["libc.so.6", library].map(str::to_owned).to_vec(),
        ..ProgramFacts::default()
    };
    assert_eq!(found(&programs, &facts("solver", "input", "libgomp.so.1")), Some("openmp"));
    assert_eq!(found(&programs, &facts("solver", "input", "libmpi.so.40")), Some("mpi"));
    assert_eq!(found(&programs, &facts("solver", "input", "libm.so.6")), None);
    // What it does not name may still be loaded: it may use a GPU.
    assert_eq!(found(&programs, &facts("python3.12", "/usr/bin/vllm", "libm.so.6")), None);
}

#[test]
fn a_program_that_was_replaced_on_disk_is_recognised() {
    let programs = applications().unwrap();
    let facts = ProgramFacts { exe: Some("/usr/bin/mongod (deleted)".to_owned()), ..ProgramFacts::default() };
    assert_eq!(found(&programs, &facts), Some("mongodb"));
}

#[test]
fn the_last_size_of_a_command_line_counts_and_nonsense_is_no_size() {
    let programs = applications().unwrap();
    let check = |id: &str, line: &str, expected: Option<Bytes>| {
        let program = programs.iter().find(|program| program.id == id).unwrap();
        let words = Some(line.split(' ').map(str::to_owned).collect());
        let found = declared(program, &ProgramFacts { words, ..ProgramFacts::default() });
        assert_eq!(found.map(|declared| declared.size), expected, "{line}");
    };
    check("jvm", "java -Xmx1g -Xmx2g Main", Some(Bytes::from_gib(2)));
    check("jvm", "java -Xmx1048576 Main", Some(Bytes::from_mib(1)));
    check("jvm", "java -Xmx Main", None);
    check("jvm", "java -Xmxlots Main", None);
    check("jvm", "java -Xmx0 Main", None);
    check("jvm", "java -Xmx99999999999999999999 Main", None);
    check("postgresql", "postgres -c shared_buffers=16384", Some(Bytes::from_mib(128)));
    check("qemu", "qemu -m size=8G,slots=2", Some(Bytes::from_gib(8)));
    check("qemu", "qemu -m", None);
    check("memcached", "memcached -m 18446744073709551615", None);
}

/// An entry with one key replaced, or left out.
fn entry(key: &str, value: &str) -> String {
    let keys = [
        ("id", "\"x\""),
        ("name", "\"X\""),
        ("kinds", "[\"mixed\"]"),
        ("recognise", "[{ exe = [\"x\"] }]"),
        ("rule", "\"A rule.\""),
        ("reason", "\"A reason.\""),
        ("sources", "[\"x#1\"]"),
        ("checked", "\"2026-11-23\""),
    ];
    let mut text = "[[program]]\n".to_owned();
    for (known, default) in keys {
        let value = if known == key { value } else { default };
        if !value.is_empty() {
            text.push_str(&format!("{known} = {value}\n"));
        }
    }
    if !keys.iter().any(|(known, _)| *known == key) {
        text.push_str(&format!("{key} = {value}\n"));
    }
    text
}

#[test]
fn a_fault_is_named_by_its_entry_and_key() {
    assert_eq!(read(&entry("rule", "\"Another.\"")).unwrap().len(), 1);
    let check = |key: &str, value: &str, expected: &str| {
        let error = read(&entry(key, value)).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains(char::is_control), "{error:?}");
    };
    check("rule", "", "entry \"x\", key rule: expected a text; this key is missing");
    check("rule", "7", "entry \"x\", key rule: expected a text of 1 to 400");
    check("rule", "\"\\u001b[31m\"", "entry \"x\", key rule: expected a text of 1 to 400");
    check("id", "\"My Program\"", "key id: expected small letters");
    check("id", "", "entry 1, key id");
    check("kinds", "[\"fast\"]", "expected some of one-node, growing");
    check("kinds", "[]", "key kinds");
    check("recognise", "[]", "key recognise: expected a list such as");
    check("recognise", "[{ exe = [\"*\"] }]", "key recognise: exe: expected a name, not \"*\" alone");
    check("recognise", "[{ script = [\"x\"] }]", "key recognise: exe: expected file names");
    check("recognise", "[{ exe = [\"x\"], exes = [\"y\"] }]", "key recognise: exes: expected no such key");
    check("memory", "[{ word = \"-Xmx\", unit = \"B\" }]", "key memory: word: expected a text that ends in");
    check("memory", "[{ word = \"-Xmx*\", unit = \"kB\" }]", "key memory: unit: expected B, KiB");
    check("option", "[{ file = \"x\" }]", "key option: text: expected a text; this key is missing");
    check(
        "option",
        "[{ file = \"x\", text = \"y\", when = \"z\" }]",
        "key option: when: expected node or spread",
    );
    check("checked", "\"yesterday\"", "key checked: expected a day");
    check("\"\\u001b\"", "1", "key \\x1b: expected no such key");
    let twice = entry("rule", "\"A.\"").repeat(2);
    assert!(read(&twice).unwrap_err().to_string().contains("an id that no other entry has"));
    assert!(read("title = 1").unwrap_err().to_string().contains("[[program]]"));
    assert!(read("= 1").unwrap_err().to_string().contains("not TOML"));
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in any::<String>(), key in "[a-z]{1,9}", value in "[\\[\\]{}=\", a-z0-9*]{0,30}") {
        for text in [text, entry(&key, &value)] {
            if let Err(error) = read(&text) {
                prop_assert!(!error.to_string().contains(char::is_control));
            }
        }
    }

    #[test]
    fn any_process_is_survived(
        name in any::<Option<String>>(),
        exe in any::<Option<String>>(),
        words in prop::option::of(prop::collection::vec(".{0,12}|-m|-Xmx[0-9]{0,30}[a-z]?|--memory=.{0,5}", 0..6)),
        libraries in prop::option::of(prop::collection::vec(any::<String>(), 0..4)),
    ) {
        let programs = applications().unwrap();
        let facts = ProgramFacts { name, exe, words, libraries, ..ProgramFacts::default() };
        let _ = recognise(&programs, &facts);
        for program in &programs {
            prop_assert!(declared(program, &facts).is_none_or(|declared| declared.size.get() > 0));
        }
    }
}
