//! The control groups of the program of a request: those of the process, of this one where the program would start from it,
//! or one with the limit that was typed.

use nodewise_machine::printable::printable;
use nodewise_machine::{Bytes, Pid};
use nodewise_model::Interval;
use nodewise_model::charge::{ChargedGroup, GroupRooms};
use nodewise_source::file::FileError;
use nodewise_source::spare::{LimitedGroup, limited_groups};
use nodewise_source::tree::Tree;
use nodewise_view::digest::walk::groups::{WalkGroup, WalkGroups};

use crate::cli::explain::Explain;
use crate::failure::Failure;
use crate::input;
use crate::input::Input;

/// The groups, and the files that they were read from.
pub(super) struct Groups {
    pub walk: WalkGroups,
    /// Those of the walk in the same order; none for a limit that was typed.
    pub read: Vec<LimitedGroup>,
}

impl Groups {
    /// Limits the pages of a request to those that the nodes give, and notes where they are fewer.
    pub(super) fn cut(&mut self, pages: u64, size: Option<Bytes>) -> u64 {
        // Without a size as much is wanted as there can be.
        let wanted = if size.is_some() { pages } else { u64::MAX };
        let left = self.walk.rooms.from_nodes(wanted);
        self.walk.cut = Some(left).filter(|left| *left < pages);
        left.min(pages)
    }
}

/// The groups whose limits a request meets; `None` on another machine, where none was typed.
///
/// # Errors
/// A limit that is not a number.
pub(super) fn read(
    args: &Explain,
    process: Option<u32>,
    input: &Input,
    machine: &str,
    page: u64,
) -> Result<Option<Groups>, Failure> {
    let swap = input.machine.swap_free.map(|size| size.get() / page);
    let new = |groups: Vec<WalkGroup>, read, unknown| {
        let charged: Vec<ChargedGroup> = groups.iter().map(|group| group.memory.clone()).collect();
        let rooms = GroupRooms::new(&charged, swap, page);
        Groups { walk: WalkGroups { groups, rooms, cut: None, unknown }, read }
    };
    if let Some(limit) = args.limit {
        return Ok(Some(new(vec![typed(limit.get() / page)], Vec::new(), None)));
    }
    let live = Tree::live();
    let is_live = input::is_live(machine);
    let tree = if is_live { Some(&live) } else { input.tree() };
    let own = match (tree, process) {
        (Some(tree), Some(pid)) => limited_groups(tree, Pid::new(pid)),
        (Some(tree), None) if is_live => limited_groups(tree, "self"),
        _ => return Ok(None),
    };
    match own {
        Ok(Some(read)) => {
            let groups = read.iter().map(|group| shown(group, page)).collect();
            Ok(Some(new(groups, read, None)))
        }
        Ok(None) if process.is_some() => {
            let why = "the groups of the process cannot be seen from here".to_owned();
            Ok(Some(new(Vec::new(), Vec::new(), Some(why))))
        }
        Ok(None) => Ok(None),
        Err(error @ FileError::Parse { .. }) => Err(Failure::cannot(error)),
        Err(FileError::Read(error)) => Ok(Some(new(Vec::new(), Vec::new(), Some(error.to_string())))),
    }
}

/// A group in which the program runs alone, with a limit that was typed.
fn typed(max: u64) -> WalkGroup {
    let memory = ChargedGroup {
        max: Some(max),
        high: None,
        used: Interval::exactly(0),
        caches: Interval::exactly(0),
        swap_left: None,
    };
    WalkGroup { path: None, memory, swap_max: None, swap_used: 0, kills_all: false }
}

fn shown(group: &LimitedGroup, page: u64) -> WalkGroup {
    let pages = |size: Bytes| size.get() / page;
    let (files, mapped, slab) = (pages(group.files), pages(group.mapped), pages(group.slab));
    let max = group.max.map(pages);
    let used = group.used.map(pages).map_or_else(
        || Interval { least: 0, most: max.or(group.high.map(pages)).unwrap_or(u64::MAX) },
        Interval::exactly,
    );
    // Pages that programs have mapped come back at once: how many of them go is open.
    let caches = Interval { least: files.saturating_sub(mapped), most: files.saturating_add(slab) };
    let swap_max = group.swap_max.map(pages);
    let swap_used = pages(group.swap_used);
    let swap_left = swap_max.map(|max| max.saturating_sub(swap_used));
    WalkGroup {
        path: Some(printable(&group.name()).into_owned()),
        memory: ChargedGroup { max, high: group.high.map(pages), used, caches, swap_left },
        swap_max,
        swap_used,
        kills_all: group.kills_all,
    }
}
