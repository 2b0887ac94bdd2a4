//! Text to [`Spec`].

use super::{
    AccessPart, Body, CachePart, CpuPart, Distances, Group, HUGE_PAGE_WORDS, MOST_CPUS, MOST_NODES, NodePart,
    Spec, SpecError, ThreadOrder,
};
use crate::cache::CacheKind;
use crate::device::DeviceRef;
use crate::id::{NodeId, TierId};
use crate::set::NodeSet;
use crate::settings::KernelRelease;
use crate::units::Bytes;

/// Deepest nesting of groups: packages of nodes. More would mean nothing.
const DEEPEST: usize = 2;

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

type Result<T> = std::result::Result<T, SpecError>;

impl<'a> Reader<'a> {
    fn fail<T>(&self, at: usize, message: impl Into<String>) -> Result<T> {
        let column = self.text[..at].chars().count() + 1;
        Err(SpecError { text: self.text.to_owned(), column, message: message.into() })
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn take(&mut self, token: char) -> bool {
        let hit = self.rest().starts_with(token);
        self.at += if hit { token.len_utf8() } else { 0 };
        hit
    }

    fn blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n', '+']).len();
    }

    /// The text up to one of these characters, or to the end.
    fn until(&mut self, stops: &[char]) -> &'a str {
        let rest = self.rest();
        let word = &rest[..rest.find(stops).unwrap_or(rest.len())];
        self.at += word.len();
        word
    }

    fn groups(&mut self, depth: usize) -> Result<Vec<Group>> {
        let mut groups = Vec::new();
        loop {
            self.blanks();
            match self.rest().chars().next() {
                Some('(' | '0'..='9') => groups.push(self.group(depth)?),
                _ if groups.is_empty() => {
                    return self.fail(self.at, "expected a node in parentheses, as in 4x(12c2t 128G)");
                }
                _ => return Ok(groups),
            }
        }
    }

    fn group(&mut self, depth: usize) -> Result<Group> {
        let start = self.at;
        let digits = self.until(&['(', ')', 'x', ' ', ';']);
        let mut count = 1;
        if !digits.is_empty() {
            count = match digits.parse() {
                Ok(count) if (1..=MOST_NODES).contains(&count) => count,
                _ => {
                    return self.fail(
                        start,
                        format!("expected a count from 1 to {MOST_NODES}, then x and a node in parentheses"),
                    );
                }
            };
            if !self.take('x') {
                return self.fail(self.at, "expected x and a node in parentheses, as in 4x(12c2t 128G)");
            }
        }
        if !self.take('(') {
            return self.fail(self.at, "expected \"(\"");
        }
        self.blanks();
        let body = if self.holds_groups() {
            if depth + 1 >= DEEPEST {
                return self.fail(self.at, "expected a node: packages do not nest");
            }
            Body::Package(self.groups(depth + 1)?)
        } else {
            Body::Node(self.node()?)
        };
        self.blanks();
        if !self.take(')') {
            return self.fail(self.at, "expected \")\"");
        }
        Ok(Group { count, body })
    }

    /// Whether what follows is a group (`(` or `4x(`) and not a part of a node.
    fn holds_groups(&self) -> bool {
        self.rest().trim_start_matches(|c: char| c.is_ascii_digit()).trim_start_matches('x').starts_with('(')
    }

    fn node(&mut self) -> Result<NodePart> {
        let mut node = NodePart::default();
        loop {
            self.blanks();
            if self.rest().is_empty() || self.rest().starts_with([')', ';', '(']) {
                break;
            }
            let start = self.at;
            let word = self.until(&[' ', '\t', '\n', '+', ')', ';', '(']);
            self.part(&mut node, word, start)?;
        }
        if node == NodePart::default() {
            return self.fail(self.at, "expected cores (12c2t) or a memory size (128G)");
        }
        let used = node.free.unwrap_or_default().get().saturating_add(node.cache.unwrap_or_default().get());
        if used > node.memory.unwrap_or_default().get() {
            return self.fail(self.at, "expected a memory size that holds what is free and the page cache");
        }
        Ok(node)
    }

    fn part(&self, node: &mut NodePart, word: &str, start: usize) -> Result<()> {
        let twice = |what: &str| self.fail(start, format!("this node has {what} already"));
        if let Some((key, value)) = word.split_once('=') {
            return self.keyed_part(node, key, value, start);
        }
        if let Some(cpus) = cpu_part(word) {
            let total = cpus.map_or(0, |cpus: CpuPart| {
                u64::from(cpus.packages) * u64::from(cpus.cores) * u64::from(cpus.threads)
            });
            if total == 0 || total > u64::from(MOST_CPUS) {
                return self.fail(start, format!("expected 1 to {MOST_CPUS} CPUs"));
            }
            if node.cpus.is_some() {
                return twice("cores");
            }
            node.cpus = cpus;
        } else if let Ok(size) = word.parse::<Bytes>() {
            if node.memory.is_some() {
                return twice("a memory size");
            }
            if size < Bytes::KIB {
                return self.fail(start, "expected a memory size of at least 1K, with its unit as in 128G");
            }
            node.memory = Some(size);
        } else {
            return self
                .fail(start, "expected cores (12c2t), a memory size (128G), or a setting such as l3=32M/6c");
        }
        Ok(())
    }

    fn keyed_part(&self, node: &mut NodePart, key: &str, value: &str, start: usize) -> Result<()> {
        let at = start + key.len() + 1;
        if let Some((level, kind)) = cache_key(key) {
            let (size, cores) = value.split_once('/').unwrap_or((value, "1c"));
            let Ok(size) = size.parse::<Bytes>() else {
                return self.fail(at, "expected a cache size, as in l3=32M/6c");
            };
            let cores = match cores.strip_suffix('c').and_then(|cores| cores.parse().ok()) {
                Some(cores) if (1..=MOST_CPUS).contains(&cores) => cores,
                _ => {
                    return self.fail(
                        at,
                        "expected the number of cores that share one cache after \"/\", as in l3=32M/6c",
                    );
                }
            };
            node.caches.push(CachePart { level, kind, size, cores });
            return Ok(());
        }
        match key {
            "free" | "cache" => {
                let Ok(size) = value.parse::<Bytes>() else {
                    return self.fail(at, format!("expected a size, as in {key}=60G"));
                };
                let place = if key == "free" { &mut node.free } else { &mut node.cache };
                if place.replace(size).is_some() {
                    return self.fail(start, format!("this node has {key}= already"));
                }
            }
            "huge" => {
                let pool = value
                    .split_once(':')
                    .and_then(|(size, count)| Some((size.parse().ok()?, count.parse().ok()?)));
                let Some(pool) = pool else {
                    return self.fail(at, "expected a page size and a count, as in huge=2M:512");
                };
                node.huge.push(pool);
            }
            "tier" => match value.parse() {
                Ok(tier) => node.tier = Some(TierId::new(tier)),
                Err(_) => return self.fail(at, "expected a tier number, as in tier=4"),
            },
            _ => {
                return self
                    .fail(start, "expected l1d, l1i, l2, l3, l4, free, cache, huge or tier before \"=\"");
            }
        }
        Ok(())
    }

    fn option(&mut self, spec: &mut Spec) -> Result<()> {
        self.blanks();
        let start = self.at;
        let key = self.until(&['=', ';']).trim_end();
        if !self.take('=') {
            return self.fail(
                start,
                "expected an option: dist, ids, smt, access, dev, weights, swap, thp, kernel or arch, then \"=\"",
            );
        }
        let at = self.at;
        let value = self.until(&[';']).trim_end();
        match key {
            "dist" => spec.distances = Some(self.distances(value, at)?),
            "ids" => match value.parse::<NodeSet>() {
                Ok(ids) if !ids.is_empty() => spec.ids = Some(ids),
                Ok(_) => return self.fail(at, "expected node numbers, as in ids=0,2,5"),
                Err(error) => {
                    return self.fail(at + error.column - 1, format!("expected {}", error.expected));
                }
            },
            "smt" => match value {
                "split" => spec.smt = ThreadOrder::Split,
                "adjacent" => spec.smt = ThreadOrder::Adjacent,
                _ => return self.fail(at, "expected split or adjacent"),
            },
            "access" => match access(value) {
                Some(access) => spec.accesses.push(access),
                None => {
                    return self.fail(
                        at,
                        "expected nodes, target, latency and bandwidth, as in access=0-1>2:250ns/30G",
                    );
                }
            },
            "dev" => {
                let device =
                    value.rsplit_once('@').and_then(|(device, node)| Some((device, node.parse().ok()?)));
                let Some((device, node)) = device else {
                    return self.fail(at, "expected a device and its node, as in dev=net:eth0@1");
                };
                // A list is what one tries first, and `eth0@8,gpu:0` would be a strange name.
                if device.contains([',', '@']) {
                    return self.fail(at, "expected one device: the next has a dev= of its own");
                }
                match device.parse() {
                    Ok(DeviceRef::File(_) | DeviceRef::Ip(_)) => {
                        return self.fail(
                            at,
                            "expected a device with a place of its own: net, block, ib, gpu or pci",
                        );
                    }
                    Ok(device) => spec.devices.push((device, NodeId::new(node))),
                    Err(error) => return self.fail(at, format!("expected {}", error.expected)),
                }
            }
            "weights" => match weights(value) {
                Some(weights) => spec.weights = weights,
                None => {
                    return self.fail(at, "expected nodes and weights from 1 to 255, as in weights=0:5,1:2");
                }
            },
            "swap" => match value.parse::<Bytes>() {
                Ok(size) => spec.swap = Some(size),
                Err(_) => return self.fail(at, "expected a size, as in swap=16G"),
            },
            "thp" => match HUGE_PAGE_WORDS.into_iter().find(|word| *word == value) {
                Some(word) => spec.huge_pages = Some(word),
                None => return self.fail(at, format!("expected {}", HUGE_PAGE_WORDS.join(", "))),
            },
            "kernel" => match KernelRelease::new(value) {
                Some(kernel) => spec.kernel = Some(kernel),
                None => return self.fail(at, "expected a release, as in kernel=6.12"),
            },
            "arch" if !value.is_empty() && value.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') => {
                spec.architecture = Some(value.to_owned());
            }
            "arch" => return self.fail(at, "expected an architecture, as in arch=aarch64"),
            _ => {
                return self.fail(
                    start,
                    "expected one of dist, ids, smt, access, dev, weights, swap, thp, kernel, arch",
                );
            }
        }
        Ok(())
    }

    fn distances(&self, value: &str, at: usize) -> Result<Distances> {
        let mut rows = Vec::new();
        let mut column = at;
        for row in value.split('/') {
            let mut numbers = Vec::new();
            for number in row.split(',') {
                match number.trim().parse() {
                    Ok(number) => numbers.push(number),
                    Err(_) => {
                        return self.fail(column, "expected a distance, as in dist=21 or dist=10,20/20,10");
                    }
                }
                column += number.len() + 1;
            }
            rows.push(numbers);
        }
        match &rows[..] {
            [row] => match row[..] {
                [remote] => Ok(Distances::Remote(remote)),
                [same, other] => Ok(Distances::Packages(same, other)),
                _ => self.fail(at, "expected one distance, two, or a matrix with \"/\" between its rows"),
            },
            _ => Ok(Distances::Matrix(rows)),
        }
    }
}

