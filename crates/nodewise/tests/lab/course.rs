//! A program whose memory is on another node: it touches its pages at a rate of its own CPU time, and waits after a while for
//! others to count how many have become local.

use std::io::BufRead as _;
use std::time::Duration;

use nodewise_machine::{Bytes, CpuId, CpuSet, MemPolicy, NodeId, NodeSet, PolicyMode};
use nodewise_stats::random::Random;
use nodewise_syscall::{NodeBuffer, PageKind, Task, affinity, mempolicy};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

/// The word of this role.
pub const PROGRAM: &str = "--course";
/// Touches between two looks at the clock.
const AT_ONCE: u64 = 16;
/// Turns of the loop that spends time between two looks: a look is a system call, which an emulator is slow at.
const TURNS: u64 = 400;
/// The least time between two looks at the clock that can be a scan that matters: half a tick.
const GAP: Duration = Duration::from_millis(2);
const PAGE: usize = 4096;

/// The words behind [`PROGRAM`].
pub struct Words {
    pub kib: u64,
    /// The node that has the memory, and the CPU that works with it.
    pub memory: NodeId,
    pub cpu: CpuId,
    /// Whether a thread is started for the work.
    pub is_started: bool,
    pub sweeps: bool,
    /// Touches in a second of CPU time.
    pub rate: f64,
    pub seed: u64,
    /// CPU time at which pages are counted.
    pub times: Vec<Duration>,
}

impl Words {
    pub fn write(&self) -> Vec<String> {
        let times: Vec<String> = self.times.iter().map(|time| time.as_millis().to_string()).collect();
        let switches = [self.is_started, self.sweeps].map(|is| is.to_string());
        [PROGRAM.to_owned(), self.kib.to_string(), self.memory.to_string(), self.cpu.to_string()]
            .into_iter()
            .chain(switches)
            .chain([self.rate.to_string(), self.seed.to_string(), times.join("+")])
            .collect()
    }

    fn read(words: &[String]) -> Self {
        let millis = |text: &str| Duration::from_millis(text.parse().expect("a time"));
        Self {
            kib: words[0].parse().expect("a size"),
            memory: NodeId::new(words[1].parse().expect("a node")),
            cpu: CpuId::new(words[2].parse().expect("a CPU")),
            is_started: words[3] == "true",
            sweeps: words[4] == "true",
            rate: words[5].parse().expect("a rate"),
            seed: words[6].parse().expect("a seed"),
            times: words[7].split('+').map(millis).collect(),
        }
    }
}

fn run_on(cpu: CpuId) {
    affinity::set_cpus(Task::CURRENT, &CpuSet::from_iter([cpu])).expect("the CPU can be used");
}

/// CPU time of this thread.
fn spent() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Works without touching memory of its own.
fn spin() {
    (0..TURNS).for_each(|turn| {
        std::hint::black_box(turn);
    });
}

/// Prints a line, and waits for one: without CPU time, by which scans go.
fn wait(line: &dyn std::fmt::Display) {
    println!("{line}");
    std::io::stdin().lock().read_line(&mut String::new()).expect("a line");
}

/// Takes memory, prints a line, and works once it reads one. It waits again at each time, so that its pages can be counted.
pub fn run(words: &[String]) {
    let words = Words::read(words);
    run_on(words.cpu);
    // The policy of the thread does not stay with its pages: balancing may move them.
    let bound = MemPolicy::new(PolicyMode::Bind, NodeSet::from_iter([words.memory]));
    mempolicy::set_thread_policy(&bound).expect("the node has memory");
    let buffer = NodeBuffer::new(Bytes::from_kib(words.kib), PageKind::Small, None).expect("memory");
    mempolicy::set_thread_policy(&MemPolicy::DEFAULT).expect("no policy");
    let (_, here) = affinity::current_cpu().expect("the CPU is known");
    // The period of the first scans follows from what is resident then: by the end there is more. A thread's stack comes later.
    let address = buffer.address();
    let sizes = (!words.is_started).then(|| [scanned_below(address, Some(here)), resident_pages()]);
    let others = if words.is_started { Others::default() } else { Others::until_now() };
    // Balancing is switched on while the program waits.
    let before = spent();
    wait(&format_args!("{} {address:x} {here}", std::process::id()));
    if words.is_started {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                run_on(words.cpu);
                work(&words, &buffer, Duration::ZERO, sizes, others);
            });
        });
    } else {
        work(&words, &buffer, before, sizes, others);
    }
}

