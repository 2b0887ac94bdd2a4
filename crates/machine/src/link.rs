//! How fast a device is connected: its link of PCI Express.

use std::fmt;

/// Speed and width of a device's link, now and at most. `None`: the kernel does not say.
///
/// # Source
/// `current_link_speed`, `current_link_width`, `max_link_speed` and `max_link_width` of a PCI function
/// (`Documentation/ABI/testing/sysfs-bus-pci`), Linux 4.13. The maximum is the device's own, whatever its slot can do.
///
/// # Units
/// Speeds in millions of transfers per second and lane (MT/s); widths in lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PciLink {
    /// Speed now. Devices lower it to save power.
    pub speed: Option<u32>,
    pub width: Option<u32>,
    /// The highest speed of the device.
    pub max_speed: Option<u32>,
    /// The lanes of the device.
    pub max_width: Option<u32>,
}

impl PciLink {
    /// Whether the link is slower or narrower than the device can have it.
    pub fn is_below_max(&self) -> bool {
        let is_less = |now: Option<u32>, max: Option<u32>| now.zip(max).is_some_and(|(now, max)| now < max);
        is_less(self.speed, self.max_speed) || is_less(self.width, self.max_width)
    }
}

/// `16 GT/s x16`; below its maximum `8 of 16 GT/s x8 of x16`. Empty where neither speed nor width is known.
impl fmt::Display for PciLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let above = |now: u32, max: Option<u32>| max.filter(|max| *max > now);
        if let Some(speed) = self.speed {
            write!(f, "{}", gigatransfers(speed))?;
            if let Some(max) = above(speed, self.max_speed) {
                write!(f, " of {}", gigatransfers(max))?;
            }
            f.write_str(" GT/s")?;
        }
        if let Some(width) = self.width {
            f.write_str(if self.speed.is_some() { " " } else { "" })?;
            write!(f, "x{width}")?;
            if let Some(max) = above(width, self.max_width) {
                write!(f, " of x{max}")?;
            }
        }
        Ok(())
    }
}

/// 2500 as `2.5`, 16000 as `16`.
fn gigatransfers(speed: u32) -> f64 {
    f64::from(speed) / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_says_what_it_has_and_what_it_could_have() {
        let check = |[speed, width, max_speed, max_width]: [u32; 4], text: &str, is_below: bool| {
            let known = |value: u32| Some(value).filter(|value| *value > 0);
            let link = PciLink {
                speed: known(speed),
                width: known(width),
                max_speed: known(max_speed),
                max_width: known(max_width),
            };
            assert_eq!((link.to_string().as_str(), link.is_below_max()), (text, is_below));
        };
        check([16000, 16, 16000, 16], "16 GT/s x16", false);
        check([2500, 16, 16000, 16], "2.5 of 16 GT/s x16", true);
        check([16000, 8, 16000, 16], "16 GT/s x8 of x16", true);
        check([8000, 4, 0, 0], "8 GT/s x4", false);
        check([0, 4, 8000, 4], "x4", false);
        check([0, 0, 8000, 4], "", false);
    }
}
