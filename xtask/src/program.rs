//! Running other programs.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use nodewise_experiment::shell;
use serde_json::Value;

/// The cargo that started us, in a folder.
pub fn cargo(folder: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(folder);
    command
}

/// The crates of this workspace without those of others, as cargo describes them.
pub fn metadata(folder: &Path) -> Result<Value> {
    let mut command = cargo(folder);
    command.args(["metadata", "--format-version", "1", "--no-deps", "--offline"]);
    serde_json::from_str(&read(&mut command)?).context("cargo metadata is not JSON")
}

/// All crates that this workspace is compiled from for a target, with cargo's options that choose features; fetched
/// where they are missing.
pub fn resolved(folder: &Path, target: &str, options: &[&str]) -> Result<Value> {
    let mut command = cargo(folder);
    command
        .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", target])
        .args(options);
    serde_json::from_str(&read(&mut command)?).context("cargo metadata is not JSON")
}

/// The tests of the lab, with these options of cargo's; the words behind are theirs.
pub fn lab_tests(folder: &Path, options: &[&str]) -> Command {
    let mut command = cargo(folder);
    command.arg("test").args(options).args(["--package", "nodewise", "--test", "lab", "--"]);
    command
}

/// The words by which apt-get installs packages, without a question.
pub const INSTALL: [&str; 4] = ["install", "-q", "-y", "--no-install-recommends"];

/// Adds a target to the compiler; `false` where it has it.
pub fn add_target(target: &str) -> Result<bool> {
    let folder = read(Command::new("rustc").args(["--print", "target-libdir", "--target", target]))?;
    if Path::new(folder.trim()).exists() {
        return Ok(false);
    }
    quiet(Command::new("rustup").args(["target", "add", target]))?;
    Ok(true)
}

/// Installs packages of Debian's that are missing; without root, fails with the line to run.
pub fn need_packages(missing: &[&str]) -> Result<()> {
    if missing.is_empty() {
        return Ok(());
    }
    if !rustix::process::geteuid().is_root() {
        bail!("programs are missing: sudo apt-get {} {}", INSTALL.join(" "), missing.join(" "));
    }
    println!("packages: installing {}", missing.join(" "));
    install_packages(missing)
}

/// Installs packages of Debian's; only root can.
pub fn install_packages(packages: &[&str]) -> Result<()> {
    let install = || {
        let mut command = Command::new("apt-get");
        command.args(INSTALL).args(packages);
        quiet(command.env("DEBIAN_FRONTEND", "noninteractive"))
    };
    install().or_else(|_| {
        // apt knows no package yet, or versions that the archive no longer has. If a foreign source cannot be reached,
        // the rest of the lists is new.
        let _ = quiet(Command::new("apt-get").arg("update"));
        install()
    })
}

/// Runs a program whose output the user should see.
pub fn show(command: &mut Command) -> Result<()> {
    let line = line(command);
    let status = command.status().with_context(|| format!("cannot start: {line}"))?;
    if !status.success() {
        bail!("{line}: {status}");
    }
    Ok(())
}

/// Runs a program whose output matters only when it fails.
pub fn quiet(command: &mut Command) -> Result<()> {
    read(command).map(drop)
}

/// Runs a program and returns what it wrote to standard output.
pub fn read(command: &mut Command) -> Result<String> {
    let line = line(command);
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start: {line}"))?;
    if !output.status.success() {
        let said =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        bail!("{line}: {}\n{}", output.status, said.trim_end());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The command line as a person would type it.
pub fn line(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| shell::word(&word.to_string_lossy()).into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_can_be_pasted_into_a_shell() {
        let mut command = Command::new("apt-get");
        command.args(["-o", "A::B=/x", "it's", "two words", "$x", ""]);
        assert_eq!(line(&command), r#"apt-get -o A::B=/x "it's" 'two words' '$x' ''"#);
    }

    #[test]
    fn tests_of_the_lab_have_options_of_cargo_before_their_own() {
        let mut command = lab_tests(Path::new("/"), &["--config", "a"]);
        let words: Vec<_> = command.arg("--times").get_args().collect();
        assert_eq!(
            words,
            ["test", "--config", "a", "--package", "nodewise", "--test", "lab", "--", "--times"]
        );
    }

    #[test]
    fn a_program_that_fails_tells_what_it_said() {
        let error = read(Command::new("sh").args(["-c", "echo out; echo err >&2; exit 3"])).unwrap_err();
        assert_eq!(error.to_string(), "sh -c 'echo out; echo err >&2; exit 3': exit status: 3\nout\nerr");
        let error = quiet(&mut Command::new("/no/such/program")).unwrap_err();
        assert_eq!(error.to_string(), "cannot start: /no/such/program");
    }
}
