//! Published figures beside measured ones, as documents have them: written for readers, and not read.

use nodewise_measure::survey::figure::rounded;
use serde::Serialize;

use crate::digest::published::{PublishedQuantity, PublishedRange};

/// Published figures beside one measured here.
#[derive(Serialize)]
pub(super) struct PublishedJson {
    quantity: &'static str,
    #[serde(flatten)]
    figures: FiguresJson,
    platforms: Vec<PlatformJson>,
}

/// The figures, in the unit of their quantity.
#[derive(Serialize)]
#[serde(untagged)]
enum FiguresJson {
    Latency { least_ns: f64, most_ns: f64, measured_ns: f64 },
    Bandwidth { least_gb_per_s: f64, most_gb_per_s: f64, measured_gb_per_s: f64 },
}

#[derive(Serialize)]
struct PlatformJson {
    name: String,
    source: String,
}

impl PublishedJson {
    pub(super) fn from_range((range, measured): (PublishedRange, f64)) -> Self {
        let platform = |(name, source)| PlatformJson { name, source };
        let (least, most) = range.range;
        let (least, most, measured) = (rounded(least), rounded(most), rounded(measured));
        Self {
            quantity: range.quantity.word(),
            figures: match range.quantity {
                PublishedQuantity::LocalLatency | PublishedQuantity::RemoteLatency => {
                    FiguresJson::Latency { least_ns: least, most_ns: most, measured_ns: measured }
                }
                PublishedQuantity::ReadBandwidth | PublishedQuantity::TriadBandwidth => {
                    FiguresJson::Bandwidth {
                        least_gb_per_s: least,
                        most_gb_per_s: most,
                        measured_gb_per_s: measured,
                    }
                }
            },
            platforms: range.platforms.into_iter().map(platform).collect(),
        }
    }
}
