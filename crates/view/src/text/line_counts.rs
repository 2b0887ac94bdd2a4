//! Cache lines that a program moved: the text of `nodewise lab --count`.

use nodewise_machine::Bytes;
use nodewise_machine::printable::printable;

use crate::digest::line_counts::{
    LINE, LineCounts, LocalShare, LocalVerdict, PhaseShare, SharedLine, Sharing, percent,
};
use crate::style::{Ink, Style};
use crate::text::line::{Line, Page};
use crate::text::matrix;
use crate::text::table::{Align, Column, Keep, Table};

/// Most threads and mappings that are listed.
const MOST: usize = 10;

/// Writes what was counted.
pub fn line_counts(counts: &LineCounts, style: &Style) -> String {
    let mut page = Page::new(*style);
    let all = counts.all();
    let of_phase = counts.chosen.as_deref().map(|name| format!(", of the phase {}", printable(name)));
    page.heading("Cache lines", &format!("{} local{}", percent(all), of_phase.unwrap_or_default()));
    matrix::write(&counts.matrix(), &mut page);
    let (read, written) = counts.read_and_written();
    let bytes = Bytes::new(all.all.saturating_mul(LINE));
    remark(&mut page, Ink::Plain, &format!("{read} lines read and {written} written back: {bytes}"));
    if read > 0 {
        let share = LocalShare { local: counts.in_order(), all: read };
        remark(&mut page, Ink::Plain, &format!("{} of the lines read are read in order", percent(share)));
    }
    if counts.nowhere() > 0 {
        remark(&mut page, Ink::Notable, &counts.nowhere_words());
    }
    remark(&mut page, Ink::Faint, &counts.cache_words());
    counts.unsure_words().into_iter().for_each(|words| remark(&mut page, Ink::Notable, &words));
    if let Some(share) = counts.of_kernel() {
        page.heading("Kernel", "lines that the kernel moved for the program, among those above");
        matrix::write(&counts.kernel_matrix(&share.words()), &mut page);
    }
    if counts.chosen.is_none() {
        phases(counts, &mut page);
    }
    threads(counts, &mut page);
    mappings(counts, &mut page);
    code(counts, &mut page);
    shared_lines(counts, &mut page);
    page.finish()
}

/// Writes the verdict about a demand for local lines, and what broke it.
pub fn local_verdict(counts: &LineCounts, verdict: &LocalVerdict) -> String {
    let wanted = verdict.demand.percent;
    let share = percent(verdict.share());
    let mut text = match &verdict.demand.mapping {
        Some(name) => {
            format!(
                "{}: {share} of the cache lines read are local: {wanted} % were demanded",
                printable(name)
            )
        }
        None => format!("{share} of the cache lines are local: {wanted} % were demanded"),
    };
    if verdict.is_unsure() {
        let others = [0, 2]
            .map(|size| format!("{} with a cache of {}", percent(verdict.shares[size]), counts.sizes[size]));
        text.push_str(&format!("; unsure: {}", others.join(", ")));
    }
    if verdict.holds() {
        return text;
    }
    for (from, to, lines) in verdict.worst_pairs.iter().take(3) {
        text.push_str(&format!("; {lines} lines from CPUs of node {from} to memory of node {to}"));
    }
    // Threads are counted for all memory alone.
    if verdict.demand.mapping.is_none()
        && let Some((thread, share)) = counts.worst_threads().first()
    {
        let name = counts.thread_name(*thread);
        text.push_str(&format!("; most of them by {}: {} remote", printable(&name), share.remote()));
    }
    text
}

fn remark(page: &mut Page, ink: Ink, text: &str) {
    page.line(4, &Line::new().with(ink, format!("  {text}")));
}

/// The local share of each phase, and its lines by node.
fn phases(counts: &LineCounts, page: &mut Page) {
    let all = counts.phase_shares().len();
    if all > 0 {
        let shown = counts.worst_phases(MOST);
        let note = if all > shown.len() {
            format!("{} of {all}, those with most remote lines", shown.len())
        } else {
            String::new()
        };
        page.heading("Phases", &note);
        for PhaseShare { phase, share } in shown {
            matrix::write(&counts.phase_matrix(phase, &share.words()), page);
        }
    }
    if counts.lost_phases > 0 {
        let text = format!(
            "{} marks of phases beyond the most that are distinguished are counted outside of phases",
            counts.lost_phases
        );
        remark(page, Ink::Notable, &text);
    }
}

