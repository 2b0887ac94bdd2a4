//! A boot file that is changed is changed once, and the change can be taken out of it again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nodewise_boot::eeprom::{BankLow, banklow, with_banklow};
use nodewise_boot::line::{self, Change, Policy};
use nodewise_boot::policy::DefaultPolicy;
use nodewise_boot::{cmdline_txt, diff, entry, extlinux, grub, uboot_env};

type Edit = fn(&str, &Change) -> Option<String>;
type Words = fn(&str) -> Option<String>;

const KINDS: [(Edit, Words); 5] = [
    (|text, change| cmdline_txt::edit(text, change).ok(), |text| Some(text.to_owned())),
    (|text, change| grub::edit(text, change).ok(), grub::words),
    (|text, change| entry::edit(text, change).ok().flatten(), entry::words),
    // A file without an entry stays as it is.
    (
        |text, change| extlinux::edit(text, change).ok().filter(|_| extlinux::words(text).is_some()),
        extlinux::words,
    ),
    (|text, change| uboot_env::edit(text, change).ok(), uboot_env::words),
];

fuzz_target!(|text: &str| {
    let change = Change::emulate("8", Policy::Set(&DefaultPolicy::interleave())).expect("both are plain");
    for (edit, words) in KINDS {
        let Some(edited) = edit(text, &change) else { continue };
        assert_eq!(edit(&edited, &change).as_ref(), Some(&edited));
        let line = words(&edited).expect("what was changed is understood");
        assert_eq!(line::value(&line, line::FAKE), Some("8"));
        if let Some(undone) = edit(&edited, &Change::none()) {
            let line = words(&undone).expect("what was changed is understood");
            assert_eq!(line::value(&line, line::FAKE), None);
        }
        assert_eq!(diff::unified("x", text, &edited).is_empty(), text == edited);
    }
    let bits = BankLow::new(3).expect("3 is one");
    if let Ok(config) = with_banklow(text, bits) {
        assert_eq!(banklow(&config).ok().flatten(), Some(bits));
    }
});
