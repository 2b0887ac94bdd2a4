//! Scripts of system calls, drawn: the same from the same seed.

use nodewise_machine::{Machine, MemPolicy, ModeFlags, NodeId, NodeSet, PolicyMode};
use nodewise_syscall::PageScope;
use nodewise_syscall::arguments::BindOptions;

use crate::cache;
use crate::group;
use crate::kind::{ScriptId, ScriptKind};
use crate::random::Random;
use crate::script::{BLOCK, Call, MappingKind, Member, Part, PoolStep, Script, Step};

/// Calls in a script.
const CALLS: u64 = 14;
/// The most pages of a mapping of small pages, and the most huge pages of another.
const MOST_PAGES: u64 = 48;
const MOST_BLOCKS: u64 = 3;
/// Threads of a script that has some.
const THREADS: u64 = 3;
/// Settings of transparent huge pages. With `defrag` others would have kswapd and kcompactd move pages meanwhile.
const ENABLED: [&str; 5] = ["always", "always", "always", "madvise", "never"];
const DEFRAG: [&str; 3] = ["always", "madvise", "never"];

/// Draws scripts for a machine.
pub struct Drawer<'a> {
    machine: &'a Machine,
    kind: ScriptKind,
    random: Random,
    /// The mappings so far, and their pages.
    mappings: Vec<(MappingKind, u64)>,
}

impl<'a> Drawer<'a> {
    /// A script on a machine.
    pub fn script(machine: &'a Machine, ScriptId { kind, number }: ScriptId) -> Script {
        if let Some(has_swap) = kind.of_groups() {
            let mut random = Random::new(number);
            let group = group::drawn(&mut random, machine, has_swap);
            return Script { weights: Vec::new(), calls: vec![Call::Group(group)] };
        }
        if kind == ScriptKind::Cache {
            let script = cache::drawn(&mut Random::new(number), machine);
            return Script { weights: Vec::new(), calls: vec![Call::Cache(script)] };
        }
        let mut drawer = Self { machine, kind, random: Random::new(number), mappings: Vec::new() };
        let nodes = machine.nodes_with_memory();
        let weights = nodes.iter().map(|node| (node, 1 + drawer.random.below(4) as u32)).collect();
        let first = (kind == ScriptKind::Thp).then(|| drawer.huge_pages());
        let calls = first.into_iter().chain((0..CALLS).map(|_| drawer.call())).collect();
        Script { weights, calls }
    }

    fn call(&mut self) -> Call {
        match self.kind {
            ScriptKind::Calls | ScriptKind::Groups | ScriptKind::Swap | ScriptKind::Cache => {}
            ScriptKind::Thp if self.random.percent(8) => return self.huge_pages(),
            // A thread that can do something is chosen from the beginning.
            ScriptKind::Threads if self.random.percent(30) => {
                return Call::Thread(self.random.below(THREADS) as usize);
            }
            ScriptKind::Pools if self.random.percent(50) => return self.pool(),
            ScriptKind::Thp | ScriptKind::Threads | ScriptKind::Pools => {}
        }
        if self.mappings.is_empty() || self.random.percent(9) {
            return self.map();
        }
        match self.random.below(100) {
            0..7 => Call::RunOn(self.node_with_cpus()),
            7..20 => Call::SetPolicy(any_policy(&mut self.random, self.machine)),
            20..45 => self.touch(),
            45..65 => {
                let options = self.random.one(&OPTIONS);
                Call::Bind(self.part(), any_policy(&mut self.random, self.machine), options)
            }
            65..70 => Call::SetHome(self.part(), self.any_node()),
            70..77 => Call::Restrict(self.memory_nodes()),
            77..82 => Call::Migrate(self.any_nodes(), self.any_nodes()),
            82..88 => self.moved(),
            88..95 => Call::Fork((0..2 + self.random.below(5)).map(|_| self.step()).collect()),
            95..98 => self.pool(),
            98 => Call::Keep(self.mapping().0),
            _ => Call::Program(1 + self.random.below(MOST_PAGES)),
        }
    }

    fn huge_pages(&mut self) -> Call {
        Call::HugePages(self.random.one(&ENABLED), self.random.one(&DEFRAG))
    }

    fn map(&mut self) -> Call {
        if self.kind == ScriptKind::Thp && self.random.percent(70) {
            let lead = self.random.below(BLOCK);
            let pages = lead + BLOCK * (1 + self.random.below(2)) + self.random.below(BLOCK);
            self.mappings.push((MappingKind::Plain(lead), pages));
            return Call::Map(MappingKind::Plain(lead), pages);
        }
        let (kind, pages) = match self.random.below(100) {
            0..60 => (MappingKind::Small, 1 + self.random.below(MOST_PAGES)),
            60..80 => (MappingKind::File(self.random.below(8)), 1 + self.random.below(MOST_PAGES)),
            _ => (MappingKind::Huge, BLOCK * (1 + self.random.below(MOST_BLOCKS))),
        };
        self.mappings.push((kind, pages));
        Call::Map(kind, pages)
    }

    fn step(&mut self) -> Step {
        let member = self.random.one(&[Member::Parent, Member::Child]);
        match self.random.below(100) {
            0..15 => Step::RunOn(member, self.node_with_cpus()),
            15..75 => {
                let (mapping, pages) = self.some_pages();
                Step::Write(member, mapping, pages)
            }
            75..88 => Step::SetPolicy(any_policy(&mut self.random, self.machine)),
            _ => Step::Bind(self.part(), any_policy(&mut self.random, self.machine)),
        }
    }

