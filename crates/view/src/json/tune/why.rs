//! Which evidence carries the advice of a study.

use nodewise_experiment::study::Study;
use nodewise_experiment::verdict::Analysis;
use serde::Serialize;

use crate::digest::why::{Difference, Why};

/// The clearest difference between the default and the placement that is named; without it only the sentence.
#[derive(Serialize)]
pub(super) struct WhyJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    counted: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    best: Option<f64>,
    sentence: String,
}

impl WhyJson {
    pub(super) fn from_study(study: &Study, analysis: &Analysis) -> Option<Self> {
        let why = Why::from_study(study, analysis)?;
        let (counted, node) = match &why.difference {
            Some((Difference::Memory(node), ..)) => (Some("memory_share"), Some(node.number())),
            Some((Difference::Counted(counted), ..)) => (Some(counted.field()), None),
            None => (None, None),
        };
        let (default, best) = why.difference.as_ref().map(|(_, default, best)| (*default, *best)).unzip();
        Some(Self { counted, node, default, best, sentence: why.sentence() })
    }
}
