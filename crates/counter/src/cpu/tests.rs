use super::*;

fn nodes() -> Nodes {
    let mut nodes = Nodes::new();
    assert!(nodes.add(0, 1 << 30, 0) && nodes.add(1 << 30, 2 << 30, 1));
    nodes
}

fn cpu() -> Cpu {
    let mut cpu = Cpu::new();
    assert!(cpu.begin(Geometry { size: 1 << 20, ways: 16 }));
    cpu
}

/// Virtual addresses of these tests are physical ones. Below 1 MiB is the mapping with the label 1 of the address
/// space 5, above it that with the label 2.
struct Plain;

impl Guest for Plain {
    fn physical(&self, address: u64) -> Option<u64> {
        Some(address)
    }

    fn mapping(&self, space: u64, address: u64) -> Option<Found> {
        let (start, end, label) = if address < 1 << 20 { (0, 1 << 20, 1) } else { (1 << 20, u64::MAX, 2) };
        (space == 5).then_some(Found { start, end, label, is_shared: false })
    }

    fn version(&self) -> u64 {
        1
    }

    fn phase(&self, thread: usize) -> usize {
        thread / 10
    }
}

fn touch(cpu: &mut Cpu, nodes: &Nodes, address: u64, is_write: bool) {
    cpu.access(Access { address, bytes: 8, is_write, at: 0 }, nodes, &Plain);
}

fn counts(cpu: &Cpu, thread: usize) -> Vec<Vec<u64>> {
    cpu.cells(Mode::User, 0, thread).map(<[u64]>::to_vec).collect()
}

#[test]
fn a_stream_is_counted_on_its_node_for_each_size() {
    let (nodes, mut cpu) = (nodes(), cpu());
    cpu.run(1, Some(3), &nodes);
    let (start, bytes) = (1 << 30, 3 << 19);
    for _ in 0..2 {
        (start..start + bytes).step_by(8).for_each(|address| touch(&mut cpu, &nodes, address, false));
    }
    // 1.5 MiB fit into the largest of 512 KiB, 1 MiB and 2 MiB.
    let lines = bytes / 64;
    let none = vec![0; COUNTS];
    // Each pass begins a stream, whose first three lines are not expected; twice the cache misses in the first.
    let moved = vec![2 * lines, 2 * lines, lines, 0, 0, 0, 2 * lines - 6, 2 * lines - 6, lines - 3];
    assert_eq!(counts(&cpu, 3), [none.clone(), moved, none.clone()]);
    assert_eq!(counts(&cpu, 2), [none.clone(), none.clone(), none]);
}

#[test]
fn a_line_written_back_counts_where_it_goes_and_not_where_its_successor_came_from() {
    let (nodes, mut cpu) = (nodes(), cpu());
    cpu.run(1, Some(0), &nodes);
    (0..1 << 20).step_by(64).for_each(|address| touch(&mut cpu, &nodes, address, true));
    let far = 1 << 30;
    (far..far + (1 << 20)).step_by(64).for_each(|address| touch(&mut cpu, &nodes, address, false));
    let lines = (1 << 20) / 64;
    assert_eq!(counts(&cpu, 0)[0][..6], [lines, lines, lines, lines, lines, 0]);
    assert_eq!(counts(&cpu, 0)[1][..6], [lines, lines, lines, 0, 0, 0]);
}

#[test]
fn what_is_not_counted_leaves_no_trace() {
    let (nodes, mut cpu) = (nodes(), cpu());
    cpu.run(1, None, &nodes);
    touch(&mut cpu, &nodes, 0, true);
    assert_eq!(counts(&cpu, 0), Vec::<Vec<u64>>::new());
    cpu.run(2, Some(1), &nodes);
    touch(&mut cpu, &nodes, 0, true);
    assert_eq!(counts(&cpu, 1)[0][..3], [1; 3]);
    cpu.run(1, None, &nodes);
    touch(&mut cpu, &nodes, 1 << 12, true);
    assert_eq!(counts(&cpu, 1)[0][..3], [1; 3]);
}

#[test]
fn a_write_to_a_recent_line_makes_it_one_that_is_written_back() {
    let (nodes, mut cpu) = (nodes(), cpu());
    cpu.run(1, Some(0), &nodes);
    touch(&mut cpu, &nodes, 0, false);
    touch(&mut cpu, &nodes, 64, false);
    touch(&mut cpu, &nodes, 0, true);
    (1 << 12..5 << 20).step_by(64).for_each(|address| touch(&mut cpu, &nodes, address, false));
    assert_eq!(counts(&cpu, 0)[0][3..6], [1; 3]);
}

