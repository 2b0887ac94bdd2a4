//! FNV-1a: a short hash that shows whether an accident or another program changed contents. It is not
//! a seal against forgery.

/// The hash with 64 bits.
///
/// # Source
/// Fowler, Noll, Vo and Eastlake, "The FNV non-cryptographic hash algorithm", RFC 9923.
pub fn fnv_1a(bytes: &[u8]) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    bytes.iter().fold(OFFSET, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_the_standard() {
        // RFC 9923, test vectors.
        let vectors =
            [("", 0xcbf2_9ce4_8422_2325), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)];
        for (text, expected) in vectors {
            assert_eq!(fnv_1a(text.as_bytes()), expected, "{text}");
        }
    }
}
