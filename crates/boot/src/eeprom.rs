//! The configuration in the boot EEPROM of a Raspberry Pi 4 or 5: which bits of an address choose the
//! bank of its memory.
//!
//! The EEPROM is read and written through `rpi-eeprom-config` alone.
//!
//! # Source
//! The bootloader's release notes of 2024-09-23 (it can be set) and 2024-12-07 (its defaults).

use std::ffi::OsStr;
use std::io::Write as _;
use std::process::{Command, Stdio};

use nodewise_machine::printable::{printable, quote};

/// The setting.
pub const BANKLOW: &str = "SDRAM_BANKLOW";
/// The program of Raspberry Pi OS.
pub const PROGRAM: &str = "rpi-eeprom-config";
/// Bytes that the program is believed to print; an EEPROM's configuration has two KiB.
const MOST_BYTES: usize = 64 << 10;

/// How many of the four bank bits are right above the column bits, instead of on top.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BankLow(u8);

impl BankLow {
    /// A value from 0 to 4.
    pub fn new(bits: u8) -> Option<Self> {
        (bits <= 4).then_some(Self(bits))
    }

    /// The number.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Returns the bootloader's default where nothing is set: by the number of the model, since 2024-12-07.
    pub const fn default_of(model: u8) -> Option<Self> {
        match model {
            4 => Some(Self(3)),
            5 => Some(Self(1)),
            _ => None,
        }
    }

    /// The address from its highest bit down.
    pub const fn layout(self) -> &'static str {
        match self.0 {
            0 => "{bank[3:0], row, column}",
            1 => "{bank[3:1], row, bank[0], column}",
            2 => "{bank[3:2], row, bank[1:0], column}",
            3 => "{bank[3], row, bank[2:0], column}",
            _ => "{row, bank[3:0], column}",
        }
    }

    /// How many nodes an emulation can keep apart: one for each value of the bank bits on top.
    pub const fn nodes(self) -> u32 {
        1 << (4 - self.0)
    }
}