    fn pool(&mut self) -> Call {
        let nodes = self.machine.nodes_with_memory();
        let pools = nodes.iter().map(|node| (node, self.random.below(4))).collect();
        let pages = 1 + self.random.below(6);
        let steps = (0..2 + pages + self.random.below(6)).map(|_| self.pool_step(pages)).collect();
        Call::Pool { pools, pages, steps }
    }

    fn pool_step(&mut self, pages: u64) -> PoolStep {
        if self.kind == ScriptKind::Pools && self.random.percent(30) {
            let nodes: Vec<NodeId> = self.machine.nodes_with_memory().iter().collect();
            let node = self.random.percent(60).then(|| self.random.one(&nodes));
            let most = if node.is_some() { 4 } else { 8 };
            return PoolStep::Resize(node, self.random.below(most));
        }
        match self.random.below(100) {
            0..55 => PoolStep::Touch(self.random.below(pages)),
            55..75 => PoolStep::Move(self.random.below(pages), self.any_node()),
            75..85 => PoolStep::Migrate(self.any_nodes(), self.any_nodes()),
            _ => {
                let options = self.random.one(&OPTIONS);
                PoolStep::Bind(any_policy(&mut self.random, self.machine), options)
            }
        }
    }

    fn mapping(&mut self) -> (usize, MappingKind, u64) {
        let mapping = self.random.below(self.mappings.len() as u64) as usize;
        let (kind, pages) = self.mappings[mapping];
        (mapping, kind, pages)
    }

    /// Some pages one after the other; whole huge ones.
    fn part(&mut self) -> Part {
        let (mapping, kind, pages) = self.mapping();
        if let MappingKind::Plain(_) = kind {
            let edges: Vec<u64> = (0..=pages).filter(|page| kind.has_edge(*page, pages)).collect();
            let at = self.random.below(edges.len() as u64 - 1);
            let end = at + 1 + self.random.below(edges.len() as u64 - 1 - at);
            let (first, end) = (edges[at as usize], edges[end as usize]);
            return Part { mapping, first, count: end - first };
        }
        let unit = if kind == MappingKind::Huge { BLOCK } else { 1 };
        let first = self.random.below(pages / unit);
        let count = 1 + self.random.below(pages / unit - first);
        Part { mapping, first: first * unit, count: count * unit }
    }

    fn some_pages(&mut self) -> (usize, Vec<u64>) {
        let (mapping, _, pages) = self.mapping();
        let count = 1 + self.random.below(pages.min(MOST_PAGES));
        (mapping, (0..count).map(|_| self.random.below(pages)).collect())
    }

    fn touch(&mut self) -> Call {
        let (mapping, pages) = self.some_pages();
        Call::Touch(mapping, pages)
    }

    /// Some pages each to a node with memory, or all to one node that may be wrong.
    fn moved(&mut self) -> Call {
        let (mapping, mut pages) = self.some_pages();
        // The kernel takes a page that is named twice once only.
        pages.sort_unstable();
        pages.dedup();
        if self.random.percent(40) {
            let node = self.any_node();
            return Call::Move(mapping, pages.into_iter().map(|page| (page, node)).collect());
        }
        let nodes: Vec<NodeId> = self.machine.nodes_with_memory().iter().collect();
        Call::Move(mapping, pages.into_iter().map(|page| (page, self.random.one(&nodes))).collect())
    }

    fn node_with_cpus(&mut self) -> NodeId {
        self.random.one(&homes(self.machine))
    }

    /// A node that may not be there.
    fn any_node(&mut self) -> NodeId {
        NodeId::new(self.random.below(self.machine.nodes.len() as u64 + 1) as u32)
    }

    fn any_nodes(&mut self) -> NodeSet {
        let nodes: Vec<NodeId> = self.machine.node_ids().iter().collect();
        (0..self.random.below(4)).map(|_| self.random.one(&nodes)).collect()
    }

    /// One or more nodes with memory.
    fn memory_nodes(&mut self) -> NodeSet {
        let nodes: Vec<NodeId> = self.machine.nodes_with_memory().iter().collect();
        (0..1 + self.random.below(nodes.len() as u64)).map(|_| self.random.one(&nodes)).collect()
    }
}

const OPTIONS: [BindOptions; 5] = [
    BindOptions { moving: None, strict: false },
    BindOptions { moving: None, strict: true },
    BindOptions { moving: Some(PageScope::Own), strict: false },
    BindOptions { moving: Some(PageScope::Own), strict: true },
    BindOptions { moving: Some(PageScope::All), strict: false },
];

/// The nodes that the kernel takes for those of some CPU. Every emulated node lists the CPUs of the node
/// it is cut from; they are at home on the first.
pub fn homes(machine: &Machine) -> Vec<NodeId> {
    let homes: NodeSet = machine.online_cpus().iter().filter_map(|cpu| machine.node_of(cpu)).collect();
    homes.iter().collect()
}

/// Any policy, good or bad: nodes that are there and some that are not.
pub fn any_policy(random: &mut Random, machine: &Machine) -> MemPolicy {
    let mode = random.one(&PolicyMode::ALL);
    let flags = if random.percent(60) {
        ModeFlags::NONE
    } else {
        ModeFlags::from_bits((random.below(8) << 13) as u16)
    };
    let most = machine.nodes.len() as u64 + 1;
    let mut nodes: NodeSet = (0..random.below(4)).map(|_| NodeId::new(random.below(most) as u32)).collect();
    if random.percent(10) {
        nodes.insert(NodeId::new(random.one(&[9, 63, 64, 1023, 1024, 1100])));
    }
    MemPolicy { mode, flags, nodes }
}
