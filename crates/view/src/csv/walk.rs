//! A request that the model has played, a line per share.

use nodewise_model::walk::Mark;

use super::known;
use crate::digest::walk::Walk;

/// Writes the shares of a request in the order in which the kernel takes them: of one step those whose pages
/// come in turns. Pages that find no room, and those for which a control group has to make room, are the last lines, with
/// neither step nor node.
pub fn walk(walk: &Walk<'_>) -> String {
    let mut text = String::from("step,node,zone,above,pages,page_bytes,size_bytes\n");
    let page = walk.before.page_bytes();
    let mut line = |step: Option<usize>, [node, zone, above]: [&str; 3], pages: u64, page: u64| {
        let step = known(step);
        let size = u128::from(pages) * u128::from(page);
        text.push_str(&format!("{step},{node},{zone},{above},{pages},{page},{size}\n"));
    };
    for (at, stretch) in walk.outcome.stretches.iter().enumerate() {
        for share in &stretch.shares {
            let above = match share.mark {
                Mark::Low => "low",
                Mark::Min => "min",
            };
            let names = [&share.node.to_string(), share.kind.name(), above];
            line(Some(at + 1), names, share.pages, page << stretch.order);
        }
    }
    if let Some(end) = &walk.outcome.out_of_memory {
        line(None, ["", "", "missing"], end.pages, page);
    }
    let cut = walk.groups.and_then(|groups| groups.cut);
    if let Some((size, cut)) = walk.size_bytes.zip(cut) {
        line(None, ["", "", "group"], size.div_ceil(page).saturating_sub(cut), page);
    }
    text
}