fn threads(counts: &LineCounts, page: &mut Page) {
    let worst = counts.worst_threads();
    let shown = worst.len().min(MOST);
    let all = if worst.len() > shown {
        format!("{shown} of {}, those with most remote lines first", worst.len())
    } else {
        String::new()
    };
    page.heading("Threads", &all);
    let column = |head, align| Column { head, align, keep: Keep::Always };
    let mut columns = vec![
        column("process", Align::Right),
        column("thread", Align::Right),
        column("lines", Align::Right),
        column("remote", Align::Right),
        column("local", Align::Right),
        column("name", Align::Left),
    ];
    if counts.with_kernel {
        columns.insert(3, column("kernel", Align::Right));
    }
    let mut table = Table::new(columns);
    for (place, share) in worst.into_iter().take(shown) {
        let ids = counts.threads[place].ids;
        let mut row = vec![
            ids.map(|(_, process)| Line::from(process.to_string())).unwrap_or_default(),
            ids.map(|(thread, _)| Line::from(thread.to_string())).unwrap_or_default(),
            share.all.to_string().into(),
            share.remote().to_string().into(),
            percent(share).into(),
            counts.thread_name(place).into(),
        ];
        if counts.with_kernel {
            row.insert(3, counts.thread_kernel_lines(place).to_string().into());
        }
        table.row(row);
    }
    table.write(page);
    if counts.lost > 0 {
        let text = format!(
            "{} threads beyond the most that are distinguished are counted with the last",
            counts.lost
        );
        remark(page, Ink::Notable, &text);
    }
}

fn mappings(counts: &LineCounts, page: &mut Page) {
    let worst = counts.worst_mappings();
    let shown = worst.len().min(MOST);
    let more = if worst.len() > shown { format!("; {shown} of {}", worst.len()) } else { String::new() };
    page.heading("Mappings", &format!("lines read{more}"));
    let column = |head, align| Column { head, align, keep: Keep::Always };
    let mut table = Table::new(vec![
        column("process", Align::Right),
        column("lines", Align::Right),
        column("remote", Align::Right),
        column("local", Align::Right),
        column("mapping", Align::Left),
    ]);
    for (mapping, share) in worst.into_iter().take(shown) {
        table.row(vec![
            mapping.process.map(|process| Line::from(process.to_string())).unwrap_or_default(),
            share.all.to_string().into(),
            share.remote().to_string().into(),
            percent(share).into(),
            mapping.kind.word().into(),
        ]);
    }
    table.write(page);
}

/// Places in programs that read lines; nothing unless they were counted.
fn code(counts: &LineCounts, page: &mut Page) {
    let Some(code) = counts.code.as_ref().filter(|code| !code.reads.is_empty()) else { return };
    let worst = counts.worst_code();
    let shown = worst.len().min(MOST);
    let more = if worst.len() > shown { format!("; {shown} of {}", worst.len()) } else { String::new() };
    page.heading("Source lines", &format!("lines read{more}"));
    let column = |head, align| Column { head, align, keep: Keep::Always };
    let mut table = Table::new(vec![
        column("lines", Align::Right),
        column("remote", Align::Right),
        column("local", Align::Right),
        column("program", Align::Left),
        column("code", Align::Left),
    ]);
    for (line, share) in worst.into_iter().take(shown) {
        table.row(vec![
            share.all.to_string().into(),
            share.remote().to_string().into(),
            percent(share).into(),
            line.program.name().into(),
            line.code_words().map(Line::from).unwrap_or_default(),
        ]);
    }
    table.write(page);
    if code.lost > 0 {
        let text = format!("{} instructions beyond the most that are distinguished are not known", code.lost);
        remark(page, Ink::Notable, &text);
    }
}

/// Lines that threads of several nodes write to; nothing where there are none.
fn shared_lines(counts: &LineCounts, page: &mut Page) {
    if counts.lost_lines > 0 {
        let text =
            format!("{} lines written to often had no room: sharing of them is not known", counts.lost_lines);
        remark(page, Ink::Notable, &text);
    }
    if counts.shared.is_empty() {
        return;
    }
    let of = |sharing| counts.shared.iter().filter(|line| line.sharing() == sharing).count();
    let [apart, same] = [Sharing::False, Sharing::True].map(of);
    page.heading("Shared lines", &format!("written by threads of several nodes: {apart} false, {same} true"));
    for sharing in [Sharing::False, Sharing::True] {
        let lines: Vec<&SharedLine> = counts.shared.iter().filter(|line| line.sharing() == sharing).collect();
        if !lines.is_empty() {
            sharing_table(counts, sharing, &lines, page);
        }
    }
}

