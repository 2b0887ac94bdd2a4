//! A table that is read is printed and read back the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nodewise_measure::perftest::{Column, PerftestQuantity, Table, kinks};

fuzz_target!(|text: &str| {
    let Ok(table) = Table::parse(text) else { return };
    assert!(!table.rows.is_empty());
    for kink in kinks(&table) {
        assert!(kink.sizes[0] < kink.sizes[1] && kink.sizes[1] < kink.sizes[2]);
    }
    let (column, head) = match table.kind {
        PerftestQuantity::Latency => (Column::Typical, "t_typical[usec]"),
        PerftestQuantity::Bandwidth => (Column::BandwidthAverage, "BW average[Gb/sec]"),
    };
    let mut printed = format!(" #bytes {head}\n");
    let mut rows = Vec::new();
    for (size, row) in &table.rows {
        if let Some(value) = row.get(column) {
            printed.push_str(&format!(" {:<10} {value:>16}   \n", size.get()));
            rows.push((*size, value));
        }
    }
    if let Some(again) = (!rows.is_empty()).then(|| Table::parse(&printed).expect("it was printed")) {
        assert_eq!((again.curve(), again.problems), (rows, Vec::new()));
    }
});
