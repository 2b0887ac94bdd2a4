//! Groups and kinds of a report, read back.

use nodewise_fleet::check::{Reference, ReferenceGroup, ReferenceKind};
use nodewise_fleet::deviation::UsualFact;
use nodewise_fleet::group::FigureName;
use nodewise_fleet::outlier::Yardstick;
use nodewise_fleet::structure::FactValue;
use nodewise_fleet::survey::{CellKey, Pages, Quantity};
use nodewise_machine::Bytes;
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::printable::quote;
use serde::Deserialize;

use super::super::reading::{Saved, items, node, pages, positive};
use super::super::survey::short;
use super::{DistributionJson, FigureJson, GroupJson, KindJson, PopulationJson, SCHEMA, UsualJson};
use nodewise_measure::cell::PageKind;

/// More groups and kinds than any fleet has, and more figures than any machine.
const MOST: usize = 100_000;
const MOST_CELLS: usize = 4 * 1024 * 1024;

/// The part of the document that is read.
#[derive(Deserialize)]
struct Document {
    groups: Vec<GroupJson>,
    kinds: Vec<KindJson>,
}

/// Reads the reference for checks from a report.
///
/// # Errors
/// What is wrong and where, fit to be shown.
pub fn read(saved: &Saved<'_>) -> Result<Reference, String> {
    let document = saved.contents::<Document>(SCHEMA)?;
    Ok(Reference {
        groups: items("groups", document.groups, MOST, group)?,
        kinds: items("kinds", document.kinds, MOST, kind)?,
    })
}

fn group(json: GroupJson) -> Result<ReferenceGroup, String> {
    let layout_key = u64::from_str_radix(&json.layout_key, 16).map_err(|_| {
        format!("layout_key is {}: expected 16 digits of a hash", quote(&short(&json.layout_key)))
    })?;
    let usual = items("distributions", json.distributions, MOST_CELLS, distribution)?;
    let yardsticks = items("figures", json.figures, MOST_CELLS, figure)?;
    Ok(ReferenceGroup {
        name: short(&json.group),
        kind: json.kind,
        layout_key,
        hosts: json.hosts.len(),
        usual: usual.into_iter().collect(),
        yardsticks: yardsticks.into_iter().collect_map(),
    })
}

fn distribution(json: DistributionJson) -> Result<(CellKey, f64), String> {
    let (quantity, quartiles) = match (json.latency_ns, json.bandwidth_gb_per_s) {
        (Some(latency), None) => (Quantity::Latency, latency),
        (None, Some(bandwidth)) => (Quantity::Bandwidth, bandwidth),
        _ => return Err("expected either latency_ns or bandwidth_gb_per_s".to_owned()),
    };
    let pages = match pages(&json.cell.pages, json.cell.huge_page_bytes)? {
        PageKind::Small => Pages::Small,
        PageKind::TransparentHuge => Pages::TransparentHuge,
        PageKind::Hugetlb(size) => Pages::Pool(size.bytes().get()),
    };
    let (from, memory) = (node(json.cell.from_node)?, node(json.cell.memory_node)?);
    Ok((CellKey { quantity, from, memory, pages }, positive("median", quartiles.median)?))
}

fn figure(json: FigureJson) -> Result<(FigureName, Vec<Yardstick>), String> {
    let quantity = Quantity::ALL.into_iter().find(|quantity| quantity.word() == json.figure);
    let quantity = quantity
        .ok_or_else(|| format!("figure is {}: expected latency or bandwidth", quote(&short(&json.figure))))?;
    let memory = json.memory_node.map(node).transpose()?;
    let yardstick = |json: PopulationJson| {
        Ok(Yardstick {
            count: json.hosts,
            median: positive("median_ratio", json.median_ratio)?,
            deviation: positive("deviation_ratio", json.deviation_ratio)?,
            threshold: json
                .threshold_deviations
                .map(|threshold| positive("threshold_deviations", threshold))
                .transpose()?,
        })
    };
    Ok((FigureName { quantity, memory }, items("populations", json.populations, MOST, yardstick)?))
}

fn kind(json: KindJson) -> Result<ReferenceKind, String> {
    let usual = |json: UsualJson| {
        let value = match (json.text, json.size_bytes) {
            (Some(text), None) => FactValue::Text(text),
            (None, Some(size)) => FactValue::Size(Bytes::new(size)),
            _ => return Err("expected either text or size_bytes".to_owned()),
        };
        Ok((json.fact, UsualFact { value, agreed: json.agreed, of: json.of }))
    };
    let facts = items("usual", json.usual, MOST, usual)?;
    Ok(ReferenceKind { kind: json.kind, usual: facts.into_iter().collect_map() })
}
