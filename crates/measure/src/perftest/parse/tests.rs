use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, proptest};

use super::*;

const LATENCY: &str = "\
---------------------------------------------------------------------------------------
                    Send Latency Test
 Dual-port       : OFF\t\tDevice         : mlx5_2
---------------------------------------------------------------------------------------
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec]\x20
 2       1000          1.10           5.05         1.27     \t       1.24        \t0.00   \t\t1.37    \t\t5.05   
 4       1000          1.10           1.34         1.18     \t       1.18        \t0.00   \t\t1.29    \t\t1.34   
---------------------------------------------------------------------------------------
 #bytes #iterations    t_typical[usec]
 8       1000          9.99
";

fn problems(text: &str) -> Vec<String> {
    Table::parse(text).unwrap().problems.iter().map(ToString::to_string).collect()
}

fn refused(text: &str, expected: &str) {
    assert_eq!(Table::parse(text).unwrap_err().to_string(), expected);
}

#[test]
fn a_print_out_is_read_by_the_names_of_its_columns_up_to_the_line_of_dashes() {
    let table = Table::parse(LATENCY).unwrap();
    assert_eq!((table.kind, table.rows.len(), &table.problems), (PerftestQuantity::Latency, 2, &Vec::new()));
    let row = &table.rows[&Bytes::new(2)];
    assert_eq!(row.iterations, Some(1000));
    let values: Vec<Option<f64>> = table.columns.iter().map(|column| row.get(*column)).collect();
    assert_eq!(values, [1.10, 5.05, 1.27, 1.24, 0.00, 1.37, 5.05].map(Some));
    assert_eq!(row.get(Column::MessageRate), None);
    assert_eq!(table.curve(), [(Bytes::new(2), 1.27), (Bytes::new(4), 1.18)]);
}

#[test]
fn bandwidths_come_out_in_gbit_whatever_they_are_printed_in() {
    let of = |unit: &str| {
        let heads = format!("#bytes #iterations BW peak[{unit}] BW average[{unit}] MsgRate[Mpps]");
        let table = Table::parse(&format!("{heads}\n65536 1000 12000.50 1000.0 0.1\n")).unwrap();
        table.value(Bytes::new(65_536)).unwrap()
    };
    assert_eq!(of("Gb/sec"), 1000.0);
    // 1000 times 2^20 bytes of 8 bits.
    assert!((of("MB/sec") - 8.388608).abs() < 1e-9 && of("MiB/sec") == of("MB/sec"));
}

#[test]
fn a_test_of_fixed_duration_has_an_average_alone() {
    let table = Table::parse("#bytes #iterations t_avg[usec] tps average\n64 90000 1.5 333333.1\n").unwrap();
    assert_eq!(table.columns, [Column::Average, Column::Transactions]);
    assert_eq!(table.value(Bytes::new(64)), Some(1.5));
}

#[test]
fn a_line_that_cannot_be_read_is_named_and_the_others_are_there() {
    let text = "#bytes #iterations t_typical[usec]\n\
                2 1000 1.10\n\
                Conflicting CPU frequency values detected: 2400 != 3600\n\
                4 1000\n\
                8 1000 -1.5\n\
                16 1000 1.2 7\n\
                2 1000 1.3\n\
                32 many 1.4\n\
                64 1000 nan\n\
                128 1000 1.5\n";
    assert_eq!(Table::parse(text).unwrap().rows.len(), 2);
    assert_eq!(
        problems(text),
        [
            "line 3: expected a size in bytes, found \"Conflicting\"",
            "line 4: expected 3 numbers, found 2: \"4 1000\"",
            "line 5: expected a number of 0 or more, found \"-1.5\"",
            "line 6: expected 3 numbers, found more: \"16 1000 1.2 7\"",
            "line 7: messages of 2 bytes were there already",
            "line 8: expected a number of messages, found \"many\"",
            "line 9: expected a number of 0 or more, found \"nan\"",
        ]
    );
}

#[test]
fn a_column_that_is_not_known_is_named_and_the_others_stay_in_their_places() {
    let text = "#bytes #iterations t_typical[usec] t_new[usec] t_avg[usec]\n2 1000 1.1 7 1.2\n";
    assert_eq!(problems(text), ["line 1: column \"t_new[usec]\" is not known, or there twice: left out"]);
    let table = Table::parse(text).unwrap();
    assert_eq!(table.rows[&Bytes::new(2)].get(Column::Average), Some(1.2));
    let twice = "#bytes BW average[Gb/sec] BW average[MB/sec]\n2 3 4\n";
    assert_eq!(Table::parse(twice).unwrap().columns, [Column::BandwidthAverage]);
}

