//! How long the model takes, and how that grows: `cargo bench -p nodewise-model` prints a curve for each
//! kind of work, and fails when the largest size takes longer than its goal.

#![expect(clippy::print_stdout, reason = "a benchmark tells its figures")]

use std::hint::black_box;
use std::ops::Range;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use nodewise_machine::{Machine, MemPolicy, NodeId, NodeSet, spec};
use nodewise_model::migrate::Present;
use nodewise_model::oracle::Task;
use nodewise_model::oracle::task::Surroundings;
use nodewise_model::policy::interleave::InterleavePosition;
use nodewise_model::policy::set::Scope;
use nodewise_model::simulate::{Act, Backing, GroupLimits, Mapping, Part, Simulation};
use nodewise_model::walk::{Class, Request};
use nodewise_model::{BuiltAt, FallbackOrders, Memory, Policy, Release, Weights};

/// The least of several runs: what the work costs when nothing else is in the way.
fn least(runs: u32, mut work: impl FnMut()) -> Duration {
    let timed = (0..runs).map(|_| {
        let start = Instant::now();
        work();
        start.elapsed()
    });
    timed.min().unwrap_or_default()
}

fn machine(text: &str) -> Machine {
    spec::machine(text).expect("the spec is right")
}

fn policy(text: &str, allowed: &NodeSet) -> Policy {
    let policy: MemPolicy = text.parse().expect("the kernel's words");
    let scope = Scope { allowed, max_nodes: 1024, release: Release::REFERENCE };
    Policy::from_mem_policy(&policy, scope).expect("the kernel takes it")
}

/// Pages of a program on a CPU of node 0.
fn request<'a>(policy: &'a Policy, weights: &'a Weights, allowed: &'a NodeSet, pages: u64) -> Request<'a> {
    let place = InterleavePosition::Address(1 << 40);
    let cpu_node = NodeId::new(0);
    Request { policy, weights, cpu_node, allowed, pages, order: 0, place, class: Class::User }
}

/// A curve: what the sizes are, and how long each took.
struct Curve {
    what: String,
    /// The most that the largest size may take.
    goal: Duration,
    points: Vec<(u64, Duration)>,
}

impl Curve {
    fn new(what: String, goal: Duration, sizes: &[u64], mut time: impl FnMut(u64) -> Duration) -> Self {
        Self { what, goal, points: sizes.iter().map(|size| (*size, time(*size))).collect() }
    }

    /// The exponent with which time grows between the first size and the last: 0 is not at all, 1 in
    /// proportion.
    fn exponent(&self) -> f64 {
        let ends = self.points.first().zip(self.points.last());
        ends.map_or(f64::NAN, |((size, time), (last_size, last_time))| {
            (last_time.as_secs_f64() / time.as_secs_f64()).ln() / (*last_size as f64 / *size as f64).ln()
        })
    }

    /// Prints it; says whether its goal was reached.
    fn print(&self) -> bool {
        println!("{}", self.what);
        for (size, time) in &self.points {
            println!("  {size:>9}  {:>9}", format!("{time:.1?}"));
        }
        let reached = self.points.last().is_some_and(|(_, time)| *time <= self.goal);
        let word = if reached { "reached" } else { "MISSED" };
        println!("  grows as size^{:.2}; goal {:?} {word}", self.exponent(), self.goal);
        reached
    }
}

const POLICIES: [&str; 6] =
    ["default", "prefer:3", "bind:0-7", "prefer (many):2-5", "interleave:0-7", "weighted interleave:0-7"];

fn weights() -> Weights {
    (0..8).map(|node| (NodeId::new(node), node + 1)).collect()
}

/// One request under a policy, on eight nodes that it nearly fills.
fn one_request(text: &str) -> Curve {
    let what = format!("GiB of 4 KiB pages in one request, 8 nodes, {text}");
    Curve::new(what, Duration::from_millis(50), &[16, 64, 256, 1024], |gib| {
        let machine = machine(&format!("8x(16c {}G)", gib / 8 + 8));
        let allowed = machine.nodes_with_memory();
        let memory = Memory::from_machine(&machine, BuiltAt::Boot, Release::REFERENCE);
        let policy = policy(text, &allowed);
        least(20, || {
            black_box(memory.clone().allocate(&request(&policy, &weights(), &allowed, gib << 18)));
        })
    })
}

