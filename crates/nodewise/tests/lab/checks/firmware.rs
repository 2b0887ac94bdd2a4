//! The firmware's tables through the model, against what the kernel shows.

use nodewise_model::Release;
use nodewise_model::ram::Architecture;

use super::model::release;
use crate::firmware::compare;
use crate::kernel;
use crate::nodewise::Context;

pub fn tables(context: &Context) -> Result<(), String> {
    // Emulation cuts the nodes of the tables anew.
    if kernel::line("/proc/cmdline")?.contains("numa=fake=") {
        return Ok(());
    }
    let firmware = match Architecture::of(&context.seen) {
        Architecture::X86 => "acpi:/sys/firmware/acpi/tables",
        Architecture::Arm => "dtb:/sys/firmware/fdt",
    };
    let mut tables = context.json(&["show", "--json", "--machine", firmware])?;
    let mut live = context.json(&["show", "--json"])?;
    if release(context) < Release::REFERENCE {
        // 6.1 has all nodes in one tier, whatever the HMAT says of them.
        (tables["tiers"], live["tiers"]) = Default::default();
    }
    compare(&tables, &live)
}
