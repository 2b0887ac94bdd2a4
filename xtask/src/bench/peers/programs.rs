//! The peers that Debian packages: their command lines, and what they print.
//!
//! Every reader gives GB/s (10^9 bytes per second) as STREAM counts them: what is copied counts twice.

use std::process::{Command, Stdio};

/// Packages that hold them.
pub const PACKAGES: [&str; 4] = ["likwid", "mbw", "sysbench", "stress-ng"];
/// Programs of these packages.
pub const PROGRAMS: [&str; 4] = ["likwid-bench", "mbw", "sysbench", "stress-ng"];

const MIB: f64 = 1_048_576.0;

/// Finds GB/s in what a program prints.
type Reader = Box<dyn Fn(&str) -> Option<f64>>;

/// A way of a peer to do something.
pub struct Program {
    /// Its name in the table.
    pub name: String,
    words: Vec<String>,
    read: Reader,
}

impl Program {
    fn new(name: &str, line: &str, read: impl Fn(&str) -> Option<f64> + 'static) -> Self {
        let words = line.split_whitespace().map(str::to_owned).collect();
        Self { name: name.to_owned(), words, read: Box::new(read) }
    }

    /// Runs it once; `None` where it fails, as with instructions that the processor does not have.
    pub fn run(&self) -> Option<f64> {
        let mut command = Command::new(&self.words[0]);
        let output = command.args(&self.words[1..]).stdin(Stdio::null()).output().ok()?;
        let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        (self.read)(&text.concat()).filter(|rate| rate.is_finite() && *rate > 0.0)
    }
}

/// A kernel of likwid-bench, over this many bytes.
pub fn likwid(kernel: &str, bytes: u64, threads: usize) -> Program {
    let line = format!("likwid-bench -t {kernel} -w N:{bytes}B:{threads} -s 1");
    Program::new(&format!("likwid {kernel}"), &line, likwid_rate)
}

fn likwid_rate(text: &str) -> Option<f64> {
    let rate = text.lines().find_map(|line| line.strip_prefix("MByte/s:"))?;
    Some(rate.trim().parse::<f64>().ok()? * 1e6 / 1e9)
}

/// libc's memcpy by mbw. Debian's release 1.2.2 has the names of its methods exchanged: `DUMB` is the
/// one that calls memcpy.
pub fn mbw(bytes: u64) -> Program {
    let line = format!("mbw -q -n 5 -t1 {}", bytes >> 20);
    Program::new("mbw (libc memcpy)", &line, mbw_rate)
}

fn mbw_rate(text: &str) -> Option<f64> {
    let average = text.lines().find(|line| line.starts_with("AVG"))?;
    let rate = average.split_once("Copy:")?.1.trim().strip_suffix("MiB/s")?;
    Some(rate.trim().parse::<f64>().ok()? * 2.0 * MIB / 1e9)
}

/// sysbench's loop over blocks of this size, `read` or `write`.
pub fn sysbench(operation: &str, bytes: u64, threads: usize) -> Program {
    let line = format!(
        "sysbench memory --memory-scope=local --memory-block-size={}M --memory-oper={operation} \
         --memory-total-size=100T --time=1 --threads={threads} run",
        (bytes >> 20) / threads as u64
    );
    Program::new("sysbench memory", &line, sysbench_rate)
}

fn sysbench_rate(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.contains("MiB transferred"))?;
    let rate = line.split_once('(')?.1.strip_suffix("MiB/sec)")?;
    Some(rate.trim().parse::<f64>().ok()? * MIB / 1e9)
}

/// The best of the ways of stress-ng's memrate whose names satisfy this; each thread has a buffer.
pub fn stress_ng(name: &str, bytes: u64, threads: usize, wanted: impl Fn(&str) -> bool + 'static) -> Program {
    let line = format!(
        "stress-ng --memrate {threads} --memrate-bytes {}m -t 5 --metrics",
        (bytes >> 20) / threads as u64
    );
    Program::new(name, &line, move |text| memrate(text, threads, &wanted))
}

/// Lines as `memrate  6044.82 write256 MB per sec (geometic mean of 2 instances)`, of one instance.
fn memrate(text: &str, threads: usize, wanted: &impl Fn(&str) -> bool) -> Option<f64> {
    let of = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let at = words.iter().position(|word| *word == "memrate")?;
        let (rate, name) = (words.get(at + 1)?.parse::<f64>().ok()?, words.get(at + 2)?);
        let is_rate = words.get(at + 3) == Some(&"MB");
        (is_rate && wanted(name)).then_some(rate)
    };
    // The unit is taken for 10^6 bytes; were it 2^20, the peer would be 5 % better.
    text.lines().filter_map(of).reduce(f64::max).map(|rate| rate * threads as f64 * 1e6 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rate: Option<f64>, expected: Option<f64>) {
        let same = match (rate, expected) {
            (Some(rate), Some(expected)) => (rate - expected).abs() < 1e-6 * expected,
            (rate, expected) => rate == expected,
        };
        assert!(same, "{rate:?}, expected {expected:?}");
    }

    #[test]
    fn what_the_programs_print_is_read() {
        check(
            likwid_rate("Cycles:\t\t\t3545550320\nMByte/s:\t\t5998.26\nCycles per update:\t3.4\n"),
            Some(5.99826),
        );
        check(
            mbw_rate(
                "0\tMethod: DUMB\tElapsed: 0.08412\tMiB: 256.00000\tCopy: 3043.344 MiB/s\nAVG\tMethod: DUMB\tElapsed: 0.07691\tMiB: 256.00000\tCopy: 1000.000 MiB/s\n",
            ),
            Some(2.097152),
        );
        check(sysbench_rate("\n5888.00 MiB transferred (1000.00 MiB/sec)\n\n"), Some(1.048576));
        let memrate_text = "stress-ng: metrc: [4649] memrate  0   2.12   0.20\n\
                            stress-ng: metrc: [4649] memrate  4352.72 write64stoq MB per sec (geometic mean)\n\
                            stress-ng: metrc: [4649] memrate  6044.82 read256 MB per sec (geometic mean)\n";
        check(memrate(memrate_text, 2, &|name| name.starts_with("write")), Some(8.70544));
        check(memrate(memrate_text, 1, &|name| name.ends_with("nt")), None);
    }

    #[test]
    fn other_texts_have_no_rate() {
        for text in [
            "",
            "MByte/s:",
            "MByte/s: x",
            "AVG Copy: MiB/s",
            "MiB transferred (",
            "memrate",
            "memrate 1 x MB",
        ] {
            check(likwid_rate(text), None);
            check(mbw_rate(text), None);
            check(sysbench_rate(text), None);
            check(memrate(text, 1, &|name| name.starts_with("read")), None);
        }
    }
}