/// Many requests of 16 pages each, by a program that keeps its route.
fn many_requests(text: &str) -> Curve {
    let machine = machine("8x(16c 512G)");
    let allowed = machine.nodes_with_memory();
    let policy = policy(text, &allowed);
    let weights = weights();
    let request = request(&policy, &weights, &allowed, 16);
    let what = format!("requests of 16 pages, 8 nodes, {text}");
    Curve::new(what, Duration::from_millis(500), &[1000, 10_000, 100_000, 1_000_000], |count| {
        least(3, || {
            let mut memory = Memory::from_machine(&machine, BuiltAt::Boot, Release::REFERENCE);
            let mut route = memory.route(&request);
            for at in 0..count {
                black_box(memory.allocate_along(&mut route, 16, request.place.after(16 * at)));
            }
        })
    })
}

fn orders() -> Curve {
    let what = "nodes whose fallback orders are built".to_owned();
    Curve::new(what, Duration::from_secs(2), &[16, 64, 256, 1024], |nodes| {
        let machine = machine(&format!("{nodes}x(1c 1G)"));
        least(3, || {
            black_box(FallbackOrders::from_machine(&machine, BuiltAt::Boot));
        })
    })
}

/// A program whose pages are touched and then moved, each on its own: what drawn scripts cost.
fn pages_of_a_program() -> Curve {
    let machine = machine("8x(16c 512G)");
    let around = Surroundings { weights: weights(), ..Surroundings::new(&machine, Release::REFERENCE) };
    let (interleaved, bound) = ("interleave:0-7".parse(), "bind:0-3".parse());
    let interleaved: MemPolicy = interleaved.expect("the kernel's words");
    let bound: MemPolicy = bound.expect("the kernel's words");
    let what = "pages of a program, touched one by one, and half of them moved by mbind".to_owned();
    Curve::new(what, Duration::from_secs(5), &[100, 1000, 10_000, 100_000], |pages| {
        least(3, || {
            let mut memory = Memory::from_machine(&machine, BuiltAt::Boot, Release::REFERENCE);
            let mut task = Task::new(around.clone(), NodeId::new(0));
            task.map(0..pages);
            task.set_policy(&interleaved).expect("the nodes are there");
            (0..pages).for_each(|page| assert!(task.touch(page, &mut memory).is_some()));
            task.bind(0..pages, &bound, Present::Move, &mut memory).expect("the pages are there");
            black_box(task);
        })
    })
}

/// A machine without programs, and nodes on which one may start.
fn simulation(machine: &Machine) -> (Simulation, NodeSet) {
    let memory = Memory::from_machine(machine, BuiltAt::Boot, Release::REFERENCE);
    let simulation = Simulation::new(memory, weights(), 1024, Release::REFERENCE).on(machine);
    (simulation, machine.nodes_with_memory())
}

fn start(policy: &str, cpu_node: u32, allowed: &NodeSet) -> Act {
    let policy = policy.parse().expect("the kernel's words");
    Act::Start { cpu_node: NodeId::new(cpu_node), policy, allowed: allowed.clone() }
}

fn allocate(region: &str, pages: u64) -> Act {
    Act::Allocate(Mapping {
        region: region.to_owned(),
        pages,
        backing: Backing::Small,
        policy: None,
        first_page: None,
    })
}

/// Plays a step, which the kernel takes.
fn play(simulation: &mut Simulation, program: &str, act: &Act) {
    let step = simulation.play(program, act).expect("the step makes sense");
    assert_eq!(step.refused, None);
    black_box(step);
}

