//! `nodewise record`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use nodewise_machine::Bytes;
use nodewise_machine::duration;

/// Records the running system to a file
///
/// Samples nodes, CPUs, processes and control groups every few seconds, until Ctrl-C, for the time of --for, or until
/// the program ends. Samples are compressed, and a crash costs at most the last ten seconds. Process names are
/// recorded; command lines and the host name are not.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "\
Examples:
  nodewise record -o night.nwr
  nodewise record -o night.nwr --every 1s --for 8h
  nodewise record -o web.nwr --every 10s --max-size 500M
  nodewise record -o build.nwr -- make -j8
  nodewise record -o db.nwr --maps postgres

Exit codes: 0 done, also after Ctrl-C; 3 the file cannot be written. With a program: that of the program, 127 \
if it cannot be found, 126 if it cannot be started.",
    override_usage = "nodewise record -o FILE [OPTIONS] [-- PROGRAM...]"
)]
pub struct Record {
    /// File to write, such as night.nwr
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Overwrite existing files
    #[arg(long)]
    pub force: bool,
    /// Time between two samples, at least 100ms
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = interval)]
    pub every: Duration,
    /// End after this time, such as 90s, 10m or 8h
    #[arg(long = "for", value_name = "TIME", value_parser = duration::parse)]
    pub limit: Option<Duration>,
    /// Maximum size of the recording, at least 64K: when FILE reaches half of it, it is renamed to FILE.old,
    /// replacing an older one
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_size: Option<Bytes>,
    /// Also record the mappings of a process by number, or of all processes with a name (may be repeated); after the
    /// first sample, reading them takes at most 1 % of a CPU, and large processes are sampled
    #[arg(long, value_name = "PID|NAME")]
    pub maps: Vec<String>,
    /// Include the interrupts of devices, by CPU, and the CPUs that queues of network devices name
    #[arg(long)]
    pub irq: bool,
    /// Program to run; the recording ends when it does
    #[arg(last = true, value_name = "PROGRAM")]
    pub command: Vec<OsString>,
}

/// The least time between samples.
const LEAST_INTERVAL: Duration = Duration::from_millis(100);
/// Less than this holds no minute of a small machine.
const LEAST_SIZE: Bytes = Bytes::from_kib(64);

fn interval(text: &str) -> Result<Duration, String> {
    let interval = duration::parse(text).map_err(|error| error.to_string())?;
    if interval < LEAST_INTERVAL { Err("expected at least 100ms".to_owned()) } else { Ok(interval) }
}

fn size(text: &str) -> Result<Bytes, String> {
    let size = super::size(text)?;
    if size < LEAST_SIZE { Err("expected at least 64K".to_owned()) } else { Ok(size) }
}
