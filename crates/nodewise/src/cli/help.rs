//! `nodewise help` and `nodewise version`.

/// Explains a verb or a topic
///
/// Without a word it prints the help of nodewise itself.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Topics: machines, policies, nodes, units, exit-codes, environment, formats

Examples:
  nodewise help tune
  nodewise help emulation plan
  nodewise help policies")]
pub struct Help {
    /// A verb, with the verb that follows it if it has some, or a topic
    #[arg(value_name = "VERB|TOPIC")]
    pub words: Vec<String>,
}

/// Prints release, target, and what is built in
#[derive(Debug, clap::Args)]
pub struct Version {}