/// `2p16c2t`; `None` when the word is not of that shape, `Some(None)` when a number is too large.
fn cpu_part(word: &str) -> Option<Option<CpuPart>> {
    let mut numbers = [None, None, None];
    let mut digits = String::new();
    for c in word.chars() {
        let place = match c {
            '0'..='9' => {
                digits.push(c);
                continue;
            }
            'p' => 0,
            'c' => 1,
            't' => 2,
            _ => return None,
        };
        if digits.is_empty() || numbers[place..].iter().any(Option::is_some) {
            return None;
        }
        numbers[place] = Some(digits.parse::<u32>().ok());
        digits.clear();
    }
    if !digits.is_empty() || numbers[1].is_none() {
        return None;
    }
    let [packages, cores, threads] = numbers.map(|number| number.unwrap_or(Some(1)));
    Some((|| Some(CpuPart { packages: packages?, cores: cores?, threads: threads? }))())
}

fn cache_key(key: &str) -> Option<(u8, CacheKind)> {
    match key {
        "l1d" => Some((1, CacheKind::Data)),
        "l1i" => Some((1, CacheKind::Instruction)),
        "l2" => Some((2, CacheKind::Unified)),
        "l3" => Some((3, CacheKind::Unified)),
        "l4" => Some((4, CacheKind::Unified)),
        _ => None,
    }
}

