//! `nodewise export`.

mod guest;
mod host;
mod listen;
mod measured;
mod state;

use nodewise_source::Detail;
use nodewise_view::export::{self, Exposition};

use crate::cli::Global;
use crate::cli::export::{Export, Format};
use crate::failure::{Failure, Outcome};
use crate::input::{self, Input};
use crate::output::{self, destination};

/// Runs the verb.
pub fn run(args: &Export, global: &Global) -> Outcome {
    destination::check([&args.output])?;
    if !args.measured.is_empty() && args.format != Format::Hwloc {
        return Err(Failure::usage(
            "--measured goes with the format hwloc: no other holds latencies and bandwidths",
        ));
    }
    let input = input::load_for(&args.supplied, &global.machine, Detail::Full)?;
    if let Some(address) = args.listen {
        if args.format != Format::Metrics {
            return Err(Failure::usage("--listen answers with metrics: the format must be metrics"));
        }
        return state::serve(global, input, address);
    }
    let text = write(args, global, input)?;
    match &args.output {
        Some(file) => file.write(text.as_bytes())?,
        None => output::print(&text)?,
    }
    Ok(0)
}

fn write(args: &Export, global: &Global, input: Input) -> Result<String, Failure> {
    let machine = &input.machine;
    let text = match args.format {
        Format::Hwloc => {
            let measured = measured::read(&args.measured, machine)?;
            export::hwloc(machine, &measured).map_err(Failure::cannot)?
        }
        Format::Metrics => state::metrics(global, input, Exposition::Text),
        Format::Openmetrics => state::metrics(global, input, Exposition::OpenMetrics),
        Format::Dot => export::dot(machine),
        Format::Mermaid => export::mermaid(machine),
        Format::Markdown => export::markdown(machine),
        Format::Qemu => guest::command(machine)?,
        Format::Libvirt => export::libvirt(machine).map_err(Failure::cannot)?,
        Format::Kubernetes => {
            export::kubernetes(machine, &host::host(args, global)?).map_err(Failure::cannot)?
        }
        Format::Nfd => export::nfd(machine),
        Format::Slurm => export::slurm(machine, &host::host(args, global)?).map_err(Failure::cannot)?,
        Format::Udev => export::udev(machine).map_err(Failure::cannot)?,
    };
    Ok(text)
}