/// One program that takes memory, moves it, and ends: what that costs by how much memory it is.
fn simulated_memory() -> Curve {
    let what = "GiB that a simulated program takes in turns, moves to four nodes, and gives back".to_owned();
    Curve::new(what, Duration::from_millis(50), &[16, 64, 256, 1024], |gib| {
        let machine = machine(&format!("8x(16c {}G)", gib + 8));
        let (empty, allowed) = simulation(&machine);
        let (old, new) =
            (NodeSet::range(NodeId::new(4), NodeId::new(7)), NodeSet::range(NodeId::new(0), NodeId::new(3)));
        least(20, || {
            let mut simulation = empty.clone();
            let steps = [
                start("interleave:0-7", 0, &allowed),
                allocate("heap", gib << 18),
                Act::Migrate { old: old.clone(), new: new.clone() },
                Act::End,
            ];
            steps.iter().for_each(|act| play(&mut simulation, "one", act));
        })
    })
}

/// Many programs that start, take memory in two regions, give one back, and end.
fn simulated_programs() -> Curve {
    let machine = machine("8x(16c 512G)");
    let what = "simulated programs, each with six steps, all of which run at once".to_owned();
    Curve::new(what, Duration::from_secs(1), &[10, 100, 1000], |programs| {
        let (empty, allowed) = simulation(&machine);
        let names: Vec<String> = (0..programs).map(|number| number.to_string()).collect();
        least(3, || {
            let mut simulation = empty.clone();
            for (name, node) in names.iter().zip((0..8).cycle()) {
                play(&mut simulation, name, &start("default", node, &allowed));
                play(&mut simulation, name, &allocate("heap", 5000));
                play(&mut simulation, name, &allocate("cache", 3000));
            }
            for name in &names {
                play(&mut simulation, name, &Act::Free { region: "cache".to_owned() });
                play(&mut simulation, name, &Act::RunOn(NodeId::new(1)));
                play(&mut simulation, name, &Act::End);
            }
        })
    })
}

/// A part of a program's heap.
fn touch(pages: Range<u64>) -> Act {
    Act::Touch(Part { region: "heap".to_owned(), pages: Some(pages) })
}

/// Threads of each process of a server.
const THREADS: u32 = 4;

/// A server of 1 TiB for an hour: processes of 1 GiB, half of them in control groups with limits. Every minute each process
/// answers requests in memory that comes and goes, its threads write to their parts of the heap and go to other nodes, and
/// pages follow them.
fn hour_of_a_server() -> Curve {
    let machine = machine("8x(32c 128G)");
    let what = format!("processes, each with {THREADS} threads, an hour of a server of 8 nodes with 1 TiB");
    Curve::new(what, Duration::from_secs(1), &[50, 100, 200, 500], |processes| {
        let (empty, allowed) = simulation(&machine);
        let thread = |process: u64, number: u32| format!("{process}/{number}");
        let names: Vec<(String, Vec<String>)> = (0..processes)
            .map(|process| {
                (process.to_string(), (1..THREADS).map(|number| thread(process, number)).collect())
            })
            .collect();
        least(3, || {
            let mut simulation = empty.clone();
            let limits = GroupLimits { max: Some(200 << 18), ..GroupLimits::default() };
            for group in ["g0", "g1"] {
                let act = Act::Limit { group: group.to_owned(), parent: None, limits: limits.clone() };
                play(&mut simulation, "", &act);
            }
            for (number, (name, threads)) in names.iter().enumerate() {
                play(&mut simulation, name, &start("default", number as u32 % 8, &allowed));
                if let group @ ("g0" | "g1") = ["g0", "g1", "", ""][number % 4] {
                    play(&mut simulation, name, &Act::Join { group: group.to_owned() });
                }
                play(&mut simulation, name, &allocate("heap", 1 << 18));
                for thread in threads {
                    play(&mut simulation, name, &Act::StartThread { name: thread.clone() });
                }
            }
            for minute in 0..60 {
                for (number, (name, threads)) in names.iter().enumerate() {
                    play(&mut simulation, name, &allocate("requests", 5000));
                    for (thread, own) in threads.iter().zip(1..) {
                        let node = NodeId::new((number as u32 + minute * u32::from(own == 1)) % 8);
                        play(&mut simulation, thread, &Act::RunOn(node));
                        play(&mut simulation, thread, &touch(own << 16..(own + 1) << 16));
                    }
                    play(&mut simulation, name, &Act::Balance);
                    play(&mut simulation, name, &Act::Free { region: "requests".to_owned() });
                }
            }
        })
    })
}

