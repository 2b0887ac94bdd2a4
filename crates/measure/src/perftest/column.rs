//! The columns of perftest's tables, and the names they go by.

use nodewise_stats::Direction;

/// The quantity of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PerftestQuantity {
    /// How long a message takes, one way, in us.
    Latency,
    /// How much comes across, in Gbit/s.
    Bandwidth,
}

impl PerftestQuantity {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Latency, Self::Bandwidth];

    /// The program that measures it.
    pub const fn program(self) -> &'static str {
        match self {
            Self::Latency => "ib_send_lat",
            Self::Bandwidth => "ib_send_bw",
        }
    }

    /// The word for text and JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Bandwidth => "bandwidth",
        }
    }

    /// The unit of the values that are compared.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Latency => "us",
            Self::Bandwidth => "Gbit/s",
        }
    }

    /// Which values are good.
    pub const fn direction(self) -> Direction {
        match self {
            Self::Latency => Direction::LowerIsBetter,
            Self::Bandwidth => Direction::HigherIsBetter,
        }
    }

    /// The columns by which tables are compared, the best first.
    pub const fn compared(self) -> &'static [Column] {
        match self {
            Self::Latency => &[Column::Typical, Column::Average],
            Self::Bandwidth => &[Column::BandwidthAverage, Column::BandwidthPeak],
        }
    }
}

/// A column with values; the size of messages and their number are not values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Column {
    /// The least latency, us.
    Minimum,
    /// The largest latency, us.
    Maximum,
    /// The median latency, us.
    Typical,
    /// The mean latency, us.
    Average,
    /// The standard deviation of latencies, us.
    Deviation,
    /// 99 % of the latencies are at most so long, us.
    Percentile99,
    /// 99.9 % of the latencies are at most so long, us.
    Percentile999,
    /// Transactions per second, in tests of a fixed duration.
    Transactions,
    /// The highest bandwidth, Gbit/s.
    BandwidthPeak,
    /// The mean bandwidth, Gbit/s.
    BandwidthAverage,
    /// Messages, in millions per second.
    MessageRate,
    /// How busy the CPU was, in percent.
    CpuUse,
}

impl Column {
    /// All, in their order.
    pub const ALL: [Self; 12] = [
        Self::Minimum,
        Self::Maximum,
        Self::Typical,
        Self::Average,
        Self::Deviation,
        Self::Percentile99,
        Self::Percentile999,
        Self::Transactions,
        Self::BandwidthPeak,
        Self::BandwidthAverage,
        Self::MessageRate,
        Self::CpuUse,
    ];

    /// Its name in JSON and in lines with commas, with the unit.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Minimum => "min_us",
            Self::Maximum => "max_us",
            Self::Typical => "typical_us",
            Self::Average => "average_us",
            Self::Deviation => "deviation_us",
            Self::Percentile99 => "p99_us",
            Self::Percentile999 => "p99_9_us",
            Self::Transactions => "transactions_per_s",
            Self::BandwidthPeak => "peak_gbit_per_s",
            Self::BandwidthAverage => "average_gbit_per_s",
            Self::MessageRate => "messages_million_per_s",
            Self::CpuUse => "cpu_use_percent",
        }
    }

    /// Returns the kind of a table with this column; `None` for columns that both kinds can have.
    pub const fn kind(self) -> Option<PerftestQuantity> {
        match self {
            Self::BandwidthPeak | Self::BandwidthAverage | Self::MessageRate => {
                Some(PerftestQuantity::Bandwidth)
            }
            Self::CpuUse => None,
            _ => Some(PerftestQuantity::Latency),
        }
    }
}

/// The head of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Head {
    /// The size of messages in bytes.
    Size,
    Iterations,
    /// A value; what is printed times the factor is in the column's unit.
    Value(Column, f64),
}

/// Gbit/s in a MiB per second, which perftest writes as MB/sec in its older releases: its manual says
/// that an MB of its own is 2^20 bytes and a Gb 10^9 bits.
const GBIT_OF_MIB: f64 = 8.0 * (1 << 20) as f64 / 1e9;

/// Heads as perftest prints them, and as tables with tabs name them; those of two words are written
/// without the blank.
const HEADS: [(&str, Head); 30] = [
    ("#bytes", Head::Size),
    ("bytes", Head::Size),
    ("#iterations", Head::Iterations),
    ("iterations", Head::Iterations),
    ("t_min[usec]", Head::Value(Column::Minimum, 1.0)),
    ("t_min_us", Head::Value(Column::Minimum, 1.0)),
    ("t_max[usec]", Head::Value(Column::Maximum, 1.0)),
    ("t_max_us", Head::Value(Column::Maximum, 1.0)),
    ("t_typical[usec]", Head::Value(Column::Typical, 1.0)),
    ("t_typical_us", Head::Value(Column::Typical, 1.0)),
    ("t_avg[usec]", Head::Value(Column::Average, 1.0)),
    ("t_avg_us", Head::Value(Column::Average, 1.0)),
    ("t_stdev[usec]", Head::Value(Column::Deviation, 1.0)),
    ("t_stdev_us", Head::Value(Column::Deviation, 1.0)),
    ("99%percentile[usec]", Head::Value(Column::Percentile99, 1.0)),
    ("p99_us", Head::Value(Column::Percentile99, 1.0)),
    ("99.9%percentile[usec]", Head::Value(Column::Percentile999, 1.0)),
    ("p99_9_us", Head::Value(Column::Percentile999, 1.0)),
    ("tpsaverage", Head::Value(Column::Transactions, 1.0)),
    ("BWpeak[Gb/sec]", Head::Value(Column::BandwidthPeak, 1.0)),
    ("BWpeak[MiB/sec]", Head::Value(Column::BandwidthPeak, GBIT_OF_MIB)),
    ("BWpeak[MB/sec]", Head::Value(Column::BandwidthPeak, GBIT_OF_MIB)),
    ("bw_peak_gbit_per_s", Head::Value(Column::BandwidthPeak, 1.0)),
    ("BWaverage[Gb/sec]", Head::Value(Column::BandwidthAverage, 1.0)),
    ("BWaverage[MiB/sec]", Head::Value(Column::BandwidthAverage, GBIT_OF_MIB)),
    ("BWaverage[MB/sec]", Head::Value(Column::BandwidthAverage, GBIT_OF_MIB)),
    ("bw_average_gbit_per_s", Head::Value(Column::BandwidthAverage, 1.0)),
    ("MsgRate[Mpps]", Head::Value(Column::MessageRate, 1.0)),
    ("msg_rate_mpps", Head::Value(Column::MessageRate, 1.0)),
    ("CPU_Util[%]", Head::Value(Column::CpuUse, 1.0)),
];

impl Head {
    /// The head that the first one or two of these words are, and how many; `None` where they are none.
    pub(super) fn from_words(words: &[&str]) -> Option<(Self, usize)> {
        let named = |name: &str| HEADS.iter().find(|(known, _)| *known == name).map(|(_, head)| *head);
        let one = words.first().and_then(|word| named(word)).map(|head| (head, 1));
        let two = || words.get(..2).and_then(|two| named(&two.concat())).map(|head| (head, 2));
        one.or_else(two)
    }
}
