//! Expected warnings are those that numactl 2.0.16 and 2.0.19 wrote on a machine with four nodes.

use super::*;
use nodewise_machine::CpuSet;
use nodewise_notation::device::DeviceKind;
use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

/// Members that are all that is there.
struct Plain<I>(IdSet<I>);

impl<I: Id> Members<I> for Plain<I> {
    fn base(&self) -> Base {
        Base::Prefixed
    }

    fn counts(&self, number: u64) -> u64 {
        number
    }

    fn shown(&self, number: u64) -> i64 {
        number as i64
    }

    fn may_name(&self, id: I) -> bool {
        self.0.contains(id)
    }

    fn all(&self) -> &IdSet<I> {
        &self.0
    }

    fn inverse(&self, set: &IdSet<I>) -> IdSet<I> {
        self.0.difference(set)
    }

    fn beyond(&self) -> u64 {
        1024
    }

    fn device(&self, device: Device<'_>, _: &mut Warnings<'_>) -> Option<Result<NodeSet, Invalid>> {
        (device.kind == DeviceKind::Net)
            .then(|| if device.name == b"eth0" { Ok(NodeSet::from([1])) } else { Err(Invalid) })
    }
}

fn read<I: Named>(text: &str, members: &[u32]) -> (Result<String, Invalid>, String) {
    let mut err = Vec::new();
    let members = Plain(members.iter().map(|number| I::new(*number)).collect::<IdSet<I>>());
    let set = parse(text, &members, &mut Warnings::new(&mut err));
    (set.map(|set| set.to_string()), String::from_utf8(err).unwrap())
}

fn check_on(members: &[u32], text: &str, expected: &str) {
    assert_eq!(read::<NodeId>(text, members), (Ok(expected.to_owned()), String::new()), "{text:?}");
}

fn check(text: &str, expected: &str) {
    check_on(&[0, 1, 2, 3], text, expected);
}

fn refuse_on<I: Named>(members: &[u32], text: &str, warning: &str) {
    let warning = if warning.is_empty() { String::new() } else { format!("libnuma: Warning: {warning}\n\n") };
    assert_eq!(read::<I>(text, members), (Err(Invalid), warning), "{text:?}");
}

fn refuse(text: &str, warning: &str) {
    refuse_on::<NodeId>(&[0, 1, 2, 3], text, warning);
}

#[test]
fn numbers_ranges_and_words_are_read() {
    check("0", "0");
    check("0,2-3", "0,2-3");
    check("0,0", "0");
    check("0x1", "1");
    check("03", "3");
    check(" 1", "1");
    check("2-1", "2");
    check("all", "0-3");
    check("0,all", "0-3");
    check("", "");
}

#[test]
fn a_plus_counts_and_a_bang_inverts() {
    check_on(&[1, 4, 6], "+1-2", "4,6");
    check_on(&[1, 4, 6], "!+0", "4,6");
    check_on(&[1, 4, 6], "!4", "1,6");
    check_on(&[1, 4, 6], "!all", "");
    check_on(&[1, 4, 6], "+all", "1,4,6");
    check_on(&[0, 2, 5], "0-5", "0,2,5");
}

#[test]
fn a_device_reaches_to_the_end() {
    check("netdev:eth0", "1");
    check("0,netdev:eth0", "0-1");
    check("!netdev:eth0", "0,2-3");
    refuse("netdev:eth0,0", "");
    refuse_on::<CpuId>(&[0, 1], "netdev:eth0", "");
}

#[test]
fn wrong_strings_earn_the_warnings_of_libnuma() {
    refuse("!", "unparseable node description `'");
    refuse("+!0", "unparseable node description `!0'");
    refuse("9", "node argument 9 is out of range");
    refuse("0,9", "node argument 9 is out of range");
    refuse("0-9", "node argument 9 out of range");
    refuse("foo", "unparseable node description `foo'");
    refuse("foo:bar", "unparseable node description `foo:bar'");
    refuse("0,", "unparseable node description `'");
    refuse("0-", "missing node argument ");
    refuse(",0", "unparseable node description `,0'");
    refuse("all,0", "unparseable node description `all,0'");
    refuse("ALL", "unparseable node description `ALL'");
    refuse("1 ", "");
    refuse("1..2", "");
    refuse("-1", "node argument -1 is out of range");
    refuse("99999999999999999999", "node argument -1 is out of range");
    refuse("+9", "node argument 1024 is out of range");
    refuse("!9", "node argument 9 is out of range");
}

#[test]
fn warnings_about_cpus_name_the_rest_of_the_string() {
    refuse_on::<CpuId>(&[0, 1, 2, 3], "99", "cpu argument 99 is out of range");
    refuse_on::<CpuId>(&[0, 1, 2, 3], "+99", "cpu argument 99 is out of range");
    refuse_on::<CpuId>(&[0, 1, 2, 3], "0-", "missing cpu argument ");
    refuse_on::<CpuId>(&[0, 1, 2, 3], "0-99", "cpu argument 99 out of range");
    refuse_on::<CpuId>(&[0, 1, 2, 3], "0,,", "unparseable cpu description `,'");
    refuse_on::<CpuId>(&[2], "1-2", "cpu argument 1-2 is out of range");
    refuse_on::<CpuId>(&[1, 3], "1-2", "cpu argument 2 out of range");
}

#[test]
fn escape_sequences_do_not_reach_a_warning() {
    refuse("\u{1b}[2J", "unparseable node description `\\x1b[2J'");
    refuse_on::<CpuId>(&[0], "7\u{1b}[2J", "cpu argument 7\\x1b[2J is out of range");
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_without_a_panic(text in any::<String>()) {
        let _ = read::<NodeId>(&text, &[0, 1, 5]);
        let _ = read::<CpuId>(&text, &[0, 1, 5]);
    }

    #[test]
    fn nearly_right_strings_name_members_only(text in "[!+]{0,2}[0-9x,-]{0,12}(all)?") {
        let members = [0, 1, 5, 8];
        if let (Ok(set), _) = read::<CpuId>(&text, &members) {
            prop_assert!(set.parse::<CpuSet>().unwrap().is_subset(&CpuSet::from(members)), "{text}: {set}");
        }
    }

    #[test]
    fn a_printed_set_is_read_back(numbers in prop::collection::btree_set(0u32..300, 1..20)) {
        let members: Vec<u32> = numbers.into_iter().collect();
        let set: NodeSet = members.iter().map(|number| NodeId::new(*number)).collect();
        let text = set.to_string();
        prop_assert_eq!(read::<NodeId>(&text, &members), (Ok(text.clone()), String::new()));
    }
}
