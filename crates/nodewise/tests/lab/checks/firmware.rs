//! The firmware's tables through the model, against what the kernel shows.

use crate::firmware::compare;
use crate::kernel;
use crate::nodewise::Context;

pub fn tables(context: &Context) -> Result<(), String> {
    // Emulation cuts the nodes of the tables anew.
    if kernel::line("/proc/cmdline")?.contains("numa=fake=") {
        return Ok(());
    }
    let tables = context.json(&["show", "--json", "--machine", "acpi:/sys/firmware/acpi/tables"])?;
    compare(&tables, &context.json(&["show", "--json"])?)
}
