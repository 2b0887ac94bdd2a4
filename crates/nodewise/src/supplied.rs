//! Facts that the command line supplies where a machine does not give them.

use nodewise_machine::printable::quote;
use nodewise_machine::{Bytes, Machine};
use nodewise_model::ram;

use crate::cli::Supplied;
use crate::node_memory;

/// Adds what was typed to a machine.
///
/// # Errors
/// What the machine gives itself, and what cannot be.
pub fn add(machine: &mut Machine, typed: &Supplied) -> Result<(), String> {
    if let Some(name) = &typed.architecture {
        let wrong = |why: &str| Err(format!("--architecture: {why}"));
        if let Some(own) = &machine.architecture {
            return wrong(&format!("the machine gives its own, {}", quote(own)));
        }
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return wrong(&format!(
                "{} is not one: expected a word of uname -m such as aarch64",
                quote(name)
            ));
        }
        machine.architecture = Some(name.clone());
    }
    if let Some(size) = typed.page_size {
        if let Some(own) = machine.page_size {
            return Err(format!("--page-size: the machine gives its own, {own}"));
        }
        machine.page_size = Some(size);
        if ram::page_bytes(machine) != size.get() {
            return Err(format!(
                "--page-size: {size} is not one: expected 4K, 8K, 16K, 32K, 64K, 128K or 256K"
            ));
        }
    }
    if let Some(size) = typed.huge_page_size {
        if let Some(own) = machine.settings.transparent_hugepage_size {
            return Err(format!("--huge-page-size: the machine gives its own, {own}"));
        }
        machine.settings.transparent_hugepage_size = Some(size);
        if ram::huge_page_bytes(machine) != Some(size.get()) {
            let page = Bytes::new(ram::page_bytes(machine));
            let expected = format!("expected a power of two above a page of {page}, such as 2M");
            return Err(format!("--huge-page-size: {size} is not one: {expected}"));
        }
    }
    node_memory::supply(machine, &typed.node_memory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::spec;

    fn check(spec: &str, typed: Supplied, expected: Result<(Option<&str>, u64, Option<u32>), &str>) {
        let mut machine = spec::machine(spec).unwrap();
        let done = add(&mut machine, &typed);
        let facts = (machine.architecture.as_deref(), ram::page_bytes(&machine), ram::huge_order(&machine));
        assert_eq!(done.map(|()| facts), expected.map_err(str::to_owned));
    }

    #[test]
    fn what_a_machine_does_not_give_is_supplied() {
        let none = Supplied::default;
        let size = |kib| Some(Bytes::from_kib(kib));
        let architecture = |name: &str| Supplied { architecture: Some(name.to_owned()), ..none() };
        check("(1c 1G)", none(), Ok((None, 4096, Some(9))));
        check("(1c 1G)", architecture("ppc64le"), Ok((Some("ppc64le"), 65536, None)));
        let arm = Supplied { page_size: size(64), ..architecture("aarch64") };
        check("(1c 1G)", arm, Ok((Some("aarch64"), 65536, Some(13))));
        let radix = Supplied { huge_page_size: size(2048), ..none() };
        check("(1c 1G); arch=ppc64le", radix, Ok((Some("ppc64le"), 65536, Some(5))));
        let own = "--architecture: the machine gives its own, \"s390x\"";
        check("(1c 1G); arch=s390x", architecture("x86_64"), Err(own));
        let odd = Supplied { page_size: size(5), ..none() };
        let text = "--page-size: 5 KiB is not one: expected 4K, 8K, 16K, 32K, 64K, 128K or 256K";
        check("(1c 1G)", odd, Err(text));
        let small = Supplied { huge_page_size: size(4), ..none() };
        let text =
            "--huge-page-size: 4 KiB is not one: expected a power of two above a page of 4 KiB, such as 2M";
        check("(1c 1G)", small, Err(text));
    }
}
