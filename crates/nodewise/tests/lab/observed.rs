//! A program that others look at: it takes memory in one way, stays, and answers questions on its input, by what it
//! asked the kernel itself. Its reader of `smaps` shares nothing with nodewise.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufRead as _;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::time::Duration;

use nodewise_machine::{Bytes, CpuId, CpuSet, MemPolicy};
use nodewise_source::sample::Moment;
use nodewise_syscall::advice::advise;
use nodewise_syscall::arguments::BindOptions;
use nodewise_syscall::mempolicy;
use nodewise_syscall::shared::{Segment, SegmentPages, SharedMemory};
use nodewise_syscall::{
    Advice, HugePageSize, NodeBuffer, PageKind, PageLocation, Task, Usage, affinity, numbers, pages,
};
use serde_json::{Value, json};

/// Where the kernel keeps the name of a process, and takes another one.
const NAME: &str = "/proc/self/comm";
/// CPU time between two notes of where it was spent.
const SLICE: Duration = Duration::from_millis(10);
/// Bytes from one page that is counted to the next where some are enough: a step that falls on no pattern of a policy.
const SAMPLED: usize = 61 << 12;
/// Slices that a wanderer spends on a CPU.
const STAY: u32 = 4;
/// How often a thread that rests looks whether it is to work.
const REST: Duration = Duration::from_millis(5);

/// The time between two mebibytes of a program that grows, and how many there are where it is not said.
const EACH: Duration = Duration::from_millis(50);
const GROWTH: usize = 96;

/// `MCL_CURRENT` of `include/uapi/asm-generic/mman-common.h`.
const LOCK_CURRENT: i32 = 1;

/// The words of a way to take memory: `key=value`, each at most once.
struct Way(BTreeMap<String, String>);

impl Way {
    fn value(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    fn number<T: std::str::FromStr>(&self, key: &str) -> Option<T> {
        self.value(key).map(|text| text.parse().unwrap_or_else(|_| panic!("{key}={text}: expected a number")))
    }

    fn cpus(&self, key: &str) -> Vec<CpuId> {
        let words = self.value(key).into_iter().flat_map(|text| text.split('+'));
        words.map(|cpu| CpuId::new(cpu.parse().expect("CPUs are numbers"))).collect()
    }

    fn length(&self) -> Bytes {
        Bytes::from_kib(self.number("kib").expect("kib=NUMBER"))
    }
}

/// Its memory.
enum Memory {
    Own(Arc<NodeBuffer>),
    Shared(SharedMemory),
}

impl Memory {
    fn take(way: &Way) -> Self {
        if let Some(key) = way.number::<i32>("segment") {
            let length = way.length().get() as usize;
            let segment = Segment::create(key, length, 0o600, SegmentPages::Small).expect("a segment");
            let memory = SharedMemory::attach(segment).expect("a segment that can be attached");
            let advice = if way.value("sees").is_some() { Advice::PopulateToRead } else { Advice::Populate };
            advise(memory.address(), length, advice).expect("pages for the segment");
            return Self::Shared(memory);
        }
        if let Some(path) = way.value("file") {
            let file = File::open(path).expect("the file can be read");
            // A disk has a length that this call does not know.
            let length = match file.metadata().expect("a file has a length").len() {
                0 => way.length().get(),
                length => length,
            } as usize;
            let memory = SharedMemory::map_to_read(file.as_fd(), 0, length).expect("the file can be mapped");
            advise(memory.address(), length, Advice::PopulateToRead).expect("the file can be read");
            return Self::Shared(memory);
        }
        let kind = match way.value("pages") {
            Some("transparent") => PageKind::TransparentHuge,
            Some("pool") => PageKind::Hugetlb(HugePageSize::MIB_2),
            _ => PageKind::Small,
        };
        let policy: Option<MemPolicy> =
            way.value("policy").map(|text| text.replace('_', " ").parse().expect("a policy"));
        let touch = || {
            let buffer = NodeBuffer::new(way.length(), kind, policy.as_ref()).expect("memory");
            if let Some(late) = way.value("late") {
                let late: MemPolicy = late.replace('_', " ").parse().expect("a policy");
                let length = buffer.length().get() as usize;
                mempolicy::bind_range(buffer.address(), length, &late, BindOptions::default())
                    .expect("a policy for memory");
            }
            Arc::new(buffer)
        };
        let Some(cpu) = way.cpus("touched-on").pop() else { return Self::Own(touch()) };
        let first = std::thread::scope(|scope| {
            let touch = || {
                run_on(cpu);
                touch()
            };
            scope.spawn(touch).join()
        });
        Self::Own(first.expect("a thread that touches"))
    }

