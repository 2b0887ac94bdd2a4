//! `nodewise survey`.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::output::Destination;

/// Surveys this machine for a fleet: topology, findings, quick latencies and bandwidths, in one file
///
/// It takes a minute at most and changes nothing. The file holds the documents that show, doctor --once, latency --quick and
/// bandwidth --quick --matrix write with --json, with the conditions, and names what is missing. Its key is run, host
/// and attempt, so that a survey that ran twice counts once. It holds the name of the host.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  nodewise survey -o results/web7.json
  nodewise survey --run 2026-11 --attempt 1 -o results/web7.1.json
  nodewise survey --verbs show,doctor            in a second, without measuring
  nodewise survey --machine web7.tar.gz --host web7 --from latency.json --from bandwidth.json

nodewise fleet plan writes scripts that survey many machines; nodewise fleet report reads the files.

Exit codes: 0; 1 a part is missing, and the file says why; 2 wrong usage; 3 nothing could be written.")]
pub struct Survey {
    /// File to write, whole or not at all, instead of standard output; replaces an existing file
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<Destination>,
    #[command(flatten)]
    pub parts: SurveyParts,
    /// Read FILE instead of this machine: a result that latency or bandwidth wrote with --json (may be repeated). The survey
    /// names such parts as recorded
    #[arg(long, value_name = "FILE", help_heading = "Survey")]
    pub from: Vec<PathBuf>,
    /// Name of the host [default: the host name of this machine]
    #[arg(long, value_name = "NAME", help_heading = "Key")]
    pub host: Option<String>,
    /// Name of the run, the same for all hosts [default: none]
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true, help_heading = "Key")]
    pub run: String,
    /// How often this survey was begun before; the latest attempt counts
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Key")]
    pub attempt: u32,
}

/// The parts of a survey, where it is made and where it is planned.
#[derive(Debug, clap::Args)]
pub struct SurveyParts {
    /// Parts of the survey; show is always one of them
    #[arg(
        long,
        value_name = "VERBS",
        value_delimiter = ',',
        default_value = "show,doctor,latency,bandwidth",
        hide_possible_values = true,
        help_heading = "Survey"
    )]
    pub verbs: Vec<SurveyPart>,
}

/// A part of a survey.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum SurveyPart {
    Show,
    Doctor,
    Latency,
    Bandwidth,
}

impl SurveyPart {
    /// Its name on the command line and in a list of parts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Show => "show",
            Self::Doctor => "doctor",
            Self::Latency => "latency",
            Self::Bandwidth => "bandwidth",
        }
    }
}
