//! Facts from lscpu of util-linux.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use nodewise_machine::CpuSet;
use nodewise_machine::id::CpuId;

use crate::program;

/// The release that is installed.
pub(super) fn version() -> Result<String> {
    let text = program::read(Command::new("lscpu").arg("--version"))
        .context("lscpu is missing: it is in Debian's package util-linux")?;
    Ok(text.split_ascii_whitespace().last().unwrap_or_default().to_owned())
}

/// Reads lscpu's facts about the machine below a folder; `None` where it cannot count the CPUs.
pub(super) fn facts(folder: &Path) -> Result<Option<BTreeSet<String>>> {
    let lscpu = |words: &[&str]| {
        let mut command = Command::new("lscpu");
        command.env("LC_ALL", "C").arg("--sysroot").arg(folder).args(words);
        program::read(&mut command)
    };
    let columns = "-p=CPU,CORE,SOCKET,BOOK,DRAWER,CACHE,ONLINE,MAXMHZ";
    let Ok(table) = lscpu(&["-a", columns]) else { return Ok(None) };
    let mut facts = of_table(&table)?;
    facts.extend(of_caches(&lscpu(&["-B", "-C=NAME,ONE-SIZE,ALL-SIZE"])?));
    facts.extend(of_summary(&lscpu(&[])?));
    Ok(Some(facts))
}

/// Groups of CPUs from lines such as `0,0,,0,0,Y,3900.0000`.
fn of_table(text: &str) -> Result<BTreeSet<String>> {
    let head = text.lines().find_map(|line| line.strip_prefix("# CPU,")).context("no head of columns")?;
    let heads: Vec<&str> = head.split(',').collect();
    let mut groups: BTreeMap<(String, String), CpuSet> = BTreeMap::new();
    let mut facts = BTreeSet::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let mut fields = line.split(',');
        let cpu = fields.next().and_then(|field| field.parse().ok()).map(CpuId::new);
        let cpu = cpu.with_context(|| format!("no CPU in {line:?}"))?;
        let fields: Vec<&str> = fields.collect();
        let is_online =
            heads.iter().position(|head| *head == "Online").and_then(|at| fields.get(at)) == Some(&"Y");
        let told = heads.iter().zip(&fields).filter(|(_, field)| is_online && !field.is_empty());
        for (head, field) in told {
            let (word, number) = match *head {
                "Core" => ("core".to_owned(), *field),
                "Socket" => ("package".to_owned(), *field),
                "Book" => ("book".to_owned(), *field),
                "DRAWER" => ("drawer".to_owned(), *field),
                "Online" => ("online".to_owned(), ""),
                "Maxmhz" => (format!("max-mhz {}", field.split('.').next().unwrap_or(field)), ""),
                "" => continue,
                cache => (format!("cache {cache}"), *field),
            };
            groups.entry((word, number.to_owned())).or_default().insert(cpu);
        }
    }
    facts.extend(groups.into_iter().map(|((word, _), cpus)| format!("{word} {cpus}")));
    Ok(facts)
}

/// Sizes from lines such as `L1d 49152 557056`.
fn of_caches(text: &str) -> Vec<String> {
    let fields = text.lines().skip(1).map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    let known = fields.filter_map(|fields| match fields[..] {
        [name, one, all] => Some(format!("cache-size {name} first {one} all {all}")),
        _ => None,
    });
    known.collect()
}

/// Nodes and models from lines such as `NUMA node0 CPU(s):   0,1`.
fn of_summary(text: &str) -> Vec<String> {
    let fact = |line: &str| {
        let (name, value) = line.split_once(':')?;
        let value = value.trim();
        let node = name.trim().strip_prefix("NUMA node").and_then(|rest| rest.strip_suffix(" CPU(s)"));
        match (name.trim(), node) {
            ("Model name", _) if value != "-" => Some(format!("model {}", super::one_blank(value))),
            (_, Some(node)) if !node.is_empty() => {
                // It writes 0-1 as 0,1.
                let cpus: CpuSet = value.parse().unwrap_or_default();
                Some(format!("node {node} cpus {cpus}").trim().to_owned())
            }
            _ => None,
        }
    };
    text.lines().filter_map(fact).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_sizes_nodes_and_models_are_read() {
        let table = "# The following\n# CPU,Core,Socket,Book,DRAWER,,L1d,Online,Maxmhz\n\
                     0,0,0,,,,0,Y,3900.0000\n1,0,0,,,,0,Y,3900.0000\n2,1,0,,,,1,N,\n";
        let facts: Vec<String> = of_table(table).unwrap().into_iter().collect();
        assert_eq!(facts, ["cache L1d 0-1", "core 0-1", "max-mhz 3900 0-1", "online 0-1", "package 0-1"]);
        assert_eq!(
            of_caches("NAME ONE-SIZE ALL-SIZE\nL1d 49152 557056\n"),
            ["cache-size L1d first 49152 all 557056"]
        );
        let summary = "CPU(s):   4\nModel name:  A   CPU\n  NUMA node(s):  2\nNUMA node0 CPU(s): 0,1\nNUMA node8 CPU(s):\n";
        assert_eq!(of_summary(summary), ["model A CPU", "node 0 cpus 0-1", "node 8 cpus"]);
    }
}
