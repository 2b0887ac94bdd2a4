//! The outcome of a request, step by step: the text of `nodewise explain`.

use nodewise_machine::check::node_names;
use nodewise_machine::{Bytes, ModeFlags, NodeCounters, NodeSet, PolicyMode};
use nodewise_model::pcp::largest_refill;
use nodewise_model::walk::{BusyNodes, Mark, OutOfMemory, Share, Stretch};

use super::explain::rule_of;
use super::{cost, process_memory};
use crate::digest::counts::by_count;
use crate::digest::walk::answers::Answers;
use crate::digest::walk::{HugeReason, NodeChange, Walk, consequence, relieved, size_of};
use crate::style::{Ink, Style};
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table};

/// Up to this many nodes each has a row of its own.
const FEW: usize = 8;

/// Writes which nodes give the pages of a request, when each yields, what happens at the end, and
/// what is counted.
pub fn walk(walk: &Walk<'_>, style: &Style) -> String {
    let mut page = Page::new(*style);
    page.line(2, &Line::new().with(Ink::Strong, Answers::from_walk(walk).summary(walk)));
    let asked = walk.size_bytes.map_or("all there is".to_owned(), |size| Bytes::new(size).to_string());
    let remark = format!("{asked}, touched by a CPU of node {}, Linux {}", walk.cpu_node, walk.release);
    let what = match walk.process {
        Some(memory) => {
            process_memory::section(&mut page, memory);
            "Next memory"
        }
        None => "Memory",
    };
    page.heading(&format!("{what}  {}", walk.policy.effective()), &remark);
    for sentence in rules(walk) {
        page.line(2, &format!("  {sentence}").into());
    }
    page.line(0, &Line::new());
    steps(walk).write(&mut page);
    if let Some(end) = &walk.outcome.out_of_memory {
        page.line(2, &Line::from("  ").with(Ink::Notable, last_step(walk, end)));
    }
    control_groups(&mut page, walk);
    page.heading("Nodes", &format!("pages of {}", Bytes::new(walk.before.page_bytes())));
    nodes(walk).write(&mut page);
    page.heading("Counters", "what numastat gains");
    counters(walk).write(&mut page);
    if let Some(reading) = walk.reading {
        cost::reading(&mut page, reading, walk.cpu_node.number());
    }
    if !walk.trace.is_empty() {
        page.heading("Functions of the kernel", "as Linux 6.12 names them");
        let mut table = Table::new(vec![column("function", Align::Left), column("does", Align::Left)]);
        for passed in walk.trace {
            table.row(vec![passed.function.into(), passed.does.as_str().into()]);
        }
        table.write(&mut page);
    }
    page.line(0, &Line::new());
    for sentence in notes(walk) {
        page.line(2, &Line::new().with(Ink::Faint, sentence));
    }
    page.finish()
}

/// The limits of control groups.
fn control_groups(page: &mut Page, walk: &Walk<'_>) {
    let Some(groups) = walk.groups else { return };
    match groups.groups.is_empty() {
        false => page.heading("Control groups", "limits of memory, the program's own group first"),
        true if walk.process.is_some() && groups.unknown.is_none() => {
            page.heading("Control groups", "none limits its memory");
        }
        true => {}
    }
    for group in &groups.groups {
        page.line(4, &format!("  {}", group.in_words(walk.before.page_bytes())).into());
    }
}

/// How the node of a page is found, and with which nodes.
fn rules(walk: &Walk<'_>) -> Vec<String> {
    let mut rules = vec![rule_of(&walk.policy.effective(), walk.policy.home, walk.kind)];
    let allowed = node_names(walk.allowed);
    if let Some(asked) = walk.asked_otherwise() {
        let (is, nodes) = (by_count(&asked.len(), "is", "are"), node_names(&walk.policy.nodes));
        let asked = node_names(asked);
        let how = match walk.policy.flags.contains(ModeFlags::RELATIVE_NODES) {
            true => format!("counted in {allowed}, {asked} {is} {nodes}"),
            false => format!("of {asked}, {nodes} can be used now"),
        };
        rules.push(how);
    }
    if !walk.left_out.is_empty() {
        let are = by_count(&walk.left_out.len(), "is", "are");
        let it = by_count(&walk.left_out.len(), "it", "them");
        let nodes = node_names(walk.left_out);
        rules.push(format!("{nodes} {are} not usable here: the kernel leaves {it} out without an error"));
    }
    if walk.huge == Some(HugeReason::Setting) {
        let size = Bytes::new(walk.before.page_bytes() << walk.before.huge_order());
        let turn = if interleaves(walk) { "; a turn is a whole one" } else { "" };
        rules.push(format!("in huge pages of {size} where they fit: transparent_hugepage is always{turn}"));
    }
    if !walk.before.nodes().is_subset(walk.allowed) {
        rules.push(format!("the cpuset allows {allowed}"));
    }
    rules
}

