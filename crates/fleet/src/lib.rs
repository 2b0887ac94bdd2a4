//! Many machines: what their surveys say together.
//!
//! A survey is what one machine knows about itself at one moment: facts, figures and findings. Everything here is a pure
//! function of surveys: the same set of them gives the same report, whatever order they arrived in and however often each
//! one did. There are no files, no JSON and no clock; the documents are in `view`, the files in the command.
//!
//! It is a crate of its own because it needs the machine and statistics alone: half of what `view` needs, and nothing of a
//! running system, which `diagnose` is about. The tasks that calibrate and simulate it are built without the rest.
//!
//! # Modules
//!
//! In the order in which surveys become a report:
//!
//! - `survey.rs` one survey; `structure.rs` the facts of a machine that are compared, and its place among others:
//!   its *kind* (the hardware that was bought) and its *layout* (how that hardware is divided into nodes)
//! - `collection.rs` one survey for each host: attempts and repeats resolved, hosts that are missing or failed
//! - `group.rs` machines of one kind and one layout are a *group*; only within it are figures compared.
//!   `deviation.rs` facts that few machines of a kind have otherwise than all others
//! - `outlier.rs` the rule for figures, with `threshold.rs`, the table that depends on the size of the group, and
//!   `calibration.rs`, which makes that table and says how often the rule is wrong
//! - `changes.rs` what is different since an earlier survey; `suspect.rs` the machines to look at first;
//!   `report.rs` all of it together
//! - `check.rs` one machine against a group of such a report
#![forbid(unsafe_code)]

pub mod calibration;
pub mod changes;
pub mod check;
pub mod collection;
pub mod deviation;
pub mod group;
pub mod outlier;
pub mod report;
pub mod structure;
pub mod survey;
pub mod suspect;
mod threshold;

pub use collection::{Arrival, Collection};
pub use report::FleetReport;
pub use structure::Structure;
pub use survey::HostSurvey;
pub use threshold::threshold;
