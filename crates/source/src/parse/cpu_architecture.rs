//! The architecture of `/proc/cpuinfo`, for captures that hold no other word of it.
//!
//! # Source
//! `/proc/cpuinfo`, whose lines differ by architecture: `show_cpuinfo` in `arch/*/kernel/`.

/// Lines that only one architecture has: a name, what its value begins with, and what `uname -m` says there.
const LINES: [(&str, &str, &str); 10] = [
    ("vendor_id", "GenuineIntel", "x86_64"),
    ("vendor_id", "AuthenticAMD", "x86_64"),
    ("vendor_id", "HygonGenuine", "x86_64"),
    ("vendor_id", "IBM/S390", "s390x"),
    ("arch", "IA-64", "ia64"),
    ("CPU architecture", "8", "aarch64"),
    ("CPU architecture", "AArch64", "aarch64"),
    ("isa", "rv64", "riscv64"),
    ("CPU Family", "Loongson-64bit", "loongarch64"),
    ("cpu", "sun4", "sparc64"),
];
/// The beginnings of names of 64-bit POWER processors.
const POWER: [&str; 3] = ["POWER", "PPC970", "A2"];
/// A flag of x86 processors that run in 64 bits.
const LONG_MODE: &str = "lm";

/// The architecture as `uname -m` names it; `None` where the file does not decide. Of POWER the byte order is
/// missing: it is taken for ppc64le from POWER8 on, for ppc64 before.
pub fn parse(text: &str) -> Option<&'static str> {
    let fields = || {
        text.lines().filter_map(|line| line.split_once(':')).map(|(name, value)| (name.trim(), value.trim()))
    };
    let power =
        fields().find(|(name, value)| *name == "cpu" && POWER.iter().any(|cpu| value.starts_with(cpu)));
    if let Some((_, value)) = power {
        let number =
            value.strip_prefix("POWER").map(|rest| rest.trim_end_matches(|c: char| !c.is_ascii_digit()));
        let digits = number.map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>());
        let is_little =
            digits.and_then(|digits| digits.parse::<u32>().ok()).is_some_and(|number| number >= 8);
        return Some(if is_little { "ppc64le" } else { "ppc64" });
    }
    let found = LINES
        .iter()
        .find(|(name, begin, _)| fields().any(|(field, value)| field == *name && value.starts_with(begin)));
    let (.., architecture) = found?;
    if *architecture == "x86_64" {
        // A processor without it runs a 32-bit kernel; without flags nothing is known of it.
        let mut flags = fields().filter(|(name, _)| *name == "flags");
        return flags
            .any(|(_, value)| value.split_ascii_whitespace().any(|flag| flag == LONG_MODE))
            .then_some(architecture);
    }
    Some(architecture)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, proptest};

    #[test]
    fn each_architecture_has_lines_of_its_own() {
        let check = |text: &str, expected: Option<&str>| assert_eq!(parse(text), expected, "{text}");
        check("processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu lm sse2\n", Some("x86_64"));
        check("vendor_id\t: GenuineIntel\nflags\t\t: fpu sse2\n", None);
        check("vendor_id       : IBM/S390\n# processors    : 4\n", Some("s390x"));
        check("processor  : 0\nvendor     : GenuineIntel\narch       : IA-64\n", Some("ia64"));
        check("processor\t: 0\ncpu\t\t: POWER9, altivec supported\n", Some("ppc64le"));
        check("cpu\t\t: POWER7 (architected), altivec supported\n", Some("ppc64"));
        check("CPU implementer\t: 0x41\nCPU architecture: 8\n", Some("aarch64"));
        check("processor\t: 0\nhart\t\t: 0\nisa\t\t: rv64imafdc\n", Some("riscv64"));
        check("CPU architecture: 7\n", None);
        check("", None);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in any::<String>(), near in "(cpu|arch|isa|flags)[ :]{1,3}(POWER[0-9]{0,30}|rv64|lm)") {
            let _ = (parse(&text), parse(&near));
        }
    }
}
