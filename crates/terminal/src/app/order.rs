//! The order of processes.

use std::cmp::Ordering;

use nodewise_view::digest::running::ProcessRow;

/// The fact that decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SortBy {
    /// Much memory on nodes where the process did not run, then CPU time, then memory: the order of `stat`.
    #[default]
    Notable,
    Cpu,
    Memory,
    /// Memory on nodes where the process did not run.
    Stranded,
    Local,
    /// Pages that balancing moved.
    Moved,
    Threads,
    Name,
    Pid,
}

impl SortBy {
    /// All of them, in the order in which `<` and `>` go through them.
    pub const ALL: [Self; 9] = [
        Self::Notable,
        Self::Pid,
        Self::Name,
        Self::Cpu,
        Self::Memory,
        Self::Stranded,
        Self::Local,
        Self::Threads,
        Self::Moved,
    ];

    /// Its name.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Notable => "notable",
            Self::Cpu => "CPU",
            Self::Memory => "memory",
            Self::Stranded => "stranded",
            Self::Local => "local",
            Self::Moved => "moved",
            Self::Threads => "threads",
            Self::Name => "name",
            Self::Pid => "PID",
        }
    }

    /// The one to the right, or to the left, of it.
    pub(crate) fn neighbour(self, step: isize) -> Self {
        let at = Self::ALL.iter().position(|by| *by == self).unwrap_or(0) as isize;
        let count = Self::ALL.len() as isize;
        Self::ALL[(at + step).rem_euclid(count) as usize]
    }
}

/// An order: the largest first, names and numbers from the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Order {
    pub by: SortBy,
    pub reversed: bool,
}

impl Order {
    /// Compares two processes. Those without the fact come last either way; equal ones by number.
    pub(crate) fn compare(self, one: &ProcessRow, other: &ProcessRow) -> Ordering {
        let number = |row: &ProcessRow| row.identity;
        let total = f64::total_cmp;
        let by_cpu = || self.largest(one, other, |row| row.cpu_share, total);
        let by_memory = || self.largest(one, other, |row| row.resident, Ord::cmp);
        let order = match self.by {
            SortBy::Notable => {
                let stranded = self.largest(one, other, ProcessRow::notably_stranded, Ord::cmp);
                stranded.then_with(by_cpu).then_with(by_memory)
            }
            SortBy::Cpu => by_cpu(),
            SortBy::Memory => by_memory(),
            SortBy::Stranded => {
                let size = |row: &ProcessRow| Some(row.locality.as_ref()?.stranded.as_ref()?.size);
                self.largest(one, other, size, Ord::cmp)
            }
            SortBy::Local => self.largest(one, other, |row| row.locality.as_ref()?.local_index, total),
            SortBy::Moved => self.largest(one, other, |row| row.window.rate(row.migrated_pages), total),
            SortBy::Threads => self.largest(one, other, |row| Some(row.threads), Ord::cmp),
            SortBy::Name => self.turned(one.name.cmp(&other.name)),
            SortBy::Pid => self.turned(number(one).cmp(&number(other))),
        };
        order.then_with(|| number(one).cmp(&number(other)))
    }

    fn largest<T>(
        self,
        one: &ProcessRow,
        other: &ProcessRow,
        fact: impl Fn(&ProcessRow) -> Option<T>,
        compare: impl Fn(&T, &T) -> Ordering,
    ) -> Ordering {
        match (fact(one), fact(other)) {
            (Some(one), Some(other)) => self.turned(compare(&other, &one)),
            (one, other) => one.is_none().cmp(&other.is_none()),
        }
    }

    fn turned(self, order: Ordering) -> Ordering {
        if self.reversed { order.reverse() } else { order }
    }
}
