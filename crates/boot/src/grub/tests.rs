use super::*;
use crate::tests::{four_pages, two};
use proptest::prelude::{any, prop_assert_eq, prop_assume, proptest};
use std::process::Command;

#[track_caller]
fn check(change: &Change, text: &str, expected: Result<&str, Refusal>) {
    assert_eq!(edit(text, change).as_deref(), expected.as_deref(), "{text}");
}

/// As Debian 13 installs it, shortened.
const DEBIAN: &str = "\
# If you change this file, run 'update-grub' afterwards to update
# /boot/grub/grub.cfg.

GRUB_DEFAULT=0
GRUB_TIMEOUT=5
GRUB_DISTRIBUTOR=`( . /etc/os-release; echo ${NAME:-Debian} ) 2>/dev/null || echo Debian`
GRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"
GRUB_CMDLINE_LINUX=\"\"
#GRUB_BADRAM=\"0x01234567,0xfefefefe,0x89abcdef,0xefefefef\"
";

#[test]
fn debians_file_gets_the_words_for_all_entries() {
    let expected = DEBIAN.replace("LINUX=\"\"", "LINUX=\"numa=fake=2\"");
    check(&two(), DEBIAN, Ok(&expected));
    check(&two(), &expected, Ok(&expected));
    check(&Change::none(), &expected, Ok(DEBIAN));
}

#[test]
fn fedoras_file_gets_the_words_behind_the_others() {
    let fedora = "GRUB_DISTRIBUTOR=\"$(sed 's, release .*$,,g' /etc/system-release)\"\nGRUB_CMDLINE_LINUX=\"rhgb quiet\"\nGRUB_ENABLE_BLSCFG=true\n";
    check(&two(), fedora, Ok(&fedora.replace("rhgb quiet", "rhgb quiet numa=fake=2")));
}

#[test]
fn a_value_keeps_its_kind_of_quotes() {
    check(
        &two(),
        "GRUB_CMDLINE_LINUX='a \"b c\"' # why",
        Ok("GRUB_CMDLINE_LINUX='a \"b c\" numa=fake=2' # why"),
    );
    check(&two(), "export GRUB_CMDLINE_LINUX=ro\n", Ok("export GRUB_CMDLINE_LINUX=\"ro numa=fake=2\"\n"));
    check(&two(), "GRUB_CMDLINE_LINUX=\n", Ok("GRUB_CMDLINE_LINUX=numa=fake=2\n"));
    check(&two(), "GRUB_TIMEOUT=5", Ok("GRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX=\"numa=fake=2\"\n"));
}

// Found by the fuzz target.
#[test]
fn a_line_that_goes_on_where_the_file_ends_is_not_added_to() {
    check(&two(), "GRUB_TIMEOUT=5\nA=b\\\n", Err(Refusal::Shell { line: 2 }));
    check(&two(), "GRUB_TIMEOUT=5\nA=b\\", Err(Refusal::Shell { line: 2 }));
    let goes_on = "A=b\\\nc\n";
    check(&two(), goes_on, Ok(&format!("{goes_on}GRUB_CMDLINE_LINUX=\"numa=fake=2\"\n")));
}

#[test]
fn the_variable_with_the_last_word_loses_ours() {
    check(
        &two(),
        "GRUB_CMDLINE_LINUX=\"\"\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet numa=fake=8\"\n",
        Ok("GRUB_CMDLINE_LINUX=\"numa=fake=2\"\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\n"),
    );
    check(&two(), "GRUB_CMDLINE_LINUX_DEFAULT=numa=off\n", Err(Refusal::NumaOff));
}

#[test]
fn a_number_of_pages_belongs_to_the_size_in_the_other_variable() {
    let both = |main: &str, default: &str| {
        format!("GRUB_CMDLINE_LINUX=\"{main}\"\nGRUB_CMDLINE_LINUX_DEFAULT=\"{default}\"\n")
    };
    check(&four_pages(), &both("hugepagesz=1G", "hugepages=1 quiet"), Err(Refusal::SizeInAnotherPart));
    let with = both("ro hugepagesz=2M hugepages=0:4", "quiet");
    check(&four_pages(), &both("ro hugepagesz=2M", "hugepages=1 quiet"), Ok(&with));
    check(&four_pages(), &both("ro", "quiet hugepages=1"), Ok(&with));
    check(&four_pages(), &with, Ok(&with));
}

