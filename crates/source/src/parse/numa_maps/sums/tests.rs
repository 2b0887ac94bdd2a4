use super::super::{Mapping, MappingKind, parse};
use super::*;
use proptest::prelude::{Strategy, any, prop, prop_assert_eq, prop_oneof, proptest};

fn sum(pieces: &[&[u8]]) -> Parsed<Sums> {
    let mut summing = Summing::default();
    pieces.iter().for_each(|piece| summing.push(piece));
    summing.finish()
}

/// KiB by node and use: `[huge, heap, stack, private]`.
fn check(text: &str, expected: &[(u32, [u64; 4])], problems: &[&str]) {
    let Parsed { value, problems: found } = sum(&[text.as_bytes()]);
    let sizes: Vec<_> = value
        .nodes
        .iter()
        .map(|on| (on.node.number(), Use::ALL.map(|of| on.memory(of).get() / 1024)))
        .collect();
    assert_eq!(sizes, expected, "{text}");
    assert_eq!(found.first.iter().map(ToString::to_string).collect::<Vec<_>>(), problems, "{text}");
}

#[test]
fn pages_are_summed_by_node_and_use() {
    check(
        "00400000 default file=/bin/holder dirty=1 mapmax=3 active=0 N1=1 kernelpagesize_kB=4\n\
         3330d000 default heap anon=1027 dirty=1027 active=0 N3=1027 kernelpagesize_kB=4\n\
         7f8ba1800000 default file=/anon_hugepage\\040(deleted) huge anon=3 N0=1 N1=2 kernelpagesize_kB=2048\n\
         7f8ba1e00000 prefer (many):3 anon=8192 dirty=8192 N3=8192 kernelpagesize_kB=4\n\
         7f8ba6ed7000 default\n\
         7ffdf9393000 default stack anon=3 dirty=3 active=0 N3=3 kernelpagesize_kB=4\n\
         7ffdf9394000 default stack:71 anon=1 N3=1 kernelpagesize_kB=4\n",
        &[(0, [2048, 0, 0, 0]), (1, [4096, 0, 0, 4]), (3, [0, 4108, 16, 32768])],
        &[],
    );
}

#[test]
fn own_memory_is_what_no_file_and_no_other_process_has() {
    let own = |line: &str| {
        let sums = sum(&[format!("7f00 default {line} kernelpagesize_kB=4\n").as_bytes()]).value;
        sums.on(NodeId::new(0)).unwrap().own().get() / 4096
    };
    assert_eq!(own("anon=5 dirty=5 N0=5"), 5);
    // Pages of a fork, until one of both writes to them.
    assert_eq!(own("anon=5 dirty=5 mapmax=2 N0=5"), 5);
    assert_eq!(own("heap anon=5 N0=5"), 5);
    assert_eq!(own("file=/usr/lib/libc.so.6 mapped=5 mapmax=31 N0=5"), 0);
    assert_eq!(own("file=/srv/data mapped=5 N0=5"), 0);
    // The data of a program, all of it written; and some of it.
    assert_eq!(own("file=/usr/sbin/mysqld anon=5 dirty=5 N0=5"), 5);
    assert_eq!(own("file=/usr/sbin/mysqld anon=2 dirty=2 mapped=5 N0=5"), 0);
    for shared in
        ["/dev/zero\\040(deleted)", "/memfd:ram\\040(deleted)", "/SYSV00000000\\040(deleted)", "/dev/shm/x"]
    {
        assert_eq!(own(&format!("file={shared} dirty=5 N0=5")), 5);
        assert_eq!(own(&format!("file={shared} dirty=5 mapmax=2 N0=5")), 0);
    }
    assert_eq!(own("file=/anon_hugepage\\040(deleted) huge anon=5 N0=5"), 5);
    assert_eq!(own("file=/mnt/huge/x huge mapmax=2 N0=5"), 0);
    // What does not parse proves nothing.
    assert_eq!(own("file=/mnt/huge/x huge mapmax=x N0=5"), 0);
    // Lines that are alike but for their address.
    let line = "default file=/srv/data mapped=5 N0=5 kernelpagesize_kB=4\n";
    let sums =
        sum(&[format!("7f00 {line}7f10 {line}7f20 default anon=1 N0=1 kernelpagesize_kB=4\n7f30 {line}")
            .as_bytes()]);
    assert_eq!(sums.value.on(NodeId::new(0)).unwrap().own(), Bytes::from_kib(4));
}

#[test]
fn what_does_not_parse_is_told_and_never_0() {
    check(
        "7f default N0=18446744073709551616 N1=1 kernelpagesize_kB=4\n7f default N99999=1\nnonsense N0=5\n",
        &[(1, [0, 0, 0, 4])],
        &[
            "line 1: expected a node and a number of pages as in N0=1, found \"N0=18446744073709551616\"",
            "line 2: expected a node and a number of pages as in N0=1, found \"N99999=1\"",
            "line 3: expected an address in hexadecimal, found \"nonsense\"",
        ],
    );
    let twice = sum(&[b"7f default N0=x\n80 default N0=x\n"]);
    assert_eq!(twice.problems.count(), 2, "each of them is told");
    check(
        "7f default N0=1 kernelpagesize_kB=x\n",
        &[],
        &["line 1: expected a page size in kB below 2^54, found \"kernelpagesize_kB=x\""],
    );
}