const fn column(head: &'static str, align: Align) -> Column {
    Column { head, align, keep: Keep::Always }
}

const fn figure(head: &'static str, keep: Keep) -> Column {
    Column { head, align: Align::Right, keep }
}

const fn interleaves(walk: &Walk<'_>) -> bool {
    matches!(walk.policy.mode, PolicyMode::Interleave | PolicyMode::WeightedInterleave)
}

fn steps(walk: &Walk<'_>) -> Table {
    let mut table = Table::new(vec![
        column("step", Align::Right),
        column("pages", Align::Right),
        figure("size", Keep::Unless(1)),
        column("of zones above", Align::Left),
        column("from node:zone", Align::Left),
    ]);
    let is_folded = walk.before.nodes().len() > FEW;
    let mut number = 1;
    for alike in walk.outcome.stretches.chunk_by(|one, next| is_folded && goes_on(one, next)) {
        let (first, last) = (&alike[0], &alike[alike.len() - 1]);
        let small = first.pages();
        let huge = if first.order > 0 { format!("{} huge", small >> first.order) } else { small.to_string() };
        let each = if alike.len() > 1 { " each" } else { "" };
        let from = match (&first.shares[..], &last.shares[..]) {
            ([one], [other]) if alike.len() > 1 => {
                format!("{}-{}:{}, one after the other", one.node, other.node, one.kind)
            }
            _ => sources(first),
        };
        let behind = number + alike.len();
        let step = if alike.len() > 1 { format!("{number}-{}", behind - 1) } else { number.to_string() };
        table.row(vec![
            step.into(),
            format!("{huge}{each}").into(),
            size_of(small, walk.before.page_bytes()).into(),
            mark(first).into(),
            from.into(),
        ]);
        number = behind;
    }
    table
}

/// Whether a step takes from the next node what the one before took from its own.
fn goes_on(one: &Stretch, next: &Stretch) -> bool {
    match (&one.shares[..], &next.shares[..]) {
        ([a], [b]) => {
            (a.kind, a.mark, a.pages, one.order) == (b.kind, b.mark, b.pages, next.order)
                && a.node.number() + 1 == b.node.number()
        }
        _ => false,
    }
}

fn mark(stretch: &Stretch) -> &'static str {
    let has = |mark| stretch.shares.iter().any(|share| share.mark == mark);
    match (has(Mark::Low), has(Mark::Min)) {
        (true, true) => "low or min",
        (false, true) => "min",
        _ => "low",
    }
}