/// The lines of one kind of sharing.
fn sharing_table(counts: &LineCounts, sharing: Sharing, lines: &[&SharedLine], page: &mut Page) {
    let (ink, words) = match sharing {
        Sharing::False => (
            Ink::Notable,
            "false sharing: threads write to different bytes of a line; give what each writes a line of its own",
        ),
        Sharing::True => {
            (Ink::Plain, "true sharing: threads write to the same bytes, such as a lock or a counter")
        }
    };
    remark(page, ink, words);
    let column = |head, align| Column { head, align, keep: Keep::Always };
    let mut columns = vec![
        column("mapping", Align::Left),
        Column { head: "address", align: Align::Right, keep: Keep::Unless(0) },
        column("node", Align::Right),
        column("thread", Align::Right),
        column("writes", Align::Right),
        column("bytes", Align::Left),
    ];
    if counts.code.is_some() {
        columns.push(column("by", Align::Left));
    }
    let mut table = Table::new(columns);
    lines.iter().take(MOST).for_each(|line| writers(counts, line, &mut table));
    table.write(page);
    if lines.len() > MOST {
        remark(page, Ink::Faint, &format!("{MOST} of {}, --json has all", lines.len()));
    }
}

/// A row for each writer of a line; what they have in common is in the first.
fn writers(counts: &LineCounts, line: &SharedLine, table: &mut Table) {
    for (at, writer) in line.writers.iter().enumerate() {
        let once = |text: String| if at == 0 { Line::from(text) } else { Line::from(" ") };
        let mapping = counts.mappings.get(line.mapping).map_or("unknown", |mapping| mapping.kind.word());
        let places = counts.code.as_ref().map(|code| &code.places);
        let by = places.and_then(|places| places.get(writer.by?));
        let ids = counts.threads.get(writer.thread).and_then(|thread| thread.ids);
        let mut row = vec![
            once(mapping.to_owned()),
            once(format!("{:#x}", line.address)),
            writer.cpu_node.to_string().into(),
            ids.map(|(thread, _)| Line::from(thread.to_string())).unwrap_or_default(),
            writer.writes.to_string().into(),
            writer.bytes_words().into(),
        ];
        if counts.code.is_some() {
            row.push(by.map(|place| Line::from(place.words())).unwrap_or_default());
        }
        table.row(row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::line_counts::LineCode;
    use crate::digest::line_counts::LocalDemand;
    use crate::digest::line_counts::code::tests::code;
    use crate::digest::line_counts::tests::phased;
    use crate::digest::line_counts::tests::sample;
    use crate::digest::line_counts::tests::with_kernel;

    #[test]
    fn lines_are_shown_by_node_and_by_thread() {
        let text = line_counts(&sample(), &Style::plain(80));
        assert_eq!(
            text,
            "Cache lines  84.8 % local
  lines  64 bytes each, read and written back
  CPU\\mem     0     1     2
  node 0   1000    50     0
  node 1      0   700   250
  1894 lines read and 110 written back: 125.2 KiB
  50.0 % of the lines read are read in order
  4 lines of memory outside of all nodes are in no column
  modelled cache of each CPU: 1 MiB in 16 ways, assumed: the machine does not
    give the size
  unsure: 2204 lines with a cache of 512 KiB, 1344 with 2 MiB

Threads
  process  thread  lines  remote   local  name
      300     301    954     254  73.3 %  worker\\x1b
      300     300   1050      50  95.2 %  stream

Mappings  lines read
  process  lines  remote   local  mapping
      300   1140     240  78.9 %  [heap]
      300    750      50  93.3 %  lib\\x1b.so
        -      4       4   0.0 %  unknown

Shared lines  written by threads of several nodes: 1 false, 1 true
  false sharing: threads write to different bytes of a line; give what each
    writes a line of its own
  mapping     address  node  thread  writes  bytes
  [heap]   0x55aa0040     0     300    4000  0-7
                          1     301    3000  8-15
  true sharing: threads write to the same bytes, such as a lock or a counter
  mapping        address  node  thread  writes  bytes
  lib\\x1b.so  0x7f001000     0     300      70  0-3,8
                             1     301      60  0-3
"
        );
    }

    #[test]
    fn lines_are_shown_by_source_line_where_they_were_counted_so() {
        let mut counts = sample();
        counts.code = Some(LineCode { lost: 3, ..code() });
        let text = line_counts(&counts, &Style::plain(80));
        let (_, rest) = text.split_once("\nSource lines  lines read\n").unwrap();
        assert_eq!(
            rest,
            "  lines  remote    local  program         code
   1200     300   75.0 %  stream          triad.c:14 triad, inlined into
                                          main\\x1b
     50      50    0.0 %  stream          0x1a40
      4       4    0.0 %  without a file  -
    600       0  100.0 %  libc.so.6       memcpy
  3 instructions beyond the most that are distinguished are not known

Shared lines  written by threads of several nodes: 1 false, 1 true
  false sharing: threads write to different bytes of a line; give what each
    writes a line of its own
  mapping     address  node  thread  writes  bytes  by
  [heap]   0x55aa0040     0     300    4000  0-7    triad.c:14
                          1     301    3000  8-15   memcpy of libc.so.6
  true sharing: threads write to the same bytes, such as a lock or a counter
  mapping        address  node  thread  writes  bytes  by
  lib\\x1b.so  0x7f001000     0     300      70  0-3,8  triad.c:14
                             1     301      60  0-3    memcpy of libc.so.6
"
        );
    }

    #[test]
    fn lines_of_the_kernel_have_a_table_a_column_and_a_row() {
        let text = line_counts(&with_kernel(), &Style::plain(80));
        let (_, rest) = text.split_once("\nKernel").unwrap();
        let (kernel, _) = rest.split_once("\nShared lines").unwrap();
        assert_eq!(
            kernel,
            "  lines that the kernel moved for the program, among those above
  kernel  0.0 % of 250 lines are local, 250 are remote
  CPU\\mem    0    1    2
  node 0     0    0    0
  node 1     0    0  250

Threads
  process  thread  lines  kernel  remote   local  name
      300     301    954     250     254  73.3 %  worker\\x1b
      300     300   1050       0      50  95.2 %  stream

Mappings  lines read
  process  lines  remote    local  mapping
      300    240     240    0.0 %  kernel
      300    750      50   93.3 %  lib\\x1b.so
        -      4       4    0.0 %  unknown
      300    900       0  100.0 %  [heap]
"
        );
    }

    #[test]
    fn phases_have_a_table_each() {
        let mut counts = phased();
        counts.lost_phases = 2;
        let text = line_counts(&counts, &Style::plain(80));
        let (_, rest) = text.split_once("\nPhases\n").unwrap();
        let (phases, _) = rest.split_once("\nThreads\n").unwrap();
        assert_eq!(
            phases,
            "  outside of phases  95.2 % of 1050 lines are local, 50 are remote
  CPU\\mem     0     1     2
  node 0   1000    50     0
  node 1      0     0     0
  solve\\x1b  73.3 % of 954 lines are local, 254 are remote
  CPU\\mem    0    1    2
  node 0     0    0    0
  node 1     0  700  250
  2 marks of phases beyond the most that are distinguished are counted outside
    of phases
"
        );
        let only = line_counts(&phased().only_phase("solve\u{1b}").unwrap(), &Style::plain(80));
        assert!(only.starts_with("Cache lines  73.3 % local, of the phase solve\\x1b\n"), "{only}");
        assert!(!only.contains("Phases"), "{only}");
    }

    #[test]
    fn a_verdict_says_what_broke_it() {
        let counts = sample();
        let judge = |mapping: Option<&str>, percent| {
            let demand = LocalDemand { mapping: mapping.map(str::to_owned), percent };
            local_verdict(&counts, &counts.verdict(&demand).unwrap())
        };
        let say = |percent| judge(None, percent);
        assert_eq!(say(50.0), "84.8 % of the cache lines are local: 50 % were demanded");
        assert_eq!(
            say(95.0),
            "84.8 % of the cache lines are local: 95 % were demanded; 250 lines from CPUs of node 1 to memory of node 2; \
             50 lines from CPUs of node 0 to memory of node 1; most of them by worker\\x1b: 254 remote"
        );
        assert!(
            say(80.0).contains("; unsure: 86.2 % with a cache of 512 KiB, 77.3 % with a cache of 2 MiB"),
            "{}",
            say(80.0)
        );
        assert_eq!(
            judge(Some("lib\u{1b}.so"), 95.0),
            "lib\\x1b.so: 93.3 % of the cache lines read are local: 95 % were demanded; 50 lines from CPUs of node 0 to memory \
             of node 1"
        );
        assert_eq!(
            judge(Some("lib\u{1b}.so"), 93.0),
            "lib\\x1b.so: 93.3 % of the cache lines read are local: 93 % were demanded"
        );
    }
}
