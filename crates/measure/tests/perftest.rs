//! Four full tables of a real pair of adapters: latency and bandwidth of all sizes of messages, with the
//! buffers near the adapter and on the far node.
//!
//! They are in `data/perftest`.

#![expect(clippy::unwrap_used, reason = "what a test does not expect is its failure")]

use std::path::Path;

use nodewise_machine::Bytes;
use nodewise_measure::perftest::{Column, Comparison, PerftestQuantity, Side, Table, kinks};

const HEADS: [(PerftestQuantity, &str); 2] = [
    (
        PerftestQuantity::Latency,
        " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   \
         99% percentile[usec]   99.9% percentile[usec] ",
    ),
    (
        PerftestQuantity::Bandwidth,
        " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]",
    ),
];
const DASHES: &str =
    "---------------------------------------------------------------------------------------";

fn recorded(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/perftest").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A recorded table in the form in which perftest prints it, and its numbers row by row.
fn print_out(recorded: &str, kind: PerftestQuantity) -> (String, Vec<Vec<f64>>) {
    let rows = recorded.lines().filter(|line| !line.starts_with('#')).skip(1);
    let rows: Vec<Vec<&str>> = rows.map(|line| line.split('\t').collect()).collect();
    let heads = HEADS.iter().find(|(of, _)| *of == kind).unwrap().1;
    let mut text = format!(
        "{DASHES}\n                    Send Test\n Dual-port       : OFF\t\tDevice         : mlx5_2\n{DASHES}\n \
         local address: LID 0x05 QPN 0x0127 PSN 0x41b0f4\n remote address: LID 0x03 QPN 0x0127 PSN 0x2ee6e0\n\
         {DASHES}\n{heads}\n"
    );
    for row in &rows {
        text.push_str(&format!(" {:<10} {:<10}", row[0], row[1]));
        row[2..].iter().for_each(|value| text.push_str(&format!(" {value:>16}")));
        text.push('\n');
    }
    let numbers = |row: Vec<&str>| row.into_iter().map(|text| text.parse().unwrap()).collect();
    (text + DASHES + "\n", rows.into_iter().map(numbers).collect())
}

/// Reads a recorded table in both of its forms; its 23 rows come out as they were written.
fn table(name: &str, kind: PerftestQuantity) -> Table {
    let recorded = recorded(name);
    let (text, rows) = print_out(&recorded, kind);
    let table = Table::parse(&text).unwrap();
    assert_eq!((table.kind, table.rows.len(), &table.problems), (kind, 23, &Vec::new()), "{name}");
    for expected in rows {
        let row = &table.rows[&Bytes::new(expected[0] as u64)];
        let values: Vec<f64> = table.columns.iter().map(|column| row.get(*column).unwrap()).collect();
        assert_eq!((row.iterations, &values[..]), (Some(expected[1] as u64), &expected[2..]), "{name}");
    }
    assert_eq!(Table::parse(&recorded).as_ref(), Ok(&table), "{name}, with tabs");
    table
}

fn comparison(kind: PerftestQuantity, near: &str, far: &str) -> Comparison {
    let side = |label: &str, name| Side { label: label.to_owned(), node: None, table: table(name, kind) };
    Comparison::from_sides(vec![side("near", near), side("far", far)]).pop().unwrap()
}

/// Side, size, and whether values fall there.
fn kinks_of(comparison: &Comparison) -> Vec<(usize, u64, bool)> {
    let found = comparison.kinks().into_iter();
    found.map(|(side, kink)| (side, kink.sizes[1].get(), kink.falls)).collect()
}

#[test]
fn latencies_are_read_whole_and_their_kinks_are_the_end_of_inline_data_and_the_fall_at_16_kib() {
    let latency = comparison(PerftestQuantity::Latency, "lat-local.tsv", "lat-membind1.tsv");
    assert_eq!(kinks_of(&latency), [(0, 256, false), (1, 256, false), (1, 16_384, true)]);
    let worst = latency.extremes(1).unwrap();
    assert_eq!((worst.worst.0.get(), worst.best.0.get()), (16_384, 65_536));
    assert!((worst.worst.1 - 11.42 / 3.43).abs() < 1e-12 && (worst.best.1 - 628.0 / 575.0).abs() < 1e-12);
    let first = &latency.sides()[0].table.rows[&Bytes::new(2)];
    assert_eq!((first.get(Column::Typical), first.get(Column::Percentile999)), (Some(1.27), Some(5.05)));
}

#[test]
fn bandwidths_are_read_whole_and_their_kinks_are_the_slow_64_bytes_and_the_end_of_the_collapse() {
    let bandwidth = comparison(PerftestQuantity::Bandwidth, "bw-local.tsv", "bw-membind1.tsv");
    let expected = [(0, 64, false), (1, 64, false), (1, 8192, true), (1, 16_384, false)];
    assert_eq!(kinks_of(&bandwidth), expected);
    let far = bandwidth.extremes(1).unwrap();
    assert_eq!((far.worst.0.get(), far.best.0.get()), (8192, 2));
    assert!((far.worst.1 - 15.17 / 151.77).abs() < 1e-12);
    assert_eq!(bandwidth.ratio(1, Bytes::new(3)), None);
}

#[test]
fn a_curve_without_the_points_that_are_off_has_no_kink() {
    let mut table = table("lat-membind1.tsv", PerftestQuantity::Latency);
    for size in [16_384, 8192, 4096, 2048, 1024, 512, 256, 128, 64] {
        table.rows.remove(&Bytes::new(size));
    }
    assert_eq!(kinks(&table), []);
}
