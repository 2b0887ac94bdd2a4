//! The process that the OOM killer kills, with its share and the one that comes next.

use nodewise_model::Interval;

use super::sizes_of;

/// A process that can be killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Victim {
    /// Its number; `None` for the program of the request, which does not run yet.
    pub pid: Option<u32>,
    /// Its name, fit for a terminal.
    pub name: Option<String>,
    /// Whether this process asks for the memory.
    pub is_asking: bool,
    /// Its pages in memory and in swap and its page tables at that time.
    pub size: Interval,
    /// Its `oom_score_adj`.
    pub adjustment: i32,
    /// Thousandths of the memory that it counts for, `oom_score_adj` included: at least and at most.
    pub share: (i64, i64),
}

impl Victim {
    /// The same in words: `process 4121 postgres (61.4 GiB, badness 161)`.
    fn in_words(&self, page: u64) -> String {
        let of_name = self.name.as_deref().map_or_else(String::new, |name| format!(" {name}"));
        let who = match self.pid {
            None => "the program itself".to_owned(),
            Some(pid) if self.is_asking => format!("process {pid}{of_name} itself"),
            Some(pid) => format!("process {pid}{of_name}"),
        };
        let badness = match self.share {
            (least, most) if least == most => least.to_string(),
            (least, most) => format!("{least} to {most}"),
        };
        format!("{who} ({}, badness {badness} of 1000)", sizes_of(self.size, page))
    }
}

/// The process that would be killed after another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    Process(Victim),
    /// One of many that are about as bad, and the highest badness that one of them can have, in thousandths.
    OneOf {
        processes: usize,
        most_share: i64,
    },
}

impl Next {
    fn in_words(&self, page: u64) -> String {
        match self {
            Self::Process(next) => next.in_words(page),
            Self::OneOf { processes, most_share } => {
                format!("one of {processes} processes, each with a badness of at most {most_share} of 1000")
            }
        }
    }
}

/// The answer to who is killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VictimAnswer {
    /// The machine names no processes. This is the program of the request.
    NoProcesses(Victim),
    /// None: the kernel panics, as `vm.panic_on_oom` says or because no process may be killed.
    Panics { setting: bool },
    /// One of these, the likeliest first, and the one that would come next; `unread` more processes cannot be read.
    Kills { worst: Vec<Victim>, next: Option<Next>, unread: usize },
}

/// Most processes that are named.
const MOST_NAMED: usize = 3;

impl VictimAnswer {
    /// The word in JSON.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::NoProcesses(_) => "unknown",
            Self::Panics { .. } => "panic",
            Self::Kills { .. } => "process",
        }
    }

    /// The answer as a sentence without its end.
    pub fn sentence(&self, page: u64) -> String {
        match self {
            Self::NoProcesses(own) => format!(
                "which one depends on the sizes and oom_score_adj of the processes, which this machine does not name; {}",
                match own.size {
                    Interval { most: 0, .. } => "the program itself has no memory then".to_owned(),
                    size => format!("the program itself has {} then", sizes_of(size, page)),
                }
            ),
            Self::Panics { setting: true } => "the kernel panics instead, by vm.panic_on_oom".to_owned(),
            Self::Panics { setting: false } => {
                "no process may be killed (oom_score_adj -1000): the kernel panics".to_owned()
            }
            Self::Kills { worst, next, unread } => {
                let named: Vec<String> =
                    worst.iter().take(MOST_NAMED).map(|own| own.in_words(page)).collect();
                let more = match worst.len().saturating_sub(MOST_NAMED) {
                    0 => String::new(),
                    more => format!(" or {more} more"),
                };
                let unread = match unread {
                    0 => String::new(),
                    1 => "; 1 process cannot be read".to_owned(),
                    unread => format!("; {unread} processes cannot be read"),
                };
                match (&named[..], next) {
                    ([one], None) if worst.len() == 1 => format!("the kernel kills {one}{unread}"),
                    ([one], Some(next)) if worst.len() == 1 => {
                        format!("the kernel kills {one}; next is {}{unread}", next.in_words(page))
                    }
                    _ => format!(
                        "the kernel kills one of {}{more}, which are too close to say{unread}",
                        named.join(", ")
                    ),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn victim(pid: Option<u32>, least: u64, most: u64, share: (i64, i64)) -> Victim {
        let name = pid.map(|_| "data".to_owned());
        Victim { pid, name, is_asking: pid.is_none(), size: Interval { least, most }, adjustment: 0, share }
    }

    fn check(answer: &VictimAnswer, expected: &str) {
        assert_eq!(answer.sentence(4096), expected);
    }

    #[test]
    fn a_victim_is_named_with_the_one_behind_it() {
        let own = || victim(None, 256, 512, (1, 2));
        let other = || victim(Some(7), 5120, 5120, (20, 20));
        let next_of = |worst, next, unread| VictimAnswer::Kills { worst, next, unread };
        let kills = |worst, next: Option<Victim>, unread| next_of(worst, next.map(Next::Process), unread);
        check(
            &kills(vec![other()], Some(own()), 0),
            "the kernel kills process 7 data (20 MiB, badness 20 of 1000); next is the program itself (1 MiB to 2 MiB, \
             badness 1 to 2 of 1000)",
        );
        check(
            &kills(vec![own()], None, 1),
            "the kernel kills the program itself (1 MiB to 2 MiB, badness 1 to 2 of 1000); 1 process cannot be read",
        );
        check(
            &kills(vec![other(), own()], None, 0),
            "the kernel kills one of process 7 data (20 MiB, badness 20 of 1000), the program itself (1 MiB to 2 MiB, \
             badness 1 to 2 of 1000), which are too close to say",
        );
        check(
            &next_of(vec![other()], Some(Next::OneOf { processes: 480, most_share: 1 }), 0),
            "the kernel kills process 7 data (20 MiB, badness 20 of 1000); next is one of 480 processes, each with a badness \
             of at most 1 of 1000",
        );
        let asking = Victim { is_asking: true, ..other() };
        check(
            &kills(vec![asking], None, 0),
            "the kernel kills process 7 data itself (20 MiB, badness 20 of 1000)",
        );
        let many = kills(vec![other(); 5], None, 0);
        assert!(many.sentence(4096).contains(" or 2 more, which are too close"), "{}", many.sentence(4096));
    }
}
