//! A machine you can boot: Machine to a QEMU guest with a real kernel.
