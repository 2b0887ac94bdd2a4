use super::*;
use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

const MIB: Style = Style { decimals: 2, compact: false, dashes: true, hide_zeros: false, cut: false };

fn table(nodes: &[u32], rows: &[(&str, &[Option<f64>])]) -> Table {
    let nodes: Vec<NodeId> = nodes.iter().copied().map(NodeId::new).collect();
    let mut table = Table::with_total(&nodes);
    for (name, cells) in rows {
        table.row(name);
        for (node, cell) in nodes.iter().zip(*cells) {
            cell.iter().for_each(|cell| table.set(name, *node, *cell));
        }
    }
    table.add_totals();
    table
}

fn check(table: &Table, style: Style, line: usize, expected: &str) {
    let mut text = Vec::new();
    table.write(style, line, &mut text);
    assert_eq!(String::from_utf8_lossy(&text), expected);
}

#[test]
fn numbers_are_rounded_as_the_c_library_rounds_them() {
    for (value, two, none) in [
        (7812.5, "7812.50", "7812"),
        (390.625, "390.62", "391"),
        (1171.875, "1171.88", "1172"),
        (0.0, "0.00", "0"),
    ] {
        assert_eq!(number(Some(value), MIB), two);
        assert_eq!(number(Some(value), Style { decimals: 0, ..MIB }), none);
    }
    assert_eq!(number(None, MIB), "");
}

#[test]
fn what_is_not_known_is_blank_and_not_zero() {
    let table = table(
        &[0, 1],
        &[("MemTotal", &[Some(1024.0), Some(0.5)]), ("MemFree", &[Some(0.0), None]), ("Gone", &[None, None])],
    );
    check(
        &table,
        MIB,
        usize::MAX,
        "                          Node 0          Node 1           Total
                 --------------- --------------- ---------------
MemTotal                 1024.00            0.50         1024.50
MemFree                     0.00                            0.00
",
    );
}

#[test]
fn a_column_without_numbers_is_left_out() {
    let empty = table(&[0, 1], &[("MemTotal", &[None, Some(1.0)])]);
    check(
        &empty,
        MIB,
        usize::MAX,
        "                          Node 1           Total
                 --------------- ---------------
MemTotal                    1.00            1.00
",
    );
    check(&table(&[0], &[("MemTotal", &[None])]), MIB, usize::MAX, "Table has no data.\n");
}

#[test]
fn zeros_are_left_out_when_asked() {
    let rows: &[(&str, &[Option<f64>])] =
        &[("Zero", &[Some(0.0), Some(0.0)]), ("One", &[Some(1.0), Some(0.0)])];
    let style = Style { hide_zeros: true, compact: true, decimals: 0, ..MIB };
    check(
        &table(&[0, 1], rows),
        style,
        usize::MAX,
        "      Node 0 Total\n      ------ -----\nOne        1     1\n",
    );
    check(&table(&[0], &[("Zero", &[Some(0.0)])]), style, usize::MAX, "Table has no non-zero data.\n");
}

#[test]
fn a_table_that_is_too_wide_goes_on_below() {
    let table = table(&[0, 1, 2], &[("Row", &[Some(1.0), Some(2.0), Some(3.0)])]);
    let style = Style { compact: true, decimals: 0, ..MIB };
    check(
        &table,
        style,
        21,
        "      Node 0 Node 1
      ------ ------
Row        1      2

      Node 2 Total
      ------ -----
Row        3     6
",
    );
}

#[test]
fn a_number_that_is_too_wide_widens_its_column_or_is_cut() {
    let table = table(&[0, 1], &[("Row", &[Some(12345678901234.5), Some(1.0)])]);
    let wide = "                            Node 0          Node 1             Total
                 ----------------- --------------- -----------------
Row              12345678901234.50            1.00 12345678901235.50
";
    check(&table, MIB, usize::MAX, wide);
    let cut = "                          Node 0          Node 1           Total
                 --------------- --------------- ---------------
Row             12345678901234.5            1.0012345678901235.5
";
    check(&table, Style { cut: true, ..MIB }, usize::MAX, cut);
}

#[test]
fn a_name_that_is_too_long_is_cut_between_characters() {
    let mut table = table(&[0], &[("1 (größergrößergrößer)", &[Some(1.0)])]);
    table.corner = "PID";
    let style = Style { compact: true, decimals: 0, ..MIB };
    check(
        &table,
        style,
        usize::MAX,
        "PID              Node 0 Total
---------------  ------ -----
1 (größergrößerg      1     1
",
    );
}

#[test]
fn equal_rows_keep_the_order_that_swapping_gives() {
    let rows: Vec<(String, [Option<f64>; 1])> = [0.0, 2.0, 0.0, 2.0, 5.0]
        .iter()
        .zip("abcde".chars())
        .map(|(v, c)| (c.to_string(), [Some(*v)]))
        .collect();
    let rows: Vec<(&str, &[Option<f64>])> = rows.iter().map(|(n, v)| (n.as_str(), &v[..])).collect();
    let mut table = table(&[0], &rows);
    table.sort_by_keys(table.rows.iter().map(|row| row.cells[1].unwrap()).collect());
    let names: String =
        table.rows.iter().map(|row| String::from_utf8_lossy(&row.name).into_owned()).collect();
    assert_eq!(names, "ebdca");
}

proptest! {
    #[test]
    fn every_number_stands_in_the_table_whatever_its_width(values in prop::collection::vec(prop::option::of(0.0..1e18), 1..6), line in 0usize..200, compact: bool) {
        let nodes: Vec<u32> = (0..).take(values.len()).collect();
        let table = table(&nodes, &[("Row", &values)]);
        let style = Style { compact, ..MIB };
        let mut text = Vec::new();
        table.write(style, line, &mut text);
        let text = String::from_utf8(text).unwrap();
        for value in values.iter().flatten() {
            let wanted = format!("{value:.2}");
            prop_assert!(text.split_whitespace().any(|word| word == wanted), "{wanted} in {text}");
        }
        if values.iter().all(Option::is_none) {
            prop_assert_eq!(text, "Table has no data.\n");
        }
    }

    #[test]
    fn sorting_keeps_every_row_and_puts_keys_in_order(keys in prop::collection::vec(any::<f64>(), 0..40)) {
        let mut table = Table::with_total(&[]);
        table.rows = (0..keys.len()).map(|at| Row::new(at.to_string(), 1)).collect();
        let plain: Vec<f64> = keys.iter().map(|key| if key.is_nan() { 0.0 } else { *key }).collect();
        table.sort_by_keys(plain.clone());
        let order: Vec<usize> = table.rows.iter().map(|row| String::from_utf8_lossy(&row.name).parse().unwrap()).collect();
        prop_assert!(order.windows(2).all(|pair| plain[pair[0]] >= plain[pair[1]]));
        let mut all = order;
        all.sort_unstable();
        prop_assert_eq!(all, (0..keys.len()).collect::<Vec<_>>());
    }
}
