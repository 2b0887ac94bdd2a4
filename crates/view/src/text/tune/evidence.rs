//! Counters of the kernel and the CPU while the program ran, and the runs that others spoilt.

use nodewise_experiment::study::Study;
use nodewise_experiment::verdict::Analysis;

use super::Extent;
use crate::digest::counts::{by_count, plural};
use crate::digest::evidence::{Counted, Medians};
use crate::digest::survey::by_reason;
use crate::style::Ink;
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table};

/// Writes the counts, as far as they say something, and which runs others spoilt.
pub(super) fn write(study: &Study, analysis: &Analysis, extent: Extent, page: &mut Page) {
    if extent == Extent::Brief {
        return;
    }
    let told = Medians::shown(study, analysis.arms.iter().map(|result| result.arm));
    let spoilt: Vec<(usize, usize)> = analysis.arms.iter().map(|result| study.spoilt(result.arm)).collect();
    let repeated: usize = spoilt.iter().map(|(aside, _)| aside).sum();
    if !told.is_empty() || repeated > 0 {
        page.heading("Counted", "medians of the runs");
        let mut columns = vec![Column { head: "placement", align: Align::Left, keep: Keep::Always }];
        columns.extend(told.iter().map(|one| column_of(one.counted)));
        columns.push(Column { head: "repeated", align: Align::Left, keep: Keep::Always });
        let mut table = Table::new(columns).naming_omitted();
        for (at, (result, (aside, _))) in analysis.arms.iter().zip(&spoilt).enumerate() {
            let mut row: Vec<Line> = vec![study.plan.arm(result.arm).name.as_str().into()];
            row.extend(told.iter().map(|one| Line::from(one.words(at))));
            row.push(if *aside > 0 { aside.to_string().into() } else { Line::new() });
            table.row(row);
        }
        table.write(page);
    }
    if !study.not_counted.is_empty() {
        page.line(4, &Line::new().with(Ink::Faint, format!("  not counted: {}", not_counted(study))));
    }
}

/// Those that are counted of every program go first where there is no room.
const fn column_of(counted: Counted) -> Column {
    let keep = match counted {
        Counted::CpuTime | Counted::MaxRss => 0,
        Counted::MinorFaults | Counted::MajorFaults => 1,
        Counted::Others | Counted::Stolen => 2,
        Counted::Event(_) => 3,
        Counted::Moved | Counted::Interleaved => 4,
        Counted::Local | Counted::Hit | Counted::Missed | Counted::Foreign | Counted::Balanced => 5,
    };
    Column { head: counted.head(), align: Align::Right, keep: Keep::Unless(keep) }
}

/// How many runs others spoilt, and what became of them; `None` where there are none.
pub(super) fn spoilt_words(study: &Study, analysis: &Analysis) -> Option<String> {
    let spoilt = analysis.arms.iter().map(|result| study.spoilt(result.arm));
    let (repeated, kept) = spoilt.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    if repeated + kept == 0 {
        return None;
    }
    let all = repeated + kept;
    let what = match (repeated, kept) {
        (_, 0) => "repeated".to_owned(),
        (0, _) => "counted because they had been repeated often enough".to_owned(),
        _ => format!("{repeated} repeated, {kept} counted because they had been repeated often enough"),
    };
    let runs = format!("{} {}", plural(all, "run"), by_count(&all, "was", "were"));
    Some(format!("{runs} spoilt by other programs or the hypervisor: {what}"))
}

/// Events that are not counted here, those with the same reason together.
fn not_counted(study: &Study) -> String {
    let reasons = by_reason(study.not_counted.iter().map(|(counter, why)| (why.as_str(), counter.name())));
    let reason = |(why, names): &(&str, Vec<&str>)| format!("{} ({why})", names.join(", "));
    reasons.iter().map(reason).collect::<Vec<_>>().join("; ")
}
