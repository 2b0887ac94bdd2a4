//! A suite that is read has commands that can be filled in; one that is refused says where.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use nodewise_experiment::suite::command::Places;
use nodewise_experiment::suite::parse::parse;
use nodewise_machine::printable::printable;

fuzz_target!(|text: &str| {
    match parse(text) {
        Ok(suite) => {
            let places = Places { threads: 3, inputs: Path::new("/tmp/i"), nodewise: Path::new("/bin/n") };
            for case in suite.cases(4) {
                assert!(case.threads > 0);
                for command in case.benchmark.commands() {
                    // A command keeps its length but for what is filled in.
                    let places_in_it = command.text().matches('{').count();
                    let filled = command.fill(&places);
                    assert!(filled.len() + 10 * places_in_it >= command.text().len());
                    assert!(!filled.contains('\0'));
                }
            }
        }
        Err(error) => {
            assert!(error.line >= 1 && error.line <= text.lines().count() + 1, "{error}");
            assert_eq!(printable(&error.what), error.what);
        }
    }
});
