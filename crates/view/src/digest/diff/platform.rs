//! Firmware, kernel, settings, limits and oddities of two machines.

use std::collections::{BTreeMap, BTreeSet};

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{Bytes, CpuId, CpuSet, KernelRelease, Machine, Oddity, OddityKind, Product, Settings};

use super::{FactGroup, FactValue, Side, Subject, Walk};

/// Compares them.
pub(super) fn compare(walk: &mut Walk<'_>) {
    firmware(walk);
    kernel(walk);
    settings(walk);
    limits(walk);
    oddities(walk);
}

fn text(text: &Option<String>) -> Option<FactValue> {
    text.as_deref().map(FactValue::text)
}

fn size(size: Option<Bytes>) -> Option<FactValue> {
    size.map(FactValue::Size)
}

fn number(number: Option<impl Into<u64>>) -> Option<FactValue> {
    number.map(|number| FactValue::Number(number.into()))
}

fn firmware(walk: &mut Walk<'_>) {
    walk.begin(FactGroup::Firmware);
    let products = [&walk.a.product, &walk.b.product];
    let mut fact = |word, label, of: fn(&Product) -> &Option<String>| {
        walk.fact(word, label, Subject::Machine, products.map(|product| text(of(product))));
    };
    fact("machine_vendor", "maker of the machine", |product| &product.vendor);
    fact("machine_model", "model of the machine", |product| &product.name);
    fact("firmware_vendor", "firmware maker", |product| &product.firmware_vendor);
    fact("firmware_version", "firmware version", |product| &product.firmware_version);
    fact("firmware_date", "firmware date", |product| &product.firmware_date);
    for (cpu, a) in &walk.a.cpus {
        let Some(b) = walk.b.cpus.get(cpu).filter(|b| a.online && b.online) else { continue };
        let revisions =
            [a, b].map(|cpu| cpu.microcode.map(|revision| FactValue::Text(format!("0x{revision:x}"))));
        walk.fact("microcode", "microcode", Subject::Cpu(*cpu), revisions);
    }
}

fn kernel(walk: &mut Walk<'_>) {
    walk.begin(FactGroup::Kernel);
    let machines = [walk.a, walk.b];
    let release = |machine: &Machine| machine.kernel.as_ref().map(KernelRelease::text).map(FactValue::text);
    walk.fact(
        "architecture",
        "architecture",
        Subject::Machine,
        machines.map(|machine| text(&machine.architecture)),
    );
    walk.fact("kernel_release", "release", Subject::Machine, machines.map(release));
    walk.fact(
        "page_size_bytes",
        "page size",
        Subject::Machine,
        machines.map(|machine| size(machine.page_size)),
    );
    parameters(walk);
}

/// Compares the parameters of the kernel one by one.
fn parameters(walk: &mut Walk<'_>) {
    let lines = [walk.a, walk.b].map(|machine| machine.settings.command_line.as_deref());
    let [Some(a), Some(b)] = lines else {
        let known = lines.map(|line| line.map(|_| FactValue::Present));
        return walk.fact("boot_parameters", "boot parameters", Subject::Machine, known);
    };
    let [a, b] = [a, b].map(by_name);
    let names: BTreeSet<&str> = a.keys().chain(b.keys()).copied().collect_set();
    for name in names {
        let values = [&a, &b].map(|words| {
            Some(words.get(name).map_or(FactValue::Absent, |words| FactValue::Text(words.join(" "))))
        });
        walk.fact("boot_parameter", "boot parameter", Subject::Named(name.to_owned()), values);
    }
}

/// The words of a command line by the names of their parameters: the order counts within one name only.
fn by_name(line: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut words: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for word in line.split_ascii_whitespace() {
        words.entry(word.split('=').next().unwrap_or(word)).or_default().push(word);
    }
    words
}

fn settings(walk: &mut Walk<'_>) {
    walk.begin(FactGroup::Settings);
    let settings = [&walk.a.settings, &walk.b.settings];
    let mut fact = |word, label, of: fn(&Settings) -> Option<FactValue>| {
        walk.fact(word, label, Subject::Machine, settings.map(of));
    };
    let switch = |on: Option<bool>| on.map(FactValue::Switch);
    fact("numa_balancing", "numa_balancing", |settings| number(settings.numa_balancing));
    fact("zone_reclaim_mode", "zone_reclaim_mode", |settings| number(settings.zone_reclaim_mode));
    fact("transparent_hugepage", "transparent_hugepage", |settings| text(&settings.transparent_hugepage));
    fact("transparent_hugepage_defrag", "transparent_hugepage defrag", |settings| {
        text(&settings.transparent_hugepage_defrag)
    });
    fact("transparent_hugepage_bytes", "transparent huge page", |settings| {
        size(settings.transparent_hugepage_size)
    });
    fact("default_huge_page_bytes", "default huge page", |settings| size(settings.default_huge_page_size));
    fact("demotion_enabled", "demotion", |settings| settings.demotion_enabled.map(FactValue::Switch));
    fact("lru_gen_enabled", "lru_gen", |settings| settings.lru_gen_enabled.map(FactValue::Switch));
    fact("swappiness", "swappiness", |settings| number(settings.swappiness));
    fact("overcommit_memory", "overcommit_memory", |settings| number(settings.overcommit_memory));
    let auto = settings.map(|settings| switch(settings.interleave_weights_auto));
    let min_free = settings.map(|settings| number(settings.min_free_kib));
    walk.fact_in("KiB", "min_free_kib", "min_free_kbytes", Subject::Machine, min_free);
    walk.fact("interleave_weights_auto", "automatic interleave weights", Subject::Machine, auto);
    if walk.both_have(
        "interleave_weights",
        "interleave weights",
        settings.map(|settings| settings.interleave_weights.len()),
    ) {
        let nodes = walk.a.node_ids().intersection(&walk.b.node_ids());
        for node in &nodes {
            let weights = settings.map(|settings| number(settings.interleave_weights.get(&node).copied()));
            walk.fact("interleave_weight", "interleave weight", Subject::Node(node), weights);
        }
    }
    huge_pools(walk);
    governors(walk, settings);
}