#[test]
fn an_access_to_two_lines_counts_both_and_over_the_end_of_a_page_the_first() {
    let (nodes, mut cpu) = (nodes(), cpu());
    cpu.run(1, Some(0), &nodes);
    touch(&mut cpu, &nodes, 60, false);
    assert_eq!(counts(&cpu, 0)[0][0], 2);
    touch(&mut cpu, &nodes, 0x1ffc, false);
    assert_eq!(counts(&cpu, 0)[0][0], 3);
}

#[test]
fn lines_read_are_counted_for_the_mapping_of_their_address() {
    let (nodes, mut cpu) = (nodes(), cpu());
    cpu.run(1, Some(0), &nodes);
    touch(&mut cpu, &nodes, 0, true);
    cpu.enter(5);
    [64, 1 << 20, 128, 1 << 30, 64].into_iter().for_each(|address| touch(&mut cpu, &nodes, address, true));
    let parts = |label| cpu.parts(0, label).map(<[u64]>::to_vec).collect::<Vec<_>>();
    assert_eq!(parts(0), [vec![1; 3], vec![0; 3], vec![0; 3]]);
    assert_eq!(parts(1), [vec![2; 3], vec![0; 3], vec![0; 3]]);
    assert_eq!(parts(2), [vec![1; 3], vec![1; 3], vec![0; 3]]);
    assert_eq!(parts(3), [vec![0; 3], vec![0; 3], vec![0; 3]]);
}

#[test]
fn lines_are_counted_in_the_phase_in_which_they_move() {
    let (nodes, mut cpu) = (nodes(), cpu());
    cpu.run(1, Some(2), &nodes);
    touch(&mut cpu, &nodes, 0, true);
    // A thread of another phase, whose accesses drive the line out.
    cpu.run(2, Some(12), &nodes);
    (1 << 12..5 << 20).step_by(64).for_each(|address| touch(&mut cpu, &nodes, address, false));
    let cells = |phase, thread| cpu.cells(Mode::User, phase, thread).next().map(|cell| [cell[0], cell[3]]);
    assert_eq!(cells(0, 2), Some([1, 0]));
    assert_eq!(cells(1, 12), Some([((5 << 20) - (1 << 12)) / 64, 1]));
    assert_eq!((cells(0, 12), cells(2, 12)), (Some([0, 0]), None));
    let parts = |phase| cpu.parts(phase, 0).map(|part| part[0]).sum::<u64>();
    assert_eq!([parts(0), parts(1)], [1, ((5 << 20) - (1 << 12)) / 64]);
}

#[test]
fn lines_read_are_counted_for_their_instruction() {
    let (nodes, mut cpu) = (nodes(), cpu());
    cpu.run(1, Some(0), &nodes);
    let mut read =
        |address, at| cpu.access(Access { address, bytes: 8, is_write: false, at }, &nodes, &Plain);
    [(0, 7), (64, 7), (8, 8), (1 << 30, 8), (128, 0)].into_iter().for_each(|(address, at)| read(address, at));
    let lines = |at| cpu.read_at(0, at).map(|lines| lines[0]).collect::<Vec<_>>();
    assert_eq!([lines(7), lines(8), lines(9)], [[2, 0, 0], [0, 1, 0], [0, 0, 0]]);
    assert_eq!((lines(0), cpu.read_at(1, 7).count()), (vec![0, 0, 0], 0));
}

#[test]
fn bytes_that_threads_write_to_are_gathered_by_line() {
    let (nodes, mut cpu) = (nodes(), cpu());
    cpu.run(1, Some(7), &nodes);
    cpu.enter(5);
    let mut write =
        |address, bytes| cpu.access(Access { address, bytes, is_write: true, at: 0 }, &nodes, &Plain);
    for _ in 0..60 {
        write(4096, 4);
        write(8192 + 60, 8);
        write(12288 - 4, 8);
    }
    cpu.end();
    let mut other = Cpu::new();
    other.run(2, Some(8), &nodes);
    other.enter(5);
    let mut found = Vec::new();
    for address in [4096, 8192, 8256, 12224, 12288] {
        for _ in 0..60 {
            other.access(Access { address, bytes: 1, is_write: true, at: 0 }, &nodes, &Plain);
        }
    }
    other.end();
    let each = |cpu: usize, writes: &Writes| {
        if cpu == 0 {
            found.push((writes.line << 6, writes.bytes, writes.count, writes.thread, writes.label));
        }
        Ok::<(), ()>(())
    };
    crate::writers::shared([&cpu, &other].into_iter().map(Cpu::writers), |_, _| true, each).unwrap();
    found.sort_unstable();
    let upper = 0xf << 60;
    assert_eq!(
        found,
        [(4096, 0xf, 60, 7, 1), (8192, upper, 60, 7, 1), (8256, 0xf, 60, 7, 1), (12224, upper, 60, 7, 1)]
    );
}

