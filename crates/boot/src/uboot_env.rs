//! `armbianEnv.txt` and its relatives: variables for the boot script of U-Boot; `extraargs` is added
//! to the kernel's command line.
//!
//! # Source
//! Armbian, `boot.cmd`: `env import -t` of the file, then `setenv bootargs "... ${extraargs} ..."`. A line is a
//! name, `=`, and the value up to its end, without quoting.

use crate::error::Refusal;
use crate::line::{self, Change};

/// The variable.
const VARIABLE: &str = "extraargs";

/// Whether a boot script adds the variable to the kernel's command line.
pub fn is_read_by(script: &str) -> bool {
    script.lines().any(|line| line.contains("bootargs") && line.contains("${extraargs}"))
}

/// The file with the change; everything else stays byte for byte.
///
/// # Errors
/// A variable that is set twice or goes on in the next line, another one with the same words, and what
/// [`Change::apply`] refuses.
pub fn edit(text: &str, change: &Change) -> Result<String, Refusal> {
    let mut ours: Option<usize> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let Some((name, value)) = assignment(line) else { continue };
        if name != VARIABLE {
            // The script decides which of them comes last.
            if let Some(name) = change.prefixes().find(|prefix| line::value(value, prefix).is_some()) {
                return Err(Refusal::Elsewhere { line: number, name });
            }
            continue;
        }
        if value.ends_with('\\') {
            return Err(Refusal::Expansion { line: number, name: VARIABLE });
        }
        if let Some(first) = ours.replace(number) {
            return Err(Refusal::Twice { name: VARIABLE, first, second: number });
        }
    }
    let Some(ours) = ours else {
        let words = change.words().join(" ");
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        let added = format!("{text}{end}{VARIABLE}={words}\n");
        return Ok(if words.is_empty() { text.to_owned() } else { added });
    };
    let mut edited = String::with_capacity(text.len() + 64);
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        match line.split_once('=').filter(|_| number == ours) {
            None => edited.push_str(line),
            Some((name, rest)) => {
                let (value, end) = rest.split_at(rest.trim_end_matches(['\n', '\r']).len());
                edited.extend([name, "=", &change.apply(value)?, end]);
            }
        }
    }
    Ok(edited)
}

/// The words that are added to the command line.
pub fn words(text: &str) -> Option<String> {
    let value = |line| assignment(line).filter(|(name, _)| *name == VARIABLE).map(|(_, value)| value);
    text.lines().find_map(value).map(str::to_owned)
}

fn assignment(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    (!name.starts_with('#')).then_some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::two;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    #[track_caller]
    fn check(text: &str, expected: Result<&str, Refusal>) {
        crate::tests::check(edit, text, expected);
    }

    #[test]
    fn the_words_go_into_extraargs() {
        check(
            "verbosity=1\nextraargs=cma=128M\nrootfstype=ext4\n",
            Ok("verbosity=1\nextraargs=cma=128M numa=fake=2\nrootfstype=ext4\n"),
        );
        check("verbosity=1\n", Ok("verbosity=1\nextraargs=numa=fake=2\n"));
        check("verbosity=1", Ok("verbosity=1\nextraargs=numa=fake=2\n"));
        check("extraargs=\r\n", Ok("extraargs=numa=fake=2\r\n"));
        check("#extraargs=x\n", Ok("#extraargs=x\nextraargs=numa=fake=2\n"));
        assert_eq!(edit("extraargs=numa=fake=8 a\n", &Change::none()).as_deref(), Ok("extraargs=a\n"));
        assert_eq!(edit("verbosity=1", &Change::none()).as_deref(), Ok("verbosity=1"));
        assert_eq!(words("a=b\nextraargs=x numa=fake=8\n").as_deref(), Some("x numa=fake=8"));
    }

    #[test]
    fn what_is_not_clear_is_refused() {
        check("extraargs=a\nextraargs=b\n", Err(Refusal::Twice { name: "extraargs", first: 1, second: 2 }));
        check("extraargs=a\\\n", Err(Refusal::Expansion { line: 1, name: "extraargs" }));
        check("extraboardargs=numa=fake=4\n", Err(Refusal::Elsewhere { line: 1, name: "numa=fake=" }));
        let pools = edit("extraboardargs=hugepages=4\n", &crate::tests::four_pages());
        assert_eq!(pools, Err(Refusal::Elsewhere { line: 1, name: "hugepages=" }));
        check("extraboardargs=hugepages=4\n", Ok("extraboardargs=hugepages=4\nextraargs=numa=fake=2\n"));
        check("extraargs=numa=off\n", Err(Refusal::NumaOff));
    }

    #[test]
    fn a_script_is_asked_whether_it_reads_the_variable() {
        assert!(is_read_by("setenv bootargs \"root=${rootdev} ${extraargs} ${extraboardargs}\"\n"));
        assert!(!is_read_by("setenv bootargs \"root=${rootdev}\"\n# ${extraargs}\n"));
    }

    proptest! {
        #[test]
        fn any_file_is_changed_once(text in any::<String>(), near in "(extraargs=( a| numa=fake=[1-9]){0,3}\r?\n|a=b\n|#x\n){0,6}") {
            for text in [text, near] {
                if let Ok(edited) = edit(&text, &two()) {
                    prop_assert_eq!(edit(&edited, &two()), Ok(edited));
                }
            }
        }
    }
}