/// `0-1>2:250ns/30G` or `0>2:250ns,300ns/30G,20G`.
fn access(value: &str) -> Option<AccessPart> {
    let (initiators, rest) = value.split_once('>')?;
    let (target, numbers) = rest.split_once(':')?;
    let initiators: NodeSet = initiators.trim().parse().ok()?;
    if initiators.is_empty() {
        return None;
    }
    let (latency, bandwidth) =
        numbers.split_once('/').map_or((numbers, None), |(latency, bandwidth)| (latency, Some(bandwidth)));
    let both = |text: &str, one: fn(&str) -> Option<u32>| {
        let (read, write) = text.split_once(',').unwrap_or((text, text));
        Some((one(read.trim())?, one(write.trim())?))
    };
    let bandwidth_mb_per_s = match bandwidth {
        None => None,
        Some(text) => Some(both(text, rate)?),
    };
    Some(AccessPart {
        initiators,
        target: NodeId::new(target.trim().parse().ok()?),
        latency_ns: both(latency, |text| text.strip_suffix("ns")?.parse().ok())?,
        bandwidth_mb_per_s,
    })
}

/// `30G` or `500M`: powers of ten per second, in MB/s.
fn rate(text: &str) -> Option<u32> {
    match text.strip_suffix('G') {
        Some(number) => number.parse::<u32>().ok()?.checked_mul(1000),
        None => text.strip_suffix('M')?.parse().ok(),
    }
}

