//! Reports as servers of several nodes have them: one package, two packages of two nodes, two of four.
//!
//! Their figures are made up. They are drawn around what reviewers have published of servers with four nodes
//! to a package (in round numbers: 96 ns and 40 GB/s at home, some 15 % worse in the same package, twice as
//! bad in the other), so that texts and pictures are looked at with numbers that are not all alike. No one
//! has measured them.

use std::time::Duration;

use nodewise_machine::conditions::Conditions;
use nodewise_machine::{Bytes, CpuId, NodeId};
use nodewise_measure::bandwidth::{self, TransferReport};
use nodewise_measure::c2c::report::Home;
use nodewise_measure::c2c::{self, Pair, PairReport, Relation, Transfer};
use nodewise_measure::cell::{PageKind, Placed};
use nodewise_measure::kernel::bandwidth::Kernel;
use nodewise_measure::latency;
use nodewise_measure::latency::cache::LastLevel;
use nodewise_measure::survey::figure::rounded;
use nodewise_measure::survey::{Account, CellReport, Declared, Figure, Marks};
use nodewise_stats::Interval;
use nodewise_stats::random::Random;
use nodewise_view::svg::bandwidth::bandwidth_page;
use nodewise_view::svg::c2c::c2c_page;
use nodewise_view::svg::latency::latency_page;
use nodewise_view::{Style, text};

use crate::golden::check as golden;
use crate::picture::tidy;

/// CPUs of a node: eight cores of two threads.
const CPUS: u32 = 16;

/// A server of this many nodes, half of them in each package.
pub(crate) struct Server {
    nodes: u32,
    random: Random,
}

impl Server {
    pub(crate) fn new(nodes: u32) -> Self {
        Self { nodes, random: Random::new(u64::from(nodes)) }
    }

    fn pairs(&self) -> impl Iterator<Item = (u32, u32)> + use<> {
        let nodes = self.nodes;
        (0..nodes).flat_map(move |from| (0..nodes).map(move |memory| (from, memory)))
    }

    /// How many times worse a way is than that to the own node.
    fn times(&self, from: u32, memory: u32) -> f64 {
        let package = self.nodes.div_ceil(2);
        match (from == memory, from / package == memory / package) {
            (true, _) => 1.0,
            (_, true) if from % 2 == memory % 2 => 1.18,
            (_, true) => 1.12,
            _ => 2.1,
        }
    }

    /// A figure some percent around a value.
    fn figure(&mut self, about: f64) -> Figure {
        let median = about * (0.97 + 0.06 * self.random.unit());
        let wide = median * (0.004 + 0.02 * self.random.unit());
        let interval = Interval { low: rounded(median - wide), high: rounded(median + wide) };
        let best = rounded(median * 0.985);
        Figure { median: rounded(median), interval: Some(interval), best, rounds: 9, samples: 63 }
    }

    fn cell(&mut self, (from, memory): (u32, u32), pages: PageKind, about: f64) -> CellReport {
        let placed = Placed {
            on_node: 32_768,
            pages: 32_768,
            huge: Some(if pages == PageKind::Small { Bytes::new(0) } else { Bytes::from_mib(128) }),
            ..Placed::default()
        };
        let disturbed = self.random.unit() < 0.03;
        CellReport {
            from: NodeId::new(from),
            cpus: (from * CPUS..(from + 1) * CPUS).map(CpuId::new).collect(),
            memory: NodeId::new(memory),
            pages,
            figure: Some(self.figure(about)),
            refused: None,
            before: Some(placed.clone()),
            after: Some(placed),
            marks: Marks { samples: 63, ..Marks::default() },
            disturbed,
            again: disturbed,
        }
    }

    fn account(&self) -> Account {
        let conditions = Conditions {
            cpu_model: Some("Example 64-Core Processor".to_owned()),
            kernel: nodewise_machine::KernelRelease::new("6.12.57"),
            ..Conditions::default()
        };
        let last_level = Some(LastLevel {
            claimed: Some(Bytes::from_mib(32)),
            found: Some(Bytes::from_mib(32)),
            together: None,
            is_cut_short: false,
        });
        Account { conditions, seed: 7, took: Duration::from_secs(54), last_level, ..Account::default() }
    }

    fn declared(&self) -> Vec<Declared> {
        let distance = |times: f64| {
            if times > 2.0 {
                32
            } else if times > 1.0 {
                12
            } else {
                10
            }
        };
        let declared = |(from, memory)| Declared {
            from: NodeId::new(from),
            memory: NodeId::new(memory),
            distance: Some(distance(self.times(from, memory))),
            read_latency_ns: None,
            read_gb_per_s: None,
        };
        self.pairs().map(declared).collect()
    }

    pub(crate) fn latency(mut self) -> latency::LatencyReport {
        let mut cells = Vec::new();
        for (pages, walk) in [(PageKind::TransparentHuge, 0.0), (PageKind::Small, 34.0)] {
            for pair in self.pairs() {
                let about = 96.0 * self.times(pair.0, pair.1) + walk;
                cells.push(self.cell(pair, pages, about));
            }
        }
        let declared = self.declared();
        latency::LatencyReport { account: self.account(), size: Bytes::from_mib(128), cells, declared }
    }

