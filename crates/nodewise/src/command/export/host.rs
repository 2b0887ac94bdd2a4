//! The name of a machine, for the formats of schedulers.

use nodewise_machine::printable::quote;

use crate::cli::Global;
use crate::cli::export::Export;
use crate::failure::Failure;
use crate::input;

/// The name of the machine: what was typed, or for this machine its own.
///
/// # Errors
/// A machine from elsewhere that was given none, and what is not a host name.
pub(super) fn host(args: &Export, global: &Global) -> Result<String, Failure> {
    let expected = "letters, digits, dots and hyphens, as in web7.example.org";
    let name = match &args.host {
        Some(name) => name.clone(),
        None if input::is_live(&global.machine) => {
            rustix::system::uname().nodename().to_string_lossy().into_owned()
        }
        None => {
            return Err(Failure::usage(
                "a machine from elsewhere has no host name: give it one with --host NAME",
            ));
        }
    };
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    if name.is_empty() || !name.chars().all(legal) {
        return Err(Failure::usage(format_args!(
            "--host: {} is not a host name: expected {expected}",
            quote(&name)
        )));
    }
    Ok(name)
}