fn weights(value: &str) -> Option<Vec<(NodeId, u32)>> {
    value
        .split(',')
        .map(|item| {
            let (node, weight) = item.split_once(':')?;
            let weight = weight.trim().parse().ok().filter(|weight| (1..=255).contains(weight))?;
            Some((NodeId::new(node.trim().parse().ok()?), weight))
        })
        .collect()
}

/// Reads a spec.
///
/// # Errors
/// [`SpecError`] with the first place that is not of the grammar.
pub fn parse(text: &str) -> Result<Spec> {
    let mut reader = Reader { text, at: 0 };
    let mut spec = Spec {
        groups: reader.groups(0)?,
        distances: None,
        ids: None,
        smt: ThreadOrder::default(),
        accesses: Vec::new(),
        devices: Vec::new(),
        weights: Vec::new(),
        swap: None,
        huge_pages: None,
        kernel: None,
        architecture: None,
    };
    loop {
        reader.blanks();
        if reader.rest().is_empty() {
            return Ok(spec);
        }
        if !reader.take(';') {
            return reader.fail(reader.at, "expected \";\" and an option, another node, or the end");
        }
        reader.option(&mut spec)?;
    }
}

#[cfg(test)]
mod tests {
    use super::parse;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    fn refuse(text: &str, expected: &str) {
        assert_eq!(parse(text).unwrap_err().to_string(), expected);
    }

