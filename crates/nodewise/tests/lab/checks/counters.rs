//! Counters of the nodes while pages are given, beside those of the model.

pub(super) use nodewise_conformance::counters::{Background, FIELDS, Gained};

use super::model::{Drawn, any_request, memory};
use crate::nodewise::Context;

/// Requests of each guest, and their size: pages with room for a mistake that is not lost in the kernel's own.
const REQUESTS: u64 = 12;
const KIB: u64 = 8000;

/// Requests on nodes that have room.
pub fn drawn_requests(context: &Context) -> Result<(), String> {
    let mut random = context.random(3);
    let now = memory(context)?;
    for _ in 0..REQUESTS {
        let drawn = Drawn { kib: KIB, huge: false, on_memory: true, ..any_request(&mut random, context) };
        differs_twice(|| {
            let touched = drawn.touch(context)?;
            let mut memory = now.clone();
            drawn.played(context, &mut memory, touched.address, false)?;
            let compared = touched.gained.compare(memory.counters(), Background::with_room(KIB / 4));
            Ok(compared.map_err(|why| format!("{drawn:?}: {why}")))
        })?;
    }
    Ok(())
}

/// Fails where counters differ in a request and again when it is repeated. They count what anybody on the machine
/// takes, and a kernel thread that wakes up in between takes more than its allowance now and then: a rule of the
/// model that is wrong differs each time. Any other fault of the request counts at once.
pub(super) fn differs_twice(
    mut request: impl FnMut() -> Result<Result<(), String>, String>,
) -> Result<(), String> {
    match request()? {
        Ok(()) => Ok(()),
        Err(first) => request()?.map_err(|second| format!("{second} (and before: {first})")),
    }
}
