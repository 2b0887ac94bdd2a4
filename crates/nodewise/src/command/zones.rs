//! `nodewise zonelist` and `zones`: fallback orders and zones, beside the kernel's own.

use nodewise_model::{BuiltAt, FallbackOrders, Release};
use nodewise_source::{Detail, boot};
use nodewise_view::digest::zones::{LoggedOrders, Orders, Zones as ShownZones};
use nodewise_view::{csv, json, text};

use crate::cli::Global;
use crate::cli::explain::{Zonelist, Zones as ZonesArgs};
use crate::failure::Outcome;
use crate::input::Input;
use crate::output::Form;
use crate::zones::Zones;
use crate::{input, output};

/// Runs `zonelist`.
pub fn zonelist(args: &Zonelist, global: &Global) -> Outcome {
    let input = input::load_for(&args.supplied, &global.machine, Detail::Full)?;
    let machine = &input.machine;
    let release = Release::from_kernel(args.kernel.as_ref().or(machine.kernel.as_ref()));
    let zones = Zones::from_input(&input, release)?;
    let plain: Vec<_> = zones.rows.iter().map(|row| row.zone).collect();
    let orders = Orders {
        orders: &FallbackOrders::from_machine(machine, built(args.rebuilt)),
        others: &FallbackOrders::from_machine(machine, built(!args.rebuilt)),
        built: built(args.rebuilt),
        zones: &plain,
        basis: zones.basis,
        release,
        // Another kernel is meant than the one that wrote the log.
        logged: &if args.kernel.is_none() { logged_orders(&input) } else { LoggedOrders::NotAsked },
    };
    let json = || json::zones::zonelist(&orders);
    let (form, csv) = (Form::new(args.json, args.csv), || csv::zonelist(&orders));
    output::show_table(form, global.color, json, csv, |style| text::zones::zonelist(&orders, style))?;
    Ok(0)
}

/// The fallback orders in the kernel's own log; the last of a node is the one in force.
fn logged_orders(input: &Input) -> LoggedOrders {
    let Some(tree) = input.tree() else { return LoggedOrders::NotAsked };
    match boot::log(tree) {
        Ok(Some(log)) if !log.fallback.is_empty() => LoggedOrders::Orders(log.fallback.into_iter().collect()),
        Ok(Some(log)) if log.whole => {
            LoggedOrders::Unknown("its log does not have them; Linux 5.16 and later log them".to_owned())
        }
        Ok(Some(_)) => LoggedOrders::Unknown("its log does not reach back to the start".to_owned()),
        Ok(None) => LoggedOrders::Unknown("its log is missing".to_owned()),
        Err(error) => LoggedOrders::Unknown(error.to_string()),
    }
}

/// Runs `zones`.
pub fn zones(args: &ZonesArgs, global: &Global) -> Outcome {
    let input = input::load_for(&args.supplied, &global.machine, Detail::Full)?;
    let release = Release::from_kernel(args.kernel.as_ref().or(input.machine.kernel.as_ref()));
    let zones = Zones::from_input(&input, release)?;
    let model = zones.modelled(&input);
    let shown =
        ShownZones { rows: &zones.rows, basis: zones.basis, page: zones.page, model: &model, release };
    let json = || json::zones::zones(&shown);
    let (form, csv) = (Form::new(args.json, args.csv), || csv::zones(&shown));
    output::show_table(form, global.color, json, csv, |style| text::zones::zones(&shown, style))?;
    Ok(0)
}

/// When orders are built that are asked for in this way.
pub(super) const fn built(rebuilt: bool) -> BuiltAt {
    if rebuilt { BuiltAt::RunTime } else { BuiltAt::Boot }
}
