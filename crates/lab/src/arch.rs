//! The architectures that guests have, and what Debian, Linux and compilers call them.

/// An architecture of guests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Arch {
    /// x86-64: a PC, whose firmware describes its nodes in ACPI tables.
    #[default]
    X86,
    /// arm64: QEMU's machine `virt`, which describes its nodes in a device tree.
    Arm,
}

impl Arch {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::X86, Self::Arm];

    /// Debian's name for it, with which the releases of its kernels end.
    pub const fn debian(self) -> &'static str {
        match self {
            Self::X86 => "amd64",
            Self::Arm => "arm64",
        }
    }

    /// The architecture that Debian calls so.
    pub fn from_debian(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|arch| arch.debian() == name)
    }

    /// The word of compilers for it, with which their triplets begin.
    pub const fn compiler(self) -> &'static str {
        match self {
            Self::X86 => "x86_64",
            Self::Arm => "aarch64",
        }
    }

    /// The architecture that compilers call so.
    pub fn from_compiler(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|arch| arch.compiler() == name)
    }

    /// Whether a kernel of Debian's with this release is for it: `6.12.107+deb13-amd64`, but not
    /// `6.12.107+deb13-arm64-16k`, whose pages have another size.
    pub fn has_kernel(self, release: &str) -> bool {
        release.strip_suffix(self.debian()).is_some_and(|rest| rest.ends_with('-'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_told_apart_by_the_end_of_their_release() {
        let check = |release: &str, expected: Option<Arch>| {
            assert_eq!(Arch::ALL.into_iter().find(|arch| arch.has_kernel(release)), expected, "{release}");
        };
        check("6.12.107+deb13-amd64", Some(Arch::X86));
        check("6.12.107+deb13-arm64", Some(Arch::Arm));
        check("6.12.107+deb13-arm64-16k", None);
        check("arm64", None);
        check("", None);
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        assert!(Arch::ALL.into_iter().all(|arch| Arch::from_debian(arch.debian()) == Some(arch)));
        assert_eq!(Arch::from_debian("aarch64"), None);
        assert!(Arch::ALL.into_iter().all(|arch| Arch::from_compiler(arch.compiler()) == Some(arch)));
    }
}
