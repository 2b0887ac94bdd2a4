//! Published measurements of the same family of processors, beside a figure: is 156 ns usual for this CPU?
//!
//! They are in `data/published.toml`, each with its source. A machine whose processor no entry names gets no
//! comparison: unknown stays unknown.

use nodewise_machine::conditions::Conditions;
use serde::Deserialize;

use crate::digest::survey::digits;

/// The file as it was when nodewise was built.
const FILE: &str = include_str!("../../../../data/published.toml");

/// A quantity that others published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishedQuantity {
    /// Idle latency to the memory of the own node, in ns.
    LocalLatency,
    /// Idle latency to the memory of the other of two sockets, in ns.
    RemoteLatency,
    /// Bandwidth of reads by all CPUs of a socket from its own memory, in GB/s.
    ReadBandwidth,
    /// The same of STREAM's triad, as STREAM counts its bytes.
    TriadBandwidth,
}

impl PublishedQuantity {
    const fn words(self) -> &'static str {
        match self {
            Self::LocalLatency => "latency to local memory",
            Self::RemoteLatency => "latency to the other socket",
            Self::ReadBandwidth => "bandwidth of reads per socket",
            Self::TriadBandwidth => "bandwidth of triad per socket",
        }
    }

    /// The word for scripts.
    pub const fn word(self) -> &'static str {
        match self {
            Self::LocalLatency => "local_latency",
            Self::RemoteLatency => "remote_latency",
            Self::ReadBandwidth => "read_bandwidth_per_socket",
            Self::TriadBandwidth => "triad_bandwidth_per_socket",
        }
    }

    const fn unit(self) -> &'static str {
        match self {
            Self::LocalLatency | Self::RemoteLatency => "ns",
            Self::ReadBandwidth | Self::TriadBandwidth => "GB/s",
        }
    }

    /// A value as it is written.
    fn text(self, value: f64) -> String {
        match self {
            Self::LocalLatency | Self::RemoteLatency => format!("{value:.0}"),
            Self::ReadBandwidth | Self::TriadBandwidth => digits(value),
        }
    }
}

/// Published figures of one family.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedRange {
    pub quantity: PublishedQuantity,
    /// The least and the most.
    pub range: (f64, f64),
    /// The platforms by name, each with the address of its source.
    pub platforms: Vec<(String, String)>,
}

impl PublishedRange {
    /// The figures of processors whose model name fits.
    pub fn find(quantity: PublishedQuantity, conditions: &Conditions) -> Option<Self> {
        let model = conditions.cpu_model.as_deref()?;
        let platforms = platforms();
        let fits = platforms.into_iter().filter(|platform| platform.fits(model));
        let known: Vec<(f64, Platform)> =
            fits.filter_map(|platform| Some((platform.figure(quantity)?, platform))).collect();
        let least = known.iter().map(|(figure, _)| *figure).reduce(f64::min)?;
        let most = known.iter().map(|(figure, _)| *figure).reduce(f64::max)?;
        let platforms = known.into_iter().map(|(_, platform)| (platform.name, platform.source)).collect();
        Some(Self { quantity, range: (least, most), platforms })
    }

    /// The range and a measured figure in one sentence.
    pub fn sentence(&self, measured: f64) -> String {
        let what = self.quantity.words();
        let (least, most) = self.range;
        let machines = match &self.platforms[..] {
            [(name, _)] => name.clone(),
            platforms => format!("{} machines of this family", platforms.len()),
        };
        let [least, most, measured] = [least, most, measured].map(|value| self.quantity.text(value));
        let range = if least == most { least } else { format!("{least} to {most}") };
        let unit = self.quantity.unit();
        format!("published {what}: {range} {unit} ({machines}); here {measured} {unit}")
    }
}

/// The part of an entry that is read here.
#[derive(Clone, Debug, Deserialize)]
struct Platform {
    name: String,
    /// Regular expressions for the names of its family.
    #[serde(rename = "match")]
    models: Vec<String>,
    /// Processors in the machine, where the source says how many.
    sockets: Option<u32>,
    local_ns: Option<f64>,
    remote_ns: Option<f64>,
    read_gb_per_s: Option<f64>,
    triad_gb_per_s: Option<f64>,
    bandwidth_of: Option<BandwidthOf>,
    source: String,
}

/// The processors that a published bandwidth is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum BandwidthOf {
    Socket,
    Machine,
}

impl Platform {
    fn fits(&self, model: &str) -> bool {
        let found =
            |text: &String| regex_lite::Regex::new(text).is_ok_and(|expression| expression.is_match(model));
        self.models.iter().any(found)
    }

    fn figure(&self, quantity: PublishedQuantity) -> Option<f64> {
        match quantity {
            PublishedQuantity::LocalLatency => self.local_ns,
            PublishedQuantity::RemoteLatency => self.remote_ns,
            PublishedQuantity::ReadBandwidth => self.per_socket(self.read_gb_per_s?),
            PublishedQuantity::TriadBandwidth => self.per_socket(self.triad_gb_per_s?),
        }
    }

    /// The part of a socket; `None` for a machine whose source does not say how many it has.
    fn per_socket(&self, gb_per_s: f64) -> Option<f64> {
        match self.bandwidth_of? {
            BandwidthOf::Socket => Some(gb_per_s),
            BandwidthOf::Machine => {
                self.sockets.filter(|sockets| *sockets > 0).map(|n| gb_per_s / f64::from(n))
            }
        }
    }
}