/// Why the EEPROM's configuration was not read or written.
#[derive(Debug, thiserror::Error)]
pub enum EepromError {
    #[error("rpi-eeprom-config is not installed: only a Raspberry Pi 4 or 5 has an EEPROM that it can set")]
    NoProgram,
    /// The program could not be started.
    #[error("cannot start rpi-eeprom-config: {0}")]
    Start(#[source] std::io::Error),
    #[error("rpi-eeprom-config failed: {}", quote(said))]
    Failed { said: String },
    /// Output of the program that is not a configuration.
    #[error("rpi-eeprom-config printed no configuration that can be changed: {}", printable(why))]
    NotUnderstood { why: String },
}

/// The value that holds for every board, if there is one.
///
/// # Errors
/// A value that is none, and one that holds under a filter only.
pub fn banklow(config: &str) -> Result<Option<BankLow>, EepromError> {
    Ok(setting(config)?.map(|(_, value)| value))
}

/// The configuration with another value; everything else stays byte for byte.
///
/// # Errors
/// As [`banklow`].
pub fn with_banklow(config: &str, value: BankLow) -> Result<String, EepromError> {
    let line = format!("{BANKLOW}={}", value.0);
    if let Some((at, old)) = setting(config)? {
        if old == value {
            return Ok(config.to_owned());
        }
        let changed = config.split_inclusive('\n').enumerate().map(|(number, old)| {
            let end = &old[old.trim_end_matches(['\n', '\r']).len()..];
            if number == at { format!("{line}{end}") } else { old.to_owned() }
        });
        return Ok(changed.collect());
    }
    let end = if config.is_empty() || config.ends_with('\n') { "" } else { "\n" };
    // Behind a filter for some boards the line would hold for those only.
    let head = match sections(config).last() {
        None | Some((_, "all")) => "",
        Some(_) => "[all]\n",
    };
    Ok(format!("{config}{end}{head}{line}\n"))
}

/// The line of the setting, from 0, and its value.
fn setting(config: &str) -> Result<Option<(usize, BankLow)>, EepromError> {
    let wrong = |why: String| EepromError::NotUnderstood { why };
    let filters: Vec<(usize, &str)> = sections(config).collect();
    let mut found = None;
    for (at, line) in config.lines().enumerate() {
        let Some(value) =
            line.trim().strip_prefix(BANKLOW).and_then(|rest| rest.trim_start().strip_prefix('='))
        else {
            continue;
        };
        let filter = filters.iter().rev().find(|(line, _)| *line < at).map_or("all", |(_, name)| *name);
        if filter != "all" {
            return Err(wrong(format!("{BANKLOW} is below [{filter}], on line {}", at + 1)));
        }
        let value = value.trim().parse().ok().and_then(BankLow::new);
        let value = value.ok_or_else(|| wrong(format!("line {} sets {BANKLOW} to none of 0-4", at + 1)))?;
        // The last one counts.
        found = Some((at, value));
    }
    Ok(found)
}

/// The filters, `[all]` or `[pi5]`, with their lines from 0.
fn sections(config: &str) -> impl Iterator<Item = (usize, &str)> {
    config.lines().enumerate().filter_map(|(at, line)| {
        let name = line.trim().strip_prefix('[')?.strip_suffix(']')?;
        Some((at, name))
    })
}

/// Reads the configuration.
///
/// # Errors
/// No such program, and its failure.
pub fn read(path: Option<&OsStr>) -> Result<String, EepromError> {
    run(path, &[], None)
}

/// Has a configuration written, to be taken at the next start.
///
/// # Errors
/// No such program, and its failure.
pub fn write(path: Option<&OsStr>, config: &str) -> Result<(), EepromError> {
    // "-" would be a file: the program wants a name, and this one is its standard input.
    run(path, &["--apply", "/dev/stdin"], Some(config)).map(drop)
}

/// Runs the program, found in the folders of `path`, or where the caller's programs are.
fn run(path: Option<&OsStr>, arguments: &[&str], input: Option<&str>) -> Result<String, EepromError> {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    if let Some(path) = path {
        command.env("PATH", path);
    }
    let mut child = command.spawn().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => EepromError::NoProgram,
        _ => EepromError::Start(error),
    })?;
    if let (Some(input), Some(mut stdin)) = (input, child.stdin.take()) {
        // A program that ends before it has read everything says why by its status.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(EepromError::Start)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(EepromError::Failed { said });
    }
    match String::from_utf8(output.stdout) {
        Ok(text) if text.len() <= MOST_BYTES => Ok(text),
        _ => Err(EepromError::NotUnderstood { why: "it is not text of a few lines".to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    fn three() -> BankLow {
        BankLow::new(3).expect("3 is one")
    }

    #[track_caller]
    fn check(config: &str, expected: &str) {
        assert_eq!(with_banklow(config, three()).expect("it is understood"), expected, "{config}");
        assert_eq!(banklow(expected).expect("it is understood"), Some(three()));
    }

    #[test]
    fn the_value_is_set_for_every_board() {
        check("[all]\nBOOT_UART=1\n", "[all]\nBOOT_UART=1\nSDRAM_BANKLOW=3\n");
        check("BOOT_UART=1", "BOOT_UART=1\nSDRAM_BANKLOW=3\n");
        check("[all]\nSDRAM_BANKLOW=1\r\nA=2\n", "[all]\nSDRAM_BANKLOW=3\r\nA=2\n");
        check("[all]\nA=1\n[pi5]\nB=2\n", "[all]\nA=1\n[pi5]\nB=2\n[all]\nSDRAM_BANKLOW=3\n");
        check("#SDRAM_BANKLOW=1\n", "#SDRAM_BANKLOW=1\nSDRAM_BANKLOW=3\n");
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for config in ["SDRAM_BANKLOW=5\n", "SDRAM_BANKLOW=\n", "[pi5]\nSDRAM_BANKLOW=1\n"] {
            assert!(with_banklow(config, three()).is_err(), "{config}");
        }
    }

    #[test]
    fn the_bits_on_top_give_the_nodes() {
        let nodes: Vec<u32> = (0..=5).filter_map(BankLow::new).map(BankLow::nodes).collect();
        assert_eq!(nodes, [16, 8, 4, 2, 1]);
        // As the bootloader asks for them: 8 nodes on a Raspberry Pi 5, 2 on a Raspberry Pi 4.
        let of = |model| BankLow::default_of(model).map(BankLow::nodes);
        assert_eq!((of(5), of(4), of(3)), (Some(8), Some(2), None));
    }

    proptest! {
        #[test]
        fn any_configuration_is_changed_once_or_refused(config in any::<String>(), near in "(\\[all\\]|\\[pi5\\]|SDRAM_BANKLOW=[0-5]|A=1|\r?\n){0,8}") {
            for config in [config, near] {
                if let Ok(changed) = with_banklow(&config, three()) {
                    prop_assert_eq!(banklow(&changed).ok().flatten(), Some(three()));
                    prop_assert_eq!(with_banklow(&changed, three()).ok(), Some(changed));
                }
            }
        }
    }
}