    fn place(&self) -> (usize, u64) {
        match self {
            Self::Own(buffer) => (buffer.address(), buffer.length().get()),
            Self::Shared(memory) => (memory.address(), memory.length() as u64),
        }
    }

    /// Memory that can be read while it is worked on.
    fn own(&self) -> Option<Arc<NodeBuffer>> {
        match self {
            Self::Own(buffer) => Some(Arc::clone(buffer)),
            Self::Shared(_) => None,
        }
    }
}

/// Reads a word of every page.
fn read(buffer: &NodeBuffer) {
    for word in buffer.as_words().iter().step_by(512) {
        std::hint::black_box(*word);
    }
}

/// A second buffer as large, which a thread on another CPU touches first; it stays.
fn take_twin(way: &Way, cpu: CpuId) {
    let length = way.length();
    let touch = move || {
        run_on(cpu);
        std::mem::forget(NodeBuffer::new(length, PageKind::Small, None).expect("memory"));
    };
    std::thread::spawn(touch).join().expect("a thread that touches");
}

fn run_on(cpu: CpuId) {
    affinity::set_cpus(Task::CURRENT, &CpuSet::from_iter([cpu])).expect("the CPU can be used");
}

/// How long a thread works on each of its CPUs, in slices, and how long it rests then.
#[derive(Clone, Copy)]
struct Pace {
    stay: u32,
    rest: Duration,
    /// The part of the time that it works, from 0 to 1.
    duty: f64,
}

/// Where CPU time was spent, and whether more is to be.
#[derive(Default)]
struct Work {
    goes_on: AtomicBool,
    /// When each slice ended, its node and its CPU time, both times in seconds.
    slices: Mutex<Vec<(f64, u32, f64)>>,
}

impl Work {
    /// Works whenever it is to, on each of these CPUs in turn, or where it is put; with a rest between times, and for a part
    /// of the time.
    fn spin(&self, cpus: &[CpuId], memory: Option<&NodeBuffer>, pace: Pace) {
        let used = || Usage::of_this_thread().expect("the kernel counts CPU time").cpu_time();
        let mut turn = cpus.iter().cycle();
        loop {
            if !self.goes_on.load(Ordering::Relaxed) {
                std::thread::sleep(REST);
                continue;
            }
            if let Some(cpu) = turn.next().filter(|_| cpus.len() > 1) {
                run_on(*cpu);
            }
            for _ in 0..pace.stay {
                let begun = used();
                while used() - begun < SLICE {
                    memory.into_iter().for_each(read);
                }
                let (_, node) = affinity::current_cpu().expect("the CPU is known");
                let now = Moment::now().since_boot.as_secs_f64();
                let spent = used() - begun;
                let slice = (now, node.number(), spent.as_secs_f64());
                self.slices.lock().unwrap_or_else(PoisonError::into_inner).push(slice);
                std::thread::sleep(spent.mul_f64((1.0 - pace.duty) / pace.duty));
            }
            if !pace.rest.is_zero() {
                std::thread::sleep(pace.rest);
            }
        }
    }

    /// CPU time by node since this was asked last, in seconds; what was asked is forgotten.
    fn spent(&self) -> Value {
        let slices = std::mem::take(&mut *self.slices.lock().unwrap_or_else(PoisonError::into_inner));
        let mut nodes: BTreeMap<String, f64> = BTreeMap::new();
        for (_, node, used) in slices {
            *nodes.entry(node.to_string()).or_default() += used;
        }
        json!({ "nodes": nodes })
    }

