//! Thresholds that are read are printed and read back the same; what is refused is said in words fit for a terminal.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nodewise_diagnose::thresholds::read;
use nodewise_machine::printable::printable;

fuzz_target!(|text: &str| match read(text) {
    Ok(thresholds) => {
        for replaced in thresholds.replaced() {
            let of = replaced.threshold;
            assert!((of.least..=of.most).contains(&replaced.value), "{of:?}");
        }
        assert_eq!(read(&thresholds.to_toml()), Ok(thresholds));
    }
    Err(error) => {
        let error = error.to_string();
        assert_eq!(printable(&error), error);
        assert!(error.len() < 1_000, "{error}");
    }
});
