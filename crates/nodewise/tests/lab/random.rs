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

/// A machine, as a spec: two to five nodes, some without CPUs, of different sizes, at any legal
/// distances.
pub fn machine(seed: u64) -> String {
    let mut random = Random::new(seed);
    let nodes = 2 + random.below(4);
    let mut parts = Vec::new();
    for node in 0..nodes {
        // The lab gives its guests 2 GiB in blocks of 128 MiB.
        let size = 256 + 128 * random.below(2);
        let cpus = if node == 0 || random.percent(50) { "1c " } else { "" };
        parts.push(format!("({cpus}{size}M)"));
    }
    let far = [11, 12, 17, 20, 21, 28, 31, 40, 80, 254];
    let row = |row: u64, random: &mut Random| {
        let cell = |column: u64, random: &mut Random| if row == column { 10 } else { random.one(&far) };
        (0..nodes).map(|column| cell(column, random).to_string()).collect::<Vec<_>>().join(",")
    };
    let rows: Vec<String> = (0..nodes).map(|at| row(at, &mut random)).collect();
    format!("{}; dist={}", parts.join(" "), rows.join("/"))
}