#[test]
fn what_the_shell_works_out_is_refused() {
    for value in ["\"$A b\"", "`b`", "a\"b\"", "\"a\\\"b\"", "'a\nb'", "$(b)", "~", "a\\ b"] {
        let text = format!("A=1\nGRUB_CMDLINE_LINUX={value}\n");
        check(&two(), &text, Err(Refusal::Expansion { line: 2, name: LINUX }));
    }
}

#[test]
fn what_is_no_assignment_is_refused() {
    for line in [
        "if true; then A=1; fi",
        "GRUB_CMDLINE_LINUX+=\" a\"",
        "A=1; B=2",
        "A=1 true",
        ". /etc/other",
        "A=\"1",
        "A=(1 2)",
        "A=1\r",
        "A = 1",
        "1A=1",
    ] {
        check(&two(), &format!("# first\n{line}\n"), Err(Refusal::Shell { line: 2 }));
    }
    check(
        &two(),
        "GRUB_CMDLINE_LINUX=a\nB=1\nGRUB_CMDLINE_LINUX=b\n",
        Err(Refusal::Twice { name: LINUX, first: 1, second: 3 }),
    );
}

#[test]
fn a_snippet_that_has_the_last_word_is_found() {
    let check = |text: &str, expected: Option<&str>| assert_eq!(takes_away(text, &two()), expected, "{text}");
    check("GRUB_CMDLINE_LINUX=\"console=ttyS0\"\n", Some(LINUX));
    check("GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX console=ttyS0\"\n", None);
    check("GRUB_CMDLINE_LINUX_DEFAULT=\"console=ttyS0\"\n", None);
    check("GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT numa=fake=8\"\n", Some("numa=fake="));
    check("# GRUB_CMDLINE_LINUX=\"numa=fake=8\"\n", None);
    // Each change asks for its own words only.
    let pools = "GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT hugepages=8\"\n";
    check(pools, None);
    assert_eq!(takes_away(pools, &four_pages()), Some("hugepages="));
    let emulation = "GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT numa=fake=8\"\n";
    assert_eq!(takes_away(emulation, &four_pages()), None);
}

/// Lets the shell read a file, and returns both variables. `None` where it refuses the file.
fn shell(text: &str) -> Option<(String, String)> {
    let script = format!("{text}\nprintf '%s\\n%s' \"$GRUB_CMDLINE_LINUX\" \"$GRUB_CMDLINE_LINUX_DEFAULT\"");
    let output = Command::new("sh").args(["-c", &script]).env_clear().output().expect("sh is there");
    let text = String::from_utf8(output.stdout).ok()?;
    let (main, default) = text.split_once('\n')?;
    output.status.success().then(|| (main.to_owned(), default.to_owned()))
}

proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    #[test]
    fn the_shell_reads_what_was_meant(
        text in "(A=[ab$'\"]{0,3}\n|# '\"x\n|\n|B=\"\\$\\(echo '[)a]'\\)\"\n){0,3}(GRUB_CMDLINE_LINUX=('[a \"]{0,5}'|\"[a ']{0,5}\"|[ab,=]{0,4})( # c)?\n)?(GRUB_CMDLINE_LINUX_DEFAULT='[a ]{0,4}'\n)?"
    ) {
        let edited = edit(&text, &two());
        prop_assume!(edited.is_ok());
        let edited = edited.unwrap_or_default();
        let (before, after) = (shell(&text), shell(&edited));
        prop_assume!(before.is_some());
        let (main, default) = before.unwrap_or_default();
        prop_assert_eq!(after, Some((two().apply(&main).unwrap_or_default(), default)), "{}", edited);
        let undone = edit(&edited, &Change::none()).unwrap_or_default();
        prop_assert_eq!(shell(&undone).map(|(main, _)| main), Some(main));
    }
}

proptest! {
    #[test]
    fn any_file_is_changed_once_or_refused(text in any::<String>(), near in "([A-Z]{1,2}|GRUB_CMDLINE_LINUX|=|\"|'|\\$\\(|\\)|`|\\\\|\n| |#|numa=fake=8){0,14}") {
        for text in [text, near] {
            if let Ok(edited) = edit(&text, &two()) {
                prop_assert_eq!(edit(&edited, &two()), Ok(edited.clone()));
                let undone = edit(&edited, &Change::none()).unwrap_or_default();
                prop_assert_eq!(edit(&text, &Change::none()).map(|text| text.contains("numa=fake=")), Ok(undone.contains("numa=fake=")));
            }
        }
    }
}
