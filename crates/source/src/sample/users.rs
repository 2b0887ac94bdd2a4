//! Names of the users whose processes run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use nodewise_machine::order::CollectOrdered as _;

use super::missing::Missing;
use super::reading::{Reading, problem_in};
use super::{Moment, ProcessSample};
use crate::parse::{passwd, text_of};

/// Users are added rarely.
const READ_EVERY: Duration = Duration::from_secs(60);
/// The file. The name service is not asked: it may wait for a network.
const FILE: &str = "/etc/passwd";
/// The fact, in a missing one's line.
const FACT: &str = "names of users";

/// The names that are known.
#[derive(Debug, Default)]
pub(super) struct UserTable {
    read: Option<Moment>,
    names: BTreeMap<u32, Arc<str>>,
    /// Facts that the last reading lacked: every sample lacks them until the next one.
    missing: Missing,
}

impl UserTable {
    /// The names of the users of these processes. A user without one stays a number.
    pub(super) fn read(
        &mut self,
        reading: &mut Reading<'_>,
        processes: &[Arc<ProcessSample>],
    ) -> BTreeMap<u32, Arc<str>> {
        let mut users: Vec<u32> = processes.iter().filter_map(|process| process.user).collect();
        users.sort_unstable();
        users.dedup();
        let age = self.read.map(|read| reading.now.since(read));
        if !users.is_empty() && age.is_none_or(|age| age.is_none_or(|age| age >= READ_EVERY)) {
            *self = Self::new(reading);
        }
        reading.missing.extend(&self.missing);
        users.into_iter().filter_map(|user| Some((user, Arc::clone(self.names.get(&user)?)))).collect_map()
    }

    /// Programs that add users put another file into its place, so it does not stay open.
    fn new(reading: &mut Reading<'_>) -> Self {
        let mut table = Self { read: Some(reading.now), ..Self::default() };
        match reading.tree.read_into(FILE, reading.buffer) {
            Ok(true) => {
                let parsed = passwd::parse(&text_of(reading.buffer).0);
                if let Some(problem) = parsed.problems.first.first() {
                    table.missing.add(FACT, &problem_in(FILE, problem), None);
                }
                table.names = parsed.value.into_iter().map(|(user, name)| (user, name.into())).collect_map();
            }
            Ok(false) => {}
            Err(error) => table.missing.unreadable(FACT, error.cause),
        }
        table
    }
}
