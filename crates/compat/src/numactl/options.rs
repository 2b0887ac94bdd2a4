//! The options of numactl, and its usage text.

use std::borrow::Cow;

use crate::getopt::{Argument, Long, Operands, Short, Spec};
use crate::release::{Release, Settings};

/// The characters that options without a letter are reported as.
pub(super) const CPU_COMPRESS: char = '1';
pub(super) const VERSION: char = '2';
pub(super) const JSON: char = '3';

const fn plain(name: &'static str, value: char) -> Long {
    Long { name, argument: Argument::None, value }
}

const fn with(name: &'static str, value: char) -> Long {
    Long { name, argument: Argument::Required, value }
}

/// A long option, and the first release that has it.
type Since = (Release, Long);

const fn always(long: Long) -> Since {
    (Release::V2_0_16, long)
}

const fn lately(long: Long) -> Since {
    (Release::V2_0_19, long)
}

/// Long options in the order in which ambiguous ones are listed.
const LONGS: [Since; 28] = [
    always(plain("all", 'a')),
    always(with("interleave", 'i')),
    lately(with("weighted-interleave", 'w')),
    always(with("preferred", 'p')),
    always(with("preferred-many", 'P')),
    always(with("cpubind", 'c')),
    always(with("cpunodebind", 'N')),
    always(with("physcpubind", 'C')),
    always(with("membind", 'm')),
    always(plain("show", 's')),
    always(plain("localalloc", 'l')),
    always(plain("balancing", 'b')),
    always(plain("hardware", 'H')),
    always(with("shm", 'S')),
    always(with("file", 'f')),
    always(with("offset", 'o')),
    always(with("length", 'L')),
    always(plain("strict", 't')),
    always(with("shmmode", 'M')),
    always(plain("dump", 'd')),
    always(plain("dump-nodes", 'D')),
    always(with("shmid", 'I')),
    always(plain("huge", 'u')),
    always(plain("touch", 'T')),
    lately(plain("cpu-compress", CPU_COMPRESS)),
    always(plain("verify", 'V')),
    lately(plain("version", VERSION)),
    always(plain("json", JSON)),
];

/// All of them.
const ALL: [Long; LONGS.len()] = {
    let mut all = [LONGS[0].1; LONGS.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = LONGS[at].1;
        at += 1;
    }
    all
};

/// The long options of a release; strictly, those of the original alone.
pub(super) fn longs(settings: Settings) -> Cow<'static, [Long]> {
    if settings.release == Release::V2_0_19 && !settings.strict {
        return Cow::Borrowed(&ALL);
    }
    let has = |(since, long): &&Since| *since <= settings.release && (long.value != JSON || !settings.strict);
    LONGS.iter().filter(has).map(|(_, long)| *long).collect()
}

const fn letter(letter: char) -> Short {
    Short { letter, argument: Argument::None }
}

const fn letter_with(letter: char) -> Short {
    Short { letter, argument: Argument::Required }
}

/// Short options; first the one that 2.0.16 does not have.
const SHORTS: [Short; 25] = [
    letter_with('w'),
    letter('a'),
    letter('b'),
    letter_with('i'),
    letter_with('p'),
    letter_with('P'),
    letter_with('c'),
    letter_with('N'),
    letter_with('C'),
    letter_with('m'),
    letter('l'),
    letter('H'),
    letter('s'),
    letter_with('S'),
    letter_with('f'),
    letter_with('o'),
    letter_with('L'),
    letter('t'),
    letter_with('M'),
    letter_with('I'),
    letter('u'),
    letter('T'),
    letter('d'),
    letter('D'),
    letter('V'),
];

/// The options of a release, with its long ones. The first operand is the command, whose options are its own.
pub(super) fn spec(release: Release, longs: &[Long]) -> Spec<'_> {
    let operands = Operands::EndOptions;
    let shorts = match release {
        Release::V2_0_16 => &SHORTS[1..],
        Release::V2_0_19 => &SHORTS,
    };
    Spec { shorts, longs, operands }
}

/// The usage text, which follows every mistake on stderr.
pub const USAGE: &str = "\
usage: numactl [--all | -a] [--balancing | -b] [--interleave= | -i <nodes>]
               [--weighted-interleave= | -w <nodes>] [--preferred= | -p <node>]
               [--preferred-many= | -P <nodes>] [--membind= | -m <nodes>] [--localalloc | -l]
               [--cpunodebind= | -N <nodes>] [--physcpubind= | -C <cpus>] command args ...
       numactl [--show | -s] [--json]
       numactl [--hardware | -H] [--cpu-compress] [--json]
       numactl [--version]
       numactl [--length | -L <length>] [--offset | -o <offset>] [--shmmode | -M <mode>]
               [--strict | -t] [--shmid | -I <id>] [--huge | -u] --shm | -S <keyfile>
               [--interleave= | -i <nodes>] [--weighted-interleave= | -w <nodes>]
               [--preferred= | -p <node>] [--preferred-many= | -P <nodes>]
               [--membind= | -m <nodes>] [--localalloc | -l]
               [--touch | -T] [--dump | -d] [--dump-nodes | -D] [--verify | -V]
       numactl ... --file | -f <path on tmpfs or hugetlbfs> ... (as with --shm)

 --all           take <nodes> and <cpus> from the whole machine, not from this cpuset
 --balancing     let automatic balancing move pages inside the nodes of --membind
 --interleave    spread pages over <nodes> one by one
 --weighted-interleave  spread pages over <nodes> in proportion to their weights
 --preferred     take memory from <node> first
 --preferred-many  take memory from <nodes> first
 --membind       take memory from <nodes> only
 --localalloc    take memory from the node of the CPU
 --cpunodebind   run on the CPUs of <nodes> only
 --physcpubind   run on <cpus> only
 --show          show the policy of this process
 --hardware      show the nodes of this machine

 <nodes> is a list of numbers, ranges (N-N) and the words all and same; +N counts inside the cpuset,
 ! in front inverts. A node can be named by a device: netdev:DEV, block:DEV, file:PATH, ip:HOST,
 pci:[domain:]bus:device[.function].
 <cpus> is a list of numbers, ranges (N-N) and the word all; +N counts inside the cpuset, ! in front
 inverts.
 <length> and <offset> end in g, m or k for GiB, MiB or KiB.
";