/// Works from a CPU time of its thread on; with the pages that are scanned before the memory, and resident ones, if these are known, and
/// what others have taken from the thread until then.
fn work(words: &Words, buffer: &NodeBuffer, before: Duration, sizes: Option<[u64; 2]>, others: Others) {
    let count = buffer.length().get() / PAGE as u64;
    let mut random = Random::stream(words.seed, u64::from(words.sweeps) + 1);
    let start = random.below(count);
    // What was due before it begins is left out.
    let begin = (spent() - before).as_secs_f64();
    let mut touched = (begin * words.rate) as u64;
    let (mut gaps, mut behind, mut last, mut usual) = (Vec::new(), 0, None, Duration::MAX);
    // Time between looks without a scan, and how many there are.
    let (mut short, mut looks) = (Duration::ZERO, 0);
    for time in &words.times {
        loop {
            spin();
            let now = spent() - before;
            if let Some(last) = last.replace(now) {
                let gap = now - last;
                usual = usual.min(gap);
                if gap >= GAP {
                    gaps.push([last, gap]);
                } else {
                    short += gap;
                    looks += 1;
                }
            }
            let due = (now.min(*time).as_secs_f64() * words.rate) as u64;
            behind = behind.max(due - touched);
            for _ in 0..(due - touched).min(AT_ONCE) {
                // Faults take time, too.
                last = None;
                let page = if words.sweeps { (start + touched) % count } else { random.below(count) };
                std::hint::black_box(buffer.as_words()[page as usize * (PAGE / 8)]);
                touched += 1;
            }
            if now >= *time && touched >= due {
                wait(&"count");
                last = None;
                break;
            }
        }
    }
    // A program that touches pages all the time has no such looks.
    let usual = if looks > 0 { usual } else { Duration::ZERO };
    let gaps = gaps.iter().map(|[at, gap]| [*at, *gap - usual].map(|time| time.as_secs_f64()));
    let gaps: Vec<[f64; 2]> = gaps.collect();
    let worked = spent() - before;
    let now = Others::until_now();
    let [below, resident] =
        sizes.unwrap_or_else(|| [scanned_below(buffer.address(), None), resident_pages()]);
    let result = json!({
        "first_page": buffer.address() / PAGE,
        "below_pages": below,
        "resident_pages": resident,
        "unused_above": unused_above(buffer),
        "before_s": before.as_secs_f64(),
        "begin_s": begin,
        "start": start,
        "gaps_s": gaps,
        "usual_s": usual.as_secs_f64(),
        "mean_s": short.as_secs_f64() / f64::from(looks.max(1)),
        "worked_s": worked.as_secs_f64(),
        "turns": now.turns - others.turns,
        "waited_s": (now.waited - others.waited).as_secs_f64(),
        "behind": behind,
    });
    println!("{result}");
}

/// How often other threads have taken the CPU from this one, and for how long it has waited for it.
#[derive(Clone, Copy, Default)]
struct Others {
    turns: u64,
    waited: Duration,
}

impl Others {
    fn until_now() -> Self {
        let read = |name: &str| {
            std::fs::read_to_string(format!("/proc/thread-self/{name}")).expect("the thread's own file")
        };
        let (status, schedstat) = (read("status"), read("schedstat"));
        let turns = status.lines().find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"));
        let waited = schedstat.split_whitespace().nth(1).and_then(|nanos| nanos.parse().ok());
        Self {
            turns: turns.and_then(|turns| turns.trim().parse().ok()).expect("a number of switches"),
            waited: waited.map(Duration::from_nanos).expect("a time"),
        }
    }
}

/// Pages of this process, those of files included.
fn resident_pages() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("the own statm");
    text.split_whitespace().nth(1).and_then(|pages| pages.parse().ok()).expect("resident pages")
}

/// Pages at lower addresses that scans of balancing look at: mappings with pages, but for files that are only read. In a
/// process with one thread, scans leave out the pages of its `own` node.
fn scanned_below(address: usize, own: Option<NodeId>) -> u64 {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("the own maps");
    let numa_maps = std::fs::read_to_string("/proc/self/numa_maps").expect("the own numa_maps");
    let number = |text: &str| usize::from_str_radix(text, 16).expect("an address");
    let left_out = own.map(|node| format!("N{node}="));
    // What begins at an address has pages that are marked.
    let has_marked = |start: usize| {
        let mut lines = numa_maps.lines().filter_map(|line| line.split_once(' '));
        let rest = lines.find(|(first, _)| number(first) == start).map_or("", |(_, rest)| rest);
        rest.split(' ')
            .filter(|word| is_count_of_node(word))
            .any(|word| left_out.as_ref().is_none_or(|left_out| !word.starts_with(left_out.as_str())))
    };
    let mut sum = 0;
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        if let Some((start, end)) = first.split_once('-') {
            let [start, end] = [start, end].map(number);
            let is_file = words.nth(2).is_some_and(|inode| inode != "0");
            let can_write = second.contains('w');
            let is_scanned = end <= address && !second.starts_with("---") && (can_write || !is_file);
            sum += if is_scanned && has_marked(start) { end - start } else { 0 };
        }
    }
    (sum / PAGE) as u64
}

/// Mappings at higher addresses that scans of balancing look at. The thread works with the memory alone.
fn unused_above(buffer: &NodeBuffer) -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("the own maps");
    let end = buffer.address() + buffer.length().get() as usize;
    let is_scanned = |line: &&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let start = words[0].split('-').next().and_then(|start| usize::from_str_radix(start, 16).ok());
        let (can_write, is_file) = (words[1].contains('w'), words[4] != "0");
        // Times of the vDSO are pages of no file that the kernel maps itself.
        let is_special = words.get(5).is_some_and(|name| name.starts_with("[vvar") || *name == "[vsyscall]");
        start.is_some_and(|start| start >= end)
            && !words[1].starts_with("---")
            && (can_write || !is_file)
            && !is_special
    };
    maps.lines().filter(is_scanned).count()
}

/// `N1=20`: how many pages are on a node.
fn is_count_of_node(word: &str) -> bool {
    word.strip_prefix('N').is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit()))
}
