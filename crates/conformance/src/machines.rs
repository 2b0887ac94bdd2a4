//! Machines, drawn: the same from the same seed.

use crate::random::Random;

/// Memory that drawn machines have, in MiB: what the lab gives its guests.
const MEMORY: u64 = 2048;

/// A machine that was drawn.
pub struct Drawn {
    /// Its spec.
    pub spec: String,
    /// Words for its kernel's command line.
    pub append: Option<String>,
    /// Words for QEMU.
    pub qemu: Option<String>,
}

/// A host bridge and a window that CXL memory could come into later: a node without memory till then.
const WINDOW: &str = "-machine cxl=on -device pxb-cxl,id=cxl.1,bus=pcie.0,bus_nr=52 \
                      -machine cxl-fmw.0.targets.0=cxl.1,cxl-fmw.0.size=4G";

/// A machine that a device tree can describe: without tiers, windows for CXL memory or emulated nodes, for
/// which Debian's kernel for arm64 is not built.
pub fn plain_machine(seed: u64) -> Drawn {
    let Drawn { spec, .. } = machine(seed);
    let end = spec.find("; access=").unwrap_or(spec.len());
    // The area for devices' buffers (64 MiB of a node) holds pages of programs and none of the kernel: of that the
    // model knows nothing, and on a small node the kernel is out of memory long before a program is.
    Drawn { spec: spec[..end].to_owned(), append: Some("cma=0".to_owned()), qemu: None }
}

/// A machine: one to eight nodes of different sizes, some without CPUs or without memory, at any legal
/// distances, some of them in a slower tier, behind a window for CXL memory, or cut into emulated nodes.
pub fn machine(seed: u64) -> Drawn {
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
    let plain = fake.is_none();
    let tier = if plain && random.percent(40) { tier(with_cpus..nodes, &mut random) } else { String::new() };
    let qemu = (plain && random.percent(25)).then(|| WINDOW.to_owned());
    Drawn { spec: format!("{}{distances}{tier}", parts.join(" ")), append: fake, qemu }
}

/// The firmware's facts about nodes that have memory only, and of node 0 beside them.
fn tier(nodes: std::ops::Range<u64>, random: &mut Random) -> String {
    if nodes.is_empty() {
        return String::new();
    }
    let cost = |random: &mut Random| format!("{}ns/{}G", 150 + 50 * random.below(8), 5 + random.below(40));
    nodes.fold("; access=0>0:80ns/100G".to_owned(), |text, node| {
        format!("{text}; access=0>{node}:{}", cost(random))
    })
}