    #[test]
    fn errors_point_at_the_place() {
        refuse(
            "4x(12c2t foo)",
            "expected cores (12c2t), a memory size (128G), or a setting such as l3=32M/6c (column 10)\n  4x(12c2t foo)\n           ^",
        );
        refuse("", "expected a node in parentheses, as in 4x(12c2t 128G) (column 1)\n  \n  ^");
        refuse(
            "4(1c)",
            "expected x and a node in parentheses, as in 4x(12c2t 128G) (column 2)\n  4(1c)\n   ^",
        );
        refuse("(1c", "expected \")\" (column 4)\n  (1c\n     ^");
        refuse(
            "(1c) x",
            "expected \";\" and an option, another node, or the end (column 6)\n  (1c) x\n       ^",
        );
        refuse(
            "(1c); dist=20,x/1",
            "expected a distance, as in dist=21 or dist=10,20/20,10 (column 15)\n  (1c); dist=20,x/1\n                ^",
        );
        refuse(
            "(1c); ids=0,x",
            "expected a number after \",\" (column 13)\n  (1c); ids=0,x\n              ^",
        );
        refuse(
            "0x(1c)",
            "expected a count from 1 to 1024, then x and a node in parentheses (column 1)\n  0x(1c)\n  ^",
        );
        refuse("(9999999c)", "expected 1 to 8192 CPUs (column 2)\n  (9999999c)\n   ^");
        refuse("(1c 1G 2G)", "this node has a memory size already (column 8)\n  (1c 1G 2G)\n         ^");
        refuse("(((1c)))", "expected a node: packages do not nest (column 3)\n  (((1c)))\n    ^");
        refuse(
            "(1c 1G free=600M cache=1G)",
            "expected a memory size that holds what is free and the page cache (column 26)\n  (1c 1G free=600M cache=1G)\n                           ^",
        );
        refuse(
            "(1c 1G); thp=on",
            "expected always, madvise, never (column 14)\n  (1c 1G); thp=on\n               ^",
        );
        refuse("()", "expected cores (12c2t) or a memory size (128G) (column 2)\n  ()\n   ^");
        refuse(
            "(1c); dev=net:eth0@0,gpu:0@0",
            "expected one device: the next has a dev= of its own (column 11)\n  (1c); dev=net:eth0@0,gpu:0@0\n            ^",
        );
        refuse(
            "(1c); dev=eth0@0",
            "expected gpu:N, net:IF, block:DEV, ib:DEV, file:PATH, ip:HOST or pci:ADDR (column 11)\n  (1c); dev=eth0@0\n            ^",
        );
    }

    #[test]
    fn a_long_spec_is_cut_around_the_caret() {
        let text = format!("{} foo", "(1c 1G) ".repeat(40));
        let message = parse(&text).unwrap_err().to_string();
        let lines: Vec<&str> = message.lines().collect();
        assert!(lines[1].starts_with("  …") && lines[1].chars().count() < 80, "{message}");
        let caret = lines[2].chars().position(|c| c == '^').unwrap();
        assert_eq!(lines[1].chars().skip(caret).take(3).collect::<String>(), "foo");
    }

    #[test]
    fn specs_print_as_they_were_written() {
        for text in [
            "4x(12c2t 128G)",
            "2x(2x(24c 126G l3=32M/6c)); dist=11,20",
            "(4c 1G) 7x(1G)",
            "(2p8c2t 1G free=100M cache=1M l1d=48K l2=1M) (64G huge=2M:512 tier=22); dist=10,20/30,10; ids=0,8; \
             smt=adjacent; access=0>8:250ns,300ns/30000M; dev=net:eth0@0; dev=pci:0000:21:00.0@8; weights=0:5,8:1; \
             swap=16G; thp=always; kernel=6.12; arch=aarch64",
        ] {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>()) {
            if let Err(error) = parse(&text) {
                let _ = error.to_string();
            }
        }

        #[test]
        fn nearly_specs_print_to_an_equal_spec(
            text in r"([1-9]x)?\(([1-3]p)?[1-9]c([12]t)?( [1-9]G)?( l[34]=[1-9]M(/2c)?)?\)( \([1-9]G( tier=[0-9])?\))?(; dist=2[0-9](,3[0-9])?)?(; smt=adjacent)?"
        ) {
            let spec = parse(&text).unwrap();
            prop_assert_eq!(parse(&spec.to_string()).unwrap(), spec.clone());
            let _ = spec.machine();
        }

        #[test]
        fn soup_is_read_or_refused_without_a_panic(text in r"[0-9xcptGMK()=;:,/>@ a-z]{0,60}") {
            if let Ok(spec) = parse(&text) {
                prop_assert_eq!(parse(&spec.to_string()).unwrap(), spec.clone());
                let _ = spec.machine();
            }
        }
    }
}
