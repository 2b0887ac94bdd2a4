//! A study as `nodewise tune` prints it: the one thing to do first, then the table, and what follows
//! both.

mod also;
mod conclusion;
mod evidence;
mod first;
mod notes;
mod pages;
mod results;
mod saved;

pub use first::{first, too_short};
use nodewise_experiment::candidates::LeftOut;
use nodewise_experiment::executor::Unprepared;
use nodewise_experiment::journal;
use nodewise_experiment::study::{Dropped, End, Study};
use nodewise_experiment::verdict::Analysis;
use nodewise_machine::placement::Scope;
pub use saved::saved;

use crate::style::{Ink, Style};
use crate::text::line::{Line, Page};

/// How much of a study is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The conclusion and what it rests on; long lists are folded.
    Brief,
    All,
}

/// Writes a study and what is concluded from it.
///
/// `scope` is what the program could choose from, `left_out` what was not tried and why.
pub fn tune(
    study: &Study,
    analysis: &Analysis,
    scope: &Scope,
    left_out: &[LeftOut],
    extent: Extent,
    style: &Style,
) -> String {
    let mut page = Page::new(*style);
    if let (Some(text), 0) = (nothing_works(study), study.blocks_begun()) {
        page.line(2, &Line::new().with(Ink::Notable, text));
        page.line(2, &conclusion::head(study).as_str().into());
        return page.finish();
    }
    conclusion::write(study, analysis, scope, &mut page);
    let concluded = page.lines();
    page.line(0, &Line::new());
    results::write(study, analysis, extent, &mut page);
    notes::write(study, analysis, &mut page);
    pages::write(study, analysis, extent, &mut page);
    also::also(study, analysis, &mut page);
    evidence::write(study, analysis, extent, &mut page);
    not_tried(left_out, extent, &mut page);
    if page.lines() - concluded >= SCREEN {
        conclusion::repeat(study, analysis, scope, &mut page);
    }
    page.finish()
}

/// The lines of a terminal of the usual size: the conclusion above as many cannot be seen at the end.
const SCREEN: usize = 24;

/// Why a study ended that others should not build on: the program fails without any placement, or its
/// preparation does. As the program wrote it: not fit for a terminal.
pub fn nothing_works(study: &Study) -> Option<String> {
    match &study.end {
        End::BaselineFailed(dropped) => {
            Some(format!("the program fails without any placement too: {}", reason(dropped)))
        }
        End::PreparationFailed(why) => Some(format!("the preparation failed: {}", unprepared(study, why))),
        _ => None,
    }
}

/// Which command failed before a run, and how.
fn unprepared(study: &Study, why: &Unprepared) -> String {
    format!("{} {why}", journal::words(study.prepare.as_deref().unwrap_or_default()))
}

/// How a program failed, with the last line it complained with.
fn reason(dropped: &Dropped) -> String {
    dropped.ending.with_complaint(dropped.complaint.as_deref())
}

/// The names of placements that a folded list holds at most.
const MOST_NAMES: usize = 6;

/// The placements that were not tried: their names, or with the reasons.
fn not_tried(left_out: &[LeftOut], extent: Extent, page: &mut Page) {
    if left_out.is_empty() {
        return;
    }
    if extent == Extent::All {
        page.heading("Not tried", "");
        for one in left_out {
            page.line(4, &format!("  {}: {}", one.name, one.why).as_str().into());
        }
        return;
    }
    let names: Vec<&str> = left_out.iter().map(|one| one.name.as_str()).collect();
    let (named, more) = names.split_at(names.len().min(MOST_NAMES));
    let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    let text = format!("not tried: {}{more} (--all says why)", named.join(", "));
    page.line(0, &Line::new());
    page.line(2, &Line::new().with(Ink::Faint, text));
}
