//! A session that is read is written and read back the same, and can be compared with itself: nothing of
//! it has changed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nodewise_experiment::compare::{Comparison, Verdict};
use nodewise_machine::printable::printable;
use nodewise_view::json::suite::{read, suite};

fuzz_target!(|text: &str| {
    let session = match read(text) {
        Ok(session) => session,
        Err(error) => {
            assert_eq!(printable(&error), error);
            return;
        }
    };
    let written = suite(&session);
    let again = read(&written).expect("what was written is a session");
    assert_eq!(suite(&again), written);
    // Resampling is what takes long; a few values show as much.
    let samples = session.cases.iter().flat_map(|case| &case.arms).map(|arm| arm.samples.len());
    if samples.sum::<usize>() <= 24 {
        let same = Comparison::between(&session, &again);
        let changed = |verdict: &Verdict| matches!(verdict, Verdict::Better | Verdict::Worse);
        assert!(!same.tables[0].rows.iter().any(|row| changed(&row.verdict)));
        let _ = Comparison::from_placements(&session);
    }
});