/// The zones of a stretch: one with its node, of several the nodes, those with as many pages together.
fn sources(stretch: &Stretch) -> String {
    if let [share] = &stretch.shares[..] {
        return format!("{}:{}", share.node, share.kind);
    }
    let mut alike: Vec<(NodeSet, &Share)> = Vec::new();
    for share in &stretch.shares {
        let same = |(nodes, other): &&mut (NodeSet, &Share)| {
            (other.kind, other.pages) == (share.kind, share.pages) && !nodes.contains(share.node)
        };
        match alike.iter_mut().find(same) {
            Some((nodes, _)) => {
                nodes.insert(share.node);
            }
            None => alike.push((NodeSet::from_iter([share.node]), share)),
        }
    }
    let one = |(nodes, share): &(NodeSet, &Share)| {
        let each = if nodes.len() > 1 { " each" } else { "" };
        format!("{nodes}:{}={}{each}", share.kind, share.pages)
    };
    // Sets of nodes have commas in them.
    alike.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// The effect when no page is left to give.
fn last_step(walk: &Walk<'_>, end: &OutOfMemory) -> String {
    let lacking = size_of(end.pages, walk.after.page_bytes());
    // Where caches and swap are not known, both are left open.
    let relief = walk.relief.filter(|relief| relief.has_caches() || relief.swap.is_some());
    match (relief, walk.takes_all()) {
        (Some(relief), false) => {
            format!("{lacking} find no free memory: {}", relieved(&relief, end, walk.after, false))
        }
        (Some(relief), true) => relieved(&relief, end, walk.after, true),
        (None, false) => format!("{lacking} are missing: {}", consequence(end, walk.after)),
        (None, true) => consequence(end, walk.after),
    }
}

fn nodes(walk: &Walk<'_>) -> Table {
    let has_cache = !walk.caches.is_empty();
    let mut columns = vec![
        column("node", Align::Right),
        column("free", Align::Right),
        column("taken", Align::Right),
        column("left", Align::Left),
    ];
    if has_cache {
        columns.insert(1, column("page cache", Align::Right));
    }
    let mut table = Table::new(columns);
    rows(&mut table, walk, |change| {
        let cache = change.cache.unwrap_or(0);
        let figures = [cache, change.before, change.taken(), change.after];
        figures[usize::from(!has_cache)..].to_vec()
    });
    table
}

fn counters(walk: &Walk<'_>) -> Table {
    // Where all do not fit: nothing falls to turns without interleaving, and what is local follows from
    // the CPU's node.
    let (turns, local) = if interleaves(walk) { (2, 1) } else { (1, 2) };
    let mut table = Table::new(vec![
        column("node", Align::Right),
        column("hit", Align::Right),
        column("miss", Align::Right),
        column("foreign", Align::Right),
        figure("interleave", Keep::Unless(turns)),
        figure("local", Keep::Unless(local)),
        column("other", Align::Left),
    ]);
    rows(&mut table, walk, |change| {
        let NodeCounters { hit, miss, foreign, interleave_hit, local, other } = change.counters;
        vec![hit, miss, foreign, interleave_hit, local, other]
    });
    table
}

/// A row per node; of many nodes, one for those that follow one another and have the same figures.
fn rows(table: &mut Table, walk: &Walk<'_>, figures: impl Fn(&NodeChange) -> Vec<u64>) {
    let changes = walk.nodes();
    let is_folded = changes.len() > FEW;
    let mut alike: Vec<(NodeSet, Vec<u64>)> = Vec::new();
    for change in &changes {
        let figures = figures(change);
        match alike.last_mut() {
            Some((nodes, last)) if is_folded && *last == figures => {
                nodes.insert(change.node);
            }
            _ => alike.push((NodeSet::from_iter([change.node]), figures)),
        }
    }
    for (nodes, figures) in alike {
        let figures = figures.iter().map(|figure| figure.to_string().into());
        table.row(std::iter::once(nodes.to_string().into()).chain(figures).collect());
    }
}

/// How far this can be relied on.
fn notes(walk: &Walk<'_>) -> Vec<String> {
    let mut notes: Vec<String> =
        Vec::from_iter(walk.outcome.busy.as_ref().map(|busy| busy_nodes(busy, walk)));
    let bytes = walk.before.page_bytes();
    let largest =
        walk.before.zones().iter().map(|zone| largest_refill(zone.managed, bytes)).max().unwrap_or(0);
    if walk.outcome.stretches.len() > 1 || walk.outcome.out_of_memory.is_some() {
        let exact = match walk.outcome.busy {
            None => "The order of nodes is exact.",
            Some(_) => "The order of nodes is exact up to there.",
        };
        notes.push(format!(
            "{exact} Where the next takes over, a CPU may hold back up to {largest} pages, and what the kernel \
             reclaims meanwhile comes on top."
        ));
    }
    let reclaimed: Vec<NodeChange> = walk.nodes().into_iter().filter(|change| change.reclaimed > 0).collect();
    if walk.relief.is_some_and(|relief| relief.has_caches()) {
        notes.push(
            "Which pages of the caches can be dropped is an interval: from what MemAvailable counts, for these nodes, to all \
             pages in the lists of files and all slab that can shrink. Files in memory (tmpfs) go to swap only. Pages that \
             come in this way are in none of the tables."
                .to_owned(),
        );
    }
    if !reclaimed.is_empty() {
        let nodes = node_names(reclaimed.iter().map(|change| change.node));
        let pages = reclaimed.iter().map(|change| change.reclaimed).sum();
        notes.push(format!(
            "By vm.zone_reclaim_mode {nodes} gave up {} of caches before another node was tried; how much a kernel gets \
             depends on what is in them.",
            size_of(pages, bytes)
        ));
    }
    if walk.is_systems && walk.policy.mode != PolicyMode::Default {
        notes.push(format!(
            "Programs that have set no policy follow {}: numa_policy= on this kernel's command line says so.",
            walk.policy.effective()
        ));
    }
    if walk.groups.is_some_and(|groups| groups.cut.is_some()) {
        notes.push(
            "Pages beyond the limit of a control group take the place of others of the group and are in none of the tables. \
             Page tables are charged, too; other memory of the kernel that the program takes is left out."
                .to_owned(),
        );
    }
    if let Some(unknown) = walk.groups.and_then(|groups| groups.unknown.as_ref()) {
        notes.push(format!("Limits of control groups are not known: {unknown}."));
    }
    notes.extend(walk.basis.note().map(str::to_owned));
    if walk.reading.is_some() {
        notes.push(
            "The cost is a bound: latency is that of an idle machine, and nothing else is running."
                .to_owned(),
        );
    }
    if interleaves(walk) && walk.first_page.is_none() {
        notes.push("The first page is taken to be one whose turn falls on the first node.".to_owned());
    }
    notes
}

/// From where on a kernel that reclaims may leave the order.
fn busy_nodes(busy: &BusyNodes, walk: &Walk<'_>) -> String {
    let are = by_count(&busy.nodes.len(), "is", "are");
    format!(
        "From page {} on {} {are} reclaimed, and Linux {} passes over such nodes: which node gives a page then \
         depends on how fast that goes.",
        busy.after + 1,
        node_names(&busy.nodes),
        walk.release
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::walk::{Basis, MemoryKind};
    use crate::json;
    use nodewise_machine::{MemPolicy, NodeId, spec};
    use nodewise_model::policy::interleave::InterleavePosition;
    use nodewise_model::policy::set::Scope;
    use nodewise_model::reclaim::ZoneReclaim;
    use nodewise_model::walk::{Class, Request};
    use nodewise_model::{BuiltAt, Memory, Policy, Release, Weights, ZoneKind, ZoneState, trace};
    use std::collections::BTreeMap;

    /// The text and the JSON of a request on the four-node server.
    fn both(policy: &str, gib: Option<u64>, traced: bool) -> (String, String) {
        both_on(Release::REFERENCE, policy, gib, traced)
    }

    fn both_on(release: Release, policy: &str, gib: Option<u64>, traced: bool) -> (String, String) {
        let machine = spec::machine("2x(2x(4c 4G)); dist=11,20").unwrap();
        let memory = Memory::from_machine(&machine, BuiltAt::Boot, release);
        of_memory(&memory, release, policy, gib, traced)
    }

    fn of_memory(
        before: &Memory,
        release: Release,
        policy: &str,
        gib: Option<u64>,
        traced: bool,
    ) -> (String, String) {
        let allowed = before.nodes();
        let policy: MemPolicy = policy.parse().unwrap();
        let policy =
            Policy::from_mem_policy(&policy, Scope { allowed: &allowed, max_nodes: 1024, release }).unwrap();
        let mut after = before.clone();
        let cpu_node = NodeId::new(0);
        let outcome = after.allocate(&Request {
            policy: &policy,
            weights: &Weights::new(),
            cpu_node,
            allowed: &allowed,
            pages: gib.map_or(1 << 30, |gib| gib << 18),
            order: 0,
            place: InterleavePosition::Address(0),
            class: Class::User,
        });
        let trace = if traced { trace::trace(policy.mode, &outcome) } else { Vec::new() };
        let shown = Walk {
            policy: &policy,
            left_out: &NodeSet::new(),
            process: None,
            is_systems: policy == Policy::DEFAULT,
            kind: MemoryKind::Private,
            first_page: None,
            cpu_node,
            allowed: &allowed,
            size_bytes: gib.map(|gib| gib << 30),
            release,
            basis: Basis::Assumed,
            before,
            after: &after,
            outcome: &outcome,
            relief: None,
            victim: None,
            droppable: None,
            swap: None,
            groups: None,
            caches: &BTreeMap::new(),
            huge: None,
            trace: &trace,
            reading: None,
        };
        (walk(&shown, &Style::plain(80)), json::walk::walk(&shown))
    }

    #[test]
    fn a_bound_request_is_told_to_its_end() {
        let (text, _) = both("bind:1,3", Some(9), true);
        assert_eq!(text, include_str!("../../tests/golden/walk-bind.txt"));
    }

    #[test]
    fn interleaving_tells_each_zone_of_a_step() {
        let (text, _) = both("interleave:0-3", None, false);
        assert_eq!(text, include_str!("../../tests/golden/walk-interleave.txt"));
    }

    #[test]
    fn nodes_with_as_many_pages_stand_together() {
        let share = |node: u32, kind, pages| Share { node: NodeId::new(node), kind, mark: Mark::Low, pages };
        let check = |shares: &[Share], expected: &str| {
            assert_eq!(sources(&Stretch { order: 0, shares: shares.to_vec() }), expected);
        };
        let (low, normal) = (ZoneKind::Dma32, ZoneKind::Normal);
        check(&[share(3, low, 7)], "3:DMA32");
        check(&[share(0, low, 7), share(1, low, 7), share(2, normal, 7)], "0-1:DMA32=7 each; 2:Normal=7");
        // A zone may give pages at both marks.
        check(&[share(0, low, 7), share(0, low, 7)], "0:DMA32=7; 0:DMA32=7");
    }

    #[test]
    fn from_6_18_on_the_order_is_open_where_nodes_are_reclaimed() {
        let (text, json) = both_on(Release::new(6, 18), "bind:1,3", Some(9), false);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let after = json["busy_nodes"]["after_pages"].as_u64().unwrap();
        assert_eq!(json["busy_nodes"]["nodes"], "1,3");
        let sentence = format!(
            "From page {} on nodes 1,3 are reclaimed, and Linux 6.18 passes over such nodes: which node gives a \
             page then depends on how fast that goes. The order of nodes is exact up to there.",
            after + 1
        );
        assert!(text.contains(&sentence), "{text}");
        // Nothing is reclaimed while there is room, and an older kernel keeps the order.
        for (release, gib) in [(Release::new(6, 18), 5), (Release::new(6, 17), 9)] {
            let (text, json) = both_on(release, "bind:1,3", Some(gib), false);
            assert!(!text.contains("passes over") && !json.contains("busy_nodes"), "{release}");
        }
    }

    #[test]
    fn caches_that_were_given_up_are_told() {
        let mut machine = spec::machine("2x(4c 4G)").unwrap();
        machine.settings.zone_reclaim_mode = Some(7);
        let release = Release::REFERENCE;
        let reclaim =
            ZoneReclaim::from_machine(&machine, release).with_spare([(NodeId::new(0), 1 << 18)].into());
        // Half of each node is in use, 1 GiB of it for caches.
        let free = Memory::from_machine(&machine, BuiltAt::Boot, release);
        let zones = free.zones().iter().map(|zone| ZoneState { free: zone.free / 2, ..zone.clone() });
        let memory = Memory::new(zones.collect(), free.orders().clone(), release).with_zone_reclaim(reclaim);
        let (text, json) = of_memory(&memory, release, "default", Some(3), false);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        // All but the share of zone DMA, which keeps more from programs than it has.
        assert!(text.contains("By vm.zone_reclaim_mode node 0 gave up 1020 MiB of caches"), "{text}");
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert!(json["nodes"][0]["reclaimed_pages"].as_u64().is_some_and(|pages| pages > 260_000), "{json}");
        assert!(json["nodes"][1].get("reclaimed_pages").is_none(), "{json}");
    }

    #[test]
    fn text_and_json_tell_the_same() {
        for policy in ["default", "bind:1,3", "interleave:0-3", "prefer (many):2-3"] {
            let (text, json) = both(policy, Some(9), false);
            let json: serde_json::Value = serde_json::from_str(&json).unwrap();
            assert_eq!(json["schema"], "nodewise.explain/1");
            let table = |heading: &str| -> Vec<Vec<&str>> {
                let below = text.lines().skip_while(|line| !line.starts_with(heading)).skip(2).take(4);
                below.map(|line| line.split_whitespace().collect()).collect()
            };
            let steps = text.lines().filter(|line| line.contains(" low ") || line.contains(" min ")).count();
            assert!(steps >= json["steps"].as_array().unwrap().len());
            let nodes = json["nodes"].as_array().unwrap();
            for ((row, counters), node) in table("Nodes").iter().zip(table("Counters")).zip(nodes) {
                let number = |name: &str| node[name].as_u64().unwrap();
                let (before, after) = (number("free_before_pages"), number("free_after_pages"));
                let figures = [number("id"), before, before - after, after];
                assert_eq!(*row, figures.map(|figure| figure.to_string()), "{policy}");
                let names = [
                    "id",
                    "numa_hit",
                    "numa_miss",
                    "numa_foreign",
                    "interleave_hit",
                    "local_node",
                    "other_node",
                ];
                assert_eq!(counters, names.map(|name| number(name).to_string()), "{policy}");
            }
        }
    }
}