/// Compares the pages that pools are set to; those that come and go above that number are left out.
fn huge_pools(walk: &mut Walk<'_>) {
    let pools =
        |machine: &Machine| -> usize { machine.nodes.values().map(|node| node.huge_pools.len()).sum() };
    if !walk.both_have("huge_page_pools", "huge page pools", [pools(walk.a), pools(walk.b)]) {
        return;
    }
    for (node, a) in &walk.a.nodes {
        let Some(b) = walk.b.nodes.get(node) else { continue };
        let sizes: BTreeSet<Bytes> =
            a.huge_pools.iter().chain(&b.huge_pools).map(|pool| pool.page_size).collect_set();
        for page_size in sizes {
            let pages = [a, b].map(|node| {
                let pool = node.huge_pools.iter().find(|pool| pool.page_size == page_size)?;
                number(pool.total.map(|total| total.saturating_sub(pool.surplus.unwrap_or(0))))
            });
            let (word, label) =
                (format!("huge_pages_{}", page_size.get()), format!("huge pages of {page_size}"));
            walk.fact(word, label, Subject::Node(*node), pages);
        }
    }
}

fn governors(walk: &mut Walk<'_>, settings: [&Settings; 2]) {
    if !walk.both_have("governors", "governors", settings.map(|settings| settings.governors.len())) {
        return;
    }
    let common = walk.common.clone().unwrap_or_default();
    let [a, b] = settings.map(|settings| by_cpu(&settings.governors, &common));
    for cpu in &common {
        let names = [&a, &b].map(|names| names.get(&cpu).map(|name| FactValue::text(name)));
        walk.fact("governor", "governor", Subject::Cpu(cpu), names);
    }
}

/// The governor of each of these CPUs; of several the first by name.
fn by_cpu<'m>(governors: &'m BTreeMap<String, CpuSet>, of: &CpuSet) -> BTreeMap<CpuId, &'m str> {
    let mut left = of.clone();
    let mut names = BTreeMap::new();
    for (name, cpus) in governors {
        let new = cpus.intersection(&left);
        left = left.difference(&new);
        names.extend(new.iter().map(|cpu| (cpu, name.as_str())));
    }
    names
}

fn limits(walk: &mut Walk<'_>) {
    walk.begin(FactGroup::Limits);
    let machines = [walk.a, walk.b];
    let cpus = machines.map(|machine| machine.allowed_cpus.clone().map(FactValue::Cpus));
    let nodes = machines.map(|machine| machine.allowed_nodes.clone().map(FactValue::Nodes));
    walk.fact("allowed_cpus", "allowed CPUs", Subject::Machine, cpus);
    walk.fact("allowed_nodes", "allowed nodes", Subject::Machine, nodes);
}

/// Whether an oddity is about what could not be read, so that facts are missing instead of different.
const fn is_loss(kind: OddityKind) -> bool {
    matches!(kind, OddityKind::Unreadable | OddityKind::Unparseable)
}

/// Compares the oddities as sets. A file that could not be read does not make the machines differ.
fn oddities(walk: &mut Walk<'_>) {
    walk.begin(FactGroup::Oddities);
    let texts = |machine: &Machine, losses: bool| -> BTreeSet<String> {
        // Stray bytes were ignored: nothing is missing, and the machine is the same.
        let about_facts = |oddity: &&Oddity| oddity.kind != OddityKind::StrayBytes;
        let all = machine.oddities.iter().filter(about_facts).filter(|oddity| is_loss(oddity.kind) == losses);
        all.map(Oddity::to_string).collect()
    };
    let [a, b] = [walk.a, walk.b].map(|machine| texts(machine, false));
    for text in a.union(&b) {
        let there = [a.contains(text), b.contains(text)];
        walk.existence("oddity", "oddity", Subject::Named(text.clone()), there);
    }
    let [a, b] = [walk.a, walk.b].map(|machine| texts(machine, true));
    for (side, text) in
        a.difference(&b).map(|text| (Side::B, text)).chain(b.difference(&a).map(|text| (Side::A, text)))
    {
        walk.known_of(
            side,
            "file",
            "a file that the other side could not read:",
            Subject::Named(text.clone()),
        );
    }
}
