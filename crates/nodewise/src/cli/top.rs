//! `nodewise top`.

use std::path::PathBuf;
use std::time::Duration;

use nodewise_machine::duration;

/// Shows the running system by node, live: nodes, processes, threads, mappings, devices
///
/// Keys: ? help, q quit, 1 to 6 screens, Enter open, / filter, s sort, p pause, e export. The figures are those of
/// nodewise stat. If standard output is not a terminal, nodewise top prints them as nodewise stat 1 does.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  nodewise top
  nodewise top 5                             update every five seconds
  nodewise top --from night.nwr --at 90m     a recording from this time on; [ ] step by a sample, { } by a minute

Exit codes: 0; 2 wrong usage; 3 no NUMA nodes, an unusable terminal, or a recording that cannot be read.")]
pub struct Top {
    /// Interval between readings, such as 500ms or 5s [default: 1s]
    #[arg(value_name = "INTERVAL", value_parser = interval)]
    pub interval: Option<Duration>,
    /// Read FILE instead of this machine: a recording of nodewise record to replay
    #[arg(long, value_name = "FILE", conflicts_with = "interval", help_heading = "Time")]
    pub from: Option<PathBuf>,
    /// Moment of the recording, as time since its beginning, such as 90m: the start of the replay
    #[arg(long, value_name = "TIME", value_parser = duration::moment, requires = "from", help_heading = "Time")]
    pub at: Option<Duration>,
}

/// The least and the greatest time between readings.
const LEAST: Duration = Duration::from_millis(200);
const MOST: Duration = Duration::from_secs(299);

fn interval(text: &str) -> Result<Duration, String> {
    let interval = duration::parse(text).map_err(|error| error.to_string())?;
    if (LEAST..=MOST).contains(&interval) { Ok(interval) } else { Err("expected 200ms to 299s".to_owned()) }
}
