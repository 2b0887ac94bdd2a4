//! The entry point: which table follows, and how long it is.

/// The bytes of the older entry point.
const LEGACY: usize = 15;

/// The facts of an entry point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryPoint {
    /// The version of the specification.
    pub major: u8,
    pub minor: u8,
    /// The length of the table; of version 3 the most it can have.
    pub table_bytes: u32,
    /// How many structures there are; version 3 does not say.
    pub structures: Option<u16>,
}

impl EntryPoint {
    /// Reads an entry point of 2.x (`_SM_`), 3.x (`_SM3_`), or the older one (`_DMI_`), which is the second half of
    /// that of 2.x and which some firmware has alone.
    ///
    /// # Errors
    /// Why it is none.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        if bytes.starts_with(b"_SM3_") {
            let bytes = checked(bytes, 6, 24)?;
            return Ok(Self {
                major: bytes[7],
                minor: bytes[8],
                table_bytes: u32::from_le_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]),
                structures: None,
            });
        }
        if bytes.starts_with(b"_SM_") {
            // Version 2.1 gave its length as 30 by mistake.
            let bytes = checked(bytes, 5, 30)?;
            return Ok(Self {
                major: bytes[6],
                minor: bytes[7],
                table_bytes: u32::from(u16::from_le_bytes([bytes[22], bytes[23]])),
                structures: Some(u16::from_le_bytes([bytes[28], bytes[29]])),
            });
        }
        if bytes.starts_with(b"_DMI_") {
            let bytes = bytes
                .get(..LEGACY)
                .ok_or_else(|| format!("{} bytes are there: expected {LEGACY}", bytes.len()))?;
            summed(bytes)?;
            return Ok(Self {
                // One decimal digit each; 0 where the firmware does not say it.
                major: bytes[14] >> 4,
                minor: bytes[14] & 0xf,
                table_bytes: u32::from(u16::from_le_bytes([bytes[6], bytes[7]])),
                structures: Some(u16::from_le_bytes([bytes[12], bytes[13]])),
            });
        }
        Err("expected \"_SM_\", \"_SM3_\" or \"_DMI_\" at its beginning".to_owned())
    }
}

/// The bytes of an entry point whose length is at this place, with the right sum.
fn checked(bytes: &[u8], length_at: usize, least: usize) -> Result<&[u8], String> {
    let length = bytes.get(length_at).map_or(0, |length| usize::from(*length));
    if length < least || bytes.len() < length {
        return Err(format!(
            "its length is {length}, and {} bytes are there: expected {least} or more",
            bytes.len()
        ));
    }
    summed(&bytes[..length])?;
    Ok(&bytes[..length])
}

/// Whether the sum of the bytes is right.
fn summed(bytes: &[u8]) -> Result<(), String> {
    match bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte)) {
        0 => Ok(()),
        sum => Err(format!("its checksum is off by {sum:#04x}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, proptest};

    /// With the right checksum at this place.
    fn sealed(mut bytes: Vec<u8>, at: usize) -> Vec<u8> {
        let sum = bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
        bytes[at] = bytes[at].wrapping_sub(sum);
        bytes
    }

    fn version_2() -> Vec<u8> {
        let mut bytes = vec![0; 31];
        bytes[..4].copy_from_slice(b"_SM_");
        (bytes[5], bytes[6], bytes[7]) = (31, 2, 7);
        bytes[16..21].copy_from_slice(b"_DMI_");
        bytes[22..24].copy_from_slice(&6370_u16.to_le_bytes());
        bytes[28..30].copy_from_slice(&154_u16.to_le_bytes());
        sealed(bytes, 4)
    }

    fn version_3() -> Vec<u8> {
        let mut bytes = vec![0; 24];
        bytes[..5].copy_from_slice(b"_SM3_");
        (bytes[6], bytes[7], bytes[8]) = (24, 3, 4);
        bytes[12..16].copy_from_slice(&90_000_u32.to_le_bytes());
        sealed(bytes, 5)
    }

    #[test]
    fn both_kinds_are_read() {
        let entry = EntryPoint { major: 2, minor: 7, table_bytes: 6370, structures: Some(154) };
        assert_eq!(EntryPoint::from_bytes(&version_2()), Ok(entry));
        let entry = EntryPoint { major: 3, minor: 4, table_bytes: 90_000, structures: None };
        assert_eq!(EntryPoint::from_bytes(&version_3()), Ok(entry));
    }

    /// The second half of a whole entry point, which has a sum of its own.
    fn legacy() -> Vec<u8> {
        let mut bytes = vec![0; LEGACY];
        bytes[..5].copy_from_slice(b"_DMI_");
        bytes[6..8].copy_from_slice(&6370_u16.to_le_bytes());
        bytes[12..14].copy_from_slice(&154_u16.to_le_bytes());
        bytes[14] = 0x23;
        sealed(bytes, 5)
    }

    #[test]
    fn the_older_kind_is_read_alone() {
        let entry = EntryPoint { major: 2, minor: 3, table_bytes: 6370, structures: Some(154) };
        assert_eq!(EntryPoint::from_bytes(&legacy()), Ok(entry));
        assert_eq!(
            EntryPoint::from_bytes(&legacy()[..14]),
            Err("14 bytes are there: expected 15".to_owned())
        );
        let mut broken = legacy();
        broken[14] += 1;
        assert_eq!(EntryPoint::from_bytes(&broken), Err("its checksum is off by 0x01".to_owned()));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let refuse = |bytes: &[u8], expected: &str| {
            assert_eq!(EntryPoint::from_bytes(bytes), Err(expected.to_owned()));
        };
        refuse(b"", "expected \"_SM_\", \"_SM3_\" or \"_DMI_\" at its beginning");
        refuse(&version_2()[..20], "its length is 31, and 20 bytes are there: expected 30 or more");
        let mut broken = version_3();
        broken[8] += 1;
        refuse(&broken, "its checksum is off by 0x01");
        broken[6] = 3;
        refuse(&broken, "its length is 3, and 24 bytes are there: expected 24 or more");
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in any::<Vec<u8>>(), at in 0_usize..24, byte in any::<u8>()) {
            let _ = EntryPoint::from_bytes(&bytes);
            for mut near in [version_2(), version_3(), legacy()] {
                if let Some(place) = near.get_mut(at) {
                    *place = byte;
                }
                let _ = EntryPoint::from_bytes(&near);
            }
        }
    }
}
