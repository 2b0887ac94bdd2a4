//! `nodewise doctor rules`, and rules as they are typed.

use nodewise_diagnose::{Rule, rules::ALL};
use nodewise_machine::nearest::nearest;
use nodewise_machine::printable::quote;
use nodewise_view::{json, text};

use crate::cli::Global;
use crate::cli::doctor::Rules;
use crate::failure::{Failure, Outcome};
use crate::output;

/// Shows the catalogue, or a rule.
pub(super) fn run(args: &Rules, global: &Global) -> Outcome {
    match &args.id {
        Some(id) => {
            let rule = rule(id)?;
            let json = || json::doctor::rules(&[rule]);
            output::show(args.json, global.color, json, |style| text::rules::rule(rule, style))?;
        }
        None => {
            let json = || json::doctor::rules(ALL);
            output::show(args.json, global.color, json, |style| text::rules::rules(ALL, style))?;
        }
    }
    Ok(0)
}

/// The rule of an identifier.
///
/// # Errors
/// One that does not exist, with the nearest that does.
pub(super) fn rule(id: &str) -> Result<&'static Rule, Failure> {
    let found = ALL.iter().copied().find(|rule| rule.id == id);
    found.ok_or_else(|| {
        let near = nearest(id, ALL.iter().map(|rule| rule.id));
        let meant = near.map_or_else(
            || "nodewise doctor rules lists them".to_owned(),
            |near| format!("did you mean {near}?"),
        );
        Failure::usage(format_args!("{} is not a rule: {meant}", quote(id)))
    })
}