    fn way(&mut self, pair: (u32, u32), threads: u32, kernel: Kernel, about: f64) -> TransferReport {
        let mut cell = self.cell(pair, PageKind::TransparentHuge, about);
        cell.cpus = cell.cpus.iter().take(threads as usize).collect();
        let variant = Some("AVX2, 4 streams, prefetch 1 KiB".to_owned());
        TransferReport { kernel, variant, threads: threads as usize, everywhere: false, cell }
    }

    pub(crate) fn bandwidth(mut self) -> bandwidth::BandwidthReport {
        let ways: Vec<(u32, u32)> = self.pairs().collect();
        let rate = |times: f64| 40.0 / if times > 2.0 { 1.9 } else { times.sqrt() };
        let matrix = ways.into_iter().map(|pair| {
            let about = rate(self.times(pair.0, pair.1));
            self.way(pair, CPUS, Kernel::Read, about)
        });
        let matrix = matrix.collect();
        let kernels = Kernel::ALL.into_iter().flat_map(|kernel| {
            let part = if kernel.is_non_temporal() { 1.0 } else { 0.9 };
            [(1, 21.0), (CPUS, 40.0)].map(|(threads, about)| self.way((0, 0), threads, kernel, about * part))
        });
        let kernels = kernels.collect();
        let curve = [(1, 21.0), (2, 34.5), (4, 40.0), (8, 40.2), (16, 40.1)];
        let scaling = curve.map(|(threads, about)| {
            let way = self.way((0, 0), threads, Kernel::Read, 1.0);
            let figure = Figure {
                median: about,
                interval: Some(Interval { low: about - 0.4, high: about + 0.5 }),
                best: about + 0.6,
                rounds: 9,
                samples: 63,
            };
            TransferReport { cell: CellReport { figure: Some(figure), disturbed: false, ..way.cell }, ..way }
        });
        let everywhere = (self.nodes > 1).then(|| {
            let all = f64::from(self.nodes) * 39.0;
            let way = self.way((0, 0), CPUS, Kernel::Read, all);
            TransferReport { everywhere: true, threads: (CPUS * self.nodes) as usize, ..way }
        });
        let declared = self.declared();
        bandwidth::BandwidthReport {
            account: self.account(),
            size: Bytes::from_mib(256),
            kernel: Kernel::Read,
            matrix,
            kernels,
            scaling: scaling.to_vec(),
            everywhere,
            declared,
            yardstick: None,
        }
    }

    /// Two CPUs of each node.
    pub(crate) fn cores(mut self) -> c2c::C2cReport {
        let cpus: Vec<u32> = (0..self.nodes).flat_map(|node| [node * CPUS, node * CPUS + 2]).collect();
        let mut pairs = Vec::new();
        for to in &cpus {
            for from in cpus.iter().filter(|from| *from != to) {
                let (near, far) = (to / CPUS, from / CPUS);
                let (relation, about) = match (near == far, self.times(near, far) < 2.0) {
                    (true, _) => (Relation::Cache, 26.0),
                    (_, true) => (Relation::Package, 105.0),
                    _ => (Relation::Machine, 220.0),
                };
                for (transfer, more) in
                    [(Transfer::HandOver, 1.0), (Transfer::Dirty, 1.1), (Transfer::Clean, 1.2)]
                {
                    pairs.push(PairReport {
                        pair: Pair {
                            to: CpuId::new(*to),
                            from: CpuId::new(*from),
                            home: NodeId::new(near),
                            transfer,
                        },
                        relation,
                        home: Home::Near,
                        figure: Some(self.figure(about * more)),
                        refused: None,
                        before: Some(Placed { on_node: 256, pages: 256, ..Placed::default() }),
                        after: Some(Placed { on_node: 256, pages: 256, ..Placed::default() }),
                        disturbed: false,
                    });
                }
            }
        }
        c2c::C2cReport { account: self.account(), candidates: (CPUS * self.nodes) as usize, pairs }
    }
}

#[test]
fn texts_are_what_a_person_accepted() {
    golden("server-latency-8-nodes-60", text::latency(&Server::new(8).latency(), &Style::plain(60)));
    golden("server-bandwidth-8-nodes-80", text::bandwidth(&Server::new(8).bandwidth(), &Style::plain(80)));
    golden("server-c2c-4-nodes-120", text::c2c(&Server::new(4).cores(), &Style::plain(120)));
}

#[test]
fn texts_fit_their_width() {
    for (nodes, width) in [1, 4, 8].into_iter().flat_map(|nodes| [60, 80, 120].map(|width| (nodes, width))) {
        let style = Style::plain(width);
        for text in [
            text::latency(&Server::new(nodes).latency(), &style),
            text::bandwidth(&Server::new(nodes).bandwidth(), &style),
            text::c2c(&Server::new(nodes).cores(), &style),
        ] {
            for line in text.lines() {
                assert!(line.chars().count() <= width, "{nodes} nodes in {width} columns: {line}");
            }
        }
    }
}

#[test]
fn pictures_are_tidy() {
    for nodes in [1, 4, 8] {
        tidy(&latency_page(&Server::new(nodes).latency()).1).unwrap();
        tidy(&bandwidth_page(&Server::new(nodes).bandwidth()).1).unwrap();
        tidy(&c2c_page(&Server::new(nodes).cores()).1).unwrap();
    }
}
