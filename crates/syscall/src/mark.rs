//! Marks: a no-op with arguments, by which a program in a guest speaks to a plugin of its emulator.

/// Makes a mark: `word` says whose and which it is. Without a plugin that looks for it, and on other architectures, nothing
/// happens.
pub fn mark(word: u64, arguments: [u64; 3]) {
    #[cfg(target_arch = "x86_64")]
    {
        let [first, second, third] = arguments;
        // nopl 0x6e6f6465(%rax), whose displacement is the text "edon".
        // SAFETY: the instruction reads and writes nothing.
        unsafe {
            std::arch::asm!(
                ".byte 0x0f, 0x1f, 0x80, 0x65, 0x64, 0x6f, 0x6e",
                in("rax") word,
                in("rdi") first,
                in("rsi") second,
                in("rdx") third,
                options(nomem, nostack, preserves_flags),
            );
        };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (word, arguments);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_changes_nothing_here() {
        let arguments = [1, u64::MAX, 3];
        mark(u64::MAX, arguments);
        assert_eq!(arguments, [1, u64::MAX, 3]);
    }
}