#[derive(Deserialize)]
struct File {
    platform: Vec<Platform>,
}

/// All entries. The tests read the file as it is built in, so that none is lost here.
fn platforms() -> Vec<Platform> {
    toml::from_str(FILE).map_or_else(|_| Vec::new(), |file: File| file.platform)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that an entry may have.
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Entry {
        name: String,
        #[serde(rename = "match")]
        models: Vec<String>,
        sockets: Option<u32>,
        memory: Option<String>,
        settings: Option<String>,
        local_ns: Option<f64>,
        remote_ns: Option<f64>,
        latency_method: Option<String>,
        read_gb_per_s: Option<f64>,
        triad_gb_per_s: Option<f64>,
        bandwidth_of: Option<String>,
        bandwidth_method: Option<String>,
        source: String,
        read: String,
    }

    #[derive(Deserialize)]
    struct Entries {
        platform: Vec<Entry>,
    }

    #[test]
    fn each_entry_can_be_read_and_names_its_source() {
        let file: Entries = toml::from_str(FILE).unwrap();
        assert_eq!(platforms().len(), file.platform.len());
        assert!(file.platform.len() >= 25, "{}", file.platform.len());
        for platform in &file.platform {
            let name = &platform.name;
            assert!(platform.source.starts_with("http"), "{name}");
            assert!(!platform.models.is_empty() && platform.read.len() == 10, "{name}");
            for text in &platform.models {
                regex_lite::Regex::new(text).unwrap_or_else(|error| panic!("{name}: {text}: {error}"));
            }
            let latency = platform.local_ns.or(platform.remote_ns);
            let bandwidth = platform.read_gb_per_s.or(platform.triad_gb_per_s);
            assert!(latency.or(bandwidth).is_some(), "{name} has no figure");
            assert_eq!(latency.is_some(), platform.latency_method.is_some(), "{name}");
            assert_eq!(bandwidth.is_some(), platform.bandwidth_method.is_some(), "{name}");
            if bandwidth.is_some() {
                assert!(
                    ["socket", "machine"].map(Some).contains(&platform.bandwidth_of.as_deref()),
                    "{name}"
                );
            }
            for figure in [platform.local_ns, platform.remote_ns].into_iter().flatten() {
                assert!((20.0..1000.0).contains(&figure), "{name}: {figure} ns");
            }
            for figure in [platform.read_gb_per_s, platform.triad_gb_per_s].into_iter().flatten() {
                assert!((1.0..5000.0).contains(&figure), "{name}: {figure} GB/s");
            }
            assert!(platform.sockets.is_none_or(|sockets| (1..=16).contains(&sockets)), "{name}");
            for text in platform.memory.iter().chain(&platform.settings) {
                assert!(!text.trim().is_empty(), "{name}");
            }
        }
    }

    #[test]
    fn at_least_25_platforms_have_a_bandwidth_of_both_architectures() {
        let has = |platform: &&Platform| platform.read_gb_per_s.or(platform.triad_gb_per_s).is_some();
        let found: Vec<Platform> = platforms().into_iter().filter(|platform| has(&platform)).collect();
        assert!(found.len() >= 25, "{}", found.len());
        for maker in ["Intel", "AMD", "Neoverse", "ThunderX2", "Kunpeng"] {
            assert!(found.iter().any(|platform| platform.name.contains(maker)), "{maker}");
        }
    }

    #[test]
    fn a_figure_stands_beside_those_of_its_family_or_alone() {
        let of = |model: &str| Conditions { cpu_model: Some(model.to_owned()), ..Conditions::default() };
        let found = PublishedRange::find(
            PublishedQuantity::LocalLatency,
            &of("Intel(R) Xeon(R) Platinum 8360Y CPU @ 2.40GHz"),
        );
        let found = found.expect("there is a figure for it");
        assert!(
            found.range.0 <= found.range.1 && found.sentence(112.3).ends_with("here 112 ns"),
            "{found:?}"
        );
        for model in ["", "Quux 3000", "AMD"] {
            assert_eq!(PublishedRange::find(PublishedQuantity::LocalLatency, &of(model)), None, "{model}");
        }
        let read = PublishedRange::find(
            PublishedQuantity::ReadBandwidth,
            &of("Intel(R) Xeon(R) Gold 6240 CPU @ 2.60GHz"),
        )
        .expect("there are figures for it");
        // Those of machines with two sockets are halved: 225.1 to 243.2 GB/s.
        assert_eq!(
            read.sentence(110.25),
            "published bandwidth of reads per socket: 113 to 122 GB/s (3 machines of this family); here 110 GB/s"
        );
        // Its machine's sockets are not stated.
        let naples =
            PublishedRange::find(PublishedQuantity::TriadBandwidth, &of("AMD EPYC 7551 32-Core Processor"));
        assert_eq!(naples, None);
        let range = PublishedRange {
            quantity: PublishedQuantity::RemoteLatency,
            range: (130.0, 142.0),
            platforms: vec![("A".to_owned(), "x".to_owned()), ("B".to_owned(), "y".to_owned())],
        };
        assert_eq!(
            range.sentence(156.4),
            "published latency to the other socket: 130 to 142 ns (2 machines of this family); here 156 ns"
        );
    }
}
