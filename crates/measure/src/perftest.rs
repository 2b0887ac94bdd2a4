//! Output of perftest (`ib_send_lat`, `ib_send_bw` and their kin): the latency or the bandwidth of an
//! RDMA device by the size of messages.
//!
//! [`Table::parse`] reads one print-out, [`Comparison`] lays several side by side: the same test with its
//! buffers on one node and on another. [`kinks`] finds sizes at which a curve bends as no curve of this
//! kind should.
//!
//! # Units
//! Latencies in us, as they are printed; bandwidths in Gbit/s (10^9 bits per second).

pub mod column;
pub mod compare;
pub mod kink;
pub mod parse;

use std::collections::BTreeMap;

use nodewise_machine::Bytes;

pub use column::{Column, PerftestQuantity};
pub use compare::{Comparison, Extremes, Side};
pub use kink::{Kink, kinks};
pub use parse::{NoTable, Problem};

/// A table: a row for each size of message.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pub kind: PerftestQuantity,
    /// The columns that it has, in their order.
    pub columns: Vec<Column>,
    /// The rows by size, each size once.
    pub rows: BTreeMap<Bytes, Row>,
    /// The lines that could not be read; the rest is there anyway.
    pub problems: Vec<Problem>,
}

/// Measured values for messages of one size.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Row {
    /// How many messages were sent.
    pub iterations: Option<u64>,
    values: BTreeMap<Column, f64>,
}

impl Row {
    /// A row of these values, each in the unit of its column.
    pub fn new(iterations: Option<u64>, values: BTreeMap<Column, f64>) -> Self {
        Self { iterations, values }
    }

    /// A value, in the unit of its column; `None` for a column that the table does not have.
    pub fn get(&self, column: Column) -> Option<f64> {
        self.values.get(&column).copied()
    }
}

impl Table {
    /// A table of these rows; its columns are those in which a row has a value.
    pub fn new(kind: PerftestQuantity, rows: BTreeMap<Bytes, Row>, problems: Vec<Problem>) -> Self {
        let has = |column: &Column| rows.values().any(|row| row.get(*column).is_some());
        let columns = Column::ALL.into_iter().filter(has).collect();
        Self { kind, columns, rows, problems }
    }

    /// The value by which tables of a kind are compared, of one size: the typical (median) latency, or the
    /// average where there is no typical one; the average bandwidth.
    pub fn value(&self, size: Bytes) -> Option<f64> {
        self.value_of(self.rows.get(&size)?)
    }

    /// That value by size, ascending; sizes without it are left out.
    pub fn curve(&self) -> Vec<(Bytes, f64)> {
        self.rows.iter().filter_map(|(size, row)| Some((*size, self.value_of(row)?))).collect()
    }

    fn value_of(&self, row: &Row) -> Option<f64> {
        self.kind.compared().iter().find_map(|column| row.get(*column))
    }
}