#[test]
fn a_policy_is_no_count_whatever_it_looks_like() {
    check("7f N1=4 N0=2 kernelpagesize_kB=4\n80\n81 N1=4\n", &[(0, [0, 0, 0, 8])], &[]);
}

#[test]
fn a_line_that_was_cut_is_not_counted() {
    check(
        "7f default N0=1 kernelpagesize_kB=4\n80 default huge N0=1 kernelpagesize_kB=2",
        &[(0, [0, 0, 0, 4])],
        &["line 2: expected a whole line, found \"80 default huge N0=1 kernelpagesize_kB=2\""],
    );
}

#[test]
fn pages_of_unknown_size_are_counted_apart() {
    let sums = sum(&[b"7f default anon=7 N0=3 N1=4\n"]).value;
    assert_eq!((sums.nodes.len(), sums.pages_of_unknown_size), (0, 7));
}

#[test]
fn a_line_without_end_costs_no_memory() {
    let mut summing = Summing::default();
    summing.push(b"7f default ");
    (0..1000).for_each(|_| summing.push(&[b'x'; 1000]));
    assert!(summing.rest.len() <= MOST_LINE_BYTES + 1);
    summing.push(b" N0=1 kernelpagesize_kB=4\n80 default N0=1 kernelpagesize_kB=4\n");
    let Parsed { value, problems } = summing.finish();
    assert_eq!(value.on(NodeId::new(0)).map(OnNode::total), Some(Bytes::from_kib(4)));
    assert!(problems.first[0].to_string().starts_with("line 1: expected a line of at most 64 KiB"));
}

/// Whether the pages of a mapping are its process's own.
fn is_own(mapping: &Mapping) -> bool {
    let is_alone = mapping.mapmax.is_none_or(|most| most <= 1);
    let shared = ["/dev/zero (deleted)", "/dev/shm/", "/memfd:", "/SYSV"];
    match &mapping.file {
        _ if mapping.huge => is_alone,
        None => true,
        Some(file) if shared.iter().any(|known| file.starts_with(known)) => is_alone,
        Some(_) => mapping.anon.unwrap_or(0) >= mapping.pages.iter().map(|(_, pages)| pages).sum(),
    }
}

/// The same sums by way of the mappings.
fn by_mapping(mappings: &[Mapping]) -> Sums {
    let mut sums = Sums::default();
    for mapping in mappings {
        let of = match (mapping.huge, mapping.kind) {
            (true, _) => Use::Huge,
            (_, MappingKind::Heap) => Use::Heap,
            (_, MappingKind::Stack) => Use::Stack,
            (_, MappingKind::Other) => Use::Private,
        };
        match mapping.bytes() {
            Some(bytes) => bytes.for_each(|(node, size)| sums.add(node, of, size, is_own(mapping))),
            None => sums.pages_of_unknown_size += mapping.pages.iter().map(|(_, pages)| pages).sum::<u64>(),
        }
    }
    sums
}

fn line() -> impl Strategy<Value = String> {
    let policy = prop_oneof!["default", "bind:0-1", r"prefer \(many\):3", "weighted interleave:0-3"];
    let word = prop_oneof![
        "(anon|dirty|active|mapped)=[0-9]{1,9}",
        r"file=/[!-<>-~]{0,30}",
        "[a-jl-z]{1,9}",
        "Normal",
        "kernel"
    ];
    let counts = prop::collection::vec((0u32..1024, 0u64..1 << 40), 0..6);
    let parts = (any::<u32>(), policy, prop::collection::vec(word, 0..4), "( heap| stack)?( huge)?");
    (parts, counts, prop::option::of(1u64..1 << 20)).prop_map(
        |((start, policy, words, kind), counts, kib)| {
            let words: String = words.iter().map(|word| format!(" {word}")).collect();
            let counts: String = counts.iter().map(|(node, pages)| format!(" N{node}={pages}")).collect();
            let kib = kib.map(|kib| format!(" kernelpagesize_kB={kib}")).unwrap_or_default();
            format!("{start:08x} {policy}{words}{kind}{counts}{kib}\n")
        },
    )
}

proptest! {
    #[test]
    fn sums_are_those_of_the_mappings_however_the_file_is_cut(lines in prop::collection::vec(line(), 0..12), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6)) {
        let text = lines.concat();
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).chain([0, text.len()]).collect();
        at.sort_unstable();
        let pieces: Vec<&[u8]> = at.windows(2).map(|cut| &text.as_bytes()[cut[0]..cut[1]]).collect();
        let ours = sum(&pieces);
        let mappings = parse(&text);
        prop_assert_eq!(ours.problems.count(), 0);
        prop_assert_eq!(mappings.problems.count(), 0);
        prop_assert_eq!(ours.value, by_mapping(&mappings.value));
    }

    #[test]
    fn any_bytes_in_any_pieces_are_read_the_same(bytes in any::<Vec<u8>>(), near in r"([0-9a-fN]{0,3}[ \t\n]?(N[0-9]{1,22}=?[0-9]{0,22}|huge|heap|kernelpagesize_kB=[0-9]{0,20})[ \n]?){0,6}", size in 1usize..9) {
        for text in [&bytes[..], near.as_bytes()] {
            let pieces: Vec<&[u8]> = text.chunks(size).collect();
            prop_assert_eq!(sum(&pieces), sum(&[text]));
        }
    }
}
