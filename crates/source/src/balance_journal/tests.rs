//! Lines there and back, cut ends, and what is open.

use proptest::prelude::*;

use super::*;

fn line(id: u64, entry: Entry) -> Line {
    Line { schema: SCHEMA.to_owned(), at_unix_s: 7, boot: "b".to_owned(), id: Some(id), entry }
}

fn began() -> Entry {
    Entry::Began(Began {
        process: ProcessEntry { pid: 100, started_ticks: 5, name: "java \u{1b}[2J".to_owned() },
        at_ticks: 900,
        image: None,
        action: ActionEntry {
            need: "stranded".to_owned(),
            need_share: 0.5,
            remote_share: None,
            pages: vec![PagesEntry { from: 0, to: 1, size_bytes: 4096 }],
            most_bytes: 4096,
            spread: Vec::new(),
            cpus: None,
        },
    })
}

fn batch() -> Entry {
    let run = RunEntry { start: "7f00".into(), length: 8192, page_bytes: 256, kind: "anon".into(), node: 3 };
    Entry::Batch { runs: vec![run] }
}

fn affinity() -> Entry {
    let change = ThreadChange { tid: 100, started_ticks: 5, before: "0-3".to_owned(), after: "1".to_owned() };
    Entry::Affinity { threads: vec![change] }
}

fn undone(threads: bool, pages: bool) -> Entry {
    Entry::Undone { threads, pages, moved_bytes: 0, failed_bytes: 0 }
}

fn all() -> Vec<Line> {
    let judged = Entry::Judged { verdict: "as planned".to_owned(), before_share: 0.5, after_share: None };
    let ended = Entry::Ended { ending: "done".to_owned(), moved_bytes: 4096, failed_bytes: 0 };
    let entries = [began(), affinity(), batch(), ended, judged];
    entries.into_iter().map(|entry| line(1, entry)).collect()
}

#[test]
fn lines_are_read_back_as_they_were_written() {
    let text: String = all().iter().map(Line::to_text).collect();
    assert_eq!(parse(&text).unwrap(), all());
    assert!(text.lines().next().unwrap().starts_with("{\"schema\":\"nodewise.balance/1\",\"at_unix_s\":7,"));
}

#[test]
fn a_line_that_was_cut_while_it_was_written_is_left_out() {
    let text: String = all().iter().map(Line::to_text).collect();
    let first = text.find('\n').unwrap() + 1;
    for end in 0..text.len() {
        if text.is_char_boundary(end) {
            let lines = parse(&text[..end]).unwrap();
            assert_eq!(lines.len(), text[..end].matches('\n').count());
            assert_eq!(open_actions(&lines).len(), usize::from(end >= first));
        }
    }
}

#[test]
fn a_file_that_is_not_a_journal_is_refused_with_its_line() {
    let first = line(1, began()).to_text();
    let refused = parse(&format!("{first}precious\n")).unwrap_err();
    assert_eq!(refused, "line 2 is \"precious\": expected a line of nodewise.balance/1");
    assert!(parse(&first.replace("balance/1", "balance/2")).is_err());
}

#[test]
fn an_action_is_open_until_threads_and_pages_are_back() {
    let check = |more: &[Entry], expected: Option<(usize, usize)>| {
        let lines: Vec<Line> =
            all().into_iter().chain(more.iter().map(|entry| line(1, entry.clone()))).collect();
        let open = open_actions(&lines);
        assert_eq!(open.first().map(|open| (open.threads.len(), open.runs.len())), expected);
    };
    check(&[], Some((1, 1)));
    check(&[undone(true, false)], Some((0, 1)));
    check(&[undone(false, true)], Some((1, 0)));
    check(&[undone(true, true)], None);
    assert_eq!(open_actions(&all())[0].runs[0].node, NodeId::new(3));
    assert_eq!(open_actions(&[line(1, batch())]), [], "without a beginning");
}

proptest! {
    #[test]
    fn any_text_is_survived(text in any::<String>(), start in any::<String>(), numbers in any::<(u64, u64, u32)>()) {
        let _ = parse(&format!("{text}\n"));
        let (length, page_bytes, node) = numbers;
        let entry = RunEntry { start, length, page_bytes, kind: "anon".to_owned(), node };
        if let Some(run) = entry.to_run() {
            prop_assert!(run.start.checked_add(run.length).is_some() && run.length % run.page_size.get() == 0);
        }
        let run = RunEntry { start: format!("{length:x}"), ..entry }.to_run();
        if let Some(run) = run {
            prop_assert_eq!(RunEntry::new(&run).to_run(), Some(run));
        }
    }
}
