//! What every measured cell has in its document, whatever was measured.

use nodewise_machine::{Bytes, NodeSet};
use nodewise_measure::cell::{PageKind, Placed};
use serde::{Deserialize, Serialize};

/// Where pages were.
#[derive(Serialize, Deserialize)]
pub(super) struct PlacedJson {
    pages_on_node: u64,
    pages: u64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    other_nodes: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    huge_bytes: Option<u64>,
}

impl PlacedJson {
    pub(super) fn of(placed: &Placed) -> Self {
        Self {
            pages_on_node: placed.on_node,
            pages: placed.pages,
            other_nodes: placed.elsewhere.to_string(),
            huge_bytes: placed.huge.map(Bytes::get),
        }
    }

    pub(super) fn read(self) -> Result<Placed, String> {
        let elsewhere: NodeSet = match self.other_nodes.as_str() {
            "" => NodeSet::new(),
            text => text.parse().map_err(|error| format!("other_nodes: {error}"))?,
        };
        let huge = self.huge_bytes.map(Bytes::new);
        Ok(Placed { on_node: self.pages_on_node, pages: self.pages, elsewhere, huge })
    }
}

/// The word for a kind of pages, and the size of those from a pool.
pub(super) fn page_kind(pages: PageKind) -> (&'static str, Option<u64>) {
    match pages {
        PageKind::Small => ("small", None),
        PageKind::TransparentHuge => ("transparent_huge", None),
        PageKind::Hugetlb(size) => ("hugetlb", Some(size.bytes().get())),
    }
}
