//! Numbers for drawn machines and scripts: the same from the same seed, on every machine.

/// A generator of numbers (xorshift64*); good enough to draw cases, and for nothing else.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        // Neighbouring seeds are to give different numbers from the beginning, and zero gives none.
        Self(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below a bound.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Yes in so many of a hundred cases.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of several.
    pub fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

/// Memory that drawn machines have, in MiB: what the lab gives its guests.
const MEMORY: u64 = 2048;

/// A machine, as a spec, and words for its kernel's command line: one to eight nodes of different sizes,
/// some without CPUs or without memory, at any legal distances, and some of them cut into emulated nodes.
pub fn machine(seed: u64) -> (String, Option<String>) {
    let mut random = Random::new(seed);
    let nodes = 1 + random.below(8);
    // Linux numbers nodes with CPUs first.
    let with_cpus = 1 + random.below(nodes);
    let mut left = MEMORY;
    let mut parts = Vec::new();
    for node in 0..nodes {
        // The lab gives memory in blocks of 128 MiB; every node after this one may need 256.
        let spare = left - 256 * (nodes - node);
        let size = if nodes == 1 { 1024 } else { 256 + 128 * random.below(spare.min(256) / 128 + 1) };
        let bare = (2..with_cpus).contains(&node) && random.percent(20);
        let cpus = if node < with_cpus { "1c" } else { "" };
        left -= if bare { 0 } else { size };
        let memory = if bare { String::new() } else { format!("{size}M") };
        parts.push(format!("({})", [cpus, &memory].join(" ").trim()));
    }
    let far = [11, 12, 17, 20, 21, 28, 31, 40, 80, 254];
    let row = |row: u64, random: &mut Random| {
        let cell = |column: u64, random: &mut Random| if row == column { 10 } else { random.one(&far) };
        (0..nodes).map(|column| cell(column, random).to_string()).collect::<Vec<_>>().join(",")
    };
    let rows: Vec<String> = (0..nodes).map(|at| row(at, &mut random)).collect();
    let distances = if nodes == 1 { String::new() } else { format!("; dist={}", rows.join("/")) };
    let fake = (nodes == 1 || random.percent(20)).then(|| {
        let form = random.one(&["2", "3", "4", "5", "256M", "384M", "2U"]);
        format!("numa=fake={form}")
    });
    (format!("{}{distances}", parts.join(" ")), fake)
}
