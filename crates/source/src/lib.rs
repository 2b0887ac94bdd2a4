//! Where machines come from: live sysfs and procfs, captures, machine files.
