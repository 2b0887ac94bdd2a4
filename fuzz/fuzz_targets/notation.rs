//! Node strings, lists, masks and PCI addresses: what is read lies in the text and among the members, and what is
//! written is read back the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nodewise_notation::device::{self, Device, DeviceKind};
use nodewise_notation::number::{self, Base};
use nodewise_notation::string::{self, Grammar, Members};
use nodewise_notation::{list, mask};

const LIMIT: u64 = 4096;

/// The even numbers below 64.
struct Even(Vec<u64>);

impl Members for Even {
    type Member = u64;
    type Failure = ();

    fn named(&self, number: u64) -> Result<u64, u64> {
        if number < 64 && number % 2 == 0 { Ok(number) } else { Err(number) }
    }

    fn counted(&self, position: u64) -> Result<u64, u64> {
        if position < 32 { Ok(position * 2) } else { Err(64) }
    }

    fn put(&mut self, first: u64, last: u64) {
        self.0.extend((first..=last).step_by(2));
    }

    fn put_all(&mut self) {
        self.put(0, 62);
    }

    fn put_device(&mut self, device: Device<'_>) -> Option<Result<(), ()>> {
        (device.kind == DeviceKind::Pci).then(|| match device::pci_function(device.name) {
            Some(Ok(function)) => {
                assert!(function.device < 32 && function.function < 8);
                self.0.push(0);
                Ok(())
            }
            _ => Err(()),
        })
    }
}

fuzz_target!(|bytes: &[u8]| {
    for grammar in
        [Grammar::NODEWISE, Grammar::original(Base::Prefixed), Grammar::original(Base::PrefixedOrBinary)]
    {
        let mut members = Even(Vec::new());
        if let Err(fault) = string::read(bytes, grammar, &mut members) {
            assert!(bytes.ends_with(fault.rest), "a fault lies in the text");
        }
        assert!(members.0.iter().all(|number| *number < 64 && number % 2 == 0));
    }
    for base in [Base::Prefixed, Base::PrefixedOrBinary, Base::Octal, Base::Decimal, Base::Hexadecimal] {
        if let Some((_, rest)) = number::leading(bytes, base) {
            assert!(bytes.ends_with(rest) && rest.len() < bytes.len());
        }
    }
    let spans: Result<Vec<_>, _> = list::spans(bytes, LIMIT).collect();
    if let Ok(spans) = spans {
        let numbers: Vec<u64> = spans.iter().flat_map(|span| span.numbers(LIMIT)).collect();
        let mut text = String::new();
        list::write(&mut text, numbers.iter().map(|number| (*number, *number))).expect("a text takes all");
        let again: Result<Vec<_>, _> = list::spans(text.as_bytes(), LIMIT).collect();
        let again: Vec<u64> =
            again.expect("what was written is a list").iter().flat_map(|span| span.numbers(LIMIT)).collect();
        assert_eq!(again, numbers);
    }
    let groups: Result<Vec<_>, _> = mask::groups(bytes, mask::Width::Unlimited).collect();
    if let Ok(groups) = groups {
        let bits: Vec<u32> = groups.iter().map(|group| group.bits).collect();
        let mut text = String::new();
        mask::write(&mut text, bits.iter().rev().copied()).expect("a text takes all");
        let again: Result<Vec<_>, _> = mask::groups(text.as_bytes(), mask::Width::Kernel)
            .map(|group| group.map(|group| group.bits))
            .collect();
        assert_eq!(again, Ok(bits));
    }
});