/// Forks with what follows each of them; `follows` is given a play of steps, and the number of the child.
fn forks(what: &str, follows: impl Fn(&mut dyn FnMut(u64, Act), u64)) -> Curve {
    let machine = machine("8x(16c 128G)");
    Curve::new(format!("forks {what}"), Duration::from_secs(20), &[1000, 10_000, 100_000], |forks| {
        let (empty, allowed) = simulation(&machine);
        least(1, || {
            let mut simulation = empty.clone();
            play(&mut simulation, "0", &start("default", 0, &allowed));
            play(&mut simulation, "0", &allocate("heap", 64 << 18));
            let mut played = |program: u64, act: Act| play(&mut simulation, &program.to_string(), &act);
            (1..=forks).for_each(|child| follows(&mut played, child));
        })
    })
}

/// The fork of a child, whose name is its number.
fn fork(child: u64) -> Act {
    Act::Fork { child: child.to_string() }
}

/// Children that live on.
fn living_forks() -> Curve {
    forks(
        "whose children live on, each followed by writes of both to another part of the memory",
        |play, child| {
            play(0, fork(child));
            play(child, touch(child << 6..(child + 1) << 6));
            play(0, touch(child << 7..(child << 7) + 64));
        },
    )
}

/// Children that live on, and that write to what the parent has written to.
fn forks_of_a_part() -> Curve {
    forks(
        "whose children live on, each followed by writes of both to one part of the memory",
        |play, child| {
            play(0, fork(child));
            play(child, touch(0..64));
            play(0, touch(0..64));
        },
    )
}

/// Children that end.
fn ending_forks() -> Curve {
    forks("whose children end after writes of both to another part of the memory", |play, child| {
        play(0, fork(child));
        play(child, touch(child << 6..(child + 1) << 6));
        play(0, touch(child << 7..(child << 7) + 64));
        play(child, Act::End);
    })
}

/// Children that fork two children each, and write.
fn tree_of_forks() -> Curve {
    forks(
        "in a tree, two of each child, each followed by a write of the child to another part of the memory",
        |play, child| {
            play((child - 1) / 2, fork(child));
            play(child, touch(child << 6..(child + 1) << 6));
        },
    )
}

/// Children that fork one child each, write, and live on.
fn chain_of_forks() -> Curve {
    forks("in a chain, each followed by a write of the child to another part of the memory", |play, child| {
        play(child - 1, fork(child));
        play(child, touch(child << 6..(child + 1) << 6));
    })
}

/// Times some work.
type Work = fn() -> Curve;

/// Work by name.
const WORK: [(&str, Work); 10] = [
    ("orders", orders),
    ("pages", pages_of_a_program),
    ("memory", simulated_memory),
    ("programs", simulated_programs),
    ("hour", hour_of_a_server),
    ("forks", living_forks),
    ("forks", forks_of_a_part),
    ("forks", ending_forks),
    ("forks", tree_of_forks),
    ("forks", chain_of_forks),
];

/// Times all work, or that which is named: `requests` for those of each policy.
fn main() -> ExitCode {
    // Cargo adds an option of its own.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_wanted = |name: &str| words.is_empty() || words.iter().any(|word| word == name);
    let policies = POLICIES.into_iter().filter(|_| is_wanted("requests"));
    let requests = policies.clone().map(one_request).chain(policies.map(many_requests));
    let work = WORK.into_iter().filter(|(name, _)| is_wanted(name)).map(|(_, time)| time());
    // Every curve is printed, also behind one that missed its goal.
    let missed = requests.chain(work).filter(|curve| !curve.print()).count();
    if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
