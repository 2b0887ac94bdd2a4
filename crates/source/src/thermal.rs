//! How hot the CPUs are.
//!
//! # Source
//! `/sys/class/thermal/thermal_zoneN/type` and `temp`: what a sensor belongs to, in words of its driver, and
//! thousandths of a degree Celsius (`Documentation/ABI/testing/sysfs-class-thermal`). Virtual machines have
//! none as a rule.

use crate::tree::Tree;

/// The folder of the sensors.
const ZONES: &str = "/sys/class/thermal";

/// Temperatures that sensors of running CPUs can show, in thousandths of a degree Celsius: anything else
/// comes from a sensor that is off or broken (the kernel's own word for that is -274000).
const CREDIBLE: std::ops::RangeInclusive<i32> = -40_000..=150_000;

/// The hottest sensor of a CPU, in thousandths of a degree Celsius; `None` where there is none, or none can
/// be read.
pub fn cpu_millicelsius(tree: &Tree) -> Option<i32> {
    let names = tree.list(ZONES).ok().flatten().unwrap_or_default();
    let zones = names.iter().filter(|name| name.starts_with("thermal_zone"));
    let of_cpus = zones.filter(|zone| {
        let kind = tree.read_text(&format!("{ZONES}/{zone}/type"));
        kind.ok().flatten().is_some_and(|kind| names_cpus(&kind))
    });
    let read = |zone: &String| millicelsius(&tree.read_text(&format!("{ZONES}/{zone}/temp")).ok().flatten()?);
    of_cpus.filter_map(read).max()
}

/// Whether the type of a sensor names CPUs, or the chip that they are on: `x86_pkg_temp`, `cpu-thermal`,
/// `cpu_thermal`, `cpuss0-usr`, `CPU-therm`, `TCPU`, `soc-thermal`, `package-thermal`, `bigcore0-thermal`.
/// Not `acpitz`, which is wherever the maker of the board has put it.
fn names_cpus(kind: &str) -> bool {
    let kind = kind.trim().to_ascii_lowercase();
    let mut words = kind.split(|c: char| !c.is_ascii_alphanumeric());
    kind.contains("cpu")
        || kind == "x86_pkg_temp"
        || words.any(|word| {
            matches!(word, "soc" | "package") || word.starts_with("bigcore") || word.starts_with("littlecore")
        })
}

fn millicelsius(text: &str) -> Option<i32> {
    text.trim().parse().ok().filter(|celsius| CREDIBLE.contains(celsius))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Memory;
    use proptest::prelude::{any, prop, prop_assert, proptest};

    fn check(zones: &[(&str, &str)], expected: Option<i32>) {
        let files = (0..).zip(zones).fold(Memory::new(), |files, (at, (kind, celsius))| {
            let zone = format!("{ZONES}/thermal_zone{at}");
            files.file(&format!("{zone}/type"), *kind).file(&format!("{zone}/temp"), *celsius)
        });
        assert_eq!(cpu_millicelsius(&Tree::memory(files)), expected, "{zones:?}");
    }

    #[test]
    fn the_hottest_sensor_of_a_cpu_counts() {
        check(&[("acpitz\n", "90000\n"), ("x86_pkg_temp\n", "45000\n")], Some(45_000));
        check(&[("cpu-thermal\n", "51121\n")], Some(51_121));
        check(
            &[("cpuss0-usr\n", "40000\n"), ("cpu-1-0-usr\n", "42500\n"), ("gpu\n", "70000\n")],
            Some(42_500),
        );
        check(&[("soc_thermal\n", "-5000\n")], Some(-5000));
        check(&[("bigcore0-thermal\n", "39000\n"), ("npu-thermal\n", "60000\n")], Some(39_000));
    }

    #[test]
    fn no_sensor_of_a_cpu_and_one_that_is_off_say_nothing() {
        check(&[], None);
        check(&[("acpitz\n", "27800\n"), ("iwlwifi_1\n", "40000\n"), ("associated\n", "40000\n")], None);
        for broken in ["", "\n", "warm\n", "-274000\n", "2147483647\n", "99999999999999\n", "4.5\n"] {
            check(&[("cpu-thermal\n", broken)], None);
            check(&[("cpu-thermal\n", broken), ("TCPU\n", "30000\n")], Some(30_000));
        }
    }

    proptest! {
        #[test]
        fn any_zones_give_a_credible_temperature_or_none(
            zones in prop::collection::vec((any::<String>(), any::<String>(), any::<i32>()), 0..5),
        ) {
            let files = (0..).zip(&zones).fold(Memory::new(), |files, (at, (kind, text, number))| {
                let zone = format!("{ZONES}/thermal_zone{at}");
                let celsius = if at % 2 == 0 { number.to_string() } else { text.clone() };
                files.file(&format!("{zone}/type"), format!("cpu {kind}")).file(&format!("{zone}/temp"), celsius)
            });
            let found = cpu_millicelsius(&Tree::memory(files));
            prop_assert!(found.is_none_or(|found| CREDIBLE.contains(&found)));
        }
    }
}