#[test]
fn a_text_without_a_table_says_what_was_expected() {
    refused("", "it holds no table of perftest: expected a line that begins with #bytes");
    refused("Couldn't connect to far:18515\n", &NoTable::NoHeads.to_string());
    refused("x\n#bytes #iterations\n2 1000\n", &NoTable::NoValues { line: 2 }.to_string());
    refused("#bytes t_stdev[usec]\n2 1\n", &NoTable::NoValues { line: 1 }.to_string());
    refused("#bytes t_typical[usec] BW average[Gb/sec]\n2 1 1\n", &NoTable::NoValues { line: 1 }.to_string());
    refused(
        "#bytes t_typical[usec]\n2\n",
        "it holds no row that can be read: line 2: expected 2 numbers, found 1: \"2\"",
    );
    refused("#bytes t_typical[usec]\n---\n2 1.0\n", "it holds no row that can be read");
}

#[test]
fn what_is_wrong_does_not_grow_without_end() {
    let bad = "x\n".repeat(5000);
    let found = problems(&format!("#bytes t_typical[usec]\n2 1\n{bad}"));
    assert_eq!(found.len(), MOST_PROBLEMS);
    assert!(found.last().unwrap().ends_with("and 4981 lines more that cannot be read"), "{found:?}");
    let rows: String = (0..3000).map(|size| format!("{size} 1\n")).collect();
    let table = Table::parse(&format!("#bytes t_typical[usec]\n{rows}")).unwrap();
    assert_eq!((table.rows.len(), table.problems.len()), (MOST_ROWS, MOST_PROBLEMS));
    let long = problems(&format!("#bytes t_typical[usec]\n2 1\n{}\n", "9".repeat(100_000)));
    assert!(long[0].len() < 200, "{long:?}");
}

/// A table as perftest prints it.
fn printed(rows: &BTreeMap<u32, (f64, f64)>) -> String {
    let mut text = String::from("---\n #bytes     #iterations    t_typical[usec]    99% percentile[usec]\n");
    for (size, (typical, tail)) in rows {
        text.push_str(&format!(" {size:<10} 1000 {typical:>20.2} \t\t{tail:>12.2}   \n"));
    }
    text + "---\n"
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_within_bounds(text in any::<String>()) {
        if let Ok(table) = Table::parse(&text) {
            prop_assert!(!table.rows.is_empty() && table.problems.len() <= MOST_PROBLEMS);
        }
    }

    #[test]
    fn any_lines_below_heads_are_rows_or_problems(
        lines in proptest::collection::vec("[ 0-9.a-f+-]{0,20}", 0..40),
    ) {
        let text = format!("#bytes #iterations t_typical[usec]\n7 1 1\n{}\n", lines.join("\n"));
        let table = Table::parse(&text).unwrap();
        let filled = lines.iter().take_while(|line| !(line.trim().len() >= 3 && line.trim().bytes().all(|byte| byte == b'-')));
        let filled = filled.filter(|line| !line.trim().is_empty()).count();
        let told = table.problems.len().min(MOST_PROBLEMS - 1);
        prop_assert!(table.rows.len() - 1 + told <= filled);
        prop_assert!(filled >= MOST_PROBLEMS || table.rows.len() - 1 + table.problems.len() == filled);
        for row in table.rows.values() {
            prop_assert!(row.get(Column::Typical).is_some_and(|value| value.is_finite() && value >= 0.0));
        }
    }

    #[test]
    fn what_is_printed_is_read_back(
        rows in proptest::collection::btree_map(
            any::<u32>(),
            (0_u32..1 << 30, 0_u32..1 << 30).prop_map(|(a, b)| (f64::from(a) / 100.0, f64::from(b) / 100.0)),
            1..40,
        ),
    ) {
        let table = Table::parse(&printed(&rows)).unwrap();
        prop_assert_eq!(&table.problems, &Vec::new());
        let read: BTreeMap<u32, (f64, f64)> = table.rows.iter().map(|(size, row)| {
            let value = |column| row.get(column).unwrap();
            (u32::try_from(size.get()).unwrap(), (value(Column::Typical), value(Column::Percentile99)))
        }).collect();
        prop_assert_eq!(read, rows);
    }
}