fn touch_by_kernel(cpu: &mut Cpu, nodes: &Nodes, address: u64, is_write: bool) {
    cpu.kernel_access(Access { address, bytes: 8, is_write, at: 0 }, nodes, &Plain);
}

#[test]
fn the_program_finds_what_the_kernel_has_just_written() {
    let (nodes, mut cpu) = (nodes(), cpu());
    cpu.run(1, Some(0), &nodes);
    cpu.enter(5);
    let (start, bytes) = (1 << 30, 1 << 19);
    (start..start + bytes).step_by(8).for_each(|address| touch_by_kernel(&mut cpu, &nodes, address, true));
    (start..start + bytes).step_by(8).for_each(|address| touch(&mut cpu, &nodes, address, false));
    let lines = bytes / 64;
    let cells = |mode| cpu.cells(mode, 0, 0).map(|cell| [cell[0], cell[3]]).collect::<Vec<_>>();
    assert_eq!(cells(Mode::Kernel), [[0, 0], [lines, 0], [0, 0]]);
    assert_eq!(cells(Mode::User), Vec::<[u64; 2]>::new());
    assert_eq!(cpu.parts(0, 2).count(), 0);
    // Who drives it out writes it back.
    let far = start + (4 << 20);
    (far..far + (1 << 20)).step_by(64).for_each(|address| touch(&mut cpu, &nodes, address, false));
    let user = cpu.cells(Mode::User, 0, 0).nth(1).unwrap();
    assert_eq!(user[..4], [16384, 16384, 16384, lines]);
}

#[test]
fn accesses_of_the_kernel_for_others_leave_no_trace() {
    let (nodes, mut cpu) = (nodes(), cpu());
    cpu.run(1, None, &nodes);
    touch_by_kernel(&mut cpu, &nodes, 0, true);
    cpu.run(2, Some(1), &nodes);
    touch_by_kernel(&mut cpu, &nodes, 0, true);
    touch_by_kernel(&mut cpu, &nodes, 0, false);
    let read = |cpu: &Cpu| cpu.cells(Mode::Kernel, 0, 1).map(|cell| cell[0]).sum::<u64>();
    assert_eq!(read(&cpu), 1);
    touch_by_kernel(&mut cpu, &nodes, 124, false);
    assert_eq!(read(&cpu), 3);
    touch_by_kernel(&mut cpu, &nodes, 0x1ffc, false);
    assert_eq!(read(&cpu), 4);
    // The last bytes of all addresses.
    touch_by_kernel(&mut cpu, &nodes, u64::MAX - 3, true);
    assert_eq!(read(&cpu), 5);
}

#[test]
fn writes_of_the_kernel_share_no_lines() {
    let (nodes, mut cpu) = (nodes(), cpu());
    cpu.run(1, Some(0), &nodes);
    cpu.enter(5);
    for _ in 0..60 {
        touch_by_kernel(&mut cpu, &nodes, 4096, true);
        touch_by_kernel(&mut cpu, &nodes, 8192 + 60, true);
    }
    touch(&mut cpu, &nodes, 4096, true);
    cpu.end();
    let mut other = Cpu::new();
    other.run(2, Some(8), &nodes);
    other.enter(5);
    (0..60).for_each(|_| touch(&mut other, &nodes, 4096, true));
    other.end();
    let each = |_, writes: &Writes| Err(*writes);
    let shared = crate::writers::shared([&cpu, &other].into_iter().map(Cpu::writers), |_, _| true, each);
    assert_eq!(shared, Ok(()));
}

#[test]
fn sizes_are_whole_numbers_of_sets() {
    assert_eq!(Geometry { size: 1 << 20, ways: 16 }.sizes(), [1 << 19, 1 << 20, 2 << 20]);
    assert_eq!(Geometry { size: 1280 << 10, ways: 20 }.sizes(), [640 << 10, 1280 << 10, 2560 << 10]);
    assert_eq!(Geometry { size: 100_000, ways: 12 }.sizes(), [49_920, 99_840, 199_680]);
    assert_eq!(Geometry { size: 0, ways: 4 }.sizes(), [256; 3]);
}
