//! Runs a test of perftest against a server, under a placement.

use std::ffi::OsString;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use nodewise_experiment::command::once::run_once;
use nodewise_experiment::executor::{Ending, last_line};
use nodewise_machine::placement::Placement;
use nodewise_machine::printable::printable;
use nodewise_measure::perftest::{NoTable, PerftestQuantity, Table};

/// How long a test of all sizes may take: with the usual 1000 and 5000 messages a slow link needs seconds.
const LIMIT: Duration = Duration::from_secs(120);

/// A test from this machine to a server on another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// The measured quantity.
    pub kind: PerftestQuantity,
    /// The RDMA device, by its kernel name.
    pub device: String,
    /// The host of the server.
    pub host: String,
    /// The TCP port on which the two find each other; `None` for perftest's own.
    pub port: Option<u16>,
}

/// Why a test left no table.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ClientError {
    /// It was not started.
    #[error("{program} could not be started: {why}")]
    NotStarted {
        /// The program.
        program: &'static str,
        /// Why, in words.
        why: String,
    },
    /// It did not end well.
    #[error("{program} {ending}{}", said(complaint))]
    Failed {
        /// The program.
        program: &'static str,
        /// How it ended.
        ending: Ending,
        /// Its last message.
        complaint: Option<String>,
    },
    /// It ended well, and what it printed holds no table.
    #[error("what {program} printed cannot be used: {why}")]
    NoTable {
        /// The program.
        program: &'static str,
        /// Why.
        why: NoTable,
    },
    /// The user wanted an end.
    #[error("ended early")]
    Interrupted,
}

fn said(complaint: &Option<String>) -> String {
    printable(&last_line(complaint.as_deref())).into_owned()
}

impl Client {
    /// The words of the command: all sizes of messages, whatever the frequency of the CPUs, in Gbit/s.
    pub fn words(&self) -> Vec<OsString> {
        let mut words = vec![self.kind.program().to_owned(), "-a".to_owned(), "-F".to_owned()];
        words.extend((self.kind == PerftestQuantity::Bandwidth).then(|| "--report_gbits".to_owned()));
        words.extend(["-d".to_owned(), self.device.clone()]);
        words.extend(self.port.iter().flat_map(|port| ["-p".to_owned(), port.to_string()]));
        words.push(self.host.clone());
        words.into_iter().map(OsString::from).collect()
    }

    /// Runs it under a placement; `interrupt` ends it when it becomes true.
    ///
    /// # Errors
    /// A placement that cannot be applied, a program that is missing or ends with an error (as when no
    /// server answers), and one that prints no table.
    pub fn run(&self, placement: &Placement, interrupt: &AtomicBool) -> Result<Table, ClientError> {
        let program = self.kind.program();
        let printed = run_once(&self.words(), placement, LIMIT, interrupt)
            .map_err(|why| ClientError::NotStarted { program, why })?;
        match printed.ending {
            Ending::Done => {
                Table::parse(&printed.stdout).map_err(|why| ClientError::NoTable { program, why })
            }
            Ending::Interrupted => Err(ClientError::Interrupted),
            ending => Err(ClientError::Failed { program, ending, complaint: printed.complaint }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The client's program is looked for in PATH, so a test that has one of its own is a process of its own:
    /// this test starts itself again with PATH set, and says in `PERFTEST_CHILD` what is expected there.
    #[test]
    fn the_client_runs_what_path_has_under_its_placement_and_reads_what_it_prints() {
        if let Some(expected) = std::env::var_os("PERFTEST_CHILD") {
            return client_sees(&expected.to_string_lossy());
        }
        let folder = tempfile::tempdir().unwrap();
        let table = "#bytes #iterations t_typical[usec]\\n2 1000 1.5\\n4 1000 1.6\\n";
        let script = |name: &str, body: &str| {
            let path = folder.path().join(name);
            // Written by a child: a process that is started at this moment would inherit our open file, and
            // what is open to be written cannot be executed.
            let write = "printf '%s' \"$0\" > \"$1\" && chmod +x \"$1\"";
            let status = std::process::Command::new("sh").args(["-c", write, body]).arg(&path).status();
            assert!(status.unwrap().success());
        };
        let check = |body: &str, expected: &str| {
            script("ib_send_lat", body);
            let path = format!("{}:/usr/bin:/bin", folder.path().display());
            let own = std::env::current_exe().unwrap();
            let name = "command::io::client::tests::the_client_runs_what_path_has_under_its_placement_and_reads_what_it_prints";
            let mut again = std::process::Command::new(own);
            again.args(["--exact", name]).env("PATH", path).env("PERFTEST_CHILD", expected);
            let output = again.output().unwrap();
            assert!(output.status.success(), "{body}: {}", String::from_utf8_lossy(&output.stdout));
        };
        check(&format!("#!/bin/sh\nprintf '{table}'\n"), "2 rows of mlx5_2 for far");
        let sees = "#!/bin/sh\n[ \"$*\" = '-a -F -d mlx5_2 -p 18515 far' ] || exit 9\n";
        check(&format!("{sees}printf '{table}'\n"), "2 rows of mlx5_2 for far");
        check(
            "#!/bin/sh\necho greeting >&2\necho \"Couldn't connect to far:18515\" >&2\nexit 1\n",
            "ib_send_lat ended with exit code 1: Couldn't connect to far:18515",
        );
        check(
            "#!/bin/sh\necho nothing\n",
            "what ib_send_lat printed cannot be used: it holds no table of perftest: expected a line that begins \
             with #bytes",
        );
    }

    fn client_sees(expected: &str) {
        let client = Client {
            kind: PerftestQuantity::Latency,
            device: "mlx5_2".to_owned(),
            host: "far".to_owned(),
            port: Some(18515),
        };
        let ended = client.run(&Placement::DEFAULT, &AtomicBool::new(false));
        let seen = match ended {
            Ok(table) => format!("{} rows of {} for {}", table.rows.len(), client.device, client.host),
            Err(error) => error.to_string(),
        };
        assert_eq!(seen, expected);
    }
}