    fn answer(&self) -> Value {
        let slices = self.slices.lock().unwrap_or_else(PoisonError::into_inner);
        json!({ "slices": *slices })
    }
}

/// `--observed KEY=VALUE...`: takes memory, prints where, and answers lines until there are no more: `pages`, `sampled` (those of
/// its memory alone, one in some), `time`, `spent`, `work`, `rest`, `grow`, `exhaust`.
///
/// Keys: `name` of the process, `kib`, `pages` (small, transparent, pool), `policy` of the memory (`_` for a blank), a `late` one that is set over its pages, `cpu` of this process, `touched-on` the CPU
/// of the thread that touches the memory, `segment` the key of System V memory, which `sees` only looks at, `file` to
/// map, `wanders` over these CPUs (`0+1`) that the process may use, and `stays` on each for a number of slices, `workers` for a
/// thread on each of these CPUs that it may use, or `unbound`, and with memory of `each` KiB that the thread fills itself,
/// `rests` in ms between spells of work of 40, `duty` the part of the time that it works in percent,
/// `reads` the memory while it works, `twin` the CPU of a thread that touches as much memory again, `growth` in MiB when it is asked
/// to grow, `locked` memory, `tables` in MiB of page tables. Words with other keys are for whoever reads the command line.
pub fn run(words: &[String]) {
    let pair = |word: &String| {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        (key.to_owned(), value.to_owned())
    };
    let way = Way(words.iter().map(pair).collect());
    way.value("name").into_iter().for_each(|name| fs::write(NAME, name).expect("a name can be set"));
    let allowed = affinity::cpus(Task::CURRENT).expect("the CPUs are known");
    let cpus = way.cpus("cpu");
    cpus.first().filter(|cpu| allowed.contains(**cpu)).into_iter().for_each(|cpu| run_on(*cpu));
    let memory = Memory::take(&way);
    if way.value("locked").is_some() {
        numbers::mlockall(LOCK_CURRENT).expect("memory can be locked");
    }
    let _tables = way.number("tables").map(tables);
    way.cpus("twin").into_iter().for_each(|cpu| take_twin(&way, cpu));
    let work = Arc::new(Work::default());
    let read = memory.own().filter(|_| way.value("reads").is_some());
    start_workers(&way, &allowed, &work, read.as_ref());
    let (address, length) = memory.place();
    println!("{}", json!({ "pid": std::process::id(), "address": address, "length": length }));
    for line in std::io::stdin().lock().lines() {
        let answer = match line.expect("questions are text").as_str() {
            "pages" => own_pages(),
            "sampled" => json!({ "nodes": located(address, length as usize, SAMPLED) }),
            "time" => work.answer(),
            "spent" => work.spent(),
            word @ ("work" | "rest") => {
                work.goes_on.store(word == "work", Ordering::Relaxed);
                json!({})
            }
            "grow" => {
                let mebibytes = way.number("growth").unwrap_or(GROWTH);
                std::thread::spawn(move || grow(mebibytes));
                json!({})
            }
            "exhaust" => {
                std::thread::spawn(exhaust);
                json!({})
            }
            other => panic!("{other:?} is no question"),
        };
        println!("{answer}");
    }
}

/// Address space with this much of page tables, in MiB: one page of it is read for each table, and none has memory.
fn tables(mebibytes: u64) -> NodeBuffer {
    const TABLE: u64 = 4 << 10;
    const REACH: u64 = 2 << 20;
    let length = Bytes::new((mebibytes << 20) / TABLE * REACH);
    let buffer = NodeBuffer::reserve(length, PageKind::Small, None).expect("address space");
    buffer.as_words().iter().step_by(REACH as usize / 8).for_each(|word| {
        std::hint::black_box(*word);
    });
    buffer
}

/// Starts the threads that work: one, or one for each CPU that is named. Each has its memory before they go on.
fn start_workers(way: &Way, allowed: &CpuSet, work: &Arc<Work>, memory: Option<&Arc<NodeBuffer>>) {
    let pace = Pace {
        stay: way.number("stays").unwrap_or(STAY),
        rest: Duration::from_millis(way.number("rests").unwrap_or(0)),
        duty: way.number("duty").unwrap_or(100.0) / 100.0,
    };
    let own: Vec<Option<CpuId>> = way.cpus("workers").into_iter().map(Some).collect();
    let cpus = if own.is_empty() { vec![None] } else { own };
    let wanders: Vec<CpuId> = way.cpus("wanders").into_iter().filter(|cpu| allowed.contains(*cpu)).collect();
    let each: Option<u64> = way.number("each");
    let ready = Arc::new(Barrier::new(cpus.len() + 1));
    for cpu in cpus {
        let (work, ready) = (Arc::clone(work), Arc::clone(&ready));
        let (wanders, memory) = (wanders.clone(), memory.cloned());
        let cpu = cpu.filter(|cpu| allowed.contains(*cpu) && way.value("unbound").is_none());
        std::thread::spawn(move || {
            cpu.into_iter().for_each(run_on);
            let own = each.map(|kib| {
                Arc::new(NodeBuffer::new(Bytes::from_kib(kib), PageKind::Small, None).expect("memory"))
            });
            ready.wait();
            work.spin(&wanders, own.or(memory).as_deref(), pace);
        });
    }
    ready.wait();
}

/// Takes memory for as long as the program lives, up to a limit.
fn grow(mebibytes: usize) {
    let mut taken = Vec::new();
    while taken.len() < mebibytes {
        taken.push(NodeBuffer::new(Bytes::from_mib(1), PageKind::Small, None).expect("memory"));
        std::thread::sleep(EACH);
    }
    // What was taken stays.
    std::mem::forget(taken);
}

/// Takes memory under the policy of the whole process until the kernel kills it: of the node where it runs alone.
fn exhaust() {
    let (_, node) = affinity::current_cpu().expect("the CPU is known");
    let bind: MemPolicy = format!("bind:{node}").parse().expect("a policy");
    let mut taken = Vec::new();
    loop {
        taken.push(NodeBuffer::new(Bytes::from_mib(1), PageKind::Small, Some(&bind)).expect("memory"));
    }
}

/// A mapping of `smaps`, as far as it matters here.
#[derive(Default)]
struct Range {
    start: usize,
    end: usize,
    name: String,
    page_kib: usize,
    huge_kib: u64,
    /// A reserve of address space has none, by the kernel's count.
    has_pages: bool,
}

/// Every mapping that may have pages, with the pages that `move_pages(2)` finds, by node.
fn own_pages() -> Value {
    let text = fs::read_to_string("/proc/self/smaps").expect("the own smaps");
    let mut ranges: Vec<Range> = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        if let Some((start, end)) = first.split_once('-') {
            let address = |text| usize::from_str_radix(text, 16).expect("addresses are hexadecimal");
            let name = words.skip(3).collect::<Vec<_>>().join(" ");
            ranges.push(Range { start: address(start), end: address(end), name, ..Range::default() });
        } else if let Some(range) = ranges.last_mut() {
            match first {
                "KernelPageSize:" => range.page_kib = second.parse().expect("a size is a number"),
                "Rss:" | "Shared_Hugetlb:" | "Private_Hugetlb:" => range.has_pages |= second != "0",
                "AnonHugePages:" => range.huge_kib = second.parse().expect("a size is a number"),
                _ => {}
            }
        }
    }
    let mappings: Vec<Value> = ranges.iter().filter(|range| range.has_pages).map(counted).collect();
    json!({ "mappings": mappings })
}

/// Pages by node, of every `step` bytes of a range. Guests are emulated: nothing but a sum is kept for each page.
fn located(start: usize, length: usize, step: usize) -> BTreeMap<u32, u64> {
    let mut counts: Vec<u64> = Vec::new();
    pages::locate(Task::CURRENT, pages::addresses(start, length, step), |_, location| {
        if let PageLocation::Node(node) = location {
            let at = node.number() as usize;
            if counts.len() <= at {
                counts.resize(at + 1, 0);
            }
            counts[at] += 1;
        }
    })
    .expect("pages can be located");
    (0..).zip(counts).filter(|(_, count)| *count > 0).collect()
}

fn counted(range: &Range) -> Value {
    let step = range.page_kib << 10;
    let pages = located(range.start, range.end - range.start, step);
    let nodes: BTreeMap<String, u64> =
        pages.into_iter().map(|(node, count)| (node.to_string(), count * step as u64)).collect();
    json!({
        "start": format!("{:x}", range.start),
        "name": range.name,
        "huge_bytes": range.huge_kib << 10,
        "nodes": nodes,
    })
}
