//! The script that a guest runs: what it sets up around the command. Pure text.
//!
//! The command reaches the guest in a file and not on the kernel's command line, which is short
//! (2048 bytes) and would need quoting twice.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Where the guest finds the folder of its run.
pub const RUN_FOLDER: &str = "/run/nodewise/lab";
/// Where the guest finds the scratch folder.
pub const SCRATCH_FOLDER: &str = "/run/nodewise/scratch";
/// Where the guest finds the files that were copied into its memory.
pub const PROGRAMS_FOLDER: &str = "/run/nodewise/programs";
/// The variable that names the scratch folder to the command.
pub const SCRATCH_VARIABLE: &str = "NODEWISE_SCRATCH";

/// File in the run folder: the script. Relative, as those below.
pub const START: &str = "start";
/// File that appears when the command is about to start.
pub const STARTED: &str = "started";
/// File with the exit status of the command.
pub const STATUS: &str = "status";

/// How often the line that starts the command calls `execve`: `env`, `nice`, the command.
pub(crate) const EXECS: u32 = 3;

/// Writes the script.
///
/// The command gets exactly these variables and arguments, whatever bytes they hold, and nothing of
/// what the guest's init and kernel left in the environment. It starts in `directory` when the
/// guest has it, else in `/`. The shell is the guest's first process: at the end it becomes `busybox`, which switches the
/// guest off. Files of `programs` are copied into [`PROGRAMS_FOLDER`] first, under their names there. The words of `before` start
/// what starts the command.
pub fn script(
    directory: Option<&Path>,
    variables: &[(OsString, OsString)],
    programs: &[(String, PathBuf)],
    before: &[OsString],
    command: &[OsString],
    busybox: &Path,
) -> Vec<u8> {
    let mut script = b"#!/bin/sh\n".to_vec();
    if !programs.is_empty() {
        script.extend(format!("mkdir -p {PROGRAMS_FOLDER}\n").bytes());
    }
    for (name, path) in programs {
        let copy = Path::new(PROGRAMS_FOLDER).join(name);
        script.extend(b"cp -- ");
        script.extend(quote(path.as_os_str()));
        script.push(b' ');
        script.extend(quote(copy.as_os_str()));
        script.push(b'\n');
    }
    script.extend(format!(": > {RUN_FOLDER}/{STARTED}\ncd /\n").bytes());
    if let Some(directory) = directory {
        script.extend(b"cd -- ");
        script.extend(quote(directory.as_os_str()));
        script.extend(b" 2> /dev/null\n");
    }
    for word in before {
        script.extend(quote(word));
        script.push(b' ');
    }
    script.extend(b"env -i");
    for (name, value) in variables {
        let mut assignment = name.clone();
        assignment.push("=");
        assignment.push(value);
        script.push(b' ');
        script.extend(quote(&assignment));
    }
    // env would take a command with "=" in its name for a variable, and a shell drops variables with
    // odd names; nice executes what it gets.
    script.extend(b" nice -n 0 --");
    for argument in command {
        script.push(b' ');
        script.extend(quote(argument));
    }
    script.extend(format!("\nstatus=$?\necho $status > {RUN_FOLDER}/{STATUS}\nexec ").bytes());
    script.extend(quote(busybox.as_os_str()));
    script.extend(b" poweroff -f\n");
    script
}

/// Bytes as one word of a shell.
pub(crate) fn quote(text: &OsStr) -> Vec<u8> {
    let quoted = shlex::bytes::try_quote(text.as_encoded_bytes());
    quoted.expect("words, variables and paths of a command have no NUL").into_owned()
}

/// Reads what the script wrote into its status file; `None` when it got no further.
pub fn parse_status(text: &str) -> Option<i32> {
    text.strip_suffix('\n')?.parse().ok().filter(|status| (0..=255).contains(status))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};
    use std::os::unix::ffi::OsStringExt;
    use std::process::Command;

    #[test]
    fn the_script_has_one_line_for_the_command() {
        let variables = [("PATH".into(), "/bin".into()), ("A B".into(), "it's".into())];
        let command = ["echo".into(), "two words".into(), OsString::new()];
        let programs = [("tool".to_owned(), PathBuf::from("/a b/tool.small"))];
        let text = String::from_utf8(script(
            Some(Path::new("/a b")),
            &variables,
            &programs,
            &["mark".into(), "3".into()],
            &command,
            Path::new("/bin/busybox"),
        ))
        .unwrap();
        assert_eq!(
            text,
            "#!/bin/sh\n\
             mkdir -p /run/nodewise/programs\n\
             cp -- '/a b/tool.small' /run/nodewise/programs/tool\n\
             : > /run/nodewise/lab/started\n\
             cd /\n\
             cd -- '/a b' 2> /dev/null\n\
             mark 3 env -i 'PATH=/bin' \"A B=it's\" nice -n 0 -- echo 'two words' ''\n\
             status=$?\n\
             echo $status > /run/nodewise/lab/status\n\
             exec /bin/busybox poweroff -f\n"
        );
    }

    #[test]
    fn a_status_is_a_whole_line() {
        for (text, expected) in [
            ("0\n", Some(0)),
            ("127\n", Some(127)),
            ("", None),
            ("12", None),
            ("-1\n", None),
            ("256\n", None),
            ("x\n", None),
        ] {
            assert_eq!(parse_status(text), expected, "{text:?}");
        }
    }

    /// Returns a quoted argument as a shell reads it.
    fn through_a_shell(argument: &OsStr) -> Vec<u8> {
        let mut line = b"printf %s ".to_vec();
        line.extend(quote(argument));
        Command::new("sh").arg("-c").arg(OsString::from_vec(line)).output().unwrap().stdout
    }

    #[test]
    fn every_byte_survives_the_shell() {
        let bytes: Vec<u8> = (1..=255).collect();
        assert_eq!(through_a_shell(OsStr::new(&OsString::from_vec(bytes.clone()))), bytes);
    }

    proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
        #[test]
        fn any_argument_survives_the_shell(bytes in proptest::collection::vec(1u8.., 0..40)) {
            prop_assert_eq!(through_a_shell(&OsString::from_vec(bytes.clone())), bytes);
        }

        #[test]
        fn any_status_is_read_or_not_without_a_panic(text in any::<String>()) {
            parse_status(&text);
        }
    }
}
