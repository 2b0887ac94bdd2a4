//! Every model names CPUs, and models written as x86 does are read back the same where each CPU has one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nodewise_source::parse::cpuinfo::parse;

fuzz_target!(|text: &str| {
    let models = parse(text);
    let mut printed = String::new();
    for model in &models {
        assert!(!model.name.is_empty() && !model.cpus.is_empty());
        for cpu in &model.cpus {
            printed.push_str(&format!("processor\t: {cpu}\nmodel name\t: {}\n\n", model.name));
        }
    }
    let named_once = models.iter().map(|model| model.cpus.len()).sum::<usize>()
        == models.iter().flat_map(|model| model.cpus.iter()).collect::<std::collections::BTreeSet<_>>().len();
    if named_once {
        assert_eq!(parse(&printed), models);
    }
});
